//! Whether the packing that is chosen for a layer over the torus is the best of its neighbours, by seconds and bytes as measured.
//!
//!     cargo run --release -p privet-he --example packings [LAYER]
//!
//! LAYER: only layers in whose name this occurs. For near and distant sides and 1, 10 and 100 runs a client: the choice, beside the packings
//! that should take least and those with the fewest bytes. Seconds are both sides' in one thread each, and of bytes what the link takes for
//! them. A choice that seems more than a tenth slower than the best is measured again with it, at most thrice: the fastest calls count.

use privet_he::layout::{Blocks, ConvLayout, Matmul, MatmulLayout};
use privet_he::torus::{Filters, HintId, Keys, Link, Packing, PackingAim, TorusLayer, Zeros};
use privet_prg::Seed;
use privet_ring::{Conv2d, Ring};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const NORM_BITS: u32 = 15;
const RING_BITS: u32 = 37;

/// What was measured of a packing.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// The server's seconds, once, and bytes.
    once: f64,
    once_bytes: usize,
    /// Before each run.
    client: f64,
    server: f64,
    bytes: usize,
}

impl Measured {
    /// Of two measurements of one packing the fastest of everything.
    fn fastest(self, other: Measured) -> Measured {
        let once = self.once.min(other.once);
        Measured {
            once,
            client: self.client.min(other.client),
            server: self.server.min(other.server),
            ..self
        }
    }

    /// Seconds a run, of both sides.
    fn a_run(&self, aim: PackingAim) -> f64 {
        let sent = |bytes: usize| bytes as f64 * aim.link.byte() as f64 * 1e-11;
        let once = self.once + sent(self.once_bytes);
        once / aim.runs as f64 + sent(self.bytes) + self.client + self.server
    }

    fn shown(&self, aim: PackingAim) -> String {
        let [once, client, server] = [self.once, self.client, self.server].map(|seconds| seconds * 1e3);
        let [hint, bytes] = [self.once_bytes, self.bytes].map(|bytes| bytes as f64 / 1e6);
        let a_run = self.a_run(aim) * 1e3;
        format!(
            "{a_run:.1} ms a run: once {once:.1} ms and {hint:.2} MB, client {client:.1} ms, server {server:.1} ms, {bytes:.2} MB"
        )
    }
}

/// Seconds of the fastest of several calls: others on the machine make some of them slower, and none faster.
fn timed<T>(mut work: impl FnMut() -> T) -> (f64, T) {
    /// Until so much time has gone, and so many calls; one that takes long is called thrice.
    const SECONDS: f64 = 0.3;
    const CALLS: usize = 40;
    let (start, mut fastest) = (Instant::now(), f64::MAX);
    for call in 1.. {
        let before = Instant::now();
        let done = work();
        fastest = fastest.min(before.elapsed().as_secs_f64());
        if call >= CALLS || (call >= 3 && start.elapsed().as_secs_f64() >= SECONDS) {
            return (fastest, done);
        }
    }
    unreachable!("calls end")
}

fn measure(packing: &Packing) -> Measured {
    let (p, layout) = (packing.parameters, Arc::clone(&packing.layout));
    let mut prg = Seed::random().stream();
    let weights = layout.weight_len();
    // small ones: the norm bounds what is cut, not what stands there
    let narrow = Ring::new(5);
    let w: Vec<u64> =
        prg.elements(narrow, weights).iter().map(|w| p.ring().wrap(narrow.signed(*w) as u64)).collect();
    let layer = TorusLayer::new(p, layout, HintId::random(), 0, 1).expect("PRIVET_CPU");
    let filters = Arc::new(Filters::new(p.ring(), p.norm_bits(), &w));
    let (hinting, (hinted, message)) = timed(|| layer.hint(&filters, &mut prg).expect("a small norm"));
    let (reading, hint) = timed(|| layer.read_hint(&message).expect("a hint"));
    let (client, (_mask, prepared)) = timed(|| hint.prepare(&mut Keys::new(Seed::random().stream())));
    let (server, masked) = timed(|| hinted.multiplier().prepare(&mut Zeros::default(), &prepared));
    drop(masked.expect("a mask"));
    Measured {
        once: hinting,
        once_bytes: message.len(),
        // hints rest as they came
        client: reading + client,
        server,
        bytes: prepared.len() + layer.run_bytes(),
    }
}

fn shown(packing: &Packing) -> String {
    let b = packing.layout.blocks();
    let (degree, Blocks { tiles, inputs, outputs, .. }) = (packing.parameters.degree(), b);
    format!("degree {degree}, {tiles} tiles of {inputs} polynomials and {outputs} answers")
}

/// How many packings are measured beside a choice: those that cost least by what is reckoned, and those with the fewest bytes.
const NEIGHBOURS: usize = 6;

/// How much slower a choice may seem than the best without being measured again, and how often it is.
const WITHIN: f64 = 1.1;
const AGAIN: usize = 3;

/// Packings of a layer that were measured, by what is shown of them.
type Known = BTreeMap<String, Measured>;

/// Measures a packing once more: what was fastest counts.
fn measure_again(known: &mut Known, packing: &Packing) {
    let (name, now) = (shown(packing), measure(packing));
    let before = *known.entry(name.clone()).or_insert(now);
    known.insert(name, before.fastest(now));
}

