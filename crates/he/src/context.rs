//! Polynomials modulo q = product of primes, as coefficients and as values: two types, each prime's words side by side.

use crate::lane::{HePath, LIMB};
use crate::modulus::{Modulus, PRIME_BITS};
use crate::ntt::Ntt;
use crate::params::Set;
use crate::pointwise::{self, limb_factors};
use crate::sample::{self, OFFSET, Small};
use crate::word::Factor;
use privet_kernels::{CpuCap, CpuCapError};
use privet_prg::wiped::{wipe, zeros};
use privet_prg::{Domain, Seed};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

/// Coefficients modulo q, below each prime, prime by prime; wiped on drop.
#[derive(Clone)]
pub(crate) struct Coeff {
    pub(crate) words: Vec<u64>,
}

/// Values modulo q at the roots of X^N + 1, below each prime, prime by prime; wiped on drop.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Points {
    pub(crate) words: Vec<u64>,
}

impl Drop for Coeff {
    fn drop(&mut self) {
        wipe(std::mem::take(&mut self.words));
    }
}

impl Drop for Points {
    fn drop(&mut self) {
        wipe(std::mem::take(&mut self.words));
    }
}

/// The transforms of a set on a path of this machine. Share it: it is made once.
pub struct Context {
    set: &'static Set,
    path: HePath,
    ntts: Vec<Ntt>,
    low_q: u64,
    hats: Vec<Factor<u64>>,
    fractions: Vec<(u128, u64)>,
    threads: usize,
    transforms: AtomicUsize,
    products: AtomicUsize,
}

impl Context {
    /// On the fastest path that `PRIVET_CPU` allows, in so many threads.
    pub fn new(set: &'static Set, threads: usize) -> Result<Arc<Context>, CpuCapError> {
        Ok(Context::on(set, HePath::detect(CpuCap::from_env()?), threads))
    }

    /// On this path. Panics where the machine lacks it.
    pub fn on(set: &'static Set, path: HePath, threads: usize) -> Arc<Context> {
        assert!(path.available(), "the CPU path {path} is not available here; take HePath::detect");
        let ntts: Vec<Ntt> = set.primes.iter().map(|&p| Ntt::new(set.degree, p)).collect();
        let hat = |i: usize| {
            let m = ntts[i].modulus();
            let others = set.primes.iter().enumerate().filter(|(j, _)| *j != i);
            let product = others.fold(1, |product, (_, p)| m.times(product, m.reduce(u128::from(*p))));
            m.factor(m.inverse(product))
        };
        let hats = (0..ntts.len()).map(hat).collect();
        #[expect(clippy::integer_division_remainder_used, reason = "public primes")]
        let fractions = set.primes.iter().map(|&p| {
            // no odd p divides 2^128
            let (whole, rest) = (u128::MAX / u128::from(p), u128::MAX % u128::from(p) + 1);
            (whole, ((rest << 64) / u128::from(p)) as u64)
        });
        let fractions = fractions.collect();
        let low_q = set.primes.iter().fold(1u64, |q, p| q.wrapping_mul(*p));
        Arc::new(Context {
            set,
            path,
            ntts,
            low_q,
            hats,
            fractions,
            threads: threads.max(1),
            transforms: AtomicUsize::new(0),
            products: AtomicUsize::new(0),
        })
    }

