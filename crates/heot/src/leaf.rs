//! Digits of two or three bits compared by a transfer of one of their entries: CrypTFlow2 (Rathee and others, CCS 2020,
//! section 3.1) with random transfers of bits in place of transfers of strings.
//!
//! The server knows u and the client v. The client's digit chooses among the server's entries: entry j has shares of `[j < u]`
//! and `[j = u]`.
//!
//! *Before a run*, random transfers of one of eight, or four ([`Leaves`]): the server has a pad for each place, the client a random place and
//! its pad. A place's pad is the sum of one string of each bit's transfer, from a segment of the strings that serves this
//! place alone. So of every other place the client lacks a summand that no other pad has.
//!
//! *In the run* the client sends its digit XORed with its place, and the server masks entry j by the pad of that XORed with j. Entry 0 is
//! not sent: its pad is the server's share's complement to it, and all shares follow.
//!
//! *Fewer entries.* A digit that is not the lowest is compared without its lowest bit: entry j has shares of `[2 j < u]`. Where both digits
//! are equal that is u's lowest bit, the *tie*, which the server knows. The node above takes it off (`tree.rs`). Equality holds for one
//! entry of all. So the XOR of its entries is public, and where that of the pads is 0 the last entry need not be sent either. Such a
//! pad is a sum over sets of all bits of the place but one ([`Part`]): each summand stands in two pads.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Maker, Material, Shape};
use crate::mutation;
use crate::planes::{self, Plane, Planes, select, swap};
use crate::uses::{Uses, plane_bytes};
use crate::wire::Outgoing;
use privet_ot::{Pair, Short};
use privet_plan::Form;
use privet_prg::Wiped;
use privet_ring::Ring;
use std::ops::Range;

/// Entries of a digit, at most.
const ENTRIES: usize = 1 << Digits::Three.bits();

/// How numbers are cut: by what the plan says of a comparison. AGREEMENT class: both sides make and read material for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// To digits of two bits: the fewest bytes, and a level of the tree more.
    Two,
    /// To digits of three bits.
    Three,
}

impl Digits {
    /// Both.
    #[cfg(test)]
    pub const ALL: [Digits; 2] = [Digits::Two, Digits::Three];
    /// As plans state them.
    pub const FORMS: [Form; 2] = [Form::Chunks { width: 2, fan: 2 }, Form::Chunks { width: 3, fan: 2 }];

    /// As a plan states it; three bits where it states nothing, or what is for other families.
    pub fn of(form: Option<Form>) -> Digits {
        if form == Some(Digits::FORMS[0]) { Digits::Two } else { Digits::Three }
    }

    /// Bits of a digit.
    pub const fn bits(self) -> u32 {
        match self {
            Digits::Two => 2,
            Digits::Three => 3,
        }
    }
}

/// Shares of a comparison of digits, or of several digits together; what nobody needs is not there.
#[derive(Clone, Default)]
pub(crate) struct Leaf {
    /// Of `v < u`, XORed with [`Leaf::tie`] where `v = u`.
    pub less: Option<Plane>,
    /// Of `v = u`.
    pub equal: Option<Plane>,
    /// The server's alone: nothing is 0.
    pub tie: Option<Plane>,
}

/// Which shares a digit's leaf has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Of all but the lowest: both; of the lowest `v < u` alone.
    Less,
    /// `v = u`.
    Equal,
}

/// A digit: which bits of the number it has, and which shares are wanted of it.
#[derive(Clone)]
struct Digit {
    bits: Range<usize>,
    /// Whether there is no digit below it in what it is a part of.
    is_lowest: bool,
    less: bool,
    equal: bool,
}

/// The entries of one of a digit's shares. The client's place among them are some of the digit's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table {
    /// Of `v = u`, or of `v < u`.
    equal: bool,
    /// Lowest bits of the digit that the place has not.
    skip: usize,
    /// Bits of the place.
    width: usize,
}

impl Digit {
    /// Bits.
    fn len(&self) -> usize {
        self.bits.len()
    }

