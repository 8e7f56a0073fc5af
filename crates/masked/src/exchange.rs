//! What parties send each other in a run: summands of masked values.

use privet_family::keys::KeyError;
use privet_family::{NodeStats, Opening, OpeningKind};
use privet_net::{Channel, NetError, Step};
use privet_ring::{BitVec, PackError, Ring, pack, unpack};
use std::sync::Arc;
use thiserror::Error;

/// Why a run ended early. Nothing was revealed.
#[derive(Debug, Error)]
pub enum EvalError {
    /// Another party or the way to it.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The record.
    #[error("{0}")]
    Keys(#[from] KeyError),
    /// An opening that does not hold what was announced.
    #[error("{0}")]
    Pack(#[from] PackError),
    /// A party sent bits past the end of a bit vector: the step and who.
    #[error("step `{0}`: {1}'s bits are not well formed; it runs another version or is broken")]
    Bits(String, String),
    /// An operand that the caller did not give.
    #[error("{0}")]
    Missing(String),
}

/// An opening of which this party's summand is on its way.
pub struct Sent {
    step: Step,
    ring: Ring,
    share: Vec<u64>,
}

/// One party's connections to all others in a run, with an account of what is opened over them.
///
/// Whoever opens vouches for the mask: uniform, fresh for this wire and this record, with a summand that the receivers do not
/// know. Then what is opened is uniform whatever the value is.
pub struct Exchange<'a> {
    peers: Vec<&'a mut dyn Channel>,
    step: u32,
    layer: Arc<str>,
    /// What the node that is computed has cost so far.
    pub stats: NodeStats,
    openings: Vec<Opening>,
}

impl<'a> Exchange<'a> {
    /// Over a channel to every other party, in the order of their numbers.
    pub fn new(peers: Vec<&'a mut dyn Channel>) -> Exchange<'a> {
        Exchange { peers, step: 0, layer: "".into(), stats: NodeStats::default(), openings: Vec::new() }
    }

    /// How many parties there are.
    pub fn parties(&self) -> usize {
        self.peers.len() + 1
    }

    /// The next steps belong to this layer of the model, which names them in errors and the audit.
    pub fn enter(&mut self, layer: &str) {
        self.layer = layer.into();
    }

    /// What has been opened so far.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// Open a masked value: every party sends its summand of `x + mask` to all others, and all add.
    pub fn open_masked(&mut self, what: &str, ring: Ring, share: Vec<u64>) -> Result<Vec<u64>, EvalError> {
        let sent = self.send_masked(what, ring, share)?;
        self.stats.rounds += 1;
        self.receive_masked(sent)
    }

    /// Open two masked values in one round.
    pub fn open_both(&mut self, values: [(&str, Ring, Vec<u64>); 2]) -> Result<[Vec<u64>; 2], EvalError> {
        let [(first, first_ring, a), (second, second_ring, b)] = values;
        let a = self.send_masked(first, first_ring, a)?;
        let b = self.send_masked(second, second_ring, b)?;
        self.stats.rounds += 1;
        Ok([self.receive_masked(a)?, self.receive_masked(b)?])
    }

    /// The first half of [`Exchange::open_masked`], for several openings in one round, which the caller counts.
    pub fn send_masked(&mut self, what: &str, ring: Ring, share: Vec<u64>) -> Result<Sent, EvalError> {
        let mut payload = Vec::new();
        pack(ring, &share, &mut payload);
        let step = self.send(what, payload, share.len() as u64 * u64::from(ring.bits()))?;
        Ok(Sent { step, ring, share })
    }

    /// The second half; in the order in which the openings were sent.
    pub fn receive_masked(&mut self, sent: Sent) -> Result<Vec<u64>, EvalError> {
        let Sent { step, ring, mut share } = sent;
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, ring.packed_bytes(share.len()))?;
            let theirs = unpack(ring, &theirs, share.len())?;
            for (a, b) in share.iter_mut().zip(theirs) {
                *a = ring.wrap(a.wrapping_add(b));
            }
        }
        Ok(share)
    }

    /// Open masked bits: every party sends its XOR share of `bits ^ mask`.
    pub fn open_masked_bits(&mut self, what: &str, mut share: BitVec) -> Result<BitVec, EvalError> {
        let n = share.len();
        let step = self.send(what, share.to_bytes(), n as u64)?;
        self.stats.rounds += 1;
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, n.div_ceil(8))?;
            let theirs = BitVec::from_bytes(n, &theirs)
                .ok_or_else(|| EvalError::Bits(format!("{} / {what}", self.layer), peer.peer().into()))?;
            share.xor_assign(&theirs);
        }
        Ok(share)
    }

    /// Open words of masked bits, the padding of planes included: it is masked as all else.
    pub fn open_masked_planes(&mut self, what: &str, mut share: Vec<u64>) -> Result<Vec<u64>, EvalError> {
        let mut payload = Vec::new();
        pack(Ring::R64, &share, &mut payload);
        let step = self.send(what, payload, 64 * share.len() as u64)?;
        self.stats.rounds += 1;
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, 8 * share.len())?;
            let theirs = unpack(Ring::R64, &theirs, share.len())?;
            share.iter_mut().zip(theirs).for_each(|(a, b)| *a ^= b);
        }
        Ok(share)
    }

    /// The same message to every other party.
    fn send(&mut self, what: &str, payload: Vec<u8>, bits: u64) -> Result<Step, EvalError> {
        self.step += 1;
        let name = format!("{} / {what}", self.layer);
        self.openings.push(Opening { step: self.step, what: name.clone(), bits, kind: OpeningKind::Masked });
        self.stats.sent_bytes += payload.len() as u64 * self.peers.len() as u64;
        let step = Step { id: self.step, name: name.into() };
        let Some((last, others)) = self.peers.split_last_mut() else { return Ok(step) };
        for peer in others {
            peer.send(&step, payload.clone())?;
        }
        last.send(&step, payload)?;
        Ok(step)
    }
}
