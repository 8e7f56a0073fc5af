//! Whether the time of a kernel depends on secrets, after Reparaz, Balasch, Verbauwhede: "Dude, is my code constant
//! time?" (DATE 2017): many runs on one fixed secret and on random ones, in random order, and Welch's t-test on both.
//!
//! Statistics about a clock are no test for every change, so these are ignored by default:
//!
//! ```sh
//! cargo test --release -p privet-kernels --test timing -- --ignored --nocapture --test-threads 1
//! ```
//! `PRIVET_TIMING_RUNS` sets the runs of a kernel. A |t| of more than 10 is called a leak, as in the paper. What a t-test
//! does not find it does not exclude.

use privet_kernels::bits::cpu::BitsPath;
use privet_kernels::chunks::cpu::ChunksPath;
use privet_kernels::chunks::{self, BLOCK, Chunks, words};
use privet_kernels::compare::cpu::{ComparePath, eval, generate};
use privet_kernels::fold::{
    Chosen, FoldPath, GROUP, NUMBER_GROUP, NumberTerms, WordTerms, number_weights, points,
};
use privet_kernels::{CompareShape, LinearShape, LookupShape, Read, cpu};
use privet_prg::{HashKeys, Prg, Seed, TreeHash};
use privet_ring::Ring;
use std::hint::black_box;
use std::time::Instant;

/// A |t| that is called a leak.
const LEAK: f64 = 10.0;
/// Parts of the slowest runs that are left out, one test each: interrupts hide small differences.
const LEFT_OUT: [f64; 5] = [0.0, 0.05, 0.2, 0.5, 0.8];
/// Words of a bit plane: many, because what a clock costs hides in a long run.
const PLANE: usize = 128;
/// Runs that are not counted.
const WARM_UP: usize = 64;
/// Different random secrets that a kernel meets.
const SECRETS: usize = 32;

fn runs() -> usize {
    std::env::var("PRIVET_TIMING_RUNS").map_or(6_000, |n| n.parse().expect("a number of runs"))
}

/// Mean and variance of the mean.
fn moments(times: &[f64]) -> (f64, f64) {
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let square = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, square / n)
}

/// The largest |t| over what may be left out.
fn welch(times: &[(bool, f64)]) -> f64 {
    let mut all: Vec<f64> = times.iter().map(|t| t.1).collect();
    all.sort_by(f64::total_cmp);
    let t = |left_out: f64| {
        let most = all[((all.len() - 1) as f64 * (1.0 - left_out)) as usize];
        let of = |class| -> Vec<f64> {
            times.iter().filter(|t| t.0 == class && t.1 <= most).map(|t| t.1).collect()
        };
        let [fixed, random] = [of(true), of(false)];
        // A class that is nearly gone after the cut is far from the other one; the test with less left out says so.
        if fixed.len().min(random.len()) < 100 {
            return 0.0;
        }
        let ((a, va), (b, vb)) = (moments(&fixed), moments(&random));
        if va + vb == 0.0 { 0.0 } else { ((a - b) / (va + vb).sqrt()).abs() }
    };
    LEFT_OUT.into_iter().map(t).fold(0.0, f64::max)
}

/// Time `kernel` on `fixed` and on random secrets. Each lies among as many others and is copied into one place first, so that
/// nothing differs but its value.
fn measure<T: Clone>(
    fixed: Vec<T>,
    random: impl FnMut(usize) -> Vec<T>,
    mut kernel: impl FnMut(&[T]),
) -> f64 {
    let mut place = fixed.clone();
    let pool: [Vec<Vec<T>>; 2] = [(0..SECRETS).map(random).collect(), vec![fixed; SECRETS]];
    let runs = runs();
    let mut times = Vec::with_capacity(runs);
    for (i, coin) in prg().elements(Ring::new(1), runs + WARM_UP).into_iter().enumerate() {
        place.clone_from_slice(&pool[coin as usize][i % SECRETS]);
        // What the copy has left to do is over when the clock starts.
        black_box((0..512u64).fold(coin, |a, b| black_box(a ^ b)));
        let start = Instant::now();
        kernel(black_box(&place));
        let time = start.elapsed().as_nanos() as f64;
        if i >= WARM_UP {
            times.push((coin == 1, time));
        }
    }
    welch(&times)
}

/// Up to three tries: load on the machine makes false alarms, which do not come three times in a row.
fn assert_constant(what: &str, mut measured: impl FnMut() -> f64) {
    let mut worst = f64::MAX;
    for _ in 0..3 {
        worst = worst.min(measured());
        if worst <= LEAK {
            break;
        }
    }
    println!("{what}: |t| = {worst:.1}");
    assert!(worst <= LEAK, "{what}: |t| = {worst:.1}, its time depends on secrets");
}

