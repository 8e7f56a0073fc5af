//! Correlated OTs by SoftSpokenOT (Roy, CRYPTO 2022, eprint 2022/192), semi-honest: k bits of Delta at a time.
//!
//! Group g of k bits of Delta is a tree of 2^k seeds; the receiver has all, the sender all but number `Delta_g`. Of a
//! seed's stream r_x both make `u = XOR r_x` and, for bit b of x, `v_b = XOR of the r_x with that bit`. The sender, in
//! whose sums the missing stream is replaced by some value, has `w_b = v_b ^ Delta_b u` of it: the value cancels. So all
//! sums are made alike by both, and no index is secret. With `d_g = u_g ^ u_0`, which the receiver sends for g > 0,
//! `q = w ^ Delta_g d_g` and `t = v` satisfy `q ^ t = Delta c` for the one choice vector `c = u_0`.
//!
//! Per transfer: 2^k / k AES at both, `128 / k - 1` bits from the receiver to the sender.

use crate::base::{BASE, Chosen, Pairs};
use crate::cpu::{Path, by_path};
use crate::delta::Delta;
use crate::error::{Malformed, blocks, exact};
use crate::ggm;
use crate::hash::Trees;
use crate::mutation;
use crate::transpose::{LANES, ROWS, transpose};
use privet_prg::wiped::clear;
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use zeroize::Zeroizing;

/// Transfers made at a time. AGREEMENT.
pub const CHUNK: usize = 8192;
/// Words of a column of a chunk.
const WORDS: usize = CHUNK / 64;
type Column = [u64; WORDS];

/// Bytes of the receiver's message that sets up a direction: two blocks a bit of Delta, whatever k.
pub const SETUP_BYTES: usize = BASE * 32;

const SETUP: &str = "SoftSpoken, sums of the trees";
const EXTEND: &str = "SoftSpoken, corrections";

/// Bits of Delta to a tree. AGREEMENT; larger sends less and computes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 63 bits and 2 AES a transfer.
    Two = 2,
    /// 31 bits and 4 AES a transfer.
    Four = 4,
    /// 15 bits and 32 AES a transfer.
    Eight = 8,
}

impl Width {
    /// Every width.
    pub const ALL: [Width; 3] = [Width::Two, Width::Four, Width::Eight];

    const fn groups(self) -> usize {
        BASE / self as usize
    }

    /// Bits that the receiver sends for a transfer.
    pub const fn bits(self) -> u64 {
        self.groups() as u64 - 1
    }

    /// Bytes of the receiver's message for a chunk.
    pub const fn chunk_bytes(self) -> usize {
        (self.groups() - 1) * (CHUNK / 8)
    }
}

/// The streams of one party: 2^k a group, and room for a chunk's sums, used again for each.
struct Streams {
    width: Width,
    groups: Vec<Vec<Prg>>,
    sums: Chunk,
}

/// Buffers of one chunk, wiped when dropped.
struct Chunk {
    u: Box<[Column]>,
    v: Box<[Column]>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        clear(self.u.as_flattened_mut());
        clear(self.v.as_flattened_mut());
    }
}

by_path! {
    fn xor(into: &mut Column, other: &Column) = xor_body
}

#[inline(always)]
fn xor_body(into: &mut Column, other: &Column) {
    for (a, b) in into.iter_mut().zip(other) {
        *a ^= b;
    }
}

by_path! {
    fn sum(into: &mut Column, a: &Column, b: &Column) = sum_body
}

#[inline(always)]
fn sum_body(into: &mut Column, a: &Column, b: &Column) {
    for ((into, a), b) in into.iter_mut().zip(a).zip(b) {
        *into = a ^ b;
    }
}

impl Streams {
    fn of(width: Width, trees: impl Iterator<Item = ggm::Leaves>) -> Streams {
        let stream = |leaf: &u128| Seed::from_bytes(leaf.to_le_bytes()).stream();
        let columns = |n: usize| vec![[0; WORDS]; n].into_boxed_slice();
        let sums = Chunk { u: columns(width.groups()), v: columns(BASE) };
        Streams { width, groups: trees.map(|leaves| leaves.iter().map(stream).collect()).collect(), sums }
    }

