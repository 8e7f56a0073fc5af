//! What `clear` says of plans.

use privet_family::{Class, Dealing, Facts, Forecast, PlannedOpening, When};
use privet_plan::cost::{Cost, Offline, Operation, PerParty, Security};
use privet_plan::ir::{Op, Type};
use privet_plan::{Plan, Refusal, Target};
use privet_ring::Ring;

pub(super) const FACTS: Facts = Facts {
    name: "clear",
    about: "for tests alone: everybody learns everything",
    parties: 2..=5,
    collusion: "every party learns everything alone",
    dealing: Dealing::Never,
    uses_up: Some("records"),
    streams: false,
    withstands: &[Security::SemiHonest],
    rules: &[],
    parameters: &[],
};

/// The family among so many parties.
pub(super) struct Prices {
    pub parties: usize,
}

/// Bytes of a seed and of the name of a set of records.
const WORD: u64 = 16;

impl Prices {
    fn others(&self) -> u64 {
        self.parties as u64 - 1
    }
}

fn bytes(ty: &Type) -> u64 {
    Ring::new(ty.bits).packed_bytes(ty.len()) as u64
}

impl privet_plan::Prices for Prices {
    fn protocol(&self) -> &'static str {
        FACTS.name
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    /// What is shared is opened in the run; everything else is computed by each party alone.
    fn operation(&self, operation: &Operation<'_>) -> Cost {
        match operation.op {
            Op::Input { .. } | Op::Weight { .. } | Op::State { .. } => {
                let each = bytes(operation.result);
                let client_bytes = each * self.parties as u64;
                Cost { client_bytes, wire_bytes: PerParty::alike(each * self.others()), ..Cost::default() }
            }
            _ => Cost::default(),
        }
    }

    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: bytes(ty), ..Cost::default() }
    }

    fn run(&self, _: &Plan) -> Cost {
        let wire_bytes = WORD * self.others();
        let key_bytes = PerParty::alike(WORD * self.parties as u64);
        let offline = Offline { wire_bytes, rounds: 1, ..Offline::default() };
        Cost { wire_bytes: PerParty::alike(wire_bytes), rounds: 2, key_bytes, offline, ..Cost::default() }
    }
}

impl Target for Prices {
    fn refusals(&self, _: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

impl Forecast for Prices {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening> {
        let mut list = Vec::new();
        for (id, node) in plan.nodes.iter().enumerate() {
            let name = match &node.op {
                Op::Input { name, .. } | Op::Weight { name, .. } | Op::State { name, .. } => name,
                _ => continue,
            };
            let (elements, what) = (node.ty.len() as u64, format!("`{name}`"));
            list.push(PlannedOpening {
                step: list.len() + 1,
                node: Some(id),
                layer: node.layer.clone(),
                what,
                elements,
                bits: elements * u64::from(node.ty.bits),
                when: When::Run,
                class: Class::Revealed { to: "every party".into() },
            });
        }
        list
    }

    fn remark(&self) -> &'static str {
        "Every party learns every value: this family is for tests."
    }
}
