//! How tensors are masked by their owner, and results put together by their receiver.

use crate::config::Place;
use crate::session::control::Talk;
use crate::session::family::{Encoded, Outside, ResultError};
use crate::session::owner::{OwnerError, Piece, Shared, granted};
use crate::store::unhex;
use privet_family::{Wire, share_state};
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Type;
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, pack, unpack};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Owners mask, receivers add all shares up.
pub(in crate::session::family) struct MaskedOutside;

impl Outside for MaskedOutside {
    /// Receive all parties' mask seeds, add all masks to the encoded tensors, and send the sums to every party. Without the
    /// masks the sums are uniform; each party knows one mask, so all but one together still know nothing. An owner that is a party needs
    /// no mask but its own, and others may give it none for weights. States are added shares instead: a seed to every party but the last,
    /// and to that one what is missing from their numbers.
    fn share(
        &self,
        owner: &Place,
        channels: &mut [TcpChannel],
        kind: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), OwnerError> {
        let mut masking = Masking::default();
        for (party, channel) in channels.iter_mut().enumerate() {
            let another = owner.party().is_some_and(|owner| usize::from(owner) != party);
            masking.granted(channel, another && kind == Shared::Weights)?;
        }
        for piece in pieces {
            match kind {
                Shared::States => share_out(channels, piece, encoded)?,
                Shared::Inputs | Shared::Weights => {
                    let bytes = masking.mask(piece, encoded)?;
                    let send = |c: &mut TcpChannel| c.send(&Talk::Tensor.step(), bytes.clone());
                    channels.iter_mut().try_for_each(send)?;
                }
            }
        }
        Ok(())
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

/// Send every party its share of a state.
pub(in crate::session::family) fn share_out(
    channels: &mut [TcpChannel],
    piece: &Piece,
    encoded: &Encoded,
) -> Result<(), OwnerError> {
    let Some((last, rest)) = channels.split_last_mut() else { return Ok(()) };
    let (ring, step) = (Ring::new(piece.ty.bits), Talk::Tensor.step());
    let mut left = Zeroizing::new(piece.of(encoded)?.clone());
    for channel in rest {
        let seed = Seed::random();
        left = Zeroizing::new(share_state(&left, ring, &seed));
        channel.send(&step, seed.expose().to_vec())?;
    }
    let mut bytes = Vec::new();
    pack(ring, &left, &mut bytes);
    Ok(last.send(&step, bytes)?)
}

/// The seeds of parties' shares of the masks of tensors, by name.
type MaskSeeds = BTreeMap<String, Seed>;

/// One party's, of what it keeps under `seed`.
pub(in crate::session::family) fn mask_seeds(pieces: &[Piece], seed: &Seed) -> MaskSeeds {
    let of = |p: &Piece| (p.name.clone(), seed.derive(Domain::Mask, Wire::node(p.node).index()));
    pieces.iter().map(of).collect()
}

/// An owner's work: all parties' masks, for its tensors.
#[derive(Default)]
pub(in crate::session::family) struct Masking(Vec<MaskSeeds>);

impl Masking {
    /// With the masks of the owner itself, who is a party.
    pub fn new(own: MaskSeeds) -> Masking {
        Masking(vec![own])
    }

    /// Take in the seeds that a party gives with its leave to send: one for every tensor, or `or_none`.
    pub fn granted(&mut self, channel: &mut dyn Channel, or_none: bool) -> Result<(), OwnerError> {
        let seed = |(name, s): (String, String)| Some((name, Seed::from_bytes(unhex(&s)?)));
        let seeds: Option<MaskSeeds> = granted(channel)?.into_iter().map(seed).collect();
        let seeds = seeds.ok_or_else(|| OwnerError::Party("a party sent a malformed mask seed".into()))?;
        if !(seeds.is_empty() && or_none) {
            self.0.push(seeds);
        }
        Ok(())
    }

    /// A tensor under all masks, packed. Each mask is used once.
    pub fn mask(&mut self, piece: &Piece, encoded: &Encoded) -> Result<Vec<u8>, OwnerError> {
        let Piece { name, ty, .. } = piece;
        let ring = Ring::new(ty.bits);
        let mut masked = piece.of(encoded)?.clone();
        for seeds in &mut self.0 {
            let seed = seeds
                .remove(name)
                .ok_or_else(|| OwnerError::Party(format!("a party did not say how to mask `{name}`")))?;
            let mask = Zeroizing::new(seed.stream().elements(ring, ty.len()));
            masked.iter_mut().zip(mask.iter()).for_each(|(x, r)| *x = x.wrapping_add(*r));
        }
        let mut bytes = Vec::new();
        pack(ring, &masked, &mut bytes);
        Ok(bytes)
    }
}
