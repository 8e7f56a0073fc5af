//! A GPU: kernels compiled by NVRTC, launched through the driver. Both are loaded when a GPU is opened.

use super::{CombineArgs, Kernel, LeavesArgs, ProductArgs, StreamArgs, WalkArgs};
use crate::chunks::{Chunks, Level, words};
use crate::{CompareOut, CompareShape};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DriverError,
    LaunchConfig, PushKernelArg, ValidAsZeroBits, sys,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use privet_prg::{Seed, TreeHash};
use privet_ring::{BitVec, Ring};
use std::sync::Arc;
use thiserror::Error;

/// Why a GPU cannot be had or used.
#[derive(Debug, Error)]
pub enum GpuError {
    /// A library is not there.
    #[error("the library of {0} cannot be loaded: install {1}")]
    NoLibrary(&'static str, &'static str),
    /// The driver refused.
    #[error("the CUDA driver: {0}")]
    Driver(#[from] DriverError),
    /// A kernel was not compiled.
    #[error("NVRTC cannot compile the kernel {0}: {1}")]
    Compile(&'static str, String),
}

/// Sizes of launches, which results do not depend on.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The walk.
    pub walk: Kernel,
    /// Streams of seeds.
    pub stream: Kernel,
    /// Matrix products by 32-bit multiplications.
    pub product: Kernel,
    /// By tensor cores, for so many limbs, fewest first.
    pub limbs: Vec<(u32, Kernel)>,
}

/// What multiplies matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductPath {
    /// 32-bit multiplications.
    Words,
    /// Tensor cores, byte by byte.
    Limbs,
}

impl Default for Tuning {
    /// The fastest of those that docs/gpu.md compares.
    fn default() -> Tuning {
        Tuning {
            walk: Kernel::walk(512, 2),
            stream: Kernel::stream(1024, 2),
            product: Kernel::product([64, 64], 3),
            limbs: vec![
                (4, Kernel::limbs(4, [64, 64], [2, 2], 2)),
                (5, Kernel::limbs(5, [64, 64], [2, 2], 1)),
                (8, Kernel::limbs(8, [64, 32], [2, 2], 2)),
            ],
        }
    }
}

struct Loaded {
    kernel: Kernel,
    function: CudaFunction,
}

/// One GPU with all kernels loaded.
pub struct Gpu {
    context: Arc<CudaContext>,
    multiprocessors: u32,
    walk: Loaded,
    stream: Loaded,
    product: Loaded,
    limbs: Vec<(u32, Loaded)>,
    leaves: Loaded,
    /// For groups of so many items, fewest first.
    combine: Vec<(usize, Loaded)>,
}

// SAFETY: `repr(C)` of integers alone, as the kernels' parameters are declared.
unsafe impl DeviceRepr for WalkArgs {}
// SAFETY: as above.
unsafe impl DeviceRepr for StreamArgs {}
// SAFETY: as above.
unsafe impl DeviceRepr for ProductArgs {}
// SAFETY: as above.
unsafe impl DeviceRepr for LeavesArgs {}
// SAFETY: as above.
unsafe impl DeviceRepr for CombineArgs {}

/// A buffer of secrets in the device's memory, cleared before it is given back.
struct Secret<T: DeviceRepr + ValidAsZeroBits>(CudaSlice<T>);

impl<T: DeviceRepr + ValidAsZeroBits> Drop for Secret<T> {
    fn drop(&mut self) {
        let stream = self.0.stream().clone();
        // A context that has failed answers nothing more, and its memory is gone with it.
        let _ = stream.memset_zeros(&mut self.0);
    }
}

impl Gpu {
    /// The GPU of this number, with its kernels compiled for it.
    pub fn open(ordinal: usize) -> Result<Gpu, GpuError> {
        Gpu::with_tuning(ordinal, Tuning::default())
    }

