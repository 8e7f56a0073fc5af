//! The workloads that `privet bench` knows, made into a plan and public random operands.

use crate::cli::CliError;
use privet_plan::cost::{Aim, TooManyKeys, choose_forms};
use privet_plan::functions::{Build, Function, emit};
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_plan::lower::{
    DATA_OWNER, LowerError, Lowered, MODEL_OWNER, Precision, RECEIVER, RoundingMode, lower_for,
};
use privet_plan::shown::make_exact;
use privet_plan::{FloatTensor, Graph, Target};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::collections::BTreeMap;

/// Graphs by name, from files of the benchmark's folder.
macro_rules! graphs {
    ($($name:literal = $file:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../../../../benches/workloads/", $file, ".graph.json")))),*]
    };
}

/// Captured networks, without weights; made by `python -m privet.workloads`.
const GRAPHS: &[(&str, &[u8])] = &graphs! {
    "mlp" = "mlp",
    "network-a" = "mlp",
    "network-b" = "network-b",
    "network-c" = "network-c",
    "lenet" = "lenet",
    "alexnet-cifar" = "alexnet-cifar",
    "alexnet-tiny" = "alexnet-tiny",
    "vgg16-cifar" = "vgg16-cifar",
    "vgg16-tiny" = "vgg16-tiny",
    "spin-lenet" = "spin-lenet",
    "spin-alexnet" = "spin-alexnet",
    "spin-vgg16m" = "spin-vgg16m",
    "resnet18" = "resnet18",
    "squeezenet" = "squeezenet",
    "resnet50" = "resnet50",
    "vgg16" = "vgg16",
    "bert-base" = "bert-base",
    "gpt2" = "gpt2",
    "vit-b16" = "vit-b16",
    "bert-small" = "bert-small",
    "gpt2-small" = "gpt2-small",
    "vit-small" = "vit-small",
};

/// How names of causal masks end: parameters that are not learned, 0 up to the diagonal and low above it.
const MASK: &str = ".mask";

/// What the front end calls the labels of a batch.
const TARGET: &str = "target";

/// Steps of training, of the networks of the same names.
const TRAININGS: &[(&str, &[u8])] = &graphs! {
    "mlp" = "mlp.train",
    "lenet" = "lenet.train",
    "spin-lenet" = "spin-lenet.train",
    "spin-alexnet" = "spin-alexnet.train",
    "spin-vgg16m" = "spin-vgg16m.train",
    "cnn2" = "cnn2.train",
    "cnn3" = "cnn3.train",
};

/// A plan with operands.
pub struct Workload {
    /// The plan.
    pub plan: Plan,
    /// Its weights.
    pub weights: BTreeMap<String, FloatTensor>,
    /// The first values of its states, where it is a step of training.
    pub states: BTreeMap<String, FloatTensor>,
    /// Its public numbers.
    pub publics: BTreeMap<String, f64>,
    /// Its inputs.
    pub inputs: BTreeMap<String, FloatTensor>,
}

impl Workload {
    /// A plan without operands.
    fn of(plan: Plan) -> Workload {
        let none = BTreeMap::new;
        Workload { plan, weights: none(), states: none(), publics: BTreeMap::new(), inputs: none() }
    }
}

/// What to run.
pub struct Choice<'a> {
    /// `relu-1000000`, `lenet`, ...
    pub name: &'a str,
    /// Rows.
    pub batch: usize,
    /// Ring bits of linear layers.
    pub bits: u32,
    /// Fraction bits.
    pub fraction: u32,
    /// Fraction bits of weights, where others.
    pub weight_fraction: Option<u32>,
    /// How truncation rounds.
    pub rounding: RoundingMode,
    /// A step of training instead of a prediction.
    pub train: bool,
    /// The family that a plan is made for.
    pub family: &'a dyn Target,
    /// What it is made for.
    pub aim: Aim,
}

