//! Exact matrix product and convolution over Z_2^k.

pub mod cpu;
mod spec;

pub use spec::reference;

use privet_ring::Conv2d;
use std::any::Any;

/// A linear layer's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinearShape {
    /// `out[m, n] += sum_k x[m, k] * w[n, k]` (weights as torch's `Linear` keeps them: `[out, in]`).
    MatMulT {
        /// Rows of x.
        m: usize,
        /// Columns of x and of w.
        k: usize,
        /// Rows of w.
        n: usize,
    },
    /// `out[m, n] += sum_k x[m, k] * w[k, n]`.
    MatMul {
        /// Rows of x.
        m: usize,
        /// Columns of x, rows of w.
        k: usize,
        /// Columns of w.
        n: usize,
    },
    /// NCHW convolution.
    Conv2d(Conv2d),
}

impl LinearShape {
    /// Elements of x.
    pub fn input_len(&self) -> usize {
        match *self {
            LinearShape::MatMulT { m, k, .. } | LinearShape::MatMul { m, k, .. } => m * k,
            LinearShape::Conv2d(c) => c.input_len(),
        }
    }

    /// Elements of w.
    pub fn weight_len(&self) -> usize {
        match *self {
            LinearShape::MatMulT { k, n, .. } | LinearShape::MatMul { k, n, .. } => k * n,
            LinearShape::Conv2d(c) => c.weight_len(),
        }
    }

    /// Elements of out.
    pub fn output_len(&self) -> usize {
        match *self {
            LinearShape::MatMulT { m, n, .. } | LinearShape::MatMul { m, n, .. } => m * n,
            LinearShape::Conv2d(c) => c.output_len(),
        }
    }

    /// Ring multiplications of one pass.
    pub fn macs(&self) -> u64 {
        match *self {
            LinearShape::MatMulT { m, k, n } | LinearShape::MatMul { m, k, n } => (m * k * n) as u64,
            LinearShape::Conv2d(c) => c.macs(),
        }
    }
}

/// Weights in a device's own layout. Holds shares or masked values: never printed.
pub trait Weights: Send + Sync {
    /// For the device to recognise its own.
    fn as_any(&self) -> &dyn Any;
}
