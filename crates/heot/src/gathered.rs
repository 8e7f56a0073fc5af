//! Products of matrices that both sides share, by encryption with few bytes ([`privet_he::galois`], docs/he.md, section 7).
//!
//! `A B` is `A_s B_s + A_c B_c + A_s B_c + A_c B_s`. Each side computes its own product in clear, and is encryptor of the one of the others and
//! multiplier of the other: it encrypts its A, multiplies the peer's A by its B, and takes a fresh share off. Keys that switch are sent
//! once in a preparation.
//!
//! SECURITY: docs/heot.md, section 3.2.

use crate::context::{RunError, Side};
use crate::encryption::{CALLS, public};
use crate::material::{Made, Maker};
use crate::mutation;
use privet_family::Products;
use privet_he::galois::{Galois, GaloisLayout, Secret, SwitchKeys};
use privet_he::layout::Matmul;
use privet_kernels::{LinearShape, cpu};
use privet_prg::Wiped;
use privet_ring::Ring;

/// What gathered products of a preparation share: this side's keys as an encryptor, and the peer's.
pub(crate) struct Gathering {
    galois: Galois,
    secret: Secret,
    keys: SwitchKeys,
}

/// Packing, alike at both sides; none where a ring is too wide for it.
pub(crate) fn plan(ring: Ring, shape: Matmul) -> Option<GaloisLayout> {
    GaloisLayout::plan(shape, ring, CALLS)
}

/// What a product of matrices takes.
pub(crate) fn made(ring: Ring, shape: Matmul) -> Made {
    let Some(layout) = plan(ring, shape) else { return Made::default() };
    let cost = layout.cost();
    let bytes = (cost.operand_bytes + cost.answer_bytes) as u64;
    Made { bytes: [bytes; 2], values: cost.values() as u64, steps: 2, ..Made::default() }
}

/// What keys of a preparation take.
pub(crate) fn keys_made() -> Made {
    Made {
        bytes: [Galois::key_bytes() as u64; 2],
        values: Galois::key_values() as u64,
        steps: 1,
        ..Made::default()
    }
}

fn encryptor(side: Side) -> u64 {
    match side {
        Side::Server => 0,
        Side::Client => 1,
    }
}

/// Both sides' keys: one step, before the first product.
fn gathering(maker: &mut Maker<'_>) -> Result<Gathering, RunError> {
    if let Some(gathering) = maker.encryption.gathering.take() {
        return Ok(gathering);
    }
    let what = "gathered matrices / keys";
    let public = public(maker)?;
    let galois =
        Galois::new(public, maker.encryption.threads).map_err(|e| RunError::Missing(e.to_string()))?;
    let (secret, message) = galois.keys(encryptor(maker.side), maker.prg);
    let theirs = maker.exchange(what, message, Galois::key_bytes())?;
    let keys = galois.read_keys(encryptor(maker.side.other()), &theirs).map_err(|e| maker.wrong(what, e))?;
    Ok(Gathering { galois, secret, keys })
}

/// This side's share of the products `A B` of a chunk, from its shares of A and B: two steps.
pub(crate) fn product(
    maker: &mut Maker<'_>,
    ring: Ring,
    shape: Matmul,
    a: &[u64],
    b: &[u64],
) -> Result<Wiped<u64>, RunError> {
    let missing = || RunError::Refused("matrices of a ring that gathered products do not take".into());
    let layout = plan(ring, shape).ok_or_else(missing)?;
    let mut of = gathering(maker)?;
    let Gathering { galois, secret, keys } = &mut of;
    let operand = galois.encrypt(secret, &layout, a, maker.prg);
    let theirs = maker.exchange("gathered matrices / operands", operand, layout.operand_bytes())?;
    let mut share = Wiped::new(maker.prg.elements(ring, shape.groups * shape.m * shape.o));
    if mutation::active("gathered-share-forgotten") {
        share.fill(0);
    }
    let answer = galois.multiply(keys, &layout, &theirs, b, &share, maker.prg);
    let answer = answer.map_err(|e| maker.wrong("gathered matrices / operands", e))?;
    drop(theirs);
    let what = "gathered matrices / answers";
    let theirs = maker.exchange(what, answer.encode(), layout.answer_bytes())?;
    let crossed = galois.open(secret, &layout, &theirs).map_err(|e| maker.wrong(what, e))?;
    let products =
        Products { shape: LinearShape::MatMul { m: shape.m, k: shape.k, n: shape.o }, count: shape.groups };
    let device = cpu(maker.encryption.threads);
    products.accumulate(&*device, ring, a, &products.prepare(&*device, ring, b), &mut share);
    share.iter_mut().zip(crossed.iter()).for_each(|(y, crossed)| *y = ring.wrap(y.wrapping_add(*crossed)));
    maker.encryption.gathering = Some(of);
    Ok(share)
}
