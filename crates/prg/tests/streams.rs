//! Streams and seeds: distinct where they must be, reproducible where they must be, uniform, unprinted.

use privet_prg::{Domain, HashKeys, Prg, Seed};
use privet_ring::Ring;
use std::collections::HashSet;

const DOMAINS: [Domain; 9] = [
    Domain::Mask,
    Domain::Table,
    Domain::Dealer,
    Domain::Party,
    Domain::Record,
    Domain::Session,
    Domain::Hash,
    Domain::Pair,
    Domain::Public,
];

fn fixed() -> Seed {
    Seed::from_bytes(*b"a seed for tests")
}

/// Pearson's statistic of counts against the uniform distribution.
fn chi_square(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let expected = total as f64 / counts.len() as f64;
    counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum()
}

/// Within five standard deviations of its mean, on both sides: too even is wrong as well.
fn assert_uniform(counts: &[u64], what: &str) {
    let freedom = counts.len() as f64 - 1.0;
    let z = (chi_square(counts) - freedom) / (2.0 * freedom).sqrt();
    assert!(z.abs() < 5.0, "{what}: {z} standard deviations from uniform");
}

#[test]
fn no_two_seeds_are_equal() {
    let mut seen = HashSet::new();
    for seed in [fixed(), Seed::random(), Seed::random()] {
        assert!(seen.insert(*seed.expose()));
        for domain in DOMAINS {
            for index in (0..300).chain([u64::MAX, 1 << 32, 1 << 63]) {
                assert!(seen.insert(*seed.derive(domain, index).expose()), "{domain:?} {index}");
            }
        }
        let mut prg = seed.stream();
        for _ in 0..300 {
            assert!(seen.insert(*prg.seed().expose()), "a block of the stream is a derived seed");
        }
    }
}

#[test]
fn streams_of_different_domains_share_no_block() {
    let mut seen = HashSet::new();
    for (domain, index) in DOMAINS.into_iter().flat_map(|d| (0..4).map(move |i| (d, i))) {
        let mut blocks = [0; 100];
        fixed().derive(domain, index).stream().fill_blocks(&mut blocks);
        for b in blocks {
            assert!(seen.insert(b));
        }
    }
}

#[test]
fn a_stream_depends_on_seed_and_calls_alone() {
    let draw = |prg: &mut Prg| (prg.elements(Ring::new(37), 5), prg.bits(130), prg.seed());
    let (mut a, mut b) = (fixed().stream(), fixed().stream());
    for _ in 0..3 {
        let (x, y) = (draw(&mut a), draw(&mut b));
        assert!(x == y);
    }
    assert_ne!(draw(&mut a).0, fixed().stream().elements(Ring::new(37), 5));
}

#[test]
fn forms_of_one_stream_agree() {
    let mut bytes = [0; 16 * 130];
    fixed().stream().fill_bytes(&mut bytes);
    let mut blocks = [0; 130];
    fixed().stream().fill_blocks(&mut blocks);
    assert_eq!(blocks.map(u128::to_le_bytes).as_flattened(), bytes);
    let words = fixed().stream().elements(Ring::R64, 260);
    assert_eq!(words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>(), bytes);
    // More words than are masked at a time, and an odd number of them.
    let narrow = fixed().stream().elements(Ring::new(13), 2345);
    let wide = fixed().stream().elements(Ring::R64, 2345);
    assert_eq!(narrow, wide.iter().map(|w| w & 0x1fff).collect::<Vec<_>>());
    let bits = fixed().stream().bits(100);
    assert_eq!(bits.words(), [words[0], words[1] & ((1 << 36) - 1)]);
}