/// Names for the help text.
pub fn names() -> String {
    let networks: Vec<&str> = GRAPHS.iter().map(|(name, _)| *name).collect();
    let steps: Vec<&str> = TRAININGS.iter().map(|(name, _)| *name).collect();
    format!(
        "relu-N, matmul-N, exp-N, log-N, reciprocal-N, gelu-N, softmax-N, {}; with `--train` {}",
        networks.join(", "),
        steps.join(", ")
    )
}

/// Make a workload; operands are pseudorandom from a public seed, so that runs can be compared.
pub fn make(choice: &Choice) -> Result<Workload, CliError> {
    let mut random = Seed::from_bytes(*b"public benchdata").derive(Domain::Public, 0).stream();
    let mut work = made_of(choice, &mut random)?;
    // of a network chosen already; the same again
    choose_forms(&mut work.plan, choice.family, &choice.aim).map_err(too_many)?;
    Ok(work)
}

fn too_many(e: TooManyKeys) -> CliError {
    CliError::usage(e, "give a larger `--max-key-bytes`, or fewer rows")
}

fn made_of(choice: &Choice, random: &mut Prg) -> Result<Workload, CliError> {
    if choice.train {
        return training(choice, random);
    }
    if let Some(n) = numbered(choice.name, "relu-") {
        return Ok(relu(n, choice, random));
    }
    if let Some(n) = numbered(choice.name, "matmul-") {
        return Ok(matmul(n, choice, random));
    }
    if let Some((function, n)) = smooth_function(choice.name) {
        return smooth(function, n, choice, random);
    }
    network(choice, random)
}

fn numbered(name: &str, prefix: &str) -> Option<usize> {
    name.strip_prefix(prefix)?.parse().ok().filter(|n| (1..=1 << 27).contains(n))
}

fn node(op: Op, inputs: &[usize], shape: &[usize], bits: u32, frac: u32, layer: &str) -> Node {
    let ty = Type { shape: shape.to_vec(), bits, frac };
    Node { op, inputs: inputs.to_vec(), ty, layer: layer.into(), form: None }
}

fn small(name: &str, nodes: Vec<Node>) -> Plan {
    let output = Output { value: nodes.len() - 1, name: "y".into(), to: RECEIVER.into() };
    Plan { version: PLAN_VERSION, name: name.into(), batch: 1, nodes, outputs: vec![output], updates: vec![] }
}

fn input(limit: f64) -> Op {
    Op::Input { name: "x".into(), owner: DATA_OWNER.into(), limit }
}

fn relu(n: usize, choice: &Choice, random: &mut Prg) -> Workload {
    let (k, f) = (choice.bits, choice.fraction);
    let nodes = vec![node(input(100.0), &[], &[n], k, f, "input"), node(Op::Relu, &[0], &[n], k, f, "relu")];
    let x = FloatTensor { shape: vec![n], data: uniform(random, n, -100.0, 100.0) };
    Workload { inputs: BTreeMap::from([("x".into(), x)]), ..Workload::of(small(choice.name, nodes)) }
}

/// The function and the size that a name like `exp-1000` stands for.
fn smooth_function(name: &str) -> Option<(Function, usize)> {
    let functions = [
        ("exp-", Function::Exp),
        ("log-", Function::Log),
        ("reciprocal-", Function::Reciprocal),
        ("gelu-", Function::Gelu),
        ("softmax-", Function::Softmax { dim: 1 }),
    ];
    functions.into_iter().find_map(|(prefix, function)| Some((function, numbered(name, prefix)?)))
}

/// A function of `batch` rows of n numbers.
fn smooth(function: Function, n: usize, choice: &Choice, random: &mut Prg) -> Result<Workload, CliError> {
    let (k, f, shape) = (choice.bits, choice.fraction, vec![choice.batch, n]);
    let mut plan = small(choice.name, vec![node(input(100.0), &[], &shape, k, f, "input")]);
    plan.batch = choice.batch;
    let mut build = Build::new(&mut plan, function.name()).priced(choice.family, choice.aim.network);
    let x = build.value(0);
    let unfit = |what| CliError::usage(what, "choose other --bits and --fraction");
    plan.outputs[0].value = emit(&mut build, function, x, k, f).map_err(unfit)?.id;
    make_exact(&mut plan);
    // exp of what the numbers can hold, reciprocals away from zero
    let (low, high) = match function {
        Function::Exp => (-8.0, 8.0),
        Function::Reciprocal | Function::Log => (0.01, 100.0),
        _ => (-10.0, 10.0),
    };
    let x = FloatTensor { data: uniform(random, choice.batch * n, low, high), shape };
    Ok(Workload { inputs: BTreeMap::from([("x".into(), x)]), ..Workload::of(plan) })
}

