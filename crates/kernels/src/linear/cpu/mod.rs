//! Linear layers on the CPU.

use super::{LinearShape, Weights, reference};
use crate::CpuCap;
use privet_ring::Ring;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Which implementation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearPath {
    /// Plain 64-bit multiplications.
    Portable,
}

impl LinearPath {
    /// The best path within `cap`.
    pub fn detect(_cap: CpuCap) -> LinearPath {
        LinearPath::Portable
    }
}

impl fmt::Display for LinearPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("matmul portable")
    }
}

struct Plain(Vec<u64>);

impl Weights for Plain {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// See [`crate::Device::prepare`].
pub fn prepare(_path: LinearPath, _ring: Ring, _shape: LinearShape, weights: &[u64]) -> Arc<dyn Weights> {
    Arc::new(Plain(weights.to_vec()))
}

/// See [`crate::Device::linear_acc`].
pub fn linear_acc(
    _path: LinearPath,
    _threads: usize,
    ring: Ring,
    shape: LinearShape,
    x: &[u64],
    weights: &dyn Weights,
    out: &mut [u64],
) {
    let Some(Plain(w)) = weights.as_any().downcast_ref() else {
        panic!("weights were prepared by another device");
    };
    for (o, v) in out.iter_mut().zip(reference(ring, shape, x, w)) {
        *o = o.wrapping_add(v);
    }
}