    /// [`Gpu::open`] with other sizes of launches.
    pub fn with_tuning(ordinal: usize, tuning: Tuning) -> Result<Gpu, GpuError> {
        // SAFETY: loads the libraries, as their first use would, which panics where they are missing.
        unsafe {
            if !sys::is_culib_present() {
                return Err(GpuError::NoLibrary("the NVIDIA driver (libcuda)", "the driver"));
            }
            if !cudarc::nvrtc::sys::is_culib_present() {
                return Err(GpuError::NoLibrary(
                    "NVRTC (libnvrtc)",
                    "the CUDA toolkit, or put it on the loader's path",
                ));
            }
        }
        let context = CudaContext::new(ordinal)?;
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(attribute)? as u32;
        let load = |kernel| load(&context, kernel);
        Ok(Gpu {
            walk: load(tuning.walk)?,
            stream: load(tuning.stream)?,
            product: load(tuning.product)?,
            limbs: tuning
                .limbs
                .into_iter()
                .map(|(l, k)| Ok((l, load(k)?)))
                .collect::<Result<_, GpuError>>()?,
            leaves: load(Kernel::leaves())?,
            combine: [4, 9]
                .map(|f| Ok((f, load(Kernel::combine(f as u32))?)))
                .into_iter()
                .collect::<Result<_, GpuError>>()?,
            multiprocessors,
            context,
        })
    }

    /// Where its memory is and streams come from.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Registers and bytes of local memory (spilled ones among them) of a thread of each kernel.
    pub fn resources(&self) -> Result<Vec<(&'static str, i32, i32)>, GpuError> {
        let all =
            [&self.walk, &self.stream, &self.product].into_iter().chain(self.limbs.iter().map(|l| &l.1));
        all.map(|l| Ok((l.kernel.name, l.function.num_regs()?, l.function.local_size_bytes()?))).collect()
    }

    /// Walk keys in the device's memory, asynchronously: [`CompareShape::key_bytes`] bytes of keys, a point a key,
    /// and a bit a key into `lt`, and into `eq` if there is one.
    #[expect(clippy::too_many_arguments, reason = "one call a batch; each is a plain buffer")]
    pub fn walk(
        &self,
        on: &CudaStream,
        hash: &TreeHash,
        shape: CompareShape,
        keys: &impl DevicePtr<u8>,
        points: &impl DevicePtr<u64>,
        lt: &mut impl DevicePtrMut<u64>,
        eq: Option<&mut CudaSlice<u64>>,
    ) -> Result<(), GpuError> {
        let words = shape.count.div_ceil(64);
        assert!((1..=64).contains(&shape.bits), "a comparison domain has 1 to 64 bits, not {}", shape.bits);
        assert!(
            keys.len() == shape.key_bytes() && points.len() == shape.count,
            "one point and one key an element"
        );
        assert!(lt.len() == words && eq.as_ref().is_none_or(|e| e.len() == words), "a bit a key");
        if shape.count == 0 {
            return Ok(());
        }
        let (keys, _keys) = keys.device_ptr(on);
        let (points, _points) = points.device_ptr(on);
        let (lt, _lt) = lt.device_ptr_mut(on);
        let (eq, _eq) = eq.map(|e| e.device_ptr_mut(on)).unzip();
        assert!(keys % 16 == 0, "keys lie at a multiple of 16 bytes");
        let args = WalkArgs::new(hash, shape, [keys, points, lt, eq.unwrap_or(0)]);
        let [blocks, threads] = self.walk.kernel.spread(shape.count, self.multiprocessors);
        // SAFETY: arguments of this kernel, whose buffers are as long as it reads and writes, as just checked.
        unsafe { launch(on, &self.walk, [blocks, 1, 1], threads, &args) }
    }

    /// Words of a seed's stream from block `first` on, modulo 2^k, into the device's memory, asynchronously: those of
    /// [`privet_prg::Prg::fill`] for a stream whose block `first` is next.
    pub fn stream(
        &self,
        on: &CudaStream,
        seed: &Seed,
        first: u64,
        ring: Ring,
        out: &mut impl DevicePtrMut<u64>,
    ) -> Result<(), GpuError> {
        let words = out.len();
        if words == 0 {
            return Ok(());
        }
        let (out, _out) = out.device_ptr_mut(on);
        assert!(out % 16 == 0, "words lie at a multiple of 16 bytes");
        let args = StreamArgs::new(seed, first, ring.mask(), out, words);
        let [blocks, threads] = self.stream.kernel.spread(words.div_ceil(2), self.multiprocessors);
        // SAFETY: as above.
        unsafe { launch(on, &self.stream, [blocks, 1, 1], threads, &args) }
    }

