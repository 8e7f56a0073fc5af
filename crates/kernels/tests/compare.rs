//! Comparison keys: correct against cleartext, equal to the plain definition on every path.

use privet_kernels::compare::cpu::{self, ComparePath};
use privet_kernels::compare::{BLOCK, CompareShape, spec};
use privet_prg::{Domain, HashKeys, Prg, Seed, TreeHash};
use privet_ring::Ring;
use proptest::prelude::*;

/// Batches of every awkward length around a block.
const COUNTS: [usize; 8] = [0, 1, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5];

/// A dealt batch and its public points, reproducible from `index`.
struct Case {
    shape: CompareShape,
    hash: TreeHash,
    alpha: Vec<u64>,
    x: Vec<u64>,
    roots: Vec<u128>,
    deltas: Vec<u128>,
}

fn stream(index: u64) -> Prg {
    Seed::from_bytes([7; 16]).derive(Domain::Public, index).stream()
}

impl Case {
    fn new(bits: u32, count: usize, index: u64) -> Case {
        let mut prg = stream(index);
        let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
        let ring = Ring::new(bits);
        let alpha: Vec<u64> = prg
            .elements(ring, count)
            .iter()
            .zip(prg.elements(Ring::R64, count))
            .map(|(&a, choice)| match choice % 8 {
                0 => 0,
                1 => ring.mask(),
                2 => ring.wrap(a & 127),
                _ => a,
            })
            .collect();
        let x = alpha
            .iter()
            .zip(prg.elements(ring, count).iter().zip(prg.elements(Ring::R64, count)))
            .map(|(&a, (&x, choice))| match choice % 8 {
                0 => 0,
                1 => ring.mask(),
                2 => a,
                3 => ring.wrap(a.wrapping_add(1)),
                4 => ring.wrap(a.wrapping_sub(1)),
                // The same leaf, or a path that leaves alpha's at a random level.
                5 => a ^ (x & 127 & ring.mask()),
                6 => a ^ (1 << ((choice >> 8) % bits as u64)),
                _ => x,
            })
            .collect();
        let (mut roots, mut deltas) = (vec![0; count], vec![0; count]);
        prg.fill_blocks(&mut roots);
        prg.fill_blocks(&mut deltas);
        Case { shape: CompareShape { bits, count }, hash, alpha, x, roots, deltas }
    }

    fn deal(&self, path: ComparePath) -> [Vec<u8>; 2] {
        let mut keys = [vec![0xa5; self.shape.key_bytes()], vec![0x5a; self.shape.key_bytes()]];
        let [key0, key1] = &mut keys;
        cpu::generate(path, &self.hash, self.shape, &self.alpha, &self.roots, &self.deltas, key0, key1);
        keys
    }

    fn deal_by_spec(&self) -> [Vec<u8>; 2] {
        let mut keys = [vec![0; self.shape.key_bytes()], vec![0; self.shape.key_bytes()]];
        for j in 0..self.shape.count {
            let pair =
                spec::generate(&self.hash, self.shape.bits, self.alpha[j], self.roots[j], self.deltas[j]);
            for (key, bytes) in pair.iter().zip(&mut keys) {
                key.write(self.shape, bytes, j);
            }
        }
        keys
    }
}

fn paths() -> impl Iterator<Item = ComparePath> {
    ComparePath::ALL.into_iter().filter(|p| p.available())
}

#[test]
fn spec_is_correct_on_every_domain() {
    for bits in 1..=64 {
        let case = Case::new(bits, 40, bits as u64);
        for j in 0..case.shape.count {
            let (alpha, x) = (case.alpha[j], case.x[j]);
            let keys = spec::generate(&case.hash, bits, alpha, case.roots[j], case.deltas[j]);
            let [a, b] = keys.map(|key| spec::eval(&case.hash, bits, &key, x));
            assert_eq!(a.lt ^ b.lt, x < alpha, "n = {bits}, x = {x:#x}, alpha = {alpha:#x}");
            assert_eq!(a.eq ^ b.eq, x == alpha, "n = {bits}, x = {x:#x}, alpha = {alpha:#x}");
        }
    }
}

#[test]
fn small_domains_are_correct_on_every_pair() {
    for (bits, path) in (1..=8).flat_map(|bits| paths().map(move |p| (bits, p))) {
        let size = 1u64 << bits;
        let x: Vec<u64> = (0..size).collect();
        for alpha in 0..size {
            let mut case = Case::new(bits, size as usize, alpha);
            case.alpha = vec![alpha; size as usize];
            let keys = case.deal(path);
            let [a, b] = keys.map(|key| cpu::eval(path, &case.hash, case.shape, &key, &x, true));
            for (j, &x) in x.iter().enumerate() {
                assert_eq!(a.lt.get(j) ^ b.lt.get(j), (x < alpha) as u64);
                assert_eq!(a.eq.get(j) ^ b.eq.get(j), (x == alpha) as u64);
            }
        }
    }
}

#[test]
fn paths_deal_the_bytes_of_the_spec() {
    for (bits, count) in (1..=64).zip(COUNTS.into_iter().cycle()) {
        let case = Case::new(bits, count, 100 + bits as u64);
        let expected = case.deal_by_spec();
        for path in paths() {
            assert!(case.deal(path) == expected, "{path:?}, n = {bits}, {count} keys");
        }
    }
}

