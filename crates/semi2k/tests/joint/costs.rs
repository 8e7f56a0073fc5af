//! What is declared of every call is what is counted: bytes exactly, exchanges exactly, transfers by their masked choices.

use super::*;
use privet_semi2k::cost::{self, Transferred};
use privet_testkit::record;
use std::collections::BTreeSet;

/// What is sent in a call by all parties, divided by pairs of them; what makes transfers apart.
fn counted(parties: usize, call: impl Fn(&mut Transfers<'_>, usize) + Sync) -> (Transferred, u64) {
    let mut mesh = Mesh::new(parties);
    let log = mesh.record();
    mesh.run(|links| {
        let me = links.me();
        with_transfers(links, |t| call(t, me));
    });
    let all: Vec<record::Sent> = log.all().concat().into_iter().filter(|sent| sent.step.id > 0).collect();
    let of_transfers = |sent: &&record::Sent| sent.step.name.ends_with("/ transfers");
    let pairs = (parties * (parties - 1) / 2) as u64;
    let extended = record::bytes(all.iter().filter(of_transfers));
    let rows: Vec<&record::Sent> = all.iter().filter(|sent| !of_transfers(sent)).collect();
    let bytes = record::bytes(rows.iter().copied());
    assert_eq!(bytes % pairs, 0, "every pair sends alike");
    let steps = rows.iter().map(|sent| sent.step.id).collect::<BTreeSet<u32>>().len() as u64;
    (Transferred { transfers: 0, bytes: bytes / pairs, steps }, extended)
}

fn check(what: &str, parties: usize, declared: Transferred, call: impl Fn(&mut Transfers<'_>, usize) + Sync) {
    let (found, extended) = counted(parties, call);
    assert_eq!((found.bytes, found.steps), (declared.bytes, declared.steps), "{what}, {parties} parties");
    // SoftSpoken with k = 4 extends 8192 transfers at a time, in each direction of each pair
    let chunk = Width::Four.chunk_bytes() as u64;
    let pairs = (parties * (parties - 1) / 2) as u64;
    let (chunks, needed) = (extended / chunk, pairs * declared.transfers);
    let room = chunks * 8192;
    assert!(
        extended % chunk == 0
            && room >= needed
            && room < needed + 2 * pairs * 8192 * u64::from(needed > 0) + 1,
        "{what}, {parties} parties: {chunks} chunks for {needed} transfers"
    );
}

#[test]
fn declared_is_counted() {
    for (parties, n) in [(2, 70), (2, 20_000), (3, 500), (5, 64)] {
        let side = usize::div_ceil(n, 64);
        for (m, k, words, pairs) in [
            (64, 64, vec![0..64], true),
            (7, 40, vec![0..7, 3..7, 6..7], true),
            (5, 3, vec![0..5], false),
            (4, 9, vec![], true),
        ] {
            let of = mask(n, m, Ring::new(k), &words, pairs);
            let declared = cost::bitwise_mask(parties, n, m, of.ring, &words, pairs);
            check("mask", parties, declared, |t, me| {
                t.bitwise_mask(&of, &bits(me, 0, m as usize * side)).unwrap();
            });
        }
        check("and", parties, cost::and(&[(side, 2), (3 * side, 1), (1, 0)]), |t, me| {
            let [x, y, z] = [0, 1, 2].map(|i| bits(me, i, side));
            let (long, last) = (bits(me, 3, 3 * side), bits(me, 4, 1));
            t.and(&[(&x, vec![&y, &z]), (&long, vec![&long]), (&last, vec![])]).unwrap();
        });
        for k in [1, 24, 64] {
            let ring = Ring::new(k);
            check("words", parties, cost::to_words(parties, side, ring), |t, me| {
                t.to_words(&[&bits(me, 0, side)], n, ring).unwrap();
            });
            check("times", parties, cost::times(parties, 1, side, &[ring]), |t, me| {
                t.times(&[(&bits(me, 0, side), vec![&words(me, 1, ring, n)])]).unwrap();
            });
            let wide = [ring, R64, ring];
            check("many times", parties, cost::times(parties, 3, side, &wide), |t, me| {
                let words: Vec<Words> = wide.iter().map(|ring| words(me, 1, *ring, n)).collect();
                let planes: Vec<Bits> = (0..3).map(|i| bits(me, i, side)).collect();
                let factors: Vec<_> = planes.iter().map(|plane| (plane, words.iter().collect())).collect();
                t.times(&factors).unwrap();
            });
            let few = n.min(500);
            check("multiply", parties, cost::multiply(parties, few, ring), |t, me| {
                t.multiply(&words(me, 0, ring, few), &words(me, 1, ring, few)).unwrap();
            });
            check("square", parties, cost::square(parties, few, ring), |t, me| {
                t.square(&words(me, 0, ring, few)).unwrap();
            });
            check("open", parties, cost::open(n, ring), |t, me| {
                t.open("y", &words(me, 0, ring, n)).unwrap();
            });
        }
    }
}

/// What a ReLU of 64 bits takes, of two parties: what docs/semi2k-preprocessing.md says.
#[test]
fn a_comparison_of_64_bits() {
    let mask = cost::bitwise_mask(2, 64, 64, R64, &[0..64], true);
    assert_eq!((mask.transfers / 64, mask.bytes / 8), (64, 64 + 2017 + 64));
    let node = cost::and(&[(1, 2)]);
    assert_eq!((node.transfers / 64, node.bytes / 8), (2, 6));
    let rest = cost::to_words(2, 1, R64) + cost::times(2, 1, 1, &[R64]);
    assert_eq!((rest.transfers / 64, rest.bytes / 8), (3, 3 + 3 * 64));
}
