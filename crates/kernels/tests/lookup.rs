//! Look-up keys against their plain definition, and against tables.

use privet_kernels::lookup::spec::{self, Key};
use privet_kernels::{LookupShape, Read, cpu};
use privet_prg::{Domain, HashKeys, Seed, TreeHash};
use privet_ring::Ring;

/// Both parties' keys of a batch, made by the device.
struct Dealt {
    hash: TreeHash,
    alpha: Vec<u64>,
    words: Vec<u64>,
    roots: Vec<u128>,
    deltas: Vec<u128>,
    keys: [Vec<u8>; 2],
}

fn deal(shape: LookupShape, words: Option<&dyn Fn(usize) -> Vec<u64>>) -> Dealt {
    let mut prg = Seed::from_bytes([5; 16]).derive(Domain::Public, shape.bits as u64).stream();
    let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
    let n = shape.count;
    let mut alpha = prg.elements(Ring::new(shape.bits), n);
    alpha[0] = 0;
    alpha[n - 1] = Ring::new(shape.bits).mask();
    let words = match words {
        Some(words) => (0..n).flat_map(words).collect(),
        None => prg.elements(Ring::R64, n * shape.words),
    };
    let (mut roots, mut deltas) = (vec![0; n], vec![0; n]);
    prg.fill_blocks(&mut roots);
    prg.fill_blocks(&mut deltas);
    let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
    let [key0, key1] = &mut keys;
    cpu(1).lookup_gen(&hash, shape, &alpha, &words, &roots, &deltas, key0, key1);
    Dealt { hash, alpha, words, roots, deltas, keys }
}

#[test]
fn keys_are_those_of_the_definition_and_share_the_words() {
    for (bits, words, count) in [(1, 1, 3), (1, 3, 2), (2, 2, 5), (5, 1, 300), (7, 3, 9), (10, 5, 2)] {
        let shape = LookupShape { bits, words, count };
        let d = deal(shape, None);
        for j in 0..count {
            let own = &d.words[j * words..(j + 1) * words];
            let expected = spec::generate(&d.hash, shape, d.alpha[j], own, d.roots[j], d.deltas[j]);
            for (bytes, expected) in d.keys.iter().zip(&expected) {
                assert_eq!(&Key::read(shape, bytes, j), expected, "key {j} of {shape:?}");
                assert_eq!(expected.to_bytes(), bytes[j * shape.key_row()..(j + 1) * shape.key_row()]);
            }
            let [a, b] = [0, 1].map(|p| spec::expand(&d.hash, shape, &expected[p], p == 1));
            assert_eq!(a.len(), words << bits);
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                let wanted = if (i / words) as u64 == d.alpha[j] { own[i % words] } else { 0 };
                assert_eq!(a.wrapping_add(b), wanted, "word {i} of key {j} of {shape:?}");
            }
        }
    }
}

#[test]
fn tables_are_read_at_the_difference() {
    for bits in [1, 3, 8] {
        let shape = LookupShape { bits, words: 1, count: 200 };
        let d = deal(shape, Some(&|_| vec![1]));
        let mut prg = Seed::from_bytes([6; 16]).stream();
        let tables: Vec<Vec<i64>> = (0..3)
            .map(|_| prg.elements(Ring::R64, 1 << bits).into_iter().map(|w| w as i64).collect())
            .collect();
        let points = prg.elements(Ring::new(bits), shape.count);
        for threads in [1, 3] {
            let eval = |p: usize| {
                let (device, read) = (cpu(threads), Read::Tables(&tables));
                device.lookup_eval(&d.hash, shape, p == 1, &d.keys[p], &points, &read)
            };
            let (a, b) = (eval(0), eval(1));
            for j in 0..shape.count {
                let at = Ring::new(bits).wrap(points[j].wrapping_sub(d.alpha[j])) as usize;
                for (t, table) in tables.iter().enumerate() {
                    let found = a[j * tables.len() + t].wrapping_add(b[j * tables.len() + t]);
                    assert_eq!(found, table[at] as u64, "{bits} bits, key {j}, table {t}");
                }
            }
        }
    }
}

#[test]
fn quadratics_are_those_of_the_distance() {
    for bits in [1, 4, 9] {
        let shape = LookupShape { bits, words: 3, count: 150 };
        let r = |j: usize| (j as u64).wrapping_mul(0x9e37_79b9) & 0xff_ffff;
        let d = deal(shape, Some(&|j| vec![1, r(j), r(j) * r(j)]));
        let mut prg = Seed::from_bytes([7; 16]).stream();
        let pieces: Vec<[i64; 3]> = (0..1 << bits)
            .map(|_| prg.elements(Ring::R64, 3).try_into().unwrap())
            .map(|c: [u64; 3]| c.map(|c| c as i64))
            .collect();
        let points = prg.elements(Ring::new(bits), shape.count);
        let lows = prg.elements(Ring::new(24), shape.count);
        let eval = |p: usize| {
            let read = Read::Quadratics(&pieces, &lows);
            cpu(2).lookup_eval(&d.hash, shape, p == 1, &d.keys[p], &points, &read)
        };
        let (a, b) = (eval(0), eval(1));
        for j in 0..shape.count {
            let c =
                pieces[Ring::new(bits).wrap(points[j].wrapping_sub(d.alpha[j])) as usize].map(|c| c as u64);
            let t = lows[j].wrapping_sub(r(j));
            let expected = c[2].wrapping_mul(t).wrapping_add(c[1]).wrapping_mul(t).wrapping_add(c[0]);
            assert_eq!(a[j].wrapping_add(b[j]), expected, "{bits} bits, key {j}");
        }
    }
}