#[test]
fn paths_evaluate_as_the_spec() {
    for (bits, count) in (1..=64).zip(COUNTS.into_iter().cycle().skip(3)) {
        let case = Case::new(bits, count, 200 + bits as u64);
        for (party, key) in case.deal_by_spec().iter().enumerate() {
            let expected: Vec<_> = (0..count)
                .map(|j| spec::eval(&case.hash, bits, &spec::Key::read(case.shape, key, j), case.x[j]))
                .collect();
            for path in paths() {
                let out = cpu::eval(path, &case.hash, case.shape, key, &case.x, true);
                assert_eq!((out.lt.len(), out.eq.len()), (count, count));
                for (j, e) in expected.iter().enumerate() {
                    let at = format!("{path:?}, n = {bits}, key {j} of {count}, party {party}");
                    assert_eq!(out.lt.get(j) == 1, e.lt, "lt: {at}");
                    assert_eq!(out.eq.get(j) == 1, e.eq, "eq: {at}");
                }
                let without = cpu::eval(path, &case.hash, case.shape, key, &case.x, false);
                assert_eq!(without.lt, out.lt);
                assert!(without.eq.is_empty());
            }
        }
    }
}

#[test]
fn key_bytes_and_aes_calls() {
    let shape = |bits, count| CompareShape { bits, count };
    assert_eq!(shape(63, 1).key_bytes(), 928);
    assert_eq!(shape(64, 1).aes_calls(), 58);
    assert_eq!(shape(63, 10).aes_calls(), 570);
    for bits in 1..=7 {
        assert_eq!((shape(bits, 3).depth(), shape(bits, 3).key_bytes()), (0, 96));
    }
    assert_eq!(shape(8, 0).key_bytes(), 0);
}

#[test]
fn a_batch_cut_at_a_block_is_two_batches() {
    let case = Case::new(19, 2 * BLOCK + 9, 900);
    let [key, _] = case.deal_by_spec();
    let first = CompareShape { count: BLOCK, ..case.shape };
    let rest = CompareShape { count: BLOCK + 9, ..case.shape };
    let (head, tail) = key.split_at(first.key_bytes());
    for path in paths() {
        let whole = cpu::eval(path, &case.hash, case.shape, &key, &case.x, false).lt;
        let head = cpu::eval(path, &case.hash, first, head, &case.x[..BLOCK], false).lt;
        let tail = cpu::eval(path, &case.hash, rest, tail, &case.x[BLOCK..], false).lt;
        assert_eq!(whole.words(), [head.words(), tail.words()].concat());
    }
}

#[test]
fn the_lowest_bit_of_an_offset_does_not_matter() {
    let mut case = Case::new(11, 5, 901);
    let keys = case.deal(ComparePath::Portable);
    case.deltas.iter_mut().for_each(|d| *d ^= 1);
    assert!(case.deal(ComparePath::Portable) == keys);
}

#[test]
fn caps_choose_the_path() {
    use privet_kernels::CpuCap;
    assert_eq!(ComparePath::detect(CpuCap::Portable), ComparePath::Portable);
    for cap in CpuCap::ALL {
        assert!(ComparePath::detect(cap).available());
        assert!(ComparePath::detect(cap) <= ComparePath::detect(CpuCap::Amx));
    }
    assert!(ComparePath::detect(CpuCap::Avx2) <= ComparePath::AesNi);
}

#[test]
#[should_panic(expected = "1 to 64 bits")]
fn a_domain_of_no_bits_is_refused() {
    let shape = CompareShape { bits: 0, count: 1 };
    cpu::eval(ComparePath::Portable, &Case::new(1, 1, 0).hash, shape, &[0; 32], &[0], false);
}

#[test]
#[should_panic(expected = "one point and one key an element")]
fn a_short_key_is_refused() {
    let case = Case::new(20, 2, 1);
    let [key, _] = case.deal_by_spec();
    cpu::eval(ComparePath::Portable, &case.hash, case.shape, &key[1..], &case.x, false);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "outside the domain")]
fn a_point_outside_the_domain_is_refused_in_debug_builds() {
    let mut case = Case::new(20, 2, 2);
    let [key, _] = case.deal_by_spec();
    case.x[1] = 1 << 20;
    cpu::eval(ComparePath::Portable, &case.hash, case.shape, &key, &case.x, false);
}

proptest! {
    #[test]
    fn comparisons_are_correct(bits in 1u32..=64, alpha: u64, x: u64, near in 0u8..4, seed: [u8; 16]) {
        let ring = Ring::new(bits);
        let alpha = ring.wrap(alpha);
        let x = ring.wrap([alpha, alpha.wrapping_add(1), alpha.wrapping_sub(1), x][near as usize]);
        let mut prg = Seed::from_bytes(seed).stream();
        let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
        let mut secrets = [0; 2];
        prg.fill_blocks(&mut secrets);
        let case = Case {
            shape: CompareShape { bits, count: 1 },
            hash,
            alpha: vec![alpha],
            x: vec![x],
            roots: vec![secrets[0]],
            deltas: vec![secrets[1]],
        };
        for path in paths() {
            let [a, b] = case.deal(path).map(|key| cpu::eval(path, &case.hash, case.shape, &key, &case.x, true));
            prop_assert_eq!(a.lt.get(0) ^ b.lt.get(0), (x < alpha) as u64);
            prop_assert_eq!(a.eq.get(0) ^ b.eq.get(0), (x == alpha) as u64);
        }
    }
}
