//! Products of rows: each number of one operand times a row of elements of the other one.
//!
//! *Before a run* a row has random numbers u and v, v an element for each of the row, and shares of `u v`. Numbers are cut to digits of 4
//! bits. For each digit of u there are 16 seeds ([`privet_ot::seeds`]). Who offers v has all of them, and who has u lacks the one that its digit
//! says. Each seed serves one row, and gives elements `r_t`. With `V = sum of r_t` and `W = sum of t r_t`, who has digit d has
//! `W - d V`, as the seed that it lacks has the factor 0. The V of the lowest digit is v, and of each other one `v - V` is sent
//! (Roy, CRYPTO 2022, has this for small fields).
//!
//! *In the run* each side opens its elements less v, and its numbers less u. What is left is local.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Kind, Made, Maker, Material, Need, Shape};
use crate::mutation;
use crate::product::{Factors, Second};
use crate::uses::{Uses, word_bytes};
use privet_ot::seeds;
use privet_prg::{Seed, Wiped};
use privet_ring::{Ring, pack, unpack};

/// Random numbers u, rows v, and `u v`. Each side has shares of all three, in this order. Where the server knows the numbers, u is the server's and
/// v the client's, and both have shares of `u v` after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub ring: Ring,
    /// Elements of a row.
    pub each: usize,
    /// Whether the server knows all numbers, as of weights.
    pub known: bool,
}

/// Bits of a digit: it has 2^4 seeds.
const DIGIT: u32 = 4;

/// Elements that are made together. AGREEMENT.
const TOGETHER: usize = 1 << 16;

/// A digit of a number: its lowest bit, its bits, and the ring of what it is a factor of.
#[derive(Clone, Copy)]
struct Digit {
    first: u32,
    bits: u32,
    ring: Ring,
}

impl Rows {
    /// From the lowest one.
    fn digits(self) -> impl Iterator<Item = Digit> {
        let bits = self.ring.bits();
        (0..bits).step_by(DIGIT as usize).map(move |first| Digit {
            first,
            bits: DIGIT.min(bits - first),
            ring: Ring::new(bits - first),
        })
    }

    /// Whether a side has numbers whose digits choose; then the other one offers elements.
    fn chooses(self, side: Side) -> bool {
        !self.known || side == Side::Server
    }

    /// Bytes of a message of n rows.
    fn message(self, n: usize) -> usize {
        let corrections = |digit: &Digit| match digit.first {
            0 => 0,
            _ => word_bytes(digit.ring.bits(), n * self.each) as usize,
        };
        self.digits().map(|digit| seeds::message_bytes(digit.bits, n) + corrections(&digit)).sum()
    }

    /// Numbers, rows and products of a side: where they lie in its material.
    fn places(self, side: Side) -> [Option<usize>; 3] {
        match (self.known, side) {
            (false, _) => [Some(0), Some(1), Some(2)],
            (true, Side::Server) => [Some(0), None, Some(1)],
            (true, Side::Client) => [None, Some(0), Some(1)],
        }
    }

    /// Elements that either side opens of n rows, of its numbers and of its rows.
    fn opened(self, side: Side, n: usize) -> [usize; 2] {
        let [u, v, _] = self.places(side).map(|place| usize::from(place.is_some()));
        [u * n, v * n * self.each]
    }
}

impl Correlation for Rows {
    fn transfers(&self) -> [usize; 2] {
        Side::ALL.map(|side| if self.chooses(side.other()) { self.ring.bits() as usize } else { 0 })
    }

    fn shape(&self, side: Side) -> Shape {
        let [u, v, _] = self.places(side);
        let numbers = u.map(|_| (self.ring, 1));
        let rows = v.map(|_| (self.ring, self.each));
        Shape::of_many(numbers.into_iter().chain(rows).chain([(self.ring, self.each)]).collect())
    }

    fn chunk(&self) -> usize {
        (TOGETHER / self.each.max(1)).max(1)
    }

