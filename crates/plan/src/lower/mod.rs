//! From the captured model to the integer plan.
//!
//! Linear layers work in Z_2^k. A product of f and g fraction bits has f + g of them; truncating by g leaves f in
//! m = k - g bits, where ReLU and MaxPool run; ReLU widens back to k for the next layer as it goes. Residual sums
//! happen in m bits, or before the truncation where that saves one. How each value gets the numbers that
//! its readers want is told in `forms.rs`.

mod attention;
#[deny(clippy::wildcard_enum_match_arm)]
mod demand;
mod draft;
#[deny(clippy::wildcard_enum_match_arm)]
mod emit;
mod fine;
mod forms;
mod guard;
#[deny(clippy::wildcard_enum_match_arm)]
mod infer;
mod inner;
mod narrow;
mod norm;
mod operand;
mod overlap;
mod precision;
#[deny(clippy::wildcard_enum_match_arm)]
mod readers;
mod rebatch;
pub mod remedies;
mod report;
#[deny(clippy::wildcard_enum_match_arm)]
mod rounds;
mod rules;
#[deny(clippy::wildcard_enum_match_arm)]
mod share;
mod smooth;
mod training;
mod uses;

pub use forms::{DATA_OWNER, MODEL_OWNER, RECEIVER};
pub use guard::GUARD;
pub use overlap::overlapped;
pub use precision::{GuardMode, LayerPrecision, Precision, RoundingMode};
#[cfg(feature = "suite")]
pub(crate) use readers::joined as joined_readers;
pub use report::{CheckReport, Problem};
#[cfg(feature = "suite")]
pub(crate) use rounds::joined;

use crate::cost::{Aim, Network, Prices, TooManyKeys, choose_forms, estimate};
use crate::float::FloatTensor;
use crate::graph::{Graph, GraphNode, GraphOp};
use crate::ir::Plan;
use crate::shown;
use crate::target::{Refusal, Refused, Target, admit};
use draft::Draft;
use precision::{Formats, Room, op_name};
use std::collections::BTreeMap;
use thiserror::Error;

