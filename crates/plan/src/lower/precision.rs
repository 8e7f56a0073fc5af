//! What the user may say about numbers, and the formats that follow from it and from calibrated ranges.

use super::report::{CheckReport, Problem};
use crate::graph::{Graph, GraphNode, GraphOp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fraction bits tried first when the user gives none.
const AUTO_FRACTION: u32 = 16;
/// Fewest fraction bits chosen automatically.
const LEAST_FRACTION: u32 = 6;
/// Fraction bits of training when the user gives none.
const TRAINING_FRACTION: u32 = 24;
/// Ring bits chosen when there is no calibrated range.
const UNCALIBRATED_BITS: u32 = 64;

/// Ring bits and fraction bits, per plan and per layer. What is absent is chosen from the calibrated ranges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Precision {
    /// k of linear layers.
    pub bits: Option<u32>,
    /// f of activations.
    pub fraction: Option<u32>,
    /// Fraction bits of weights; f when absent.
    pub weight_fraction: Option<u32>,
    /// How truncations round.
    pub rounding: RoundingMode,
    /// Exceptions by layer name; a name covers the layers below it.
    pub per_layer: BTreeMap<String, LayerPrecision>,
    /// Bits kept free above the calibrated ranges when bits or fraction are chosen automatically.
    pub headroom_bits: u32,
    /// For training: truncations keep the ring (docs/training.md, Numbers), so that every value that is not a bit lives in
    /// Z_2^k; k is 64 and f 24 where they are not given, and calibrated ranges choose nothing.
    pub keep_ring: bool,
    /// Whether a run checks that no value left what it was calibrated for (docs/guard.md).
    pub guard: GuardMode,
}

/// When a plan has a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum GuardMode {
    /// Never.
    #[default]
    Off,
    /// Where it is proven throughout and predicted to cost at most a tenth more.
    Auto,
    /// Always; notes say what is not proven.
    On,
}

/// An exception for one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct LayerPrecision {
    /// k.
    pub bits: Option<u32>,
    /// f.
    pub fraction: Option<u32>,
}

/// How truncations round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum RoundingMode {
    /// To the nearest, halves up: half a unit is added before rounding down. Exact and free.
    #[default]
    Nearest,
    /// Down.
    Floor,
    /// Up with the probability of the fraction: unbiased.
    Stochastic,
    /// As `nearest`, one unit in the last place more or less: where a family truncates for less that way. Unbiased.
    OneUlp,
}

impl Default for Precision {
    fn default() -> Self {
        Precision {
            bits: None,
            fraction: None,
            weight_fraction: None,
            rounding: RoundingMode::Nearest,
            per_layer: BTreeMap::new(),
            headroom_bits: 2,
            keep_ring: false,
            guard: GuardMode::Off,
        }
    }
}

/// The numbers of one layer: linear operations in Z_2^k, activations with f fraction bits, weights with g; comparisons are
/// of m = k - g - watched bits, what a truncation leaves where nothing is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub k: u32,
    pub f: u32,
    pub g: u32,
    /// Bits that a guard needs above a product's range ([`Room::products`]).
    pub watched: u32,
}

impl Format {
    pub fn m(&self) -> u32 {
        self.k - self.g - self.watched
    }
}

/// Bits above calibrated ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Room {
    /// What values may exceed their calibrated ranges by.
    pub headroom: u32,
    /// More for all values: a guard's, for sums of values that it watches.
    pub gates: u32,
    /// More for products alone: a guard's, so that what leaves its range cannot come back by wrapping.
    pub products: u32,
}

impl Room {
    /// Of a plan that nothing watches.
    pub fn unwatched(p: &Precision) -> Room {
        Room { headroom: p.headroom_bits, ..Room::default() }
    }
}

/// Bits that a value of `range` needs in front of its fraction, sign and `headroom` included.
pub(crate) fn range_bits(range: [f64; 2], headroom: u32) -> u32 {
    let largest = range[0].abs().max(range[1].abs());
    // 2^e > largest; a bound below 1 is not used, so that constants near a small value fit as well
    let e = if largest < 1.0 { 0 } else { largest.log2().floor() as u32 + 1 };
    e + 1 + headroom
}

