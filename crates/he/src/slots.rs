//! Products of words element by element: integers modulo primes, and polynomials whose values are the elements.
//!
//! Operands are integers; modulo T, a product of primes, their products are far below T. So shares of residues are shares of
//! the integer, and that is reduced modulo 2^k. Each prime's residues go through a [`crate::Product`] of their own.

use crate::context::Context;
use crate::lane::HePath;
use crate::layout::{Blocks, Cost, Layout, Output, Roles, cost};
use crate::modulus::Modulus;
use crate::ntt::Ntt;
use crate::params::{NoSet, Parameters, Set};
use crate::plain::Plain;
use crate::pointwise;
use privet_prg::{Prg, Wiped};
use privet_ring::Ring;

/// Primes below 2^38, the largest with 2^15 dividing p - 1. AGREEMENT.
const PRIMES: [u64; 6] =
    [0x3f_fff4_8001, 0x3f_fff2_8001, 0x3f_ffe8_0001, 0x3f_ffe0_8001, 0x3f_ffd1_8001, 0x3f_ffcf_0001];
/// Bits of T beyond the largest product times n that are enough for some 2^16 products: a share hides each up to a distance of 2^-57
/// (`docs/he.md`).
pub const SPARE: u32 = 56;

/// Words of a residue: one for each element, polynomial after polynomial.
pub type Residues = Wiped<u64>;

/// The first primes whose product T holds products in `ring` among so many parties, with so many bits to spare.
///
/// # Panics
/// Above 11 parties, or with more bits than [`SPARE`] asks for at 64 bits and 11 parties: no set of primes here holds that.
fn enough(ring: Ring, parties: usize, spare: u32) -> &'static [u64] {
    // n 2^(k-1) times n 2^(k-1), and T / n is what a share is below
    let bits = 2.0 * f64::from(ring.bits()) - 2.0 + 3.0 * (parties as f64).log2() + f64::from(spare);
    let mut have = 0.0;
    let last = PRIMES.iter().position(|p| {
        have += (*p as f64).log2();
        have >= bits
    });
    &PRIMES[..=last.expect("the primes hold every ring among 11 parties")]
}

/// How words modulo 2^k of n parties become residues, and their products words.
pub struct Slots {
    ring: Ring,
    path: HePath,
    parties: usize,
    ntts: Vec<Ntt>,
}

impl Slots {
    /// For products in `ring` among so many parties, with polynomials of the context's degree. A share hides a product up to a distance of
    /// `2^-spare`, and is as rarely wrong.
    ///
    /// # Panics
    /// Where no set of primes here holds that: [`SPARE`] bits fit for 11 parties in every ring, 84 for 2.
    pub fn new(context: &Context, ring: Ring, parties: usize, spare: u32) -> Slots {
        let ntts = enough(ring, parties, spare).iter().map(|p| Ntt::new(context.degree(), *p)).collect();
        Slots { ring, path: context.path(), parties, ntts }
    }

    /// What so many products cost a party with this set, exactly as it will be counted, hints with the rest.
    ///
    /// # Panics
    /// As [`Slots::new`].
    pub fn cost(
        set: &'static Set,
        ring: Ring,
        parties: usize,
        spare: u32,
        elements: usize,
    ) -> Result<Cost, NoSet> {
        let layout = Whole { degree: set.degree, groups: elements.div_ceil(set.degree) };
        let mut sum = Cost::default();
        for prime in enough(ring, parties, spare) {
            let p = Parameters::modulo(set, *prime, layout.coefficients(), layout.output_len(), parties)?;
            sum = sum.plus(cost(&p, &layout, Roles::BOTH, true));
        }
        Ok(sum)
    }

    /// The primes.
    pub fn primes(&self) -> impl Iterator<Item = u64> {
        self.ntts.iter().map(Ntt::prime)
    }

