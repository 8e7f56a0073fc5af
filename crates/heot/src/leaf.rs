//! Digits of at most three bits compared by a transfer of one of eight entries: CrypTFlow2 (Rathee and others, CCS 2020,
//! section 3.1) with random transfers of bits in place of transfers of one of eight strings.
//!
//! The server knows u and the client v. The client's digit chooses among the server's entries: entry j has shares of `[j < u]`
//! and `[j = u]`. An entry's pad is the sum of one string of each bit's transfer, from a segment of the strings that serves this
//! entry alone. So of every other entry the client lacks a summand that no other pad has. Entry 0 is not sent: its pad is
//! the server's share's complement to it, and all shares follow.

use crate::context::{Cx, Plane, RunError, Side, put_plane};
use crate::mutation;
use crate::planes::{self, xor};
use crate::uses::{Uses, plane_bytes};
use std::ops::Range;

/// Bits of a digit.
const DIGIT: u32 = 3;

/// Shares of a comparison of digits, or of several digits together; what nobody needs is not there.
#[derive(Clone, Default)]
pub(crate) struct Leaf {
    /// Of `v < u`.
    pub less: Option<Plane>,
    /// Of `v = u`.
    pub equal: Option<Plane>,
}

/// Which shares a digit's leaf has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Of all but the lowest: both; of the lowest `v < u` alone.
    Less,
    /// `v = u`.
    Equal,
}

/// Digits of a number of `bits` bits, from the lowest.
fn digits(bits: u32) -> Vec<Range<u32>> {
    (0..bits).step_by(DIGIT as usize).map(|first| first..bits.min(first + DIGIT)).collect()
}

/// Number of digits.
pub(crate) fn count(bits: u32) -> usize {
    digits(bits).len()
}

impl Wanted {
    /// Whether the digit has `less`, and whether it has `equal`.
    fn of(self, digit: usize) -> [bool; 2] {
        match self {
            Wanted::Less => [true, digit > 0],
            Wanted::Equal => [false, true],
        }
    }

    fn planes(self, digit: usize) -> usize {
        self.of(digit).into_iter().filter(|w| *w).count()
    }
}

/// What leaves of n numbers use.
pub(crate) fn uses(bits: u32, n: usize, wanted: Wanted) -> Uses {
    let entries = |(d, digit): (usize, Range<u32>)| ((1 << digit.len()) - 1) * wanted.planes(d);
    let sent: usize = digits(bits).into_iter().enumerate().map(entries).sum();
    Uses {
        transfers: [bits as usize * n, 0],
        bytes: [sent as u64 * plane_bytes(n), u64::from(bits) * plane_bytes(n)],
        steps: 2,
    }
}

/// Shares of all digits' comparisons; `own` are the planes of u at the server, of v at the client.
pub(crate) fn leaves(cx: &mut Cx, own: &[Plane], n: usize, wanted: Wanted) -> Result<Vec<Leaf>, RunError> {
    match cx.side {
        Side::Server => offer(cx, own, n, wanted),
        Side::Client => choose(cx, own, n, wanted),
    }
}

fn offer(cx: &mut Cx, own: &[Plane], n: usize, wanted: Wanted) -> Result<Vec<Leaf>, RunError> {
    let mut cots = Vec::with_capacity(own.len());
    for _ in own {
        cots.push(cx.sender(n)?);
    }
    let each = plane_bytes(n) as usize;
    let choices = cx.exchange("digits", Vec::new(), each * own.len())?;
    let mut pads = Vec::with_capacity(own.len());
    for (cots, choices) in cots.into_iter().zip(choices.chunks_exact(each)) {
        pads.push(cots.into_chosen(&cx.masked_bits(n, choices)?).strings);
    }
    let (mut message, mut leaves) = (Vec::new(), Vec::new());
    for (d, digit) in digits(own.len() as u32).into_iter().enumerate() {
        let place = digit.start as usize..digit.end as usize;
        let (hot, pads) = (planes::one_hot(&own[place.clone()], n), &mut pads[place]);
        let mut shares: [Option<Plane>; 2] = [None, None];
        for entry in 0..hot.len() {
            for (what, share) in shares.iter_mut().enumerate().filter(|(what, _)| wanted.of(d)[*what]) {
                let mut masked = vec![0; planes::words(n)];
                for (i, strings) in pads.iter_mut().enumerate() {
                    let both = [strings[0].bits(), strings[1].bits()];
                    let one = entry >> i & 1;
                    if one == 1 || !mutation::active("pads-of-ones-alone") {
                        xor(&mut masked, &both[one]);
                    }
                }
                if mutation::active("entries-unmasked") {
                    masked.fill(0);
                }
                // `entry < u`: u is one of those above
                let above = if what == 0 { entry + 1..hot.len() } else { entry..entry + 1 };
                above.for_each(|u| xor(&mut masked, &hot[u]));
                match share {
                    None => *share = Some(masked),
                    Some(share) => {
                        xor(&mut masked, share);
                        put_plane(n, &masked, &mut message);
                    }
                }
            }
        }
        let [less, equal] = shares;
        leaves.push(Leaf { less, equal });
    }
    cx.exchange("entries", message, 0)?;
    Ok(leaves)
}

fn choose(cx: &mut Cx, own: &[Plane], n: usize, wanted: Wanted) -> Result<Vec<Leaf>, RunError> {
    let (mut message, mut chosen) = (Vec::new(), Vec::with_capacity(own.len()));
    for (i, plane) in own.iter().enumerate() {
        let plane = if mutation::active("choices-of-another-digit") { &own[i / 2] } else { plane };
        let (cots, masked) = cx.receiver(n)?.choose(plane);
        message.extend_from_slice(&masked.to_bytes());
        chosen.push(cots);
    }
    cx.exchange("digits", message, 0)?;
    let mut strings: Vec<_> = chosen.into_iter().map(|cots| cots.into_strings()).collect();
    let theirs = uses(own.len() as u32, n, wanted).bytes[Side::Server as usize] as usize;
    let entries = cx.exchange("entries", Vec::new(), theirs)?;
    let mut entries = entries.chunks_exact(plane_bytes(n) as usize);
    let mut leaves = Vec::new();
    for (d, digit) in digits(own.len() as u32).into_iter().enumerate() {
        let place = digit.start as usize..digit.end as usize;
        let (hot, strings) = (planes::one_hot(&own[place.clone()], n), &mut strings[place.clone()]);
        let mut shares: [Option<Plane>; 2] = wanted.of(d).map(|w| w.then(|| vec![0; planes::words(n)]));
        for (entry, here) in hot.iter().enumerate() {
            for share in shares.iter_mut().flatten() {
                let mut value = vec![0; planes::words(n)];
                for (s, plane) in strings.iter_mut().zip(&own[place.clone()]) {
                    let string = s.bits();
                    if mutation::active("pads-of-ones-alone") {
                        planes::xor_and(&mut value, &string, plane);
                    } else {
                        xor(&mut value, &string);
                    }
                }
                if entry > 0 {
                    let sent = entries.next().ok_or_else(|| cx.wrong("too few entries"))?;
                    xor(&mut value, &cx.plane(n, sent)?);
                }
                planes::xor_and(share, &value, here);
            }
        }
        let [less, equal] = shares;
        leaves.push(Leaf { less, equal });
    }
    Ok(leaves)
}