/// The formats of all nodes.
pub(crate) struct Formats {
    base: Format,
    per_layer: BTreeMap<String, Format>,
    /// Bits wanted above the calibrated ranges; explicit numbers may leave fewer.
    pub headroom: u32,
    /// The same of inputs, whose owners keep to it.
    pub inputs: u32,
    /// [`Precision::keep_ring`].
    pub keep_ring: bool,
    /// Whether maxima are taken of products as they are, and truncated then: fewer truncations, of wider comparisons.
    /// A truncation keeps the order of numbers, so the result is the same.
    pub late: bool,
    /// Whether training chooses in as few bits as it compares ([`super::narrow`]).
    pub narrow: bool,
    /// Whether normalisations are made of their parts. In training ranges promise nothing, and gradients read the parts. A guard
    /// watches them: the mean of squares is what leaves its range first.
    pub parts: bool,
}

impl Formats {
    /// What was chosen, for the user.
    pub fn note(&self) -> String {
        let Format { k, f, g, .. } = self.base;
        let compared = match self.narrow {
            true => format!("and what they choose in {}", self.base.narrow().0),
            false => format!("in {}", k - g),
        };
        if self.keep_ring {
            return format!("everything in {k} ring bits with {f} fraction bits; comparisons {compared}");
        }
        format!("linear layers in {k} ring bits; {f} fraction bits for activations, {g} for weights")
    }

    pub fn of(&self, layer: &str) -> Format {
        let covers = |name: &&String| {
            layer.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let exception = self.per_layer.keys().filter(covers).max_by_key(|n| n.len());
        exception.map_or(self.base, |name| self.per_layer[name])
    }

    /// The numbers of training: one ring for all.
    pub fn keeping_ring(p: &Precision) -> Result<Formats, CheckReport> {
        let f = p.fraction.unwrap_or(TRAINING_FRACTION);
        let g = p.weight_fraction.unwrap_or(f);
        let base = valid(Format { k: p.bits.unwrap_or(UNCALIBRATED_BITS), f, g, watched: 0 }, "")?;
        if let Some(layer) = p.per_layer.keys().next() {
            return Err(CheckReport::one(Problem {
                op: "precision".into(),
                layer: layer.clone(),
                source: String::new(),
                what: "has numbers of its own, but training keeps one ring for all".into(),
                remedy: "leave exceptions for layers out".into(),
            }));
        }
        Ok(Formats {
            base,
            per_layer: BTreeMap::new(),
            headroom: p.headroom_bits,
            inputs: p.headroom_bits,
            keep_ring: true,
            narrow: false,
            late: false,
            parts: true,
        })
    }

    /// Choose the formats; `spare` is added to automatically chosen ring bits (at most 64 in all), what `room` asks for is
    /// kept free at the expense of fraction bits too.
    pub fn choose(
        graph: &Graph,
        p: &Precision,
        room: Room,
        spare: u32,
        notes: &mut Vec<String>,
    ) -> Result<Formats, CheckReport> {
        let compared = compared(graph);
        let auto = p.bits.is_none() || p.fraction.is_none();
        let headroom = if auto { room.headroom } else { 0 };
        let needs: Vec<u32> = graph
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, n)| is_value(n))
            .filter_map(|(id, n)| Some(range_bits(n.range?, headroom) + compared[id] as u32))
            .collect();
        if needs.is_empty() && auto {
            notes.push(
                "no calibrated ranges: numbers were chosen without knowing how large activations get; give example inputs"
                    .into(),
            );
        }
        let need = needs.iter().max().copied();
        let watched = if auto { room.products } else { 0 };
        let more = if auto { room.gates + room.products } else { 0 };
        let base = Format { watched, ..base_format(p, need.map(|n| n + more), spare)? };
        let (headroom, per_layer) = (room.headroom, BTreeMap::new());
        let mut formats = Formats {
            base,
            per_layer,
            headroom,
            inputs: p.headroom_bits,
            keep_ring: false,
            narrow: false,
            late: false,
            parts: false,
        };
        for (name, exception) in &p.per_layer {
            let k = exception.bits.unwrap_or(base.k);
            let f = exception.fraction.unwrap_or(base.f);
            let g = p.weight_fraction.unwrap_or(f);
            formats.per_layer.insert(name.clone(), valid(Format { k, f, g, watched: 0 }, name)?);
        }
        formats.check(graph, &compared)?;
        Ok(formats)
    }

    /// Every calibrated range must fit into what its layer's truncation leaves.
    fn check(&self, graph: &Graph, compared: &[bool]) -> Result<(), CheckReport> {
        let mut problems = Vec::new();
        for (id, node) in graph.nodes.iter().enumerate().filter(|(_, n)| is_value(n)) {
            let (Some(range), format) = (node.range, self.of(&node.layer)) else { continue };
            let need = format.f + format.g + range_bits(range, 0) + compared[id] as u32;
            if need <= format.k {
                continue;
            }
            let Format { k, f, .. } = format;
            problems.push(Problem {
                op: op_name(&node.op),
                layer: node.layer.clone(),
                source: node.source.clone(),
                what: format!(
                    "values in [{:.4}, {:.4}] do not fit into {k} ring bits with {f} fraction bits; they need {need}",
                    range[0], range[1]
                ),
                remedy: remedy(need, k, f),
            });
        }
        if problems.is_empty() { Ok(()) } else { Err(CheckReport { problems }) }
    }
}