    /// One for each share that is wanted.
    fn tables(&self) -> impl Iterator<Item = Table> + use<> {
        let (len, skip) = (self.len(), usize::from(!self.is_lowest));
        let less = self.less.then_some(Table { equal: false, skip, width: len - skip });
        less.into_iter().chain(self.equal.then_some(Table { equal: true, skip: 0, width: len }))
    }

    /// Shares that are wanted.
    fn shares(&self) -> usize {
        self.tables().count()
    }

    /// Entries of all tables.
    fn pads(&self) -> usize {
        self.tables().map(Table::entries).sum()
    }

    /// Entries that are sent.
    fn sent(&self) -> usize {
        self.tables().map(Table::sent).sum()
    }

    /// What pads are sums of: one bit of a string after the other.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (share, table) in self.tables().enumerate() {
            for of in table.sets() {
                let places = (0..1 << self.len()).filter(|place| place & !of == 0);
                parts.extend(places.map(|place| Part { share, of, place }));
            }
        }
        parts
    }
}

impl Table {
    fn entries(self) -> usize {
        1 << self.width
    }

    /// Whether the last entry follows from the others. Of one bit it would be the only one, and shares without a pad.
    fn last_follows(self) -> bool {
        self.equal && self.width > 1
    }

    /// Entries that are sent: neither the first, nor what follows.
    fn sent(self) -> usize {
        self.entries() - 1 - usize::from(self.last_follows())
    }

    /// Bits of the digit of which pads have a summand for each of their values.
    fn sets(self) -> Vec<usize> {
        let all = (self.entries() - 1) << self.skip;
        let but_one = || (0..self.width).map(|bit| all ^ 1 << self.skip << bit);
        match (self.last_follows(), self.width) {
            (true, _) if mutation::active("pads-of-one-set") => but_one().take(1).collect(),
            (true, _) => but_one().collect(),
            // one entry, which is not sent
            (false, 0) => Vec::new(),
            (false, _) => vec![all],
        }
    }
}

/// A summand of pads, which has one bit of the string of each of some bits of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Whose pads: of the first table, or the second.
    share: usize,
    /// Bits of the place that it depends on.
    of: usize,
    /// These bits: it is a part of every pad whose place has them.
    place: usize,
}

/// Random transfers of one of a digit's entries for every digit of a number: the server's pads, the client's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaves {
    /// Bits of the number.
    pub bits: u32,
    /// Lowest bits that are compared by themselves as well: no digit has bits of both parts.
    pub low: u32,
    /// Whether the other bits are compared by themselves too, and nothing is wanted of the whole number.
    pub apart: bool,
    /// Shares that an entry has.
    pub wanted: Wanted,
    /// How both parts are cut.
    pub digits: Digits,
}

impl Leaves {
    /// Of all bits of a number.
    pub fn whole(bits: u32, wanted: Wanted, digits: Digits) -> Leaves {
        Leaves { bits, low: 0, apart: false, wanted, digits }
    }

    /// From the lowest.
    fn each(self) -> impl Iterator<Item = Digit> {
        let part = move |(from, to): (u32, u32)| {
            let each = self.digits.bits();
            (from..to).step_by(each as usize).map(move |first| {
                let is_lowest = first == 0 || self.apart && first == self.low;
                Digit {
                    bits: first as usize..to.min(first + each) as usize,
                    is_lowest,
                    less: self.wanted == Wanted::Less,
                    equal: self.wanted == Wanted::Equal || !is_lowest,
                }
            })
        };
        [(0, self.low), (self.low, self.bits)].into_iter().flat_map(part)
    }

    /// Digits of the low part, and of the other one.
    pub fn counts(self) -> [usize; 2] {
        [self.low, self.bits - self.low].map(|bits| bits.div_ceil(self.digits.bits()) as usize)
    }
}

/// What leaves of n numbers use.
pub(crate) fn uses(of: Leaves, n: usize) -> Uses {
    let sent: usize = of.each().map(|digit| digit.sent()).sum();
    Uses::of(of, n, [sent as u64 * plane_bytes(n), u64::from(of.bits) * plane_bytes(n)], 2)
}

