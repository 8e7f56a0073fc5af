//! Bits and ring elements multiplied: choices, bits as elements, and shares that wrap.
//!
//! *Before a run*, random transfers of elements ([`Offers`]): the sender has p0 and p1, the receiver a random bit r and the one of them that
//! it says. *In the run* the receiver sends its choice b XORed with r, and at the same time the sender `x - (p1 - p0)`. The receiver gets
//! `p0 + r x` of the element that it has, and the sender's share of `r x` is `-p0`. With `f = b ^ r` a choice is `b = f + (1 - 2 f) r`, so both
//! make shares of `b x` of theirs. Either message is masked by what its receiver lacks: r, and one of p0 and p1.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Maker, Material, Shape};
use crate::mutation;
use crate::planes::{self, Plane, bit, mask};
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::{Incoming, Outgoing};
use privet_prg::Wiped;
use privet_ring::{Ring, pack, unpack};

/// Which side offers elements to the other one's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Client,
    Both,
}

impl By {
    /// Whether a side does.
    pub fn has(self, side: Side) -> bool {
        self == By::Both || side == Side::Client
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

/// x where b is 0, `-x` where it is 1.
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

/// A chunk of x offered to the peer's choices, appended to a message. The first two elements of the frame are p0 and p1.
fn offer(ring: Ring, frame: &Frame, x: impl Fn(usize) -> u64, message: &mut Vec<u8>) {
    let [mut zero, one] = [0, 1].map(|i| frame.elements(i));
    let open = if mutation::active("products-in-clear") { 0 } else { u64::MAX };
    for (i, (zero, one)) in zero.iter_mut().zip(one.iter()).enumerate() {
        *zero = (zero.wrapping_sub(*one) & open).wrapping_add(x(frame.first + i));
    }
    pack(ring, &zero, message);
}

/// The sender's shares of a chunk, not reduced, once the peer's masked choices came in a plane: `f x - (1 - 2 f) p0`.
fn offered(frame: &Frame, theirs: &Incoming, x: impl Fn(usize) -> u64, mut share: impl FnMut(usize, u64)) {
    let (zero, theirs) = (frame.elements(0), theirs.chunk(0..1, frame.first, frame.n));
    for (i, zero) in zero.iter().enumerate() {
        let own = flipped(bit(&theirs, i), zero.wrapping_neg());
        share(frame.first + i, own.wrapping_add(x(frame.first + i) & mask(&theirs, i)));
    }
}

/// The receiver's shares of a chunk, not reduced: `(1 - 2 f) (p_r + r e)` for element `at` of the frame and what came for it.
fn take(
    cx: &Cx,
    ring: Ring,
    frame: &Frame,
    at: usize,
    choices: &[u64],
    theirs: &[u8],
) -> Result<Wiped<u64>, RunError> {
    let theirs = elements(cx, ring, frame, theirs)?;
    let (mut got, random, choices) = (frame.elements(at), frame.plane(0), &choices[frame.first / 64..]);
    for (i, (got, e)) in got.iter_mut().zip(theirs).enumerate() {
        let product = got.wrapping_add(e & mask(random, i));
        *got = flipped(bit(choices, i) ^ bit(random, i), product);
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

/// Shares of `d x` modulo 2^k; d is XOR-shared, x additively. Each side offers its share of x to the other's of d, and both messages pass at
/// once.
pub(crate) fn choose(cx: &mut Cx, ring: Ring, d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, of) = (x.len(), Offers { ring, by: By::Both });
    let material = cx.take(of, n)?;
    let own = |i: usize| flipped(bit(d, i), x[i]);
    let (mut choices, mut packed) = (Outgoing::new(1, n), Vec::with_capacity(ring.packed_bytes(n)));
    for frame in material.frames() {
        masked(frame, 0, d, 0, &mut choices);
        offer(ring, frame, own, &mut packed);
    }
    let mut message = choices.bytes();
    message.append(&mut packed);
    let due = message.len();
    let mut theirs = cx.exchange("choices", message, due)?;
    let packed = theirs.split_off(plane_bytes(n) as usize);
    let theirs = cx.incoming(n, theirs)?;
    let mut share = vec![0; n];
    for frame in material {
        offered(&frame, &theirs, own, |i, own| share[i] = own);
        let got = take(cx, ring, &frame, of.taken(cx.side), d, &packed)?;
        for (i, got) in (frame.first..).zip(got.iter()) {
            share[i] = ring.wrap(share[i].wrapping_add(*got).wrapping_add(x[i] & mask(d, i)));
        }
    }
    Ok(share)
}

/// What [`choose`] of n elements uses.
pub(crate) fn choose_uses(bits: u32, n: usize) -> Uses {
    let of = Offers { ring: Ring::new(bits), by: By::Both };
    Uses::of(of, n, [plane_bytes(n) + word_bytes(bits, n); 2], 1)
}

/// Shares modulo 2^l of the product of the client's bit and the server's, in one step: the server chooses what the client offers.
pub(crate) fn both(cx: &mut Cx, bits: u32, own: &Plane, n: usize) -> Result<Vec<u64>, RunError> {
    if bits == 0 {
        return Ok(vec![0; n]);
    }
    let products = Both::begin(cx, bits, own, n)?;
    let (message, due) = (products.message(cx.side), products.due(cx.side));
    let theirs = cx.exchange("bits", message, due)?;
    products.finish(cx, theirs)
}

/// Products of both sides' bits on their way, whose messages may pass with other ones.
struct Both<'a> {
    ring: Ring,
    own: &'a Plane,
    n: usize,
    material: Material<Offers>,
}

impl<'a> Both<'a> {
    /// Modulo 2^l, l > 0.
    fn begin(cx: &mut Cx, bits: u32, own: &'a Plane, n: usize) -> Result<Both<'a>, RunError> {
        let ring = Ring::new(bits);
        Ok(Both { ring, own, n, material: cx.take(Offers { ring, by: By::Client }, n)? })
    }

    fn message(&self, side: Side) -> Vec<u8> {
        match side {
            Side::Client => {
                let mut message = Vec::with_capacity(self.ring.packed_bytes(self.n));
                for frame in self.material.frames() {
                    offer(self.ring, frame, |i| bit(self.own, i), &mut message);
                }
                message
            }
            Side::Server => {
                let mut message = Outgoing::new(1, self.n);
                self.material.frames().for_each(|frame| masked(frame, 0, self.own, 0, &mut message));
                message.bytes()
            }
        }
    }

    /// Bytes of the other side's message.
    fn due(&self, side: Side) -> usize {
        both_uses(self.ring.bits(), self.n).bytes[side.other() as usize] as usize
    }

    fn finish(self, cx: &mut Cx, theirs: Vec<u8>) -> Result<Vec<u64>, RunError> {
        let Both { ring, own, n, material } = self;
        let mut share = vec![0; n];
        match cx.side {
            Side::Client => {
                let theirs = cx.incoming(n, theirs)?;
                for frame in material {
                    offered(&frame, &theirs, |i| bit(own, i), |i, own| share[i] = ring.wrap(own));
                }
            }
            Side::Server => {
                let at = Offers { ring, by: By::Client }.taken(cx.side);
                for frame in material {
                    let got = take(cx, ring, &frame, at, own, &theirs)?;
                    (frame.first..).zip(got.iter()).for_each(|(i, got)| share[i] = ring.wrap(*got));
                }
            }
        }
        Ok(share)
    }
}

/// What [`both`] of n elements uses.
pub(crate) fn both_uses(bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let of = Offers { ring: Ring::new(bits), by: By::Client };
    Uses::of(of, n, [plane_bytes(n), word_bytes(bits, n)], 1)
}

/// A shared bit as shares modulo 2^l: `b + b' - 2 b b'`, whose product is needed modulo 2^(l-1).
pub(crate) fn element(cx: &mut Cx, ring: Ring, b: &Plane, n: usize) -> Result<Vec<u64>, RunError> {
    let product = both(cx, ring.bits() - 1, b, n)?;
    Ok(of_product(ring, b, &product))
}

fn of_product(ring: Ring, b: &Plane, product: &[u64]) -> Vec<u64> {
    let of = |(i, p): (usize, &u64)| ring.wrap(bit(b, i).wrapping_sub(p << 1));
    product.iter().enumerate().map(of).collect()
}

/// A shared bit on its way to an element, as [`element`] makes it.
pub(crate) struct Element<'a>(Both<'a>);

impl<'a> Element<'a> {
    /// Modulo 2^l, l > 1.
    pub fn begin(cx: &mut Cx, ring: Ring, b: &'a Plane, n: usize) -> Result<Element<'a>, RunError> {
        Ok(Element(Both::begin(cx, ring.bits() - 1, b, n)?))
    }

    /// This side's message.
    pub fn message(&self, side: Side) -> Vec<u8> {
        self.0.message(side)
    }

    /// Bytes of the other side's message.
    pub fn due(&self, side: Side) -> usize {
        self.0.due(side)
    }

    /// The element, with the other side's message.
    pub fn finish(self, cx: &mut Cx, theirs: Vec<u8>) -> Result<Vec<u64>, RunError> {
        let (ring, b) = (Ring::new(self.0.ring.bits() + 1), self.0.own);
        Ok(of_product(ring, b, &self.0.finish(cx, theirs)?))
    }
}

/// What [`element`] of n bits uses.
pub(crate) fn element_uses(bits: u32, n: usize) -> Uses {
    both_uses(bits - 1, n)
}

/// Whether the shares of x wrap, as shares modulo 2^l, for x below half of its ring: they do if either has a highest bit.
/// `C + S - C S` for both highest bits.
pub(crate) fn wraps(cx: &mut Cx, ring: Ring, bits: u32, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let highest = planes::plane(x, ring.bits() - 1);
    let products = both(cx, bits, &highest, x.len())?;
    let of = |(i, product): (usize, &u64)| bit(&highest, i).wrapping_sub(*product);
    let forgotten = mutation::active("wrap-forgotten");
    Ok(products.iter().enumerate().map(|x| if forgotten { 0 } else { of(x) }).collect())
}

/// What [`wraps`] of n elements uses.
pub(crate) fn wraps_uses(bits: u32, n: usize) -> Uses {
    both_uses(bits, n)
}

/// Shares modulo 2^k of x, which is below half of its ring of 2^m.
pub(crate) fn widen(cx: &mut Cx, [from, to]: [Ring; 2], x: Vec<u64>) -> Result<Vec<u64>, RunError> {
    if from == to {
        return Ok(x);
    }
    let wraps = wraps(cx, from, to.bits() - from.bits(), &x)?;
    Ok(x.iter().zip(wraps).map(|(x, w)| to.wrap(x.wrapping_sub(w << from.bits()))).collect())
}

/// What [`widen`] of n elements uses.
pub(crate) fn widen_uses([from, to]: [u32; 2], n: usize) -> Uses {
    wraps_uses(to - from, n)
}
