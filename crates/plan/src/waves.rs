//! What [`Op::Waves`] computes, integer by integer: one definition for the interpreter and for the protocols.
//!
//! With v = x + d, every cosine and sine of a multiple of x's angle is a sum of two products of a function of v and a function
//! of d. So where v is public and d is a mask, or v is one party's and d the others', a sum of K waves is an inner product of
//! 2K numbers on one side with 2K on the other. No piece has to be found, and nothing is compared.
//!
//! Nothing here depends on a number in time: angles are reduced by masks, and there is no table.
//!
//! [`Op::Waves`]: crate::ir::Op::Waves

/// Fraction bits of cosines and sines.
pub const TURN: u32 = 30;
/// Most bits of what an angle is made of.
pub const MOST_BITS: u32 = 32;
/// Most waves.
pub const MOST_WAVES: usize = 64;
/// Coefficients are at most this in size, so that the sum of two products with a cosine stays below 2^63.
pub const MOST_COEFFICIENT: i64 = 1 << 31;

/// `(pi / 4)^n / n!` with [`TURN`] fraction bits, n odd: the sine of an eighth of a turn's part.
const SINE: [i64; 6] = [843_314_857, -86_699_834, 2_674_041, -39_273, 336, -2];
/// The same, n even: the cosine.
const COSINE: [i64; 6] = [1 << 30, -331_168_970, 17_023_473, -350_031, 3_856, -26];

/// A sum of waves of numbers of some ring.
#[derive(Clone, Copy, Debug)]
pub struct Waves<'a> {
    bits: u32,
    step: u32,
    waves: &'a [[i64; 2]],
}

/// A product of two numbers of [`TURN`] fraction bits that are at most 2.
#[inline(always)]
fn times(a: i64, b: i64) -> i64 {
    (a as i32 as i64) * (b as i32 as i64)
}

/// With the bits that a product has too many rounded off.
#[inline(always)]
fn rounded(a: i64) -> i64 {
    (a + (1 << (TURN - 1))) >> TURN
}

/// The cosine and the sine of `phase` parts of 2^32 of a turn.
#[inline(always)]
fn turn(phase: u32) -> [i64; 2] {
    let quarter = phase.wrapping_add(1 << 29) >> 30;
    // in (-1, 1] eighths of a turn
    let z = 2 * (phase.wrapping_sub(quarter << 30) as i32 as i64);
    let square = rounded(times(z, z));
    let sum = |c: &[i64; 6]| c.iter().rev().fold(0, |sum, c| rounded(times(sum, square)) + c);
    let (cos, sin) = (sum(&COSINE), rounded(times(sum(&SINE), z)));
    // by quarters: swapped where odd, the cosine negated in the second and third, the sine in the last two
    let odd = -((quarter & 1) as i64);
    let swap = (cos ^ sin) & odd;
    let negated = |v: i64, by: u32| {
        let mask = -(by as i64);
        (v ^ mask) - mask
    };
    [negated(cos ^ swap, (quarter ^ quarter >> 1) & 1), negated(sin ^ swap, quarter >> 1)]
}