    /// The next chunk's sums: u of every group, v of every bit of Delta.
    ///
    /// Streams are summed as a binary counter counts: two sums over blocks of 2^b seeds make one over 2^(b+1), and the
    /// second of the two is the part with bit b set. Bit b is column k - 1 - b of the group: level and base OT, too.
    fn next(&mut self, path: Path) -> &mut Chunk {
        let (k, Chunk { u, v }) = (self.width as usize, &mut self.sums);
        let mut waiting = Zeroizing::new(vec![[0; WORDS]; k]);
        let mut now: Zeroizing<Column> = Zeroizing::new([0; WORDS]);
        for ((streams, u), v) in self.groups.iter_mut().zip(u).zip(v.chunks_mut(k)) {
            for (x, stream) in streams.iter_mut().enumerate() {
                let carries = x.trailing_ones() as usize;
                if carries == 0 {
                    stream.fill(Ring::R64, &mut waiting[0]);
                    continue;
                }
                stream.fill(Ring::R64, &mut *now);
                for (bit, v) in v.iter_mut().rev().enumerate().take(carries) {
                    // of all seeds below 2^(bit + 1), the last one is the first to carry so far
                    match x >> (bit + 1) {
                        0 => *v = *now,
                        _ => xor(path, v, &now),
                    }
                    if bit + 1 < carries {
                        xor(path, &mut now, &waiting[bit]);
                    }
                }
                let (low, high) = waiting.split_at_mut(carries);
                sum(path, high.first_mut().unwrap_or(u), &now, &low[carries - 1]);
            }
        }
        &mut self.sums
    }
}

/// Columns to blocks; the lowest bit of each block becomes its choice: `choice` at the receiver, 0 at the sender.
fn finish(path: Path, columns: &[Column], choice: Option<&Column>, out: &mut [u128]) {
    debug_assert!(columns.len() == 128 && out.len() == CHUNK);
    let zero = [0; WORDS];
    let mut part = Zeroizing::new([[0; LANES]; 128]);
    for (i, rows) in out.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        let at = i * LANES..(i + 1) * LANES;
        for (c, (part, column)) in part.iter_mut().zip(columns).enumerate() {
            let column = if c == 0 { choice.unwrap_or(&zero) } else { column };
            part.copy_from_slice(&column[at.clone()]);
        }
        transpose(path, &mut part, rows);
    }
}

/// The side with the choices: makes the trees, and for each chunk the corrections.
pub struct Receiver(Streams);

/// The side with Delta.
pub struct Sender {
    streams: Streams,
    delta: Delta,
}

impl Receiver {
    /// From the base OTs in which this party was the *sender*. Gives the message.
    pub fn start(width: Width, public: &Seed, base: &Pairs, prg: &mut Prg) -> (Receiver, Vec<u8>) {
        let hash = Trees::of_round(public, 0);
        let mut roots = Zeroizing::new(vec![0; width.groups()]);
        prg.fill_blocks(&mut roots);
        let mut message = Vec::with_capacity(SETUP_BYTES);
        let trees = roots.iter().zip(base.chunks(width as usize));
        let trees = trees.map(|(root, pads)| ggm::deal(&hash, *root, pads, &mut message));
        let streams = Streams::of(width, trees);
        (Receiver(streams), message)
    }

    /// The next [`CHUNK`] transfers: blocks with random choices in their lowest bits, and the message.
    pub fn extend(&mut self, out: &mut [u128]) -> Vec<u8> {
        let (path, width) = (Path::detect(), self.0.width);
        let sums = self.0.next(path);
        let (choice, others) = sums.u.split_first().expect("a width has groups");
        let mut message = Vec::with_capacity(width.chunk_bytes());
        for u in others {
            let mut d = *u;
            if !mutation::active("corrections-unmasked") {
                xor(path, &mut d, choice);
            }
            let at = message.len();
            message.resize(at + 8 * WORDS, 0);
            for (bytes, word) in message[at..].as_chunks_mut::<8>().0.iter_mut().zip(&d) {
                *bytes = word.to_le_bytes();
            }
        }
        finish(path, &sums.v, Some(choice), out);
        message
    }
}

impl Sender {
    /// From the base OTs in which this party was the receiver with Delta's bits as choices, and the receiver's message.
    pub fn start(
        width: Width,
        public: &Seed,
        delta: &Delta,
        base: &Chosen,
        message: &[u8],
    ) -> Result<Sender, Malformed> {
        let hash = Trees::of_round(public, 0);
        let k = width as usize;
        let sums = blocks(SETUP, message, 2 * BASE)?;
        let trees = base.chunks(k).zip(sums.chunks(2 * k)).enumerate().map(|(g, (chosen, sums))| {
            let missing = (0..k).fold(0, |v, j| v << 1 | (delta.mask(g * k + j) & 1));
            ggm::punctured(&hash, missing, chosen, sums)
        });
        Ok(Sender { streams: Streams::of(width, trees), delta: delta.clone() })
    }