impl Correlation for Leaves {
    fn transfers(&self) -> [usize; 2] {
        [self.bits as usize, 0]
    }

    /// Digit by digit: of the server all pads, table by table; of the client its place, and its pads.
    fn shape(&self, side: Side) -> Shape {
        let of = |digit: Digit| match side {
            Side::Server => digit.pads(),
            Side::Client => digit.len() + digit.shares(),
        };
        Shape::of(self.each().map(of).sum(), Vec::new())
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (side, pair) = (maker.side, &mut *maker.pair);
        let each = planes::words(frame.n);
        let mut at = 0;
        for digit in self.each() {
            let parts = digit.parts();
            let mut of_parts = Wiped::zeros(parts.len() * each);
            match side {
                Side::Server => {
                    planes::split(&all_parts(&digit, &parts, pair, frame.n)?, &mut of_parts);
                    for (share, table) in digit.tables().enumerate() {
                        for (part, of_part) in parts.iter().zip(of_parts.chunks_exact(each)) {
                            let of = |j: &usize| (j << table.skip) & part.of == part.place;
                            for j in (0..table.entries()).filter(of).filter(|_| part.share == share) {
                                planes::xor(frame.plane_mut(at + j), of_part);
                            }
                        }
                        at += table.entries();
                    }
                }
                Side::Client => {
                    let (place, sums) = own_parts(&digit, &parts, pair, frame.n)?;
                    planes::split(&sums, &mut of_parts);
                    place.iter().enumerate().for_each(|(i, bits)| {
                        frame.plane_mut(at + i).copy_from_slice(bits);
                    });
                    at += digit.len();
                    for (part, of_part) in parts.iter().zip(of_parts.chunks_exact(each)) {
                        let pad = frame.plane_mut(at + part.share);
                        for (word, (pad, of_part)) in pad.iter_mut().zip(of_part).enumerate() {
                            let bits = (0..digit.len()).filter(|bit| part.of >> bit & 1 == 1);
                            let here = bits.fold(u64::MAX, |here, bit| {
                                let flip = if part.place >> bit & 1 == 1 { 0 } else { u64::MAX };
                                here & (place[bit][word] ^ flip)
                            });
                            *pad ^= of_part & here;
                        }
                    }
                    at += digit.shares();
                }
            }
        }
        Ok(())
    }
}

/// Which parts have a bit of the string of a bit of the place, where that is 0 and where it is 1.
fn which(parts: &[Part], bit: usize) -> [u64; 2] {
    let of = |value: usize| {
        let has = |part: &Part| part.of >> bit & 1 == 1 && part.place >> bit & 1 == value;
        parts.iter().enumerate().filter(|(_, part)| has(part)).fold(0, |mask, (i, _)| mask | 1 << i)
    };
    [of(0), of(1)]
}

/// The parts of all of the server's pads, of n elements.
fn all_parts(digit: &Digit, parts: &[Part], pair: &mut Pair, n: usize) -> Result<Wiped<u64>, Short> {
    let mut sums = Wiped::zeros(n);
    for bit in 0..digit.len() {
        let [mut zero, mut one] = pair.sender.take(n)?.into_pads().strings;
        // one string of each bit's transfer, whichever the place takes
        let [zeros, ones] = which(parts, bit);
        let zeros = if mutation::active("pads-of-ones-alone") { 0 } else { zeros };
        zero.words_into(ring(parts), &mut sums, |sum, zero| *sum ^= zero & zeros);
        one.words_into(ring(parts), &mut sums, |sum, one| *sum ^= one & ones);
    }
    if mutation::active("pads-constant") {
        sums.fill(0);
    }
    Ok(sums)
}

