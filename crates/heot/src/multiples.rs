//! Products of a shared number and one that the client knows and that has few bits.
//!
//! *Before a run* the server has a random r, the client random bits, and both shares of r times each bit: from a transfer for each, whose choice
//! is that bit (as of [`crate::product`]; the transfer of the lowest bit needs no correction). *In the run* the client sends the bits of its
//! number XORed with its random ones, and the server its share of the other number less r. With `f = b ^ c` a bit is `b = f + (1 - 2 f) c`, so its
//! product follows from that of the random one.

use crate::context::{Cx, RunError, Side};
use crate::material::{Correlation, Frame, Made, Maker, Shape};
use crate::mutation;
use crate::mux;
use crate::planes::{self, Planes, mask};
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::Outgoing;
use privet_prg::Wiped;
use privet_ring::{Ring, pack, unpack};

/// Random numbers of the server, random bits of the client, and shares of the products. Of the server's elements the first one is its number; bit l
/// is worth `2^l`, so its product is needed modulo 2^(k-l).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiples {
    ring: Ring,
    bits: u32,
}

impl Multiples {
    /// Products modulo 2^k with numbers of so many bits; those above the ring have no weight.
    fn new(ring: Ring, bits: u32) -> Multiples {
        Multiples { ring, bits: bits.min(ring.bits()) }
    }

    /// The ring of a bit's product.
    fn part(self, l: u32) -> Ring {
        Ring::new(self.ring.bits() - l)
    }

    fn parts(self) -> impl Iterator<Item = Ring> {
        (0..self.bits).map(move |l| self.part(l))
    }

    /// Bytes of corrections for n elements.
    fn corrections(self, n: usize) -> u64 {
        self.parts().skip(1).map(|ring| word_bytes(ring.bits(), n)).sum()
    }

    /// Where the product of bit l lies among a side's elements.
    fn place(self, side: Side, l: u32) -> usize {
        usize::from(side == Side::Server) + l as usize
    }
}

impl Correlation for Multiples {
    fn transfers(&self) -> [usize; 2] {
        [self.bits as usize, 0]
    }

    fn shape(&self, side: Side) -> Shape {
        match side {
            Side::Server => Shape::of(0, [self.ring].into_iter().chain(self.parts()).collect()),
            Side::Client => Shape::of(self.bits as usize, self.parts().collect()),
        }
    }

    fn made(&self, n: usize) -> Made {
        let bytes = [self.corrections(n), 0];
        Made { bytes, steps: u64::from(bytes[0] > 0), ..Made::default() }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        match maker.side {
            Side::Server => self.offer(maker, frame),
            Side::Client => self.take(maker, frame),
        }
    }
}

impl Multiples {
    fn offer(self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let n = frame.n;
        let mut number: Wiped<u64> = Wiped::zeros(n);
        let mut message = Vec::with_capacity(self.corrections(n) as usize);
        for (l, ring) in (0..).zip(self.parts()) {
            let strings = maker.pair.sender.take(n)?.into_pads().strings;
            let [mut zero, one] = strings.map(|mut string| string.words(ring));
            if l == 0 {
                let differ =
                    zero.iter().zip(one.iter()).map(|(zero, one)| ring.wrap(one.wrapping_sub(*zero)));
                number = differ.collect();
                frame.set_elements(0, &number);
            } else {
                let open = if mutation::active("multiples-corrections-in-clear") { 0 } else { u64::MAX };
                let masked = zero.iter().zip(one.iter()).zip(number.iter());
                let masked: Wiped<u64> = masked
                    .map(|((zero, one), r)| (zero.wrapping_sub(*one) & open).wrapping_add(*r))
                    .collect();
                pack(ring, &masked, &mut message);
            }
            zero.iter_mut().for_each(|zero| *zero = ring.wrap(zero.wrapping_neg()));
            frame.set_elements(self.place(Side::Server, l), &zero);
        }
        maker.exchange("corrections", message, 0)?;
        Ok(())
    }

