//! Transforms a second beside what the multipliers could do, and milliseconds and bytes of layers.
//!
//!     cargo run --release -p privet-he --example he_bench [BITS [WEIGHT_BITS [LAYER]]]
//!
//! LAYER: only layers in whose name this occurs.

use privet_he::layout::{ConvLayout, Layout, Matmul, MatmulLayout, Roles, cost};
use privet_he::ntt::Ntt;
use privet_he::{Context, Encrypted, HePath, Message, Operand, Parameters, Product, SETS};
use privet_prg::Seed;
use privet_ring::{Conv2d, Ring};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Seconds that this process has had a processor, where the system tells; others may run beside.
fn busy() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(stat.split(' ').next()?.parse::<f64>().ok()? * 1e-9)
}

/// Seconds of the fastest of many.
fn fastest(times: usize, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..times).map(once).fold(f64::MAX, f64::min)
}

/// IFMA multiply-adds of eight words a second, operands in registers; `None` without IFMA.
fn ifma_peak() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if HePath::Ifma.available() {
        const CALLS: usize = 1 << 18;
        // SAFETY: available, as just checked.
        let seconds = fastest(20, || unsafe { ifma_calls(CALLS) });
        return Some(CALLS as f64 / seconds);
    }
    None
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn ifma_calls(calls: usize) {
    use std::arch::x86_64::*;
    let mut sums: [__m512i; 16] = std::array::from_fn(|i| _mm512_set1_epi64(i as i64));
    let factor = black_box(_mm512_set1_epi64(12345));
    for _ in 0..calls / sums.len() {
        for s in &mut sums {
            *s = _mm512_madd52lo_epu64(*s, *s, factor);
        }
    }
    black_box(&mut sums);
}

fn transforms() {
    let peak = ifma_peak();
    for n in [4096usize, 8192] {
        let ntt = Ntt::new(n, SETS[0].primes[0]);
        let mut words: Vec<u64> = (0..n as u64).collect();
        for path in HePath::ALL.into_iter().filter(|p| p.available()) {
            let forward = fastest(400, || ntt.forward(path, &mut words));
            let inverse = fastest(400, || ntt.inverse(path, &mut words));
            // three multiplications a butterfly
            let multiplications = 3.0 * (n / 2) as f64 * n.ilog2() as f64 / 8.0;
            let ceiling = peak.filter(|_| path == HePath::Ifma).map(|p| multiplications / p);
            println!(
                "{path:14} N={n} forward {:6.2} us, inverse {:6.2} us, {:8.0} a second{}",
                forward * 1e6,
                inverse * 1e6,
                1.0 / forward,
                ceiling.map_or(String::new(), |c| format!(
                    ", multipliers alone {:.2} us ({:.0} %)",
                    c * 1e6,
                    100.0 * c / forward
                )),
            );
        }
    }
}

/// Bytes of values that are kept of weights, as the parties of `semi2k` keep them.
const ROOM: usize = 1 << 29;

