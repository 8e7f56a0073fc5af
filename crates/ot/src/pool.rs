//! Pools of one direction: request, make, take. The cores of an extension and of rounds, joined, without I/O.
//!
//! A pool is asked how much traffic a number of correlations needs ([`Demand`]), takes part in it, and then gives runs
//! that are used once. Both parties call alike, so both know every length beforehand.

use crate::cot::{ReceiverCots, SenderCots};
use crate::delta::Delta;
use crate::error::Malformed;
use crate::ferret::{ReceiverRound, SenderRound, WaitingRound};
use crate::hash::Pads;
use crate::params::Parameters;
use crate::softspoken::{self, CHUNK, Width};
pub use crate::stock::Short;
use crate::stock::{Produce, Stock};
use privet_prg::{Domain, Prg, Seed};

/// What makes the correlations. AGREEMENT. `SoftSpoken` is the way out should LPN with regular noise fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Only the extension: more bytes, less work.
    SoftSpoken(Width),
    /// Ferret, whose first reserve SoftSpoken makes with k = 8.
    Ferret(Parameters),
}

impl Source {
    pub(crate) fn width(self) -> Width {
        match self {
            Source::SoftSpoken(width) => width,
            Source::Ferret(_) => Width::Eight,
        }
    }

    fn group(self) -> usize {
        match self {
            Source::SoftSpoken(_) => CHUNK,
            Source::Ferret(parameters) => parameters.group_outputs(),
        }
    }
}

/// Traffic of one direction until enough correlations are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Chunks of the extension: messages from receiver to sender.
    pub chunks: usize,
    /// Rounds of Ferret after them: messages from sender to receiver.
    pub rounds: usize,
}

fn demand<R: Produce>(source: Source, stock: &Stock<R>, n: usize) -> Demand {
    let missing = n.saturating_sub(stock.available());
    match source {
        Source::SoftSpoken(_) => Demand { chunks: missing.div_ceil(CHUNK), rounds: 0 },
        Source::Ferret(parameters) => {
            let rounds = missing.div_ceil(parameters.usable());
            let first = rounds > 0 && !stock.has_reserve();
            Demand { chunks: if first { parameters.reserve().div_ceil(CHUNK) } else { 0 }, rounds }
        }
    }
}

/// The direction's public seeds: of trees and rows, and of pads.
pub(crate) fn public_seeds(public: &Seed) -> (Seed, Pads) {
    (public.derive(Domain::Public, 0), Pads::new(public.derive(Domain::Public, 1)))
}

/// The side with Delta.
pub struct SenderPool {
    source: Source,
    public: Seed,
    hash: Pads,
    delta: Delta,
    prg: Prg,
    extension: softspoken::Sender,
    stock: Stock<SenderRound>,
}

/// The side with the choices.
pub struct ReceiverPool {
    source: Source,
    public: Seed,
    hash: Pads,
    extension: softspoken::Receiver,
    stock: Stock<ReceiverRound>,
}

impl SenderPool {
    pub(crate) fn new(
        source: Source,
        (public, hash): (Seed, Pads),
        delta: Delta,
        extension: softspoken::Sender,
        prg: Prg,
    ) -> SenderPool {
        SenderPool { source, public, hash, delta, prg, extension, stock: Stock::new() }
    }

    /// Transfers that can be taken.
    pub fn available(&self) -> usize {
        self.stock.available()
    }

    /// The next `n` transfers.
    pub fn take(&mut self, n: usize) -> Result<SenderCots, Short> {
        let (first, blocks) = self.stock.take(n, self.source.group())?;
        Ok(SenderCots { delta: self.delta.clone(), hash: self.hash.clone(), first, blocks })
    }

    /// These transfers and no others, numbered from 0.
    #[cfg(any(test, feature = "ideal"))]
    pub(crate) fn restock(&mut self, delta: Delta, blocks: &[u128]) {
        (self.delta, self.stock) = (delta, Stock::new());
        self.stock.grow(blocks.len()).copy_from_slice(blocks);
    }

    pub(crate) fn demand(&self, n: usize) -> Demand {
        demand(self.source, &self.stock, n)
    }

    /// Takes the receiver's messages for as many chunks as they are long.
    pub(crate) fn extend(&mut self, messages: &[u8]) -> Result<(), Malformed> {
        for message in messages.chunks(self.source.width().chunk_bytes()) {
            self.extension.extend(message, self.stock.grow(CHUNK))?;
        }
        Ok(())
    }

    /// Starts a round; gives its message.
    pub(crate) fn round(&mut self, parameters: Parameters) -> Vec<u8> {
        if !self.stock.has_reserve() {
            self.stock.set_reserve(parameters);
        }
        let (number, reserve) = (self.stock.round, self.stock.use_reserve());
        let (round, message) =
            SenderRound::start(parameters, &self.public, number, &self.delta, reserve, &mut self.prg);
        self.stock.push(parameters, round);
        message
    }
}

impl ReceiverPool {
    pub(crate) fn new(
        source: Source,
        (public, hash): (Seed, Pads),
        extension: softspoken::Receiver,
    ) -> ReceiverPool {
        ReceiverPool { source, public, hash, extension, stock: Stock::new() }
    }

    /// Transfers that can be taken.
    pub fn available(&self) -> usize {
        self.stock.available()
    }

    /// The next `n` transfers.
    pub fn take(&mut self, n: usize) -> Result<ReceiverCots, Short> {
        let (first, blocks) = self.stock.take(n, self.source.group())?;
        Ok(ReceiverCots { hash: self.hash.clone(), first, blocks })
    }

    /// These transfers and no others, numbered from 0.
    #[cfg(any(test, feature = "ideal"))]
    pub(crate) fn restock(&mut self, blocks: &[u128]) {
        self.stock = Stock::new();
        self.stock.grow(blocks.len()).copy_from_slice(blocks);
    }

    pub(crate) fn demand(&self, n: usize) -> Demand {
        demand(self.source, &self.stock, n)
    }

    /// Makes `chunks` chunks; gives their messages.
    pub(crate) fn extend(&mut self, chunks: usize) -> Vec<u8> {
        let mut messages = Vec::with_capacity(chunks * self.source.width().chunk_bytes());
        for _ in 0..chunks {
            messages.extend_from_slice(&self.extension.extend(self.stock.grow(CHUNK)));
        }
        messages
    }

    /// A round, with the sender's message.
    pub(crate) fn round(&mut self, parameters: Parameters, message: &[u8]) -> Result<(), Malformed> {
        if !self.stock.has_reserve() {
            self.stock.set_reserve(parameters);
        }
        let (number, reserve) = (self.stock.round, self.stock.use_reserve());
        let round = WaitingRound::start(parameters, &self.public, number, reserve).finish(message)?;
        self.stock.push(parameters, round);
        Ok(())
    }
}
