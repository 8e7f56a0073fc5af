//! Bits and ring elements multiplied: choices, bits as elements, and the widening ReLU.
//!
//! *Before a run*, random transfers of elements ([`Offers`]): the sender has p0 and p1, the receiver a random bit and the one of them that
//! it says. *In the run* the receiver sends its choice b XORed with its random bit; where that is 1, the sender exchanges p0 and p1. It
//! sends `p0 - p1 + x`. The receiver gets `p0 + b x`, and the sender's share of `b x` is `-p0`. The message is masked by the element
//! that the receiver lacks.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Maker, Shape};
use crate::mutation;
use crate::planes::{self, Plane, bit, mask, swap};
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::{Incoming, Outgoing};
use privet_prg::Wiped;
use privet_ring::{Ring, pack, unpack};

/// Which side offers elements to the other one's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Server,
    Both,
}

impl By {
    /// Whether a side does.
    pub fn has(self, side: Side) -> bool {
        self == By::Both || side == Side::Server
    }
}

/// Random transfers of elements. Of a side's elements the first two are what it offers, if it does; then what it receives. Its only
/// plane are its random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    pub ring: Ring,
    pub by: By,
}

impl Correlation for Offers {
    fn transfers(&self) -> [usize; 2] {
        Side::ALL.map(|side| usize::from(self.by.has(side)))
    }

    fn shape(&self, side: Side) -> Shape {
        let (offers, takes) = (self.by.has(side), self.by.has(side.other()));
        let elements = usize::from(takes) + 2 * usize::from(offers);
        Shape::of(usize::from(takes), vec![self.ring; elements])
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (side, pair) = (maker.side, &mut *maker.pair);
        if self.by.has(side) {
            let strings = pair.sender.take(frame.n)?.into_pads().strings;
            for (i, mut string) in strings.into_iter().enumerate() {
                frame.set_elements(i, &string.words(self.ring));
            }
        }
        if self.by.has(side.other()) {
            let mut received = pair.receiver.take(frame.n)?.into_pads();
            frame.plane_mut(0).copy_from_slice(&received.choices);
            frame.set_elements(self.taken(side), &received.strings.words(self.ring));
        }
        Ok(())
    }
}

impl Offers {
    /// Where what a side receives lies among its elements.
    pub fn taken(self, side: Side) -> usize {
        2 * usize::from(self.by.has(side))
    }
}

/// `b`, as a factor of what the peer chooses by: `1 - 2 b`.
fn flipped(b: u64, x: u64) -> u64 {
    (x ^ b.wrapping_neg()).wrapping_add(b)
}

/// Choices of a chunk, masked by a plane of its frame, into plane `place` of a message.
pub(crate) fn masked(frame: &Frame, random: usize, choices: &[u64], place: usize, message: &mut Outgoing) {
    let first = frame.first / 64;
    let mut masked = choices[first..][..planes::words(frame.n)].to_vec();
    planes::xor(&mut masked, frame.plane(random));
    message.put(place, frame.first, &masked);
}

/// A chunk of x offered to the peer's choices, which came in a plane of a message: the first two elements of the frame are p0 and p1.
/// The entries are appended to the message; `share(i, s)` gets the share of element i's product, not reduced.
pub(crate) fn offer(
    ring: Ring,
    frame: &Frame,
    (theirs, plane): (&Incoming, usize),
    x: impl Fn(usize) -> u64,
    message: &mut Vec<u8>,
    mut share: impl FnMut(usize, u64),
) {
    let [mut zero, one] = [0, 1].map(|i| frame.elements(i));
    let exchanged = theirs.chunk(plane..plane + 1, frame.first, frame.n);
    let open = if mutation::active("products-in-clear") { 0 } else { u64::MAX };
    for (i, (zero, one)) in zero.iter_mut().zip(one.iter()).enumerate() {
        let mut one = *one;
        swap(zero, &mut one, mask(&exchanged, i));
        share(frame.first + i, zero.wrapping_neg());
        *zero = (zero.wrapping_sub(one) & open).wrapping_add(x(frame.first + i));
    }
    pack(ring, &zero, message);
}

