//! Bits and ring elements multiplied: choices, bits as elements, and the widening ReLU.
//!
//! A correlated transfer: the sender's strings are p0 and p1, and it sends `p0 - p1 + x`. With a choice b the receiver gets
//! `p0 + b x`, and the sender's share of `b x` is `-p0`. The message is masked by the string that the receiver lacks.

use crate::context::{Cx, Plane, RunError, Side, put_words};
use crate::mutation;
use crate::planes::{self, bit, mask};
use crate::uses::{Uses, plane_bytes, word_bytes};
use privet_ot::{ChosenCots, SenderPads};
use privet_ring::Ring;

/// `b`, as a factor of what the peer chooses by: `1 - 2 b`.
fn flipped(ring: Ring, b: u64, x: u64) -> u64 {
    ring.wrap((x ^ b.wrapping_neg()).wrapping_add(b))
}

/// Transfers in which this side's choices are `bits`; their message is appended.
fn choosing(cx: &mut Cx, n: usize, bits: &Plane, message: &mut Vec<u8>) -> Result<ChosenCots, RunError> {
    let (cots, masked) = cx.receiver(n)?.choose(bits);
    message.extend_from_slice(&masked.to_bytes());
    Ok(cots)
}

/// Shares of `d x` modulo 2^k; d is XOR-shared, x additively. Each side offers its share of x to the other's of d.
pub(crate) fn choose(cx: &mut Cx, ring: Ring, d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let n = x.len();
    let mut choices = Vec::new();
    let (offered, chosen) = (cx.sender(n)?, choosing(cx, n, d, &mut choices)?);
    let len = choices.len();
    let theirs = cx.exchange("choices", choices, len)?;
    let mut pads = offered.into_chosen(&cx.masked_bits(n, &theirs)?);
    let mut entries = Vec::new();
    let of = |i: usize| flipped(ring, bit(d, i), x[i]);
    let mut share = offer(ring, &mut pads, of, n, &mut entries);
    let len = entries.len();
    let theirs = cx.exchange("chosen", entries, len)?;
    let theirs = cx.words(ring, &theirs, n)?;
    let got = take(ring, &mut chosen.into_strings().words(ring), d, &theirs);
    for (i, share) in share.iter_mut().enumerate() {
        *share = ring.wrap(share.wrapping_add(got[i]).wrapping_add(x[i] & mask(d, i)));
    }
    Ok(share)
}

/// What [`choose`] of n elements uses.
pub(crate) fn choose_uses(bits: u32, n: usize) -> Uses {
    Uses { transfers: [n; 2], bytes: [plane_bytes(n) + word_bytes(bits, n); 2], steps: 2 }
}

/// The sender's share of `b x` for the peer's choices b, and the message.
fn offer(
    ring: Ring,
    pads: &mut SenderPads,
    x: impl Fn(usize) -> u64,
    n: usize,
    out: &mut Vec<u8>,
) -> Vec<u64> {
    let [zero, one] = pads.strings.each_mut().map(|s| s.words(ring));
    let entry = |i: usize| {
        let pad = if mutation::active("products-in-clear") { 0 } else { zero[i].wrapping_sub(one[i]) };
        ring.wrap(pad.wrapping_add(x(i)))
    };
    put_words(ring, &(0..n).map(entry).collect::<Vec<_>>(), out);
    zero.iter().map(|p| ring.wrap(p.wrapping_neg())).collect()
}

/// The receiver's share of `b x`.
fn take(ring: Ring, pads: &mut [u64], b: &Plane, entries: &[u64]) -> Vec<u64> {
    let all = pads.iter().zip(entries).enumerate();
    all.map(|(i, (pad, entry))| ring.wrap(pad.wrapping_add(entry & mask(b, i)))).collect()
}