    /// The next [`CHUNK`] transfers, from the receiver's message.
    pub fn extend(&mut self, message: &[u8], out: &mut [u128]) -> Result<(), Malformed> {
        let path = Path::detect();
        let width = self.streams.width;
        let bytes = exact(EXTEND, message, width.chunk_bytes())?;
        let sums = self.streams.next(path);
        let k = width as usize;
        let corrections = bytes.as_chunks::<8>().0.chunks(WORDS);
        for (g, (u, v)) in sums.u.iter_mut().zip(sums.v.chunks_mut(k)).enumerate() {
            if let Some(d) = g.checked_sub(1).and_then(|g| corrections.clone().nth(g)) {
                u.iter_mut().zip(d).for_each(|(u, d)| *u ^= u64::from_le_bytes(*d));
            }
            for (j, v) in v.iter_mut().enumerate() {
                masked_xor(path, v, u, self.delta.mask(g * k + j));
            }
        }
        finish(path, &sums.v, None, out);
        Ok(())
    }
}

by_path! {
    fn masked_xor(into: &mut Column, other: &Column, mask: u64) = masked_xor_body
}

#[inline(always)]
fn masked_xor_body(into: &mut Column, other: &Column, mask: u64) {
    for (a, b) in into.iter_mut().zip(other) {
        *a ^= b & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{self, Label};

    fn session(width: Width, delta: u8, receiver: u8) -> (Receiver, Sender, Delta, Vec<u8>) {
        let public = Seed::from_bytes([1; 16]);
        let label = Label(b"test");
        let mut of_sender = Seed::from_bytes([delta; 16]).stream();
        let mut of_receiver = Seed::from_bytes([receiver; 16]).stream();
        let delta = Delta::draw(&mut of_sender);
        let (chooser, elements) = base::Receiver::start(label, delta.block(), &mut of_sender);
        let (offerer, element) = base::Sender::start(&mut of_receiver);
        let pairs = offerer.finish(label, &elements).unwrap();
        let (receiver, setup) = Receiver::start(width, &public, &pairs, &mut of_receiver);
        let chosen = chooser.finish(label, &element).unwrap();
        let sender = Sender::start(width, &public, &delta, &chosen, &setup).unwrap();
        (receiver, sender, delta, setup)
    }

    /// The protocol, as it reads in the paper, for every width.
    #[test]
    fn blocks_differ_by_delta_where_the_choice_is_one() {
        for width in Width::ALL {
            let (mut receiver, mut sender, delta, setup) = session(width, 2, 3);
            assert_eq!(setup.len(), SETUP_BYTES);
            let mut earlier = Vec::new();
            for chunk in 0..2 {
                let (mut t, mut q) = (vec![0; CHUNK], vec![0; CHUNK]);
                let message = receiver.extend(&mut t);
                assert_eq!(message.len(), width.chunk_bytes());
                sender.extend(&message, &mut q).unwrap();
                for (t, q) in t.iter().zip(&q) {
                    assert_eq!(t ^ q, if t & 1 == 1 { delta.block() } else { 0 }, "{width:?}, chunk {chunk}");
                    assert_eq!(q & 1, 0);
                }
                let ones = t.iter().filter(|t| **t & 1 == 1).count();
                assert!((CHUNK / 2).abs_diff(ones) < 400, "{ones} choices of {CHUNK} are one");
                t.sort();
                t.dedup();
                assert_eq!(t.len(), CHUNK);
                assert_ne!(earlier, t);
                earlier = t;
            }
        }
    }

    #[test]
    fn malformed_messages_are_named() {
        let (_, mut sender, delta, setup) = session(Width::Four, 2, 3);
        let mut q = vec![0; CHUNK];
        let expected = Width::Four.chunk_bytes();
        let error = sender.extend(&vec![0; expected + 1], &mut q).unwrap_err();
        assert_eq!(error, Malformed::Length { step: EXTEND, expected, found: expected + 1 });
        let base = vec![Seed::from_bytes([0; 16]); BASE];
        let error =
            Sender::start(Width::Four, &Seed::from_bytes([1; 16]), &delta, &base, &setup[1..]).map(|_| ());
        let found = SETUP_BYTES - 1;
        assert_eq!(error, Err(Malformed::Length { step: SETUP, expected: SETUP_BYTES, found }));
    }

    /// What the sender sees of other choices of the same base OTs is uniform and without relation to them.
    #[test]
    fn corrections_look_uniform_and_change_with_the_receivers_randomness() {
        let message = |seed| {
            let (mut receiver, ..) = session(Width::Four, 2, seed);
            receiver.extend(&mut vec![0; CHUNK])
        };
        let (a, b) = (message(3), message(4));
        let ones: u32 = a.iter().zip(&b).map(|(a, b)| (a ^ b).count_ones()).sum();
        let bits = 8 * a.len() as i64;
        assert!((2 * ones as i64 - bits).pow(2) < 64 * bits, "{ones} of {bits} bits differ");
    }
}
