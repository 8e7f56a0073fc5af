//! What [`Op::Piecewise`] and [`Op::Exponential`] compute, integer by integer: one definition for the interpreter and for
//! the protocols, which evaluate public and secret factors of it apart.
//!
//! [`Op::Piecewise`]: crate::ir::Op::Piecewise
//! [`Op::Exponential`]: crate::ir::Op::Exponential

use crate::ir::Type;
use privet_ring::Ring;

/// A quadratic on pieces of `2^shift` numbers each.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// Bits below the index of a piece.
    pub shift: u32,
    /// Coefficients.
    pub pieces: &'a [[i64; 3]],
}

impl Pieces<'_> {
    /// Bits of an index.
    pub fn index_bits(&self) -> u32 {
        self.pieces.len().trailing_zeros()
    }

    /// `x + d` modulo 2^k as an index and what is below it.
    pub fn split(&self, v: u64) -> (usize, u64) {
        let low = v & ((1 << self.shift) - 1);
        ((v >> self.shift) as usize & (self.pieces.len() - 1), low)
    }

    /// The result for x and the coin d.
    pub fn at(&self, x: u64, d: u64) -> u64 {
        let (index, low) = self.split(x.wrapping_add(d));
        quadratic(&self.pieces[index], low.wrapping_sub(d))
    }
}

/// `c0 + c1 t + c2 t^2` modulo 2^64.
fn quadratic(c: &[i64; 3], t: u64) -> u64 {
    let [c0, c1, c2] = c.map(|c| c as u64);
    c2.wrapping_mul(t).wrapping_add(c1).wrapping_mul(t).wrapping_add(c0)
}

/// Coefficients of a quadratic that approximates `f` from `middle - half` to `middle + half`, in
/// the distance from `origin` in units of `2^-t_frac`, results of `frac` fraction bits. The error is at most about
/// `half^3 max|f'''| / 24`, and what rounding c2 to `frac - 2 t_frac` fraction bits leaves.
pub fn quadratic_near(
    f: impl Fn(f64) -> f64,
    [middle, half, origin]: [f64; 3],
    t_frac: u32,
    frac: u32,
) -> [i64; 3] {
    let unit = |frac: u32| 2f64.powi(frac as i32);
    let fixed = |v: f64, frac: u32| (v * unit(frac)).round_ties_even() as i64;
    // the zeros of the third Chebyshev polynomial: nearly the best quadratic
    let node = half * 0.75f64.sqrt();
    let [low, at, high] = [f(middle - node), f(middle), f(middle + node)];
    let c2 = fixed((low + high - 2.0 * at) / (2.0 * node * node), frac - 2 * t_frac);
    let curve = c2 as f64 / unit(frac - 2 * t_frac);
    // what the rounding of c2 leaves is spread evenly
    let rest = ((low + high) / 2.0 - curve * node * node + at) / 2.0;
    let (slope, back) = ((high - low) / (2.0 * node), origin - middle);
    let c1 = fixed(slope + 2.0 * curve * back, frac - t_frac);
    [fixed(rest + slope * back + curve * back * back, frac), c1, c2]
}

/// `e^x = e^f e^(e - d)`: `x + d` is the whole number e and the fraction f. With a scale of 1 it is `e^2` in place of e.
///
/// The first factor is a function of `x + d` and the second one of e and d, so that where one is public and d is a
/// mask, the second one is a table of as many entries as there are whole numbers. Results come in rows: large and small
/// ones cannot have equally many fraction bits.
#[derive(Clone, Debug)]
pub struct Exponential {
    frac: u32,
    whole: u32,
    first: u32,
    /// Fraction bits of a quadratic's result.
    wide: u32,
    rows: Vec<(i32, u32)>,
    rising: Vec<[i64; 3]>,
    falling: Vec<[i64; 3]>,
    /// What a row's second factor is the coin's part times: a number of 63 bits, and by how much to shift the product down; row after row,
    /// by the whole number modulo `2^whole`. 0 shifts stand for the factor 0.
    powers: Vec<(u64, u32)>,
}

/// log2 of the number of pieces of `[0, 1)`.
const PIECES: u32 = 7;
/// Pieces of a line, of which there are several ([`Exponential::first_of_secret`]).
const LINE: usize = 16;
/// Bits of a quadratic's result that a sign and the whole part of e leave; with e^2 it is one less.
const WIDE: u32 = 61;

