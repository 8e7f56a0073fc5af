//! Estimates are sums of prices, a price sees who knows what, and network descriptions.

mod common;

use common::build::Model;
use common::{lower, single, ty};
use privet_plan::cost::{Cost, Known, Network, Offline, Operation, PerParty, Security, known};
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Node, Op, Type};
use privet_plan::suite::Toll;
use privet_plan::{Estimate, Plan, Precision, Prices, Rates, estimate};

#[test]
fn an_estimate_adds_up_and_scales_with_the_batch() {
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 2, 8, 8]);
    let c = m.conv(x, 4, 3, 1, 1, 1);
    let r = m.map(GraphOp::Relu, c);
    let f = m.flatten(r);
    let y = m.linear(f, 10);
    m.finish(y);
    let of = |batch: usize, network: Network| {
        let graph = m.graph.with_batch(batch).unwrap();
        let plan = lower(&graph, &m.params, &Precision::default()).unwrap().plan;
        estimate(&plan, &Toll, &Rates::default(), &network)
    };
    let (one, eight) = (of(1, Network::LAN), of(8, Network::LAN));
    assert_eq!((eight.total.macs, eight.total.comparisons), (8 * one.total.macs, 8 * one.total.comparisons));
    assert_eq!((eight.total.rounds, eight.session), (one.total.rounds, one.session));
    let mut sum = Cost::default();
    one.layers.iter().for_each(|l| sum += l.cost);
    assert_eq!(sum, one.total);
    let seconds: f64 = one.nodes.iter().map(|n| n.seconds).sum();
    assert!(seconds <= one.seconds && one.memory_bytes > 0);
    assert!(of(1, Network::WAN).seconds > one.seconds);
}

#[test]
fn a_step_of_training_has_an_estimate() {
    let of = |outputs: usize, momentum: bool| {
        let mut m = Model::new(1, 8);
        let (x, g) = (m.input(&[8, 30]), m.input(&[8, outputs]));
        let w = m.state(&[outputs, 30], 0.5);
        let y = m.op(GraphOp::Linear, &[x, w], &[8, outputs]);
        let error = m.op(GraphOp::Sub, &[y, g], &[8, outputs]);
        let turned = m.op(GraphOp::Permute { dims: vec![1, 0] }, &[error], &[outputs, 8]);
        let mut dw = m.op(GraphOp::MatMul, &[turned, x], &[outputs, 30]);
        let rate = m.public("rate", 0.1, 0.1);
        if momentum {
            let b = m.state(&[outputs, 30], 0.0);
            let kept = m.map(GraphOp::MulScalar { value: 0.9 }, b);
            dw = m.op(GraphOp::Add, &[kept, dw], &[outputs, 30]);
            m.update(b, dw);
        }
        let change = m.op(GraphOp::Mul, &[dw, rate], &[outputs, 30]);
        let next = m.op(GraphOp::Sub, &[w, change], &[outputs, 30]);
        m.update(w, next);
        let precision = Precision { keep_ring: true, ..Precision::default() };
        let plan = lower(&m.graph, &m.params, &precision).unwrap().plan;
        estimate(&plan, &Toll, &Rates::default(), &Network::LAN)
    };
    let (plain, momentum) = (of(10, false), of(10, true));
    let states = |e: &Estimate| e.session.client_bytes;
    assert!(states(&plain) >= 8 * 300 && states(&momentum) >= 2 * states(&plain));
    // momentum and gradient are added before one truncation
    assert!(momentum.total.wire_bytes.most() >= plain.total.wire_bytes.most());
    assert_eq!(momentum.total.comparisons, plain.total.comparisons);
    assert!(momentum.memory_bytes >= plain.memory_bytes + 16 * 300);
    assert!(plain.total.rounds > 0 && plain.total.macs >= 2 * 8 * 30 * 10);
    assert_eq!(of(20, false).total.macs, 2 * plain.total.macs);
    let keys = of(10, false).total.key_bytes.most();
    let more = of(20, false).total.key_bytes.most();
    assert!(keys > 0 && more.abs_diff(2 * keys) < keys / 20, "{keys} {more}");
}

#[test]
fn network_descriptions() {
    assert_eq!("lan".parse(), Ok(Network::LAN));
    assert_eq!("rtt=60ms, bandwidth=293Mbit/s".parse(), Ok(Network { rtt: 0.06, bandwidth: 293.0 * 125e3 }));
    assert_eq!("bandwidth=40MB/s,rtt=0.07".parse(), Ok(Network::WAN));
    for bad in [
        "",
        "moon",
        "rtt=1",
        "rtt=-1,bandwidth=1",
        "rtt=1,rtt=1,bandwidth=1",
        "rtt=x,bandwidth=1",
        "rtt=1,bandwidth=0",
        "rtt=1,bandwidth=NaN",
    ] {
        assert!(bad.parse::<Network>().is_err(), "{bad}");
    }
}

