//! Bilinear nodes of a plan as products on a device.

use privet_kernels::{Device, LinearShape, Weights};
use privet_plan::ir::{Node, Op, Plan};
use privet_plan::ops;
use privet_ring::{Conv2d, Ring};
use std::ops::Range;
use std::sync::Arc;

/// A linear node as `count` equal products side by side (over 1 for a batched matrix product).
#[derive(Clone, Copy)]
pub struct Products {
    /// Of one product.
    pub shape: LinearShape,
    /// How many.
    pub count: usize,
}

impl Products {
    /// Of a checked node; `None` where the node is not linear in two operands.
    pub fn of(plan: &Plan, node: &Node) -> Option<Products> {
        Products::of_shapes(&node.op, |i| plan.nodes[node.inputs[i]].ty.shape.as_slice())
    }

    /// [`Products::of`] an operation whose operand i has shape `operand(i)`.
    pub fn of_shapes<'a>(op: &Op, operand: impl Fn(usize) -> &'a [usize]) -> Option<Products> {
        Some(match op {
            Op::Linear => {
                let (x, w) = (operand(0), operand(1));
                Products { shape: LinearShape::MatMulT { m: x[0], k: x[1], n: w[0] }, count: 1 }
            }
            Op::MatMul => {
                let (x, y) = (operand(0), operand(1));
                let d = x.len() - 2;
                let shape = LinearShape::MatMul { m: x[d], k: x[d + 1], n: y[d + 1] };
                Products { shape, count: x[..d].iter().product() }
            }
            Op::Conv2d { geometry } => Products { shape: LinearShape::Conv2d(*geometry), count: 1 },
            // products of elements are no products of tensors
            Op::Mul => return None,
            ops!(source) | ops!(local) | ops!(public) | ops!(rounding) | ops!(comparison) | ops!(table) => {
                return None;
            }
        })
    }

    /// The second operand, brought into the device's layout.
    pub fn prepare(&self, device: &dyn Device, ring: Ring, w: &[u64]) -> Prepared {
        Prepared(device.prepare_each(ring, self.shape, self.count, w))
    }

    /// The same of the lowest bits of words, which are no secret here ([`Device::prepare_bits`]).
    pub fn prepare_bits(&self, device: &dyn Device, ring: Ring, words: &[u64]) -> Prepared {
        let len = self.shape.weight_len();
        let one = |i: usize| device.prepare_bits(ring, self.shape, &words[i * len..(i + 1) * len]);
        Prepared((0..self.count).map(one).collect())
    }

    /// `out += x w` for every product, modulo 2^k once reduced; one launch.
    pub fn accumulate(&self, device: &dyn Device, ring: Ring, x: &[u64], w: &Prepared, out: &mut [u64]) {
        device.linear_acc_each(ring, self.shape, x, &w.0, out);
    }

    /// How many parts that are computed alone these are made of: products, where they are several; else rows of the one, or
    /// images of a convolution.
    pub fn units(&self) -> usize {
        match self.shape {
            _ if self.count != 1 => self.count,
            LinearShape::MatMulT { m, .. } | LinearShape::MatMul { m, .. } => m,
            LinearShape::Conv2d(geometry) => geometry.batch,
        }
    }

    /// The same for so many of the [`Products::units`]. A part of several products has as many second operands; of one it
    /// has the whole one.
    pub fn with_units(&self, units: usize) -> Products {
        let one = |shape| Products { shape, count: 1 };
        match self.shape {
            shape if self.count != 1 => Products { shape, count: units },
            LinearShape::MatMulT { k, n, .. } => one(LinearShape::MatMulT { m: units, k, n }),
            LinearShape::MatMul { k, n, .. } => one(LinearShape::MatMul { m: units, k, n }),
            LinearShape::Conv2d(geometry) => one(LinearShape::Conv2d(Conv2d { batch: units, ..geometry })),
        }
    }

    /// Elements of the first operand.
    pub fn input_len(&self) -> usize {
        self.count * self.shape.input_len()
    }

    /// Elements of the second operand.
    pub fn weight_len(&self) -> usize {
        self.count * self.shape.weight_len()
    }

    /// Elements of the result.
    pub fn output_len(&self) -> usize {
        self.count * self.shape.output_len()
    }

    /// Columns of a result, which a bias has an element for: of a convolution its output channels.
    pub fn columns(&self) -> usize {
        match self.shape {
            LinearShape::MatMulT { n, .. } | LinearShape::MatMul { n, .. } => n,
            LinearShape::Conv2d(geometry) => geometry.out_channels,
        }
    }

    /// A bias over all results.
    pub fn spread(&self, bias: &[u64]) -> Vec<u64> {
        match self.shape {
            LinearShape::MatMulT { m, .. } | LinearShape::MatMul { m, .. } => bias.repeat(self.count * m),
            LinearShape::Conv2d(geometry) => {
                let [height, width] = geometry.output();
                over_images(bias, height * width, self.count * geometry.batch)
            }
        }
    }

    /// Ring multiplications of one pass.
    pub fn macs(&self) -> u64 {
        self.count as u64 * self.shape.macs()
    }
}

/// Weights of [`Products`] on a device.
#[derive(Clone)]
pub struct Prepared(Vec<Arc<dyn Weights>>);

impl Prepared {
    /// Of some of several products ([`Products::with_units`]).
    pub fn part(&self, products: Range<usize>) -> Prepared {
        Prepared(self.0[products].to_vec())
    }
}

/// Spread a bias over an output: `[n]` over the last dimension of `[m, n]`, `[c]` over NCHW.
pub fn spread_bias(node: &Node, bias: &[u64]) -> Vec<u64> {
    let shape = &node.ty.shape;
    if let Op::Conv2d { .. } = node.op {
        return over_images(bias, shape[2] * shape[3], shape[0]);
    }
    bias.repeat(node.ty.len() / bias.len().max(1))
}

/// Each element over a plane, for every image.
fn over_images(bias: &[u64], plane: usize, images: usize) -> Vec<u64> {
    let image: Vec<u64> = bias.iter().flat_map(|&b| std::iter::repeat_n(b, plane)).collect();
    image.repeat(images)
}
