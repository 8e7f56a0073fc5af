//! The negacyclic number-theoretic transform: polynomials modulo X^N + 1 and p as their values at the odd powers of a
//! root of unity of order 2 N. [`spec`] is the plain definition.

mod drive;
pub mod spec;

use crate::lane::{HePath, Kernel, Lane};
use crate::modulus::Modulus;
use crate::word::Factor;
use drive::Roots;
use privet_prg::Wiped;

/// The transform of N points modulo one prime.
///
/// Value i of the transform is the polynomial at `root^(2 bitrev(i) + 1)`; the order is part of the wire format.
#[derive(Clone)]
pub struct Ntt {
    modulus: Modulus,
    forward: Vec<[u64; 2]>,
    inverse: Vec<[u64; 2]>,
    values: [Vec<u64>; 4],
    scale: Factor<u64>,
}

impl Ntt {
    /// For N = `degree`, a power of two from 32 to 2^16, and a prime p below 2^50 with 2 N dividing p - 1; panics otherwise.
    pub fn new(degree: usize, p: u64) -> Ntt {
        assert!((32..=1 << 16).contains(&degree) && degree.is_power_of_two(), "N is a power of two");
        let modulus = Modulus::new(p);
        let root = modulus.root(degree);
        let powers = |base: u64| -> Vec<[u64; 2]> {
            let mut out = vec![[0; 2]; degree];
            let mut power = 1;
            for i in 0..degree {
                let Factor { value, quotient } = modulus.factor(power);
                out[spec::reversed(i, degree)] = [value, quotient];
                power = modulus.times(power, base);
            }
            out
        };
        let (forward, inverse) = (powers(root), powers(modulus.inverse(root)));
        let column = |pairs: &[[u64; 2]], i: usize| pairs.iter().map(|p| p[i]).collect();
        let values = [column(&forward, 0), column(&forward, 1), column(&inverse, 0), column(&inverse, 1)];
        let scale = modulus.factor(modulus.inverse(degree as u64));
        Ntt { modulus, forward, inverse, values, scale }
    }

    /// N.
    pub fn degree(&self) -> usize {
        self.forward.len()
    }

    /// p.
    pub fn prime(&self) -> u64 {
        self.modulus.p()
    }

    pub(crate) fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// Coefficients below p to values below p, in place. Panics unless there are N.
    pub fn forward(&self, path: HePath, words: &mut [u64]) {
        self.forward_of(path, words, self.degree());
    }

    /// The same of a polynomial whose coefficients from number `used` on are 0. How many are used is public.
    pub fn forward_of(&self, path: HePath, words: &mut [u64], used: usize) {
        assert_eq!(words.len(), self.degree(), "number of coefficients");
        let filled = used.next_power_of_two().clamp(32, self.degree());
        path.run(Forward { ntt: self, words, filled });
    }

    /// Of many polynomials with N coefficients below p of which only the first `filled`, a power of two, may be others than 0, and which
    /// are all that is given: their values with numbers `number * filled` and on, as many. `put` gets each polynomial's in turn.
    pub(crate) fn forward_parts(
        &self,
        path: HePath,
        polynomials: &[u64],
        filled: usize,
        number: usize,
        put: impl FnMut(usize, &[u64]),
    ) {
        assert!(filled.is_power_of_two() && (32..=self.degree()).contains(&filled), "filled coefficients");
        assert!(number << filled.trailing_zeros() < self.degree(), "number of a part");
        let words = Wiped::zeros(filled);
        path.run(ForwardParts { ntt: self, polynomials, number, words, put });
    }

    /// Values below p to coefficients below p, in place. Panics unless there are N.
    pub fn inverse(&self, path: HePath, words: &mut [u64]) {
        assert_eq!(words.len(), self.degree(), "number of values");
        path.run(Inverse { ntt: self, words });
    }
}

struct Forward<'a> {
    ntt: &'a Ntt,
    words: &'a mut [u64],
    filled: usize,
}

impl Kernel for Forward<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let [values, quotients, ..] = &self.ntt.values;
        let roots = Roots { pairs: &self.ntt.forward, values, quotients };
        drive::forward(lane, self.ntt.prime(), roots, self.words, self.filled);
    }
}

struct ForwardParts<'a, F> {
    ntt: &'a Ntt,
    polynomials: &'a [u64],
    number: usize,
    words: Wiped<u64>,
    put: F,
}

impl<F: FnMut(usize, &[u64])> Kernel for ForwardParts<'_, F> {
    #[inline(always)]
    fn run<L: Lane>(mut self, lane: L) {
        let [values, quotients, ..] = &self.ntt.values;
        let roots = Roots { pairs: &self.ntt.forward, values, quotients };
        for (i, polynomial) in self.polynomials.chunks_exact(self.words.len()).enumerate() {
            self.words.copy_from_slice(polynomial);
            drive::part(lane, self.ntt.prime(), roots, self.ntt.degree(), self.number, &mut self.words);
            (self.put)(i, &self.words);
        }
    }
}

struct Inverse<'a> {
    ntt: &'a Ntt,
    words: &'a mut [u64],
}

impl Kernel for Inverse<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let [_, _, values, quotients] = &self.ntt.values;
        let roots = Roots { pairs: &self.ntt.inverse, values, quotients };
        drive::inverse(lane, self.ntt.prime(), roots, self.ntt.scale, self.words);
    }
}
