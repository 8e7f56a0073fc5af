//! The shared suite, against the interpreter; what is declared against what is counted; and the tables of docs/heot.md.

use crate::coins::Drawn;
use crate::context::{Cx, RunError};
use crate::evaluator::walk;
use crate::gate::{At, Kind, kind};
use crate::hints::Life;
use crate::leaf::{self, Digits, Leaves, Wanted};
use crate::material::{Stock, needs, source, transfers};
use crate::product::{self, Second};
use crate::{
    Given, Heot, Hints, Link, MaterialMaker, Outcome, PackingAim, Session, Side, Spool, Uses, Weights,
    compare, most_runs, mux, planes, refusals,
};
use privet_family::keys::{KeyError, MemoryKeys};
use privet_family::{Forecast, is_static};
use privet_net::{Channel, Step};
use privet_ot::{Pair, Source, Width};
use privet_plan::Plan;
use privet_plan::cost::{Operation, PerParty, Prices, known};
use privet_plan::interpret_step;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type, ValueId};
use privet_plan::suite::{
    Case, Operands, View, cases, in_form, joined_cases, optional_cases, training_cases, unseen,
};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::{Ring, Tensor};
use privet_testkit::{Links, Mesh, Sent, record};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

mod gates;
mod material;
mod sessions;

/// The number of a run's first step, above those of what is prepared.
const FIRST: u32 = 1 << 20;

/// Transfers, prepared, between the two.
fn pair(links: &mut Links, [send, receive]: [usize; 2]) -> Pair {
    let step = Step::new(0, "transfers");
    let channel = links.to(1 - links.me());
    let mut pair = Pair::start(channel, &step, Source::SoftSpoken(Width::Four), &Seed::random()).unwrap();
    pair.prepare(channel, &step, send, receive).unwrap();
    pair
}

/// This side's share of operands by node: uniform, and what is left.
fn shares(plan: &Plan, side: Side, inputs: &Operands, seed: &Seed) -> HashMap<ValueId, Vec<u64>> {
    let mut all = HashMap::new();
    for (v, node) in plan.nodes.iter().enumerate() {
        if let Op::Input { name, .. } = &node.op {
            let ring = Ring::new(node.ty.bits);
            let mask = seed.derive(Domain::Mask, v as u64).stream().elements(ring, node.ty.len());
            let rest = inputs[name].data().iter().zip(&mask);
            let share = match side {
                Side::Server => rest.map(|(x, m)| ring.wrap(x.wrapping_sub(*m))).collect(),
                Side::Client => mask,
            };
            all.insert(v, share);
        }
    }
    all
}

/// What a node declares that it uses; bytes of a layer with hints follow from the session.
fn declared(plan: &Plan, session: &Session, v: ValueId) -> Uses {
    let Kind::Gate(gate) = kind(&plan.nodes[v].op) else { return Uses::default() };
    if is_static(plan, v) {
        return Uses::default();
    }
    let mut uses = gate.uses(&At { plan, id: v });
    uses.bytes[Side::Client as usize] += session.run_bytes(v).unwrap_or(0) as u64;
    uses
}

/// Everything of a run at one side.
struct Ran {
    outcome: Outcome,
    declared: Vec<Uses>,
    shares: HashMap<ValueId, Vec<u64>>,
    name: [u8; 32],
}

