//! What one evaluator sees is uniform *given what it holds*: its own seeds stay as they are, the other evaluator's and the
//! dealer's are drawn anew, and whatever reaches it must be new as well ([`privet_plan::suite::unseen`]).
//!
//! A view: masked inputs and weights, key frames, and every opened value. False alarms have a probability of 2^-60 a test, and
//! there are fewer than 2^8.

mod common;

use common::World;
use privet_family::{Class, Forecast, When};
use privet_fss::{Fss, PartyId, PartySeed, RecordSeeds, SessionSeeds};
use privet_plan::ir::{Op, Plan};
use privet_plan::suite::{Operands, View, small_chunked, small_operands, small_plans, unseen};
use privet_prg::{HashKeys, Seed};
use privet_ring::{Ring, unpack};
use privet_testkit::Mesh;

/// What evaluator `b` holds whatever the others draw.
struct Held {
    record: Seed,
    session: Seed,
    hash: HashKeys,
    state: Seed,
}

impl Held {
    fn random() -> Held {
        let hash = HashKeys::from_seed(&Seed::random());
        Held { record: Seed::random(), session: Seed::random(), hash, state: Seed::random() }
    }
}

/// One run in which all but `held` is new.
fn view(plan: &Plan, operands: &[Operands; 2], b: usize, held: &Held) -> View {
    let seeds = |own: &Seed| {
        let of = |party: PartyId| if party.index() == b { own.clone() } else { Seed::random() };
        PartyId::BOTH.map(|party| PartySeed::new(party, of(party)))
    };
    let session = SessionSeeds { parties: seeds(&held.session), hash: held.hash };
    let record = RecordSeeds { parties: seeds(&held.record), dealer: Seed::random() };
    let states = |_: usize| held.state.clone();
    let (world, mut keys) = World::with(plan, [&operands[0], &operands[1]], session, record, &states);
    let mut view = View::default();
    for (v, node) in plan.nodes.iter().enumerate() {
        let masked = match &node.op {
            Op::Weight { name, .. } => world.weights.get(name),
            _ => world.inputs.get(&v),
        };
        if let Some(masked) = masked {
            view.elements(format!("masked operand {v}"), Ring::new(node.ty.bits), masked);
        }
    }
    for (i, frame) in keys[b].frames().enumerate() {
        view.bytes(format!("key frame {i}"), frame);
    }
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let [k0, k1] = &mut keys;
    let _ = world.run([k0, k1], mesh).map(Result::unwrap);
    let sent = |party| log.of(party).into_iter().filter(|m| !m.bytes.is_empty());
    let mut openings = sent(0).zip(sent(1));
    for planned in Fss.openings(plan) {
        let run = planned.when == When::Run && planned.class == Class::Masked;
        if !run || planned.node.is_some_and(|v| matches!(plan.nodes[v].op, Op::Input { .. })) {
            continue;
        }
        let (x, y) = openings.next().expect("an opening that was planned");
        let (n, ring) = (planned.elements as usize, Ring::new((planned.bits / planned.elements) as u32));
        let [x, y] = [x, y].map(|m| unpack(ring, &m.bytes, n).unwrap());
        view.elements(format!("opened `{}`", planned.what), ring, &common::add(ring, &x, &y));
    }
    assert!(openings.next().is_none(), "an opening that was not planned");
    view
}

fn nothing_is_found_by(b: usize) {
    for plan in small_plans().into_iter().chain(small_chunked()) {
        let (operands, held) = (small_operands(&plan), Held::random());
        if let Err(what) = unseen(|| view(&plan, &operands, b, &held)) {
            panic!("{}: evaluator {b} learns something: {what}", plan.name);
        }
    }
}

#[test]
fn evaluator_0_sees_uniform_bits_whatever_it_holds() {
    nothing_is_found_by(0);
}

#[test]
fn evaluator_1_sees_uniform_bits_whatever_it_holds() {
    nothing_is_found_by(1);
}

/// Every operation that opens something is in a plan.
#[test]
fn no_gate_is_left_out() {
    let tested: std::collections::BTreeSet<String> =
        small_plans().iter().flat_map(|plan| plan.nodes.iter().map(|node| node.op.kind())).collect();
    use privet_plan::suite::{cases, optional_cases, training_cases};
    for case in cases().into_iter().chain(training_cases()).chain(optional_cases()) {
        for node in &case.plan.nodes {
            let opens = Fss.openings(&case.plan).iter().any(|o| {
                o.class == Class::Masked
                    && o.node.is_some_and(|v| case.plan.nodes[v].op.kind() == node.op.kind())
            });
            assert!(!opens || tested.contains(&node.op.kind()), "`{}` is in no plan here", node.op.kind());
        }
    }
}
