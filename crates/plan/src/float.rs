use std::fmt;

/// A dense row-major tensor of real numbers. `Debug` prints the shape alone.
#[derive(Clone, PartialEq, Default)]
pub struct FloatTensor {
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Elements, as many as the product of `shape`.
    pub data: Vec<f64>,
}

impl FloatTensor {
    /// A tensor over `data`; `None` unless its length is the product of `shape`.
    pub fn new(shape: Vec<usize>, data: Vec<f64>) -> Option<Self> {
        (shape.iter().product::<usize>() == data.len()).then_some(FloatTensor { shape, data })
    }

    /// Smallest and largest element; `None` when there is none.
    pub fn range(&self) -> Option<[f64; 2]> {
        self.data.iter().fold(None, |range, &v| match range {
            None => Some([v, v]),
            Some([lo, hi]) => Some([lo.min(v), hi.max(v)]),
        })
    }
}

impl fmt::Debug for FloatTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FloatTensor{:?}", self.shape)
    }
}
