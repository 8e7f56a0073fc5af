//! A loop over the values of one prime: sums of products that are reduced once.

use crate::field::Field;
use crate::lane::{HePath, Kernel, Lane};
use crate::modulus::Modulus;
use crate::pointwise::{MAX_TERMS, limb_factors, reduced};

/// `out = first + sum of x_j y_j` modulo p, all below p. No `first` is 0.
pub(super) fn sum_of_products(
    path: HePath,
    modulus: Modulus,
    first: Option<&[u64]>,
    terms: &[(&[u64], &[u64])],
    out: &mut [u64],
) {
    assert_eq!(out.len() & 7, 0, "whole registers");
    assert!(terms.len() < MAX_TERMS, "sums of products have room");
    let lengths = terms.iter().flat_map(|(x, y)| [x.len(), y.len()]).chain(first.map(<[u64]>::len));
    assert!(lengths.into_iter().all(|len| len == out.len()), "number of values");
    path.run(SumOfProducts { modulus, first, terms, out });
}

struct SumOfProducts<'a> {
    modulus: Modulus,
    first: Option<&'a [u64]>,
    terms: &'a [(&'a [u64], &'a [u64])],
    out: &'a mut [u64],
}

impl Kernel for SumOfProducts<'_> {
    #[inline(always)]
    fn run<L: Lane>(self, lane: L) {
        let (f, factors) = (Field::new(lane, self.modulus.p()), limb_factors(self.modulus));
        for (i, out) in self.out.chunks_exact_mut(L::WIDTH).enumerate() {
            let at = i * L::WIDTH;
            let first = self.first.map_or(lane.splat(0), |first| lane.load(&first[at..]));
            let mut sums = (first, lane.splat(0));
            for (x, y) in self.terms {
                sums = lane.multiply_add(sums, lane.load(&x[at..]), lane.load(&y[at..]));
            }
            lane.store(out, reduced(f, factors, sums));
        }
    }
}