    /// `out += x w` modulo 2^k in the device's memory, asynchronously; `sizes` are m, k and n, `x` is `[m, k]`, and `w`
    /// `[k, n]`, or `[n, k]` if `transposed`. Bits above the ring's are unspecified.
    #[expect(clippy::too_many_arguments, reason = "one call a product; each is a plain buffer")]
    pub fn product(
        &self,
        on: &CudaStream,
        path: ProductPath,
        ring: Ring,
        sizes: [u32; 3],
        transposed: bool,
        x: &impl DevicePtr<u64>,
        w: &impl DevicePtr<u64>,
        out: &mut impl DevicePtrMut<u64>,
    ) -> Result<(), GpuError> {
        let [m, k, n] = sizes.map(|s| s as usize);
        assert!(x.len() == m * k && w.len() == k * n && out.len() == m * n, "elements of x, w and out");
        if m * k * n == 0 {
            return Ok(());
        }
        let limbs =
            || self.limbs.iter().find(|(limbs, _)| 8 * limbs >= ring.bits()).map(|(_, loaded)| loaded);
        let loaded = match path {
            ProductPath::Words => &self.product,
            ProductPath::Limbs => limbs().unwrap_or(&self.product),
        };
        let (x, _x) = x.device_ptr(on);
        let (w, _w) = w.device_ptr(on);
        let (out, _out) = out.device_ptr_mut(on);
        let share = loaded.kernel.share(sizes, self.multiprocessors);
        let args = ProductArgs::new(sizes, transposed, &share, [x, w, out]);
        // SAFETY: as above.
        unsafe { launch(on, loaded, share.grid, loaded.kernel.threads, &args) }
    }

    /// [`crate::Device::chunk_leaves`] in the device's memory, asynchronously.
    pub fn chunk_leaves(
        &self,
        on: &CudaStream,
        chunks: &Chunks,
        leads: bool,
        x: &impl DevicePtr<u64>,
        tables: &impl DevicePtr<u64>,
        out: &mut impl DevicePtrMut<u64>,
    ) -> Result<(), GpuError> {
        let count = x.len();
        assert!(tables.len() == words(chunks.tables(), count), "planes of tables");
        assert!(out.len() == words(chunks.leaves(), count), "planes of results");
        if count == 0 {
            return Ok(());
        }
        let (x, _x) = x.device_ptr(on);
        let (tables, _tables) = tables.device_ptr(on);
        let (out, _out) = out.device_ptr_mut(on);
        let args = LeavesArgs::new(chunks, leads, count, [x, tables, out]);
        let lanes = count.next_multiple_of(64);
        let [blocks, threads] = self.leaves.kernel.spread(lanes, self.multiprocessors);
        // SAFETY: arguments of this kernel, whose buffers are as long as it reads and writes, as just checked.
        unsafe { launch(on, &self.leaves, [blocks, 1, 1], threads, &args) }
    }

    /// [`crate::Device::chunk_combine`] of `count` comparisons in the device's memory, asynchronously.
    #[expect(clippy::too_many_arguments, reason = "one call a level; each is a plain buffer")]
    pub fn chunk_combine(
        &self,
        on: &CudaStream,
        level: &Level,
        leads: bool,
        count: usize,
        opened: &impl DevicePtr<u64>,
        products: &impl DevicePtr<u64>,
        masks: &impl DevicePtr<u64>,
        out: &mut impl DevicePtrMut<u64>,
    ) -> Result<(), GpuError> {
        let planes = words(level.opened(), count);
        assert!(opened.len() == planes && masks.len() == planes, "planes of items");
        assert!(products.len() == words(level.products(), count), "planes of products");
        assert!(out.len() == words(level.results(), count), "planes of results");
        if count == 0 {
            return Ok(());
        }
        let most = level.groups.iter().max().expect("a level has groups");
        let (_, loaded) =
            self.combine.iter().find(|(fan, _)| fan >= most).expect("groups have at most nine items");
        let (opened, _opened) = opened.device_ptr(on);
        let (products, _products) = products.device_ptr(on);
        let (masks, _masks) = masks.device_ptr(on);
        let (out, _out) = out.device_ptr_mut(on);
        let args = CombineArgs::new(level, leads, count, [opened, products, masks, out]);
        let [blocks, threads] = loaded.kernel.spread(2 * count.div_ceil(64), self.multiprocessors);
        // SAFETY: as above.
        unsafe { launch(on, loaded, [blocks, 1, 1], threads, &args) }
    }

