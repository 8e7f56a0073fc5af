//! The shared suite over `fss`: both evaluators in two threads over an in-memory channel, a real dealer.

mod common;

use common::{RecordCoins, World, in_every_form};
use privet_family::NodeStats;
use privet_fss::{Done, Fss, SessionMasks};
use privet_plan::cost::{Aim, Cost, OnTheWay, Operation, Prices, known};
use privet_plan::functions::Function;
use privet_plan::ir::Op;
use privet_plan::lower::{Lowered, Precision, lower_for};
use privet_plan::suite::{Case, Operands, cases, joined_cases, optional_cases, training_cases, workload};
use privet_plan::{Network, Rates, encode_inputs, encode_weights, estimate, interpret_step};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_testkit::Mesh;

fn check(case: &Case, seed: &Seed) {
    let mut stream = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    check_on(case, &operands, seed);
}

/// The same on these inputs and weights.
fn check_on(case: &Case, operands: &[Operands; 2], seed: &Seed) {
    let (session, record) = (seed.derive(Domain::Public, 1), seed.derive(Domain::Public, 2));
    let (world, mut keys) = World::new(&case.plan, operands, &session, &record);
    let session = SessionMasks::new(&case.plan, world.device.as_ref(), &session);
    let mut coins = RecordCoins { plan: &case.plan, session, record: &record };
    let (outputs, updates) = interpret_step(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();

    let mut mesh = Mesh::new(2);
    let meter = mesh.end(0, 1).meter();
    let [k0, k1] = &mut keys;
    let [y0, y1] = world.run([k0, k1], mesh).map(Result::unwrap);
    assert!(keys.iter().all(|k| k.bytes() == 0), "{}: keys left over", case.name);
    case.compare(&world.outputs([&y0, &y1]), &outputs);
    let found = world.updates([&y0, &y1]);
    assert_eq!(found.len(), updates.len(), "{}: number of updates", case.name);
    for (name, value) in &updates {
        assert_eq!(found[name], value.data(), "{}: state `{name}` after the step", case.name);
    }

    let total = estimate(&case.plan, &Fss, &Rates::default(), &Network::LAN).total;
    let keys = |y: &Done| y.nodes.iter().map(|s| s.key_bytes).sum::<u64>();
    let [most, other] = [keys(&y0).max(keys(&y1)), keys(&y0).min(keys(&y1))];
    assert_eq!(
        (total.key_bytes.most(), total.key_bytes.least()),
        (most, other),
        "{}: keys of a record",
        case.name
    );

    let rounds: u64 = y0.nodes.iter().map(|s| s.rounds).sum();
    assert_eq!(rounds, meter.total().rounds, "{}: rounds counted by the network", case.name);
    let counted: Vec<NodeStats> = y0.nodes.iter().zip(&y1.nodes).map(|(a, b)| a.larger(b)).collect();
    for (v, (read, dealt)) in counted.iter().zip(&world.dealt).enumerate() {
        assert_eq!(read.key_bytes, dealt.key_bytes, "{}: key bytes of node {v}", case.name);
    }
    declared_equals_counted(case, &counted);
}

/// A transformer with the ways of each network: games of several in a softmax where rounds cost most, and normalisations as one function.
#[test]
fn transformers_are_the_interpreters() {
    let (graph, params) = workload::workload("bert-small", 1);
    let inputs = workload::inputs(&graph);
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    for network in [Network::LAN, Network::WAN] {
        let aim = Aim { network, max_key_bytes: None };
        let Lowered { plan, parameters, .. } = lower_for(&graph, &params, &precision, &Fss, &aim).unwrap();
        let normalised = plan
            .nodes
            .iter()
            .filter(|n| matches!(n.op, Op::Approximates { function: Function::Normalise { .. } }));
        assert_eq!(normalised.count(), 5, "{network}");
        let several =
            plan.nodes.iter().any(|n| n.op == Op::ChooseEvery || n.op == Op::Choose && n.ty.bits == 1);
        assert!(several || network == Network::LAN, "games of several");
        let operands =
            [encode_inputs(&plan, None, &inputs).unwrap(), encode_weights(&plan, None, &parameters).unwrap()];
        check_on(&Case { name: format!("bert-small, {network}"), plan }, &operands, &Seed::random());
    }
}

/// What the cost model declares for each node is what the engine counted.
fn declared_equals_counted(case: &Case, counted: &[NodeStats]) {
    let nodes = &case.plan.nodes;
    // All states are opened in one round: it is the whole run's, and counted at the first of them.
    let first = nodes.iter().position(|node| matches!(node.op, Op::State { .. }));
    let (run, known) = (Fss.run(&case.plan), known(&case.plan));
    let mut sent = OnTheWay::default();
    assert_eq!(run, Cost { rounds: first.is_some() as u64, ..Cost::default() }, "{}", case.name);
    for (v, node) in nodes.iter().enumerate() {
        if node.op.is_local() || matches!(node.op, Op::Input { .. } | Op::Weight { .. }) {
            sent.pass(v, node, 0);
            continue;
        }
        let mut declared = Fss.operation(&Operation::of(&case.plan, v, &known));
        declared.rounds = sent.pass(v, node, declared.rounds);
        declared.rounds += if first == Some(v) { run.rounds } else { 0 };
        let found = &counted[v];
        assert_eq!(
            (
                declared.rounds,
                declared.key_bytes.most(),
                declared.wire_bytes.most(),
                declared.comparisons,
                declared.aes
            ),
            (found.rounds, found.key_bytes, found.sent_bytes, found.comparisons, found.aes_calls),
            "{}: node {v} {:?}: (rounds, key bytes, sent bytes, comparisons, AES calls) declared and counted",
            case.name,
            node.op
        );
    }
}

#[test]
fn protocol_equals_interpreter_on_the_suite() {
    let joined = joined_cases().into_iter().map(|[_, after]| after);
    let all = cases().into_iter().chain(training_cases()).chain(optional_cases()).chain(joined);
    for case in in_every_form(all.collect()) {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        for _ in 0..2 {
            check(&case, &Seed::random());
        }
    }
}
