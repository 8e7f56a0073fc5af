//! Keys of tables ([`crate::table`]): random transfers of one of 2^b rows.
//!
//! The server has two keys for each bit of a place, and the client a random place and its pad. Bits are in two halves. A value of a half has a key: the
//! sum of what the keys of its bits expand to there. A place's pad is the sum of what the keys of its two halves expand to there. Of every other place the
//! client lacks the key of a half, as it lacks a key of a bit. No key's words serve twice.

use crate::context::{RunError, Side};
use crate::material::{Correlation, Frame, Maker, Shape};
use crate::planes::bit;
use privet_ot::Strings;
use privet_prg::{Seed, Wiped};
use privet_ring::Ring;
use zeroize::Zeroizing;

/// Random transfers of one of 2^b rows, a row being an element of each table: b keys' worth of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Bits of a place.
    pub bits: u32,
    /// The ring of an entry.
    pub to: Ring,
    /// Entries of a row.
    pub tables: usize,
}

/// Blocks that take as long as a key's schedule, with what is made anew for each key.
const SCHEDULE: u64 = 12;

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
pub(crate) struct Room {
    keys: Zeroizing<Vec<Key>>,
    words: Wiped<u64>,
}

/// A key: its lower and its upper half.
pub(crate) type Key = [u64; 2];

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
    pub fn room(self) -> Room {
        let most = self.halves().map(|half| (2 << half.bits).max(half.rests() * self.tables)).max();
        let keys = Zeroizing::new(Vec::with_capacity(1 << self.bits.div_ceil(2)));
        Room { keys, words: Wiped::zeros(most.unwrap_or(0)) }
    }

    /// Pads of all places, row after row, of both keys of each bit.
    pub fn all_pads(self, keys: &[[Key; 2]], pads: &mut [u64], room: &mut Room) {
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
    pub fn words(self) -> usize {
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

    /// Both keys of each bit, and each value's of a half.
    fn blocks(&self) -> u64 {
        let half = |half: Half| {
            let (bits, values) = (2 * half.bits as u64, 1 << half.bits);
            let words = half.rests() * self.tables;
            bits * (SCHEDULE + values) + values * (SCHEDULE + words.div_ceil(2) as u64)
        };
        self.halves().map(half).sum()
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