/// What a side keeps of a run.
fn kept(make: impl FnOnce(crate::Keep<'_>)) -> MemoryKeys {
    let mut frames = MemoryKeys::default();
    make(&mut |message| {
        frames.push(message.to_vec());
        Ok(())
    });
    frames
}

/// The side's weights, of an operand's names.
fn weights(operands: &Operands) -> BTreeMap<String, Vec<u64>> {
    operands.iter().map(|(name, t)| (name.clone(), t.data().to_vec())).collect()
}

/// Where hints rest: none of them in memory.
fn spool() -> Spool {
    Spool::holding(0, tempfile::tempfile)
}

/// What packings are for.
const AIM: PackingAim = PackingAim { runs: 10, link: Link::Near };

/// Hints that are made for this.
fn hints(plan: &Plan, w: &BTreeMap<String, Vec<u64>>) -> Arc<Hints> {
    let weights = Weights::new(plan, w.clone()).unwrap();
    Arc::new(Hints::new(plan, Arc::new(weights), AIM, 1, spool()))
}

/// A session, with masks of as many runs as there are places for.
fn session(
    links: &mut Links,
    plan: &Plan,
    w: &BTreeMap<String, Vec<u64>>,
    masks: &mut [crate::Keep<'_>],
) -> Session {
    let side = Side::ALL[links.me()];
    let channel = links.to(1 - links.me());
    match side {
        Side::Server => Session::serve(plan, hints(plan, w), masks, channel).unwrap(),
        Side::Client => Session::join(plan, 1, spool(), masks, channel).unwrap(),
    }
}

/// A run's material, alone.
fn make_material(
    plan: &Plan,
    at: (Side, Link),
    channel: &mut dyn Channel,
    keep: crate::Keep<'_>,
) -> Result<(), RunError> {
    MaterialMaker::start(plan, at, 1, 1, channel)?.run(channel, keep)
}

fn party(links: &mut Links, plan: &Plan, operands: &[Operands; 2], seed: &Seed) -> Ran {
    party_over(Link::Near, links, plan, operands, seed)
}

/// The same with material made for such a link.
fn party_over(link: Link, links: &mut Links, plan: &Plan, operands: &[Operands; 2], seed: &Seed) -> Ran {
    let side = Side::ALL[links.me()];
    let mut made = kept(|keep| make_material(plan, (side, link), links.to(1 - links.me()), keep).unwrap());
    let stored = made.bytes() as u64;
    let (mut masks, w) = (MemoryKeys::default(), weights(&operands[1]));
    let mut keep = |message: &[u8]| {
        masks.push(message.to_vec());
        Ok(())
    };
    let session = session(links, plan, &w, &mut [&mut keep]);
    let channel = links.to(1 - links.me());
    let publics = plan.nodes.iter().filter_map(|node| {
        let Op::Public { name, .. } = &node.op else { return None };
        Some((name.clone(), operands[0][name].data()[0]))
    });
    let inputs = shares(plan, side, &operands[0], seed);
    let given = Given { inputs, publics: publics.collect(), masks: &mut masks };
    let mut cx = Cx::new(side, channel, &mut made, seed.derive(Domain::Common, 0), FIRST);
    let mut shares = HashMap::new();
    let mut watch = |v: ValueId, share: &[u64]| drop(shares.insert(v, share.to_vec()));
    let outcome = walk(&mut cx, plan, &session, given, &mut watch).unwrap();
    let declared: Vec<Uses> = (0..plan.nodes.len()).map(|v| declared(plan, &session, v)).collect();
    drop(cx);
    assert_eq!([made.bytes(), masks.bytes()], [0; 2], "all of a record is read, and none of it twice");
    let said: u64 = declared.iter().map(|uses| uses.stored()[side as usize]).sum();
    assert_eq!(stored, said, "bytes of the record of the {side:?}");
    Ran { outcome, declared, shares, name: *session.name() }
}

fn check(case: &Case, seed: &Seed) {
    let mut random = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || random.elements(Ring::R64, 1)[0]);
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let ran = mesh.run(|links| party(links, &case.plan, &operands, seed));
    let coins = seed.derive(Domain::Common, 0);
    let mut drawn = Drawn { plan: &case.plan, seed: &coins, shares: [&ran[0].shares, &ran[1].shares] };
    let (truth, _) = interpret_step(&case.plan, &operands[0], &operands[1], &mut drawn).unwrap();
    let sum = |i: usize| -> Vec<u64> {
        let ring = Ring::new(case.plan.nodes[case.plan.outputs[i].value].ty.bits);
        let both = ran[0].outcome.outputs[i].iter().zip(ran[1].outcome.outputs[i].iter());
        both.map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
    };
    let found: Vec<Vec<u64>> = (0..truth.len()).map(sum).collect();
    case.compare(&found, &truth);
    for side in Side::ALL {
        let ran = &ran[side as usize];
        for (v, (declared, used)) in ran.declared.iter().zip(&ran.outcome.used).enumerate() {
            assert_eq!(declared, used, "{}: node {v} {:?} at {side:?}", case.name, case.plan.nodes[v].op);
        }
        let sent: u64 = ran.outcome.nodes.iter().map(|node| node.sent_bytes).sum();
        let logged: Vec<_> = log.of(side as usize).into_iter().filter(|sent| sent.step.id > FIRST).collect();
        assert_eq!(sent, record::bytes(&logged), "{}: bytes that {side:?} sent", case.name);
        let made: u64 = ran.declared.iter().map(|uses| uses.made().bytes[side as usize]).sum();
        assert_eq!(made, before(&log.of(side as usize)), "{}: what {side:?} sent before", case.name);
    }
    assert_eq!(ran[0].name, ran[1].name, "{}: both sides name the hints alike", case.name);
    let hints = log.of(0).into_iter().filter(|sent| sent.step.name.ends_with(" / hint"));
    let hints = record::bytes(&hints.collect::<Vec<_>>()) as f64;
    // norms may be larger than a price assumes, and other packings best for them
    let said = Heot::default().session(&case.plan).wire_bytes.most() as f64;
    let near = (0.4 * hints..=2.5 * hints).contains(&said);
    assert!(near, "{}: {hints} bytes of hints, {said} said", case.name);
    openings(case, &[0, 1].map(|side| log.of(side)));
    prices(case, &ran);
}

/// The audit lists what the sides opened to each other, in their order, with its size.
fn openings(case: &Case, sent: &[Vec<Sent>; 2]) {
    let planned: Vec<_> =
        Heot::default().openings(&case.plan).into_iter().filter(|o| o.what.starts_with("masked ")).collect();
    let opened = sent.each_ref().map(|sent| -> Vec<&Sent> {
        let of_both =
            |name: &str| name.ends_with(" / masked factors") || name.ends_with(" / masked matrices");
        let is_one = |sent: &&Sent| sent.step.id > FIRST && of_both(&sent.step.name);
        sent.iter().filter(is_one).collect()
    });
    let planned_nodes: Vec<_> = planned.iter().map(|planned| planned.node).collect();
    let openings_of = |nodes: &[_], node| nodes.iter().filter(|other| **other == node).count();
    for sent in &opened {
        assert_eq!(sent.len(), planned.len(), "{}: openings of operands", case.name);
    }
    for (i, ((planned, server), client)) in planned.iter().zip(&opened[0]).zip(&opened[1]).enumerate() {
        assert_eq!(*server.step.name, *format!("{} / {}", planned.layer, planned.what), "{}", case.name);
        let node = &case.plan.nodes[planned.node.unwrap()];
        // of a sum of products one pair of factors after the other
        let before = openings_of(&planned_nodes[..i], planned.node);
        let pair = node.inputs.chunks(2).nth(before).unwrap_or_default();
        let known = matches!(node.op, Op::Mul) && pair.iter().any(|i| is_static(&case.plan, *i));
        // where the server knows one operand, each side opens one of them and not its share of both
        let shares = if known { 1 } else { 2 };
        let bits = 8 * (server.bytes.len() + client.bytes.len()) as u64;
        let said = shares * planned.bits;
        assert!(bits >= said && bits < said + 32, "{}: {bits} bits opened, {planned:?}", case.name);
    }
}

/// Bytes of messages that make material, beside those of transfers, public coins, and keys that products share.
fn before(sent: &[Sent]) -> u64 {
    let is_one = |sent: &&Sent| {
        let name = &*sent.step.name;
        let is_encrypted = name.starts_with("encrypted") || name.starts_with("gathered");
        name == "corrections" || is_encrypted && !name.ends_with("public coins") && !name.ends_with("keys")
    };
    sent.iter().filter(is_one).map(|sent| sent.bytes.len() as u64).sum()
}

/// A price is what both sides counted; of a layer with a hint it is near it.
fn prices(case: &Case, ran: &[Ran]) {
    let known = known(&case.plan);
    for (v, node) in case.plan.nodes.iter().enumerate() {
        let Kind::Gate(_) = kind(&node.op) else { continue };
        if node.op.is_local() || is_static(&case.plan, v) || node.ty.is_empty() {
            continue;
        }
        let cost = Heot::default().operation(&Operation::of(&case.plan, v, &known));
        let used = &ran[0].outcome.used[v];
        let sent = PerParty::from(used.bytes);
        assert_eq!(cost.rounds, used.steps, "{}: steps of node {v}", case.name);
        let read = [0, 1].map(|side: usize| ran[side].outcome.nodes[v].key_bytes);
        if crate::gates::linear::has_hint(&At { plan: &case.plan, id: v }) {
            let off = cost.wire_bytes.most() as f64 / sent.most() as f64;
            assert!((0.4..2.5).contains(&off), "{}: node {v} sent {sent:?}, {cost:?}", case.name);
            // both keep a share of the result, and the client what it sends
            let kept = cost.key_bytes.least();
            assert_eq!(read, [kept, kept + sent.most()], "{}: what node {v} read of its masks", case.name);
        } else {
            assert_eq!(cost.wire_bytes, sent, "{}: bytes of node {v}", case.name);
            assert_eq!(read, used.stored(), "{}: what node {v} read of the records", case.name);
            assert_eq!(cost.key_bytes, read.into(), "{}: bytes of the records of node {v}", case.name);
            let made = used.made();
            let offline = [cost.offline.wire_bytes, cost.offline.values];
            assert!(offline[0] >= made.bytes[0].max(made.bytes[1]), "{}: node {v}", case.name);
            assert_eq!(offline[1], made.values, "{}: transforms of node {v}", case.name);
        }
    }
}

/// Every plan of the suite that the family has gates for; it says which it has not.
#[test]
fn protocol_equals_interpreter_on_the_suite() {
    let joined = joined_cases().into_iter().map(|[_, after]| after);
    let all = cases().into_iter().chain(optional_cases()).chain(training_cases()).chain(joined);
    // comparisons in both forms, one after the other
    let both = Digits::FORMS.into_iter().cycle();
    let all = all
        .zip(both)
        .map(|(case, form)| Case { plan: in_form(&case.plan, form).unwrap_or(case.plan), ..case });
    let (given, refused): (Vec<Case>, Vec<Case>) = all.partition(|case| refusals(&case.plan).is_empty());
    let lacked = ["waves", "dropout", "states", "matrices"];
    for case in &refused {
        let said: Vec<String> = refusals(&case.plan).iter().map(|r| r.to_string()).collect();
        let known = lacked.iter().any(|what| said.iter().any(|s| s.contains(what.trim_end_matches('s'))));
        assert!(known, "{}: {said:?}", case.name);
    }
    assert!(given.len() > 110, "{} of {} plans", given.len(), given.len() + refused.len());
    println!("{} of {} plans", given.len(), given.len() + refused.len());
    let mut failed = Vec::new();
    for case in &given {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if std::panic::catch_unwind(|| check(case, &Seed::random())).is_err() {
            failed.push(&case.name);
        }
    }
    assert!(failed.is_empty(), "these went wrong, as said above: {failed:?}");
}

/// A plan whose convolution has no packing is refused before a session is begun.
#[test]
fn convolutions_without_a_packing_are_refused() {
    let is_conv = |op: &Op| matches!(op, Op::Conv2d { .. });
    let has_one = |case: &Case| case.plan.nodes.iter().any(|node| is_conv(&node.op));
    let mut plan = cases().into_iter().find(has_one).unwrap().plan;
    assert!(refusals(&plan).is_empty());
    for node in &mut plan.nodes {
        if let Op::Conv2d { geometry } = &mut node.op {
            (geometry.kernel, geometry.stride) = ([3, 3], [1, 1]);
            (geometry.dilation, geometry.padding) = ([36, 36], [36; 4]);
        }
    }
    let said: Vec<String> = refusals(&plan).iter().map(|r| r.to_string()).collect();
    assert!(said.iter().any(|s| s.contains("no packing")), "{said:?}");
}