/// A chunk received: element `at` of the frame, and the entries where the choice is 1; not reduced.
pub(crate) fn take(
    cx: &Cx,
    ring: Ring,
    frame: &Frame,
    at: usize,
    choices: &[u64],
    entries: &[u8],
) -> Result<Wiped<u64>, RunError> {
    let entries = elements(cx, ring, frame, entries)?;
    let (mut got, choices) = (frame.elements(at), &choices[frame.first / 64..]);
    for (i, (got, entry)) in got.iter_mut().zip(entries).enumerate() {
        *got = got.wrapping_add(entry & mask(choices, i));
    }
    Ok(got)
}

/// A chunk's elements of all that are packed in a message.
pub(crate) fn elements(cx: &Cx, ring: Ring, frame: &Frame, packed: &[u8]) -> Result<Vec<u64>, RunError> {
    let first = ring.packed_bytes(frame.first);
    let here = packed.get(first..first + ring.packed_bytes(frame.n));
    let here = here.ok_or_else(|| cx.wrong("too few elements"))?;
    unpack(ring, here, frame.n).map_err(|e| cx.wrong(e))
}

/// Shares of `d x` modulo 2^k; d is XOR-shared, x additively. Each side offers its share of x to the other's of d.
pub(crate) fn choose(cx: &mut Cx, ring: Ring, d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, of) = (x.len(), Offers { ring, by: By::Both });
    let material = cx.take(of, n)?;
    let mut message = Outgoing::new(1, n);
    material.frames().for_each(|frame| masked(frame, 0, d, 0, &mut message));
    let theirs = cx.exchange("choices", message.bytes(), plane_bytes(n) as usize)?;
    let theirs = cx.incoming(n, theirs)?;
    let mut entries = Vec::with_capacity(ring.packed_bytes(n));
    let mut share = vec![0; n];
    for frame in material.frames() {
        let offered = |i: usize| flipped(bit(d, i), x[i]);
        offer(ring, frame, (&theirs, 0), offered, &mut entries, |i, own| share[i] = own);
    }
    let len = entries.len();
    let theirs = cx.exchange("chosen", entries, len)?;
    for frame in material {
        let got = take(cx, ring, &frame, of.taken(cx.side), d, &theirs)?;
        for (i, got) in (frame.first..).zip(got.iter()) {
            share[i] = ring.wrap(share[i].wrapping_add(*got).wrapping_add(x[i] & mask(d, i)));
        }
    }
    Ok(share)
}

/// What [`choose`] of n elements uses.
pub(crate) fn choose_uses(bits: u32, n: usize) -> Uses {
    let of = Offers { ring: Ring::new(bits), by: By::Both };
    Uses::of(of, n, [plane_bytes(n) + word_bytes(bits, n); 2], 2)
}

/// Shares modulo 2^l of the product of the client's bit and the server's.
pub(crate) fn both(cx: &mut Cx, bits: u32, own: &Plane, n: usize) -> Result<Vec<u64>, RunError> {
    let mut share = vec![0; n];
    if bits == 0 {
        return Ok(share);
    }
    let ring = Ring::new(bits);
    let of = Offers { ring, by: By::Server };
    let material = cx.take(of, n)?;
    match cx.side {
        Side::Server => {
            let theirs = cx.exchange("bits", Vec::new(), plane_bytes(n) as usize)?;
            let (theirs, mut message) = (cx.incoming(n, theirs)?, Vec::with_capacity(ring.packed_bytes(n)));
            for frame in material {
                let set = |i: usize, own: u64| share[i] = ring.wrap(own);
                offer(ring, &frame, (&theirs, 0), |i| bit(own, i), &mut message, set);
            }
            cx.exchange("products of bits", message, 0)?;
        }
        Side::Client => {
            let mut message = Outgoing::new(1, n);
            material.frames().for_each(|frame| masked(frame, 0, own, 0, &mut message));
            cx.exchange("bits", message.bytes(), 0)?;
            let theirs = cx.exchange("products of bits", Vec::new(), word_bytes(bits, n) as usize)?;
            for frame in material {
                let got = take(cx, ring, &frame, of.taken(cx.side), own, &theirs)?;
                (frame.first..).zip(got.iter()).for_each(|(i, got)| share[i] = ring.wrap(*got));
            }
        }
    }
    Ok(share)
}

