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

    /// The column and the products.
    pub fn summands(&self) -> (&Column, &[[Column; 2]]) {
        (&self.column, &self.products)
    }

    /// The words `range` of statements about words of bits; a sum is made in `scratch`, which is as secret as they are.
    pub fn words<'a>(&'a self, range: Range<usize>, scratch: &'a mut Vec<u64>) -> &'a [u64] {
        let column = &self.column[range.clone()];
        let Some(([left, right], more)) = self.products.split_first() else { return column };
        // never shorter again, so that all of it is wiped
        let n = range.len().max(scratch.len());
        scratch.resize(n, 0);
        let sum = &mut scratch[..range.len()];
        let first = left[range.clone()].iter().zip(&right[range.clone()]);
        sum.iter_mut().zip(column.iter().zip(first)).for_each(|(sum, (word, (l, r)))| *sum = word ^ l & r);
        for [left, right] in more {
            Algebra::Bits.add_product(sum, &left[range.clone()], &right[range.clone()]);
        }
        sum
    }

    /// All words.
    #[cfg(test)]
    pub fn to_vec(&self, kind: Kind) -> Vec<u64> {
        let mut sum = self.column.to_vec();
        for [left, right] in &self.products {
            let bit = |i: usize| (right[i / 64] >> (i % 64) & 1).wrapping_neg();
            match kind {
                Kind::Numbers => left.iter().enumerate().for_each(|(i, word)| sum[i] ^= word & bit(i)),
                Kind::Bits | Kind::Ring(_) => Algebra::Bits.add_product(&mut sum, left, right),
            }
        }
        sum
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
        for range in [0..200, 64..128, 128..200, 10..11, 64..64] {
            let expected: Vec<u64> = range.clone().map(|i| sum[i] ^ a[i] & b[i] ^ b[i] & sum[i]).collect();
            assert_eq!(of_words.words(range.clone(), &mut scratch), expected, "{range:?}");
            assert_eq!(of_words.to_vec(Kind::Bits)[range.clone()], expected, "{range:?}");
        }
        assert_eq!(scratch.len(), 200, "what a long piece leaves there is not out of reach of wiping");
        assert!(Rest::from(sum).column().is_some() && of_words.column().is_none());
    }
}
