//! Several plans over the same states, as one file with one hash: what the parties of a deployment run.

use crate::check::{PlanError, check_name, whole};
use crate::codec::parse;
use crate::ir::{Node, Op, Plan, Type};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format version of [`Program`]; parties refuse others.
pub const PROGRAM_VERSION: u32 = 1;
/// Most plans of a program.
pub const MAX_PLANS: usize = 64;
/// Longest name of a plan in a program, in bytes.
pub const MAX_PLAN_NAME: usize = 64;
/// The plan of a file that holds a plan and no program.
pub const ONLY_PLAN: &str = "run";

const HASH_CONTEXT: &[u8] = b"privet program v1\0";

/// A list of plans that read and replace the same states (training: `train`, `evaluate`, `reveal`).
///
/// The file of a bare [`Plan`] is a program with one plan named [`ONLY_PLAN`], and has the plan's hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// [`PROGRAM_VERSION`].
    pub version: u32,
    /// The model's name.
    pub name: String,
    /// The plans, each under a name of its own.
    pub plans: Vec<NamedPlan>,
}

/// A plan of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPlan {
    /// What requests call it: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The plan.
    pub plan: Plan,
}

/// A state that plans of a program read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateType {
    /// Its name.
    pub name: String,
    /// The role that shares its first value.
    pub owner: String,
    /// Its type.
    pub ty: Type,
}

/// Enough of a file to tell a program from a plan.
#[derive(Deserialize)]
struct Glance {
    #[serde(default)]
    plans: Option<IgnoredAny>,
}

impl From<Plan> for Program {
    fn from(plan: Plan) -> Program {
        let plans = vec![NamedPlan { name: ONLY_PLAN.into(), plan }];
        Program { version: PROGRAM_VERSION, name: plans[0].plan.name.clone(), plans }
    }
}

impl Program {
    /// Read and check a program, or a plan.
    pub fn from_json(bytes: &[u8]) -> Result<Program, PlanError> {
        let glance: Glance = parse(bytes)?;
        if glance.plans.is_none() {
            return Ok(Plan::from_json(bytes)?.into());
        }
        let program: Program = parse(bytes)?;
        program.check()?;
        Ok(program)
    }

    /// Canonical JSON; that of the plan where the program is one plan and no more.
    pub fn to_json(&self) -> Vec<u8> {
        match self.bare() {
            Some(plan) => plan.to_json(),
            None => serde_json::to_vec(self).expect("a program has only string keys and finite lengths"),
        }
    }

    /// What parties compare before they talk: BLAKE3 of a context string and [`Program::to_json`]; the plan's hash
    /// ([`Plan::hash`]) where the program is one plan and no more.
    pub fn hash(&self) -> [u8; 32] {
        if let Some(plan) = self.bare() {
            return plan.hash();
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(HASH_CONTEXT);
        hasher.update(&self.to_json());
        *hasher.finalize().as_bytes()
    }

    /// The plan, where the program came from one.
    pub fn bare(&self) -> Option<&Plan> {
        match &self.plans[..] {
            [only] if only.name == ONLY_PLAN && only.plan.name == self.name => Some(&only.plan),
            _ => None,
        }
    }

    /// The plan of that name.
    pub fn plan(&self, name: &str) -> Option<&Plan> {
        self.plans.iter().find(|p| p.name == name).map(|p| &p.plan)
    }

    /// Every state that a plan reads, once, by name.
    pub fn states(&self) -> BTreeMap<String, StateType> {
        let nodes = self.plans.iter().flat_map(|p| &p.plan.nodes);
        nodes.filter_map(state_of).map(|state| (state.name.clone(), state)).collect()
    }

    /// Check every plan, that names differ, and that plans agree about a state: its type and its owner.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.version != PROGRAM_VERSION {
            return Err(PlanError::Version { found: self.version, expected: PROGRAM_VERSION });
        }
        whole("name", check_name(&self.name, true))?;
        if !(1..=MAX_PLANS).contains(&self.plans.len()) {
            let problem = format!("{} plans, but a program has 1 to {MAX_PLANS}", self.plans.len());
            return Err(PlanError::Whole(problem));
        }
        let mut states: BTreeMap<String, (StateType, &str)> = BTreeMap::new();
        for (i, NamedPlan { name, plan }) in self.plans.iter().enumerate() {
            whole("name of a plan", check_plan_name(name))?;
            if self.plans[..i].iter().any(|p| p.name == *name) {
                return Err(PlanError::Whole(format!("two plans are named {name}")));
            }
            plan.check().map_err(|e| PlanError::InPlan { plan: name.clone(), problem: Box::new(e) })?;
            for state in plan.nodes.iter().filter_map(state_of) {
                if let Some((earlier, first)) = states.get(&state.name) {
                    if *earlier != state {
                        return Err(PlanError::Whole(format!(
                            "state {} has another type or owner in plan {name} than in plan {first}",
                            state.name
                        )));
                    }
                } else {
                    states.insert(state.name.clone(), (state, name));
                }
            }
        }
        Ok(())
    }
}

