//! Everything that becomes known to anybody in a run, and every node that is refused, from the plan alone.
//!
//! Masked operands of products are opened to both sides, and listed node by node in the order of the run (a test compares the two). Masked
//! choices, entries and operands of layers go to one side alone, and are not listed (`docs/heot.md`, section 3). What is left are the shares that owners hand
//! out, and the outputs.

use crate::gate::{Kind, kind};
use crate::material::{Need, needs_of};
use crate::refusals;
use privet_family::{
    Dealing, Facts, Forecast, Holder, OpeningList, Parameter, Parameters, PlannedOpening, RoleRule, Values,
    When,
};
use privet_he::torus::Link;
use privet_net::DISTANT;
use privet_plan::cost::Security;
use privet_plan::{Plan, Refusal, Target, shown};

/// The family, as estimates and audits see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heot {
    /// The way between both sides, which packings are for; none: as they find it.
    pub link: Option<Link>,
    /// Runs that a session begins with, which packings are for; none: [`PLANNED_RUNS`].
    pub runs: Option<usize>,
}

/// Runs that an estimate's packings are for, where nobody says how many a session begins with.
pub const PLANNED_RUNS: usize = 10;

/// Runs of a client that packings are chosen for. Each takes a set of hints of its own: a server holds so many sets of a plan for each
/// kind of link, and earlier ones whose sessions are still open.
pub const PACKED_FOR: [usize; 3] = [1, 10, 100];

/// Which of [`PACKED_FOR`] a session is given that begins with so many runs: the next one by their ratio.
pub fn packed_for(runs: usize) -> usize {
    let [one, some, many] = PACKED_FOR;
    match runs {
        0..=3 => one,
        4..=31 => some,
        _ => many,
    }
}

/// What packings are for.
pub const PACKING: Parameter = Parameter {
    name: "packing",
    about: "what packings of layers with weights are for: near takes the least work, distant sends the least; auto measures the way \
            between both sides and takes distant from 10 ms on",
    values: Values::Words(&["auto", "near", "distant"]),
    advice: "distant suits links below about 1 Gbit/s; auto sees delay, and not bandwidth",
};

/// What a deployment may set, and the link that it is for.
pub(crate) const PACKINGS: [(&str, Link); 2] =
    [("packing = \"near\"", Link::Near), ("packing = \"distant\"", Link::Distant)];

/// What a deployment chose with [`PACKING`], if it did. AGREEMENT.
pub fn link(chosen: &Parameters) -> Option<Link> {
    let word = chosen.get(&PACKING) as usize;
    word.checked_sub(1).map(|link| PACKINGS[link].1)
}

/// The link that a round trip of so many seconds is taken for.
pub fn suiting(round_trip: f64) -> Link {
    if round_trip < DISTANT { Link::Near } else { Link::Distant }
}

/// Who has the weights.
pub(crate) const RULE: RoleRule = RoleRule {
    role: "model_owner",
    holder: Holder::Party(0),
    because: "the server, party 0, computes with the weights in clear, and nobody else may know them",
};

/// Whether a role is that of the weights' owner.
pub(crate) fn owns_weights(role: &str) -> bool {
    RULE.is_about(&role.replace('-', "_"))
}

/// What holds for all plans.
pub const FACTS: Facts = Facts {
    name: "heot",
    about: "a server that has the weights, and a client",
    collusion: "neither party learns anything alone; server and client together learn everything, and whoever sees outputs learns \
                what they tell of the weights",
    parties: 2..=2,
    dealing: Dealing::Never,
    uses_up: Some("records"),
    streams: false,
    withstands: &[Security::SemiHonest],
    rules: &[RULE],
    parameters: &[PACKING],
};

impl Target for Heot {
    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        let inexact = |id| {
            let problem = "an output shows a truncation with `one_ulp`, whose last unit depends on how shares were drawn";
            let remedy = "compile the model again with this version, which rounds outputs to the nearest";
            Refusal::of(plan, id, problem, remedy)
        };
        let mut all: Vec<Refusal> = shown::inexact(plan).into_iter().map(inexact).collect();
        all.extend(refusals(plan));
        for (id, node) in plan.nodes.iter().enumerate() {
            let Kind::Weight { name, owner } = kind(&node.op) else { continue };
            if !owns_weights(owner) {
                let problem =
                    format!("weight `{name}` is of {owner}, and the server has all weights in clear");
                all.push(Refusal::of(
                    plan,
                    id,
                    problem,
                    "let the model owner have it, or choose another protocol",
                ));
            }
        }
        all
    }
}

impl Forecast for Heot {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening> {
        let mut list = OpeningList::default();
        for (id, node) in plan.nodes.iter().enumerate() {
            if let Kind::Input { name, owner } = kind(&node.op) {
                list.value(id, node, format!("shares of input `{name}` of {owner}"), When::Run);
            }
            for (what, elements, bits) in needs_of(plan, id).iter().filter_map(Need::opens) {
                list.masked(id, node, what, elements, bits, When::Run);
            }
        }
        list.outputs(plan);
        list.finish()
    }

    fn remark(&self) -> &'static str {
        "The server has the weights in clear, and gives them to nobody. Products of two shared values open both\n\
         operands under masks that serve once. Shares and messages are uniform whatever the data are; hints\n\
         at weights look uniform to whoever cannot break ring-LWE. Both parties also know the plan itself: shapes, layer types\n\
         and fixed-point formats. Outputs tell of the weights what they tell: who asks often learns much."
    }
}
