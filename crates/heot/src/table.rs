//! Public tables read at a shared index: a transfer of one of 2^b entries, of b transfers of keys (Naor and Pinkas, STOC 1999).
//!
//! *Before a run* ([`Keys`]) the server has two keys for each bit of a place, and the client a random place and its pad. A place's pad
//! is the sum of what the b keys of its bits expand to there: of every other place the client lacks a key, and a key's words at
//! one place tell nothing of those at another.
//!
//! *In the run* entry j stands for the index that is j plus the server's share. The client sends its index XORed with its place, and the
//! server masks entry j by the pad of that XORed with j. Entry 0 is its pad.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Shape};
use crate::mutation;
use crate::mux;
use crate::planes::{self, Planes, bit};
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::Outgoing;
use privet_ot::{Pair, Short, Strings};
use privet_prg::{Seed, Wiped};
use privet_ring::{Ring, pack, unpack};
use zeroize::Zeroizing;

/// Random transfers of one of 2^b rows, a row being an element of each table: b keys' worth of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Bits of a place.
    bits: u32,
    /// The ring of an entry.
    to: Ring,
    /// Entries of a row.
    tables: usize,
}

impl Keys {
    /// Adds what a key expands to at each place, row after row.
    fn expand(self, [low, high]: [u64; 2], rows: &mut [u64]) {
        let mut key = Zeroizing::new([0; 16]);
        key[..8].copy_from_slice(&low.to_le_bytes());
        key[8..].copy_from_slice(&high.to_le_bytes());
        let words = Zeroizing::new(Seed::from_bytes(*key).stream().elements(self.to, rows.len()));
        rows.iter_mut().zip(words.iter()).for_each(|(row, word)| *row = row.wrapping_add(*word));
    }

    /// Words of all rows.
    fn words(self) -> usize {
        self.tables << self.bits
    }
}

/// Both halves of each element's key.
fn keys(mut strings: Strings) -> [Wiped<u64>; 2] {
    [strings.words(Ring::R64), strings.words(Ring::R64)]
}

impl Correlation for Keys {
    fn transfers(&self) -> [usize; 2] {
        [self.bits as usize, 0]
    }

    /// Of the server, for each bit both halves of its two keys; of the client its place, and its pad.
    fn shape(&self, side: Side) -> Shape {
        match side {
            Side::Server => Shape { planes: 0, elements: vec![Ring::R64; 4 * self.bits as usize] },
            Side::Client => Shape { planes: self.bits as usize, elements: vec![self.to; self.tables] },
        }
    }

    fn make(&self, side: Side, pair: &mut Pair, frame: &mut Frame) -> Result<(), Short> {
        if side == Side::Server {
            for i in 0..self.bits as usize {
                let strings = pair.sender.take(frame.n)?.into_pads().strings;
                for (half, words) in strings.map(keys).into_iter().flatten().enumerate() {
                    frame.set_elements(4 * i + half, &words);
                }
            }
            return Ok(());
        }
        let mut received = Vec::with_capacity(self.bits as usize);
        for i in 0..self.bits as usize {
            let pads = pair.receiver.take(frame.n)?.into_pads();
            frame.plane_mut(i).copy_from_slice(&pads.choices);
            received.push(keys(pads.strings));
        }
        let mut pads: Vec<Wiped<u64>> = (0..self.tables).map(|_| Wiped::zeros(frame.n)).collect();
        let mut rows = Wiped::zeros(self.words());
        for element in 0..frame.n {
            rows.fill(0);
            received
                .iter()
                .for_each(|halves| self.expand(halves.each_ref().map(|half| half[element]), &mut rows));
            let place = (0..self.bits as usize).fold(0, |place, i| place | bit(frame.plane(i), element) << i);
            // all rows are read, so that memory does not tell which one is kept
            for (j, row) in (0u64..).zip(rows.chunks_exact(self.tables)) {
                let here = u64::from(j == place).wrapping_neg();
                pads.iter_mut().zip(row).for_each(|(pad, word)| pad[element] |= word & here);
            }
        }
        pads.iter().enumerate().for_each(|(i, pad)| frame.set_elements(i, pad));
        Ok(())
    }
}

/// A table of 2^b entries, that of index x first. Each bit of x turns the whole table or leaves it, under a mask: x is a secret
/// share, and memory is read alike for all.
fn rotated(table: &[u64], x: u64) -> Vec<u64> {
    let (mut out, last) = (table.to_vec(), table.len() - 1);
    for i in 0..table.len().ilog2() {
        let here = (x >> i & 1).wrapping_neg();
        out = (0..=last).map(|j| out[j] ^ (out[j] ^ out[(j + (1 << i)) & last]) & here).collect();
    }
    out
}

/// Shares of `tables[t][x]`, table after table; x is shared modulo 2^b, where tables have 2^b entries.
pub(crate) fn look_up(
    cx: &mut Cx,
    bits: u32,
    to: Ring,
    tables: &[Vec<u64>],
    x: &[u64],
) -> Result<Vec<u64>, RunError> {
    if bits == 0 {
        let first = |table: &Vec<u64>| vec![cx.side.constant(table[0]); x.len()];
        return Ok(tables.iter().flat_map(first).collect());
    }
    let index = Ring::new(bits);
    let x: Vec<u64> = x.iter().map(|x| index.wrap(*x)).collect();
    let of = Keys { bits, to, tables: tables.len() };
    match cx.side {
        Side::Server => offer(cx, of, tables, &x),
        Side::Client => choose(cx, of, &x),
    }
}