    /// [`crate::Device::compare_eval`] of keys and points of the host, waiting for the result.
    pub fn compare_eval(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        key: &[u8],
        x: &[u64],
        want_eq: bool,
    ) -> Result<CompareOut, GpuError> {
        if shape.count == 0 {
            return Ok(CompareOut::default());
        }
        let on = self.context.default_stream();
        let words = shape.count.div_ceil(64);
        let keys = Secret(on.clone_htod(key)?);
        let points = on.clone_htod(x)?;
        let mut lt = Secret(on.alloc_zeros(words)?);
        let mut eq = if want_eq { Some(Secret(on.alloc_zeros(words)?)) } else { None };
        self.walk(&on, hash, shape, &keys.0, &points, &mut lt.0, eq.as_mut().map(|e| &mut e.0))?;
        let bits =
            |words: Secret<u64>| Ok::<_, GpuError>(BitVec::from_words(shape.count, on.clone_dtoh(&words.0)?));
        Ok(CompareOut { lt: bits(lt)?, eq: eq.map(bits).transpose()?.unwrap_or_default() })
    }

    /// [`Gpu::stream`] into the host's memory, waiting for it.
    pub fn fill(&self, seed: &Seed, first: u64, ring: Ring, out: &mut [u64]) -> Result<(), GpuError> {
        if out.is_empty() {
            return Ok(());
        }
        let on = self.context.default_stream();
        let mut words = Secret(on.alloc_zeros(out.len())?);
        self.stream(&on, seed, first, ring, &mut words.0)?;
        on.memcpy_dtoh(&words.0, out)?;
        Ok(on.synchronize()?)
    }

    /// [`Gpu::product`] of matrices of the host, waiting for it.
    #[expect(clippy::too_many_arguments, reason = "as above")]
    pub fn product_acc(
        &self,
        path: ProductPath,
        ring: Ring,
        sizes: [u32; 3],
        transposed: bool,
        x: &[u64],
        w: &[u64],
        out: &mut [u64],
    ) -> Result<(), GpuError> {
        if out.is_empty() || x.is_empty() {
            return Ok(());
        }
        let on = self.context.default_stream();
        let (x, w) = (Secret(on.clone_htod(x)?), Secret(on.clone_htod(w)?));
        let mut sum = Secret(on.clone_htod(out)?);
        self.product(&on, path, ring, sizes, transposed, &x.0, &w.0, &mut sum.0)?;
        on.memcpy_dtoh(&sum.0, out)?;
        Ok(on.synchronize()?)
    }
}

fn load(context: &Arc<CudaContext>, kernel: Kernel) -> Result<Loaded, GpuError> {
    let (major, minor) = context.compute_capability()?;
    let mut options =
        vec![format!("--gpu-architecture=compute_{major}{minor}"), "--std=c++17".into(), "-lineinfo".into()];
    options.extend(kernel.constants.iter().map(|(name, value)| format!("-D{name}={value}")));
    let ptx = compile_ptx_with_opts(kernel.text, CompileOptions { options, ..Default::default() })
        .map_err(|e| GpuError::Compile(kernel.name, e.to_string()))?;
    let function = context.load_module(ptx)?.load_function(kernel.name)?;
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(attribute, kernel.shared as i32)?;
    Ok(Loaded { kernel, function })
}

/// # Safety
/// `args` are the kernel's, `threads` not more than its own, and its buffers as long as the kernel reads and writes.
unsafe fn launch(
    on: &CudaStream,
    loaded: &Loaded,
    grid: [u32; 3],
    threads: u32,
    args: &impl DeviceRepr,
) -> Result<(), GpuError> {
    let config = LaunchConfig {
        grid_dim: grid.into(),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: loaded.kernel.shared,
    };
    // SAFETY: the caller's promise.
    unsafe { on.launch_builder(&loaded.function).arg(args).launch(config)? };
    Ok(())
}
