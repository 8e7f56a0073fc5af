//! The walk and the stream of a seed: AES by tables.

use crate::report::{REPEATS, Report, Times, clocked, number, timed};
use cudarc::driver::{CudaSlice, CudaStream, sys};
use privet_kernels::CpuCap;
use privet_kernels::compare::{BLOCK, CompareShape, cpu, cpu::ComparePath};
use privet_kernels::cuda::{Gpu, GpuError, Kernel, Tuning};
use privet_prg::{HashKeys, Seed, TreeHash};
use privet_ring::Ring;
use std::sync::Arc;

/// AES a second that the plan had as the bound of an H100, and planned with.
const BOUND: f64 = 42e9;
const PLANNED: f64 = 25e9;

/// Keys and points in the device's memory. Random bytes serve as keys: the walk takes as long.
pub struct Walk {
    hash: TreeHash,
    shape: CompareShape,
    keys: CudaSlice<u8>,
    points: CudaSlice<u64>,
    lt: CudaSlice<u64>,
}

impl Walk {
    pub fn new(gpu: &Gpu, bits: u32, count: usize) -> Result<Walk, GpuError> {
        let (seed, shape) = (Seed::random(), CompareShape { bits, count });
        let on = gpu.context().default_stream();
        let mut walk = Walk {
            hash: TreeHash::new(HashKeys::draw(&mut seed.stream())),
            shape,
            keys: on.alloc_zeros(shape.key_bytes())?,
            points: on.alloc_zeros(count)?,
            lt: on.alloc_zeros(count.div_ceil(64))?,
        };
        gpu.stream(&on, &Seed::random(), 0, Ring::new(bits), &mut walk.points)?;
        // SAFETY: all bytes are words, and there is a whole number of them.
        let mut words = unsafe { walk.keys.transmute_mut(shape.key_bytes() / 8) }.expect("whole words");
        gpu.stream(&on, &Seed::random(), 0, Ring::R64, &mut words)?;
        Ok(walk)
    }

    pub fn run(&mut self, gpu: &Gpu, on: &Arc<CudaStream>) -> Result<(), GpuError> {
        gpu.walk(on, &self.hash, self.shape, &self.keys, &self.points, &mut self.lt, None)
    }

    /// Keys at both ends against the CPU.
    fn check(&self, on: &Arc<CudaStream>) -> Result<(), GpuError> {
        let part = CompareShape { count: self.shape.count.min(64 * BLOCK), ..self.shape };
        for first in [0, (self.shape.count - part.count) / BLOCK * BLOCK] {
            let one = CompareShape { count: 1, ..self.shape }.key_bytes();
            let keys = on.clone_dtoh(&self.keys.slice(first * one..(first + part.count) * one))?;
            let points = on.clone_dtoh(&self.points.slice(first..first + part.count))?;
            let lt = on.clone_dtoh(&self.lt.slice(first / 64..first / 64 + part.count.div_ceil(64)))?;
            let path = ComparePath::detect(CpuCap::Amx);
            let expected = cpu::eval(path, &self.hash, part, &keys, &points, false).lt;
            assert!(
                lt == expected.words(),
                "the walk of {} keys is wrong from key {first}",
                self.shape.count
            );
        }
        Ok(())
    }

    fn aes(&self) -> f64 {
        self.shape.aes_calls() as f64
    }
}

/// Walks of random keys, of others, and of zeros; and a stream.
pub fn once(gpu: &Gpu) -> Result<(), GpuError> {
    let on = gpu.context().default_stream();
    let mut walk = Walk::new(gpu, 63, 1 << 20)?;
    on.synchronize()?;
    walk.run(gpu, &on)?;
    Walk::new(gpu, 63, 1 << 20)?.run(gpu, &on)?;
    on.memset_zeros(&mut walk.keys)?;
    walk.run(gpu, &on)?;
    Ok(on.synchronize()?)
}

