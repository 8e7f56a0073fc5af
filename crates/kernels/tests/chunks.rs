//! Comparison by chunks: the definition is right for any number of parties, and every path computes it.

use privet_kernels::bits::cpu::BitsPath;
use privet_kernels::chunks::cpu::{self, ChunksPath};
use privet_kernels::chunks::{BLOCK, Chunks, SIDE, spec, words};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

/// XOR shares of `bits` for so many parties.
fn share(rng: &mut Prg, parties: usize, bits: &[bool]) -> Vec<Vec<bool>> {
    let random = |rng: &mut Prg| -> Vec<bool> {
        rng.elements(Ring::new(1), bits.len()).into_iter().map(|b| b == 1).collect()
    };
    let mut shares: Vec<Vec<bool>> = (1..parties).map(|_| random(rng)).collect();
    shares.push((0..bits.len()).map(|i| shares.iter().fold(bits[i], |sum, s| sum ^ s[i])).collect());
    shares
}

fn open(shares: &[Vec<bool>]) -> Vec<bool> {
    (0..shares[0].len()).map(|i| shares.iter().fold(false, |sum, s| sum ^ s[i])).collect()
}

fn xor(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The whole protocol among `parties` evaluators and a dealer.
fn compare(chunks: &Chunks, parties: usize, x: u64, r: u64, rng: &mut Prg) -> bool {
    let mut items: Vec<Vec<bool>> = share(rng, parties, &spec::tables(chunks, r))
        .iter()
        .enumerate()
        .map(|(p, tables)| spec::leaves(chunks, p == 0, x, tables))
        .collect();
    for level in &chunks.levels {
        let none = vec![false; level.opened()];
        let masks = share(rng, parties, &none);
        let masks: Vec<Vec<bool>> = masks.into_iter().map(|m| xor(&m, &share(rng, 2, &none)[0])).collect();
        let products = share(rng, parties, &spec::products(level, &open(&masks)));
        let masked: Vec<Vec<bool>> = items.iter().zip(&masks).map(|(i, m)| xor(i, m)).collect();
        let opened = open(&masked);
        items =
            (0..parties).map(|p| spec::combine(level, p == 0, &opened, &products[p], &masks[p])).collect();
    }
    let [result] = open(&items)[..] else { panic!("one bit is the result") };
    result
}

#[test]
fn small_comparisons_are_right_for_every_pair() {
    let mut rng = Seed::random().stream();
    for (bits, width, fan) in [(1, 4, 4), (2, 1, 2), (3, 2, 2), (4, 8, 2), (5, 2, 3), (6, 1, 4), (7, 3, 3)] {
        for equal in [false, true] {
            let chunks = Chunks::new(bits, width, fan, equal);
            for parties in [2, 3, 5] {
                for (x, r) in (0..1 << bits).flat_map(|x| (0..1 << bits).map(move |r| (x, r))) {
                    let right = if equal { x == r } else { x < r };
                    assert_eq!(compare(&chunks, parties, x, r, &mut rng), right, "{chunks:?}: {x}, {r}");
                }
            }
        }
    }
}

#[test]
fn large_comparisons_are_right_at_the_edges() {
    let mut rng = Seed::random().stream();
    for bits in [16, 24, 39, 63, 64] {
        let ring = Ring::new(bits);
        for (width, fan) in [(4, 4), (7, 9), (2, 3), (1, 2), (8, 2), (5, 8)] {
            for parties in [2, 3, 5] {
                let r = rng.elements(ring, 1)[0];
                let near =
                    [r.wrapping_sub(1), r, r.wrapping_add(1), !r, 0, u64::MAX, rng.elements(ring, 1)[0]];
                for (x, r) in near.into_iter().flat_map(|x| [(ring.wrap(x), r), (r, ring.wrap(x))]) {
                    let less = compare(&Chunks::new(bits, width, fan, false), parties, x, r, &mut rng);
                    let equal = compare(&Chunks::new(bits, width, fan, true), parties, x, r, &mut rng);
                    assert_eq!((less, equal), (x < r, x == r), "{bits} bits by {width}, {fan}: {x}, {r}");
                }
            }
        }
    }
}

/// Comparison i of `planes`, a bit a plane.
fn column(planes: &[u64], count: usize, n: usize, i: usize) -> Vec<bool> {
    let first = i - i % BLOCK;
    let side = (n - first).div_ceil(64).min(SIDE);
    let word = |p: usize| planes[words(count, first) + p * side + i % BLOCK / 64];
    (0..count).map(|p| word(p) >> (i % 64) & 1 == 1).collect()
}

/// The same of all comparisons, and of the padding after them.
fn columns(planes: &[u64], count: usize, n: usize) -> Vec<Vec<bool>> {
    (0..n.next_multiple_of(64)).map(|i| column(planes, count, n.next_multiple_of(64), i)).collect()
}

#[test]
fn every_path_computes_the_definition() {
    let mut rng = Seed::random().stream();
    let mut small = |most: u64| 1 + rng.elements(Ring::R64, 1)[0] % most;
    let mut shapes: Vec<[u64; 4]> =
        (0..60).map(|_| [small(64), small(8), 1 + small(8), small(1200)]).collect();
    shapes.extend([
        [63, 4, 4, 512],
        [63, 7, 9, 1025],
        [64, 8, 9, 64],
        [64, 1, 9, 577],
        [1, 1, 2, 1],
        [9, 1, 9, 512],
    ]);
    let mut rng = Seed::random().stream();
    for (round, [bits, width, fan, n]) in shapes.into_iter().enumerate() {
        let (n, equal, leads) = (n as usize, round % 3 == 0, round % 2 == 0);
        let chunks = Chunks::new(bits as u32, width as u32, fan as u32, equal);
        let mut random = |planes: usize| rng.elements(Ring::R64, words(planes, n));
        let shares = random(chunks.tables());
        let levels: Vec<[Vec<u64>; 3]> = chunks
            .levels
            .iter()
            .map(|l| [random(l.opened()), random(l.products()), random(l.opened())])
            .collect();
        let ring = Ring::new(bits as u32);
        let [x, r] = [0; 2].map(|_| rng.elements(ring, n));
        let padded = |v: &[u64], i: usize| v.get(i).copied().unwrap_or(0);
        for path in ChunksPath::ALL.into_iter().filter(|p| p.available()) {
            for bits in BitsPath::ALL.into_iter().filter(|p| p.available()) {
                let what = format!("{path}, {bits}, {n} of {chunks:?}");
                let mut out = vec![7; words(chunks.tables(), n)];
                cpu::tables((path, bits), &chunks, &r, &mut out);
                for (i, found) in columns(&out, chunks.tables(), n).into_iter().enumerate() {
                    assert_eq!(found, spec::tables(&chunks, padded(&r, i)), "tables, {what}");
                }
                let mut out = vec![7; words(chunks.leaves(), n)];
                cpu::leaves((path, bits), &chunks, leads, &x, &shares, &mut out);
                let tables = columns(&shares, chunks.tables(), n);
                for (i, found) in columns(&out, chunks.leaves(), n).into_iter().enumerate() {
                    assert_eq!(
                        found,
                        spec::leaves(&chunks, leads, padded(&x, i), &tables[i]),
                        "leaves, {what}"
                    );
                }
            }
            for (level, [opened, products, masks]) in chunks.levels.iter().zip(&levels) {
                let mut out = vec![7; words(level.products(), n)];
                cpu::products(path, level, masks, &mut out);
                let mut next = vec![7; words(level.results(), n)];
                cpu::combine(path, level, leads, [opened, products, masks], &mut next);
                let [found, next] = [columns(&out, level.products(), n), columns(&next, level.results(), n)];
                for i in (0..n.next_multiple_of(64)).step_by(7) {
                    let of = |planes: &[u64], count| column(planes, count, n.next_multiple_of(64), i);
                    let (o, p, m) = (
                        of(opened, level.opened()),
                        of(products, level.products()),
                        of(masks, level.opened()),
                    );
                    assert_eq!(found[i], spec::products(level, &m), "products, {path}, {n} of {chunks:?}");
                    assert_eq!(
                        next[i],
                        spec::combine(level, leads, &o, &p, &m),
                        "combined, {path}, {chunks:?}"
                    );
                }
            }
        }
    }
}

/// Threads share blocks: the device gives the same words as one path alone.
#[test]
fn threads_change_nothing() {
    let (one, three) = (privet_kernels::cpu(1), privet_kernels::cpu(3));
    let chunks = Chunks::new(20, 4, 3, false);
    let n = 200_001;
    let mut rng = Seed::random().stream();
    let [x, r] = [0; 2].map(|_| rng.elements(Ring::new(20), n));
    let run = |device: &dyn privet_kernels::Device| {
        let mut tables = vec![0; words(chunks.tables(), n)];
        device.chunk_tables(&chunks, &r, &mut tables);
        let mut items = vec![0; words(chunks.leaves(), n)];
        device.chunk_leaves(&chunks, true, &x, &tables, &mut items);
        let level = &chunks.levels[0];
        let mut products = vec![0; words(level.products(), n)];
        device.chunk_products(level, &items, &mut products);
        let mut next = vec![0; words(level.results(), n)];
        device.chunk_combine(level, true, [&items, &products, &items], &mut next);
        [tables, items, products, next]
    };
    assert!(run(one.as_ref()) == run(three.as_ref()));
}