/// What to do about a value that needs `need` ring bits and has k, f of them for fractions.
fn remedy(need: u32, k: u32, f: u32) -> String {
    if need <= 64 {
        return format!(
            "use at least {need} bits, or at most {} fraction bits",
            f - (need - k).div_ceil(2).min(f)
        );
    }
    let left = f - (need - 64).div_ceil(2).min(f);
    if left >= LEAST_FRACTION {
        return format!("use at most {left} fraction bits with 64 ring bits");
    }
    "numbers this large are no activations of a trained model: look for weights that were not loaded, for a constant such as \
     -1e9 or -inf that reaches something else than a softmax, or scale the values down"
        .into()
}

fn base_format(p: &Precision, need: Option<u32>, spare: u32) -> Result<Format, CheckReport> {
    let weight = |f: u32| p.weight_fraction.unwrap_or(f);
    let total = |f: u32| f + weight(f) + need.unwrap_or(0);
    let most = p.bits.unwrap_or(64);
    let f = p.fraction.unwrap_or_else(|| {
        (LEAST_FRACTION..=AUTO_FRACTION).rev().find(|&f| total(f) <= most).unwrap_or(LEAST_FRACTION)
    });
    let k = p.bits.unwrap_or_else(|| match need {
        Some(_) => (total(f) + spare).clamp(8, 64),
        None => UNCALIBRATED_BITS,
    });
    valid(Format { k, f, g: weight(f), watched: 0 }, "")
}

fn valid(format: Format, layer: &str) -> Result<Format, CheckReport> {
    let Format { k, f, g, .. } = format;
    if (8..=64).contains(&k) && f >= 1 && g >= 1 && f + g + 2 <= k {
        return Ok(format);
    }
    Err(CheckReport::one(Problem {
        op: "precision".into(),
        layer: layer.into(),
        source: String::new(),
        what: format!("{k} ring bits with {f} fraction bits for activations and {g} for weights"),
        remedy: "ring bits are 8 to 64, and both fractions together must leave at least two bits".into(),
    }))
}

/// Nodes that hold private values with a range of their own.
fn is_value(node: &GraphNode) -> bool {
    !matches!(node.op, GraphOp::Parameter { .. } | GraphOp::Argmax { .. })
}

/// Values whose differences are compared: these need a bit more.
pub(crate) fn compared(graph: &Graph) -> Vec<bool> {
    let mut compared = vec![false; graph.nodes.len()];
    for node in &graph.nodes {
        let softmax = matches!(node.op, GraphOp::Smooth { function } if function.dim().is_some());
        if softmax || matches!(node.op, GraphOp::MaxPool2d { .. } | GraphOp::Argmax { .. }) {
            compared[node.inputs[0]] = true;
        }
    }
    compared
}

/// An operation's name in messages: its JSON kind.
pub(crate) fn op_name(op: &GraphOp) -> String {
    match op {
        GraphOp::Unsupported { name } => name.clone(),
        GraphOp::Smooth { function } => function.name().into(),
        _ => {
            let json = serde_json::to_value(op).ok();
            let kind = json.as_ref().and_then(|v| v.get("kind")).and_then(|v| v.as_str());
            kind.unwrap_or("operation").to_owned()
        }
    }
}