/// One party's part of a product of two, the other one's beside it unmeasured.
fn layer(name: &str, p: &Parameters, layout: Arc<dyn Layout>, macs: u64) {
    let context = Context::new(p.set(), 1).expect("PRIVET_CPU");
    let mut prg = Seed::random().stream();
    let x = p.plain().uniform(&mut prg, layout.input_len());
    let narrow = Ring::new(p.weight_bits());
    let w: Vec<u64> = prg
        .elements(narrow, layout.weight_len())
        .iter()
        .map(|w| Ring::new(p.plain().bits()).wrap(narrow.signed(*w) as u64))
        .collect();
    let timed = |work: &mut dyn FnMut()| {
        let before = busy();
        let wall = fastest(1, work);
        before.zip(busy()).map_or(wall, |(before, after)| after - before) * 1e3
    };
    let product = Product::new(&context, p, Arc::clone(&layout), Seed::random());
    let (b, c) = (layout.blocks(), cost(p, &*layout, Roles::BOTH, true));
    let mut made = None;
    let prepare = timed(&mut || made = Some(product.weights(&w, &mut prg, ROOM)));
    let (weights, hints) = made.expect("made");
    let factor = weights.factor(Some(hints));
    let (mut encrypt, mut encode, mut multiply) = (0.0, 0.0, 0.0);
    let share = vec![0; layout.output_len()];
    let at_once = product.tiles_in(256 << 20);
    for first in (0..b.tiles).step_by(at_once) {
        let tiles = first..(first + at_once).min(b.tiles);
        let mut made = None;
        encrypt += timed(&mut || made = Some(product.keys(tiles.clone(), &mut prg)));
        let (mut keys, zeros) = made.expect("made");
        for group in 0..b.groups {
            let mut operand = None;
            encrypt += timed(&mut || operand = Some(keys.encrypt(group, &x, &mut prg)));
            let operand = operand.expect("made");
            let mut bytes = Vec::new();
            encode += timed(&mut || bytes = operand.encode());
            encode += timed(&mut || {
                black_box(Message::<Operand>::decode(&product, operand.len(), &bytes).expect("its own"));
            });
            let sums = Some((&zeros, &operand));
            let encrypted = Encrypted { group, tiles: tiles.clone(), sums, keys: Some(&keys) };
            multiply += timed(&mut || {
                black_box(factor.partial(&encrypted, &share, &mut prg));
            });
        }
    }
    println!(
        "{name:28} {:10} {:4}x{:3}x{:3} | hint {prepare:8.1} ms once, {:7.3} MB | encrypt {encrypt:7.1}, bytes {encode:7.1}, \
         partial {multiply:7.1} ms | {:7.3} MB to a peer, {:7.3} MB to the opener | {:6.2} ns a MAC | {} transforms, \
         {} products | 2^-{:.0}",
        p.set().name,
        b.groups * b.tiles,
        b.inputs,
        b.outputs,
        c.hint_bytes as f64 / 1e6,
        c.operand_bytes as f64 / 1e6,
        c.partial_bytes as f64 / 1e6,
        (encrypt + encode + multiply) * 1e6 / macs as f64,
        c.transforms,
        c.products,
        p.distance_bits(layout.coefficients(), layout.output_len()),
    );
}

fn main() {
    let mut bits = std::env::args().skip(1).take(2).map(|a| a.parse().expect("bits"));
    let chosen = std::env::args().nth(3).unwrap_or_default();
    let (k, b) = (bits.next().unwrap_or(64), bits.next().unwrap_or(64));
    let uses = 1;
    transforms();
    let conv = |c: usize, size: usize, out: usize, kernel: usize, stride: usize| Conv2d {
        batch: 1,
        in_channels: c,
        input: [size; 2],
        out_channels: out,
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [kernel / 2; 4],
        dilation: [1; 2],
        groups: 1,
    };
    println!("\nlayers with {k} bits, weights of {b}; tiles x summed polynomials x answers");
    for c in [
        conv(3, 224, 64, 7, 2),
        conv(64, 56, 64, 3, 1),
        conv(128, 28, 128, 3, 1),
        conv(256, 14, 256, 3, 1),
        conv(512, 7, 512, 3, 1),
        conv(256, 14, 512, 1, 2),
    ] {
        let (p, layout) = ConvLayout::plan(c, Ring::new(k), b, 2, uses).expect("parameters");
        let name = format!(
            "conv {}x{}^2 -> {} @{}/{}",
            c.in_channels, c.input[0], c.out_channels, c.kernel[0], c.stride[0]
        );
        if name.contains(&chosen) {
            layer(&name, &p, Arc::new(layout), c.macs());
        }
    }
    for m in [
        Matmul { groups: 1, m: 1, k: 512, o: 1000 },
        Matmul { groups: 1, m: 64, k: 800, o: 500 },
        Matmul { groups: 12, m: 128, k: 64, o: 128 },
        Matmul { groups: 1, m: 1024, k: 1024, o: 1024 },
    ] {
        let (p, layout) = MatmulLayout::plan(m, Ring::new(k), b, 2, uses).expect("parameters");
        let name = format!("{} x [{}, {}] [{}, {}]", m.groups, m.m, m.k, m.k, m.o);
        if name.contains(&chosen) {
            layer(&name, &p, Arc::new(layout), (m.groups * m.m * m.k * m.o) as u64);
        }
    }
}
