//! Linear layers on the CPU: one blocked matrix product over packed tiles, with an inner kernel a path.
//!
//! Matrix products pack x as A and keep the weights as B; convolutions keep the weights as A and pack patches of x as B, so
//! that both write their results in the layout that the plan wants.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod binary;
mod buffer;
mod column;
mod conv;
mod direct;
mod karatsuba;
mod kernel;
#[cfg(target_arch = "x86_64")]
mod limbs;
mod matmul;
mod patches;
mod portable;
mod scattered;
mod scratch;
mod weighted;
mod words;

use super::{LinearShape, Weights};
use crate::CpuCap;
#[cfg(target_arch = "x86_64")]
use avx512::Avx512;
use binary::Binary;
use buffer::Buffer;
use conv::ConvGemm;
use karatsuba::Karatsuba;
use kernel::Kernel;
use matmul::MatMul;
use portable::Portable;
use privet_ring::{Conv2d, Ring};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Which implementation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearPath {
    /// Plain 64-bit multiplications.
    Portable,
    /// 32-bit products.
    Avx2,
    /// 52-bit multiply-add or 64-bit products.
    Avx512,
    /// Byte limbs on AMX int8 tiles.
    Amx,
}

impl LinearPath {
    /// Every path, slowest first.
    pub const ALL: [LinearPath; 4] =
        [LinearPath::Portable, LinearPath::Avx2, LinearPath::Avx512, LinearPath::Amx];

    /// The best path that this machine has within `cap`.
    pub fn detect(cap: CpuCap) -> LinearPath {
        LinearPath::ALL
            .into_iter()
            .rfind(|p| p.cap() <= cap && p.missing().is_none())
            .unwrap_or(LinearPath::Portable)
    }

    /// The lowest cap that allows this path.
    pub fn cap(self) -> CpuCap {
        match self {
            LinearPath::Portable => CpuCap::Portable,
            LinearPath::Avx2 => CpuCap::Avx2,
            LinearPath::Avx512 => CpuCap::Avx512,
            LinearPath::Amx => CpuCap::Amx,
        }
    }

    /// Panics, and says why, where this path cannot run.
    fn require(self) {
        if let Some(what) = self.missing() {
            panic!("{self} needs {what}, which this machine lacks");
        }
    }

    /// What this machine lacks to run this path; `None` when it can.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            LinearPath::Portable => None,
            #[cfg(target_arch = "x86_64")]
            LinearPath::Avx2 => avx2::missing(),
            #[cfg(target_arch = "x86_64")]
            LinearPath::Avx512 => avx512::missing(),
            #[cfg(not(target_arch = "x86_64"))]
            LinearPath::Avx2 | LinearPath::Avx512 => Some("x86-64"),
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            LinearPath::Amx => amx::missing(),
            #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
            LinearPath::Amx => Some("AMX on Linux"),
        }
    }
}

impl fmt::Display for LinearPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinearPath::Portable => "matmul portable",
            LinearPath::Avx2 => "matmul AVX2",
            LinearPath::Avx512 => "matmul AVX-512",
            LinearPath::Amx => "matmul AMX int8",
        })
    }
}

/// Byte products a second of one thread's AMX unit, measured for `seconds`; `None` where there is none.
pub(crate) fn amx_peak(_seconds: f64) -> Option<f64> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if LinearPath::Amx.missing().is_none() {
        return Some(amx::peak(_seconds));
    }
    None
}

/// Multiplications, and weights to read, that keep a thread busy for longer than it takes to start one.
const MACS_PER_THREAD: u64 = 4 << 20;
const WEIGHTS_PER_THREAD: usize = 128 << 10;
/// Output channels of a group under which tiles are mostly padding.
const DIRECT_CHANNELS: usize = 4;

/// Weights in the layout of one path, ring and shape.
struct Packed {
    path: LinearPath,
    ring: Ring,
    shape: LinearShape,
    data: Data,
}

enum Data {
    Tiles(Buffer),
    /// Bits, for [`binary`].
    Bits(Buffer),
    /// For [`direct`] and [`column`], as they came.
    Plain(Vec<u64>),
}