/// What [`both`] of n elements uses.
pub(crate) fn both_uses(bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let of = Offers { ring: Ring::new(bits), by: By::Server };
    Uses::of(of, n, [word_bytes(bits, n), plane_bytes(n)], 2)
}

/// A shared bit as shares modulo 2^l: `b + b' - 2 b b'`, whose product is needed modulo 2^(l-1).
pub(crate) fn element(cx: &mut Cx, ring: Ring, b: &Plane, n: usize) -> Result<Vec<u64>, RunError> {
    let product = both(cx, ring.bits() - 1, b, n)?;
    let of = |(i, p): (usize, &u64)| ring.wrap(bit(b, i).wrapping_sub(p << 1));
    Ok(product.iter().enumerate().map(of).collect())
}

/// What [`element`] of n bits uses.
pub(crate) fn element_uses(bits: u32, n: usize) -> Uses {
    both_uses(bits - 1, n)
}

/// Random transfers for [`widen`] from a ring of m bits into one of k: one of two elements of k bits, offered by the client; and one of four
/// of k - m bits, offered by the server, of which two rows share their lowest m bits.
///
/// Two segments of the strings serve four entries: those of one segment differ in both choices, so what the client lacks of
/// each entry stands in no other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widening {
    from: Ring,
    to: Ring,
}

/// Where a side's elements lie in a frame of [`Widening`].
mod place {
    /// The server's low parts of both rows, and its high parts: of row b and column c the one at `b + 2 c`.
    pub const LOW: usize = 0;
    pub const HIGH: usize = 2;
    /// What the server receives.
    pub const TAKEN: usize = 6;
    /// What the client receives, after both that it offers.
    pub const OWN_LOW: usize = 2;
    pub const OWN_HIGH: usize = 3;
}

impl Widening {
    fn new([from, to]: [Ring; 2]) -> Widening {
        Widening { from, to }
    }

    /// What is above the lower ring.
    fn above(self) -> Ring {
        Ring::new(self.to.bits() - self.from.bits())
    }
}

/// The segment of the strings that entries of this parity are masked with.
fn segment(parity: usize) -> usize {
    if mutation::active("segments-shared") { 0 } else { parity }
}

impl Correlation for Widening {
    fn transfers(&self) -> [usize; 2] {
        [2, 1]
    }

    fn shape(&self, side: Side) -> Shape {
        let (from, to, above) = (self.from, self.to, self.above());
        match side {
            Side::Server => Shape::of(1, vec![from, from, above, above, above, above, to]),
            Side::Client => Shape::of(2, vec![to, to, from, above]),
        }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (side, pair) = (maker.side, &mut *maker.pair);
        let (n, from, above) = (frame.n, self.from, self.above());
        match side {
            Side::Server => {
                let mut received = pair.receiver.take(n)?.into_pads();
                frame.plane_mut(0).copy_from_slice(&received.choices);
                frame.set_elements(place::TAKEN, &received.strings.words(self.to));
                let strings = [pair.sender.take(n)?, pair.sender.take(n)?];
                let [mut rows, mut columns] = strings.map(|cots| cots.into_pads().strings);
                for (i, row) in rows.iter_mut().enumerate() {
                    frame.set_elements(place::LOW + i, &row.words(from));
                }
                for parity in [0, 1] {
                    let [rows, columns] =
                        [&mut rows, &mut columns].map(|all| all.each_mut().map(|s| s.words(above)));
                    for j in (0..4).filter(|j| segment(j & 1 ^ j >> 1) == parity) {
                        let sums = rows[j & 1].iter().zip(columns[j >> 1].iter());
                        let sums: Wiped<u64> = sums.map(|(row, column)| row.wrapping_add(*column)).collect();
                        frame.set_elements(place::HIGH + j, &sums);
                    }
                }
            }
            Side::Client => {
                for (i, mut string) in pair.sender.take(n)?.into_pads().strings.into_iter().enumerate() {
                    frame.set_elements(i, &string.words(self.to));
                }
                let [mut row, mut column] =
                    [pair.receiver.take(n)?, pair.receiver.take(n)?].map(|cots| cots.into_pads());
                frame.plane_mut(0).copy_from_slice(&row.choices);
                frame.plane_mut(1).copy_from_slice(&column.choices);
                frame.set_elements(place::OWN_LOW, &row.strings.words(from));
                let segments = [0, 1].map(|_| [row.strings.words(above), column.strings.words(above)]);
                let high = |i: usize| {
                    let parity = bit(&row.choices, i) ^ bit(&column.choices, i);
                    // which segment, without a branch
                    let odd = (segment(parity as usize) as u64).wrapping_neg();
                    let sum = |of: &[Wiped<u64>; 2]| of[0][i].wrapping_add(of[1][i]);
                    sum(&segments[0]) & !odd | sum(&segments[1]) & odd
                };
                frame.set_elements(place::OWN_HIGH, &(0..n).map(high).collect::<Wiped<u64>>());
            }
        }
        Ok(())
    }
}

