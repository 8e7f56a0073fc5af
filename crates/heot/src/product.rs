//! Shared ring elements multiplied: random ones are multiplied before a run, and their products turned to those of the operands in
//! it (Beaver, CRYPTO 1991).
//!
//! *Before a run*, transfers (Gilboa, CRYPTO 1999), k for each element and direction: the receiver's random choices are the bits of
//! its factor u. The sender's factor v is the difference of its two elements of the lowest bit, so that bit needs no message. For bit l
//! it sends `p0 - p1 + v` modulo 2^(k-l). The receiver gets `p0 + u_l v`; the shares of `u v` are their sum, and that of -p0, with
//! weight 2^l.
//!
//! *In the run* each side opens its operands less its factors. What is left is local.

use crate::context::{Cx, RunError, Side};
use crate::encryption;
use crate::material::{Correlation, Frame, Kind, Made, Maker, Material, Need, Shape};
use crate::mutation;
use crate::mux;
use crate::planes::mask;
use crate::uses::{Uses, word_bytes};
use privet_prg::Wiped;
use privet_ring::{Ring, pack, unpack};

/// Who has any of the second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// Both sides have shares.
    Shared,
    /// The server knows all of it, as of weights; the client's share is 0.
    AtServer,
}

impl Second {
    /// Whether a side has a part of the second factor, which it offers to the other side's bits of the first one.
    fn is_at(self, side: Side) -> bool {
        self == Second::Shared || side == Side::Server
    }
}

/// Random factors a and b, and `c = a b`. Of two shared factors each side has shares of all three, in this order. Where the server knows
/// the second one, a is the client's and b the server's, and both have shares of c after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factors {
    pub ring: Ring,
    pub second: Second,
}

/// The bits above bit l of a factor.
fn above(ring: Ring, l: u32) -> Ring {
    Ring::new(ring.bits() - l)
}

impl Factors {
    /// Bytes of corrections for n elements in one direction.
    fn corrections(&self, n: usize) -> u64 {
        (1..self.ring.bits()).map(|l| word_bytes(above(self.ring, l).bits(), n)).sum()
    }
}

impl Correlation for Factors {
    fn transfers(&self) -> [usize; 2] {
        Side::ALL.map(|side| if self.second.is_at(side) { self.ring.bits() as usize } else { 0 })
    }

    fn shape(&self, _: Side) -> Shape {
        Shape::of(0, vec![self.ring; if self.second == Second::Shared { 3 } else { 2 }])
    }

    fn made(&self, n: usize) -> Made {
        let bytes = Side::ALL.map(|side| if self.second.is_at(side) { self.corrections(n) } else { 0 });
        Made { bytes, steps: u64::from(bytes != [0; 2]), ..Made::default() }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (n, side) = (frame.n, maker.side);
        let own = self.second.is_at(side).then(|| self.offer(maker, n)).transpose()?;
        let taken = self.second.is_at(side.other()).then(|| self.take(maker, n)).transpose()?;
        let due = if taken.is_some() { self.corrections(n) as usize } else { 0 };
        let (offered, message) =
            own.map_or((None, Vec::new()), |(offered, message)| (Some(offered), message));
        let theirs = maker.exchange("corrections", message, due)?;
        let taken = taken.map(|taken| taken.corrected(maker, self.ring, &theirs)).transpose()?;
        let sum = |a: u64, b: u64| self.ring.wrap(a.wrapping_add(b));
        match (taken, offered) {
            (Some((a, ab)), Some((b, ba))) => {
                let c = |i: usize| sum(a[i].wrapping_mul(b[i]), sum(ab[i], ba[i]));
                let c: Wiped<u64> = (0..n).map(c).collect();
                [a, b, c].iter().enumerate().for_each(|(i, of)| frame.set_elements(i, of));
            }
            (Some((factor, c)), None) | (None, Some((factor, c))) => {
                frame.set_elements(0, &factor);
                frame.set_elements(1, &c);
            }
            (None, None) => unreachable!("the server has a part of the second factor"),
        }
        Ok(())
    }
}

/// Random factors and their products like those of [`Factors`] that are shared, of thousands of elements: multiplied by encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slotted {
    pub ring: Ring,
}

/// Elements that are encrypted together. AGREEMENT. Their ciphertexts take some 30 MB.
const TOGETHER: usize = 1 << 16;

impl Correlation for Slotted {
    fn transfers(&self) -> [usize; 2] {
        [0; 2]
    }

