//! What a party keeps while it prepares records of a session together with its peers: pairs of transfers, and its masks of
//! weights with what encryption made of them.
//!
//! It stays in memory, and is never written: transfers are used once, and the coins of encryption serve one job.

use super::distance;
use super::layers::Ready;
use super::walk::prepare_together;
use super::{Layers, Own, Peer, Transfers};
use crate::preprocess::PrepareError;
use crate::record::RecordSink;
use crate::seeds::{PartySeed, Public};
use privet_family::NodeStats;
use privet_net::{Channel, Step};
use privet_ot::{Pair, Source};
use privet_plan::ir::Plan;
use privet_prg::Seed;

/// The step of the base transfers; those of records follow.
const START: u32 = 1;

/// A party's part in preparing records of a session.
pub struct JointSession<'a> {
    plan: &'a Plan,
    own: PartySeed,
    public: Seed,
    pairs: Vec<Pair>,
    source: Source,
    layers: Layers,
}

/// A record that is begun: its products with weights' masks are made. It is finished once, or dropped.
pub struct Begun {
    number: u64,
    seed: Seed,
    ready: Ready,
}

impl Begun {
    /// The record's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// This party's seed of the record, drawn for it.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }
}

impl<'a> JointSession<'a> {
    /// Begin with all peers, in the order of their numbers; `own` is this party's seed of the session, `public` what all parties
    /// draw from alike. So many records are to be prepared, with transfers of this source, alike at all parties, or of what suits the ways between
    /// them; encryption computes with so many threads.
    pub fn start(
        plan: &'a Plan,
        own: PartySeed,
        public: Seed,
        records: usize,
        source: Option<Source>,
        threads: usize,
        mut peers: Vec<&mut dyn Channel>,
    ) -> Result<JointSession<'a>, PrepareError> {
        let source = match source {
            Some(source) => source,
            None => distance::source(&Step::new(START, "distance"), &mut peers)?,
        };
        let step = Step::new(START, "base transfers");
        let pair = |channel: &mut &mut dyn Channel| Pair::start(*channel, &step, source, &Seed::random());
        let mut pairs = peers.iter_mut().map(pair).collect::<Result<Vec<_>, _>>()?;
        let mut transfers =
            Transfers::new(own.party(), numbered(own.party(), peers, &mut pairs), START + 1).by(source);
        // fresh for every job: hints of two jobs under one secret would tell weights' masks
        let encryption = transfers.encryption(&Seed::random(), threads)?;
        let layers = Layers::new(plan, &own, encryption).for_records(plan, records);
        Ok(JointSession { plan, own, public, pairs, source, layers })
    }

    /// How many records are begun together, at most.
    pub fn at_once(&self) -> usize {
        self.layers.at_once()
    }

    /// Begin records of these numbers, at most [`JointSession::at_once`], with the same peers: each under a seed drawn here.
    pub fn begin(
        &mut self,
        numbers: &[u64],
        peers: Vec<&mut dyn Channel>,
    ) -> Result<Vec<Begun>, PrepareError> {
        let me = self.own.party();
        let seeds: Vec<PartySeed> = numbers.iter().map(|_| PartySeed::new(me, Seed::random())).collect();
        let own = |(number, record): (&u64, _)| Own {
            session: &self.own,
            record,
            public: Public::new(&self.public, *number),
        };
        let records: Vec<Own<'_>> = numbers.iter().zip(&seeds).map(own).collect();
        let mut transfers =
            Transfers::new(me, numbered(me, peers, &mut self.pairs), START + 1).by(self.source);
        let ready = self.layers.ahead(&mut transfers, self.plan, &records)?;
        let begun = numbers.iter().zip(&seeds).zip(ready);
        Ok(begun
            .map(|((number, seed), ready)| Begun { number: *number, seed: seed.seed().clone(), ready })
            .collect())
    }

    /// Finish a record, in the order in which all parties began them, with the same peers; its frames go to place 0 of the sink.
    pub fn record(
        &mut self,
        begun: Begun,
        peers: Vec<&mut dyn Channel>,
        sink: &mut dyn RecordSink,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, PrepareError> {
        let Begun { number, seed, ready } = begun;
        let me = self.own.party();
        let peers = numbered(me, peers, &mut self.pairs);
        let record = PartySeed::new(me, seed);
        let public = Public::new(&self.public, number);
        let own = Own { session: &self.own, record: &record, public };
        let transfers = Transfers::new(me, peers, START + 1).by(self.source);
        self.layers.begin(ready);
        prepare_together(self.plan, &own, transfers, &mut self.layers, sink, progress)
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