fn prg() -> Prg {
    Seed::random().stream()
}

fn hash() -> TreeHash {
    TreeHash::new(HashKeys::from_seed(&Seed::random()))
}

fn bytes(n: usize) -> Vec<u8> {
    let mut out = vec![0; n];
    prg().fill_bytes(&mut out);
    out
}

/// The test itself: it must call an early exit a leak, and a plain copy none.
#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn a_planted_leak_is_found() {
    let secret = |n| bytes(n);
    let early = |s: &[u8]| {
        black_box(s.iter().position(|&b| b != 0));
    };
    let leak = measure(vec![0; 4096], |_| secret(4096), early);
    println!("early exit: |t| = {leak:.1}");
    assert!(leak > LEAK, "an early exit has |t| = {leak:.1} only: this machine is too noisy to say anything");
    let sum = |s: &[u8]| {
        black_box(s.iter().fold(0u8, |a, b| a ^ b));
    };
    assert_constant("xor of bytes", || measure(vec![0; 4096], |_| secret(4096), sum));
}

/// What an evaluator does with its key: the point is public, the key is not.
#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn comparison_keys_of_evaluators() {
    let shape = CompareShape { bits: 40, count: 128 };
    let (hash, x) = (hash(), prg().elements(Ring::new(40), 128));
    for path in ComparePath::ALL.into_iter().filter(|p| p.available()) {
        let kernel = |key: &[u8]| {
            black_box(eval(path, &hash, shape, key, &x, true));
        };
        let n = shape.key_bytes();
        assert_constant(&format!("compare_eval, {path}"), || measure(vec![0; n], |_| bytes(n), kernel));
    }
}

/// What a dealer does with masks: the smallest threshold against random ones.
#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn comparison_keys_of_the_dealer() {
    let shape = CompareShape { bits: 40, count: 128 };
    let (hash, mut prg) = (hash(), prg());
    let (mut roots, mut deltas) = (vec![0; 128], vec![0; 128]);
    prg.fill_blocks(&mut roots);
    prg.fill_blocks(&mut deltas);
    let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
    for path in ComparePath::ALL.into_iter().filter(|p| p.available()) {
        let [key0, key1] = &mut keys;
        let mut kernel = |alpha: &[u64]| {
            generate(path, &hash, shape, alpha, &roots, &deltas, black_box(key0), black_box(key1))
        };
        let mut draw = || prg.elements(Ring::new(40), 128);
        assert_constant(&format!("compare_gen, {path}"), || measure(vec![0; 128], |_| draw(), &mut kernel));
    }
}

/// Comparison by chunks: points and what is opened are public, all else is not.
#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn comparisons_by_chunks() {
    let shape = Chunks::new(40, 4, 4, false);
    let (level, n, ring) = (&shape.levels[0], 2 * BLOCK, Ring::R64);
    let draw = |n| prg().elements(ring, n);
    let x = prg().elements(Ring::new(40), n);
    let [opened, other] = [0; 2].map(|_| draw(words(level.opened(), n)));
    for path in ChunksPath::ALL.into_iter().filter(|p| p.available()) {
        let mut out = vec![0; words(shape.tables(), n)];
        let mut tables =
            |r: &[u64]| chunks::cpu::tables((path, BitsPath::Portable), &shape, r, black_box(&mut out));
        let thresholds = |_| prg().elements(Ring::new(40), n);
        assert_constant(&format!("chunk_tables, {path}"), || measure(vec![0; n], thresholds, &mut tables));
        let mut out = vec![0; words(shape.leaves(), n)];
        let mut leaves = |tables: &[u64]| {
            chunks::cpu::leaves((path, BitsPath::Portable), &shape, true, &x, tables, black_box(&mut out))
        };
        let len = words(shape.tables(), n);
        assert_constant(&format!("chunk_leaves, {path}"), || {
            measure(vec![0; len], |_| draw(len), &mut leaves)
        });
        let mut out = vec![0; words(level.products(), n)];
        let mut products = |masks: &[u64]| chunks::cpu::products(path, level, masks, black_box(&mut out));
        let len = words(level.opened(), n);
        assert_constant(&format!("chunk_products, {path}"), || {
            measure(vec![0; len], |_| draw(len), &mut products)
        });
        let mut out = vec![0; words(level.results(), n)];
        let mut combine = |dealt: &[u64]| {
            chunks::cpu::combine(path, level, true, [&opened, dealt, &other], black_box(&mut out))
        };
        let len = words(level.products(), n);
        assert_constant(&format!("chunk_combine, {path}"), || {
            measure(vec![0; len], |_| draw(len), &mut combine)
        });
    }
}