    fn shape(&self, _: Side) -> Shape {
        Shape::of(0, vec![self.ring; 3])
    }

    fn chunk(&self) -> usize {
        TOGETHER
    }

    fn made(&self, n: usize) -> Made {
        encryption::elements_made(self.ring, n)
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let [a, b] = [0, 1].map(|_| Wiped::new(maker.prg.elements(self.ring, frame.n)));
        let c = encryption::elements(maker, self.ring, &a, &b)?;
        [a, b, c].iter().enumerate().for_each(|(i, of)| frame.set_elements(i, of));
        Ok(())
    }
}

/// Whether encryption takes less than transfers for the products of so many shared elements, and at most a quarter more bytes. AGREEMENT.
fn is_slotted(ring: Ring, n: usize) -> bool {
    let [slotted, factors] = [Slotted { ring }.into(), Factors { ring, second: Second::Shared }.into()]
        .map(|of: Kind| Need { of, n });
    let [some, other] = [&slotted, &factors].map(|need| need.made().bytes[0]);
    4 * some <= 5 * other && slotted.weight() < factors.weight()
}

/// A side's factor, and its share of the product with the other side's.
type Half = (Wiped<u64>, Wiped<u64>);

/// What a receiver has of each bit of its factor, before corrections.
struct Taken {
    bits: Vec<(Wiped<u64>, Wiped<u64>)>,
    n: usize,
}

impl Factors {
    /// The sender's half, and its corrections.
    fn offer(&self, maker: &mut Maker<'_>, n: usize) -> Result<(Half, Vec<u8>), RunError> {
        let [mut v, mut share]: [Wiped<u64>; 2] = [0, 1].map(|_| Wiped::zeros(n));
        let mut message = Vec::with_capacity(self.corrections(n) as usize);
        for l in 0..self.ring.bits() {
            let ring = above(self.ring, l);
            let [zero, one] = maker.pair.sender.take(n)?.into_pads().strings.map(|mut s| s.words(ring));
            share.iter_mut().zip(zero.iter()).for_each(|(s, zero)| *s = s.wrapping_sub(zero << l));
            let differ = zero.iter().zip(one.iter()).map(|(zero, one)| zero.wrapping_sub(*one));
            if l == 0 {
                v.iter_mut().zip(differ).for_each(|(v, d)| *v = ring.wrap(d.wrapping_neg()));
                continue;
            }
            let open = if mutation::active("corrections-in-clear") { 0 } else { u64::MAX };
            let masked: Wiped<u64> = differ.zip(v.iter()).map(|(d, v)| (d & open).wrapping_add(*v)).collect();
            pack(ring, &masked, &mut message);
        }
        Ok(((v, share), message))
    }

    /// What the receiver has.
    fn take(&self, maker: &mut Maker<'_>, n: usize) -> Result<Taken, RunError> {
        let bit = |l: u32| -> Result<_, RunError> {
            let mut received = maker.pair.receiver.take(n)?.into_pads();
            let words = received.strings.words(above(self.ring, l));
            Ok((received.choices, words))
        };
        Ok(Taken { bits: (0..self.ring.bits()).map(bit).collect::<Result<_, _>>()?, n })
    }
}

impl Taken {
    /// The receiver's half.
    fn corrected(self, maker: &Maker<'_>, whole: Ring, corrections: &[u8]) -> Result<Half, RunError> {
        let [mut u, mut share]: [Wiped<u64>; 2] = [0, 1].map(|_| Wiped::zeros(self.n));
        let mut rest = corrections;
        for (l, (choices, got)) in (0..).zip(self.bits) {
            let ring = above(whole, l);
            let (here, after) =
                if l == 0 { rest.split_at(0) } else { rest.split_at(ring.packed_bytes(self.n)) };
            rest = after;
            let corrections = if l == 0 {
                vec![0; self.n]
            } else {
                unpack(ring, here, self.n).map_err(|e| maker.wrong("corrections", e))?
            };
            for (i, (got, m)) in got.iter().zip(corrections).enumerate() {
                let chosen = mask(&choices, i);
                u[i] |= (chosen & 1) << l;
                share[i] = share[i].wrapping_add(got.wrapping_add(m & chosen) << l);
            }
        }
        Ok((u, share))
    }
}