    /// The set.
    pub fn set(&self) -> &'static Set {
        self.set
    }

    /// The path.
    pub fn path(&self) -> HePath {
        self.path
    }

    pub(crate) fn degree(&self) -> usize {
        self.set.degree
    }

    pub(crate) fn modulus(&self, prime: usize) -> Modulus {
        self.ntts[prime].modulus()
    }

    pub(crate) fn ntt(&self, prime: usize) -> &Ntt {
        &self.ntts[prime]
    }

    /// q modulo 2^64.
    pub(crate) fn low_q(&self) -> u64 {
        self.low_q
    }

    pub(crate) fn primes(&self) -> Range<usize> {
        0..self.ntts.len()
    }

    /// Words of one prime.
    pub(crate) fn range(&self, prime: usize) -> Range<usize> {
        prime * self.degree()..(prime + 1) * self.degree()
    }

    /// Coefficients `sum of limbs times factors, plus a constant`, prime by prime. `terms` gives them for a prime.
    pub(crate) fn combine<'a>(
        &self,
        len: usize,
        terms: impl Fn(Modulus) -> (Vec<(&'a [u64], Factor<u64>)>, u64),
    ) -> Coeff {
        let mut words = zeros(self.ntts.len() * len);
        for (ntt, out) in self.ntts.iter().zip(words.chunks_exact_mut(len)) {
            let (limbs, plus) = terms(ntt.modulus());
            pointwise::combine(self.path, ntt.modulus(), &limbs, plus, out);
        }
        Coeff { words }
    }

    /// Small signed coefficients.
    pub(crate) fn small(&self, small: &Small) -> Coeff {
        self.combine(small.len(), |m| (vec![(&small[..], m.factor(1))], m.p() - OFFSET))
    }

    /// The values of a polynomial with these signed coefficients, in two's complement of 64 bits; those that follow are 0.
    pub(crate) fn signed_points(&self, values: &[u64]) -> Points {
        let [mut low, mut high] = [(); 2].map(|()| Small::zeros(values.len()));
        for ((v, low), high) in values.iter().zip(low.iter_mut()).zip(high.iter_mut()) {
            let shifted = v ^ (1 << 63);
            (*low, *high) = (shifted & ((1 << LIMB) - 1), shifted >> LIMB);
        }
        self.count_transforms(self.ntts.len());
        let mut words = zeros(self.ntts.len() * self.degree());
        for (ntt, out) in self.ntts.iter().zip(words.chunks_exact_mut(self.degree())) {
            let m = ntt.modulus();
            let [one, limb, _] = limb_factors(m);
            let limbs = [(&low[..], one), (&high[..], limb)];
            let minus = m.p() - m.reduce(1 << 63);
            pointwise::combine(self.path, m, &limbs, minus, &mut out[..values.len()]);
            ntt.forward_of(self.path, out, values.len());
        }
        Points { words }
    }

    /// Transforms of one prime, and products of N values of one prime, since this was made.
    pub fn work(&self) -> (usize, usize) {
        (self.transforms.load(Ordering::Relaxed), self.products.load(Ordering::Relaxed))
    }

    /// Count transforms of one prime.
    pub(crate) fn count_transforms(&self, n: usize) {
        self.transforms.fetch_add(n, Ordering::Relaxed);
    }

    /// Count products of whole polynomials.
    pub(crate) fn count_products(&self, n: usize) {
        self.products.fetch_add(n * self.ntts.len(), Ordering::Relaxed);
    }

    pub(crate) fn points(&self, mut c: Coeff) -> Points {
        self.count_transforms(self.ntts.len());
        for (ntt, words) in self.ntts.iter().zip(c.words.chunks_exact_mut(self.degree())) {
            ntt.forward(self.path, words);
        }
        Points { words: std::mem::take(&mut c.words) }
    }

    pub(crate) fn coefficients(&self, mut v: Points) -> Coeff {
        self.count_transforms(self.ntts.len());
        for (ntt, words) in self.ntts.iter().zip(v.words.chunks_exact_mut(self.degree())) {
            ntt.inverse(self.path, words);
        }
        Coeff { words: std::mem::take(&mut v.words) }
    }

    /// Values of one prime to coefficients, in place.
    pub(crate) fn inverse(&self, prime: usize, words: &mut [u64]) {
        self.count_transforms(1);
        self.ntts[prime].inverse(self.path, words);
    }

    /// No value.
    pub(crate) fn zero(&self) -> Points {
        Points { words: zeros(self.ntts.len() * self.degree()) }
    }

    /// The public polynomial of this number under a public seed, as values: uniform, so no transform is needed.
    pub(crate) fn uniform(&self, seed: &Seed, number: u64) -> Points {
        let mut words = zeros(self.ntts.len() * self.degree());
        let mut prg = seed.derive(Domain::Public, number).stream();
        for (ntt, out) in self.ntts.iter().zip(words.chunks_exact_mut(self.degree())) {
            sample::uniform(&mut prg, ntt.prime(), out);
        }
        Points { words }
    }

    /// `a b`.
    pub(crate) fn product(&self, a: &Points, b: &Points) -> Points {
        self.count_products(1);
        let mut words = zeros(self.ntts.len() * self.degree());
        for (i, out) in words.chunks_exact_mut(self.degree()).enumerate() {
            let range = self.range(i);
            pointwise::product(self.path, self.modulus(i), &a.words[range.clone()], &b.words[range], out);
        }
        Points { words }
    }

    /// `a += b`, or `a -= b` where `negative`.
    pub(crate) fn add(&self, a: &mut [u64], b: &[u64], negative: bool) {
        assert!(a.len() == b.len() && a.len().is_multiple_of(self.ntts.len()), "number of words");
        let len = a.len().checked_div(self.ntts.len()).expect("there are primes");
        for (i, (a, b)) in a.chunks_exact_mut(len.max(1)).zip(b.chunks_exact(len.max(1))).enumerate() {
            let whole = len & !7;
            let ((a, a_tail), (b, b_tail)) = (a.split_at_mut(whole), b.split_at(whole));
            pointwise::add(self.path, self.modulus(i), a, b, negative);
            pointwise::add(HePath::Portable, self.modulus(i), a_tail, b_tail, negative);
        }
    }

    /// `c / q` of each coefficient, in units of 2^-128, less at most two of them a prime.
    ///
    /// `c / q = sum of (c hat^-1 mod p) / p` modulo 1 (Chinese remainders).
    pub(crate) fn fractions(&self, c: &Coeff) -> Vec<u128> {
        let len = c.words.len().checked_div(self.ntts.len()).expect("there are primes");
        let mut out = vec![0u128; len];
        let mut scaled = Small::zeros(len);
        for (i, (whole, rest)) in self.fractions.iter().enumerate() {
            let words = &c.words[i * len..(i + 1) * len];
            pointwise::combine(self.path, self.modulus(i), &[(words, self.hats[i])], 0, &mut scaled);
            for (sum, y) in out.iter_mut().zip(scaled.iter()) {
                let rest = (u128::from(*y) * u128::from(*rest)) >> 64;
                *sum = sum.wrapping_add(u128::from(*y).wrapping_mul(*whole)).wrapping_add(rest);
            }
        }
        out
    }

    /// Results for 0 to n - 1, in order, by as many threads as there may be.
    pub(crate) fn each<T: Send>(&self, n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        self.each_part(n, |part| part.map(&work).collect::<Vec<_>>()).into_iter().flatten().collect()
    }

    /// Results for parts of 0 to n - 1, one a thread.
    pub(crate) fn each_part<T: Send>(&self, n: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let size = n.div_ceil(self.threads).max(1);
        let mut parts = (0..n).step_by(size).map(|first| first..(first + size).min(n));
        let Some(first) = parts.next() else { return Vec::new() };
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            let mut done = vec![work(first)];
            let join = |other: ScopedJoinHandle<T>| other.join().unwrap_or_else(|panic| resume_unwind(panic));
            done.extend(others.into_iter().map(join));
            done
        })
    }

    /// Whether a word can be a residue of this prime.
    pub(crate) fn is_residue(&self, prime: usize, word: u64) -> bool {
        debug_assert!(self.set.primes[prime] >> PRIME_BITS == 0);
        word < self.set.primes[prime]
    }
}
