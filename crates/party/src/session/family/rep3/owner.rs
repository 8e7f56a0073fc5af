//! How tensors are split by their owner, and results put together by their receiver.

use crate::config::Place;
use crate::session::control::Talk;
use crate::session::family::{Encoded, Outside, ResultError};
use crate::session::owner::{OwnerError, Piece, Shared, granted};
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Type;
use privet_rep3::{Portion, Revealed, SharingError};
use privet_ring::Ring;

/// Owners split into components, receivers put them together.
pub(in crate::session::family) struct Rep3Outside;

impl Outside for Rep3Outside {
    fn share(
        &self,
        _: &Place,
        channels: &mut [TcpChannel],
        _: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), OwnerError> {
        channels.iter_mut().try_for_each(|c| granted(c).map(drop))?;
        for piece in pieces {
            let ring = Ring::new(piece.ty.bits);
            let portions = Portion::of(ring, piece.of(encoded)?);
            for (channel, portion) in channels.iter_mut().zip(&portions) {
                send(channel, ring, portion)?;
            }
        }
        Ok(())
    }

    fn result_bytes(&self, ty: &Type) -> usize {
        Revealed::len(Ring::new(ty.bits), ty.len())
    }

    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError> {
        let failed = |cause: String| ResultError { name: name.to_owned(), cause };
        let ring = Ring::new(ty.bits);
        let parts: Result<Vec<Revealed>, _> =
            sent.iter().map(|bytes| Revealed::decode(ring, ty.len(), bytes)).collect();
        let parts = parts.map_err(|e| failed(e.to_string()))?;
        let parts = parts.try_into().map_err(|_| failed("not every party sent its part".into()))?;
        Revealed::combine(ring, parts).map_err(|e| failed(e.to_string()))
    }
}

/// Send a party its portion.
pub(super) fn send(channel: &mut dyn Channel, ring: Ring, portion: &Portion) -> Result<(), OwnerError> {
    let mut bytes = Vec::new();
    portion.encode(ring, &mut bytes);
    Ok(channel.send(&Talk::Tensor.step(), bytes)?)
}

/// A portion that cannot be read.
pub(super) fn malformed(name: &str, e: SharingError) -> OwnerError {
    OwnerError::Form { name: name.to_owned(), cause: e.to_string() }
}
