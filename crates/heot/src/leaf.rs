//! Digits of at most three bits compared by a transfer of one of eight entries: CrypTFlow2 (Rathee and others, CCS 2020,
//! section 3.1) with random transfers of bits in place of transfers of one of eight strings.
//!
//! The server knows u and the client v. The client's digit chooses among the server's entries: entry j has shares of `[j < u]`
//! and `[j = u]`.
//!
//! *Before a run*, random transfers of one of eight ([`Leaves`]): the server has a pad for each place, the client a random place and
//! its pad. A place's pad is the sum of one string of each bit's transfer, from a segment of the strings that serves this
//! place alone. So of every other place the client lacks a summand that no other pad has.
//!
//! *In the run* the client sends its digit XORed with its place, and the server masks entry j by the pad of that XORed with j. Entry 0 is
//! not sent: its pad is the server's share's complement to it, and all shares follow.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Maker, Material, Shape};
use crate::mutation;
use crate::planes::{self, Plane, Planes, select, swap};
use crate::uses::{Uses, plane_bytes};
use crate::wire::Outgoing;
use privet_ot::{Pair, Short};
use privet_prg::Wiped;
use privet_ring::Ring;
use std::ops::Range;

/// Bits of a digit.
const DIGIT: u32 = 3;
/// Entries of a digit of so many bits, at most.
const ENTRIES: usize = 1 << DIGIT;

/// Shares of a comparison of digits, or of several digits together; what nobody needs is not there.
#[derive(Clone, Default)]
pub(crate) struct Leaf {
    /// Of `v < u`.
    pub less: Option<Plane>,
    /// Of `v = u`.
    pub equal: Option<Plane>,
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
    less: bool,
    equal: bool,
}

impl Digit {
    /// Bits.
    fn len(&self) -> usize {
        self.bits.len()
    }

    /// Shares that are wanted.
    fn shares(&self) -> usize {
        usize::from(self.less) + usize::from(self.equal)
    }

    /// Entries times shares.
    fn pads(&self) -> usize {
        self.shares() << self.len()
    }
}

/// Random transfers of one of eight for every digit of a number: the server's pads, the client's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaves {
    /// Bits of the number.
    pub bits: u32,
    /// Lowest bits that are compared by themselves as well: no digit has bits of both parts.
    pub low: u32,
    /// Shares that an entry has.
    pub wanted: Wanted,
}

impl Leaves {
    /// Of all bits of a number.
    pub fn whole(bits: u32, wanted: Wanted) -> Leaves {
        Leaves { bits, low: 0, wanted }
    }

    /// From the lowest.
    fn digits(self) -> impl Iterator<Item = Digit> {
        let part = move |(from, to): (u32, u32)| {
            (from..to).step_by(DIGIT as usize).map(move |first| Digit {
                bits: first as usize..to.min(first + DIGIT) as usize,
                less: self.wanted == Wanted::Less,
                equal: self.wanted == Wanted::Equal || first > 0,
            })
        };
        [(0, self.low), (self.low, self.bits)].into_iter().flat_map(part)
    }

    /// Digits of the low part, and of the other one.
    pub fn counts(self) -> [usize; 2] {
        [self.low, self.bits - self.low].map(|bits| bits.div_ceil(DIGIT) as usize)
    }
}

/// What leaves of n numbers use.
pub(crate) fn uses(of: Leaves, n: usize) -> Uses {
    let sent: usize = of.digits().map(|digit| digit.pads() - digit.shares()).sum();
    Uses::of(of, n, [sent as u64 * plane_bytes(n), u64::from(of.bits) * plane_bytes(n)], 2)
}

impl Correlation for Leaves {
    fn transfers(&self) -> [usize; 2] {
        [self.bits as usize, 0]
    }

    /// Digit by digit: of the server all pads, those of a place beside each other; of the client its place, and its pads.
    fn shape(&self, side: Side) -> Shape {
        let of = |digit: Digit| match side {
            Side::Server => digit.pads(),
            Side::Client => digit.len() + digit.shares(),
        };
        Shape::of(self.digits().map(of).sum(), Vec::new())
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (side, pair) = (maker.side, &mut *maker.pair);
        let each = planes::words(frame.n);
        let mut at = 0;
        for digit in self.digits() {
            let pads = digit.pads();
            match side {
                Side::Server => {
                    let sums = all_pads(&digit, pair, frame.n)?;
                    planes::split(&sums, frame.planes_mut(at, pads));
                    at += pads;
                }
                Side::Client => {
                    let (place, sums) = own_pads(&digit, pair, frame.n)?;
                    let mut of_places = Wiped::zeros(pads * each);
                    planes::split(&sums, &mut of_places);
                    place.iter().enumerate().for_each(|(i, bits)| {
                        frame.plane_mut(at + i).copy_from_slice(bits);
                    });
                    at += digit.len();
                    for share in 0..digit.shares() {
                        let pad =
                            |j: usize, word: usize| of_places[(digit.shares() * j + share) * each + word];
                        let place = |i: usize, word: usize| place[i][word];
                        chosen(digit.len(), pad, place, frame.plane_mut(at + share));
                    }
                    at += digit.shares();
                }
            }
        }
        Ok(())
    }
}