/// Shares of `x y`, element by element, modulo 2^k.
pub(crate) fn multiply(
    cx: &mut Cx,
    ring: Ring,
    x: &[u64],
    y: &[u64],
    second: Second,
) -> Result<Vec<u64>, RunError> {
    match second {
        Second::Shared if is_slotted(ring, x.len()) => {
            let material = cx.take(Slotted { ring }, x.len())?;
            shared(cx, ring, material, x, y)
        }
        Second::Shared => {
            let material = cx.take(Factors { ring, second }, x.len())?;
            shared(cx, ring, material, x, y)
        }
        Second::AtServer => known(cx, ring, x, y),
    }
}

/// A chunk of x less a factor, appended to a message.
fn mask_with(ring: Ring, frame: &Frame, factor: usize, x: &[u64], message: &mut Vec<u8>) {
    let mut masked = frame.elements(factor);
    let open = if mutation::active("factors-in-clear") { 0 } else { u64::MAX };
    for (a, x) in masked.iter_mut().zip(&x[frame.first..]) {
        *a = x.wrapping_sub(*a & open);
    }
    pack(ring, &masked, message);
}

/// With `e = x - a` and `f = y - b` open, `x y = c + a f + e b + e f`. The server adds `e f`.
fn shared<K>(
    cx: &mut Cx,
    ring: Ring,
    material: Material<K>,
    x: &[u64],
    y: &[u64],
) -> Result<Vec<u64>, RunError> {
    let (n, each) = (x.len(), ring.packed_bytes(x.len()));
    let mut message = Vec::with_capacity(2 * each);
    for (factor, of) in [x, y].into_iter().enumerate() {
        material.frames().for_each(|frame| mask_with(ring, frame, factor, of, &mut message));
    }
    let theirs = cx.exchange("masked factors", message, 2 * each)?;
    let adds = u64::from(cx.side == Side::Server || mutation::active("products-at-the-client-too"));
    let mut out = Vec::with_capacity(n);
    for frame in material {
        let [a, b, c] = [0, 1, 2].map(|i| frame.elements(i));
        let [e, f] = [&theirs[..each], &theirs[each..]].map(|theirs| mux::elements(cx, ring, &frame, theirs));
        let (e, f, first) = (e?, f?, frame.first);
        out.extend((0..frame.n).map(|i| {
            let e = e[i].wrapping_add(x[first + i]).wrapping_sub(a[i]);
            let f = f[i].wrapping_add(y[first + i]).wrapping_sub(b[i]);
            let right = b[i].wrapping_add(f.wrapping_mul(adds));
            ring.wrap(c[i].wrapping_add(a[i].wrapping_mul(f)).wrapping_add(e.wrapping_mul(right)))
        }));
    }
    Ok(out)
}

/// The client opens its share of x less a, the server y less b. With both open `x1 y = c + e y + a f`, of which the client adds
/// the last term.
fn known(cx: &mut Cx, ring: Ring, x: &[u64], y: &[u64]) -> Result<Vec<u64>, RunError> {
    let n = x.len();
    let material = cx.take(Factors { ring, second: Second::AtServer }, n)?;
    let own = if cx.side == Side::Server { y } else { x };
    let mut message = Vec::with_capacity(ring.packed_bytes(n));
    material.frames().for_each(|frame| mask_with(ring, frame, 0, own, &mut message));
    let theirs = cx.exchange("masked factors", message, ring.packed_bytes(n))?;
    let mut out = Vec::with_capacity(n);
    for frame in material {
        let ([own, c], opened) =
            ([0, 1].map(|i| frame.elements(i)), mux::elements(cx, ring, &frame, &theirs)?);
        let first = frame.first;
        out.extend((0..frame.n).map(|i| {
            let product = match cx.side {
                Side::Server => x[first + i].wrapping_add(opened[i]).wrapping_mul(y[first + i]),
                Side::Client => own[i].wrapping_mul(opened[i]),
            };
            ring.wrap(c[i].wrapping_add(product))
        }));
    }
    Ok(out)
}

/// What [`multiply`] of n elements uses.
pub(crate) fn uses(bits: u32, n: usize, second: Second) -> Uses {
    let (ring, each) = (Ring::new(bits), word_bytes(bits, n));
    match second {
        Second::Shared if is_slotted(ring, n) => Uses::of(Slotted { ring }, n, [2 * each; 2], 1),
        Second::Shared => Uses::of(Factors { ring, second }, n, [2 * each; 2], 1),
        Second::AtServer => Uses::of(Factors { ring, second }, n, [each; 2], 1),
    }
}