impl Exponential {
    /// For operands of type `x`; the others as in the operation.
    ///
    /// # Errors
    /// When the numbers are outside what can be computed.
    pub fn new(x: &Type, first: u32, rows: &[(i32, u32)], scale: u32) -> Result<Exponential, String> {
        let whole = x.bits.saturating_sub(x.frac);
        if !(8..=26).contains(&x.frac) || !(1..=6).contains(&whole) {
            let bits = x.bits;
            return Err(format!(
                "an exponential of {bits} bits with {} fraction bits; 8 to 26 and 1 to 6 more",
                x.frac
            ));
        }
        let least = rows.first().map_or(0, |row| row.0);
        let sound =
            |&(from, digits): &(i32, u32)| (-64..=64).contains(&from) && digits <= 40 && first + digits <= 63;
        let few = (1..=4).contains(&rows.len()) && (8..=40).contains(&first);
        if !(few && rows.iter().all(sound) && rows.is_sorted() && scale <= 1) {
            return Err(format!(
                "an exponential with {first} fraction bits, the rows {rows:?} and the scale {scale}"
            ));
        }
        let (wide, times) = (WIDE - scale, f64::from(1 << scale));
        let fit = |sign: f64| {
            let f = |x: f64| libm::exp(sign * times * x);
            let half = 2f64.powi(-(PIECES as i32) - 1);
            let piece = |i: u32| {
                let first = 2.0 * half * i as f64;
                quadratic_near(f, [first + half, half, first], x.frac, wide)
            };
            (0..1 << PIECES).map(piece).collect()
        };
        let power = |row: usize, index: i32| {
            let e = least + (index - least).rem_euclid(1 << whole);
            let ((begins, digits), ends) = (rows[row], rows.get(row + 1).map_or(i32::MAX, |next| next.0));
            let (mantissa, exponent) = libm::frexp(libm::exp(e as f64 * times));
            match wide as i32 - digits as i32 - (exponent - 63) {
                shift @ 1..=126 if (begins..ends).contains(&e) => {
                    ((mantissa * 2f64.powi(63)) as u64, shift as u32)
                }
                _ => (0, 0),
            }
        };
        let powers = (0..rows.len()).flat_map(|row| (0..1 << whole).map(move |index| (row, index)));
        Ok(Exponential {
            frac: x.frac,
            whole,
            first,
            wide,
            rows: rows.to_vec(),
            rising: fit(1.0),
            falling: fit(-1.0),
            powers: powers.map(|(row, index)| power(row, index)).collect(),
        })
    }

    /// Number of whole numbers.
    pub fn entries(&self) -> usize {
        1 << self.whole
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// `x + d` as a whole number modulo `2^whole` and a fraction.
    pub fn split(&self, v: u64) -> (usize, u64) {
        ((v >> self.frac) as usize & (self.entries() - 1), v & (self.unit() - 1))
    }

    fn unit(&self) -> u64 {
        1 << self.frac
    }

    fn quadratic(&self, pieces: &[[i64; 3]], f: u64) -> u64 {
        let low = self.frac - PIECES;
        quadratic(&pieces[(f >> low) as usize], f & ((1 << low) - 1))
    }

    /// The same for a secret f: all pieces are read, whichever it is. The line of pieces with the upper bits of the index is taken first, and
    /// then the piece with the lower ones.
    fn quadratic_of_secret(&self, pieces: &[[i64; 3]], f: u64) -> u64 {
        let low = self.frac - PIECES;
        let (line, place) = ((f >> low) / LINE as u64, (f >> low) % LINE as u64);
        // all ones where two numbers below 2^63 are the same
        let same = |a: usize, b: u64| ((((a as u64) ^ b).wrapping_sub(1) >> 63) as i64).wrapping_neg();
        let mut of_line = [[0; 3]; LINE];
        for (i, pieces) in pieces.as_chunks::<LINE>().0.iter().enumerate() {
            let here = same(i, line);
            let words = of_line.as_flattened_mut().iter_mut().zip(pieces.as_flattened());
            words.for_each(|(own, c)| *own |= c & here);
        }
        let mut own = [0; 3];
        for (i, piece) in of_line.iter().enumerate() {
            let here = same(i, place);
            own.iter_mut().zip(piece).for_each(|(own, c)| *own |= c & here);
        }
        quadratic(&own, f & ((1 << low) - 1))
    }

    /// The pieces of e^f, results of 61 fraction bits or of 60, and the bits below their index: for protocols in which f is secret.
    pub fn rising(&self) -> Pieces<'_> {
        Pieces { shift: self.frac - PIECES, pieces: &self.rising }
    }

    /// Bits that the first factor has less than [`Exponential::rising`].
    pub fn dropped(&self) -> u32 {
        self.wide - self.first
    }

    /// The first factor: e^f.
    pub fn first(&self, f: u64) -> u64 {
        self.quadratic(&self.rising, f) >> self.dropped()
    }

