//! A small training for tests: linear regression with momentum, whose rows, labels and model belong to three clients.

use super::{Family, Nodes, named, numbers};
use privet_net::NetworkProfile;
use privet_party::config::Loaded;
use privet_party::session::client::{Client, ClientError, Publics};
use privet_party::session::control::{At, Id};
use privet_party::session::links::Links;
use privet_party::session::outcome::Outcome;
use privet_party::tensors::Tensors;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type, Update};
use privet_plan::program::{NamedPlan, PROGRAM_VERSION};
use privet_plan::{
    FloatTensor, NoCoins, Program, decode_outputs, encode_inputs, encode_publics, encode_states,
    interpret_step,
};
use privet_ring::Tensor;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Parties that were killed are up again before this, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who is who: rows and results are alice's, labels bob's, the model carol's.
pub const ROLES: [&str; 8] = [
    "--data-owner",
    "client:alice",
    "--model-owner",
    "client:carol",
    "--role",
    "label_owner=client:bob",
    "--receiver",
    "client:alice",
];

struct Builder(Vec<Node>);

impl Builder {
    fn add(&mut self, op: Op, inputs: &[usize], shape: &[usize], frac: u32) -> usize {
        let ty = Type { shape: shape.to_vec(), bits: 64, frac };
        self.0.push(Node { op, inputs: inputs.to_vec(), ty, layer: "fit".into(), form: None });
        self.0.len() - 1
    }

    fn state(&mut self, name: &str, shape: &[usize]) -> usize {
        self.add(Op::State { name: name.into(), owner: "model_owner".into() }, &[], shape, 12)
    }

    fn input(&mut self, name: &str, owner: &str, shape: &[usize]) -> usize {
        self.add(Op::Input { name: name.into(), owner: owner.into(), limit: 8.0 }, &[], shape, 12)
    }

    /// x times `value / 2^12`, with 24 fraction bits.
    fn times(&mut self, x: usize, value: i64) -> usize {
        let shape = self.0[x].ty.shape.clone();
        let product = self.add(Op::MulConst { value }, &[x], &shape, 12);
        self.add(Op::Rescale, &[product], &shape, 24)
    }

    /// From 24 fraction bits to 12, in the same ring.
    fn truncate(&mut self, x: usize) -> usize {
        let shape = self.0[x].ty.shape.clone();
        self.add(Op::Truncate { shift: 12, rounding: Rounding::Floor }, &[x], &shape, 12)
    }

    fn plan(self, outputs: &[(usize, &str, &str)], updates: &[(usize, usize)]) -> Plan {
        let output =
            |&(value, name, to): &(usize, &str, &str)| Output { value, name: name.into(), to: to.into() };
        let update = |&(state, value): &(usize, usize)| Update { state, value };
        Plan {
            version: PLAN_VERSION,
            name: "regression".into(),
            batch: 4,
            nodes: self.0,
            outputs: outputs.iter().map(output).collect(),
            updates: updates.iter().map(update).collect(),
        }
    }
}

/// w and m become `w - rate (0.5 m + g)` and `0.5 m + g`, with g the gradient of the squared error. The receiver learns the
/// sum of the errors.
fn train() -> Plan {
    let mut b = Builder(Vec::new());
    let (x, y) = (b.input("x", "data_owner", &[4, 3]), b.input("y", "label_owner", &[4, 2]));
    let (w, m) = (b.state("w", &[2, 3]), b.state("m", &[2, 3]));
    let rate = b.add(Op::Public { name: "rate".into(), limit: 1.0 }, &[], &[], 12);
    let z = b.add(Op::Linear, &[x, w], &[4, 2], 24);
    let scaled = b.times(y, 4096);
    let e = b.add(Op::Sub, &[z, scaled], &[4, 2], 24);
    let e = b.truncate(e);
    let turned = b.add(Op::Permute { dims: vec![1, 0] }, &[e], &[2, 4], 12);
    let g = b.add(Op::MatMul, &[turned, x], &[2, 3], 24);
    let half = b.times(m, 2048);
    let m_next = b.add(Op::Add, &[half, g], &[2, 3], 24);
    let m_next = b.truncate(m_next);
    let step = b.add(Op::Scale, &[m_next, rate], &[2, 3], 24);
    let step = b.truncate(step);
    let w_next = b.add(Op::Sub, &[w, step], &[2, 3], 12);
    let sum = b.add(Op::Sum { dims: vec![0] }, &[e], &[2], 12);
    b.plan(&[(sum, "error", "receiver")], &[(w, w_next), (m, m_next)])
}

fn evaluate() -> Plan {
    let mut b = Builder(Vec::new());
    let (x, w) = (b.input("x", "data_owner", &[4, 3]), b.state("w", &[2, 3]));
    let z = b.add(Op::Linear, &[x, w], &[4, 2], 24);
    let z = b.truncate(z);
    b.plan(&[(z, "prediction", "receiver")], &[])
}

fn reveal() -> Plan {
    let mut b = Builder(Vec::new());
    let (w, m) = (b.state("w", &[2, 3]), b.state("m", &[2, 3]));
    b.plan(&[(w, "w", "model_owner"), (m, "m", "model_owner")], &[])
}

/// The three plans.
pub fn program() -> Program {
    let plans = [("train", train()), ("evaluate", evaluate()), ("reveal", reveal())];
    let plans = plans.map(|(name, plan)| NamedPlan { name: name.into(), plan });
    let program = Program { version: PROGRAM_VERSION, name: "regression".into(), plans: plans.into() };
    program.check().unwrap();
    program
}