/// The client's place, a plane for each bit, and sums of strings of which those at its place are parts of its pads.
fn own_parts(
    digit: &Digit,
    parts: &[Part],
    pair: &mut Pair,
    n: usize,
) -> Result<(Vec<Wiped<u64>>, Wiped<u64>), Short> {
    let (mut place, mut sums) = (Vec::with_capacity(digit.len()), Wiped::zeros(n));
    for bit in 0..digit.len() {
        let mut received = pair.receiver.take(n)?.into_pads();
        let [zeros, ones] = which(parts, bit);
        let all = if mutation::active("pads-of-ones-alone") { ones } else { zeros | ones };
        received.strings.words_into(ring(parts), &mut sums, |sum, string| *sum ^= string & all);
        place.push(received.choices);
    }
    if mutation::active("pads-constant") {
        sums.fill(0);
    }
    Ok((place, sums))
}

/// As many bits of a string as there are parts: each is used once.
fn ring(parts: &[Part]) -> Ring {
    Ring::new(parts.len() as u32)
}

/// Word by word, the entry at a number that is given by the planes of its bits.
fn chosen(
    bits: usize,
    entry: impl Fn(usize, usize) -> u64,
    number: impl Fn(usize, usize) -> u64,
    out: &mut [u64],
) {
    for (word, out) in out.iter_mut().enumerate() {
        let mut entries = [0; ENTRIES];
        entries.iter_mut().take(1 << bits).enumerate().for_each(|(j, e)| *e = entry(j, word));
        *out = match bits {
            0 => entries[0],
            1 => select(entries, [number(0, word)]),
            2 => select(entries, [number(0, word), number(1, word)]),
            _ => select(entries, [number(0, word), number(1, word), number(2, word)]),
        };
    }
}

/// Shares of all digits' comparisons; `own` are the planes of u at the server, of v at the client.
pub(crate) fn leaves(cx: &mut Cx, of: Leaves, own: &Planes, n: usize) -> Result<Vec<Leaf>, RunError> {
    let material = cx.take(of, n)?;
    match cx.side {
        Side::Server => offer(cx, of, material, own, n),
        Side::Client => choose(cx, of, material, own, n),
    }
}

/// Shares of n numbers, to be filled in.
fn blank(of: Leaves, n: usize) -> Vec<Leaf> {
    let plane = |wanted: bool| wanted.then(|| vec![0; planes::words(n)]);
    of.each().map(|digit| Leaf { less: plane(digit.less), equal: plane(digit.equal), tie: None }).collect()
}

impl Leaf {
    /// All shares that there are.
    fn shares_mut(&mut self) -> impl Iterator<Item = &mut Plane> {
        self.less.iter_mut().chain(&mut self.equal)
    }
}

fn offer(
    cx: &mut Cx,
    of: Leaves,
    material: Material<Leaves>,
    own: &Planes,
    n: usize,
) -> Result<Vec<Leaf>, RunError> {
    let theirs = cx.exchange("digits", Vec::new(), of.bits as usize * plane_bytes(n) as usize)?;
    let (theirs, mut leaves) = (cx.incoming(n, theirs)?, blank(of, n));
    let mut message = Outgoing::new(of.each().map(|digit| digit.sent()).sum(), n);
    for frame in material {
        let (first, each) = (frame.first / 64, planes::words(frame.n));
        let (mut pad_at, mut sent_at) = (0, 0);
        for (digit, leaf) in of.each().zip(&mut leaves) {
            let places = theirs.chunk(digit.bits.clone(), frame.first, frame.n);
            for (table, share) in digit.tables().zip(leaf.shares_mut()) {
                let share = &mut share[first..][..each];
                let mut masked = vec![0; table.sent() * each];
                for (word, share) in share.iter_mut().enumerate() {
                    let hot = one_hot(digit.len(), |i| own.get(digit.bits.start + i)[first + word]);
                    let values = if table.equal { hot } else { above(hot) };
                    let mut pads = [0; ENTRIES];
                    for (j, pad) in pads.iter_mut().take(table.entries()).enumerate() {
                        *pad = frame.plane(pad_at + j)[word];
                    }
                    // entry j takes the pad of j XORed with what came
                    for i in 0..table.width {
                        let by = places[(table.skip + i) * each + word];
                        for j in (0..table.entries()).filter(|j| j >> i & 1 == 0) {
                            let (low, high) = pads.split_at_mut(j + 1);
                            swap(&mut low[j], &mut high[(1 << i) - 1], by);
                        }
                    }
                    if mutation::active("entries-unmasked") {
                        pads.fill(0);
                    }
                    *share = pads[0] ^ values[0];
                    for (j, masked) in (1..).zip(masked.iter_mut().skip(word).step_by(each)) {
                        *masked = pads[j] ^ values[j << table.skip] ^ *share;
                    }
                }
                planes::tidy(share, frame.n);
                for (i, entry) in masked.chunks_exact(each).enumerate() {
                    message.put(sent_at + i, frame.first, entry);
                }
                pad_at += table.entries();
                sent_at += table.sent();
            }
        }
    }
    for (digit, leaf) in of.each().zip(&mut leaves) {
        let tie = digit.less && !digit.is_lowest && !mutation::active("ties-forgotten");
        leaf.tie = tie.then(|| own.get(digit.bits.start).to_vec());
    }
    cx.exchange("entries", message.bytes(), 0)?;
    Ok(leaves)
}

