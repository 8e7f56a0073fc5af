//! Shares are wiped before their memory is given back: an allocator of this binary's own looks at every block that is freed.

mod common;

use common::World;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type, Update, ValueId};
use privet_prg::Seed;
use privet_rep3::{Component, Given, Outcome, PartyId, Portion, Security, Share};
use privet_ring::Ring;
use privet_testkit::{Freed, Mesh};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What component 0 of everything that is shared is made of here, and nothing else is.
const MARK: [u8; 16] = *b"\xE7a component 00\xE7";

#[global_allocator]
static FREED: Freed = Freed::with(MARK);

const N: usize = 64;

fn marked() -> Vec<u64> {
    MARK.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).cycle().take(N).collect()
}

/// Each party's share: component 0 is the mark, which party 0 has first and party 2 second.
fn shares() -> [Share; 3] {
    let components = [marked(), vec![1; N], vec![2; N]];
    PartyId::ALL.map(|id| Share::new(components[id.index()].clone(), components[id.next().index()].clone()))
}

/// An input that is kept as an output, a weight that is added to a state, a comparison and, where nothing is proved, a product
/// before it: folds of what is proved about products copy components as they are (SECURITY.md).
fn plan(security: Security) -> Plan {
    let ty = |bits| Type { shape: vec![8, 8], bits, frac: 0 };
    let owner = || "data-owner".to_owned();
    let mut nodes = vec![];
    let mut node = |op, inputs: &[ValueId], bits| {
        nodes.push(Node { op, inputs: inputs.to_vec(), ty: ty(bits), layer: "layer".into(), form: None });
        nodes.len() - 1
    };
    let x = node(Op::Input { name: "x".into(), owner: owner(), limit: 1.0 }, &[], 64);
    let w = node(Op::Weight { name: "w".into(), owner: owner() }, &[], 64);
    let s = node(Op::State { name: "s".into(), owner: owner() }, &[], 64);
    let kept = node(Op::Reshape, &[x], 64);
    let sum = node(Op::Add, &[s, w], 64);
    let compared = match security {
        Security::SemiHonest => node(Op::Mul, &[x, s], 64),
        Security::Malicious => node(Op::Neg, &[x], 64),
    };
    let negative = node(Op::IsNegative, &[compared], 1);
    let chosen = node(Op::Choose, &[negative, x], 64);
    let output = |value| Output { value, name: format!("y{value}"), to: "receiver".into() };
    let outputs = [kept, chosen].map(output).to_vec();
    let updates = vec![Update { state: s, value: sum }];
    Plan { version: PLAN_VERSION, name: "wiped".into(), batch: 1, nodes, outputs, updates }
}

/// A run, to the last share of the last party. Only the end of the run gives component 0 away: what a party sends or proves is
/// masked.
fn run(security: Security) -> [Outcome; 3] {
    let plan = plan(security);
    plan.check().unwrap();
    // what is shared comes below
    let nothing = Plan { nodes: vec![], ..plan.clone() };
    let mut world = World::new(&nothing, security, &Default::default(), &Seed::from_bytes([7; 16]));
    world.plan = plan;
    for (i, share) in shares().into_iter().enumerate() {
        world.inputs[i] = HashMap::from([(0, share.clone())]);
        world.weights[i] = BTreeMap::from([("w".to_owned(), share.clone())]);
        world.states[i] = BTreeMap::from([("s".to_owned(), share)]);
    }
    world.run(Mesh::new(3)).map(Result::unwrap)
}

/// One test, because the allocator sees what all threads free.
#[test]
fn no_component_is_left_in_memory_that_is_given_back() {
    assert_eq!(FREED.seen(|| drop(marked())), 1, "the allocator sees what is not wiped");
    let share = Share::new(marked(), marked());
    let other = share.clone();
    assert_eq!(FREED.seen(|| drop((share, other, Given::default()))), 0, "a share");
    let portion = || Portion {
        own: Component::Elements(Arc::new(marked().into())),
        next: Component::Elements(Arc::new(marked().into())),
    };
    let (kept, expanded) = (portion(), portion());
    assert_eq!(FREED.seen(|| drop((kept, expanded.expand(Ring::R64, N)))), 0, "what an owner sent");
    for security in [Security::SemiHonest, Security::Malicious] {
        // the test itself copies the mark before, and asks for it after
        let copies = FREED.seen(|| drop(shares()));
        let found = FREED.seen(|| {
            let outcomes = run(security);
            assert!(outcomes.iter().all(|y| y.outputs.len() == 2 && y.states.len() == 1));
        });
        assert_eq!(found, copies, "blocks with a component were freed, {security}");
    }
}