pub fn first_states() -> Tensors {
    let small = |t: FloatTensor| FloatTensor { data: t.data.iter().map(|v| v / 8.0).collect(), ..t };
    let mut states = named("w", small(numbers(&[2, 3], 31)));
    states.insert("m".into(), FloatTensor { shape: vec![2, 3], data: vec![0.0; 6] });
    states
}

/// Rows and labels of the batch of a step.
pub fn batch(step: u64) -> (Tensors, Tensors) {
    let small = |shape: &[usize], salt: usize| {
        let t = numbers(shape, salt);
        FloatTensor { data: t.data.iter().map(|v| v / 4.0).collect(), ..t }
    };
    let salt = 2 * step as usize;
    (named("x", small(&[4, 3], salt + 50)), named("y", small(&[4, 2], salt + 51)))
}

pub fn rate(value: f64) -> Publics {
    Publics::from([("rate".into(), value)])
}

/// What the plans mean: the states in the clear, step by step, by the interpreter.
pub struct Truth {
    program: Program,
    states: BTreeMap<String, Tensor>,
}

impl Truth {
    pub fn begin() -> Truth {
        let program = program();
        let states = encode_states(program.plan("train").unwrap(), None, &first_states()).unwrap();
        Truth { program, states }
    }

    /// The outputs of a run; updates replace states.
    pub fn run(&mut self, plan: &str, inputs: &Tensors, publics: &Publics) -> Tensors {
        let plan = self.program.plan(plan).unwrap();
        let mut given = encode_inputs(plan, None, inputs).unwrap();
        given.extend(encode_publics(plan, publics).unwrap());
        let (outputs, updates) = interpret_step(plan, &given, &self.states, &mut NoCoins).unwrap();
        self.states.extend(updates);
        let names = plan.outputs.iter().map(|o| o.name.clone());
        names.zip(decode_outputs(plan, &outputs)).collect()
    }

    /// The step with its own batch.
    pub fn step(&mut self, step: u64, publics: &Publics) -> Tensors {
        let (mut x, y) = batch(step);
        x.extend(y);
        self.run("train", &x, publics)
    }

    pub fn states(&mut self) -> Tensors {
        self.run("reveal", &Tensors::new(), &Publics::new())
    }
}

/// A deployment for the program, and its three clients.
pub struct School {
    pub nodes: Nodes,
    pub alice: Client,
    pub bob: Client,
    pub carol: Client,
}

pub fn client(nodes: &Nodes, name: &str) -> Client {
    client_at(&nodes.path(name).join("node.toml"))
}

/// The client of a node file.
pub fn client_at(config: &Path) -> Client {
    let loaded = Loaded::load(config).unwrap();
    let program = program();
    Client::new(Links::new(loaded, &program, NetworkProfile::LAN).unwrap(), Arc::new(program))
}

impl School {
    pub fn open(family: Family, network: &'static str) -> School {
        Self::open_with(family, network, "")
    }

    /// The same with further settings of all parties.
    pub fn open_with(family: Family, network: &'static str, settings: &str) -> School {
        let mut nodes = Nodes::of_program(family, &program(), None, network, &ROLES);
        nodes.set(settings);
        nodes.start_all();
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(|name| client(&nodes, name));
        School { nodes, alice, bob, carol }
    }

    /// Keys for runs of a plan, where it needs any, asked for by somebody who has a role in it.
    pub fn prepare(&mut self, plan: &str, runs: u64) {
        let asks = if plan == "reveal" { &mut self.carol } else { &mut self.alice };
        asks.prepare(plan, runs, 0).unwrap();
    }

    /// One step, with what alice and bob say about it; they ask at the same time.
    pub fn step_with(
        &mut self,
        (x, y): &(Tensors, Tensors),
        [a, b]: [&Publics; 2],
    ) -> [Result<Outcome, ClientError>; 2] {
        let (alice, bob) = (&mut self.alice, &mut self.bob);
        std::thread::scope(|scope| {
            let bob = scope.spawn(|| bob.step("train", y, b));
            [alice.step("train", x, a), bob.join().unwrap()]
        })
    }

    /// The step where all clients are, with its batch.
    pub fn step(&mut self, publics: &Publics) -> Result<Outcome, ClientError> {
        let at = self.alice.training().or_else(|| self.alice.join_training().ok());
        let batch = batch(at.map_or(0, |at| at.step));
        let [alice, bob] = self.step_with(&batch, [publics, publics]);
        bob.and(alice)
    }

    /// Go on after somebody was killed: resume until it works.
    #[track_caller]
    pub fn resumed(&mut self, training: Id) -> At {
        let started = Instant::now();
        loop {
            match self.carol.resume(training) {
                Ok(at) => {
                    self.alice.join_training().unwrap();
                    self.bob.join_training().unwrap();
                    return at;
                }
                Err(e) => {
                    assert!(started.elapsed() < PATIENCE, "{e}: {}", self.nodes.log("party0"));
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    /// Why a training cannot be resumed. While parties come up there are other reasons.
    #[track_caller]
    pub fn refused(&mut self, training: Id, says: &str) -> String {
        let started = Instant::now();
        loop {
            let error = self.carol.resume(training).unwrap_err().to_string();
            if error.contains(says) {
                return error;
            }
            assert!(started.elapsed() < PATIENCE, "`{says}` is not in: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn reveal(&mut self) -> Tensors {
        self.prepare("reveal", 1);
        self.carol.join_training().unwrap();
        self.carol.step("reveal", &Tensors::new(), &Publics::new()).unwrap().outputs
    }
}
