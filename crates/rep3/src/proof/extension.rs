//! The rings that statements are combined over.

use super::batch::{Batch, Statements, Weights};
use super::products::Joined;
use privet_kernels::Device;
use privet_prg::Prg;

/// GF(2^64), or the Galois ring of degree 64 over Z_2^64. The *exceptional set* are the elements with coefficients 0
/// and 1: the difference of any two is a unit.
pub(super) trait Extension: Copy + Send + Sync + 'static {
    /// 0.
    const ZERO: Self;
    /// Bytes on the wire.
    const BYTES: usize;

    /// The element of the exceptional set with these coefficients, bit i for Y^i.
    fn embed(bits: u64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Append [`Extension::BYTES`] bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Read [`Extension::BYTES`] bytes; every string is an element.
    fn get(bytes: &[u8]) -> Self;
    /// Uniform.
    fn draw(prg: &mut Prg) -> Self;

    /// Values of `sum over batches and groups of s_g u_g v_g`, for the prover's columns.
    fn first_message(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Self>;
    /// `u` at the point whose powers are `basis`, every item times its weight.
    fn first_fold_u(device: &dyn Device, batches: &[Batch], weights: &Weights, basis: &[Self]) -> Vec<Self>;
    /// `v` at the point whose powers are `basis`.
    fn first_fold_v(device: &dyn Device, batches: &[Batch], basis: &[Self]) -> Vec<Self>;
    /// The combination of the batches' `s` columns: words m = (g, l) times `s_g rho_l`.
    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Self;
    /// What joins the folded words: products that are combined in another way.
    fn join(_device: &dyn Device, _statements: &Statements, _weights: &Weights) -> Joined<Self> {
        Joined::nothing()
    }

    /// Values of `sum over groups of u_g v_g`, groups of 2^vars items.
    fn message(device: &dyn Device, u: &[Self], v: &[Self], vars: u32) -> Vec<Self>;
    /// Every group's inner product with `basis`.
    fn fold(device: &dyn Device, items: &[Self], basis: &[Self]) -> Vec<Self>;
}
