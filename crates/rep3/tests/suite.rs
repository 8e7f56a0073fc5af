//! The shared suite over `rep3`, semi-honest and malicious: three parties in three threads over in-memory channels.

mod common;

use common::{Common, World, derived, three, updated};
use privet_family::NodeStats;
use privet_plan::cost::{Aim, Operation, PerParty, Prices, known};
use privet_plan::functions::Function;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::lower::{Lowered, Precision, lower_for};
use privet_plan::suite::{Case, Operands, cases, joined_cases, optional_cases, training_cases, workload};
use privet_plan::{
    Cut, Form, Network, Target, encode_inputs, encode_weights, interpret_real, interpret_step,
};
use privet_prg::{Domain, Seed};
use privet_rep3::{Outcome, PartyId, Rep3, Security};
use privet_ring::{Ring, Tensor};
use privet_testkit::{Mesh, Sent, record};
use std::collections::BTreeMap;

fn check(case: &Case, security: Security, seed: &Seed) {
    let mut stream = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    let (found, truth) = check_on(case, &operands, security, seed);
    case.compare(&found, &truth);
}

/// The same on these inputs and weights, but for the outputs: gives them, and the interpreter's.
fn check_on(
    case: &Case,
    operands: &[Operands; 2],
    security: Security,
    seed: &Seed,
) -> (Vec<Vec<u64>>, Vec<Tensor>) {
    let world = World::new(&case.plan, security, operands, seed);
    let mut coins = Common(&case.plan, security, derived(&world.keys, 0));
    let (truth, next) = interpret_step(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();

    let mut mesh = Mesh::new(3);
    let log = mesh.record();
    let outcomes = world.run(mesh).map(|y| y.unwrap_or_else(|e| panic!("{} {security}: {e}", case.name)));
    let next: BTreeMap<String, Vec<u64>> =
        next.into_iter().map(|(name, tensor)| (name, tensor.data().to_vec())).collect();
    assert_eq!(updated(&case.plan, outcomes.each_ref()), next, "{}: states", case.name);

    let prepared = world.prepared();
    let declared = Rep3 { security }.preparation(&case.plan);
    assert_eq!(declared.sent, prepared.each_ref().map(record::bytes), "{}: before the run", case.name);
    assert_eq!(declared.rounds, record::rounds(prepared.iter().flatten()), "{}: before the run", case.name);
    let mut logs = world.of_run(three(log.all()));
    let coins = draws_coins(&case.plan);
    for log in &mut logs {
        // what comes before the first node, as the comparison of inputs does: nobody's cost
        let tossed: Vec<_> = log.extract_if(.., |sent| &*sent.step.name == "run / coins").collect();
        assert_eq!(
            (tossed.len(), record::bytes(&tossed)),
            if coins { (2, 32) } else { (0, 0) },
            "{}: coins",
            case.name
        );
    }
    let proves = |sent: &&Sent| sent.step.name.contains("/ proof: ");
    let proofs = record::rounds(logs.iter().flatten().filter(proves));
    let rounds = record::rounds(logs.iter().flatten().filter(|sent| !proves(sent)));
    for (id, outcome) in PartyId::ALL.into_iter().zip(&outcomes) {
        let mut total = outcome.checks;
        outcome.nodes.iter().for_each(|node| total.add(node));
        assert_eq!(total.sent_bytes, record::bytes(&logs[id.index()]), "{}: bytes that {id} sent", case.name);
        assert_eq!(total.rounds, rounds + outcome.checks.rounds, "{}: rounds of {id}", case.name);
        // but for what is proved beside the protocol, which takes large statements
        let alone = outcome.checks.rounds == proofs;
        let beside = case.name == "large" && outcome.checks.rounds < proofs;
        assert!(alone || beside, "{}: rounds of {id}'s verification", case.name);
        declared_is_counted(case, security, id, outcome);
    }
    (world.outputs(outcomes.each_ref()), truth)
}

/// A transformer with the ways of each network: games of several in a softmax, and normalisations as one function. Its truncations
/// are within one unit, so its outputs are near those of real numbers.
#[test]
fn transformers_are_near_real_numbers() {
    let (graph, params) = workload::workload("bert-small", 1);
    let inputs = workload::inputs(&graph);
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    for (network, security, several) in [
        (Network::LAN, Security::SemiHonest, true),
        (Network::WAN, Security::SemiHonest, true),
        (Network::WAN, Security::Malicious, false),
    ] {
        let aim = Aim { network, max_key_bytes: None };
        let Lowered { plan, parameters, .. } =
            lower_for(&graph, &params, &precision, &Rep3 { security }, &aim).unwrap();
        let normalised = plan
            .nodes
            .iter()
            .filter(|n| matches!(n.op, Op::Approximates { function: Function::Normalise { .. } }));
        assert_eq!(normalised.count(), 5, "{network} {security}");
        let by_bits = plan.nodes.iter().any(|n| n.op == Op::Choose && n.ty.bits == 1);
        assert!(by_bits || !several, "{network} {security}: games of several");
        let real = interpret_real(&plan, &inputs, &parameters).unwrap();
        let operands =
            [encode_inputs(&plan, None, &inputs).unwrap(), encode_weights(&plan, None, &parameters).unwrap()];
        let case = Case { name: format!("bert-small, {network}"), plan };
        let (found, _) = check_on(&case, &operands, security, &Seed::random());
        let ty = &case.plan.nodes[case.plan.outputs[0].value].ty;
        let number = |v: u64| Ring::new(ty.bits).signed(v) as f64 / 2f64.powi(ty.frac as i32);
        let errors = found[0].iter().zip(&real[0].data).map(|(&v, real)| (number(v) - real).abs());
        let worst = errors.fold(0.0, f64::max);
        println!("{network} {security}: {worst:e}");
        assert!(worst < 1e-3, "{network} {security}: {worst}");
    }
}

/// Whether a plan needs coins that no party may know before the inputs are fixed.
fn draws_coins(plan: &Plan) -> bool {
    plan.nodes.iter().any(|node| match &node.op {
        Op::Truncate { rounding, .. } => *rounding == Rounding::Stochastic,
        op => matches!(
            op,
            Op::Dither { .. } | Op::Piecewise { .. } | Op::Exponential { .. } | Op::Dropout { .. }
        ),
    })
}

/// What the cost model declares for each node is what the engine counted.
fn declared_is_counted(case: &Case, security: Security, id: PartyId, outcome: &Outcome) {
    let (prices, known) = (Rep3 { security }, known(&case.plan));
    for (v, node) in case.plan.nodes.iter().enumerate() {
        let given = |op: &Op| {
            matches!(op, Op::Input { .. } | Op::Weight { .. } | Op::State { .. } | Op::Public { .. })
        };
        if node.op.is_local() || given(&node.op) {
            assert_eq!(outcome.nodes[v].sent_bytes + outcome.nodes[v].rounds, 0, "{}: node {v}", case.name);
            continue;
        }
        let of = Operation::of(&case.plan, v, &known);
        let declared = prices.talk(&of);
        let found = &outcome.nodes[v];
        assert_eq!(
            (declared.rounds, declared.sent[id.index()]),
            (found.rounds, found.sent_bytes),
            "{} {security}: node {v} {:?} at {id}: (rounds, sent bytes) declared and counted",
            case.name,
            node.op
        );
        let cost = prices.operation(&of);
        assert_eq!(cost.wire_bytes, PerParty::from(declared.sent), "{}: node {v}", case.name);
        assert!(found.macs.is_multiple_of(2) && [0, 2 * cost.macs].contains(&found.macs), "{}", case.name);
    }
    let (declared, whole) = (prices.verification(&case.plan), prices.run(&case.plan));
    let checks: &NodeStats = &outcome.checks;
    assert_eq!((whole.rounds, whole.wire_bytes), (declared.rounds, PerParty::from(declared.sent)));
    assert_eq!(
        (declared.rounds, declared.sent[id.index()]),
        (checks.rounds, checks.sent_bytes),
        "{} {security}: verification at {id}: (rounds, sent bytes) declared and counted",
        case.name
    );
}

/// The case with ReLUs after their truncations, where it has any that may be with them.
fn after_truncations(mut case: Case) -> Option<Case> {
    let cut = |v: &usize| case.plan.nodes[*v].op == Op::Relu && Cut::of(&case.plan, *v).is_some();
    let relus: Vec<usize> = (0..case.plan.nodes.len()).filter(cut).collect();
    relus.iter().for_each(|&v| case.plan.nodes[v].form = Some(Form::AfterTruncation));
    case.name.push_str(", after the truncation");
    (!relus.is_empty()).then_some(case)
}

fn suite(security: Security) {
    let joined = joined_cases().into_iter().map(|[_, after]| after);
    let (given, refused): (Vec<Case>, Vec<Case>) =
        optional_cases().into_iter().partition(|case| Rep3 { security }.refusals(&case.plan).is_empty());
    // what nobody can prove
    assert_eq!(given.is_empty(), security == Security::Malicious);
    assert_eq!(refused.is_empty(), security == Security::SemiHonest);
    let cut = cases().into_iter().filter_map(after_truncations);
    for case in cases().into_iter().chain(training_cases()).chain(given).chain(joined).chain(cut) {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        for _ in 0..3 {
            check(&case, security, &Seed::random());
        }
    }
}

#[test]
fn protocol_equals_interpreter_on_the_suite_semi_honest() {
    suite(Security::SemiHonest);
}

#[test]
fn protocol_equals_interpreter_on_the_suite_malicious() {
    suite(Security::Malicious);
}

/// A run whose statements are more than a party remembers is verified before it goes on, and at its end.
#[test]
fn a_large_run_is_verified_in_between() {
    let n = 640_000;
    let node = |op, inputs: &[usize]| {
        let ty = Type { shape: vec![n], bits: 20, frac: 0 };
        Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None }
    };
    let mut nodes = vec![node(Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 }, &[])];
    nodes.extend((0..6).map(|i| node(Op::Mul, &[i, 0])));
    let outputs = vec![Output { value: 6, name: "y".into(), to: "receiver".into() }];
    let plan =
        Plan { version: PLAN_VERSION, name: "large".into(), batch: 1, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    let once = Plan { nodes: plan.nodes[..2].to_vec(), ..plan.clone() };
    let [once, all] = [&once, &plan].map(|plan| Rep3 { security: Security::Malicious }.verification(plan));
    assert!(2 * all.sent[0] > 3 * once.sent[0], "{once:?} of one verification, {all:?} of all");
    check(&Case { name: "large".into(), plan }, Security::Malicious, &Seed::random());
}

/// Public constants are added to one component, of static values as of others, and read by a layer as by an output.
#[test]
fn constants_are_added_once() {
    let node = |op, inputs: &[usize], shape: &[usize]| {
        let ty = Type { shape: shape.to_vec(), bits: 30, frac: 0 };
        Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None }
    };
    let weight = Op::Weight { name: "w".into(), owner: "model-owner".into() };
    let nodes = vec![
        node(Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 }, &[], &[3, 4]),
        node(weight, &[], &[5, 4]),
        node(Op::AddConst { value: -77 }, &[1], &[5, 4]),
        node(Op::MulConst { value: 3 }, &[2], &[5, 4]),
        node(Op::AddConst { value: 1 << 20 }, &[0], &[3, 4]),
        node(Op::Linear, &[4, 3], &[3, 5]),
    ];
    let output = |value: usize| Output { value, name: format!("y{value}"), to: "receiver".into() };
    let outputs = vec![output(3), output(4), output(5)];
    let plan =
        Plan { version: PLAN_VERSION, name: "constants".into(), batch: 3, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    let case = Case { name: "constants".into(), plan };
    check(&case, Security::SemiHonest, &Seed::random());
    check(&case, Security::Malicious, &Seed::random());
}
