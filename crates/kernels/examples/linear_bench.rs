//! Speed of the linear layers on every path of this machine, against limits measured in the same run; JSON lines.
//!
//! `cargo run --release -p privet-kernels --example linear_bench [-- threads=2 path=NAME shape=NAME bits=64]`
//!
//! `bits=0` has weights of 0 and 1 ([`prepare_bits`]).

use privet_kernels::linear::cpu::{LinearPath, linear_acc, prepare, prepare_bits};
use privet_kernels::{LinearShape, Weights, probe};
use privet_prg::{Prg, Seed};
use privet_ring::{Conv2d, Ring};
use std::sync::Arc;
use std::time::Instant;

const RUNS: usize = 5;

fn shapes() -> Vec<(&'static str, LinearShape)> {
    let conv = |channels: [usize; 2], size, kernel, stride, groups| {
        let pad = kernel / 2;
        LinearShape::Conv2d(Conv2d {
            batch: 1,
            in_channels: channels[0],
            input: [size, size],
            out_channels: channels[1],
            kernel: [kernel, kernel],
            stride: [stride, stride],
            padding: [pad, pad, pad, pad],
            dilation: [1, 1],
            groups,
        })
    };
    let fc = |m, k, n| LinearShape::MatMulT { m, k, n };
    // Padded, it is the gradient of a layer's inputs.
    let five = |batch, channels: [usize; 2], size, pad| {
        LinearShape::Conv2d(Conv2d {
            batch,
            in_channels: channels[0],
            input: [size, size],
            out_channels: channels[1],
            kernel: [5, 5],
            stride: [1, 1],
            padding: [pad; 4],
            dilation: [1, 1],
            groups: 1,
        })
    };
    // The gradient of a layer's weights: its channels are the batch, its batch the channels, and what was its output's
    // gradient is the kernel.
    let weights = |batch, channels: [usize; 2], size, kernel: usize| {
        LinearShape::Conv2d(Conv2d {
            batch: channels[0],
            in_channels: batch,
            input: [size, size],
            out_channels: channels[1],
            kernel: [kernel, kernel],
            stride: [1, 1],
            padding: [0; 4],
            dilation: [1, 1],
            groups: 1,
        })
    };
    vec![
        ("matmul-1024", fc(1024, 1024, 1024)),
        ("matmul-256", fc(256, 256, 256)),
        ("fc-25088x4096-batch1", fc(1, 25088, 4096)),
        ("fc-25088x4096-batch8", fc(8, 25088, 4096)),
        ("fc-784x128-batch128", fc(128, 784, 128)),
        ("fc-3072x768-batch128", fc(128, 3072, 768)),
        ("fc-400x120-batch1", fc(1, 400, 120)),
        ("conv7x7-3x64-224", conv([3, 64], 224, 7, 2, 1)),
        ("conv3x3-16x64-55", conv([16, 64], 55, 3, 1, 1)),
        ("conv3x3-64x256-13", conv([64, 256], 13, 3, 1, 1)),
        ("conv3x3-64x64-224", conv([64, 64], 224, 3, 1, 1)),
        ("conv3x3-64x64-56", conv([64, 64], 56, 3, 1, 1)),
        ("conv3x3-128x128-28", conv([128, 128], 28, 3, 1, 1)),
        ("conv3x3-256x256-56", conv([256, 256], 56, 3, 1, 1)),
        ("conv3x3-512x512-28", conv([512, 512], 28, 3, 1, 1)),
        ("conv3x3-512x512-14", conv([512, 512], 14, 3, 1, 1)),
        ("conv3x3-512x512-7", conv([512, 512], 7, 3, 1, 1)),
        ("conv1x1-256x64-56", conv([256, 64], 56, 1, 1, 1)),
        ("conv3x3-depthwise-96-112", conv([96, 96], 112, 3, 1, 96)),
        ("conv3x3-32groups-256-28", conv([256, 256], 28, 3, 1, 32)),
        ("conv5x5-1x20-28-batch128", five(128, [1, 20], 28, 0)),
        ("conv5x5-20x50-12-batch128", five(128, [20, 50], 12, 0)),
        ("conv5x5-50x20-16-batch128", five(128, [50, 20], 16, 0)),
        ("inputs-conv5x5-50x20-8-batch128", five(128, [50, 20], 8, 4)),
        ("gradient-conv5x5-1x20-28-batch128", weights(128, [1, 20], 28, 24)),
        ("gradient-conv5x5-20x50-12-batch128", weights(128, [20, 50], 12, 8)),
        ("gradient-conv3x3-64x64-34-batch32", weights(32, [64, 64], 34, 32)),
        ("gradient-fc-784x128-batch128", LinearShape::MatMul { m: 784, k: 128, n: 128 }),
        ("matvec-1x800x1", LinearShape::MatMul { m: 1, k: 800, n: 1 }),
        ("matvec-3x4x1", LinearShape::MatMul { m: 3, k: 4, n: 1 }),
        ("gradient-fc-400x10-batch128", LinearShape::MatMul { m: 10, k: 128, n: 400 }),
    ]
}