#[test]
fn words_of_a_stream_come_again() {
    let mut stream = fixed().stream();
    stream.elements(Ring::R64, 7);
    let before = stream.again(0);
    let drawn = stream.elements(Ring::R64, 3000);
    for start in [0, 2, 1024, 2998, 3000] {
        let found = before.again(start).elements(Ring::R64, 3000 - start);
        assert_eq!(found, drawn[start..], "from word {start} on");
    }
    assert!(std::panic::catch_unwind(|| before.again(1)).is_err(), "from the middle of a block");
}

#[test]
fn a_call_that_ends_within_a_block_drops_the_rest() {
    for n in [1, 15, 16, 17, 31] {
        let mut prg = fixed().stream();
        prg.fill_bytes(&mut vec![0; n]);
        let mut next = [0; 1];
        prg.fill_blocks(&mut next);
        let mut all = [0; 3];
        fixed().stream().fill_blocks(&mut all);
        assert_eq!(next[0], all[n.div_ceil(16)]);
    }
    let mut prg = fixed().stream();
    prg.fill_bytes(&mut []);
    assert_eq!(prg.elements(Ring::R64, 2), fixed().stream().elements(Ring::R64, 2));
}

#[test]
fn bytes_and_elements_are_uniform() {
    let mut bytes = vec![0; 1 << 20];
    fixed().stream().fill_bytes(&mut bytes);
    let mut counts = [0; 256];
    bytes.iter().for_each(|&b| counts[b as usize] += 1);
    assert_uniform(&counts, "bytes");
    // Pairs of neighbouring bytes: a stream with a period would show here.
    let mut pairs = vec![0; 1 << 16];
    bytes.windows(2).step_by(2).for_each(|p| pairs[p[0] as usize | (p[1] as usize) << 8] += 1);
    assert_uniform(&pairs, "pairs of bytes");
    for k in [8, 9, 31, 40, 63, 64] {
        let ring = Ring::new(k);
        let elements = fixed().derive(Domain::Mask, k as u64).stream().elements(ring, 1 << 18);
        assert!(elements.iter().all(|&v| v == ring.wrap(v)));
        let (mut low, mut high) = ([0; 256], [0; 256]);
        for v in elements {
            low[(v & 255) as usize] += 1;
            high[(v >> (k - 8)) as usize] += 1;
        }
        assert_uniform(&low, "low bits of elements");
        assert_uniform(&high, "high bits of elements");
    }
}

#[test]
fn every_bit_of_a_derived_seed_is_balanced() {
    let n = 1 << 14;
    let mut ones = [0u64; 128];
    for index in 0..n {
        let seed = u128::from_le_bytes(*fixed().derive(Domain::Record, index).expose());
        ones.iter_mut().enumerate().for_each(|(i, o)| *o += (seed >> i & 1) as u64);
    }
    for o in ones {
        let z = (2.0 * o as f64 - n as f64) / (n as f64).sqrt();
        assert!(z.abs() < 5.0, "a bit of derived seeds is {z} standard deviations from balanced");
    }
}

#[test]
fn debug_shows_no_secret() {
    let seed = Seed::from_bytes([0xab; 16]);
    let mut prg = seed.stream();
    prg.fill_bytes(&mut [0; 40]);
    for text in [format!("{seed:?} {seed:#?}"), format!("{prg:?} {prg:#?}")] {
        assert!(!text.chars().any(|c| c.is_ascii_digit()), "{text}");
        assert!(!text.to_lowercase().contains("ab"), "{text}");
    }
}

#[test]
fn equality_of_seeds() {
    assert!(fixed() == fixed().clone());
    let mut other = *fixed().expose();
    other[15] ^= 1;
    assert!(fixed() != Seed::from_bytes(other));
}

#[test]
fn hash_keys_are_fresh_and_distinct() {
    let (a, b) = (HashKeys::from_seed(&Seed::random()), HashKeys::from_seed(&Seed::random()));
    assert_ne!(a, b);
    assert_ne!(a.inner, a.leaf);
    assert_eq!(HashKeys::from_seed(&fixed()), HashKeys::from_seed(&fixed()));
}