/// Shares modulo 2^k of x where d is 1 and of 0 elsewhere, for x of m bits that is not negative where d is 1.
///
/// Where d is 1, `x = c + s - 2^m (C + S) + 2^m C S` with both sides' shares c, s and their highest bits C, S. The client offers
/// its part `c - 2^m C` to the server's share of d. The server's part `s - 2^m S + 2^m C S` is one of four that the
/// client chooses by its share of d and by C; its lowest m bits follow from the first choice alone.
pub(crate) fn widen(cx: &mut Cx, rings: [Ring; 2], d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    if rings[0] == rings[1] {
        return choose(cx, rings[1], d, x);
    }
    match cx.side {
        Side::Server => widen_server(cx, Widening::new(rings), d, x),
        Side::Client => widen_client(cx, Widening::new(rings), d, x),
    }
}

/// What [`widen`] of n elements uses.
pub(crate) fn widen_uses([from, to]: [u32; 2], n: usize) -> Uses {
    if from == to {
        return choose_uses(to, n);
    }
    let high = 3 * word_bytes(to - from, n);
    let server = plane_bytes(n) + word_bytes(from, n) + high;
    let client = 2 * plane_bytes(n) + word_bytes(to, n);
    Uses::of(Widening::new([from, to].map(Ring::new)), n, [server, client], 2)
}

/// A share of m bits as a signed number.
fn signed(from: Ring, to: Ring, x: u64) -> u64 {
    to.wrap(from.signed(x) as u64)
}

fn widen_client(cx: &mut Cx, of: Widening, d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, from, to, above) = (x.len(), of.from, of.to, of.above());
    let highest = planes::plane(x, from.bits() - 1);
    let material = cx.take(of, n)?;
    let mut choices = Outgoing::new(2, n);
    for frame in material.frames() {
        masked(frame, 0, d, 0, &mut choices);
        masked(frame, 1, &highest, 1, &mut choices);
    }
    let theirs = cx.exchange("choices", choices.bytes(), plane_bytes(n) as usize)?;
    let theirs = cx.incoming(n, theirs)?;
    let own = |i: usize| signed(from, to, x[i]);
    let mut share = vec![0; n];
    let mut entries = Vec::with_capacity(to.packed_bytes(n));
    for frame in material.frames() {
        let offered = |i: usize| flipped(bit(d, i), own(i));
        offer(to, frame, (&theirs, 0), offered, &mut entries, |i, own| share[i] = own);
    }
    let (low_len, high_len) = (word_bytes(from.bits(), n) as usize, word_bytes(above.bits(), n) as usize);
    let theirs = cx.exchange("chosen", entries, low_len + 3 * high_len)?;
    let (low, high) = theirs.split_at(low_len);
    for frame in material {
        let low_pads = take(cx, from, &frame, place::OWN_LOW, d, low)?;
        let mut high_pads = frame.elements(place::OWN_HIGH);
        for (j, sent) in (1..).zip(high.chunks_exact(high_len)) {
            let sent = elements(cx, above, &frame, sent)?;
            for (i, (pad, sent)) in high_pads.iter_mut().zip(sent).enumerate() {
                let i = frame.first + i;
                // which of the four, without a branch
                let chosen = bit(d, i) + 2 * bit(&highest, i);
                *pad = pad.wrapping_add(sent & u64::from(chosen == j).wrapping_neg());
            }
        }
        for (i, (low, high)) in low_pads.iter().zip(high_pads.iter()).enumerate() {
            let i = frame.first + i;
            let got = from.wrap(*low) | high << from.bits();
            share[i] = to.wrap(share[i].wrapping_add(got).wrapping_add(own(i) & mask(d, i)));
        }
    }
    Ok(share)
}