/// The message's entry `entry` of a chunk: rows of tables.
fn entry_place(of: Keys, entry: usize, first: usize, n: usize) -> usize {
    (entry - 1) * of.to.packed_bytes(n * of.tables) + of.to.packed_bytes(first * of.tables)
}

/// Shares of all tables' entries, table after table.
fn offer(cx: &mut Cx, of: Keys, tables: &[Vec<u64>], x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, bits, count) = (x.len(), of.bits as usize, of.tables);
    let material = cx.take(of, n)?;
    let theirs = cx.exchange("index", Vec::new(), plane_bytes(n) as usize * bits)?;
    let theirs = cx.incoming(n, theirs)?;
    let mut message = vec![0; ((1 << bits) - 1) * of.to.packed_bytes(n * count)];
    let mut shares = vec![0; n * count];
    // what a key of each bit gives at all rows, of which those rows take it that have its bit
    let [mut pads, mut rows] = [0, 1].map(|_| Wiped::<u64>::zeros(of.words()));
    for frame in material {
        let exchanged = theirs.chunk(0..bits, frame.first, frame.n);
        let each = planes::words(frame.n);
        let halves: Vec<Wiped<u64>> = (0..4 * bits).map(|i| frame.elements(i)).collect();
        let mut entries = vec![vec![0; frame.n * count]; 1 << bits];
        for i in 0..frame.n {
            let turned: Vec<Vec<u64>> =
                tables.iter().map(|table| rotated(table, x[frame.first + i])).collect();
            pads.fill(0);
            for (at, halves) in halves.chunks_exact(4).enumerate() {
                for (one, key) in halves.chunks_exact(2).enumerate() {
                    rows.fill(0);
                    of.expand([key[0][i], key[1][i]], &mut rows);
                    let all = pads.chunks_exact_mut(count).zip(rows.chunks_exact(count)).enumerate();
                    for (_, (pad, row)) in all.filter(|(place, _)| place >> at & 1 == one) {
                        pad.iter_mut().zip(row).for_each(|(pad, word)| *pad = pad.wrapping_add(*word));
                    }
                }
            }
            if mutation::active("entries-unmasked") {
                pads.fill(0);
            }
            // what came is masked by the client's place: as an address it tells nothing
            let exchanged = (0..bits).fold(0, |sum, b| sum | (bit(&exchanged[b * each..], i) as usize) << b);
            let pad = |entry: usize, t: usize| pads[(entry ^ exchanged) * count + t];
            for t in 0..count {
                // entry 0 is its pad
                let hidden = pad(0, t).wrapping_sub(turned[t][0]);
                shares[t * n + frame.first + i] = of.to.wrap(hidden.wrapping_neg());
                for (entry, sent) in entries.iter_mut().enumerate().skip(1) {
                    sent[i * count + t] = turned[t][entry].wrapping_add(hidden).wrapping_sub(pad(entry, t));
                }
            }
        }
        for (entry, words) in entries.iter().enumerate().skip(1) {
            let mut packed = Vec::new();
            pack(of.to, words, &mut packed);
            message[entry_place(of, entry, frame.first, n)..][..packed.len()].copy_from_slice(&packed);
        }
    }
    cx.exchange("entries", message, 0)?;
    Ok(shares)
}

fn choose(cx: &mut Cx, of: Keys, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, bits, count) = (x.len(), of.bits as usize, of.tables);
    let material = cx.take(of, n)?;
    let own = Planes::of(x, of.bits);
    let mut message = Outgoing::new(bits, n);
    for frame in material.frames() {
        (0..bits).for_each(|i| mux::masked(frame, i, own.get(i), i, &mut message));
    }
    cx.exchange("index", message.bytes(), 0)?;
    let theirs = cx.exchange("entries", Vec::new(), ((1 << bits) - 1) * of.to.packed_bytes(n * count))?;
    let mut shares = vec![0; n * count];
    for frame in material {
        let x = &x[frame.first..][..frame.n];
        let mut got: Vec<Wiped<u64>> = (0..count).map(|t| frame.elements(t)).collect();
        for entry in 1..1usize << bits {
            let here = &theirs[entry_place(of, entry, frame.first, n)..];
            let here = &here[..of.to.packed_bytes(frame.n * count)];
            let sent = unpack(of.to, here, frame.n * count).map_err(|e| cx.wrong(e))?;
            for (i, (x, row)) in x.iter().zip(sent.chunks_exact(count)).enumerate() {
                // all entries are read, so that memory does not tell which one is used
                let here = u64::from(entry as u64 == *x).wrapping_neg();
                got.iter_mut().zip(row).for_each(|(got, word)| got[i] = got[i].wrapping_add(word & here));
            }
        }
        for (t, got) in got.iter().enumerate() {
            let to = &mut shares[t * n + frame.first..];
            to.iter_mut().zip(got.iter()).for_each(|(share, got)| *share = of.to.wrap(*got));
        }
    }
    Ok(shares)
}

/// What [`look_up`] of n elements uses.
pub(crate) fn uses(bits: u32, to: u32, tables: usize, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let entries = ((1 << bits) - 1) * word_bytes(to, n * tables);
    let of = Keys { bits, to: Ring::new(to), tables };
    Uses::of(of, n, [entries, u64::from(bits) * plane_bytes(n)], 2)
}