fn matmul(n: usize, choice: &Choice, random: &mut Prg) -> Workload {
    let (k, f, shape) = (choice.bits, choice.fraction, [n, n]);
    let weight = Op::Weight { name: "w".into(), owner: MODEL_OWNER.into() };
    let nodes = vec![
        node(input(1.0), &[], &shape, k, f, "input"),
        node(weight, &[], &shape, k, f, "matmul"),
        node(Op::Linear, &[0, 1], &shape, k, 2 * f, "matmul"),
    ];
    let mut tensor = || FloatTensor { shape: shape.to_vec(), data: uniform(random, n * n, -1.0, 1.0) };
    Workload {
        weights: BTreeMap::from([("w".into(), tensor())]),
        inputs: BTreeMap::from([("x".into(), tensor())]),
        ..Workload::of(small(choice.name, nodes))
    }
}

fn network(choice: &Choice, random: &mut Prg) -> Result<Workload, CliError> {
    let graph = graph_of(GRAPHS, choice)?;
    let (bits, fraction) = (Some(choice.bits), Some(choice.fraction));
    let (weight_fraction, rounding) = (choice.weight_fraction, choice.rounding);
    let precision = Precision { bits, fraction, weight_fraction, rounding, ..Precision::default() };
    made(&graph, &precision, choice, random)
}

/// A step of training, in the ring that it needs: docs/training.md, Numbers.
fn training(choice: &Choice, random: &mut Prg) -> Result<Workload, CliError> {
    let graph = graph_of(TRAININGS, choice)?;
    let (bits, fraction) = (Some(choice.bits), Some(choice.fraction));
    let precision =
        Precision { bits, fraction, rounding: choice.rounding, keep_ring: true, ..Precision::default() };
    made(&graph, &precision, choice, random)
}

fn graph_of(graphs: &[(&str, &[u8])], choice: &Choice) -> Result<Graph, CliError> {
    let unknown = || {
        let cause = format!("there is no workload `{}`", choice.name.escape_debug());
        CliError::usage(cause, format!("choose one of: {}", names()))
    };
    let (_, json) = graphs.iter().find(|(name, _)| *name == choice.name).ok_or_else(unknown)?;
    let graph = Graph::from_json(json).map_err(|e| CliError::failed(e, "report this as a bug"))?;
    let remedy = format!("give `--batch {}`, with which it was captured", graph.batch);
    graph.with_batch(choice.batch).map_err(|e| CliError::failed(e, remedy))
}

