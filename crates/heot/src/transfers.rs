//! Correlated transfers of a run: made with the peer before it, whatever the weights and inputs are, and kept as a record.
//!
//! What a side has of them follows from a secret seed of its own and the messages that came. A record is both. In the run they
//! are made again from it, node by node, without the peer: a record takes little room, and a run little memory. Who keeps a
//! record must see to it that it is read once.

use crate::context::{RunError, Side};
use crate::gate::{At, Kind, kind};
use privet_family::is_static;
use privet_family::keys::{KeyError, KeySource};
use privet_net::{Channel, Meter, NetError, Step};
use privet_ot::params::B11;
use privet_ot::{Pair, Source, Width};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::Seed;
use std::sync::Arc;

/// Where what came is kept, message by message.
pub type Keep<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), KeyError> + Send);

/// Transfers of both directions above which Ferret's fixed messages are less than what SoftSpoken sends. AGREEMENT.
const MANY: usize = 1 << 18;

/// How a plan's transfers are made: alike at both sides.
pub(crate) fn source(transfers: usize) -> Source {
    if transfers > MANY { Source::Ferret(B11) } else { Source::SoftSpoken(Width::Four) }
}

/// Transfers that a node uses: how many in which this side has both strings, and how many in which it has one.
fn of_node(plan: &Plan, v: ValueId, side: Side) -> [usize; 2] {
    match kind(&plan.nodes[v].op) {
        Kind::Gate(gate) if !is_static(plan, v) && !plan.nodes[v].ty.is_empty() => {
            let of = gate.uses(&At { plan, id: v }).transfers;
            [of[side as usize], of[side.other() as usize]]
        }
        Kind::Gate(_) | Kind::Input { .. } | Kind::Weight { .. } | Kind::Public | Kind::Lacks(_) => [0; 2],
    }
}

/// Transfers that a run of a plan uses, the same way.
pub fn transfers(plan: &Plan, side: Side) -> [usize; 2] {
    let all = (0..plan.nodes.len()).map(|v| of_node(plan, v, side));
    all.fold([0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
}

fn step() -> Step {
    Step::new(1, "transfers")
}

/// Makes a run's transfers together with the peer, and hands what comes from it to `keep`. `secret` is fresh, and used for this
/// record alone; with what is kept it is the record.
pub fn make_transfers(
    plan: &Plan,
    side: Side,
    secret: &Seed,
    channel: &mut dyn Channel,
    keep: Keep<'_>,
) -> Result<(), RunError> {
    let mut kept = Kept { channel, keep, failed: None };
    let made = (|| {
        let mut pair = Pair::start(&mut kept, &step(), source_of(plan), secret)?;
        // nothing is taken here, so that what is there grows as it does in a run that takes all
        let mut due = [0; 2];
        for v in 0..plan.nodes.len() {
            let [send, receive] = of_node(plan, v, side);
            due = [due[0] + send, due[1] + receive];
            pair.prepare(&mut kept, &step(), due[0], due[1])?;
        }
        Ok(())
    })();
    match kept.failed {
        Some(e) => Err(RunError::Record(e)),
        None => made,
    }
}

fn source_of(plan: &Plan) -> Source {
    let [send, receive] = transfers(plan, Side::Server);
    source(send + receive)
}

/// A side's transfers of a run.
pub struct Transfers<'a> {
    pub(crate) pair: Pair,
    /// None where all are there.
    from: Option<Replayed<'a>>,
}

impl<'a> Transfers<'a> {
    /// Of a record: the seed that it was made with, and what came.
    pub fn of_record(
        plan: &Plan,
        secret: &Seed,
        frames: &'a mut (dyn KeySource + Send),
    ) -> Result<Transfers<'a>, RunError> {
        let mut from = Replayed { frames, meter: Arc::default(), failed: None };
        let pair = Pair::start(&mut from, &step(), source_of(plan), secret);
        match (pair, from.failed.take()) {
            (_, Some(e)) => Err(RunError::Record(e)),
            (pair, None) => Ok(Transfers { pair: pair?, from: Some(from) }),
        }
    }

    /// All there already.
    #[cfg(test)]
    pub(crate) fn there(pair: Pair) -> Transfers<'a> {
        Transfers { pair, from: None }
    }

    /// Has those of a node ready.
    pub(crate) fn ready(&mut self, plan: &Plan, v: ValueId, side: Side) -> Result<(), RunError> {
        let Some(from) = &mut self.from else { return Ok(()) };
        let [send, receive] = of_node(plan, v, side);
        let made = self.pair.prepare(from, &step(), send, receive);
        match from.failed.take() {
            Some(e) => Err(RunError::Record(e)),
            None => Ok(made?),
        }
    }
}

/// The peer's channel, of which what comes is kept.
struct Kept<'a> {
    channel: &'a mut dyn Channel,
    keep: Keep<'a>,
    failed: Option<KeyError>,
}

/// A record in the place of the peer: it gives what came, and takes what is sent without a word.
struct Replayed<'a> {
    frames: &'a mut (dyn KeySource + Send),
    meter: Arc<Meter>,
    failed: Option<KeyError>,
}

/// What protocols hear where the record fails; who called them finds the reason beside it.
fn broken() -> NetError {
    NetError::Aborted { peer: "the record".into(), reason: "it cannot be read or written".into() }
}

impl Channel for Kept<'_> {
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        self.channel.send(step, payload)
    }

    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        let message = self.channel.recv(step, len)?;
        match (self.keep)(&message) {
            Ok(()) => Ok(message),
            Err(e) => {
                self.failed = Some(e);
                Err(broken())
            }
        }
    }

    /// Transfers know every length; there is no frame of another one.
    fn recv_up_to(&mut self, _: &Step, _: usize) -> Result<Vec<u8>, NetError> {
        Err(broken())
    }

    fn peer(&self) -> &str {
        self.channel.peer()
    }

    fn meter(&self) -> Arc<Meter> {
        self.channel.meter()
    }

    fn abort(&mut self, reason: &str) {
        self.channel.abort(reason);
    }

    fn sever(&mut self) {
        self.channel.sever();
    }
}

impl Channel for Replayed<'_> {
    fn send(&mut self, _: &Step, _: Vec<u8>) -> Result<(), NetError> {
        Ok(())
    }

    fn recv(&mut self, _: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        match self.frames.take(len) {
            Ok(message) => Ok(message.to_vec()),
            Err(e) => {
                self.failed = Some(e);
                Err(broken())
            }
        }
    }

    fn recv_up_to(&mut self, _: &Step, _: usize) -> Result<Vec<u8>, NetError> {
        Err(broken())
    }

    fn peer(&self) -> &str {
        "the record"
    }

    fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    fn abort(&mut self, _: &str) {}

    fn sever(&mut self) {}
}
