//! Openings that share a round: how they are counted, and an order in which more of them do.

use privet_plan::cost::{Cost, Network, OnTheWay, Operation, Prices, Security, estimate, rounds_of};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_plan::lower::{Lowered, Precision, lower};
use privet_plan::suite::{Numbers, Toll, overlapped, workload};
use privet_plan::{NoCoins, Rates, Refusal, Target, encode_inputs, encode_weights, interpret};
use privet_ring::Tensor;
use std::collections::BTreeMap;

/// The same prices of parties that wait for an opening only when they need it.
struct Overlapping(Toll);

impl Prices for Overlapping {
    fn protocol(&self) -> &'static str {
        self.0.protocol()
    }

    fn security(&self) -> Security {
        self.0.security()
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        self.0.operation(operation)
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn output(&self, ty: &Type) -> Cost {
        self.0.output(ty)
    }
}

impl Target for Overlapping {
    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        self.0.refusals(plan)
    }
}

fn node(op: Op, inputs: &[usize]) -> Node {
    let ty = Type { shape: vec![2], bits: 20, frac: 0 };
    Node { op, inputs: inputs.to_vec(), ty, layer: String::new(), form: None }
}

fn input(name: &str) -> Node {
    node(Op::Input { name: name.into(), owner: "o".into(), limit: 1.0 }, &[])
}

/// Rounds that each of these nodes adds, where node v opens `rounds[v]` times.
fn added(nodes: &[Node], rounds: &[u64]) -> Vec<u64> {
    let mut sent = OnTheWay::default();
    let added = nodes.iter().zip(rounds).enumerate().map(|(v, (node, rounds))| sent.pass(v, node, *rounds));
    added.collect()
}

#[test]
fn an_opening_is_waited_for_when_a_node_needs_it() {
    let local = Op::AddConst { value: 1 };
    let nodes = [
        input("x"),
        node(Op::Mul, &[0, 0]),
        node(Op::Relu, &[0]),      // sends its first beside 1, waits twice
        node(Op::Mul, &[0, 0]),    // beside the last of 2
        node(local.clone(), &[0]), // needs nothing of these
        node(Op::Mul, &[1, 4]),    // 1 came with the first of 2
        node(local, &[3]),         // waits for 2, 3 and 5
        node(Op::Mul, &[0, 0]),    // so this one is alone
        node(Op::Mul, &[6, 7]),    // and this one waits for it
    ];
    assert_eq!(added(&nodes, &[0, 1, 3, 1, 0, 1, 0, 1, 1]), [0, 1, 2, 0, 0, 0, 0, 1, 1]);
    assert_eq!(rounds_of(&nodes, &[0, 1, 3, 1, 0, 1, 0, 1, 1]), 5);
}

#[test]
fn another_order_changes_no_result() {
    for (name, saved) in [("bert-small", 5), ("network-c", 0), ("lenet", 0)] {
        let (graph, params) = workload::workload(name, 1);
        let precision = Precision { bits: Some(64), fraction: Some(16), ..Precision::default() };
        let Lowered { plan, parameters, .. } = lower(&graph, &params, &precision, &Toll).unwrap();
        let mixed = overlapped(plan.clone(), &Overlapping(Toll));
        mixed.check().unwrap();
        let rounds = |plan: &Plan, prices: &dyn Prices| {
            estimate(plan, prices, &Rates::default(), &Network::LAN).total.rounds
        };
        let [waiting, written] =
            [&Toll as &dyn Prices, &Overlapping(Toll)].map(|prices| rounds(&plan, prices));
        let fewest = rounds(&mixed, &Overlapping(Toll));
        println!("{name}: {waiting} rounds, {written} of them on their own, {fewest} in another order");
        assert!(fewest + saved <= written && written <= waiting, "{name}");
        let inputs = encode_inputs(&plan, None, &workload::inputs(&graph)).unwrap();
        // the same for every element, as coins go by node
        let mut coins = |_: usize, n: usize, _: u32| vec![0; n];
        let mut outputs = |plan: &Plan| {
            let weights = encode_weights(plan, None, &parameters).unwrap();
            interpret(plan, &inputs, &weights, &mut coins).unwrap()
        };
        assert_eq!(outputs(&plan), outputs(&mixed), "{name}");
    }
}

/// Gates that need each other in every way: an order is one, nothing is lost, and it never takes more rounds.
#[test]
fn random_plans_are_put_in_order() {
    let mut numbers = Numbers(7);
    for round in 0..200 {
        let mut nodes = vec![input("x"), input("y")];
        for _ in 0..30 {
            let mut pick = || (numbers.next() % nodes.len() as u64) as usize;
            let (a, b) = (pick(), pick());
            nodes.push(match numbers.next() % 4 {
                0 => node(Op::Add, &[a, b]),
                1 => node(Op::Mul, &[a, b]),
                2 => node(Op::Relu, &[a]),
                _ => node(Op::AddConst { value: 3 }, &[b]),
            });
        }
        let all: Vec<usize> = (2..nodes.len()).collect();
        let output = |&value: &usize| Output { value, name: format!("y{value}"), to: "r".into() };
        let outputs = all.iter().map(output).collect();
        let (version, name) = (PLAN_VERSION, format!("random {round}"));
        let plan = Plan { version, name, batch: 2, nodes, outputs, updates: vec![] };
        let mixed = overlapped(plan.clone(), &Overlapping(Toll));
        mixed.check().unwrap();
        let rounds =
            |plan: &Plan| estimate(plan, &Overlapping(Toll), &Rates::default(), &Network::LAN).total.rounds;
        assert!(rounds(&mixed) <= rounds(&plan), "{}", plan.name);
        let inputs = ["x", "y"].map(|name| {
            let data = (0..2).map(|_| numbers.next() & 0xff).collect();
            (name.to_string(), Tensor::new(vec![2], data).unwrap())
        });
        let of =
            |plan| interpret(plan, &BTreeMap::from(inputs.clone()), &BTreeMap::new(), &mut NoCoins).unwrap();
        assert_eq!(of(&plan), of(&mixed), "{}", plan.name);
    }
}

/// A family whose parties wait for every opening keeps the order that it had.
#[test]
fn who_waits_keeps_the_order() {
    let plan = Plan {
        version: PLAN_VERSION,
        name: String::new(),
        batch: 1,
        nodes: vec![input("x"), node(Op::Mul, &[0, 0]), node(Op::Mul, &[0, 0])],
        outputs: vec![],
        updates: vec![],
    };
    let total = |prices: &dyn Prices| estimate(&plan, prices, &Rates::default(), &Network::LAN).total.rounds;
    // sharing the input is a round too
    assert_eq!((total(&Toll), total(&Overlapping(Toll))), (3, 2));
}