    /// The packing of so many elements.
    pub fn layout(&self, elements: usize) -> impl Layout + 'static {
        let degree = self.ntts[0].degree();
        Whole { degree, groups: elements.div_ceil(degree) }
    }

    /// Parameters of a prime's products with this set.
    pub fn parameters(&self, set: &'static Set, prime: u64, elements: usize) -> Result<Parameters, NoSet> {
        let layout = self.layout(elements);
        Parameters::modulo(set, prime, layout.coefficients(), layout.output_len(), self.parties)
    }

    /// Signed words as operands or weights, for each prime.
    pub fn operands(&self, x: &[u64]) -> Vec<Residues> {
        // limbs of a signed word, moved to be positive
        let mut low = Wiped::zeros(x.len());
        let mut high = Wiped::zeros(x.len());
        for ((x, low), high) in x.iter().zip(low.iter_mut()).zip(high.iter_mut()) {
            let moved = self.ring.signed(*x) as u64 ^ (1 << 63);
            (*low, *high) = (moved & u64::from(u32::MAX), moved >> 32);
        }
        let residues = |ntt: &Ntt| {
            let m = ntt.modulus();
            let limbs = [(&low[..], m.factor(1)), (&high[..], m.factor(m.reduce(1 << 32)))];
            let mut out = self.zeros(x.len());
            pointwise::combine(self.path, m, &limbs, m.p() - m.reduce(1 << 63), &mut out[..x.len()]);
            self.polynomials(ntt, out)
        };
        self.ntts.iter().map(residues).collect()
    }

    /// A fresh share of so many products: residues as polynomials for each prime, and words.
    ///
    /// It is an integer R uniform below `T / t floor(t / n)`, t the last prime: its digits in the mixed radix of the
    /// primes are uniform, the last one below `floor(t / n)`. So n - 1 of them do not exceed T.
    pub fn share(&self, elements: usize, prg: &mut Prg) -> (Vec<Residues>, Residues) {
        let last = self.ntts.len() - 1;
        let below = |(i, ntt): (usize, &Ntt)| {
            let most = ntt.prime().checked_div(if i == last { self.parties as u64 } else { 1 });
            Wiped::new(Plain::Prime(most.expect("parties")).uniform(prg, elements))
        };
        let digits: Vec<Residues> = self.ntts.iter().enumerate().map(below).collect();
        let residues = |(j, ntt): (usize, &Ntt)| {
            let m = ntt.modulus();
            // digits beyond the prime's own are of multiples of it
            let limbs: Vec<_> = (0..=j).map(|i| (&digits[i][..], m.factor(self.radix(i, m)))).collect();
            let mut out = self.zeros(elements);
            pointwise::combine(self.path, m, &limbs, 0, &mut out[..elements]);
            self.polynomials(ntt, out)
        };
        let residues = self.ntts.iter().enumerate().map(residues).collect();
        (residues, self.words(&digits, 0))
    }

    /// Words of the integer in [0, T) whose residues' polynomials these are, less T: the opener's share.
    pub fn opened(&self, elements: usize, mut residues: Vec<Residues>) -> Residues {
        for (ntt, v) in self.ntts.iter().zip(&mut residues) {
            v.chunks_exact_mut(ntt.degree()).for_each(|v| ntt.forward(self.path, v));
            v.truncate(elements);
        }
        let mut digits: Vec<Residues> = Vec::new();
        for (j, (ntt, v)) in self.ntts.iter().zip(&residues).enumerate() {
            let m = ntt.modulus();
            let inverse = m.inverse(self.radix(j, m));
            let minus = |i| m.factor(m.times(m.p() - self.radix(i, m), inverse));
            let mut limbs = vec![(&v[..], m.factor(inverse))];
            limbs.extend(digits.iter().enumerate().map(|(i, digit)| (&digit[..], minus(i))));
            let mut digit = Wiped::zeros(elements);
            pointwise::combine(self.path, m, &limbs, 0, &mut digit);
            digits.push(digit);
        }
        self.words(&digits, self.primes().fold(1, u64::wrapping_mul))
    }

    /// The product of the primes before prime i, modulo m.
    fn radix(&self, i: usize, m: Modulus) -> u64 {
        self.primes().take(i).fold(1, |product, t| m.times(product, m.reduce(u128::from(t))))
    }

    /// Words of integers from their digits, less a number.
    fn words(&self, digits: &[Residues], less: u64) -> Residues {
        let mut out = Wiped::new(vec![less.wrapping_neg(); digits[0].len()]);
        let mut radix = 1u64;
        for (digit, t) in digits.iter().zip(self.primes()) {
            out.iter_mut()
                .zip(digit.iter())
                .for_each(|(sum, d)| *sum = sum.wrapping_add(d.wrapping_mul(radix)));
            radix = radix.wrapping_mul(t);
        }
        out.iter_mut().for_each(|w| *w = self.ring.wrap(*w));
        out
    }

    fn zeros(&self, elements: usize) -> Residues {
        Wiped::zeros(self.layout(elements).input_len())
    }

    fn polynomials(&self, ntt: &Ntt, mut values: Residues) -> Residues {
        values.chunks_exact_mut(ntt.degree()).for_each(|v| ntt.inverse(self.path, v));
        values
    }
}

