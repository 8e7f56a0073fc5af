//! How much room a guard gets, and whether a plan has one.

use super::{Guarded, guarded};
use crate::cost::{Aim, choose_forms, estimate};
use crate::float::FloatTensor;
use crate::graph::GraphOp;
use crate::ir::Plan;
use crate::lower::draft::Draft;
use crate::lower::precision::{Formats, GuardMode, Precision, Room};
use crate::lower::{CheckReport, emitted};
use crate::target::Target;
use std::collections::BTreeMap;

/// Headrooms that are tried: chunks of 64, 256 and 1024 values. A longer chunk's signs would fill plans.
const HEADROOMS: [u32; 3] = [6, 7, 8];
/// How often room is made for what a proof lacks.
const TRIES: usize = 6;
/// What a guard may cost that nobody asked for.
const CHEAP: f64 = 1.1;

/// What a note says where there is no guard.
const UNSEEN: &str = "a value that outgrows its range inside the model gives a wrong result unseen";

/// A guarded plan with its numbers.
pub(in crate::lower) struct Watched {
    pub formats: Formats,
    pub plan: Plan,
    pub parameters: BTreeMap<String, FloatTensor>,
}

/// The guarded plan that is predicted to be fastest, of those that are proven if there are any. `None` where
/// `precision` wants none, or wants none that costs more than a tenth of `without` seconds; notes say why.
pub(in crate::lower) fn choose(
    draft: &Draft<'_>,
    precision: &Precision,
    target: &dyn Target,
    aim: &Aim,
    (without, fraction): (f64, u32),
    notes: &mut Vec<String>,
) -> Result<Option<Watched>, CheckReport> {
    let training = precision.keep_ring || !draft.graph.updates.is_empty();
    if precision.guard == GuardMode::Off || training {
        return Ok(None);
    }
    let pools = draft.graph.nodes.iter().any(|n| matches!(n.op, GraphOp::MaxPool2d { .. }));
    let mut best: Option<Candidate> = None;
    for headroom in HEADROOMS {
        for late in [false, true].into_iter().take(1 + usize::from(pools)) {
            let Some(next) = candidate(draft, precision, target, aim, headroom, late)? else { continue };
            if best.as_ref().is_none_or(|best| next.rank() < best.rank()) {
                best = Some(next);
            }
        }
    }
    let Some(Candidate { formats, guarded, parameters, seconds, .. }) = best else {
        notes.push(format!(
            "guard: off, since the ring has no room for one; {UNSEEN}; use fewer fraction bits"
        ));
        return Ok(None);
    };
    let proven = guarded.unproven.is_empty();
    let left = formats.of("").f;
    let coarser = left < fraction;
    let percent = (seconds / without - 1.0) * 100.0;
    // A plan with fewer fraction bits costs less, whatever the guard does: its seconds say nothing about the guard's.
    let costs = match coarser {
        true => format!("{left} fraction bits are left of {fraction}"),
        false => format!("{percent:+.0} % by the estimate"),
    };
    if precision.guard == GuardMode::Auto && !(proven && !coarser && seconds <= CHEAP * without) {
        let why = match (proven, coarser) {
            (false, _) => "not prove every value".into(),
            (true, true) => format!("leave {left} of {fraction} fraction bits"),
            (true, false) => format!("cost {costs}"),
        };
        notes.push(format!("guard: off, since it would {why}; {UNSEEN}; with guard=True it is an error"));
        return Ok(None);
    }
    let what = format!("guard: {} values are watched, {costs}", guarded.watched);
    notes.push(match proven {
        true => format!("{what}; no value leaves its range unseen but with probability 2^-20"),
        false => {
            let layers: Vec<&str> = guarded.unproven.iter().map(String::as_str).take(8).collect();
            format!(
                "{what}; in {} layers a value may leave its range and come back unseen, for want of ring bits: {}",
                guarded.unproven.len(),
                layers.join(", ")
            )
        }
    });
    Ok(Some(Watched { formats, plan: guarded.plan, parameters }))
}

struct Candidate {
    formats: Formats,
    guarded: Guarded,
    parameters: BTreeMap<String, FloatTensor>,
    seconds: f64,
}

impl Candidate {
    /// Proven ones first, then fast ones.
    fn rank(&self) -> (usize, f64) {
        (self.guarded.unproven.len(), self.seconds)
    }
}

/// The guarded plan with so much headroom, and as much more as its proof needs; none where that leaves too few bits.
fn candidate(
    draft: &Draft<'_>,
    precision: &Precision,
    target: &dyn Target,
    aim: &Aim,
    headroom: u32,
    late: bool,
) -> Result<Option<Candidate>, CheckReport> {
    let mut room = Room { headroom, gates: 0, products: 0 };
    let mut best: Option<Candidate> = None;
    for _ in 0..TRIES {
        let Ok(mut formats) = Formats::choose(&draft.graph, precision, room, 0, &mut Vec::new()) else {
            break;
        };
        (formats.late, formats.parts) = (late, true);
        let Ok(emitter) = emitted(draft, &formats, precision, (target, aim.network)) else { break };
        let guarded = guarded(&emitter);
        let (_, parameters) = emitter.finish();
        let short = guarded.short;
        let mut priced = guarded.plan.clone();
        // the cap is for what is chosen in the end
        let _ = choose_forms(&mut priced, target, &Aim { max_key_bytes: None, ..*aim });
        let seconds = estimate(&priced, target, &target.rates(), &aim.network).seconds;
        let next = Candidate { formats, guarded, parameters, seconds };
        if best.as_ref().is_none_or(|best| next.rank() < best.rank()) {
            best = Some(next);
        }
        if short.gates + short.products == 0 {
            break;
        }
        room.gates += short.gates;
        room.products += short.products;
    }
    Ok(best)
}