struct Limits {
    /// Ring products a second of one thread for AMX, before the limbs are counted.
    amx: Option<f64>,
    read: f64,
    threads: usize,
}

fn main() {
    let option = |name: &str| {
        std::env::args().skip(1).find_map(|a| a.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    let threads = option("threads").and_then(|t| t.parse().ok()).unwrap_or(2);
    let bits: Vec<u32> = match option("bits") {
        Some(b) => vec![b.parse().expect("bits=0..64")],
        None => vec![64, 40, 32],
    };
    let limits = Limits { amx: probe::amx_rate(1.0), read: probe::memory_read_rate(1.0, threads), threads };
    println!(
        r#"{{"limit":true,"threads":{threads},"amx_byte_products_per_s_thread":{:.4e},"read_bytes_per_s":{:.4e},"aes_blocks_per_s_thread":{:.4e}}}"#,
        limits.amx.unwrap_or(0.0),
        limits.read,
        probe::aes_rate(0.5)
    );
    let mut prg = Seed::random().stream();
    for path in LinearPath::ALL.into_iter().rev() {
        if let Some(what) = path.missing() {
            println!(r#"{{"skipped":"{path}","missing":"{what}"}}"#);
            continue;
        }
        if option("path").is_some_and(|p| !path.to_string().contains(&p)) {
            continue;
        }
        for (name, shape) in shapes() {
            if option("shape").is_none_or(|s| name.contains(&s)) {
                for &bits in &bits {
                    measure(&mut prg, path, name, shape, bits, &limits);
                }
            }
        }
    }
}

/// How a path brings weights into its layout.
type Prepare = fn(LinearPath, usize, Ring, LinearShape, &[u64]) -> Arc<dyn Weights>;

fn measure(prg: &mut Prg, path: LinearPath, name: &str, shape: LinearShape, bits: u32, limits: &Limits) {
    let (ring, prepare) = match bits {
        0 => (Ring::R64, prepare_bits as Prepare),
        _ => (Ring::new(bits), prepare as Prepare),
    };
    let x = prg.elements(ring, shape.input_len());
    let w = prg.elements(Ring::new(if bits == 0 { 1 } else { bits }), shape.weight_len());
    let mut out = vec![0; shape.output_len()];
    let (start, busy) = (Instant::now(), process_seconds());
    let weights = prepare(path, limits.threads, ring, shape, &w);
    let (prepare_s, prepare_cpu_s) = (start.elapsed().as_secs_f64(), process_seconds() - busy);
    let mut cpu = Vec::new();
    let mut times: Vec<f64> = (0..RUNS + 1)
        .map(|_| {
            let (start, busy) = (Instant::now(), process_seconds());
            linear_acc(path, limits.threads, ring, shape, &x, weights.as_ref(), &mut out);
            cpu.push(process_seconds() - busy);
            start.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    let (median, macs) = (times[RUNS / 2], shape.macs() as f64);
    let mut line = format!(
        r#"{{"kernel":"linear","path":"{path}","shape":"{name}","bits":{},"threads":{},"median_s":{median:.3e},"min_s":{:.3e},"max_s":{:.3e},"min_cpu_s":{:.3e},"prepare_s":{prepare_s:.3e},"prepare_cpu_s":{prepare_cpu_s:.3e},"gmac_per_s":{:.2}"#,
        bits,
        limits.threads,
        times[0],
        times[RUNS - 1],
        cpu[0],
        macs / median / 1e9
    );
    if let (LinearPath::Amx, Some(amx)) = (path, limits.amx) {
        let arithmetic = macs * f64::from(probe::limb_products(ring.bits())) / (amx * limits.threads as f64);
        let memory = (shape.weight_len() * ring.bits().div_ceil(8) as usize) as f64 / limits.read;
        line += &format!(
            r#","amx_limit_s":{arithmetic:.3e},"weights_limit_s":{memory:.3e},"ratio":{:.3}"#,
            arithmetic.max(memory) / median
        );
    }
    println!("{line}}}");
}

/// Processor time of all threads: what a run costs when the machine is doing something else as well.
fn process_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}