    fn made(&self, n: usize) -> Made {
        let bytes = Side::ALL.map(|side| if self.chooses(side.other()) { self.message(n) as u64 } else { 0 });
        // both sides expand all seeds of a direction
        let words: u64 = self.digits().map(|digit| (n * self.each) as u64 * (1 << digit.bits)).sum();
        let directions = Side::ALL.into_iter().filter(|side| self.chooses(*side)).count() as u64;
        Made { bytes, words: words * directions, steps: 1, ..Made::default() }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let (n, side, ring) = (frame.n, maker.side, self.ring);
        let offered = self.chooses(side.other()).then(|| self.offer(maker, n)).transpose()?;
        let due = if self.chooses(side) { self.message(n) } else { 0 };
        let (offered, message) =
            offered.map_or((None, Vec::new()), |(offered, message)| (Some(offered), message));
        let theirs = maker.exchange("corrections", message, due)?;
        let taken = self.chooses(side).then(|| self.take(maker, n, &theirs)).transpose()?;
        let mut products: Wiped<u64> = Wiped::zeros(n * self.each);
        for (_, share) in offered.iter().chain(&taken) {
            products.iter_mut().zip(share.iter()).for_each(|(c, share)| *c = c.wrapping_add(*share));
        }
        if let (Some((v, _)), Some((u, _))) = (&offered, &taken) {
            let own = products.chunks_exact_mut(self.each).zip(v.chunks_exact(self.each)).zip(u.iter());
            own.for_each(|((c, v), u)| {
                c.iter_mut().zip(v).for_each(|(c, v)| *c = c.wrapping_add(u.wrapping_mul(*v)))
            });
        }
        products.iter_mut().for_each(|c| *c = ring.wrap(*c));
        let [numbers, rows, last] = self.places(side);
        numbers.zip(taken).into_iter().for_each(|(at, (u, _))| frame.set_elements(at, &u));
        rows.zip(offered).into_iter().for_each(|(at, (v, _))| frame.set_elements(at, &v));
        last.into_iter().for_each(|at| frame.set_elements(at, &products));
        Ok(())
    }
}

/// A side's numbers or rows, and its share of their product with the other side's.
type Half = (Wiped<u64>, Wiped<u64>);

/// What seeds of rows expand to: the sum of all elements, and that of each times its seed's number.
struct Sums {
    once: Wiped<u64>,
    weighed: Wiped<u64>,
}

impl Sums {
    /// Of so many rows, with seeds for each.
    fn of(seeds: &[u128], rows: usize, each: usize) -> Sums {
        let [mut once, mut weighed]: [Wiped<u64>; 2] = [0, 1].map(|_| Wiped::zeros(rows * each));
        let mut words: Wiped<u64> = Wiped::zeros(each);
        let all = once.chunks_exact_mut(each).zip(weighed.chunks_exact_mut(each));
        for ((once, weighed), seeds) in all.zip(seeds.chunks_exact(seeds.len() / rows.max(1))) {
            // element t is in `once` when the numbers t - 1, ..., 0 come: so it is added t times
            for seed in seeds.iter().rev() {
                Seed::from_bytes(seed.to_le_bytes()).stream().fill(Ring::R64, &mut words);
                for ((once, weighed), word) in once.iter_mut().zip(weighed.iter_mut()).zip(words.iter()) {
                    *weighed = weighed.wrapping_add(*once);
                    *once = once.wrapping_add(*word);
                }
            }
        }
        Sums { once, weighed }
    }
}

impl Rows {
    /// The offering side's half, and its message.
    fn offer(self, maker: &mut Maker<'_>, n: usize) -> Result<(Half, Vec<u8>), RunError> {
        let [mut v, mut share]: [Wiped<u64>; 2] = [0, n * self.each].map(Wiped::zeros);
        let mut message = Vec::with_capacity(self.message(n));
        for digit in self.digits() {
            let transfers = maker.pair.sender.take(n * digit.bits as usize)?;
            let (seeds, sums) = transfers.into_seeds(digit.bits, maker.prg);
            message.extend(sums);
            let Sums { once, weighed } = Sums::of(&seeds, n, self.each);
            let weighed = share.iter_mut().zip(weighed.iter());
            weighed.for_each(|(share, w)| *share = share.wrapping_add(w << digit.first));
            if digit.first == 0 {
                v = once;
                v.iter_mut().for_each(|v| *v = self.ring.wrap(*v));
                continue;
            }
            let open = if mutation::active("row-corrections-in-clear") { 0 } else { u64::MAX };
            let masked: Wiped<u64> =
                v.iter().zip(once.iter()).map(|(v, once)| v.wrapping_sub(once & open)).collect();
            pack(digit.ring, &masked, &mut message);
        }
        Ok(((v, share), message))
    }

