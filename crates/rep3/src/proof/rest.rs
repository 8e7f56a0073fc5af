use super::{Algebra, Column, Kind, Mask};
use std::ops::Range;

/// What a verifier adds alone: a column or a mask or both, and products of what it knows alone. No memory holds their sum: it is made piece
/// by piece where it is read.
#[derive(Clone)]
pub(crate) struct Rest {
    base: Base,
    /// Of words and words, or, in statements about numbers, of a word and a bit, 64 of them in a word.
    products: Vec<[Column; 2]>,
}

#[derive(Clone)]
enum Base {
    Column(Column),
    /// Of words of bits.
    Mask(Mask, Option<Column>),
}

impl Rest {
    /// A column and products, each as long.
    pub fn new(column: Column, products: Vec<[Column; 2]>) -> Rest {
        Rest { base: Base::Column(column), products }
    }

    /// A mask, a column if there is one, and products, each as long, of words of bits.
    pub fn masked(mask: Mask, column: Option<Column>, products: Vec<[Column; 2]>) -> Rest {
        debug_assert!(column.as_ref().is_none_or(|column| column.len() == mask.len()), "a shorter mask");
        Rest { base: Base::Mask(mask, column), products }
    }

    /// Words.
    pub fn len(&self) -> usize {
        match &self.base {
            Base::Column(column) => column.len(),
            Base::Mask(mask, _) => mask.len(),
        }
    }

    /// Whether its columns are as long as such statements want them: of elements of rings it has no products.
    pub fn is_even(&self, kind: Kind) -> bool {
        let fits = |[left, right]: &[Column; 2]| {
            left.len() == self.len() && right.len() == kind.right_words(self.len())
        };
        let of_kind = match (kind, &self.base) {
            (Kind::Bits, _) => true,
            (Kind::Numbers, base) => matches!(base, Base::Column(_)),
            (Kind::Ring(_), base) => matches!(base, Base::Column(_)) && self.products.is_empty(),
        };
        of_kind && self.products.iter().all(fits)
    }

    /// The column and the products, where no mask is added.
    pub fn summands(&self) -> Option<(&Column, &[[Column; 2]])> {
        match &self.base {
            Base::Column(column) => Some((column, &self.products)),
            Base::Mask(..) => None,
        }
    }

    /// The column, where it is all.
    pub fn column(&self) -> Option<&Column> {
        self.summands().filter(|(_, products)| products.is_empty()).map(|(column, _)| column)
    }

    /// The words `range` of statements about words of bits; a sum is made in `scratch`, which is as secret as they are. A range begins at an
    /// even word.
    pub fn words<'a>(&'a self, range: Range<usize>, scratch: &'a mut Vec<u64>) -> &'a [u64] {
        if let Some(column) = self.column() {
            return &column[range];
        }
        // never shorter again, so that all of it is wiped
        let n = range.len().max(scratch.len());
        scratch.resize(n, 0);
        let sum = &mut scratch[..range.len()];
        let products = match (&self.base, &self.products[..]) {
            (Base::Column(column), [[left, right], more @ ..]) => {
                let first = left[range.clone()].iter().zip(&right[range.clone()]);
                let words = column[range.clone()].iter().zip(first);
                sum.iter_mut().zip(words).for_each(|(sum, (word, (l, r)))| *sum = word ^ l & r);
                more
            }
            (Base::Column(column), []) => {
                sum.copy_from_slice(&column[range.clone()]);
                &[]
            }
            (Base::Mask(mask, column), products) => {
                mask.put(range.clone(), sum);
                if let Some(column) = column {
                    Algebra::Bits.add(sum, &column[range.clone()]);
                }
                products
            }
        };
        for [left, right] in products {
            Algebra::Bits.add_product(sum, &left[range.clone()], &right[range.clone()]);
        }
        sum
    }

    /// All words.
    #[cfg(test)]
    pub fn to_vec(&self, kind: Kind) -> Vec<u64> {
        let mut sum = vec![0; self.len()];
        match &self.base {
            Base::Column(column) => sum.copy_from_slice(column),
            Base::Mask(mask, column) => {
                mask.put(0..sum.len(), &mut sum);
                column.iter().for_each(|column| Algebra::Bits.add(&mut sum, column));
            }
        }
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
    use privet_prg::Seed;
    use privet_ring::Ring;
    use std::sync::Arc;

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
        // masks as they were drawn, behind others of the stream
        let mut stream = Seed::from_bytes([1; 16]).stream();
        let again = Arc::new(stream.again(0));
        stream.elements(Ring::R64, 6);
        let (mask, drawn) = (Mask::of(&again, 6, 200, "and-unmasked"), stream.elements(Ring::R64, 200));
        let alone = Rest::masked(mask.clone(), None, vec![]);
        let masked = Rest::masked(mask, Some(sum.clone()), vec![[a.clone(), b.clone()]]);
        assert!(masked.is_even(Kind::Bits) && !masked.is_even(Kind::Numbers));
        assert!(masked.summands().is_none() && alone.column().is_none() && alone.len() == 200);
        for range in [0..200, 64..128, 10..11, 64..64] {
            assert_eq!(alone.words(range.clone(), &mut scratch), &drawn[range.clone()], "{range:?}");
            let expected: Vec<u64> = range.clone().map(|i| drawn[i] ^ sum[i] ^ a[i] & b[i]).collect();
            assert_eq!(masked.words(range.clone(), &mut scratch), expected, "{range:?}");
            assert_eq!(masked.to_vec(Kind::Bits)[range.clone()], expected, "{range:?}");
        }
        assert_eq!(scratch.len(), 200, "what a long piece leaves there is not out of reach of wiping");
        assert!(Rest::from(sum).column().is_some() && of_words.column().is_none());
    }
}
