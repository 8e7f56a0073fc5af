//! What a party keeps while it prepares records of a session together with its peers: pairs of transfers, and its masks of
//! weights with what encryption made of them.
//!
//! It stays in memory, and is never written: transfers are used once, and the coins of encryption serve one job.

use super::{Joint, Layers, Own, Peer, Transfers};
use crate::preprocess::PrepareError;
use crate::record::RecordSink;
use crate::seeds::{PartySeed, Public};
use privet_family::NodeStats;
use privet_net::{Channel, Step};
use privet_ot::{Pair, Source, Width};
use privet_plan::ir::Plan;
use privet_prg::Seed;

/// How transfers are made.
const SOURCE: Source = Source::SoftSpoken(Width::Four);
/// Threads that encryption computes with: each peer of the transfers has one of its own already.
const THREADS: usize = 1;
/// The step of the base transfers; those of records follow.
const START: u32 = 1;

/// A party's part in preparing records of a session.
pub struct JointSession<'a> {
    plan: &'a Plan,
    own: PartySeed,
    public: Seed,
    pairs: Vec<Pair>,
    linear: Layers,
}

impl<'a> JointSession<'a> {
    /// Begin with all peers, in the order of their numbers; `own` is this party's seed of the session, `public` what all parties
    /// draw from alike.
    pub fn start(
        plan: &'a Plan,
        own: PartySeed,
        public: Seed,
        mut peers: Vec<&mut dyn Channel>,
    ) -> Result<JointSession<'a>, PrepareError> {
        let step = Step::new(START, "base transfers");
        let pair = |channel: &mut &mut dyn Channel| Pair::start(*channel, &step, SOURCE, &Seed::random());
        let mut pairs = peers.iter_mut().map(pair).collect::<Result<Vec<_>, _>>()?;
        let mut transfers = Transfers::new(own.party(), numbered(own.party(), peers, &mut pairs), START + 1);
        // fresh for every job: hints of two jobs under one secret would tell weights' masks
        let encryption = transfers.encryption(&Seed::random(), THREADS)?;
        let linear = Layers::new(plan, &own, encryption);
        Ok(JointSession { plan, own, public, pairs, linear })
    }

    /// Prepare record `number` from this party's fresh seed of it, with the same peers; its frames go to place 0 of the sink.
    pub fn record(
        &mut self,
        number: u64,
        seed: &Seed,
        peers: Vec<&mut dyn Channel>,
        sink: &mut dyn RecordSink,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, PrepareError> {
        let me = self.own.party();
        let peers = numbered(me, peers, &mut self.pairs);
        let record = PartySeed::new(me, seed.clone());
        let public = Public::new(&self.public, number);
        let own = Own { session: &self.own, record: &record, public };
        let transfers = Transfers::new(me, peers, START + 1);
        let mut joint = Joint::new(own, transfers, &mut self.linear, sink);
        crate::prepare(self.plan, &mut joint, progress)
    }
}

/// All parties but `me`, in the order of their numbers.
fn numbered<'a, 'c: 'a>(
    me: usize,
    channels: Vec<&'c mut dyn Channel>,
    pairs: &'a mut [Pair],
) -> Vec<Peer<'a>> {
    let numbers = (0..=pairs.len()).filter(|party| *party != me);
    let mut peers = Vec::with_capacity(pairs.len());
    for ((number, channel), pair) in numbers.zip(channels).zip(pairs) {
        peers.push(Peer { number, channel, pair });
    }
    peers
}
