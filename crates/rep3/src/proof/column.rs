use privet_family::Secret;
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
    vector: *const Secret,
    start: usize,
    end: usize,
}

impl Column {
    /// Which words these are.
    pub fn identity(&self) -> Identity {
        Identity { vector: Arc::as_ptr(&self.words), start: self.range.start, end: self.range.end }
    }
}

impl Deref for Column {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[self.range.clone()]
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