#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn look_ups() {
    let device = cpu(1);
    let table: Vec<i64> = (0..256).map(|i| i * i - 3000).collect();
    let shape = LookupShape { bits: 8, words: 1, count: 16 };
    let (hash, points) = (hash(), prg().elements(Ring::new(8), 16));
    let tables = [table];
    let n = shape.key_bytes();
    assert_constant("lookup_eval", || {
        measure(
            vec![0; n],
            |_| bytes(n),
            |key| {
                black_box(device.lookup_eval(&hash, shape, true, key, &points, &Read::Tables(&tables)));
            },
        )
    });
}

#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn look_ups_of_the_dealer() {
    let device = cpu(1);
    let shape = LookupShape { bits: 8, words: 3, count: 256 };
    let (hash, mut prg) = (hash(), prg());
    let (mut roots, mut deltas) = (vec![0; 256], vec![0; 256]);
    prg.fill_blocks(&mut roots);
    prg.fill_blocks(&mut deltas);
    let words = prg.elements(Ring::R64, 3 * 256);
    let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
    let [key0, key1] = &mut keys;
    let mut kernel = |alpha: &[u64]| {
        device.lookup_gen(&hash, shape, alpha, &words, &roots, &deltas, black_box(key0), black_box(key1))
    };
    let mut draw = || prg.elements(Ring::new(8), 256);
    assert_constant("lookup_gen", || measure(vec![0; 256], |_| draw(), &mut kernel));
}

#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn products_and_bit_planes() {
    let device = cpu(1);
    let shape = LinearShape::MatMulT { m: 8, k: 128, n: 32 };
    let ring = Ring::new(64);
    let weights = device.prepare(ring, shape, &prg().elements(ring, shape.weight_len()));
    let mut out = vec![0; shape.output_len()];
    let mut kernel = |x: &[u64]| device.linear_acc(ring, shape, x, weights.as_ref(), black_box(&mut out));
    let n = shape.input_len();
    assert_constant("linear_acc", || measure(vec![0; n], |_| prg().elements(ring, n), &mut kernel));
    let places: Vec<usize> = (0..64).collect();
    for path in BitsPath::ALL.into_iter().filter(|p| p.available()) {
        let mut out = vec![0; 64 * PLANE];
        let mut kernel = |values: &[u64]| path.planes(values, &places, black_box(&mut out));
        assert_constant(&format!("bit_planes, {path}"), || {
            measure(vec![0; 64 * PLANE], |_| prg().elements(ring, 64 * PLANE), &mut kernel)
        });
    }
}

/// What provers and verifiers of `rep3` do with words of bits and with field elements.
#[test]
#[ignore = "statistics of a clock: run alone, see above"]
fn folds() {
    let ring = Ring::R64;
    let n = 64 * GROUP;
    for path in FoldPath::ALL.into_iter().filter(|p| p.available()) {
        let weights = prg().elements(ring, n / GROUP);
        let mut sums = vec![0; points(6)];
        let mut words = |u: &[u64]| {
            let batch = WordTerms { words: u.len(), terms: vec![(u.into(), u.into())], weights: &weights };
            path.words_message(&[batch], black_box(&mut sums));
        };
        let draw = |n| prg().elements(ring, n);
        assert_constant(&format!("words_message, {path}"), || measure(vec![0; n], |_| draw(n), &mut words));
        let (weights, mut sums) = (prg().elements(ring, number_weights(n)), vec![0; points(3)]);
        let mut numbers = |u: &[u64]| {
            let terms = vec![Chosen { numbers: u, bits: &u[..n / GROUP] }];
            path.numbers_message(
                &[NumberTerms { numbers: n, terms, weights: &weights }],
                black_box(&mut sums),
            );
        };
        assert_constant(&format!("numbers_message, {path}"), || {
            measure(vec![0; n], |_| draw(n), &mut numbers)
        });
        let basis = draw(NUMBER_GROUP).try_into().expect("as many as drawn");
        let mut bits = |u: &[u64]| {
            let mut items = vec![];
            path.bits_fold(u, &basis, &mut items);
            black_box(items);
        };
        assert_constant(&format!("bits_fold, {path}"), || measure(vec![0; 512], |_| draw(512), &mut bits));
        let weights = draw(512);
        let mut weigh = |u: &[u64]| {
            let mut items = u.to_vec();
            path.field_weigh(black_box(&mut items), &weights);
        };
        assert_constant(&format!("field_weigh, {path}"), || measure(vec![0; 512], |_| draw(512), &mut weigh));
    }
}
