use super::{Algebra, Column, Kind};
use std::ops::Range;

/// What a verifier adds alone: a column, and products of what it knows alone. No memory holds their sum: it is made piece by piece where
/// it is read.
#[derive(Clone)]
pub(crate) struct Rest {
    column: Column,
    /// Of words and words, or, in statements about numbers, of a word and a bit, 64 of them in a word.
    products: Vec<[Column; 2]>,
}

impl Rest {
    /// A column and products, each as long.
    pub fn new(column: Column, products: Vec<[Column; 2]>) -> Rest {
        Rest { column, products }
    }

    /// Words.
    pub fn len(&self) -> usize {
        self.column.len()
    }

    /// Whether its columns are as long as such statements want them: of elements of rings it has no products.
    pub fn is_even(&self, kind: Kind) -> bool {
        let fits = |[left, right]: &[Column; 2]| {
            left.len() == self.len() && right.len() == kind.right_words(self.len())
        };
        self.products.is_empty() || !matches!(kind, Kind::Ring(_)) && self.products.iter().all(fits)
    }

    /// The column, where it is all.
    pub fn column(&self) -> Option<&Column> {
        self.products.is_empty().then_some(&self.column)
    }

    /// The words `range`, which begins at a multiple of 64 where the statements are about numbers; a sum is made in `scratch`, which is
    /// as secret as they are.
    pub fn words<'a>(&'a self, kind: Kind, range: Range<usize>, scratch: &'a mut Vec<u64>) -> &'a [u64] {
        if self.products.is_empty() {
            return &self.column[range];
        }
        // never shorter again, so that all of it is wiped
        let n = range.len().max(scratch.len());
        scratch.resize(n, 0);
        let sum = &mut scratch[..range.len()];
        sum.copy_from_slice(&self.column[range.clone()]);
        for [left, right] in &self.products {
            let left = &left[range.clone()];
            match kind {
                Kind::Numbers => add_chosen(sum, left, &right[range.start / 64..]),
                Kind::Bits | Kind::Ring(_) => Algebra::Bits.add_product(sum, left, &right[range.clone()]),
            }
        }
        sum
    }

    /// All words.
    #[cfg(test)]
    pub fn to_vec(&self, kind: Kind) -> Vec<u64> {
        self.words(kind, 0..self.len(), &mut Vec::new()).to_vec()
    }
}

/// Add words where a bit is 1, 64 bits in a word.
fn add_chosen(to: &mut [u64], words: &[u64], bits: &[u64]) {
    for ((to, words), bits) in to.chunks_mut(64).zip(words.chunks(64)).zip(bits) {
        for (i, (to, word)) in to.iter_mut().zip(words).enumerate() {
            *to ^= word & (bits >> i & 1).wrapping_neg();
        }
    }
}

impl<C: Into<Column>> From<C> for Rest {
    fn from(column: C) -> Rest {
        Rest::new(column.into(), vec![])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_added_piece_by_piece() {
        let column =
            |factor: u64, n| Column::from((0..n).map(|i: u64| i.wrapping_mul(factor)).collect::<Vec<_>>());
        let (sum, a, b) = (column(3, 200), column(5, 200), column(u64::MAX / 7, 200));
        let bits = column(u64::MAX / 3, 4);
        let mut scratch = vec![];
        let of_words = Rest::new(sum.clone(), vec![[a.clone(), b.clone()], [b.clone(), sum.clone()]]);
        let of_numbers = Rest::new(sum.clone(), vec![[a.clone(), bits.clone()]]);
        assert!(of_words.is_even(Kind::Bits) && of_numbers.is_even(Kind::Numbers));
        assert!(!of_numbers.is_even(Kind::Bits) && !of_words.is_even(Kind::Numbers));
        for range in [0..200, 64..128, 128..200, 192..200, 64..64] {
            let expected: Vec<u64> = range.clone().map(|i| sum[i] ^ a[i] & b[i] ^ b[i] & sum[i]).collect();
            assert_eq!(of_words.words(Kind::Bits, range.clone(), &mut scratch), expected, "{range:?}");
            let chosen = |i: usize| if bits[i / 64] >> (i % 64) & 1 == 1 { a[i] } else { 0 };
            let expected: Vec<u64> = range.clone().map(|i| sum[i] ^ chosen(i)).collect();
            assert_eq!(of_numbers.words(Kind::Numbers, range.clone(), &mut scratch), expected, "{range:?}");
        }
        assert_eq!(scratch.len(), 200, "what a long piece leaves there is not out of reach of wiping");
        assert!(Rest::from(sum).column().is_some() && of_words.column().is_none());
    }
}
