//! Public tables read at a shared index: a transfer of one of 2^b entries, of b transfers of keys (Naor and Pinkas, STOC 1999).
//!
//! *Before a run* ([`Keys`]) the server has two keys for each bit of a place, and the client a random place and its pad. Bits are in two
//! halves. A value of a half has a key: the sum of what the keys of its bits expand to there. A place's pad is the sum of what the keys of its
//! two halves expand to there. Of every other place the client lacks the key of a half, as it lacks a key of a bit. No key's words
//! serve twice.
//!
//! *In the run* entry j stands for the index that is j plus the server's share. The client sends its index XORed with its place, and the
//! server masks entry j by the pad of that XORed with j. Entry 0 is its pad.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Maker, Shape};
use crate::mutation;
use crate::mux;
use crate::planes::{self, Planes, bit};
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::Outgoing;
use privet_kernels::in_parallel;
use privet_ot::Strings;
use privet_prg::{Seed, Wiped};
use privet_ring::{PackError, Ring, pack, unpack};
use std::ops::Range;
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

/// Some of a place's bits.
#[derive(Clone, Copy)]
struct Half {
    first: usize,
    bits: usize,
    /// Bits of a place.
    all: usize,
}

impl Half {
    /// The place of which these bits are `own`, and the others `rest`.
    fn place(self, own: usize, rest: usize) -> usize {
        if self.first == 0 { own | rest << self.bits } else { rest | own << self.first }
    }

    /// Values of the other bits.
    fn rests(self) -> usize {
        1 << (self.all - self.bits)
    }

    /// For each value of these bits its key: to the sum goes what each bit's key expands to there. Keys of a bit are those of 0 and 1, or
    /// the one that is there of both.
    fn keys<'a>(self, of_bit: impl Fn(usize, usize) -> &'a Key, both: bool, room: &mut Room) {
        let Room { keys, words } = room;
        keys.clear();
        keys.resize(1 << self.bits, [0; 2]);
        let words = &mut words[..2 << self.bits];
        for bit in 0..self.bits {
            for one in 0..=usize::from(both) {
                expand(of_bit(self.first + bit, one), Ring::R64, words);
                let here = |value: usize| !both || value >> bit & 1 == one;
                let all = keys.iter_mut().zip(words.as_chunks::<2>().0).enumerate();
                for (_, (key, words)) in all.filter(|(value, _)| here(*value)) {
                    key.iter_mut().zip(words).for_each(|(key, word)| *key ^= word);
                }
            }
        }
    }
}

/// Where keys of a half and what they expand to lie, element after element. Wiped on drop.
struct Room {
    keys: Zeroizing<Vec<Key>>,
    words: Wiped<u64>,
}

/// A key: its lower and its upper half.
type Key = [u64; 2];

/// What a key expands to, once.
fn expand([low, high]: &Key, ring: Ring, words: &mut [u64]) {
    let mut key = Zeroizing::new([0; 16]);
    key[..8].copy_from_slice(&low.to_le_bytes());
    key[8..].copy_from_slice(&high.to_le_bytes());
    Seed::from_bytes(*key).stream().fill(ring, words);
}

/// All ones where two secret numbers are equal.
fn same(a: usize, b: usize) -> u64 {
    u64::from(a == b).wrapping_neg()
}

impl Keys {
    /// Both halves of a place's bits; one where there is one bit.
    fn halves(self) -> impl Iterator<Item = Half> {
        let all = self.bits as usize;
        let low = all.div_ceil(2);
        let halves = [(0, low), (low, all - low)].map(|(first, bits)| Half { first, bits, all });
        halves.into_iter().filter(|half| half.bits > 0)
    }

    /// Room for one element after the other.
    fn room(self) -> Room {
        let most = self.halves().map(|half| (2 << half.bits).max(half.rests() * self.tables)).max();
        let keys = Zeroizing::new(Vec::with_capacity(1 << self.bits.div_ceil(2)));
        Room { keys, words: Wiped::zeros(most.unwrap_or(0)) }
    }

    /// Pads of all places, row after row, of both keys of each bit.
    fn all_pads(self, keys: &[[Key; 2]], pads: &mut [u64], room: &mut Room) {
        pads.fill(0);
        for half in self.halves() {
            half.keys(|bit, one| &keys[bit][one], true, room);
            let words = &mut room.words[..half.rests() * self.tables];
            for (own, key) in room.keys.iter().enumerate() {
                expand(key, self.to, words);
                for (rest, row) in words.chunks_exact(self.tables).enumerate() {
                    let pad = &mut pads[half.place(own, rest) * self.tables..][..self.tables];
                    pad.iter_mut().zip(row).for_each(|(pad, word)| *pad = pad.wrapping_add(*word));
                }
            }
        }
    }