fn state_of(node: &Node) -> Option<StateType> {
    let Op::State { name, owner } = &node.op else { return None };
    Some(StateType { name: name.clone(), owner: owner.clone(), ty: node.ty.clone() })
}

fn check_plan_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match name.len() {
        1..=MAX_PLAN_NAME if name.chars().all(plain) => Ok(()),
        _ => Err(format!("use letters, digits, `-`, `_` and `.`, at most {MAX_PLAN_NAME}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Output, PLAN_VERSION, Update};

    fn state(name: &str, owner: &str, bits: u32) -> Node {
        let op = Op::State { name: name.into(), owner: owner.into() };
        Node {
            op,
            inputs: vec![],
            ty: Type { shape: vec![2], bits, frac: 4 },
            layer: String::new(),
            form: None,
        }
    }

    fn plan(name: &str, nodes: Vec<Node>) -> Plan {
        let outputs = vec![Output { value: 0, name: "y".into(), to: "receiver".into() }];
        let updates = vec![Update { state: 0, value: 0 }];
        Plan { version: PLAN_VERSION, name: name.into(), batch: 1, nodes, outputs, updates }
    }

    fn program() -> Program {
        let named = |name: &str, nodes| NamedPlan { name: name.into(), plan: plan("net", nodes) };
        let plans = vec![
            named("train", vec![state("w", "model_owner", 32), state("b", "model_owner", 16)]),
            named("reveal", vec![state("w", "model_owner", 32)]),
        ];
        Program { version: PROGRAM_VERSION, name: "net".into(), plans }
    }

    #[test]
    fn programs_read_back_and_name_their_states() {
        let program = program();
        assert_eq!(Program::from_json(&program.to_json()), Ok(program.clone()));
        assert_eq!(program.states().keys().collect::<Vec<_>>(), ["b", "w"]);
        assert_eq!(program.states()["b"].ty.bits, 16);
        assert_eq!(program.plan("reveal").map(|p| p.nodes.len()), Some(1));
        assert!(program.plan("run").is_none() && program.bare().is_none());
    }

    #[test]
    fn the_hash_binds_everything_and_a_bare_plan_keeps_its_own() {
        let plan = plan("net", vec![state("w", "model_owner", 32)]);
        let bare = Program::from_json(&plan.to_json()).unwrap();
        assert_eq!((bare.hash(), bare.to_json()), (plan.hash(), plan.to_json()));
        assert_eq!(bare.plan(ONLY_PLAN), Some(&plan));
        let hash = program().hash();
        let mut changed = [program(), program(), program()];
        changed[0].plans[1].name = "show".into();
        changed[1].plans.swap(0, 1);
        changed[2].plans[0].plan.batch = 2;
        assert!(changed.iter().all(|p| p.hash() != hash));
        let mut renamed = bare.clone();
        renamed.name = "other".into();
        assert_ne!(renamed.hash(), bare.hash(), "a name that the plan does not have is bound as well");
    }

    #[test]
    fn bad_programs_are_refused_by_name() {
        let refused = |change: &dyn Fn(&mut Program), says: &str| {
            let mut program = program();
            change(&mut program);
            let message = Program::from_json(&serde_json::to_vec(&program).unwrap()).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        };
        refused(&|p| p.version = 2, "version 2");
        refused(&|p| p.plans.clear(), "0 plans");
        refused(&|p| p.plans = vec![p.plans[0].clone(); 65], "65 plans");
        refused(&|p| p.plans[1].name = "train".into(), "two plans are named train");
        for name in ["", "a b", "é", "../x", &"x".repeat(65)] {
            refused(&|p| p.plans[0].name = name.into(), "name of a plan");
        }
        refused(&|p| p.plans[1].plan.nodes[0].ty.bits = 33, "state w has another type");
        refused(&|p| p.plans[1].plan.nodes[0].ty.frac = 5, "state w has another type");
        refused(&|p| p.plans[1].plan.nodes[0] = state("w", "receiver", 32), "or owner in plan reveal");
        refused(&|p| p.plans[1].plan.batch = 0, "plan reveal: batch");
        refused(&|p| p.plans[0].plan.nodes[1] = state("w", "model_owner", 16), "plan train: node 1");
    }
}