impl Weights for Packed {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Hands the inner kernel of a path to a generic computation.
trait WithKernel {
    type Output;
    fn call<K: Kernel>(self, kernel: K) -> Self::Output;
}

fn with_kernel<F: WithKernel>(path: LinearPath, ring: Ring, f: F) -> F::Output {
    match path {
        LinearPath::Portable => f.call(Portable),
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx2 if ring.bits() <= 32 => f.call(avx2::Narrow),
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx2 => f.call(avx2::Wide),
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx512 => match (ring.bits(), avx512::has_ifma()) {
            (..=32, true) => f.call(Avx512::<u32, true>::new()),
            (..=32, false) => f.call(Avx512::<u32, false>::new()),
            (..=52, true) => f.call(Avx512::<u64, true>::new()),
            _ => f.call(Avx512::<u64, false>::new()),
        },
        #[cfg(not(target_arch = "x86_64"))]
        LinearPath::Avx2 | LinearPath::Avx512 => unreachable!("missing on this target"),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        LinearPath::Amx => f.call(amx::Amx::new(ring.bits())),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        LinearPath::Amx => unreachable!("missing on this target, {ring}"),
    }
}

/// The path's inner loop for [`direct::run`].
fn add_row(path: LinearPath) -> fn(&[direct::Term], &mut [u64]) {
    match path {
        // SAFETY (both): `prepare` has found what the path needs.
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx2 => |terms, out| unsafe { avx2::add_row(terms, out) },
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx512 | LinearPath::Amx => |terms, out| unsafe { avx512::add_row(terms, out) },
        _ => |terms, out| direct::add_row(terms, out),
    }
}

/// The path's inner product for [`column::run`].
fn dot(path: LinearPath) -> fn(&[u64], &[u64]) -> u64 {
    match path {
        // SAFETY (both): `prepare` has found what the path needs.
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx2 => |x, w| unsafe { avx2::dot(x, w) },
        #[cfg(target_arch = "x86_64")]
        LinearPath::Avx512 | LinearPath::Amx => |x, w| unsafe { avx512::dot(x, w) },
        _ => |x, w| column::dot(x, w),
    }
}

/// What is computed without tiles, which would be padding for the most part.
enum Untiled {
    Convolution(Conv2d),
    Column,
}

fn untiled(shape: LinearShape) -> Option<Untiled> {
    match shape {
        LinearShape::MatMul { n: 1, .. } | LinearShape::MatMulT { n: 1, .. } => Some(Untiled::Column),
        LinearShape::Conv2d(c) if c.groups > 1 && c.out_channels / c.groups < DIRECT_CHANNELS => {
            Some(Untiled::Convolution(c))
        }
        _ => None,
    }
}

/// The shape as far as weights depend on it.
fn any_batch(shape: LinearShape) -> LinearShape {
    match shape {
        LinearShape::MatMulT { k, n, .. } => LinearShape::MatMulT { m: 0, k, n },
        LinearShape::MatMul { k, n, .. } => LinearShape::MatMul { m: 0, k, n },
        LinearShape::Conv2d(c) => LinearShape::Conv2d(Conv2d { batch: 0, ..c }),
    }
}

struct Pack<'a> {
    threads: usize,
    shape: LinearShape,
    w: &'a [u64],
}

impl WithKernel for Pack<'_> {
    type Output = Buffer;

    fn call<K: Kernel>(self, kernel: K) -> Buffer {
        let Pack { threads, shape, w } = self;
        match shape {
            LinearShape::MatMulT { m, k, n } => {
                MatMul { m, k, n }.pack_weights(kernel, threads, None, |l, columns, out| {
                    out.iter_mut().zip(columns).for_each(|(out, j)| *out = w[j * k + l]);
                })
            }
            LinearShape::MatMul { m, k, n } => {
                MatMul { m, k, n }.pack_weights(kernel, threads, Some(w), |l, columns, out| {
                    out.copy_from_slice(&w[l * n..][columns]);
                })
            }
            LinearShape::Conv2d(c) => match Karatsuba::of::<K>(c) {
                Some(convolution) => convolution.pack_weights(kernel, threads, w),
                None => ConvGemm::new(c).pack_weights(kernel, threads, w),
            },
        }
    }
}

