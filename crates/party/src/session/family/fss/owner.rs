//! How tensors are masked by their owner, and results put together by their receiver.

use crate::session::control::Talk;
use crate::session::family::{Encoded, Outside, ResultError};
use crate::session::owner::{OwnerError, Piece, Shared, granted};
use crate::store::unhex;
use privet_fss::{Wire, share_state};
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Type;
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, pack, unpack};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Owners mask, receivers add two shares up.
pub(in crate::session::family) struct FssOutside;

impl Outside for FssOutside {
    /// Receive both parties' mask seeds, add both masks to the encoded tensors, and send the sums to both. Without the
    /// masks the sums are uniform; each party knows one mask of the two. States are added shares instead: a seed to
    /// party 0, and what is missing from its numbers to party 1.
    fn share(
        &self,
        channels: &mut [TcpChannel],
        kind: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), OwnerError> {
        let [c0, c1] = channels else {
            return Err(OwnerError::Party("fss has two parties: correct the deployment".into()));
        };
        let seeds = [granted_seeds(c0)?, granted_seeds(c1)?];
        if kind == Shared::States {
            return pieces.iter().try_for_each(|piece| {
                let (ring, seed) = (Ring::new(piece.ty.bits), Seed::random());
                let share = Zeroizing::new(share_state(piece.of(encoded)?, ring, &seed));
                let mut bytes = Vec::new();
                pack(ring, &share, &mut bytes);
                c0.send(&Talk::Tensor.step(), seed.expose().to_vec())?;
                Ok(c1.send(&Talk::Tensor.step(), bytes)?)
            });
        }
        mask_each(pieces, encoded, seeds, &mut |_, bytes| {
            c0.send(&Talk::Tensor.step(), bytes.clone())?;
            Ok(c1.send(&Talk::Tensor.step(), bytes)?)
        })
    }

    fn result_bytes(&self, ty: &Type) -> usize {
        Ring::new(ty.bits).packed_bytes(ty.len())
    }

    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError> {
        let ring = Ring::new(ty.bits);
        let mut sum = vec![0u64; ty.len()];
        for bytes in sent {
            let share = unpack(ring, bytes, ty.len())
                .map_err(|e| ResultError { name: name.to_owned(), cause: e.to_string() })?;
            sum.iter_mut().zip(share).for_each(|(sum, x)| *sum = ring.wrap(sum.wrapping_add(x)));
        }
        Ok(sum)
    }
}

type SendMasked<'a> = dyn FnMut(&Piece, Vec<u8>) -> Result<(), OwnerError> + 'a;

/// Add all masks to each tensor and hand the sums to `send`.
pub(super) fn mask_each(
    pieces: &[Piece],
    encoded: &Encoded,
    mut seeds: [BTreeMap<String, Seed>; 2],
    send: &mut SendMasked,
) -> Result<(), OwnerError> {
    for piece in pieces {
        let Piece { name, ty, .. } = piece;
        let ring = Ring::new(ty.bits);
        let mut masked = piece.of(encoded)?.clone();
        for seeds in &mut seeds {
            let seed = seeds
                .remove(name)
                .ok_or_else(|| OwnerError::Party(format!("a party did not say how to mask `{name}`")))?;
            let mask = Zeroizing::new(seed.stream().elements(ring, ty.len()));
            masked.iter_mut().zip(mask.iter()).for_each(|(x, r)| *x = x.wrapping_add(*r));
        }
        let mut bytes = Vec::new();
        pack(ring, &masked, &mut bytes);
        send(piece, bytes)?;
    }
    Ok(())
}

/// The seeds of one party's shares of the masks of tensors, by name.
pub(super) fn mask_seeds(pieces: &[Piece], seed: &Seed) -> BTreeMap<String, Seed> {
    let of = |p: &Piece| (p.name.clone(), seed.derive(Domain::Mask, Wire::node(p.node).index()));
    pieces.iter().map(of).collect()
}

/// The seeds that a party gives with its leave to send.
pub(super) fn granted_seeds(channel: &mut dyn Channel) -> Result<BTreeMap<String, Seed>, OwnerError> {
    let seed = |(name, s): (String, String)| Some((name, Seed::from_bytes(unhex(&s)?)));
    let seeds = granted(channel)?.into_iter().map(seed).collect::<Option<_>>();
    seeds.ok_or_else(|| OwnerError::Party("a party sent a malformed mask seed".into()))
}