/// Shares modulo 2^l of the product of the client's bit and the server's.
pub(crate) fn both(cx: &mut Cx, bits: u32, own: &Plane, n: usize) -> Result<Vec<u64>, RunError> {
    if bits == 0 {
        return Ok(vec![0; n]);
    }
    let ring = Ring::new(bits);
    match cx.side {
        Side::Server => {
            let cots = cx.sender(n)?;
            let theirs = cx.exchange("bits", Vec::new(), plane_bytes(n) as usize)?;
            let mut pads = cots.into_chosen(&cx.masked_bits(n, &theirs)?);
            let mut message = Vec::new();
            let share = offer(ring, &mut pads, |i| bit(own, i), n, &mut message);
            cx.exchange("products of bits", message, 0)?;
            Ok(share)
        }
        Side::Client => {
            let mut message = Vec::new();
            let cots = choosing(cx, n, own, &mut message)?;
            cx.exchange("bits", message, 0)?;
            let len = word_bytes(bits, n) as usize;
            let theirs = cx.exchange("products of bits", Vec::new(), len)?;
            let theirs = cx.words(ring, &theirs, n)?;
            Ok(take(ring, &mut cots.into_strings().words(ring), own, &theirs))
        }
    }
}

/// What [`both`] of n elements uses.
pub(crate) fn both_uses(bits: u32, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    Uses { transfers: [n, 0], bytes: [word_bytes(bits, n), plane_bytes(n)], steps: 2 }
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

/// Shares modulo 2^k of x where d is 1 and of 0 elsewhere, for x of m bits that is not negative where d is 1.
///
/// Where d is 1, `x = c + s - 2^m (C + S) + 2^m C S` with both sides' shares c, s and their highest bits C, S. The client offers
/// its part `c - 2^m C` to the server's share of d. The server's part `s - 2^m S + 2^m C S` is one of four that the
/// client chooses by its share of d and by C; its lowest m bits follow from the first choice alone.
pub(crate) fn widen(cx: &mut Cx, [from, to]: [Ring; 2], d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    if from == to {
        return choose(cx, to, d, x);
    }
    match cx.side {
        Side::Server => widen_server(cx, [from, to], d, x),
        Side::Client => widen_client(cx, [from, to], d, x),
    }
}

/// What [`widen`] of n elements uses.
pub(crate) fn widen_uses([from, to]: [u32; 2], n: usize) -> Uses {
    if from == to {
        return choose_uses(to, n);
    }
    let high = 3 * word_bytes(to - from, n);
    Uses {
        transfers: [2 * n, n],
        bytes: [plane_bytes(n) + word_bytes(from, n) + high, 2 * plane_bytes(n) + word_bytes(to, n)],
        steps: 2,
    }
}

/// A share of m bits as a signed number.
fn signed(from: Ring, to: Ring, x: u64) -> u64 {
    to.wrap(from.signed(x) as u64)
}

/// The segment of the strings that entries of this parity are masked with.
fn segment(parity: usize) -> usize {
    if mutation::active("segments-shared") { 0 } else { parity }
}

fn widen_client(cx: &mut Cx, [from, to]: [Ring; 2], d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, above) = (x.len(), Ring::new(to.bits() - from.bits()));
    let highest = planes::plane(x, from.bits() - 1);
    let offered = cx.sender(n)?;
    let mut choices = Vec::new();
    let by_d = choosing(cx, n, d, &mut choices)?;
    let by_highest = choosing(cx, n, &highest, &mut choices)?;
    let theirs = cx.exchange("choices", choices, plane_bytes(n) as usize)?;
    let mut pads = offered.into_chosen(&cx.masked_bits(n, &theirs)?);
    let mut entries = Vec::new();
    let own = |i: usize| signed(from, to, x[i]);
    let mut share = offer(to, &mut pads, |i| flipped(to, bit(d, i), own(i)), n, &mut entries);
    let (low_len, high_len) = (word_bytes(from.bits(), n) as usize, word_bytes(above.bits(), n) as usize);
    let theirs = cx.exchange("chosen", entries, low_len + 3 * high_len)?;
    let (low, high) = theirs.split_at(low_len);
    let low = cx.words(from, low, n)?;
    let mut sent = vec![vec![0; n]];
    for bytes in high.chunks_exact(high_len) {
        sent.push(cx.words(above, bytes, n)?);
    }
    let (mut by_d, mut by_highest) = (by_d.into_strings(), by_highest.into_strings());
    let low_pad = by_d.words(from);
    let pads = [0, 1].map(|_| (by_d.words(above), by_highest.words(above)));
    for i in 0..n {
        let (b, c) = (bit(d, i), bit(&highest, i));
        // which of the four, and which segment of the strings, without a branch
        let entry = |j: u64| sent[j as usize][i] & u64::from(2 * c + b == j).wrapping_neg();
        let even = (segment((b ^ c) as usize) as u64).wrapping_sub(1);
        let pad = |k: usize| pads[k].0[i].wrapping_add(pads[k].1[i]);
        let pad = pad(0) & even | pad(1) & !even;
        let low = from.wrap(low_pad[i].wrapping_add(low[i] & mask(d, i)));
        let high = above.wrap(pad.wrapping_add((0..4).fold(0, |sum, j| sum | entry(j))));
        let got = low | high << from.bits();
        share[i] = to.wrap(share[i].wrapping_add(got).wrapping_add(own(i) & mask(d, i)));
    }
    Ok(share)
}

