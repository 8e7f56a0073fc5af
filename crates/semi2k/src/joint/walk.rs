//! The walk over a plan at a party among its peers: nodes that fill messages by themselves one after the other, small ones that
//! follow each other in lanes ([`super::lanes`]).
//!
//! Preparing a node takes nothing of what preparing others gives, so any order does. Frames go to the record in the plan's.

use super::cost::room;
use super::lanes::ended_elsewhere;
use super::row::RUN;
use super::{Joint, Linear, Own, Transfers};
use crate::gate::{Kind, kind};
use crate::masks::MaskCache;
use crate::prepare::prepare_node;
use crate::preprocess::{Factor, PrepareError, static_operand};
use crate::record::RecordSink;
use crate::shares::Words;
use privet_family::keys::KeyError;
use privet_family::{NodeStats, Products};
use privet_ot::Source;
use privet_plan::cost::{Known, Operation, known};
use privet_plan::ir::{Op, Plan, ValueId};
use privet_plan::ops;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// Nodes that share messages at most. AGREEMENT, as what follows.
const LANES: usize = 32;
/// Bytes of frames that wait until all of them are done.
const FRAMES: u64 = 32 << 20;

/// Prepare one record of a checked plan as a party among its peers, who do the same; `progress(node)` is called after every node, in order.
/// Gives the costs of each node.
pub fn prepare_together(
    plan: &Plan,
    own: &Own<'_>,
    mut transfers: Transfers<'_>,
    linear: &mut dyn Linear,
    sink: &mut dyn RecordSink,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<NodeStats>, PrepareError> {
    let (cache, known) = (MaskCache::new(plan), known(plan));
    let mut stats: Vec<NodeStats> = Vec::with_capacity(plan.nodes.len());
    while stats.len() < plan.nodes.len() {
        let first = stats.len();
        let group = group(plan, first, &known, transfers.room(), &|node| linear.is_ready(node));
        if group.len() > 1 {
            let made = in_lanes(plan, own, &mut transfers, group.clone(), linear)?;
            for (v, (of_node, frames)) in group.zip(made) {
                frames.0.into_iter().try_for_each(|mut frame| sink.put(0, &mut frame))?;
                cache.done(v);
                stats.push(of_node);
                progress(v);
            }
            continue;
        }
        let mut joint = Joint::new(own.again(), transfers.again(), &mut *linear, &mut *sink);
        let of_node = prepare_node(plan, first, &mut joint, &cache)?;
        let step = joint.next_step();
        transfers.go_on(step);
        stats.push(of_node);
        progress(first);
    }
    Ok(stats)
}

/// Message rounds of all nodes, `of` being those of each by itself and of what is ready none: of nodes that share messages the most.
pub(crate) fn rounds(
    plan: &Plan,
    source: Source,
    is_ready: &dyn Fn(ValueId) -> bool,
    of: impl Fn(ValueId) -> u64,
) -> u64 {
    let (known, mut first, mut sum) = (known(plan), 0, 0);
    while first < plan.nodes.len() {
        let group = group(plan, first, &known, room(source), is_ready);
        first = group.end;
        sum += group.map(&of).max().unwrap_or(0);
    }
    sum
}

/// Nodes from the first one on whose programs share messages; that one alone, if need be. Of both directions' rows `room` whole ones fit.
fn group(
    plan: &Plan,
    first: ValueId,
    known: &[Known<'_>],
    room: usize,
    is_ready: &dyn Fn(ValueId) -> bool,
) -> Range<ValueId> {
    let room = 2 * (room * RUN) as u64;
    let (mut transfers, mut bytes) = (0, 0);
    let mut end = first;
    while end < plan.nodes.len() && end - first < LANES {
        let Some([more, frames]) = small(plan, end, known, room, is_ready) else { break };
        (transfers, bytes) = (transfers + more, bytes + frames);
        if transfers > room || bytes > FRAMES {
            break;
        }
        end += 1;
    }
    first..end.max(first + 1)
}

/// Transfers and bytes of frames of a node that may share messages with others: one that does not fill them by itself, and that
/// needs transfers alone.
fn small(
    plan: &Plan,
    v: ValueId,
    known: &[Known<'_>],
    room: u64,
    is_ready: &dyn Fn(ValueId) -> bool,
) -> Option<[u64; 2]> {
    let ready = static_operand(plan, v).is_some() && is_ready(v);
    let Kind::Gate(gate) = kind(&plan.nodes[v].op) else { return Some([0, 0]) };
    let cost = gate.price(&Operation::of(plan, v, known));
    let transfers = match &plan.nodes[v].op {
        Op::Linear | Op::MatMul | Op::Conv2d { .. } if ready => 0,
        ops!(bilinear) | Op::Piecewise { .. } | Op::Exponential { .. } | Op::Waves { .. } => return None,
        ops!(source) | ops!(local) => return Some([0, 0]),
        ops!(public) | ops!(rounding) | ops!(comparison) | Op::Lookup { .. } => cost.offline.transfers,
    };
    (2 * transfers <= room).then_some([transfers, cost.key_bytes.most()])
}

/// Frames of a node, until it is its turn.
#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl RecordSink for Frames {
    fn put(&mut self, _: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        self.0.push(std::mem::take(frame));
        Ok(())
    }
}

/// Products of the node that a lane is for, if they are there.
struct Ready(Option<Words>);

impl Linear for Ready {
    fn products(
        &mut self,
        _: &mut Transfers<'_>,
        _: Products,
        _: &Words,
        _: Factor,
    ) -> Result<Words, PrepareError> {
        self.0.take().ok_or_else(|| PrepareError::Failed("products of a node in a lane are not there".into()))
    }
}

/// A lane for each of some nodes.
fn in_lanes(
    plan: &Plan,
    own: &Own<'_>,
    transfers: &mut Transfers<'_>,
    group: Range<ValueId>,
    linear: &mut dyn Linear,
) -> Result<Vec<(NodeStats, Frames)>, PrepareError> {
    let of_node = |v| static_operand(plan, v).and_then(|_| linear.take_ready(v));
    let ready: Vec<Option<Words>> = group.clone().map(of_node).collect();
    let (me, room) = (transfers.seats(), transfers.room());
    let lanes = transfers.lanes(group.len());
    let ends: Vec<Result<(NodeStats, Frames), PrepareError>> = std::thread::scope(|scope| {
        let begin = |(number, (v, ready))| {
            let lane = lanes.lane(number);
            scope.spawn(move || {
                let (mut linear, mut frames) = (Ready(ready), Frames::default());
                let stats = lane.run(|| {
                    let transfers = Transfers::shared(me, room, lane);
                    let mut joint = Joint::new(own.again(), transfers, &mut linear, &mut frames);
                    prepare_node(plan, v, &mut joint, &MaskCache::new(plan))
                });
                stats.map(|stats| (stats, frames))
            })
        };
        let all: Vec<_> = group.clone().zip(ready).enumerate().map(begin).collect();
        let end = |lane: ScopedJoinHandle<'_, _>| lane.join().unwrap_or_else(|panic| resume_unwind(panic));
        all.into_iter().map(end).collect()
    });
    let next = lanes.next_step();
    transfers.go_on(next);
    // what went wrong, and not that others ended for it
    match ends.iter().position(|end| end.as_ref().is_err_and(|e| !ended_elsewhere(e))) {
        Some(at) => Err(ends.into_iter().nth(at).and_then(Result::err).expect("it failed")),
        None => ends.into_iter().collect(),
    }
}
