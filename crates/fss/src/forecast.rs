//! Every opening that a plan leads to under `fss`, known before anything runs.
//!
//! The list follows from the plan alone: it is what the evaluators will open, in their order (a test compares the
//! two). *Masked*: the mask is uniform in the ring, fresh, and known to no evaluator, so the opened value is uniform
//! whatever the secret is. *Revealed*: the receiver learns the value itself.

use crate::gate::{At, Kind, kind};
use privet_family::{Dealing, Facts, Forecast, Parameter, PlannedOpening, Values};
use privet_masked::planned_openings;
use privet_plan::cost::Security;
use privet_plan::{Plan, Refusal, Target};

/// The family, as estimates and audits see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fss;

/// Sessions of keys that may be opened for one that is kept.
pub const MAX_CHECKS: u64 = 255;

/// Sessions that the parties open, at least, for each session of the dealer's keys that they accept (`docs/dealer-checks.md`). Every
/// party refuses keys that passed fewer checks.
pub const MIN_CHECKS: Parameter = Parameter {
    name: "min_checks",
    about: "sessions of the dealer's keys that are opened for each one that is used: 0 demands no check",
    values: Values::Number { default: 0, range: 0..=MAX_CHECKS },
    advice: "1 finds half of all single cheats, 9 find 90 %",
};

/// What holds for all plans.
pub const FACTS: Facts = Facts {
    name: "fss",
    about: "two parties and a dealer",
    collusion: "no party and not the dealer learns anything alone; any two of the three together learn everything",
    parties: 2..=2,
    dealing: Dealing::Always,
    uses_up: Some("keys"),
    streams: true,
    withstands: &[Security::SemiHonest],
    rules: &[],
    parameters: &[MIN_CHECKS],
};

/// Every checked plan can be run.
impl Target for Fss {
    fn refusals(&self, _plan: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

impl Forecast for Fss {
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
        "Masked values are uniform whatever the data are. Both parties also know the plan itself: shapes, layer\n\
         types and fixed-point formats. The dealer sees no message of a run."
    }
}