/// The graph as a plan, with operands from its ranges.
fn made(
    graph: &Graph,
    precision: &Precision,
    choice: &Choice,
    random: &mut Prg,
) -> Result<Workload, CliError> {
    let (mut params, mut states, mut inputs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut publics = BTreeMap::new();
    for node in &graph.nodes {
        let (lo, hi) = node.range.map_or((-1.0, 1.0), |[lo, hi]| (lo, hi));
        let (n, shape) = (node.shape.iter().product(), node.shape.clone());
        let mut learned =
            |lo, hi| if lo >= 0.0 { uniform(random, n, lo, hi) } else { bell(random, n, lo, hi) };
        match &node.op {
            GraphOp::Parameter { name } => {
                let data = match &shape[..] {
                    &[.., rows, columns] if name.ends_with(MASK) => causal(n, rows, columns, lo),
                    _ => learned(lo, hi),
                };
                params.insert(name.clone(), FloatTensor { shape, data });
            }
            GraphOp::State { name, .. } => {
                states.insert(name.clone(), FloatTensor { shape, data: learned(lo, hi) });
            }
            GraphOp::Public { name, limit } => {
                publics.insert(name.clone(), *limit);
            }
            GraphOp::Input { name, .. } => {
                let data = match &shape[..] {
                    &[rows, classes] if name == TARGET => one_hot(random, rows, classes),
                    _ => uniform(random, n, lo, hi),
                };
                inputs.insert(name.clone(), FloatTensor { shape, data });
            }
            // Computed from others. Without a wildcard: a new source has a value above, or does not compile.
            GraphOp::Positive
            | GraphOp::Choose
            | GraphOp::Reverse { .. }
            | GraphOp::Dropout { .. }
            | GraphOp::Conv2dInputGrad { .. }
            | GraphOp::Conv2dWeightGrad { .. }
            | GraphOp::MaxPool2dGrad { .. }
            | GraphOp::AvgPool2dGrad { .. }
            | GraphOp::Conv2d { .. }
            | GraphOp::Linear
            | GraphOp::MatMul
            | GraphOp::BatchNorm { .. }
            | GraphOp::Relu
            | GraphOp::Clamp { .. }
            | GraphOp::LeakyRelu { .. }
            | GraphOp::MaxPool2d { .. }
            | GraphOp::AvgPool2d { .. }
            | GraphOp::AdaptiveAvgPool2d { .. }
            | GraphOp::Mean { .. }
            | GraphOp::Sum { .. }
            | GraphOp::Add
            | GraphOp::Sub
            | GraphOp::Mul
            | GraphOp::Neg
            | GraphOp::AddScalar { .. }
            | GraphOp::MulScalar { .. }
            | GraphOp::Reshape
            | GraphOp::Permute { .. }
            | GraphOp::Slice { .. }
            | GraphOp::Concat { .. }
            | GraphOp::Pad { .. }
            | GraphOp::Expand
            | GraphOp::Argmax { .. }
            | GraphOp::InRange { .. }
            | GraphOp::Smooth { .. }
            | GraphOp::Unsupported { .. } => {}
        }
    }
    let lowered = lower_for(graph, &params, precision, choice.family, &choice.aim);
    let Lowered { plan, parameters, .. } = lowered.map_err(|e| match e {
        LowerError::Keys(keys) => too_many(keys),
        LowerError::Model(report) => {
            CliError::failed(report, "choose other `--bits` and `--fraction`; 64 and 24 hold every workload")
        }
    })?;
    Ok(Workload { plan, weights: parameters, states, publics, inputs })
}

/// `n` elements of matrices that are 0 up to the diagonal and `low` above it.
fn causal(n: usize, rows: usize, columns: usize, low: f64) -> Vec<f64> {
    (0..n).map(|i| if i % columns > i / columns % rows { low } else { 0.0 }).collect()
}

/// Rows with a one in a random place each.
fn one_hot(random: &mut Prg, rows: usize, classes: usize) -> Vec<f64> {
    let mut data = vec![0.0; rows * classes];
    for row in data.chunks_exact_mut(classes) {
        row[random.elements(Ring::R64, 1)[0] as usize % classes] = 1.0;
    }
    data
}

fn uniform(random: &mut Prg, n: usize, lo: f64, hi: f64) -> Vec<f64> {
    let unit = |w: u64| (w >> 11) as f64 / (1u64 << 53) as f64;
    random.elements(Ring::R64, n).into_iter().map(|w| lo + (hi - lo) * unit(w)).collect()
}

/// Bell-shaped (a sum of twelve uniform numbers), its largest of n about as large as the range seen.
fn bell(random: &mut Prg, n: usize, lo: f64, hi: f64) -> Vec<f64> {
    let sigma = lo.abs().max(hi.abs()) / (2.0 * (n as f64 + 2.0).ln()).sqrt();
    let twelve = uniform(random, 12 * n, -0.5, 0.5);
    twelve.chunks(12).map(|c| (sigma * c.iter().sum::<f64>()).clamp(lo, hi)).collect()
}