/// Prints a line for either link and each number of runs; gives the ratios of choices to what is best.
fn compare(name: &str, all: &[Packing], choose: impl Fn(PackingAim) -> Packing) -> Vec<f64> {
    let mut known = Known::new();
    let aims = Link::ALL.into_iter().flat_map(|link| [1, 10, 100].map(|runs| PackingAim { runs, link }));
    aims.map(|aim| compared(name, all, &mut known, aim, &choose(aim))).collect()
}

/// The same for one aim.
fn compared(name: &str, all: &[Packing], known: &mut Known, aim: PackingAim, chosen: &Packing) -> f64 {
    let bytes = |c: &&Packing| c.cost.prepare_bytes + c.cost.run_bytes + c.cost.hint_bytes.div_ceil(aim.runs);
    let (mut by_time, mut by_bytes): (Vec<&Packing>, Vec<&Packing>) =
        (all.iter().collect(), all.iter().collect());
    by_time.sort_by_key(|c| c.cost.a_run(aim));
    by_bytes.sort_by_key(bytes);
    let next = by_time.into_iter().take(NEIGHBOURS).chain(by_bytes.into_iter().take(NEIGHBOURS));
    let beside: BTreeMap<String, &Packing> =
        [chosen].into_iter().chain(next).map(|c| (shown(c), c)).collect();
    for packing in beside.values() {
        if !known.contains_key(&shown(packing)) {
            measure_again(known, packing);
        }
    }
    let seconds = |known: &Known, name: &str| known[name].a_run(aim);
    let best = |known: &Known| {
        let least = beside.keys().min_by(|a, b| seconds(known, a).total_cmp(&seconds(known, b)));
        least.expect("the choice is one").clone()
    };
    let (own, mut first) = (shown(chosen), best(known));
    for _ in 0..AGAIN {
        if seconds(known, &own) <= WITHIN * seconds(known, &first) {
            break;
        }
        [chosen, beside[&first]].into_iter().for_each(|packing| measure_again(known, packing));
        first = best(known);
    }
    let ratio = seconds(known, &own) / seconds(known, &first);
    let PackingAim { runs, link } = aim;
    println!("{name}, {link:?}, {runs} runs: {ratio:.2} times the best of {}", beside.len());
    println!("    chosen: {own}, {}", known[&own].shown(aim));
    if ratio > 1.0 {
        println!("    best: {first}, {}", known[&first].shown(aim));
    }
    ratio
}

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let ring = Ring::new(RING_BITS);
    let conv = |in_channels, side, out_channels, kernel, stride| Conv2d {
        batch: 1,
        in_channels,
        input: [side; 2],
        out_channels,
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [if kernel == 3 { 1 } else { 0 }; 4],
        dilation: [1; 2],
        groups: 1,
    };
    let convs = [
        ("LeNet 20x12^2 -> 50 @5", conv(20, 12, 50, 5, 1)),
        ("SqueezeNet 3x224^2 -> 64 @3/2", conv(3, 224, 64, 3, 2)),
        ("SqueezeNet 16x55^2 -> 64 @3", conv(16, 55, 64, 3, 1)),
        ("SqueezeNet 48x13^2 -> 192 @3", conv(48, 13, 192, 3, 1)),
        ("SqueezeNet 512x13^2 -> 1000 @1", conv(512, 13, 1000, 1, 1)),
        ("ResNet-50 256x56^2 -> 64 @1", conv(256, 56, 64, 1, 1)),
        ("ResNet-50 128x28^2 -> 128 @3", conv(128, 28, 128, 3, 1)),
        ("ResNet-50 512x7^2 -> 512 @3", conv(512, 7, 512, 3, 1)),
        ("ResNet-50 1024x14^2 -> 2048 @1/2", conv(1024, 14, 2048, 1, 2)),
    ];
    let mut ratios = Vec::new();
    for (name, conv) in convs.into_iter().filter(|(name, _)| name.contains(&only)) {
        let all = ConvLayout::packings(conv, ring, NORM_BITS);
        let choose = |aim| {
            let (parameters, layout, cost) =
                ConvLayout::for_torus(conv, ring, NORM_BITS, aim).expect("a packing");
            Packing { parameters, layout: Arc::new(layout), cost }
        };
        ratios.extend(compare(name, &all, choose));
    }
    let matmul = |m, k, o| Matmul { groups: 1, m, k, o };
    let matmuls = [
        ("LeNet [1, 800] [800, 500]", matmul(1, 800, 500)),
        ("ResNet-50 [1, 2048] [2048, 1000]", matmul(1, 2048, 1000)),
        ("BERT-base [128, 768] [768, 768]", matmul(128, 768, 768)),
        ("BERT-base [128, 768] [768, 3072]", matmul(128, 768, 3072)),
    ];
    for (name, shape) in matmuls.into_iter().filter(|(name, _)| name.contains(&only)) {
        let all = MatmulLayout::packings(shape, ring, NORM_BITS);
        let choose = |aim| {
            let (parameters, layout, cost) =
                MatmulLayout::for_torus(shape, ring, NORM_BITS, aim).expect("a packing");
            Packing { parameters, layout: Arc::new(layout), cost }
        };
        ratios.extend(compare(name, &all, choose));
    }
    let near = ratios.iter().filter(|ratio| **ratio <= WITHIN).count();
    println!("{near} of {} choices take at most a tenth more than the best", ratios.len());
}