/// Whole polynomials, each multiplied by one of its own.
#[derive(Clone, Copy, Debug)]
struct Whole {
    degree: usize,
    groups: usize,
}

impl Layout for Whole {
    fn blocks(&self) -> Blocks {
        Blocks { groups: self.groups, tiles: 1, inputs: 1, outputs: 1 }
    }

    fn input_len(&self) -> usize {
        self.groups * self.degree
    }

    fn weight_len(&self) -> usize {
        self.input_len()
    }

    fn output_len(&self) -> usize {
        self.input_len()
    }

    fn weights_in_a_polynomial(&self) -> usize {
        self.degree
    }

    fn pack_input(&self, number: usize, x: &[u64], out: &mut [u64]) {
        out.copy_from_slice(&x[number * self.degree..][..self.degree]);
    }

    fn pack_weights(&self, number: usize, w: &[u64], out: &mut [u64]) {
        self.pack_input(number, w, out);
    }

    fn outputs(&self, answer: usize) -> Vec<Output> {
        let first = answer * self.degree;
        (0..self.degree).map(|i| Output { coefficient: i, index: first + i }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::SETS;
    use privet_prg::Seed;

    /// n - 1 fresh shares and what is missing add up to products of integers, at the ends as well, in every ring.
    #[test]
    fn shares_add_up_in_every_ring() {
        let context = Context::new(&SETS[1], 1).unwrap();
        let mut prg = Seed::from_bytes([1; 16]).stream();
        for (k, parties, spare) in [
            (64, 2, SPARE),
            (64, 5, SPARE),
            (64, 11, SPARE),
            (41, 3, SPARE),
            (1, 2, SPARE),
            (24, 2, SPARE),
            (64, 2, 84),
        ] {
            let ring = Ring::new(k);
            let slots = Slots::new(&context, ring, parties, spare);
            let edges = [0, 1, ring.mask(), 1 << (k - 1), ring.wrap((1 << (k - 1)) - 1)];
            let mut x = prg.elements(ring, 100);
            x.extend(edges.iter().flat_map(|x| [*x; 5]));
            let mut y = prg.elements(ring, 100);
            y.extend(edges.iter().cycle().take(25));
            let n = x.len();
            let product = |(x, y): (&Residues, &Residues), ntt: &Ntt| {
                let m = ntt.modulus();
                let [mut x, mut y] = [x.clone(), y.clone()];
                ntt.forward(slots.path, &mut x);
                ntt.forward(slots.path, &mut y);
                x.iter_mut().zip(y.iter()).for_each(|(x, y)| *x = m.times(*x, *y));
                ntt.inverse(slots.path, &mut x);
                x
            };
            let (xs, ys) = (slots.operands(&x), slots.operands(&y));
            let mut left: Vec<Residues> =
                xs.iter().zip(&ys).zip(&slots.ntts).map(|(xy, ntt)| product(xy, ntt)).collect();
            let mut sum = vec![0u64; n];
            for _ in 1..parties {
                let (residues, words) = slots.share(n, &mut prg);
                for ((left, r), t) in left.iter_mut().zip(&residues).zip(slots.primes()) {
                    let minus: Vec<u64> = r.iter().map(|r| if *r == 0 { 0 } else { t - r }).collect();
                    Plain::Prime(t).add(left, &minus);
                }
                sum.iter_mut().zip(words.iter()).for_each(|(s, w)| *s = s.wrapping_add(*w));
            }
            let last = slots.opened(n, left);
            for i in 0..n {
                let found = ring.wrap(sum[i].wrapping_add(last[i]));
                assert_eq!(found, ring.wrap(x[i].wrapping_mul(y[i])), "{k} bits, {parties} parties, {i}");
            }
        }
    }
}