fn widen_server(cx: &mut Cx, of: Widening, d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, from, to, above) = (x.len(), of.from, of.to, of.above());
    let material = cx.take(of, n)?;
    let mut choices = Outgoing::new(1, n);
    material.frames().for_each(|frame| masked(frame, 0, d, 0, &mut choices));
    let theirs = cx.exchange("choices", choices.bytes(), 2 * plane_bytes(n) as usize)?;
    let theirs = cx.incoming(n, theirs)?;
    let mut share = vec![0; n];
    let mut low_entries = Vec::with_capacity(from.packed_bytes(n));
    let mut high_entries = [(); 3].map(|()| Vec::with_capacity(above.packed_bytes(n)));
    for frame in material.frames() {
        let exchanged = theirs.chunk(0..2, frame.first, frame.n);
        let (rows, columns) = exchanged.split_at(planes::words(frame.n));
        let [mut low_pads, low_ones] = [0, 1].map(|i| frame.elements(place::LOW + i));
        let mut pads = [0, 1, 2, 3].map(|j| frame.elements(place::HIGH + j));
        for i in 0..frame.n {
            let at = frame.first + i;
            let (by_row, by_column) = (mask(rows, i), mask(columns, i));
            let (mut low_zero, mut low_one) = (low_pads[i], low_ones[i]);
            swap(&mut low_zero, &mut low_one, by_row);
            let mut pad = [0, 1, 2, 3].map(|j| pads[j][i]);
            let [a, b, c, e] = &mut pad;
            swap(a, b, by_row);
            swap(c, e, by_row);
            swap(a, c, by_column);
            swap(b, e, by_column);
            let own = signed(from, to, x[at]);
            let highest = from.msb(x[at]);
            let of = |b: u64, c: u64| {
                let wrapped =
                    if mutation::active("wrap-forgotten") { 0 } else { (c & highest) << from.bits() };
                to.wrap(own.wrapping_add(wrapped)) & (b ^ bit(d, at)).wrapping_neg()
            };
            // the mask of what is chosen: such that entry 0 is its pad
            let low = from.wrap(low_zero.wrapping_sub(of(0, 0)));
            let of_low = of(0, 0).wrapping_add(low) >> from.bits();
            let hidden = low | above.wrap(pad[0].wrapping_sub(of_low)) << from.bits();
            low_pads[i] = of(1, 0).wrapping_add(low).wrapping_sub(low_one);
            for (j, (pads, pad)) in pads.iter_mut().zip(pad).enumerate().skip(1) {
                let sum = to.wrap(of(j as u64 & 1, j as u64 >> 1).wrapping_add(hidden));
                pads[i] = (sum >> from.bits()).wrapping_sub(pad);
            }
            share[at] = hidden.wrapping_neg();
        }
        pack(from, &low_pads, &mut low_entries);
        pads[1..].iter().zip(&mut high_entries).for_each(|(entries, out)| pack(above, entries, out));
    }
    let mut entries = low_entries;
    high_entries.iter().for_each(|high| entries.extend_from_slice(high));
    let theirs = cx.exchange("chosen", entries, word_bytes(to.bits(), n) as usize)?;
    for frame in material {
        let got = take(cx, to, &frame, place::TAKEN, d, &theirs)?;
        for (share, got) in share[frame.first..].iter_mut().zip(got.iter()) {
            *share = to.wrap(share.wrapping_add(*got));
        }
    }
    Ok(share)
}