    fn take(self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let n = frame.n;
        let mut received = Vec::with_capacity(self.bits as usize);
        for (l, ring) in self.parts().enumerate() {
            let mut pads = maker.pair.receiver.take(n)?.into_pads();
            frame.plane_mut(l).copy_from_slice(&pads.choices);
            received.push((ring, pads.choices, pads.strings.words(ring)));
        }
        let theirs = maker.exchange("corrections", Vec::new(), self.corrections(n) as usize)?;
        let mut rest = &theirs[..];
        for (l, (ring, choices, mut got)) in (0..).zip(received) {
            if l > 0 {
                let (here, after) = rest.split_at(ring.packed_bytes(n));
                rest = after;
                let corrections = unpack(ring, here, n).map_err(|e| maker.wrong("corrections", e))?;
                for (i, (got, m)) in got.iter_mut().zip(corrections).enumerate() {
                    *got = ring.wrap(got.wrapping_add(m & mask(&choices, i)));
                }
            }
            frame.set_elements(self.place(Side::Client, l), &got);
        }
        Ok(())
    }
}

/// Shares of `x y` modulo 2^k: x is shared, and y is the client's, below 2^bits. The server says 0.
pub(crate) fn multiply(
    cx: &mut Cx,
    ring: Ring,
    bits: u32,
    x: &[u64],
    y: &[u64],
) -> Result<Vec<u64>, RunError> {
    let (n, of) = (x.len(), Multiples::new(ring, bits));
    let material = cx.take(of, n)?;
    let (planes, elements) = (of.bits as usize * plane_bytes(n) as usize, ring.packed_bytes(n));
    let own = Planes::of(y, of.bits);
    let (mut digits, mut message) = (Outgoing::new(of.bits as usize, n), Vec::new());
    for frame in material.frames() {
        match cx.side {
            Side::Server => {
                let mut masked = frame.elements(0);
                let open = if mutation::active("multiples-in-clear") { 0 } else { u64::MAX };
                masked.iter_mut().zip(&x[frame.first..]).for_each(|(r, x)| *r = x.wrapping_sub(*r & open));
                pack(ring, &masked, &mut message);
            }
            Side::Client => {
                (0..of.bits as usize).for_each(|l| mux::masked(frame, l, own.get(l), l, &mut digits))
            }
        }
    }
    let (message, due) = match cx.side {
        Side::Server => (message, planes),
        Side::Client => (digits.bytes(), elements),
    };
    let sent = if cx.side == Side::Client { message.clone() } else { Vec::new() };
    let theirs = cx.exchange("multiples", message, due)?;
    // both sides have the client's bits, masked; the client has what the server opened
    let (exchanged, opened) = match cx.side {
        Side::Server => (cx.incoming(n, theirs)?, vec![0; n]),
        Side::Client => (cx.incoming(n, sent)?, unpack(ring, &theirs, n).map_err(|e| cx.wrong(e))?),
    };
    let mut out = Vec::with_capacity(n);
    for frame in material {
        let (each, x) = (planes::words(frame.n), &x[frame.first..][..frame.n]);
        let mut sums: Wiped<u64> = match cx.side {
            Side::Server => Wiped::zeros(frame.n),
            Side::Client => x.iter().zip(&y[frame.first..]).map(|(x, y)| x.wrapping_mul(*y)).collect(),
        };
        let flips = exchanged.chunk(0..of.bits as usize, frame.first, frame.n);
        for l in 0..of.bits {
            let part = frame.elements(of.place(cx.side, l));
            let flips = &flips[l as usize * each..][..each];
            for (i, (sum, part)) in sums.iter_mut().zip(part.iter()).enumerate() {
                let flip = mask(flips, i);
                let (product, whole) = match cx.side {
                    // r times its random bit, and all of x where the bit was exchanged
                    Side::Server => (*part, x[i] & flip),
                    Side::Client => {
                        let open = opened[frame.first + i] & mask(frame.plane(l as usize), i);
                        (part.wrapping_add(open), 0)
                    }
                };
                let signed = (product ^ flip).wrapping_sub(flip);
                *sum = sum.wrapping_add(signed.wrapping_add(whole) << l);
            }
        }
        out.extend(sums.iter().map(|sum| ring.wrap(*sum)));
    }
    Ok(out)
}

/// What [`multiply`] of n elements uses.
pub(crate) fn uses(ring: Ring, bits: u32, n: usize) -> Uses {
    let of = Multiples::new(ring, bits);
    Uses::of(of, n, [word_bytes(ring.bits(), n), u64::from(of.bits) * plane_bytes(n)], 1)
}
