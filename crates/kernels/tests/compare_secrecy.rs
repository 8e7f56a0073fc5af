//! What statistics can show of a key's secrecy: one party's key and one party's output shares look uniform
//! whatever the threshold. (Fixed seeds, so that the tests give the same verdict every time.)

use privet_kernels::CpuCap;
use privet_kernels::compare::cpu::{self, ComparePath};
use privet_kernels::compare::{CompareShape, spec};
use privet_prg::{Domain, HashKeys, Seed, TreeHash};
use privet_ring::Ring;

const KEYS: usize = 4096;
const BITS: u32 = 12;

/// Both parties' keys for thresholds `alpha`, and the hash.
fn deal(label: u64, alpha: &[u64]) -> (TreeHash, CompareShape, [Vec<u8>; 2]) {
    let mut prg = Seed::from_bytes([9; 16]).derive(Domain::Public, label).stream();
    let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
    let shape = CompareShape { bits: BITS, count: alpha.len() };
    let (mut roots, mut deltas) = (vec![0; alpha.len()], vec![0; alpha.len()]);
    prg.fill_blocks(&mut roots);
    prg.fill_blocks(&mut deltas);
    let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
    let [key0, key1] = &mut keys;
    let path = ComparePath::detect(CpuCap::Amx);
    cpu::generate(path, &hash, shape, alpha, &roots, &deltas, key0, key1);
    (hash, shape, keys)
}

/// Extreme, equal and random thresholds.
fn thresholds() -> Vec<(&'static str, Vec<u64>)> {
    let random = Seed::from_bytes([8; 16]).stream().elements(Ring::new(BITS), KEYS);
    let max = (1 << BITS) - 1;
    vec![
        ("zeros", vec![0; KEYS]),
        ("ones", vec![max; KEYS]),
        ("equal", vec![0xa5a; KEYS]),
        ("random", random),
    ]
}

fn assert_uniform(counts: &[u64], what: &str) {
    let total: u64 = counts.iter().sum();
    let expected = total as f64 / counts.len() as f64;
    let square: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    let z = (square - freedom) / (2.0 * freedom).sqrt();
    assert!(z.abs() < 6.0, "{what}: {z} standard deviations from uniform");
}

fn assert_balanced(ones: u64, what: &str) {
    let z = (2.0 * ones as f64 - KEYS as f64) / (KEYS as f64).sqrt();
    assert!(z.abs() < 5.0, "{what}: {z} standard deviations from balanced");
}

/// The words of every key: root, each level, leaf.
fn words(shape: CompareShape, bytes: &[u8], j: usize) -> Vec<u128> {
    let key = spec::Key::read(shape, bytes, j);
    std::iter::once(key.root).chain(key.levels).chain([key.leaf]).collect()
}

#[test]
fn every_word_of_one_key_is_uniform() {
    for (label, (name, alpha)) in thresholds().into_iter().enumerate() {
        let (_, shape, keys) = deal(label as u64, &alpha);
        for (party, bytes) in keys.iter().enumerate() {
            for w in 0..shape.depth() + 2 {
                let mut byte_counts = [0; 256];
                let mut ones = [0u64; 128];
                for j in 0..shape.count {
                    let word = words(shape, bytes, j)[w];
                    word.to_le_bytes().iter().for_each(|&b| byte_counts[b as usize] += 1);
                    ones.iter_mut().enumerate().for_each(|(i, o)| *o += (word >> i & 1) as u64);
                }
                let what = format!("{name}, party {party}, word {w}");
                assert_uniform(&byte_counts, &what);
                for (i, o) in ones.into_iter().enumerate() {
                    assert_balanced(o, &format!("{what}, bit {i}"));
                }
            }
        }
    }
}

#[test]
fn neighbouring_words_of_one_key_are_independent() {
    for (label, (name, alpha)) in thresholds().into_iter().enumerate() {
        let (_, shape, keys) = deal(100 + label as u64, &alpha);
        for w in 0..shape.depth() + 1 {
            let mut xors = [0; 256];
            let mut lows = [0; 4];
            for j in 0..shape.count {
                let words = words(shape, &keys[0], j);
                (words[w] ^ words[w + 1]).to_le_bytes().iter().for_each(|&b| xors[b as usize] += 1);
                lows[(words[w] & 1 | (words[w + 1] & 1) << 1) as usize] += 1;
            }
            assert_uniform(&xors, &format!("{name}, words {w} and {}", w + 1));
            assert_uniform(&lows, &format!("{name}, lowest bits of words {w} and {}", w + 1));
        }
    }
}

#[test]
fn one_party_s_shares_are_uniform_whatever_the_answer() {
    let x = vec![0xa5a; KEYS];
    for (label, (name, alpha)) in thresholds().into_iter().enumerate() {
        let (hash, shape, keys) = deal(200 + label as u64, &alpha);
        for (party, key) in keys.iter().enumerate() {
            let out = cpu::eval(ComparePath::detect(CpuCap::Amx), &hash, shape, key, &x, true);
            for (what, bits) in [("lt", &out.lt), ("eq", &out.eq)] {
                let ones: u64 = bits.words().iter().map(|w| w.count_ones() as u64).sum();
                assert_balanced(ones, &format!("{what}, {name}, party {party}"));
            }
        }
    }
}

#[test]
fn parties_hold_the_same_words_under_different_roots() {
    let alpha = thresholds().remove(3).1;
    let (_, shape, [key0, key1]) = deal(300, &alpha);
    for j in 0..shape.count {
        let (a, b) = (spec::Key::read(shape, &key0, j), spec::Key::read(shape, &key1, j));
        assert_eq!((a.root ^ b.root) & 1, 1, "exactly one party starts with control bit 1");
        assert!(a.levels == b.levels && a.leaf == b.leaf);
    }
}

#[test]
fn debug_of_keys_and_outputs_shows_no_secret() {
    let (hash, shape, [key0, _]) = deal(400, &[5, 6, 7]);
    let key = spec::Key::read(shape, &key0, 0);
    assert_eq!(format!("{key:?}"), "Key[5 levels]");
    let out = cpu::eval(ComparePath::Portable, &hash, shape, &key0, &[1, 2, 3], true);
    assert_eq!(format!("{out:?}"), "CompareOut { lt: BitVec[3], eq: BitVec[3] }");
}
