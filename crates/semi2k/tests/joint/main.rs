//! Preprocessing among the parties alone: shares are shares of the right values, costs are those declared, and what a
//! coalition of all parties but one sees is uniform.

#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges of bits, of which there may be one")]

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod encrypted;
mod shares;
mod suite;
mod views;

use privet_family::{Secret, Wire};
use privet_net::Step;
use privet_ot::{Pair, Source, Width};
use privet_prg::Seed;
use privet_ring::Ring;
use privet_semi2k::{BitUse, Bits, BitsAt, MaskOf, Peer, Seats, Transfers, Words};
use privet_testkit::{Links, Mesh};
use std::ops::Range;

const R64: Ring = Ring::R64;

/// The program at every party, among its peers.
fn joint<T: Send>(parties: usize, program: impl Fn(&mut Transfers<'_>) -> T + Sync) -> Vec<T> {
    Mesh::new(parties).run(|links| with_transfers(links, &program))
}

fn with_transfers<T>(links: &mut Links, program: impl Fn(&mut Transfers<'_>) -> T) -> T {
    let (me, step) = (links.me(), Step::new(0, "start"));
    let mut pairs: Vec<Pair> = Vec::new();
    for (peer, channel) in links.others() {
        let secret = Seed::from_bytes([(10 * me + peer) as u8; 16]);
        pairs.push(Pair::start(channel, &step, Source::SoftSpoken(Width::Four), &secret).unwrap());
    }
    let peers = links.others().zip(&mut pairs);
    let peers = peers.map(|((number, channel), pair)| Peer { number, channel, pair }).collect();
    program(&mut Transfers::new(me, peers, 1))
}

fn mask(count: usize, bits: u32, ring: Ring, words: &[Range<u32>], pairs: bool) -> MaskOf {
    let at = BitsAt { wire: Wire::node(0), usage: BitUse::Mask, chunk: 0 };
    MaskOf { at, count, bits, ring, words: words.to_vec(), pairs }
}

/// A party's share of operand `number`.
fn elements(party: usize, number: u8, ring: Ring, n: usize) -> Vec<u64> {
    Seed::from_bytes([100 + 16 * number + party as u8; 16]).stream().elements(ring, n)
}

fn bits(party: usize, number: u8, words: usize) -> Bits {
    Bits::new(Seats::one(party), vec![Secret::new(elements(party, number, R64, words))])
}

fn words(party: usize, number: u8, ring: Ring, n: usize) -> Words {
    Words::new(Seats::one(party), ring, vec![Secret::new(elements(party, number, ring, n))])
}

/// The XOR of all parties' shares.
fn xor<'a>(shares: impl IntoIterator<Item = &'a Bits>) -> Vec<u64> {
    let shares: Vec<&Bits> = shares.into_iter().collect();
    (0..shares[0].words()).map(|i| shares.iter().fold(0, |sum, s| sum ^ s.own()[i])).collect()
}

/// The sum of all parties' shares.
fn sum<'a>(shares: impl IntoIterator<Item = &'a Words>) -> Vec<u64> {
    let shares: Vec<&Words> = shares.into_iter().collect();
    let at = |i: usize| shares.iter().fold(0u64, |sum, s| sum.wrapping_add(s.own()[i]));
    (0..shares[0].len()).map(|i| shares[0].ring().wrap(at(i))).collect()
}

fn bit(plane: &[u64], i: usize) -> u64 {
    plane[i / 64] >> (i % 64) & 1
}