    /// The pads of a place, of one key of each bit; the place is a secret, so all of a half's keys and rows are read.
    fn own_pads(self, keys: &[Key], place: usize, pads: &mut [u64], room: &mut Room) {
        pads.fill(0);
        for half in self.halves() {
            half.keys(|bit, _| &keys[bit], false, room);
            let mut own = Zeroizing::new([0; 2]);
            for (value, key) in room.keys.iter().enumerate() {
                let here = same(value, place >> half.first & ((1 << half.bits) - 1));
                own.iter_mut().zip(key).for_each(|(own, key)| *own |= key & here);
            }
            let words = &mut room.words[..half.rests() * self.tables];
            expand(&own, self.to, words);
            for (rest, row) in words.chunks_exact(self.tables).enumerate() {
                let others =
                    if half.first == 0 { place >> half.bits } else { place & ((1 << half.first) - 1) };
                let here = same(rest, others);
                pads.iter_mut().zip(row).for_each(|(pad, word)| *pad = pad.wrapping_add(word & here));
            }
        }
    }

    /// Words of all rows.
    fn words(self) -> usize {
        self.tables << self.bits
    }
}

/// Each element's key: lower and upper halves.
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
            Side::Server => Shape::of(0, vec![Ring::R64; 4 * self.bits as usize]),
            Side::Client => Shape::of(self.bits as usize, vec![self.to; self.tables]),
        }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (side, pair) = (maker.side, &mut *maker.pair);
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
        let mut row = Wiped::zeros(self.tables);
        let mut keys = Zeroizing::new(vec![[0; 2]; received.len()]);
        let mut room = self.room();
        for element in 0..frame.n {
            for (key, halves) in keys.iter_mut().zip(&received) {
                *key = halves.each_ref().map(|half| half[element]);
            }
            let bits = (0..received.len()).map(|i| (bit(frame.plane(i), element) as usize) << i);
            self.own_pads(&keys, bits.fold(0, |place, bit| place | bit), &mut row, &mut room);
            pads.iter_mut().zip(row.iter()).for_each(|(pad, word)| pad[element] = *word);
        }
        pads.iter().enumerate().for_each(|(i, pad)| frame.set_elements(i, pad));
        Ok(())
    }
}

/// A table of 2^b entries, that of index x first, in the first of two places. Each bit of x turns the whole table or leaves it, under a
/// mask: x is a secret share, and memory is read alike for all.
fn rotate(table: &[u64], x: u64, [out, turned]: [&mut Wiped<u64>; 2]) {
    out.copy_from_slice(table);
    let last = table.len() - 1;
    for i in 0..table.len().ilog2() {
        let here = (x >> i & 1).wrapping_neg();
        for (j, to) in turned.iter_mut().enumerate() {
            *to = out[j] ^ (out[j] ^ out[(j + (1 << i)) & last]) & here;
        }
        std::mem::swap(out, turned);
    }
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

/// Elements of which the server makes entries at a time: whole bytes of each entry.
const BLOCK: usize = 64;

/// Where entry `entry` of elements from `first` on lies in the message: rows of tables.
fn entry_place(of: Keys, entry: usize, first: usize, n: usize) -> usize {
    (entry - 1) * of.to.packed_bytes(n * of.tables) + of.to.packed_bytes(first * of.tables)
}

/// Elements of a frame in one part for each thread, which begin at whole bytes of entries.
fn parts(n: usize, threads: usize) -> Vec<Range<usize>> {
    let each = n.div_ceil(threads).next_multiple_of(BLOCK);
    (0..n).step_by(each).map(|first| first..n.min(first + each)).collect()
}

/// Shares of all tables' entries, table after table.
fn offer(cx: &mut Cx, of: Keys, tables: &[Vec<u64>], x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, bits, count) = (x.len(), of.bits as usize, of.tables);
    let material = cx.take(of, n)?;
    let theirs = cx.exchange("index", Vec::new(), plane_bytes(n) as usize * bits)?;
    let theirs = cx.incoming(n, theirs)?;
    let mut message = vec![0; ((1 << bits) - 1) * of.to.packed_bytes(n * count)];
    let mut shares = vec![0; n * count];
    for frame in material {
        let x = &x[frame.first..][..frame.n];
        let offered = Offered {
            of,
            tables,
            x,
            halves: (0..4 * bits).map(|i| frame.elements(i)).collect(),
            exchanged: theirs.chunk(0..bits, frame.first, frame.n),
        };
        let made =
            in_parallel(parts(frame.n, cx.threads).into_iter(), |part| (part.start, offered.make(part)));
        for (start, (own, entries)) in made {
            let first = frame.first + start;
            for (i, row) in own.chunks_exact(count).enumerate() {
                row.iter().enumerate().for_each(|(t, share)| shares[t * n + first + i] = *share);
            }
            for (entry, packed) in (1..).zip(entries) {
                message[entry_place(of, entry, first, n)..][..packed.len()].copy_from_slice(&packed);
            }
        }
    }
    cx.exchange("entries", message, 0)?;
    Ok(shares)
}