/// For each value of a digit: where the digit has it.
#[inline(always)]
fn one_hot(bits: usize, plane: impl Fn(usize) -> u64) -> [u64; ENTRIES] {
    let mut hot = [0; ENTRIES];
    hot[0] = u64::MAX;
    for i in 0..bits {
        let bit = plane(i);
        for j in 0..1 << i {
            hot[j | 1 << i] = hot[j] & bit;
            hot[j] &= !bit;
        }
    }
    hot
}

/// For each value of a digit: where the digit is larger.
#[inline(always)]
fn above(hot: [u64; ENTRIES]) -> [u64; ENTRIES] {
    let (mut above, mut sum) = ([0; ENTRIES], 0);
    for (above, hot) in above.iter_mut().zip(hot).rev() {
        *above = sum;
        sum |= hot;
    }
    above
}

fn choose(
    cx: &mut Cx,
    of: Leaves,
    material: Material<Leaves>,
    own: &Planes,
    n: usize,
) -> Result<Vec<Leaf>, RunError> {
    let mut message = Outgoing::new(of.bits as usize, n);
    for frame in material.frames() {
        let (first, each, mut at) = (frame.first / 64, planes::words(frame.n), 0);
        for digit in of.each() {
            for (i, bit) in digit.bits.clone().enumerate() {
                let bit = if mutation::active("choices-of-another-digit") { bit / 2 } else { bit };
                let mut masked = own.get(bit)[first..][..each].to_vec();
                planes::xor(&mut masked, frame.plane(at + i));
                message.put(digit.bits.start + i, frame.first, &masked);
            }
            at += digit.len() + digit.shares();
        }
    }
    cx.exchange("digits", message.bytes(), 0)?;
    let due = uses(of, n).bytes[Side::Server as usize] as usize;
    let theirs = cx.exchange("entries", Vec::new(), due)?;
    let (theirs, mut leaves) = (cx.incoming(n, theirs)?, blank(of, n));
    for frame in material {
        let (first, each) = (frame.first / 64, planes::words(frame.n));
        let (mut at, mut came) = (0, 0);
        for (digit, leaf) in of.each().zip(&mut leaves) {
            at += digit.len();
            for (table, out) in digit.tables().zip(leaf.shares_mut()) {
                let out = &mut out[first..][..each];
                // entry 0 is its pad
                let mut entries = vec![0; each];
                entries.extend(theirs.chunk(came..came + table.sent(), frame.first, frame.n));
                if table.last_follows() {
                    let mut last = vec![u64::MAX; each];
                    entries.chunks_exact(each).for_each(|entry| planes::xor(&mut last, entry));
                    entries.extend(last);
                }
                let place = |i: usize, word: usize| own.get(digit.bits.start + table.skip + i)[first + word];
                chosen(table.width, |j, word| entries[j * each + word], place, out);
                planes::xor(out, frame.plane(at));
                planes::tidy(out, frame.n);
                at += 1;
                came += table.sent();
            }
        }
    }
    Ok(leaves)
}
