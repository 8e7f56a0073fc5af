//! The shared suite over `semi2k` with two, three and five parties in threads over in-memory channels: the helper's records, against the
//! interpreter; and what is declared against what is counted.

mod common;

use common::{RecordCoins, Seeds, World, in_every_form, sources, that_it_has};
use privet_family::{Class, Forecast, NodeStats, Opening, OpeningKind, When, Wire};
use privet_plan::cost::{Cost, OnTheWay, Operation, PerParty, Prices, known};
use privet_plan::ir::{Op, Rounding};
use privet_plan::suite::{
    Case, cases, exponential_cases, gate, joined_cases, optional_cases, training_cases,
};
use privet_plan::{Network, Rates, estimate, interpret_step};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_semi2k::{BitUse, BitsAt, PartySeed, Semi2k, prepare};
use privet_testkit::Mesh;

fn check(case: &Case, parties: usize, seed: &Seed) {
    let family = Semi2k::helped(parties);
    let mut stream = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    let mut opened = 0;
    let (world, mut keys) = World::with(&case.plan, &operands, Seeds::of(parties, seed), |helper| {
        let stats = prepare(&case.plan, helper, &mut |_| {}).unwrap();
        opened = helper.opened_bits();
        stats
    });
    offsets_are_listed(case, &family, opened);
    let mut coins =
        RecordCoins { plan: &case.plan, public: world.public.clone(), seeds: [&world.session, &world.seeds] };
    let (outputs, updates) = interpret_step(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();

    let mut mesh = Mesh::new(parties);
    let meter = mesh.end(0, 1).meter();
    let results = world.run(sources(&mut keys), mesh).into_iter().map(Result::unwrap);
    let (done, openings): (Vec<_>, Vec<_>) = results.unzip();
    assert!(keys.iter().all(|k| k.bytes() == 0), "{}: frames left over", case.name);
    case.compare_within(parties.div_ceil(2) as u64, &world.outputs(&done), &outputs);
    let found = world.updates(&done);
    assert_eq!(found.len(), updates.len(), "{}: number of updates", case.name);
    for (name, value) in &updates {
        assert_eq!(found[name], value.data(), "{}: state `{name}` after the step", case.name);
    }

    let total = estimate(&case.plan, &family, &Rates::default(), &Network::LAN).total;
    for done in &done {
        let kept = done.nodes.iter().map(|s| s.key_bytes).sum::<u64>();
        assert_eq!(total.key_bytes, PerParty::alike(kept), "{}: bytes of a record", case.name);
    }
    let rounds: u64 = done[0].nodes.iter().map(|s| s.rounds).sum();
    if parties == 2 {
        assert_eq!(rounds, meter.total().rounds, "{}: rounds counted by the network", case.name);
    }
    let larger = |a: Vec<NodeStats>, b: &Vec<NodeStats>| a.iter().zip(b).map(|(a, b)| a.larger(b)).collect();
    let counted = done.iter().map(|done| &done.nodes).fold(done[0].nodes.clone(), larger);
    for (v, (read, kept)) in counted.iter().zip(&world.prepared).enumerate() {
        assert_eq!(read.key_bytes, kept.key_bytes, "{}: bytes of node {v}", case.name);
    }
    declared_equals_counted(case, &family, &counted);
    for opened in &openings {
        list_is_what_is_opened(case, &family, opened);
    }
}

/// What the cost model declares for each node is what the parties counted.
fn declared_equals_counted(case: &Case, family: &Semi2k, counted: &[NodeStats]) {
    let nodes = &case.plan.nodes;
    // All states are opened in one round: it is the whole run's, and counted at the first of them.
    let first = nodes.iter().position(|node| matches!(node.op, Op::State { .. }));
    let (run, known) = (family.run(&case.plan), known(&case.plan));
    let mut sent = OnTheWay::default();
    assert_eq!(run, Cost { rounds: first.is_some() as u64, ..Cost::default() }, "{}", case.name);
    for (v, node) in nodes.iter().enumerate() {
        if node.op.is_local() || matches!(node.op, Op::Input { .. } | Op::Weight { .. }) {
            sent.pass(v, node, 0);
            continue;
        }
        let mut declared = family.operation(&Operation::of(&case.plan, v, &known));
        declared.rounds = sent.pass(v, node, declared.rounds);
        declared.rounds += if first == Some(v) { run.rounds } else { 0 };
        assert!(declared.offline.is_nothing(), "a helper prepares");
        let found = &counted[v];
        assert_eq!(
            (declared.rounds, declared.key_bytes.most(), declared.wire_bytes.most(), declared.comparisons),
            (found.rounds, found.key_bytes, found.sent_bytes, found.comparisons),
            "{}: node {v} {:?}: (rounds, bytes of the record, sent bytes, comparisons) declared and counted",
            case.name,
            node.op
        );
    }
}

/// What is opened while a record is prepared is on the list.
fn offsets_are_listed(case: &Case, family: &Semi2k, opened: u64) {
    let all = family.openings(&case.plan).into_iter();
    let listed: u64 = all.filter(|o| o.when == When::Preparation).map(|o| o.bits).sum();
    assert_eq!(listed, opened, "{}: bits of offsets", case.name);
}

/// The list of openings known before a run is exactly what every party opens, in its order.
fn list_is_what_is_opened(case: &Case, family: &Semi2k, opened: &[Opening]) {
    let listed: Vec<_> = family
        .openings(&case.plan)
        .into_iter()
        .filter(|o| o.class == Class::Masked && o.when == When::Run)
        .filter(|o| o.node.is_some_and(|v| !matches!(case.plan.nodes[v].op, Op::Input { .. })))
        .map(|o| (format!("{} / {}", o.layer, o.what), o.bits))
        .collect();
    assert!(opened.iter().all(|o| o.kind == OpeningKind::Masked), "{}", case.name);
    // A tournament level without a pair opens nothing.
    let opened = opened.iter().filter(|o| o.bits > 0);
    let opened: Vec<_> = opened.map(|o| (o.what.clone(), o.bits)).collect();
    assert_eq!(listed, opened, "{}", case.name);
}

fn all_cases() -> Vec<Case> {
    let joined = joined_cases().into_iter().map(|[_, after]| after);
    let all = cases().into_iter().chain(training_cases()).chain(optional_cases()).chain(joined);
    let chosen = exponential_cases(&Semi2k::helped(2));
    let exponential = |case: &Case| case.plan.nodes.iter().any(|node| node.op.kind() == "exponential");
    assert!(chosen.iter().all(exponential), "where a helper prepares, exponentials are one gate");
    that_it_has(true, all.chain(chosen).collect())
}

fn check_all(parties: usize, cases: Vec<Case>) {
    assert!(cases.len() > 100, "{} cases", cases.len());
    for case in cases {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        check(&case, parties, &Seed::random());
    }
}

#[test]
fn two_parties_give_what_the_interpreter_does_in_every_form() {
    check_all(2, in_every_form(all_cases()));
}

#[test]
fn three_parties_give_what_the_interpreter_does() {
    check_all(3, all_cases());
}

#[test]
fn five_parties_give_what_the_interpreter_does() {
    check_all(5, all_cases());
}

/// More elements than are prepared at once, the last piece being no whole block.
#[test]
fn what_is_prepared_in_pieces_is_what_is_prepared_at_once() {
    let n = (1 << 16) + 777;
    let table: Vec<i64> = (0..512).map(|i| i * i - 77).collect();
    let piece = |i: i64| [i << 20, -i, 3 - i];
    let of = |op: Op, inputs, n, from, to| gate(op, inputs, n, from, to);
    let mut plans = vec![
        of(Op::Relu, 1, n, 20, 20),
        of(Op::Relu, 1, n, 12, 30),
        of(Op::Extend, 1, n, 12, 30),
        of(Op::IsNegative, 1, n, 12, 1),
        of(Op::Equal, 2, n, 9, 3),
        of(Op::Mul, 2, n, 33, 33),
        of(Op::Truncate { shift: 5, rounding: Rounding::Floor }, 1, n, 16, 11),
        of(Op::Truncate { shift: 5, rounding: Rounding::Stochastic }, 1, n, 16, 11),
    ];
    let mut choose = of(Op::Max, 2, n, 10, 10);
    let mut chosen = choose.nodes[2].clone();
    (choose.nodes[2].op, choose.nodes[2].inputs, choose.nodes[2].ty.bits) = (Op::IsNegative, vec![0], 1);
    (chosen.op, chosen.inputs) = (Op::Choose, vec![2, 1]);
    choose.nodes.push(chosen);
    choose.outputs[0].value = 3;
    let shift = 4;
    let mut read = of(Op::Relu, 1, 5000, 9, 40);
    read.nodes[1].op = Op::Lookup { tables: vec![table] };
    read.nodes[1].ty.shape = vec![1, 5000];
    let mut quadratics = of(Op::Relu, 1, 3000, 12, 40);
    quadratics.nodes[1].op = Op::Piecewise { shift, pieces: (0..256).map(piece).collect() };
    plans.extend([choose, read, quadratics]);
    for plan in plans {
        let name = format!("pieces of {}", plan.nodes.last().unwrap().op.kind());
        plan.check().unwrap_or_else(|e| panic!("{name}: {e}"));
        check(&Case { name, plan }, 2, &Seed::random());
    }
}

/// Masks and private bits of two uses are never the same.
#[test]
fn what_a_seed_expands_to_is_of_one_use() {
    let seed = PartySeed::new(0, Seed::random());
    let mut seen = std::collections::BTreeSet::new();
    let wires = (0..3).flat_map(|v| [Wire::node(v), Wire::node(v).inner(1), Wire::node(v).inner(2)]);
    for wire in wires {
        assert!(seen.insert(seed.mask(wire, Ring::R64, 1)[0]), "{wire:?}: its mask");
        let levels = (0..4).map(BitUse::Level);
        for usage in [BitUse::Mask, BitUse::Result].into_iter().chain(levels) {
            for chunk in 0..3 {
                let at = BitsAt { wire, usage, chunk };
                assert!(seen.insert(seed.private_bits(at, 1)[0]), "{at:?}");
            }
        }
    }
    assert_eq!(seen.len(), 9 * (1 + 6 * 3));
}