/// What families see of operands: owners know what they share and what local operations make of it, nobody what gates give.
#[test]
fn prices_are_told_who_knows_an_operand() {
    let node = |op, inputs: &[usize], shape: &[usize]| Node {
        op,
        inputs: inputs.to_vec(),
        ty: ty(shape, 32, 0),
        layer: String::new(),
        form: None,
    };
    let weight = |name: &str, owner: &str| Op::Weight { name: name.into(), owner: owner.into() };
    let mut plan = single(Op::Neg, &[ty(&[2, 2], 32, 0)], ty(&[2, 2], 32, 0));
    plan.nodes.extend([
        node(weight("w", "model_owner"), &[], &[2, 2]),
        node(weight("v", "data"), &[], &[2, 2]),
        node(Op::Public { name: "p".into(), limit: 1.0 }, &[], &[]),
        node(Op::State { name: "s".into(), owner: "model_owner".into() }, &[], &[2, 2]),
        node(Op::MulConst { value: 3 }, &[2], &[2, 2]),
        node(Op::Add, &[1, 3], &[2, 2]),
        node(Op::Add, &[2, 3], &[2, 2]),
        node(Op::Sub, &[6, 5], &[2, 2]),
        node(Op::MatMul, &[1, 6], &[2, 2]),
        node(Op::Scale, &[2, 4], &[2, 2]),
        node(Op::Neg, &[10], &[2, 2]),
    ]);
    plan.check().unwrap();
    let (data, model) = (Known::Role("data"), Known::Role("model_owner"));
    use Known::{Everybody, Nobody};
    let found = known(&plan);
    assert_eq!(
        found,
        [data, data, model, data, Everybody, Nobody, model, data, Nobody, Nobody, Nobody, Nobody, Nobody]
    );
    let product = Operation::of(&plan, 10, &found);
    assert_eq!(product.operands.iter().map(|x| x.known).collect::<Vec<_>>(), [data, model]);
    assert_eq!(product.types(), [&ty(&[2, 2], 32, 0); 2]);
}

/// A family whose parties prepare correlations among themselves, and pay nothing for what an owner multiplies itself.
struct Talkative;

impl Prices for Talkative {
    fn protocol(&self) -> &'static str {
        "talkative"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let shared = matches!(operation.op, Op::Input { .. });
        if shared || operation.operands.iter().any(|x| x.known != Known::Nobody) {
            return Cost { rounds: 1, ..Cost::default() };
        }
        let offline = Offline {
            transfers: 100_000,
            silent: 10_000,
            base: 10,
            values: 900_000,
            wire_bytes: 1_250_000,
            rounds: 2,
        };
        Cost { rounds: 1, key_bytes: PerParty::alike(64), offline, ..Cost::default() }
    }

    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }

    fn held_bytes(&self, ty: &Type) -> u64 {
        8 * ty.len() as u64
    }
}

#[test]
fn what_parties_prepare_among_themselves_is_estimated_apart() {
    let x = ty(&[2, 2], 32, 0);
    let node = |op, inputs: &[usize]| Node {
        op,
        inputs: inputs.to_vec(),
        ty: ty(&[2, 2], 32, 0),
        layer: "layer".into(),
        form: None,
    };
    let mut plan = single(Op::Relu, std::slice::from_ref(&x), x.clone());
    plan.nodes.extend([node(Op::Relu, &[1]), node(Op::Mul, &[2, 2])]);
    plan.outputs[0].value = 3;
    plan.check().unwrap();
    let rates = Rates::default();
    let of = |plan: &Plan| estimate(plan, &Talkative, &rates, &Network::LAN);
    let found = of(&plan);
    // the input and the first gate, whose operand its owner knows, take nothing; the two others do
    let two = Offline {
        transfers: 200_000,
        silent: 20_000,
        base: 20,
        values: 1_800_000,
        wire_bytes: 2_500_000,
        rounds: 4,
    };
    assert_eq!((found.total.offline, found.total.key_bytes.most(), found.total.rounds), (two, 128, 4));
    // 22 ns a transfer, 10 ns more where a code makes it, 90 us where a public key does, 3 ns a value; two rounds of 0.15 ms, and what a round
    // takes of a processor, with 1.25 MB at 10 Gbit/s
    let seconds = 2.0 * (2.2e-3 + 0.1e-3 + 0.9e-3 + 2.7e-3 + 1e-3 + 0.3e-3 + 2.0 * rates.seconds.rounds);
    assert!((found.offline_seconds - seconds).abs() < 1e-9, "{}", found.offline_seconds);
    assert!(found.seconds < 2e-3, "preparation is no part of a run");
    assert_eq!(found.memory_bytes, 2 * 8 * 4 + 64);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["total"]["offline"]["wire_bytes"], 2_500_000);
    // where nothing is prepared nothing is said of it
    let json = serde_json::to_value(estimate(&plan, &Toll, &Rates::default(), &Network::LAN)).unwrap();
    assert!(json.get("offline_seconds").is_none() && json["total"].get("offline").is_none());
}

/// Party 0 sends at one node, party 1 at the next: no party sends both, and the busiest one's are what JSON shows.
#[test]
fn bytes_are_added_party_by_party() {
    let mut sum = PerParty::from([10, 1]);
    sum += PerParty::from([2, 8]);
    assert_eq!((sum, sum.most(), sum.least()), (PerParty::from([12, 9]), 12, 9));
    assert_eq!(sum.exchanged(), PerParty::from([9, 12]));
    assert_eq!(serde_json::to_value(sum).unwrap(), 12);
    sum += PerParty::alike(5);
    sum -= PerParty::from([16, 0]);
    assert_eq!((sum.most(), sum.least()), (14, 1));
    assert_eq!(PerParty::from([3, 5, 4]).least(), 3);
}
