//! Statements about numbers that have words of their own ([`Kind::Numbers`](super::Kind)): a term is a number where a bit is 1.
//!
//! A group has 8 numbers, not 64 as words of bits: one item of GF(2^64) is left of a group, where words leave one a lane. So their values
//! are those of a polynomial in the first three variables of the first fold. In the others it is constant: 0 at infinity. The word l of a
//! group has `rho_l` like a word of bits.

use super::batch::{Batch, Factor};
use super::column::Operand;
use super::field::Gf;
use privet_family::Secret;
use privet_kernels::Device;
use privet_kernels::fold::{Chosen, GROUP, NUMBER_GROUP, NUMBER_VARS, NumberTerms, number_weights, points};

/// Add the values of the first fold's polynomial, at all of its points.
pub(super) fn add_values(device: &dyn Device, batches: &[(&Batch, &[u64])], sums: &mut [Gf]) {
    let batches: Vec<_> = batches
        .iter()
        .map(|(b, weights)| {
            let terms = b.left_words().zip(b.right_words()).map(|(numbers, bits)| Chosen { numbers, bits });
            NumberTerms { numbers: b.words, terms: terms.collect(), weights }
        })
        .collect();
    let mut values = [0; points(NUMBER_VARS)];
    device.fold().numbers_message(&batches, &mut values);
    for (others, sums) in sums.chunks_mut(values.len()).enumerate() {
        if is_finite(others) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum ^= value);
        }
    }
}

/// Whether no variable is infinity at a point.
fn is_finite(mut point: usize) -> bool {
    while point > 0 {
        if point % 3 == 2 {
            return false;
        }
        point /= 3;
    }
    true
}

/// The first fold, at a point.
pub(super) struct First([Gf; NUMBER_GROUP]);

impl First {
    /// `basis` has the products of the point's elements, more than are needed.
    pub fn new(basis: &[Gf]) -> First {
        First(*basis.first_chunk().expect("a product for every number of a group"))
    }

    /// Append an item for every group of numbers, or of their bits, times its weight.
    pub fn append(
        &self,
        device: &dyn Device,
        factor: Factor,
        operand: &Operand,
        s: Option<&[u64]>,
        items: &mut Vec<Gf>,
    ) {
        let mut scratch = Secret::default();
        let words = operand.words(0..operand.len(), &mut scratch);
        match factor {
            Factor::Left => device.fold().numbers_fold(words, &self.0, s, items),
            Factor::Right => device.fold().bits_fold(words, &self.0, items),
        }
    }

    /// Left factors with their weights, and right ones, of a party that has all of them.
    pub fn of(&self, device: &dyn Device, batches: &[(&Batch, &[u64])]) -> [Vec<Gf>; 2] {
        let items = batches.iter().map(|(b, _)| number_weights(b.words) * b.terms.len()).sum();
        let (mut left, mut right) = (Vec::with_capacity(items), Vec::with_capacity(items));
        for (batch, s) in batches {
            for (number, bit) in batch.factors() {
                self.append(device, Factor::Left, number, Some(s), &mut left);
                self.append(device, Factor::Right, bit, None, &mut right);
            }
        }
        [left, right]
    }
}

/// Add to `sums[l]` what has `rho_l` of what a verifier adds alone, times the groups' coefficients.
pub(super) fn combine(device: &dyn Device, batch: &Batch, s: &[u64], sums: &mut [Gf; GROUP]) {
    let (column, products) = batch.rest_of_numbers().expect("a verifier's batch");
    let products: Vec<_> = products.iter().map(|[numbers, bits]| Chosen { numbers, bits }).collect();
    let sums = sums.first_chunk_mut().expect("fewer");
    device.fold().numbers_combine(column, &products, s, sums);
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_kernels::fold::diagonal;

    /// A polynomial in the first variables alone adds nothing to the products of words behind the eighth.
    #[test]
    fn values_at_infinity_in_other_variables_are_none() {
        let finite: Vec<usize> = (0..64).filter(|l| is_finite(diagonal(*l) / points(NUMBER_VARS))).collect();
        assert_eq!(finite, (0..NUMBER_GROUP).collect::<Vec<_>>());
        assert!(is_finite(0) && is_finite(1) && is_finite(4) && !is_finite(2) && !is_finite(7));
    }
}