struct Run<'a> {
    threads: usize,
    shape: LinearShape,
    x: &'a [u64],
    weights: &'a Buffer,
    out: &'a mut [u64],
}

impl WithKernel for Run<'_> {
    type Output = ();

    fn call<K: Kernel>(self, kernel: K) {
        let Run { threads, shape, x, weights, out } = self;
        match shape {
            LinearShape::MatMulT { m, k, n } | LinearShape::MatMul { m, k, n } => {
                MatMul { m, k, n }.run(kernel, threads, x, weights, out);
            }
            LinearShape::Conv2d(c) => match Karatsuba::of::<K>(c) {
                Some(convolution) => convolution.run(kernel, threads, x, weights, out),
                None => ConvGemm::new(c).run(kernel, threads, x, weights, out),
            },
        }
    }
}

/// See [`crate::Device::prepare`].
pub fn prepare(
    path: LinearPath,
    threads: usize,
    ring: Ring,
    shape: LinearShape,
    weights: &[u64],
) -> Arc<dyn Weights> {
    path.require();
    let data = match untiled(shape) {
        Some(_) => Data::Plain(weights.to_vec()),
        None => Data::Tiles(with_kernel(path, ring, Pack { threads, shape, w: weights })),
    };
    Arc::new(Packed { path, ring, shape, data })
}

/// See [`crate::Device::prepare_bits`].
pub fn prepare_bits(
    path: LinearPath,
    threads: usize,
    ring: Ring,
    shape: LinearShape,
    words: &[u64],
) -> Arc<dyn Weights> {
    path.require();
    let Some(product) = binary::Product::of(shape) else {
        return prepare(path, threads, ring, shape, &crate::device::lowest_bits(words));
    };
    let data = Data::Bits(product.pack(Binary(path), threads, words));
    Arc::new(Packed { path, ring, shape, data })
}

/// See [`crate::Device::linear_acc`].
pub fn linear_acc(
    path: LinearPath,
    threads: usize,
    ring: Ring,
    shape: LinearShape,
    x: &[u64],
    weights: &dyn Weights,
    out: &mut [u64],
) {
    let Some(packed) = weights.as_any().downcast_ref::<Packed>() else {
        panic!("the weights were prepared by another device");
    };
    assert_eq!(
        (packed.path, packed.ring),
        (path, ring),
        "the weights were prepared for another path or ring"
    );
    assert_eq!(any_batch(packed.shape), any_batch(shape), "the weights were prepared for another shape");
    let work = (shape.macs() / MACS_PER_THREAD).max((shape.weight_len() / WEIGHTS_PER_THREAD) as u64);
    let threads = threads.min(usize::try_from(work).unwrap_or(usize::MAX)).max(1);
    match (&packed.data, untiled(shape)) {
        (Data::Tiles(weights), _) => with_kernel(path, ring, Run { threads, shape, x, weights, out }),
        (Data::Bits(bits), _) => {
            let product = binary::Product::of(shape).expect("prepared as one");
            product.run(Binary(path), threads, x, bits, out);
        }
        (Data::Plain(w), Some(Untiled::Convolution(conv))) => {
            direct::run(conv, threads, x, w, out, add_row(path));
        }
        (Data::Plain(w), Some(Untiled::Column)) => column::run(threads, x, w, out, dot(path)),
        (Data::Plain(_), None) => unreachable!("only what is computed without tiles is prepared plain"),
    }
}

/// See [`crate::Device::add_weighted`].
pub fn add_weighted(path: LinearPath, threads: usize, weights: &[u64], rows: &[&[u64]], out: &mut [u64]) {
    path.require();
    let n = rows.first().map_or(0, |row| row.len());
    assert!(rows.iter().all(|row| row.len() == n), "vectors of several lengths");
    assert!(
        rows.is_empty() || weights.len().is_multiple_of(rows.len()),
        "a weight for each vector in each sum"
    );
    assert_eq!(weights.len() * n, out.len() * rows.len(), "a weight for each vector in each sum");
    let work = (weights.len() * n) as u64 / MACS_PER_THREAD;
    let threads = threads.min(usize::try_from(work).unwrap_or(usize::MAX)).max(1);
    weighted::run(threads, weights, rows, out, add_row(path));
}
