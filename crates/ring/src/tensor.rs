use thiserror::Error;

/// A dense row-major tensor of ring elements (the ring is kept beside it, in the plan's type).
///
/// `Debug` prints the shape alone: a tensor may hold shares or plaintext.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Vec<u64>,
}

/// A shape that does not fit.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TensorError {
    /// The number of elements differs from the product of the shape.
    #[error("shape {shape:?} holds {expected} elements, but {found} were given")]
    Length {
        /// The wanted shape.
        shape: Vec<usize>,
        /// The product of the shape.
        expected: usize,
        /// The length of the data.
        found: usize,
    },
}

impl Tensor {
    /// A tensor over `data`; its length must be the product of `shape`.
    pub fn new(shape: Vec<usize>, data: Vec<u64>) -> Result<Self, TensorError> {
        // A product that overflows is larger than any data.
        let expected = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).unwrap_or(usize::MAX);
        if expected != data.len() {
            return Err(TensorError::Length { shape, expected, found: data.len() });
        }
        Ok(Tensor { shape, data })
    }

    /// All zero.
    pub fn zeros(shape: &[usize]) -> Self {
        Tensor { shape: shape.to_vec(), data: vec![0; shape.iter().product()] }
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, row-major.
    pub fn data(&self) -> &[u64] {
        &self.data
    }

    /// The elements, row-major.
    pub fn data_mut(&mut self) -> &mut [u64] {
        &mut self.data
    }

    /// The elements, owned.
    pub fn into_data(self) -> Vec<u64> {
        self.data
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The same elements under another shape of the same size.
    pub fn reshaped(self, shape: &[usize]) -> Result<Self, TensorError> {
        Tensor::new(shape.to_vec(), self.data)
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor{:?}", self.shape)
    }
}

/// A matrix of so many rows and columns, the other way round: `out[j * rows + i] = x[i * columns + j]`.
pub fn transposed(x: &[u64], rows: usize, columns: usize) -> Vec<u64> {
    /// Rows and columns that are in the cache together.
    const SIDE: usize = 16;
    let mut out = vec![0; rows * columns];
    for row in (0..rows).step_by(SIDE) {
        for column in (0..columns).step_by(SIDE) {
            for i in row..(row + SIDE).min(rows) {
                for j in column..(column + SIDE).min(columns) {
                    out[j * rows + i] = x[i * columns + j];
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::transposed;

    #[test]
    fn every_element_is_where_it_belongs() {
        for (rows, columns) in [(0, 3), (1, 1), (1, 40), (15, 17), (33, 16), (50, 70)] {
            let x: Vec<u64> = (0..(rows * columns) as u64).collect();
            let turned = transposed(&x, rows, columns);
            assert!(
                (0..x.len()).all(|e| turned[e % columns * rows + e / columns] == x[e]),
                "{rows} x {columns}"
            );
        }
    }
}
