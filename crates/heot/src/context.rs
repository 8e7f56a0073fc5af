//! A party in a run: its side, the channel, the transfers, and what is counted.

use crate::transfers::Transfers;
use crate::uses::Uses;
use privet_family::NodeStats;
use privet_family::keys::KeyError;
use privet_net::{Channel, NetError, Step};
use privet_ot::{Malformed, MaskedBits, OtError, ReceiverCots, SenderCots, Short};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::{Domain, Seed};
use privet_ring::{BitVec, Ring, pack, unpack};
use std::sync::Arc;
use thiserror::Error;

/// Which of the two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Party 0: it knows all weights in clear.
    Server,
    /// Party 1: whose run it is.
    Client,
}

impl Side {
    /// Both, by number.
    pub const ALL: [Side; 2] = [Side::Server, Side::Client];

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::Server => Side::Client,
            Side::Client => Side::Server,
        }
    }

    /// A public constant as this side's share: the server has all of it.
    pub(crate) fn constant(self, value: u64) -> u64 {
        match self {
            Side::Server => value,
            Side::Client => 0,
        }
    }
}

/// Why a run ended early. Nothing was revealed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The peer, or the way to it.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The transfers.
    #[error("{0}")]
    Transfers(#[from] OtError),
    /// What was prepared cannot be kept or read.
    #[error("{0}")]
    Record(#[from] KeyError),
    /// Fewer transfers were prepared than the plan uses.
    #[error("{0}")]
    Short(#[from] Short),
    /// What the peer sent is not well formed.
    #[error("step `{step}`: {peer} sent {what}; it runs another version or is broken")]
    Form {
        /// The step.
        step: String,
        /// The peer's name.
        peer: String,
        /// What is wrong.
        what: String,
    },
    /// Something that the caller did not give, or that was prepared for another plan.
    #[error("{0}")]
    Missing(String),
    /// The plan has something that this family refuses.
    #[error("{0}")]
    Refused(String),
}

/// A bit of every element, XORed shares or a party's own: 64 to a word, zeros past the last.
pub(crate) type Plane = Vec<u64>;

/// One party's side of one run.
pub struct Cx<'a> {
    pub(crate) side: Side,
    channel: &'a mut dyn Channel,
    transfers: Transfers<'a>,
    coins: Seed,
    step: u32,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
    /// What this party used.
    pub(crate) used: Uses,
}

impl<'a> Cx<'a> {
    /// A run with transfers of its own. `coins` is what both sides tossed together for this run alone; the first step
    /// has number `first` at both.
    pub fn new(
        side: Side,
        channel: &'a mut dyn Channel,
        transfers: Transfers<'a>,
        coins: Seed,
        first: u32,
    ) -> Cx<'a> {
        let stats = NodeStats::default();
        Cx { side, channel, transfers, coins, step: first, layer: "".into(), stats, used: Uses::default() }
    }

    /// What is left of the transfers.
    #[cfg(test)]
    pub(crate) fn into_pair(self) -> privet_ot::Pair {
        self.transfers.pair
    }

    pub(crate) fn enter(&mut self, layer: &str) {
        self.layer = layer.into();
        self.stats = NodeStats::default();
        self.used = Uses::default();
    }

    /// A node's transfers are there from here on.
    pub(crate) fn ready(&mut self, plan: &Plan, v: ValueId) -> Result<(), RunError> {
        self.transfers.ready(plan, v, self.side)
    }

    /// Public coins of a node: the same at both sides.
    pub(crate) fn coins(&self, node: usize, ring: Ring, n: usize) -> Vec<u64> {
        coins(&self.coins, node, ring, n)
    }

    /// One step: this side sends, the other side sends, or both at once.
    pub(crate) fn exchange(&mut self, what: &str, mine: Vec<u8>, theirs: usize) -> Result<Vec<u8>, RunError> {
        self.step += 1;
        let step = Step::new(self.step, format!("{} / {what}", self.layer));
        self.stats.rounds += 1;
        self.stats.sent_bytes += mine.len() as u64;
        self.used.steps += 1;
        self.used.bytes[self.side as usize] += mine.len() as u64;
        self.used.bytes[self.side.other() as usize] += theirs as u64;
        if !mine.is_empty() {
            self.channel.send(&step, mine)?;
        }
        if theirs == 0 { Ok(Vec::new()) } else { Ok(self.channel.recv(&step, theirs)?) }
    }

    /// The next transfers of which this side has both strings.
    pub(crate) fn sender(&mut self, n: usize) -> Result<SenderCots, RunError> {
        self.used.transfers[self.side as usize] += n;
        Ok(self.transfers.pair.sender.take(n)?)
    }

    /// The next transfers of which this side has one string.
    pub(crate) fn receiver(&mut self, n: usize) -> Result<ReceiverCots, RunError> {
        self.used.transfers[self.side.other() as usize] += n;
        Ok(self.transfers.pair.receiver.take(n)?)
    }

    /// What to say of a peer whose message is not well formed.
    pub(crate) fn wrong(&self, what: impl ToString) -> RunError {
        let step = self.layer.to_string();
        RunError::Form { step, peer: self.channel.peer().to_owned(), what: what.to_string() }
    }

    pub(crate) fn masked_bits(&self, n: usize, bytes: &[u8]) -> Result<MaskedBits, RunError> {
        MaskedBits::from_bytes(n, bytes).map_err(|e: Malformed| self.wrong(e))
    }

    pub(crate) fn plane(&self, n: usize, bytes: &[u8]) -> Result<Plane, RunError> {
        let bits = BitVec::from_bytes(n, bytes);
        bits.map(|b| b.words().to_vec()).ok_or_else(|| self.wrong("bits past the last element"))
    }

    pub(crate) fn words(&self, ring: Ring, bytes: &[u8], n: usize) -> Result<Vec<u64>, RunError> {
        unpack(ring, bytes, n).map_err(|e| self.wrong(e))
    }
}

/// Public coins of a node from the seed that both sides tossed.
pub(crate) fn coins(seed: &Seed, node: usize, ring: Ring, n: usize) -> Vec<u64> {
    seed.derive(Domain::Common, node as u64).stream().elements(ring, n)
}

/// Append a plane: a bit an element.
pub(crate) fn put_plane(n: usize, plane: &[u64], out: &mut Vec<u8>) {
    out.extend_from_slice(&BitVec::from_words(n, plane.to_vec()).to_bytes());
}

/// Append elements.
pub(crate) fn put_words(ring: Ring, words: &[u64], out: &mut Vec<u8>) {
    pack(ring, words, out);
}