impl<'a> Waves<'a> {
    /// Of numbers of `bits` bits; the others as in the operation.
    ///
    /// # Errors
    /// When the numbers are outside what can be computed.
    pub fn new(bits: u32, step: u32, digits: u32, waves: &'a [[i64; 2]]) -> Result<Waves<'a>, String> {
        let small = |c: &i64| (-MOST_COEFFICIENT..=MOST_COEFFICIENT).contains(c);
        let few = (1..=MOST_WAVES).contains(&waves.len()) && waves.iter().flatten().all(small);
        if !few || !(1..=MOST_BITS).contains(&bits) || step == 0 || digits > 31 {
            return Err(format!(
                "{} waves of step {step} and {digits} fraction bits for {bits} bits; at most {MOST_WAVES} waves, {MOST_BITS} and 31 bits",
                waves.len()
            ));
        }
        Ok(Waves { bits, step, waves })
    }

    /// Number of factors, and of words.
    pub fn terms(&self) -> usize {
        2 * self.waves.len()
    }

    /// Bits of the coin.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Cosine and sine of every wave at v, in order.
    #[inline(always)]
    fn turns(&self, v: u64, mut each: impl FnMut(usize, [i64; 2])) {
        let [c, s] = turn(((v as u32).wrapping_mul(self.step)) << (MOST_BITS - self.bits));
        let (mut cos, mut sin) = (c, s);
        for h in 0..self.waves.len() {
            each(h, [cos, sin]);
            (cos, sin) = (rounded(times(cos, c) - times(sin, s)), rounded(times(sin, c) + times(cos, s)));
        }
    }

    /// What depends on v = x + d alone: as many as [`Waves::terms`].
    pub fn factors(&self, v: u64, to: &mut [u64]) {
        self.turns(v, |h, [cos, sin]| {
            to[2 * h] = cos as u64;
            to[2 * h + 1] = sin as u64;
        });
    }

    /// What depends on d alone, modulo 2^64: as many as [`Waves::terms`].
    pub fn words(&self, d: u64, to: &mut [u64]) {
        self.turns(d, |h, [cos, sin]| {
            let [a, b] = self.waves[h];
            to[2 * h] = rounded(a * cos - b * sin) as u64;
            to[2 * h + 1] = rounded(a * sin + b * cos) as u64;
        });
    }

    /// The result from both.
    pub fn sum(factors: &[u64], words: &[u64]) -> u64 {
        factors.iter().zip(words).fold(0, |sum: u64, (f, w)| sum.wrapping_add(f.wrapping_mul(*w)))
    }

    /// The result for x and the coin d, modulo 2^64.
    pub fn at(&self, x: u64, d: u64) -> u64 {
        let (mut factors, mut words) = ([0; 2 * MOST_WAVES], [0; 2 * MOST_WAVES]);
        let n = self.terms();
        self.factors(x.wrapping_add(d), &mut factors[..n]);
        self.words(d, &mut words[..n]);
        Waves::sum(&factors[..n], &words[..n])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn turns_are_near_everywhere() {
        let edges = (0..8u32)
            .flat_map(|eighth| (0..64u32).map(move |i| (eighth << 29).wrapping_add(i).wrapping_sub(32)));
        let mut worst = 0f64;
        for phase in edges.chain((0..1 << 18).map(|i: u32| i.wrapping_mul(0x9e37_79b9))) {
            let angle = phase as f64 / 2f64.powi(31) * PI;
            let [cos, sin] = turn(phase).map(|v| v as f64 / 2f64.powi(30));
            worst = worst.max((cos - libm::cos(angle)).abs()).max((sin - libm::sin(angle)).abs());
        }
        assert!(worst < 2f64.powi(-28), "off by 2^{}", worst.log2());
    }

    #[test]
    fn sums_are_near_for_every_coin() {
        let unit = 2f64.powi(29);
        let real = [[1.5, -0.25], [0.0, 0.7], [-0.3, 0.2], [0.01, 0.0], [0.1, -0.1]];
        let coefficients = real.map(|wave| wave.map(|c: f64| (c * unit).round() as i64));
        for (bits, step) in [(32, 1), (28, 7), (9, 3), (1, 1)] {
            let waves = Waves::new(bits, step, 29, &coefficients).unwrap();
            let period = 2f64.powi(bits as i32);
            for i in 0..20_000u64 {
                let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (x, d) =
                    (word >> 32 & ((1 << bits) - 1), if i % 3 == 0 { 0 } else { word & ((1 << bits) - 1) });
                let angle = 2.0 * PI * ((x * step as u64) as f64 / period).fract();
                let wave = |(h, [a, b]): (usize, &[f64; 2])| {
                    let angle = (h + 1) as f64 * angle;
                    a * libm::cos(angle) + b * libm::sin(angle)
                };
                let exact: f64 = real.iter().enumerate().map(wave).sum();
                let found = waves.at(x, d) as i64 as f64 * 2f64.powi(-59);
                assert!((found - exact).abs() < 2f64.powi(-25), "{x} + {d}: {found}, not {exact}");
            }
        }
    }
}
