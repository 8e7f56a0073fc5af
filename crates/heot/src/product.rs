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
    /// It is the first one: the product is a square.
    Same,
    /// The server knows all of it, as of weights; the client's share is 0.
    AtServer,
}

impl Second {
    /// Whether a side offers a factor to the bits of one of the other side's. Where one way is enough the client does: the server sends more
    /// in a run.
    fn is_offered_by(self, side: Side) -> bool {
        self == Second::Shared || side == Side::Client
    }

    /// Factors that are opened.
    fn factors(self) -> usize {
        if self == Second::Shared { 2 } else { 1 }
    }
}

/// Random factors a and b, and `c = a b`. Of two shared factors each side has shares of all three, in this order. Of a square b is a, and
/// stands there once. Where the server knows the second one, a is the client's and b the server's, and both have shares of c after it.
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
        Side::ALL.map(|side| if self.second.is_offered_by(side) { self.ring.bits() as usize } else { 0 })
    }

    fn shape(&self, _: Side) -> Shape {
        Shape::of(0, vec![self.ring; self.second.factors() + 1])
    }

    fn made(&self, n: usize) -> Made {
        let bytes =
            Side::ALL.map(|side| if self.second.is_offered_by(side) { self.corrections(n) } else { 0 });
        Made { bytes, steps: u64::from(bytes != [0; 2]), ..Made::default() }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (n, side) = (frame.n, maker.side);
        let own = self.second.is_offered_by(side).then(|| self.offer(maker, n)).transpose()?;
        let taken = self.second.is_offered_by(side.other()).then(|| self.take(maker, n)).transpose()?;
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
            (Some((factor, mut c)), None) | (None, Some((factor, mut c))) => {
                if self.second == Second::Same {
                    let square = |c: u64, a: u64| sum(c.wrapping_mul(2), a.wrapping_mul(a));
                    c.iter_mut().zip(factor.iter()).for_each(|(c, a)| *c = square(*c, *a));
                }
                frame.set_elements(0, &factor);
                frame.set_elements(1, &c);
            }
            (None, None) => unreachable!("the client offers one"),
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

/// Whether encryption takes less than transfers for so many products that the server knows no factor of, and at most a quarter more
/// bytes. AGREEMENT.
fn is_slotted(factors: Factors, n: usize) -> bool {
    if factors.second == Second::AtServer {
        return false;
    }
    let [slotted, factors] =
        [Slotted { ring: factors.ring }.into(), factors.into()].map(|of: Kind| Need { of, n });
    let [some, other] = [&slotted, &factors].map(|need| need.made().bytes.into_iter().sum::<u64>());
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

/// Shares of `x y`, element by element, modulo 2^k. Of a square y is x.
pub(crate) fn multiply(
    cx: &mut Cx,
    ring: Ring,
    x: &[u64],
    y: &[u64],
    second: Second,
) -> Result<Vec<u64>, RunError> {
    let of = Factors { ring, second };
    if is_slotted(of, x.len()) {
        let material = cx.take(Slotted { ring }, x.len())?;
        return shared(cx, ring, material, x, y);
    }
    let material = cx.take(of, x.len())?;
    match second {
        Second::Shared => shared(cx, ring, material, x, y),
        Second::Same => square(cx, ring, material, x),
        Second::AtServer => known(cx, ring, material, x, y),
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

/// With `e = x - a` open, `x^2 = c + 2 a e + e^2`. The server adds `e^2`.
fn square(cx: &mut Cx, ring: Ring, material: Material<Factors>, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let each = ring.packed_bytes(x.len());
    let mut message = Vec::with_capacity(each);
    material.frames().for_each(|frame| mask_with(ring, frame, 0, x, &mut message));
    let theirs = cx.exchange("masked factors", message, each)?;
    let adds = u64::from(cx.side == Side::Server || mutation::active("squares-at-the-client-too"));
    let mut out = Vec::with_capacity(x.len());
    for frame in material {
        let ([a, c], opened) = ([0, 1].map(|i| frame.elements(i)), mux::elements(cx, ring, &frame, &theirs)?);
        out.extend((0..frame.n).map(|i| {
            let e = opened[i].wrapping_add(x[frame.first + i]).wrapping_sub(a[i]);
            let right = a[i].wrapping_mul(2).wrapping_add(e.wrapping_mul(adds));
            ring.wrap(c[i].wrapping_add(e.wrapping_mul(right)))
        }));
    }
    Ok(out)
}

/// The client opens its share of x less a, the server y less b. With both open `x1 y = c + e y + a f`, of which the client adds
/// the last term.
fn known(
    cx: &mut Cx,
    ring: Ring,
    material: Material<Factors>,
    x: &[u64],
    y: &[u64],
) -> Result<Vec<u64>, RunError> {
    let n = x.len();
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
    let (of, each) = (Factors { ring: Ring::new(bits), second }, word_bytes(bits, n));
    if is_slotted(of, n) {
        return Uses::of(Slotted { ring: of.ring }, n, [2 * each; 2], 1);
    }
    Uses::of(of, n, [second.factors() as u64 * each; 2], 1)
}
