//! Declared prices, by hand, and network descriptions.

mod common;

use common::build::Model;
use common::{single, ty};
use privet_plan::cost::{Cost, Fss, GateCost, Network};
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Op, Rounding, Type};
use privet_plan::{Precision, Rates, estimate, lower};
use privet_ring::Pool2d;

fn price(op: Op, operands: &[Type], result: Type) -> Cost {
    single(op.clone(), operands, result.clone()).check().unwrap();
    Fss.operation(&op, &operands.iter().collect::<Vec<_>>(), &result)
}

#[test]
fn gates_of_the_masked_family() {
    let x = ty(&[1000], 64, 16);
    let relu = price(Op::Relu, std::slice::from_ref(&x), x.clone());
    // n = 63: 16 * (56 + 2) bytes and 57 calls; three words; one bit and one word opened
    assert_eq!((relu.comparisons, relu.aes, relu.rounds), (1000, 57_000, 2));
    assert_eq!((relu.key_bytes_other, relu.key_bytes), (928_000, 928_000 + 24_000));
    assert_eq!(relu.wire_bytes, 125 + 8000);
    let op = Op::Truncate { shift: 16, rounding: Rounding::Floor };
    let truncate = price(op, std::slice::from_ref(&x), ty(&[1000], 48, 0));
    assert_eq!((truncate.key_bytes_other, truncate.aes), (16 * 11 * 1000, 10_000));
    assert_eq!(truncate.key_bytes - truncate.key_bytes_other, 2 * 6 * 1000);
    assert_eq!(truncate.wire_bytes, 125 + 6000);
    let small = price(Op::Extend, &[ty(&[8], 5, 0)], ty(&[8], 12, 0));
    assert_eq!(
        (small.key_bytes_other, small.key_bytes, small.aes),
        (8 * 32, 8 * 32 + 24, 8),
        "early termination needs no level"
    );
    let w = [ty(&[4, 30], 64, 16), ty(&[10, 30], 64, 16)];
    let linear = price(Op::Linear, &w, ty(&[4, 10], 64, 32));
    assert_eq!((linear.macs, linear.wire_bytes, linear.key_bytes, linear.rounds), (1200, 320, 320, 1));
    let window =
        Pool2d { kernel: [3, 3], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let pool = price(Op::MaxPool2d { window }, &[ty(&[1, 1, 5, 5], 32, 0)], ty(&[1, 1, 2, 2], 32, 0));
    assert_eq!((pool.comparisons, pool.rounds), (2 * 2 * 5 + 2 * 2 * 2, 8));
    let argmax = price(Op::Argmax { dim: 1 }, &[ty(&[7, 10], 32, 0)], ty(&[7], 8, 0));
    // four levels: bit, value, index
    assert_eq!((argmax.comparisons, argmax.rounds), (63, 12));
    assert_eq!(price(Op::IsNegative, &[ty(&[64], 32, 0)], ty(&[64], 8, 0)).wire_bytes, 8 + 64);
    let equal = price(Op::Equal, &[ty(&[8], 32, 0), ty(&[8], 32, 0)], ty(&[8], 8, 0));
    assert_eq!((equal.key_bytes, equal.aes), (8 * (16 * 27 + 2), 8 * 26));
    // two and a half frames of words: the second one is evaluator 0's
    let frame = 64 * 1024;
    let many = price(
        Op::Mul,
        &[ty(&[5 * frame / 2], 64, 0), ty(&[5 * frame / 2], 64, 0)],
        ty(&[5 * frame / 2], 64, 0),
    );
    assert_eq!((many.key_bytes, many.key_bytes_other), (8 * frame as u64 * 3 / 2, 8 * frame as u64));
}

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
        estimate(&plan, &Fss, &Rates::default(), &network)
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
    let of = |outputs: usize, momentum: bool, prices: &dyn GateCost| {
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
        estimate(&plan, prices, &Rates::default(), &Network::LAN)
    };
    let rep3 = privet_plan::cost::Rep3::default();
    for prices in [&Fss as &dyn GateCost, &rep3] {
        let (plain, momentum) = (of(10, false, prices), of(10, true, prices));
        let states = |e: &privet_plan::Estimate| e.session.client_bytes;
        assert!(states(&plain) >= 8 * 300 && states(&momentum) >= 2 * states(&plain));
        // momentum and gradient are added before one truncation
        assert!(momentum.total.wire_bytes >= plain.total.wire_bytes);
        assert_eq!(momentum.total.comparisons, plain.total.comparisons);
        assert!(momentum.memory_bytes >= plain.memory_bytes + 16 * 300);
        assert!(plain.total.rounds > 0 && plain.total.macs >= 2 * 8 * 30 * 10);
        assert_eq!(of(20, false, prices).total.macs, 2 * plain.total.macs);
    }
    let keys = of(10, false, &Fss).total.key_bytes;
    let more = of(20, false, &Fss).total.key_bytes;
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

#[test]
fn gates_of_the_replicated_family() {
    use privet_plan::cost::Rep3;
    let price = |op: Op, operands: &[Type], result: Type| {
        single(op.clone(), operands, result.clone()).check().unwrap();
        Rep3::default().operation(&op, &operands.iter().collect::<Vec<_>>(), &result)
    };
    let w = [ty(&[4, 30], 37, 8), ty(&[10, 30], 37, 8)];
    let linear = price(Op::Linear, &w, ty(&[4, 10], 37, 16));
    assert_eq!((linear.macs, linear.wire_bytes, linear.key_bytes, linear.rounds), (1200, 185, 0, 1));
    let op = Op::Truncate { shift: 16, rounding: Rounding::OneUlp };
    assert_eq!(price(op, &[ty(&[1000], 64, 16)], ty(&[1000], 48, 0)), Cost::default());
}
