//! Shared ring elements multiplied by transfers: Gilboa (CRYPTO 1999), a correlated transfer for each bit of a factor.

use crate::context::{Cx, RunError, Side, put_words};
use crate::mutation;
use crate::planes;
use crate::uses::{Uses, plane_bytes, word_bytes};
use privet_ring::Ring;

/// Who has any of the second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// Both sides have shares.
    Shared,
    /// The server knows all of it, as of weights; the client's share is 0.
    AtServer,
}

impl Second {
    fn offered_by(self, side: Side) -> bool {
        self == Second::Shared || side == Side::Server
    }
}

/// Shares of `x y`, element by element, modulo 2^k.
///
/// Each side offers its share of y, times 2^i modulo 2^k, to bit i of the other's share of x.
pub(crate) fn multiply(
    cx: &mut Cx,
    ring: Ring,
    x: &[u64],
    y: &[u64],
    second: Second,
) -> Result<Vec<u64>, RunError> {
    let (n, bits) = (x.len(), ring.bits());
    let (offers, takes) = (second.offered_by(cx.side), second.offered_by(cx.side.other()));
    let own = planes::split(x, bits);
    let (mut offered, mut chosen, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for plane in &own {
        if offers {
            offered.push(cx.sender(n)?);
        }
        if takes {
            let (cots, masked) = cx.receiver(n)?.choose(plane);
            choices.extend_from_slice(&masked.to_bytes());
            chosen.push(cots);
        }
    }
    let each = plane_bytes(n) as usize;
    let theirs = cx.exchange("factors", choices, each * offered.len())?;
    let mut share: Vec<u64> = x.iter().zip(y).map(|(x, y)| x.wrapping_mul(*y)).collect();
    let mut entries = Vec::new();
    for (i, (cots, choices)) in (0..bits).zip(offered.into_iter().zip(theirs.chunks_exact(each))) {
        let ring = Ring::new(bits - i);
        let pads = cots.into_chosen(&cx.masked_bits(n, choices)?).strings;
        let [zero, one] = pads.map(|mut s| s.words(ring));
        let entry = |j: usize| {
            let pad = if mutation::active("products-in-clear") { 0 } else { zero[j].wrapping_sub(one[j]) };
            ring.wrap(pad.wrapping_add(y[j]))
        };
        put_words(ring, &(0..n).map(entry).collect::<Vec<_>>(), &mut entries);
        share.iter_mut().zip(zero.iter()).for_each(|(s, p)| *s = s.wrapping_sub(p << i));
    }
    let len = if takes { (1..=bits).map(|b| word_bytes(b, n) as usize).sum() } else { 0 };
    let theirs = cx.exchange("products", entries, len)?;
    let mut rest = &theirs[..];
    for (i, (cots, plane)) in (0..bits).zip(chosen.into_iter().zip(&own)) {
        let ring = Ring::new(bits - i);
        let (here, after) = rest.split_at(ring.packed_bytes(n));
        let (entries, pads) = (cx.words(ring, here, n)?, cots.into_strings().words(ring));
        for (j, share) in share.iter_mut().enumerate() {
            let got = pads[j].wrapping_add(entries[j] & planes::mask(plane, j));
            *share = share.wrapping_add(got << i);
        }
        rest = after;
    }
    share.iter_mut().for_each(|s| *s = ring.wrap(*s));
    Ok(share)
}

/// What [`multiply`] of n elements uses.
pub(crate) fn uses(bits: u32, n: usize, second: Second) -> Uses {
    let entries: u64 = (1..=bits).map(|b| word_bytes(b, n)).sum();
    let choices = u64::from(bits) * plane_bytes(n);
    let offered = |side| u64::from(second.offered_by(side));
    let (server, client) = (offered(Side::Server), offered(Side::Client));
    Uses {
        transfers: [bits as usize * n * server as usize, bits as usize * n * client as usize],
        bytes: [server * entries + client * choices, client * entries + server * choices],
        steps: 2,
    }
}
