//! Every opening that a plan leads to under `semi2k`, and every node that it refuses, known before anything runs.
//!
//! The list follows from the plan alone: it is what the parties will open, in their order (a test compares the two). *Masked*: the
//! mask has a uniform, fresh summand of every party, so the opened value is uniform for any n - 1 of them. *Revealed*: the receiver
//! learns the value itself.

use crate::gate::{At, Kind, kind};
use crate::gates::lookup::too_large;
use crate::joint::cost::{LEAST_BYTES, LEAST_WORK};
use crate::joint::too_wide;
use privet_family::{Dealing, Facts, Forecast, Parameter, Parameters, PlannedOpening, Products, Values};
use privet_masked::planned_openings;
use privet_ot::Source;
use privet_plan::cost::Security;
use privet_plan::ir::Op;
use privet_plan::{Plan, Refusal, Target, ops, shown};
use privet_ring::Ring;

/// The family among so many parties, as estimates and audits see it.
#[derive(Clone, Copy, Debug)]
pub struct Semi2k {
    /// How many parties compute.
    pub parties: usize,
    /// A helper prepares; otherwise the parties do, among themselves.
    pub helper: bool,
    /// How they make correlated transfers then; none: as suits the network.
    pub source: Option<Source>,
    /// One of them knows all weights.
    pub owned: bool,
    /// Records that they prepare together.
    pub records: usize,
}

/// Records that are prepared together, where nobody says how many.
const RECORDS: usize = 8;

/// Who prepares records.
pub const HELPER: Parameter = Parameter {
    name: "helper",
    about: "who prepares records: none but the parties among themselves, or a dealer, who then knows all masks",
    values: Values::Words(&["none", "dealer"]),
    advice: "a dealer prepares fast, and together with any one party it learns everything",
};

/// How the parties make correlated transfers where they prepare among themselves.
pub const TRANSFERS: Parameter = Parameter {
    name: "transfers",
    about: "how the parties make correlated transfers: softspoken takes the least work, ferret sends 40 times less for them; auto \
            measures the way between them and takes ferret from 10 ms on",
    values: Values::Words(&["auto", "softspoken", "ferret"]),
    advice: "softspoken suits links above about 1 Gbit/s, ferret suits slower ones; auto sees delay, and not bandwidth",
};

/// What a deployment may set, and the source that it is then.
pub(crate) const TRANSFER_SOURCES: [(&str, Source); 2] =
    [("transfers = \"softspoken\"", LEAST_WORK), ("transfers = \"ferret\"", LEAST_BYTES)];

/// What a deployment chose with [`TRANSFERS`], if it did. AGREEMENT.
pub fn source(chosen: &Parameters) -> Option<Source> {
    let word = chosen.get(&TRANSFERS) as usize;
    word.checked_sub(1).map(|source| TRANSFER_SOURCES[source].1)
}

/// What holds for all plans.
pub const FACTS: Facts = Facts {
    name: "semi2k",
    about: "two to eight parties, of which all but one may collude",
    collusion: "all parties but one together learn nothing of the others' data; where a dealer prepares (`helper`), it and any one \
                party together learn everything",
    parties: 2..=8,
    dealing: Dealing::Chosen(&HELPER, "dealer"),
    uses_up: Some("records"),
    streams: false,
    withstands: &[Security::SemiHonest],
    rules: &[],
    parameters: &[HELPER, TRANSFERS],
};

impl Target for Semi2k {
    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        let inexact = |id| {
            let problem = "an output shows a truncation with `one_ulp`, whose last units depend on how masks were drawn";
            let remedy = "compile the model again with this version, which rounds outputs to the nearest";
            Refusal::of(plan, id, problem, remedy)
        };
        let mut all: Vec<Refusal> = shown::inexact(plan).into_iter().map(inexact).collect();
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Some(problem) = self.missing(&node.op) {
                let remedy = "compile the model again for semi2k, or for another protocol";
                all.push(Refusal::of(plan, id, problem, remedy));
            }
            let products = Products::of(plan, node).filter(|_| !self.helper);
            if let Some(problem) = products.and_then(|what| too_wide(what, Ring::new(node.ty.bits))) {
                all.push(Refusal::of(
                    plan,
                    id,
                    problem,
                    "or let a dealer prepare (`helper`), or take another protocol",
                ));
            }
        }
        all
    }
}

impl Semi2k {
    /// Of so many parties; a helper prepares.
    pub fn helped(parties: usize) -> Semi2k {
        Semi2k { parties, helper: true, source: None, owned: false, records: RECORDS }
    }

    /// Of so many parties, which prepare among themselves as suits the network.
    pub fn alone(parties: usize) -> Semi2k {
        Semi2k { helper: false, ..Semi2k::helped(parties) }
    }

    /// Why an operation cannot be prepared, if it cannot.
    pub(crate) fn missing(&self, op: &Op) -> Option<String> {
        let helped = |what: &str| {
            (!self.helper)
                .then(|| format!("protocol semi2k has {what} only where a dealer prepares (`helper`)"))
        };
        match op {
            Op::Exponential { .. } => helped("an exponential"),
            Op::Waves { .. } => helped("a sum of waves"),
            Op::Lookup { tables } => too_large(tables.first().map_or(0, Vec::len)),
            Op::Piecewise { pieces, .. } => too_large(pieces.len()),
            ops!(source)
            | ops!(local)
            | ops!(bilinear)
            | ops!(public)
            | ops!(rounding)
            | ops!(comparison) => None,
        }
    }
}

impl Forecast for Semi2k {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening> {
        planned_openings(plan, |id, list| {
            if let Kind::Gate(gate) = kind(&plan.nodes[id].op) {
                gate.openings(&At { plan, id }, list);
            }
        })
    }

    fn remark(&self) -> &'static str {
        "Masked values are uniform whatever the data are, also for all parties but one together. All parties know the plan\n\
         itself: shapes, layer types and fixed-point formats. If all parties collude, they know everything."
    }
}
