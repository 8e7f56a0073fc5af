//! Shared ring elements multiplied by transfers: Gilboa (CRYPTO 1999), a correlated transfer for each bit of a factor.

use crate::context::{Cx, RunError, Side};
use crate::mux::{self, By, Offers};
use crate::planes::Planes;
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::Outgoing;
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
    fn offered(self) -> By {
        match self {
            Second::Shared => By::Both,
            Second::AtServer => By::Server,
        }
    }
}

/// Bit i of the first factor takes elements modulo 2^(bits - i).
fn offers(bits: u32, second: Second) -> impl Iterator<Item = Offers> {
    (0..bits).map(move |i| Offers { ring: Ring::new(bits - i), by: second.offered() })
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
    let (n, bits, side) = (x.len(), ring.bits(), cx.side);
    let (offered, taken) = (second.offered().has(side), second.offered().has(side.other()));
    let planes = |here: bool| if here { bits as usize } else { 0 };
    let own = Planes::of(x, bits);
    let all =
        offers(bits, second).map(|of| Ok((of, cx.take(of, n)?))).collect::<Result<Vec<_>, RunError>>()?;
    let mut choices = Outgoing::new(planes(taken), n);
    if taken {
        for (i, (_, material)) in all.iter().enumerate() {
            material.frames().for_each(|frame| mux::masked(frame, 0, own.get(i), i, &mut choices));
        }
    }
    let each = plane_bytes(n) as usize;
    let theirs = cx.exchange("factors", choices.bytes(), each * planes(offered))?;
    let theirs = cx.incoming(n, theirs)?;
    let mut share: Vec<u64> = x.iter().zip(y).map(|(x, y)| x.wrapping_mul(*y)).collect();
    let mut entries = Vec::new();
    if offered {
        for (i, (of, material)) in all.iter().enumerate() {
            for frame in material.frames() {
                let add = |j: usize, own: u64| share[j] = share[j].wrapping_add(own << i);
                mux::offer(of.ring, frame, (&theirs, i), |j| y[j], &mut entries, add);
            }
        }
    }
    let len = |of: Offers| word_bytes(of.ring.bits(), n) as usize;
    let due = if taken { offers(bits, second).map(len).sum() } else { 0 };
    let theirs = cx.exchange("products", entries, due)?;
    if taken {
        let mut rest = &theirs[..];
        for (i, (of, material)) in all.into_iter().enumerate() {
            let (here, after) = rest.split_at(len(of));
            for frame in material {
                let got = mux::take(cx, of.ring, &frame, of.taken(side), own.get(i), here)?;
                for (share, got) in share[frame.first..].iter_mut().zip(got.iter()) {
                    *share = share.wrapping_add(got << i);
                }
            }
            rest = after;
        }
    }
    share.iter_mut().for_each(|s| *s = ring.wrap(*s));
    Ok(share)
}

/// What [`multiply`] of n elements uses.
pub(crate) fn uses(bits: u32, n: usize, second: Second) -> Uses {
    let entries: u64 = (1..=bits).map(|b| word_bytes(b, n)).sum();
    let choices = u64::from(bits) * plane_bytes(n);
    let bytes = Side::ALL.map(|side| {
        let of = |who: Side| u64::from(second.offered().has(who));
        of(side) * entries + of(side.other()) * choices
    });
    let all = offers(bits, second).map(|of| Uses::of(of, n, [0; 2], 0));
    Uses { bytes, steps: 2, ..all.fold(Uses::default(), Uses::then) }
}