    /// [`Exponential::first`] in a time, and with reads of memory, that do not depend on f.
    pub fn first_of_secret(&self, f: u64) -> u64 {
        self.quadratic_of_secret(&self.rising, f) >> self.dropped()
    }

    /// [`Exponential::coin`] in a time, and with reads of memory, that do not depend on d.
    pub fn coin_of_secret(&self, d: u64) -> u64 {
        self.quadratic_of_secret(&self.falling, d)
    }

    /// What all entries for the coin d share.
    pub fn coin(&self, d: u64) -> u64 {
        self.quadratic(&self.falling, d)
    }

    /// The second factor of a row for the whole number `index` modulo `2^whole`: `e^(e - d)`, `coin` being that of d.
    pub fn second(&self, row: usize, index: usize, coin: u64) -> u64 {
        let (mantissa, shift) = self.powers[row * self.entries() + index];
        match shift {
            0 => 0,
            _ => {
                let product = coin as u128 * mantissa as u128;
                (((product >> (shift - 1)) + 1) >> 1) as u64
            }
        }
    }

    /// The result for x and the coin d in a row, modulo 2^64.
    pub fn at(&self, row: usize, x: u64, d: u64) -> u64 {
        let ring = Ring::new(self.whole + self.frac);
        let (index, fraction) = self.split(ring.wrap(x.wrapping_add(d)));
        self.first(fraction).wrapping_mul(self.second(row, index, self.coin(d)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential() -> Exponential {
        Exponential::new(&Type { shape: vec![1], bits: 29, frac: 24 }, 29, &[(-29, 30)], 0).unwrap()
    }

    #[test]
    fn factors_of_secrets_are_those_of_the_same_numbers() {
        let (e, piece) = (exponential(), 1u64 << (24 - PIECES));
        let near = (0..1u64 << PIECES).flat_map(|i| [i * piece, i * piece + 1, (i + 1) * piece - 1]);
        for f in near {
            assert_eq!(e.first_of_secret(f), e.first(f), "{f}");
            assert_eq!(e.coin_of_secret(f), e.coin(f), "{f}");
        }
    }

    #[test]
    fn exponentials_of_twice_x_are_near_for_every_coin() {
        let ty = Type { shape: vec![1], bits: 17, frac: 13 };
        let e = Exponential::new(&ty, 14, &[(-14, 24)], 1).unwrap();
        let ring = Ring::new(17);
        // from -14 to 1/2
        for signed in -14i64 << 13..1 << 12 {
            for d in [0, 1, 0xfff, 0x1000, 0x1fff, signed.unsigned_abs().wrapping_mul(2654435761) & 0x1fff] {
                let (x, exact) = (ring.wrap(signed as u64), libm::exp(signed as f64 * 2f64.powi(-12)));
                let found = e.at(0, x, d) as f64 * 2f64.powi(-38);
                // the first factor is rounded down, the second to the nearest
                let bound = exact * 1.01 * 2f64.powi(-14) + 4.0 * 2f64.powi(-24);
                assert!((found - exact).abs() <= bound, "{signed} with {d}: {found}, not {exact}");
            }
        }
    }

    #[test]
    fn exponentials_are_near_for_every_coin() {
        let e = exponential();
        let (ring, unit) = (Ring::new(29), 2f64.powi(24));
        let mut word = 1u64;
        let mut next = || {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            word >> 20
        };
        for i in 0..200_000u64 {
            let real = match i {
                0..4 => [-28.0, -1.0 / unit, 0.0, 1.5][i as usize],
                _ => -28.0 + (next() % (1 << 40)) as f64 * 2f64.powi(-40) * 29.5,
            };
            let signed = (real * unit).floor();
            let (x, exact) = (ring.wrap(signed as i64 as u64), libm::exp(signed / unit));
            let d = if i % 3 == 0 { 0 } else { next() & 0xff_ffff };
            let found = e.at(0, x, d) as f64 * 2f64.powi(-59);
            let bound = exact * 2f64.powi(-24) + 2f64.powi(-29);
            assert!((found - exact).abs() <= bound, "{real} with {d}: {found}, not {exact}");
        }
    }

    #[test]
    fn pieces_serve_on_both_sides() {
        // x^2 on 8 pieces of 16 numbers, exactly
        let pieces: Vec<[i64; 3]> = (0..8).map(|i| [256 * i * i, 32 * i, 1]).collect();
        let p = Pieces { shift: 4, pieces: &pieces };
        for x in 0..112u64 {
            for d in 0..16 {
                assert_eq!(p.at(x, d), x * x, "{x} with {d}");
            }
        }
        // the first piece comes after the last
        assert_eq!(p.at(127, 1), 1);
    }
}