    /// The half of the side with numbers.
    fn take(self, maker: &mut Maker<'_>, n: usize, message: &[u8]) -> Result<Half, RunError> {
        let [mut u, mut share]: [Wiped<u64>; 2] = [n, n * self.each].map(Wiped::zeros);
        let mut rest = message;
        for digit in self.digits() {
            let (sums, after) = rest.split_at(seeds::message_bytes(digit.bits, n));
            let transfers = maker.pair.receiver.take(n * digit.bits as usize)?;
            let received =
                transfers.into_seeds(digit.bits, sums).map_err(|e| maker.wrong("corrections", e))?;
            let due = if digit.first == 0 { 0 } else { digit.ring.packed_bytes(n * self.each) };
            let (here, after) = after.split_at(due);
            rest = after;
            let corrections = match digit.first {
                0 => vec![0; n * self.each],
                _ => unpack(digit.ring, here, n * self.each).map_err(|e| maker.wrong("corrections", e))?,
            };
            let Sums { once, weighed } = Sums::of(&received.seeds, n, self.each);
            for (row, (u, d)) in u.iter_mut().zip(received.lacking.iter()).enumerate() {
                *u |= d << digit.first;
                for i in row * self.each..(row + 1) * self.each {
                    let sum = once[i].wrapping_add(corrections[i]);
                    let part = d.wrapping_mul(sum).wrapping_sub(weighed[i]);
                    share[i] = share[i].wrapping_add(part << digit.first);
                }
            }
        }
        Ok((u, share))
    }
}

/// Whether rows take less than products of elements. AGREEMENT.
pub(crate) fn is_less(of: Rows, n: usize) -> bool {
    let second = if of.known { Second::AtServer } else { Second::Shared };
    let elements = Need { of: Factors { ring: of.ring, second }.into(), n: n * of.each };
    Need { of: Kind::from(of), n }.weight() < elements.weight()
}

/// Shares of `y x` modulo 2^k: each of y times a row of x. Where the server knows y, the client's share of it is 0.
pub(crate) fn multiply(cx: &mut Cx, of: Rows, x: &[u64], y: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, ring, side) = (y.len(), of.ring, cx.side);
    let material = cx.take(of, n)?;
    let [numbers, rows, products] = of.places(side);
    let mut message = Vec::new();
    for (place, own, each) in [(numbers, y, 1), (rows, x, of.each)] {
        let masked = place.map_or(Wiped::zeros(0), |place| masked(&material, place, own, each));
        pack(ring, &masked, &mut message);
    }
    let [of_y, of_x] = of.opened(side.other(), n);
    let due = ring.packed_bytes(of_y) + ring.packed_bytes(of_x);
    let theirs = cx.exchange("masked factors", message, due)?;
    let (of_numbers, of_rows) = theirs.split_at(ring.packed_bytes(of_y));
    let read = |bytes: &[u8], count: usize| unpack(ring, bytes, count).map_err(|e| cx.wrong(e));
    // what the peer does not open is 0
    let (mut f, mut e) = (read(of_numbers, of_y)?, read(of_rows, of_x)?);
    f.resize(n, 0);
    e.resize(n * of.each, 0);
    let adds = side == Side::Server || mutation::active("rows-at-the-client-too");
    let mut out = Vec::with_capacity(n * of.each);
    for frame in material {
        let elements = |place: Option<usize>, count: usize| {
            place.map_or_else(|| Wiped::zeros(count), |place| frame.elements(place))
        };
        let (u, v) = (elements(numbers, frame.n), elements(rows, frame.n * of.each));
        let c = elements(products, frame.n * of.each);
        for row in 0..frame.n {
            let (u, y, f) = (u[row], y[frame.first + row], f[frame.first + row]);
            let f = f.wrapping_add(y).wrapping_sub(u);
            let at = (frame.first + row) * of.each..(frame.first + row + 1) * of.each;
            let lines = x[at.clone()].iter().zip(&e[at]);
            for (i, (x, e)) in (row * of.each..).zip(lines) {
                // y x = c + e u + f v + e f
                let e = e.wrapping_add(*x).wrapping_sub(v[i]);
                let right = if adds { u.wrapping_add(f) } else { u };
                out.push(
                    ring.wrap(c[i].wrapping_add(v[i].wrapping_mul(f)).wrapping_add(e.wrapping_mul(right))),
                );
            }
        }
    }
    Ok(out)
}

/// An operand less this side's share of what masks it.
fn masked(material: &Material<Rows>, place: usize, x: &[u64], each: usize) -> Wiped<u64> {
    let open = if mutation::active("rows-in-clear") { 0 } else { u64::MAX };
    let mut out = Wiped::with_room(x.len());
    for frame in material.frames() {
        let mask = frame.elements(place);
        let x = &x[frame.first * each..];
        out.extend(x.iter().zip(mask.iter()).map(|(x, mask)| x.wrapping_sub(mask & open)));
    }
    out
}

/// What [`multiply`] of n rows uses.
pub(crate) fn uses(of: Rows, n: usize) -> Uses {
    let bytes =
        Side::ALL.map(|side| of.opened(side, n).map(|count| word_bytes(of.ring.bits(), count)).iter().sum());
    Uses::of(of, n, bytes, 1)
}
