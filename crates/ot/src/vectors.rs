//! Known answers from `vectors/generate.py`, an implementation that shares no code with this crate.

use crate::cpu::Path;
use crate::hash::{Pads, Trees};
use crate::lpn::Rows;
use crate::spcot::{Quad, expand, masked, punctured, sums};
use privet_prg::Seed;

const VECTORS: &str = include_str!("../../../vectors/ot.txt");

/// The words after `kind` of each line of that kind.
fn lines(kind: &str) -> Vec<Vec<&'static str>> {
    let all = VECTORS.lines().map(|l| l.split(' ').collect::<Vec<_>>());
    let found: Vec<_> = all.filter(|l| l[0] == kind).map(|l| l[1..].to_vec()).collect();
    assert!(!found.is_empty(), "no vectors of kind {kind}");
    found
}

fn blocks(hex: &str) -> Vec<u128> {
    let block = |digits: &[u8; 32]| {
        u128::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap().swap_bytes()
    };
    hex.as_bytes().as_chunks::<32>().0.iter().map(block).collect()
}

fn quads(hex: &str) -> Vec<Quad> {
    blocks(hex).as_chunks().0.to_vec()
}

fn seed(hex: &str) -> Seed {
    Seed::from_bytes(blocks(hex)[0].to_le_bytes())
}

#[test]
fn trees() {
    let all = lines("trees").into_iter().zip(lines("base")).zip(lines("message"));
    for (((head, base), message), (leaves, found)) in
        all.zip(lines("leaves").into_iter().zip(lines("punctured")))
    {
        let (depth, number) = (head[0].parse::<usize>().unwrap(), head[1].parse().unwrap());
        let hash = Trees::of_round(&seed(head[2]), number);
        let (delta, roots) = (blocks(head[3])[0], quads(head[4])[0]);
        let (q, t) = (quads(base[0]), quads(base[1]));
        for path in Path::all() {
            let (mut out, mut parents) = (vec![0; 4 << depth], vec![0; 2 << depth]);
            let mut sent = Vec::new();
            sums(&hash, delta, &roots, &mut parents, |level, sum| sent.push(masked(sum, &q[level])));
            expand(&hash, delta, &roots, &mut out);
            assert!(sent == quads(message[0]) && out == blocks(leaves[0]), "{path:?}, depth {depth}");
            punctured(path, &hash, &t, &sent, &mut out);
            assert!(out == blocks(found[0]), "{path:?}, depth {depth}");
        }
    }
}

#[test]
fn folds() {
    for line in lines("fold") {
        let log_k: u32 = line[0].parse().unwrap();
        let mut table = vec![0; 1 << log_k];
        seed(line[1]).stream().fill_blocks(&mut table);
        let expected = blocks(line[3]);
        for path in Path::all() {
            let mut out = vec![0; expected.len()];
            Rows::new(&seed(line[2]), log_k).fold(path, &table, &mut out);
            assert_eq!(out, expected, "{path:?}, 2^{log_k}");
        }
    }
}

#[test]
fn pads() {
    for line in lines("pads") {
        let mut found = blocks(line[2]);
        Pads::new(seed(line[1])).tccr(line[0].parse().unwrap(), &mut found);
        assert_eq!(found, blocks(line[3]));
    }
}
