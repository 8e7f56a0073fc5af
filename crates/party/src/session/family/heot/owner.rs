//! How tensors come to the parties from their owner: weights to the server in clear, inputs as shares.

use crate::config::Place;
use crate::session::control::Talk;
use crate::session::family::masked::{MaskedOutside, share_out};
use crate::session::family::{Encoded, Outside, ResultError};
use crate::session::owner::{OwnerError, Piece, Shared, granted};
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Type;
use privet_ring::{Ring, pack};

/// Owners split inputs; receivers add shares up.
pub(super) struct HeotOutside;

impl Outside for HeotOutside {
    /// Inputs are split under a fresh seed, so that each party's share is uniform. Weights go to the server alone: their owner is
    /// the server itself, which [`privet_heot::FACTS`] sees to.
    fn share(
        &self,
        _: &Place,
        channels: &mut [TcpChannel],
        kind: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), OwnerError> {
        channels.iter_mut().try_for_each(|channel| granted(channel).map(drop))?;
        for piece in pieces {
            match (kind, channels.first_mut()) {
                (Shared::Weights, Some(server)) => {
                    let mut bytes = Vec::new();
                    pack(Ring::new(piece.ty.bits), piece.of(encoded)?, &mut bytes);
                    server.send(&Talk::Tensor.step(), bytes)?;
                }
                (Shared::Weights, None) => {}
                (Shared::Inputs | Shared::States, _) => share_out(channels, piece, encoded)?,
            }
        }
        Ok(())
    }

    fn result_bytes(&self, ty: &Type) -> usize {
        MaskedOutside.result_bytes(ty)
    }

    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError> {
        MaskedOutside.combine(name, ty, sent)
    }
}