/// What the server makes a frame's entries of.
struct Offered<'a> {
    of: Keys,
    tables: &'a [Vec<u64>],
    /// Its shares of the indices.
    x: &'a [u64],
    /// Halves of keys, four of each bit.
    halves: Vec<Wiped<u64>>,
    /// What the client sent: bits of its indices, XORed with its places.
    exchanged: Vec<u64>,
}

impl Offered<'_> {
    /// Shares of some elements, row after row; and of each entry but 0 what is sent.
    fn make(&self, part: Range<usize>) -> (Vec<u64>, Vec<Vec<u8>>) {
        let Offered { of, tables, x, halves, exchanged } = self;
        let (bits, count, each) = (of.bits as usize, of.tables, planes::words(x.len()));
        let mut shares = Vec::with_capacity(part.len() * count);
        let others = || 1..1 << bits;
        let bytes = of.to.packed_bytes(part.len() * count);
        let mut packed: Vec<Vec<u8>> = others().map(|_| Vec::with_capacity(bytes)).collect();
        let (mut pads, mut room): (Wiped<u64>, _) = (Wiped::zeros(of.words()), of.room());
        let mut keys = Zeroizing::new(vec![[[0; 2]; 2]; bits]);
        let [mut turned, mut other]: [Wiped<u64>; 2] = [0, 1].map(|_| Wiped::zeros(1 << bits));
        let mut rows: Vec<Vec<u64>> = others().map(|_| Vec::with_capacity(BLOCK * count)).collect();
        for first in part.clone().step_by(BLOCK) {
            for i in first..part.end.min(first + BLOCK) {
                for (keys, halves) in keys.iter_mut().zip(halves.as_chunks::<4>().0) {
                    let [a, b, c, d] = halves.each_ref().map(|half| half[i]);
                    *keys = [[a, b], [c, d]];
                }
                of.all_pads(&keys, &mut pads, &mut room);
                if mutation::active("entries-unmasked") {
                    pads.fill(0);
                }
                // what came is masked by the client's place: as an address it tells nothing
                let exchanged =
                    (0..bits).fold(0, |sum, b| sum | (bit(&exchanged[b * each..], i) as usize) << b);
                let pad = |entry: usize, t: usize| pads[(entry ^ exchanged) * count + t];
                for (t, table) in tables.iter().enumerate() {
                    rotate(table, x[i], [&mut turned, &mut other]);
                    // entry 0 is its pad
                    let hidden = pad(0, t).wrapping_sub(turned[0]);
                    shares.push(of.to.wrap(hidden.wrapping_neg()));
                    for (entry, row) in (1..).zip(&mut rows) {
                        row.push(turned[entry].wrapping_add(hidden).wrapping_sub(pad(entry, t)));
                    }
                }
            }
            for (row, packed) in rows.iter_mut().zip(&mut packed) {
                pack(of.to, row, packed);
                row.clear();
            }
        }
        (shares, packed)
    }
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
        let pads: Vec<Wiped<u64>> = (0..count).map(|t| frame.elements(t)).collect();
        let made = in_parallel(parts(frame.n, cx.threads).into_iter(), |part| {
            let mut got: Vec<Wiped<u64>> =
                pads.iter().map(|pads| Wiped::copy_of(&pads[part.clone()])).collect();
            let first = frame.first + part.start;
            for entry in 1..1usize << bits {
                let here = &theirs[entry_place(of, entry, first, n)..];
                let here = &here[..of.to.packed_bytes(part.len() * count)];
                let sent = unpack(of.to, here, part.len() * count)?;
                for (i, (x, row)) in x[first..].iter().zip(sent.chunks_exact(count)).enumerate() {
                    // all entries are read, so that memory does not tell which one is used
                    let here = u64::from(entry as u64 == *x).wrapping_neg();
                    got.iter_mut().zip(row).for_each(|(got, word)| got[i] = got[i].wrapping_add(word & here));
                }
            }
            Ok((first, got))
        });
        for made in made {
            let (first, got) = made.map_err(|e: PackError| cx.wrong(e))?;
            for (t, got) in got.iter().enumerate() {
                let to = &mut shares[t * n + first..];
                to.iter_mut().zip(got.iter()).for_each(|(share, got)| *share = of.to.wrap(*got));
            }
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
