//! What training adds to plans: states and their updates, public numbers, bits, dropout, truncations that keep the ring.

use privet_plan::ir::{Op, Plan, Rounding, Update};
use privet_plan::suite::training_cases;
use privet_plan::{Coins, InterpretError, interpret, interpret_step};
use privet_ring::{Ring, Tensor};
use std::collections::BTreeMap;

fn case(name: &str) -> Plan {
    let found = training_cases().into_iter().find(|c| c.name.contains(name));
    found.unwrap_or_else(|| panic!("no case {name}")).plan
}

fn tensor(shape: &[usize], data: Vec<u64>) -> Tensor {
    Tensor::new(shape.to_vec(), data).unwrap()
}

fn operands(plan: &Plan, fill: impl Fn(&str, usize) -> u64) -> [BTreeMap<String, Tensor>; 2] {
    let mut all = [BTreeMap::new(), BTreeMap::new()];
    for node in &plan.nodes {
        let (which, name) = match &node.op {
            Op::Input { name, .. } | Op::Public { name, .. } => (0, name),
            Op::Weight { name, .. } | Op::State { name, .. } => (1, name),
            _ => continue,
        };
        let data = (0..node.ty.len()).map(|i| Ring::new(node.ty.bits).wrap(fill(name, i))).collect();
        all[which].insert(name.clone(), tensor(&node.ty.shape, data));
    }
    all
}

struct Halves;

impl Coins for Halves {
    fn draw(&mut self, _: usize, count: usize, _: u32) -> Option<Vec<u64>> {
        Some(vec![0; count])
    }

    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        Some((0..count).map(|i| if i % 2 == stream as usize % 2 { 0 } else { u64::from(u32::MAX) }).collect())
    }
}

#[test]
fn all_cases_are_valid() {
    for case in training_cases() {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
    }
}

#[test]
fn a_step_replaces_what_has_an_update() {
    let plan = case("updates states");
    let [inputs, states] = operands(&plan, |name, i| match name {
        "rate" => 1,
        "v" => (i as u64).wrapping_sub(7),
        _ => i as u64 + 1,
    });
    let (outputs, next) = interpret_step(&plan, &inputs, &states, &mut Halves).unwrap();
    assert_eq!(outputs.len(), 1);
    assert_eq!(next.keys().collect::<Vec<_>>(), ["v", "w"], "`still` has no update");
    let positive: Vec<u64> = (0..15).map(|i: u64| i.saturating_sub(7)).collect();
    assert_eq!(next["v"].data(), positive);
    assert_ne!(next["w"], states["w"]);
}

#[test]
fn what_is_chosen_is_positive_and_zero_is_not() {
    let plan = case("choose by a sign, 40 bits");
    let [inputs, none] = operands(&plan, |_, i| (i as u64).wrapping_sub(150));
    let y = interpret(&plan, &inputs, &none, &mut Halves).unwrap();
    let x: Vec<i64> = (0..300).map(|i| i - 150).collect();
    let relu: Vec<u64> = x.iter().map(|&x| x.max(0) as u64).collect();
    assert_eq!(y[0].data(), relu);
    assert_eq!(y[1].data(), relu, "the gradient is chosen by the same bit");
}

#[test]
fn coins_of_a_stream_are_alike() {
    let plan = case("dropout");
    let [inputs, none] = operands(&plan, |_, _| 5);
    let y = interpret(&plan, &inputs, &none, &mut Halves).unwrap();
    let kept: Vec<u64> = (0..300).map(|i| if i % 2 == 0 { 5 } else { 0 }).collect();
    assert_eq!((y[0].data(), y[1].data()), (&kept[..], &kept[..]));
    assert!(y[2].data().iter().all(|&v| v == 0), "streams 0 and 7 keep no element both");
    let refused = interpret(&plan, &inputs, &none, &mut privet_plan::NoCoins);
    assert!(matches!(refused, Err(InterpretError::NoCoins { .. })));
}

#[test]
fn a_truncation_that_keeps_the_ring_is_exact_up_to_its_promise_and_refused_beyond() {
    let mut plan = case("truncate 9 bits by 7 Floor");
    plan.nodes[1].op = Op::Reshape;
    plan.nodes[0].ty.bits = 9;
    plan.check().unwrap();
    let run = |v: i64| {
        let [inputs, none] = operands(&plan, |_, _| v as u64);
        interpret(&plan, &inputs, &none, &mut Halves).map(|y| Ring::new(9).signed(y[0].data()[0]))
    };
    for v in -128..128 {
        assert_eq!(run(v).unwrap(), v >> 7, "{v}");
    }
    for v in [-256, -129, 128, 255] {
        assert!(matches!(run(v), Err(InterpretError::Overflow { node: 2, .. })), "{v}");
    }
}

#[test]
fn bad_plans_are_refused() {
    let good = case("updates states");
    let node = |kind: &str| good.nodes.iter().position(|n| n.op.kind() == kind).unwrap();
    let (state, scale, mat_mul) = (node("state"), node("scale"), node("mat_mul"));
    let refused = |change: &dyn Fn(&mut Plan), why: &str| {
        let mut plan = good.clone();
        change(&mut plan);
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(&|p| p.updates[0].value = 999, "not there");
    refused(&|p| p.updates[0].state = mat_mul, "only states");
    refused(&|p| p.updates[1].state = state, "another type");
    refused(&|p| p.updates.push(Update { ..p.updates[0] }), "twice");
    refused(&|p| p.nodes[scale].inputs[1] = 0, "scales by");
    refused(&|p| p.nodes[mat_mul].inputs[1] = p.nodes[scale].inputs[1], "not public");
    refused(&|p| p.outputs[0].value = p.nodes[scale].inputs[1], "public number");

    let mut choose = case("choose by a sign, 40 bits");
    choose.nodes[3].ty.bits = 2;
    assert!(choose.check().is_err(), "bits are of one bit");
    let mut truncate = case("truncate 64 bits by 62 Floor");
    truncate.nodes[2].op = Op::Truncate { shift: 63, rounding: Rounding::Floor };
    truncate.nodes.iter_mut().for_each(|n| n.ty.frac = 63);
    truncate.nodes[2].ty.frac = 0;
    assert!(truncate.check().is_err(), "no room for the promise");
}
