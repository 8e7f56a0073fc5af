//! Known answers from `vectors/generate.py`, an implementation that shares no code with this crate.

use privet_prg::{Domain, HashKeys, Seed, TREES, TreeHash};

const VECTORS: &str = include_str!("../../../vectors/prg.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().as_chunks::<2>().0;
    digits.iter().map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

fn block(hex: &str) -> [u8; 16] {
    bytes(hex).try_into().unwrap()
}

/// The words after `kind` of each line of that kind.
fn lines(kind: &str) -> Vec<Vec<&'static str>> {
    let all = VECTORS.lines().map(|l| l.split(' ').collect::<Vec<_>>());
    let found: Vec<_> = all.filter(|l| l[0] == kind).map(|l| l[1..].to_vec()).collect();
    assert!(!found.is_empty(), "no vectors of kind {kind}");
    found
}

#[test]
fn streams() {
    for line in lines("stream") {
        let mut prg = Seed::from_bytes(block(line[0])).stream();
        let (skip, expected) = (line[1].parse::<usize>().unwrap(), bytes(line[2]));
        prg.fill_bytes(&mut vec![0; 16 * skip]);
        let mut out = vec![0; expected.len()];
        prg.fill_bytes(&mut out);
        assert_eq!(out, expected);
    }
}

#[test]
fn derived_seeds() {
    let domains = [Domain::Mask, Domain::Table, Domain::Dealer, Domain::Party, Domain::Record];
    let domains = domains.into_iter().chain([Domain::Session, Domain::Hash, Domain::Pair, Domain::Public]);
    let domains: Vec<_> = domains.collect();
    for line in lines("derive") {
        let number: u64 = line[1].parse().unwrap();
        let domain = *domains.iter().find(|d| **d as u64 == number).unwrap();
        let seed = Seed::from_bytes(block(line[0])).derive(domain, line[2].parse().unwrap());
        assert_eq!(seed.expose(), &block(line[3]));
    }
}

#[test]
fn tree_hashes() {
    let lines = lines("hash");
    let key = block(lines[0][0]);
    assert!(lines.iter().all(|l| block(l[0]) == key));
    let hash = TreeHash::new(HashKeys { inner: key, leaf: key });
    let word = |hex| u128::from_le_bytes(block(hex));
    let expected: Vec<u128> = lines.iter().map(|l| word(l[2])).collect();
    let seeds: Vec<u128> = lines.iter().map(|l| word(l[1])).collect();
    for n in [1, 2, 63, 64, 65, seeds.len()] {
        let (mut inner, mut leaf) = (seeds[..n].to_vec(), seeds[..n].to_vec());
        hash.inner(&mut inner);
        hash.leaf(&mut leaf);
        assert_eq!(inner, expected[..n]);
        assert_eq!(leaf, expected[..n]);
    }
}

#[test]
fn the_two_hashes_use_their_own_key() {
    let hash = TreeHash::new(HashKeys { inner: [1; 16], leaf: [2; 16] });
    let swapped = TreeHash::new(HashKeys { inner: [2; 16], leaf: [1; 16] });
    let run = |f: &dyn Fn(&mut [u128])| {
        let mut b = [5];
        f(&mut b);
        b[0]
    };
    assert_eq!(run(&|b| hash.inner(b)), run(&|b| swapped.leaf(b)));
    assert_eq!(run(&|b| hash.leaf(b)), run(&|b| swapped.inner(b)));
    assert_ne!(run(&|b| hash.inner(b)), run(&|b| hash.leaf(b)));
}

#[test]
fn children_of_half_trees_are_hashes_and_what_makes_them_nodes() {
    let hash = TreeHash::new(HashKeys { inner: [3; 16], leaf: [4; 16] });
    for n in [4, 8, 64, 1024] {
        let mut nodes = vec![0u128; n];
        Seed::from_bytes([9; 16]).stream().fill_blocks(&mut nodes);
        let mut hashes = nodes.clone();
        hash.inner(&mut hashes);
        let (mut left, mut right, mut sums) = (nodes.clone(), vec![1; n], [[0; TREES]; 2]);
        hash.children(&mut left, &mut right, u128::MAX, &mut sums);
        let mut alone = [0; TREES];
        hash.sum(&nodes, &mut alone);
        for (tree, sum) in alone.into_iter().enumerate() {
            let of = |of: &[u128]| of.iter().skip(tree).step_by(TREES).fold(0, |a, b| a ^ b);
            assert_eq!([sum, sum ^ of(&nodes)], [of(&hashes), of(&right)]);
            assert_eq!(sums.map(|sums| sums[tree]), [of(&left), of(&right)]);
        }
        let (kept, all) = (u128::MAX << 1, left.clone());
        assert_eq!(left, hashes);
        assert!(left.iter().zip(&right).zip(&nodes).all(|((left, right), node)| left ^ right == *node));
        left.copy_from_slice(&nodes);
        hash.children(&mut left, &mut right, kept, &mut sums);
        assert!(left.iter().zip(&all).all(|(left, all)| *left == all & kept));
        assert!(right.iter().all(|right| right & 1 == 0));
    }
}

#[test]
#[should_panic(expected = "a level of 4 trees")]
fn trees_that_lack_a_node_are_no_level() {
    let hash = TreeHash::new(HashKeys { inner: [3; 16], leaf: [4; 16] });
    hash.sum(&[1; 5], &mut [0; TREES]);
}