/// A model ready to be shared and run.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The plan.
    pub plan: Plan,
    /// The tensors that the plan's weights name, after folding.
    pub parameters: BTreeMap<String, FloatTensor>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Why a model was not lowered.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LowerError {
    /// Every unsupported or ill-fitting operation, or every node that the family refuses.
    #[error("{0}")]
    Model(#[from] CheckReport),
    /// Its keys are more than allowed, whatever the forms of comparisons.
    #[error(transparent)]
    Keys(#[from] TooManyKeys),
}

/// [`lower_for`] a LAN, with as many keys as that takes.
pub fn lower(
    graph: &Graph,
    params: &BTreeMap<String, FloatTensor>,
    precision: &Precision,
    target: &dyn Target,
) -> Result<Lowered, CheckReport> {
    lower_for(graph, params, precision, target, &Aim::default()).map_err(|error| match error {
        LowerError::Model(report) => report,
        LowerError::Keys(keys) => CheckReport::one(whole(keys.to_string())),
    })
}

/// Lower `graph` with its parameters for the family that will run the plan. What `precision` leaves open, and the forms of
/// comparisons, are chosen by the family's prices for `aim`. The same arguments give the same plan on every machine.
pub fn lower_for(
    graph: &Graph,
    params: &BTreeMap<String, FloatTensor>,
    precision: &Precision,
    target: &dyn Target,
    aim: &Aim,
) -> Result<Lowered, LowerError> {
    check(graph, params)?;
    let mut draft = Draft { graph: graph.clone(), given: params, made: BTreeMap::new(), notes: Vec::new() };
    rules::apply(&mut draft);
    let mut notes = std::mem::take(&mut draft.notes);
    let (seconds, formats) = choose_formats(&draft, precision, target, aim, &mut notes)?;
    let unwatched = (seconds, formats.of("").f);
    let (formats, plan, parameters) =
        match guard::choose(&draft, precision, target, aim, unwatched, &mut notes)? {
            Some(guard::Watched { formats, plan, parameters }) => (formats, plan, parameters),
            None => {
                let (plan, parameters) =
                    emitted(&draft, &formats, precision, (target, aim.network))?.finish();
                (formats, plan, parameters)
            }
        };
    notes.push(formats.note());
    let shared = share::shared(plan);
    let shared = match target.joined_macs(&aim.network) {
        Some(most) => readers::joined(shared, most),
        None => shared,
    };
    let mut plan = rounds::joined(shared);
    notes.extend(choose_forms(&mut plan, target, aim)?);
    let plan = overlapped(plan, target);
    let prepared = target.on(&aim.network);
    notes.extend(
        prepared.map(|(set, _)| {
            format!("prepared with {set}, where nothing else is set; network {}", aim.network)
        }),
    );
    plan.check().map_err(|e| CheckReport::one(whole(format!("the lowered plan is not valid: {e}"))))?;
    admit(&plan, &graph.name, target).map_err(|refused| refused_at(&draft, refused))?;
    Ok(Lowered { plan, parameters, notes })
}

/// What a family refuses, where the model has it.
fn refused_at(draft: &Draft<'_>, refused: Refused) -> CheckReport {
    let source = |layer: &str| {
        let of_layer = draft.graph.nodes.iter().find(|n| n.layer == layer && !n.source.is_empty());
        of_layer.map(|n| n.source.clone()).unwrap_or_default()
    };
    let problem = |refusal: Refusal| Problem {
        op: format!("node {} of the plan", refusal.node),
        source: source(&refusal.layer),
        layer: refusal.layer,
        what: format!("protocol {} refuses it: {}", refused.protocol, refusal.problem),
        remedy: refusal.remedy,
    };
    CheckReport { problems: refused.refusals.into_iter().map(problem).collect() }
}

/// A few ring bits more than needed can save whole truncations and extensions (an average pool whose divisor then
/// needs none, for example), or cost more bytes than they save. So can maxima before truncations. Of the candidates that
/// the user leaves open, each with its forms of comparisons, the one that is predicted to be fastest is taken; the fewest
/// bits on a tie. Gives the prediction too, where there was one to make.
fn choose_formats(
    draft: &Draft<'_>,
    precision: &Precision,
    prices: &dyn Prices,
    aim: &Aim,
    notes: &mut Vec<String>,
) -> Result<(f64, Formats), CheckReport> {
    const MOST_SPARE_BITS: u32 = 12;
    let predicted = |formats: &Formats| -> Result<f64, CheckReport> {
        let mut plan = emitted(draft, formats, precision, (prices, aim.network))?.plan;
        // the cap is for what is chosen in the end
        let uncapped = Aim { max_key_bytes: None, ..*aim };
        let _ = choose_forms(&mut plan, prices, &uncapped);
        Ok(estimate(&plan, prices, &prices.rates(), &aim.network).seconds)
    };
    if precision.keep_ring || !draft.graph.updates.is_empty() {
        let whole = Formats::keeping_ring(precision)?;
        let mut narrow = Formats::keeping_ring(precision)?;
        narrow.narrow = true;
        // two roundings by coins have the distribution of one; others are off by more than one
        let by_coins = precision.rounding == RoundingMode::Stochastic;
        let is_less = by_coins
            && whole.of("").g > 1
            && narrow::any(&draft.graph)
            && predicted(&narrow)? < predicted(&whole)?;
        return Ok((f64::NAN, if is_less { narrow } else { whole }));
    }
    let room = Room::unwatched(precision);
    let least = Formats::choose(&draft.graph, precision, room, 0, notes)?;
    let most = if precision.bits.is_some() { 0 } else { MOST_SPARE_BITS };
    let pools = draft.graph.nodes.iter().any(|n| matches!(n.op, GraphOp::MaxPool2d { .. }));
    if most == 0 && !pools && precision.guard == GuardMode::Off {
        return Ok((f64::NAN, least));
    }
    let mut best = (predicted(&least)?, least);
    for spare in 0..=most {
        for late in [false, true].into_iter().filter(|&late| if late { pools } else { spare > 0 }) {
            let mut formats = Formats::choose(&draft.graph, precision, room, spare, &mut Vec::new())?;
            formats.late = late;
            let seconds = predicted(&formats)?;
            if seconds < best.0 {
                best = (seconds, formats);
            }
        }
    }
    Ok(best)
}

fn emitted<'a>(
    draft: &'a Draft<'a>,
    formats: &'a Formats,
    precision: &Precision,
    target: (&'a dyn Prices, Network),
) -> Result<forms::Emitter<'a>, CheckReport> {
    let wide = match formats.keep_ring {
        true => vec![Some(formats.of("").k); draft.graph.nodes.len()],
        false => demand::wide(&draft.graph, formats),
    };
    let mut emitter = forms::Emitter::new(draft, formats, wide, precision.rounding, target);
    emit::emit(&mut emitter).map_err(CheckReport::one)?;
    shown::make_exact(&mut emitter.plan);
    Ok(emitter)
}

/// Everything that lowering takes for granted: supported operations, consistent shapes, parameters that are there.
pub fn check(graph: &Graph, params: &BTreeMap<String, FloatTensor>) -> Result<(), CheckReport> {
    problems(graph, |name| Some(params.get(name)))
}

/// The same without the parameters: supported operations and consistent shapes.
pub fn check_graph(graph: &Graph) -> Result<(), CheckReport> {
    problems(graph, |_| None)
}

/// `given` is `None` where parameters are not looked at, and `Some(None)` where one is missing.
fn problems<'a>(
    graph: &Graph,
    given: impl Fn(&str) -> Option<Option<&'a FloatTensor>>,
) -> Result<(), CheckReport> {
    graph.check().map_err(|e| CheckReport::one(whole(e.to_string())))?;
    let mut problems = uses::problems(graph);
    for node in &graph.nodes {
        if let Some((what, remedy)) = node_problem(graph, node, &given) {
            let (layer, source) = (node.layer.clone(), node.source.clone());
            problems.push(Problem { op: op_name(&node.op), layer, source, what, remedy });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(CheckReport { problems }) }
}

fn node_problem<'a>(
    graph: &Graph,
    node: &GraphNode,
    given: impl Fn(&str) -> Option<Option<&'a FloatTensor>>,
) -> Option<(String, String)> {
    if let GraphOp::Unsupported { name } = &node.op {
        return Some(("is not supported".into(), remedies::remedy(name).into()));
    }
    if let GraphOp::BatchNorm { .. } = node.op
        && node.inputs[1..]
            .iter()
            .any(|&i| !matches!(graph.nodes[i].op, GraphOp::Parameter { .. } | GraphOp::State { .. }))
    {
        return Some(("its statistics depend on the input".into(), remedies::remedy("batch_norm").into()));
    }
    if let GraphOp::Parameter { name } = &node.op {
        return match given(name)? {
            Some(t) if t.shape == node.shape && t.data.len() == node.shape.iter().product::<usize>() => {
                t.data.iter().any(|v| !v.is_finite()).then(|| {
                    (format!("parameter {name} has NaN or infinity"), "repair the checkpoint".into())
                })
            }
            Some(t) => Some((
                format!("parameter {name} has shape {:?}, the model takes {:?}", t.shape, node.shape),
                "give the parameters of the captured model".into(),
            )),
            None => Some((
                format!("parameter {name} was not given"),
                "give the parameters of the captured model".into(),
            )),
        };
    }
    let shapes: Vec<&[usize]> = node.inputs.iter().map(|&i| graph.nodes[i].shape.as_slice()).collect();
    match infer::infer(&node.op, &shapes, &node.shape) {
        Ok(shape) if shape == node.shape => None,
        Ok(shape) => Some((
            format!("has shape {:?}, should be {shape:?}", node.shape),
            "capture the model again with this version".into(),
        )),
        Err(what) => Some((what, "rewrite the layer with shapes that fit".into())),
    }
}

fn whole(what: String) -> Problem {
    Problem {
        op: "model".into(),
        layer: String::new(),
        source: String::new(),
        what,
        remedy: "capture the model again with this version; if that does not help, report the message".into(),
    }
}