fn widen_server(cx: &mut Cx, [from, to]: [Ring; 2], d: &Plane, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, above) = (x.len(), Ring::new(to.bits() - from.bits()));
    let (by_d, by_highest) = (cx.sender(n)?, cx.sender(n)?);
    let mut choices = Vec::new();
    let chosen = choosing(cx, n, d, &mut choices)?;
    let len = plane_bytes(n) as usize;
    let theirs = cx.exchange("choices", choices, 2 * len)?;
    let (first, second) = theirs.split_at(len);
    let mut by_d = by_d.into_chosen(&cx.masked_bits(n, first)?).strings;
    let mut by_highest = by_highest.into_chosen(&cx.masked_bits(n, second)?).strings;
    let low_pads = by_d.each_mut().map(|s| s.words(from));
    // two segments serve four entries: those of one segment differ in both choices, so what the client lacks of each pad
    // stands in no other one
    let pads = [0, 1]
        .map(|_| (by_d.each_mut().map(|s| s.words(above)), by_highest.each_mut().map(|s| s.words(above))));
    let (mut low_entry, mut high_entries) = (vec![0; n], [(); 3].map(|()| vec![0; n]));
    let mut share = vec![0; n];
    for i in 0..n {
        let own = signed(from, to, x[i]);
        let highest = from.msb(x[i]);
        let of = |b: u64, c: u64| {
            let wrapped = if mutation::active("wrap-forgotten") { 0 } else { (c & highest) << from.bits() };
            to.wrap(own.wrapping_add(wrapped)) & (b ^ bit(d, i)).wrapping_neg()
        };
        let pad = |j: usize| {
            let (b, c) = (j & 1, j >> 1);
            let (by_d, by_highest) = &pads[segment(b ^ c)];
            by_d[b][i].wrapping_add(by_highest[c][i])
        };
        // the mask of what is chosen: such that entry 0 is its pad
        let low = from.wrap(low_pads[0][i].wrapping_sub(of(0, 0)));
        let of_low = of(0, 0).wrapping_add(low) >> from.bits();
        let high = above.wrap(pad(0).wrapping_sub(of_low));
        let hidden = low | high << from.bits();
        low_entry[i] = from.wrap(of(1, 0).wrapping_add(low).wrapping_sub(low_pads[1][i]));
        for (j, entries) in (1..).zip(&mut high_entries) {
            let (b, c) = ((j & 1) as u64, (j >> 1) as u64);
            let sum = to.wrap(of(b, c).wrapping_add(hidden));
            entries[i] = above.wrap((sum >> from.bits()).wrapping_sub(pad(j)));
        }
        share[i] = to.wrap(hidden.wrapping_neg());
    }
    let mut entries = Vec::new();
    put_words(from, &low_entry, &mut entries);
    high_entries.iter().for_each(|e| put_words(above, e, &mut entries));
    let theirs = cx.exchange("chosen", entries, word_bytes(to.bits(), n) as usize)?;
    let theirs = cx.words(to, &theirs, n)?;
    let got = take(to, &mut chosen.into_strings().words(to), d, &theirs);
    for (share, got) in share.iter_mut().zip(got) {
        *share = to.wrap(share.wrapping_add(got));
    }
    Ok(share)
}
