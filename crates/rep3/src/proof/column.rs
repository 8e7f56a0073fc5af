use privet_family::Secret;
use privet_kernels::fold::Words;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Words of one operand of a batch of statements: a range of a vector of the run, shared with it and not copied, wiped with it.
#[derive(Clone)]
pub(crate) struct Column {
    words: Arc<Secret>,
    range: Range<usize>,
}

impl Column {
    /// The words `range` of `words`. Panics when there are fewer.
    pub fn slice(words: &Arc<Secret>, range: Range<usize>) -> Column {
        assert!(range.start <= range.end && range.end <= words.len(), "a column past the end of its vector");
        Column { words: words.clone(), range }
    }

    /// The words `range` of this column. Panics when there are fewer.
    pub fn part(&self, range: Range<usize>) -> Column {
        assert!(
            range.start <= range.end && range.end <= self.range.len(),
            "a part past the end of its column"
        );
        let range = self.range.start + range.start..self.range.start + range.end;
        Column { words: self.words.clone(), range }
    }
}

/// Which words a column has: two with the same identity are one, as long as either is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    /// The vector's address, for comparison alone.
    vector: usize,
    start: usize,
    end: usize,
}

impl Column {
    /// Which words these are.
    pub fn identity(&self) -> Identity {
        Identity { vector: Arc::as_ptr(&self.words).addr(), start: self.range.start, end: self.range.end }
    }
}

impl Deref for Column {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[self.range.clone()]
    }
}

/// A party's part of one factor of a term.
#[derive(Clone)]
pub(crate) enum Operand {
    /// As it is remembered.
    Whole(Column),
    /// Bits: the sum of two columns that the party has anyway. It is made piece by piece where it is read, so that no memory holds it.
    Sum([Column; 2]),
    /// The same of ring elements, modulo 2^64 whatever the ring.
    Total([Column; 2]),
}

impl Operand {
    /// Words.
    pub fn len(&self) -> usize {
        let (Operand::Whole(column) | Operand::Sum([column, _]) | Operand::Total([column, _])) = self;
        column.len()
    }

    /// Whether all its columns have as many words.
    pub fn is_even(&self) -> bool {
        match self {
            Operand::Whole(_) => true,
            Operand::Sum([a, b]) | Operand::Total([a, b]) => a.len() == b.len(),
        }
    }

    /// The column, where it is one.
    pub fn column(&self) -> Option<&Column> {
        match self {
            Operand::Whole(column) => Some(column),
            Operand::Sum(_) | Operand::Total(_) => None,
        }
    }

    /// The columns that it is the sum of.
    pub fn columns(&self) -> &[Column] {
        match self {
            Operand::Whole(column) => std::slice::from_ref(column),
            Operand::Sum(columns) | Operand::Total(columns) => columns,
        }
    }

    /// The words `range` of bits. A sum is made where it is read.
    pub fn bits(&self, range: Range<usize>) -> Words<'_> {
        match self {
            Operand::Whole(column) => column[range].into(),
            Operand::Sum([a, b]) => Words::sum([&a[range.clone()], &b[range]]),
            Operand::Total(_) => unreachable!("a sum of ring elements among bits"),
        }
    }

    /// The words `range`; a sum is made in `scratch`, which is as secret as they are.
    pub fn words<'a>(&'a self, range: Range<usize>, scratch: &'a mut Vec<u64>) -> &'a [u64] {
        let (Operand::Sum([a, b]) | Operand::Total([a, b])) = self else {
            return &self.columns()[0][range];
        };
        // never shorter again, so that all of it is wiped
        let n = range.len().max(scratch.len());
        scratch.resize(n, 0);
        let words = &mut scratch[..range.len()];
        let summands = words.iter_mut().zip(a[range.clone()].iter().zip(&b[range]));
        match self {
            Operand::Total(_) => summands.for_each(|(word, (a, b))| *word = a.wrapping_add(*b)),
            Operand::Sum(_) | Operand::Whole(_) => summands.for_each(|(word, (a, b))| *word = a ^ b),
        }
        words
    }

    /// All words.
    #[cfg(test)]
    pub fn to_vec(&self) -> Vec<u64> {
        self.words(0..self.len(), &mut Vec::new()).to_vec()
    }
}

impl From<Column> for Operand {
    fn from(column: Column) -> Operand {
        Operand::Whole(column)
    }
}

impl From<Arc<Secret>> for Column {
    fn from(words: Arc<Secret>) -> Column {
        let range = 0..words.len();
        Column { words, range }
    }
}

impl From<&Arc<Secret>> for Column {
    fn from(words: &Arc<Secret>) -> Column {
        words.clone().into()
    }
}

impl From<Vec<u64>> for Column {
    fn from(words: Vec<u64>) -> Column {
        Arc::new(Secret::from(words)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a long piece leaves in the scratch is not out of reach of wiping after a short one.
    #[test]
    fn a_sum_is_made_piece_by_piece() {
        let [a, b] = [3, 5].map(|factor| Column::from((0..100).map(|i| factor * i).collect::<Vec<u64>>()));
        let (sum, mut scratch) = (Operand::Sum([a.clone(), b.clone()]), vec![]);
        for range in [0..64, 64..100, 10..10, 0..100, 99..100] {
            let expected: Vec<u64> = range.clone().map(|i| a[i] ^ b[i]).collect();
            assert_eq!(sum.words(range.clone(), &mut scratch), expected, "{range:?}");
        }
        assert_eq!((scratch.len(), sum.len()), (100, 100));
        let total = Operand::Total([a.clone(), vec![u64::MAX; 100].into()]);
        assert!(total.to_vec().iter().zip(&a[..]).all(|(total, a)| *total == a.wrapping_sub(1)));
        assert!(sum.is_even() && !Operand::Sum([a.clone(), b.part(0..99)]).is_even());
        assert_eq!(Operand::from(a.clone()).words(3..9, &mut scratch), &a[3..9]);
    }
}
