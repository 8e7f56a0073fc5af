//! A party in a run: its side, the channel, the transfers, and what is counted.

use crate::material::{Correlation, Material, Need, Stock};
use crate::uses::Uses;
use crate::wire::Incoming;
use privet_family::NodeStats;
use privet_family::keys::{KeyError, KeySource};
use privet_net::{Channel, NetError, Step};
use privet_ot::{OtError, Short};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
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

/// One party's side of one run.
pub struct Cx<'a> {
    pub(crate) side: Side,
    channel: &'a mut dyn Channel,
    stock: Stock<'a>,
    coins: Seed,
    step: u32,
    /// Threads that gates compute with.
    pub(crate) threads: usize,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
    /// What this party used.
    pub(crate) used: Uses,
}

impl<'a> Cx<'a> {
    /// A run with material of its own, as [`crate::make_material`] gave it: read once. `coins` is what both sides tossed together for
    /// this run alone; the first step has number `first` at both.
    pub fn new(
        side: Side,
        channel: &'a mut dyn Channel,
        material: &'a mut dyn KeySource,
        coins: Seed,
        first: u32,
    ) -> Cx<'a> {
        Cx::with(side, channel, Stock::Record(material), coins, first)
    }

    pub(crate) fn with(
        side: Side,
        channel: &'a mut dyn Channel,
        stock: Stock<'a>,
        coins: Seed,
        first: u32,
    ) -> Cx<'a> {
        let stats = NodeStats::default();
        let (layer, used) = ("".into(), Uses::default());
        Cx { side, channel, stock, coins, step: first, threads: 1, layer, stats, used }
    }

    /// Gates compute with so many threads, where they have enough to do.
    pub fn with_threads(self, threads: usize) -> Cx<'a> {
        Cx { threads: threads.max(1), ..self }
    }

    /// What is left of the transfers.
    #[cfg(test)]
    pub(crate) fn into_pair(self) -> privet_ot::Pair {
        match self.stock {
            Stock::Fresh(fresh) => fresh.pair,
            Stock::Record(_) => panic!("a run with a record"),
        }
    }

    pub(crate) fn enter(&mut self, layer: &str) {
        self.layer = layer.into();
        self.stats = NodeStats::default();
        self.used = Uses::default();
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

    /// This side's material for a step: the next of its record.
    pub(crate) fn take<K: Correlation>(&mut self, of: K, n: usize) -> Result<Material<K>, RunError> {
        let need = Need { of: of.into(), n };
        self.stats.key_bytes += need.bytes(self.side);
        self.used.needs.push(need);
        self.stock.take(self.side, of, n, &mut *self.channel)
    }

    /// What to say of a peer whose message is not well formed.
    pub(crate) fn wrong(&self, what: impl ToString) -> RunError {
        let step = self.layer.to_string();
        RunError::Form { step, peer: self.channel.peer().to_owned(), what: what.to_string() }
    }

    /// Planes of n elements that came.
    pub(crate) fn incoming(&self, n: usize, bytes: Vec<u8>) -> Result<Incoming, RunError> {
        Incoming::new(n, bytes).ok_or_else(|| self.wrong("bits past the last element"))
    }
}

/// Public coins of a node from the seed that both sides tossed.
pub(crate) fn coins(seed: &Seed, node: usize, ring: Ring, n: usize) -> Vec<u64> {
    seed.derive(Domain::Common, node as u64).stream().elements(ring, n)
}