pub fn measure(gpu: &Gpu, report: &mut Report) -> Result<(), GpuError> {
    let on = gpu.context().default_stream();
    // An AES takes 160 look-ups of a lane, and a multiprocessor does 32 a clock.
    let clock = gpu.context().attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
    let limit = gpu.multiprocessors() as f64 * clock as f64 * 1e3 * 32.0 / 160.0;
    report.add("aes_per_s_limit_of_shared_memory", number(limit));
    let mut tunings = Vec::new();
    for [threads, resident] in [[1024, 2], [1024, 1], [768, 2], [512, 4], [512, 3], [512, 2], [256, 3]] {
        let gpu = Gpu::with_tuning(
            0,
            Tuning {
                walk: Kernel::walk(threads, resident),
                stream: Kernel::stream(threads, resident),
                limbs: vec![],
                ..Tuning::default()
            },
        )?;
        let mut walk = Walk::new(&gpu, 63, 1 << 22)?;
        let times = timed(&on, REPEATS, |on| walk.run(&gpu, on))?;
        walk.check(&on)?;
        let registers = gpu.resources()?;
        let mut words = on.alloc_zeros::<u64>(1 << 27)?;
        let stream = timed(&on, REPEATS, |on| gpu.stream(on, &Seed::random(), 0, Ring::R64, &mut words))?;
        tunings.push(format!(
            "{{\"threads\":{threads},\"blocks\":{resident},\"registers\":{},\"local_bytes\":{},\"aes_per_s\":{},\"stream_aes_per_s\":{}}}",
            registers[0].1,
            registers[0].2,
            times.rates(walk.aes()),
            stream.rates((1 << 26) as f64),
        ));
    }
    report.add("walk_tunings", format!("[{}]", tunings.join(",")));

    let mut shapes = Vec::new();
    for (bits, count) in [
        (63, 1 << 22),
        (39, 1 << 22),
        (24, 1 << 23),
        (64, 1 << 20),
        (63, 1 << 20),
        (63, 1 << 18),
        (63, 1 << 16),
        (63, 1 << 14),
        (63, 560),
        (63, 64),
    ] {
        let mut walk = Walk::new(gpu, bits, count)?;
        let times = timed(&on, REPEATS, |on| walk.run(gpu, on))?;
        walk.check(&on)?;
        let aes = walk.aes() / times.median();
        shapes.push(format!(
            "{{\"bits\":{bits},\"keys\":{count},\"seconds\":{},\"keys_per_s\":{},\"aes_per_s\":{},\"of_limit\":{},\"of_plans_bound\":{},\"of_plan\":{},\"key_bytes_per_s\":{}}}",
            number(times.median()),
            times.rates(count as f64),
            times.rates(walk.aes()),
            number(aes / limit),
            number(aes / BOUND),
            number(aes / PLANNED),
            number(walk.shape.key_bytes() as f64 / times.median()),
        ));
    }
    report.add("walks", format!("[{}]", shapes.join(",")));

    // Whether the time tells anything of keys: launches by turns, so that nothing else differs.
    let names = ["random", "other random", "zeros", "ones"];
    let mut walks = names.map(|_| Walk::new(gpu, 63, 1 << 21)).into_iter().collect::<Result<Vec<_>, _>>()?;
    on.memset_zeros(&mut walks[2].keys)?;
    let ones = vec![0xffu8; walks[3].keys.len()];
    on.memcpy_htod(&ones, &mut walks[3].keys)?;
    let mut seconds = names.map(|_| Vec::new());
    for _ in 0..50 {
        for (walk, seconds) in walks.iter_mut().zip(&mut seconds) {
            seconds.push(timed(&on, 1, |on| walk.run(gpu, on))?.median());
        }
    }
    let rates = names
        .iter()
        .zip(seconds)
        .map(|(name, s)| format!("{name:?}:{}", Times::new(s).rates(walks[0].aes())));
    report.add("walk_aes_per_s_by_keys", format!("{{{}}}", rates.collect::<Vec<_>>().join(",")));
    drop(walks);

    let mut words = on.alloc_zeros::<u64>(1 << 28)?;
    let times = timed(&on, REPEATS, |on| gpu.stream(on, &Seed::random(), 0, Ring::R64, &mut words))?;
    report.add("stream_aes_per_s", times.rates((1 << 27) as f64));
    report.add("stream_bytes_per_s", times.rates((1u64 << 31) as f64));
    drop(words);

    // Launches: of next to nothing, of tables alone, one after the other and each waited for.
    let wait = || on.synchronize();
    let mut two = on.alloc_zeros::<u64>(2)?;
    let seed = Seed::random();
    let mut stream = |times| (0..times).try_for_each(|_| gpu.stream(&on, &seed, 0, Ring::R64, &mut two));
    let waited = clocked(50, || stream(1), wait)?;
    let queued = clocked(REPEATS, || stream(1000), wait)?;
    report.add("stream_of_one_block_waited_for_s", number(waited.median()));
    report.add("stream_of_one_block_queued_s", number(queued.median() / 1e3));
    let mut walk = Walk::new(gpu, 63, 64)?;
    let waited = clocked(50, || walk.run(gpu, &on), wait)?;
    report.add("walk_of_64_keys_waited_for_s", number(waited.median()));
    Ok(())
}