/// Which of a digit's pads the 1 of a bit serves: bit `shares j + share` of the mask where j has the bit.
fn with_one(digit: &Digit, bit: usize) -> u64 {
    let shares = digit.shares();
    (0..digit.pads()).filter(|pad| (pad / shares) >> bit & 1 == 1).fold(0, |mask, pad| mask | 1 << pad)
}

/// The server's pads of n elements: bit `shares j + share` is that of place j.
fn all_pads(digit: &Digit, pair: &mut Pair, n: usize) -> Result<Wiped<u64>, Short> {
    let mut sums = Wiped::zeros(n);
    for bit in 0..digit.len() {
        let [mut zero, mut one] = pair.sender.take(n)?.into_pads().strings;
        let ones = with_one(digit, bit);
        // one string of each bit's transfer, whichever the place takes
        let zeros = if mutation::active("pads-of-ones-alone") { 0 } else { !ones };
        zero.words_into(ring(digit), &mut sums, |sum, zero| *sum ^= zero & zeros);
        one.words_into(ring(digit), &mut sums, |sum, one| *sum ^= one & ones);
    }
    if mutation::active("pads-constant") {
        sums.fill(0);
    }
    Ok(sums)
}

/// The client's place, a plane for each bit, and sums of strings of which those at its place are its pads.
fn own_pads(digit: &Digit, pair: &mut Pair, n: usize) -> Result<(Vec<Wiped<u64>>, Wiped<u64>), Short> {
    let (mut place, mut sums) = (Vec::with_capacity(digit.len()), Wiped::zeros(n));
    for bit in 0..digit.len() {
        let mut received = pair.receiver.take(n)?.into_pads();
        let ones = if mutation::active("pads-of-ones-alone") { with_one(digit, bit) } else { u64::MAX };
        received.strings.words_into(ring(digit), &mut sums, |sum, string| *sum ^= string & ones);
        place.push(received.choices);
    }
    if mutation::active("pads-constant") {
        sums.fill(0);
    }
    Ok((place, sums))
}

/// As many bits of a string as a digit has pads: each is used once.
fn ring(digit: &Digit) -> Ring {
    Ring::new(digit.pads() as u32)
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
    of.digits().map(|digit| Leaf { less: plane(digit.less), equal: plane(digit.equal) }).collect()
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
    let sent = of.digits().map(|digit| digit.pads() - digit.shares()).sum();
    let mut message = Outgoing::new(sent, n);
    for frame in material {
        let (first, each) = (frame.first / 64, planes::words(frame.n));
        let (mut pad_at, mut sent_at) = (0, 0);
        for (digit, leaf) in of.digits().zip(&mut leaves) {
            let places = theirs.chunk(digit.bits.clone(), frame.first, frame.n);
            let (shares, entries) = (digit.shares(), 1 << digit.len());
            let mut masked = vec![0; digit.pads() * each];
            for word in 0..each {
                let hot = one_hot(digit.len(), |i| own.get(digit.bits.start + i)[first + word]);
                for share in 0..shares {
                    let mut pads = [0; ENTRIES];
                    for (j, pad) in pads.iter_mut().take(entries).enumerate() {
                        *pad = frame.plane(pad_at + shares * j + share)[word];
                    }
                    // entry j takes the pad of j XORed with what came
                    for i in 0..digit.len() {
                        let by = places[i * each + word];
                        for j in (0..entries).filter(|j| j >> i & 1 == 0) {
                            let (low, high) = pads.split_at_mut(j + 1);
                            swap(&mut low[j], &mut high[(1 << i) - 1], by);
                        }
                    }
                    if mutation::active("entries-unmasked") {
                        pads.fill(0);
                    }
                    let of_entry = if share == 0 && digit.less { above(hot) } else { hot };
                    let zero = pads[0] ^ of_entry[0];
                    masked[share * each + word] = zero;
                    for j in 1..entries {
                        masked[(shares * j + share) * each + word] = pads[j] ^ of_entry[j] ^ zero;
                    }
                }
            }
            let mut masked = masked.chunks_exact(each);
            for (share, own) in leaf.shares_mut().zip(&mut masked) {
                share[first..][..each].copy_from_slice(own);
                planes::tidy(&mut share[first..][..each], frame.n);
            }
            masked.enumerate().for_each(|(i, entry)| message.put(sent_at + i, frame.first, entry));
            pad_at += digit.pads();
            sent_at += digit.pads() - shares;
        }
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
        for digit in of.digits() {
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
        for (digit, leaf) in of.digits().zip(&mut leaves) {
            let (shares, sent) = (digit.shares(), digit.pads() - digit.shares());
            let entries = theirs.chunk(came..came + sent, frame.first, frame.n);
            at += digit.len();
            for (share, out) in leaf.shares_mut().enumerate() {
                let out = &mut out[first..][..each];
                // entry 0 is its pad
                let entry = |j: usize, word: usize| match j {
                    0 => 0,
                    _ => entries[(shares * (j - 1) + share) * each + word],
                };
                let digit_of = |i: usize, word: usize| own.get(digit.bits.start + i)[first + word];
                chosen(digit.len(), entry, digit_of, out);
                planes::xor(out, frame.plane(at + share));
                planes::tidy(out, frame.n);
            }
            at += shares;
            came += sent;
        }
    }
    Ok(leaves)
}
