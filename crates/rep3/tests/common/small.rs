//! Plans that together exercise every gate and every kind of message, small enough to be attacked message by message.

use super::World;
use privet_plan::ir::{Op, Rounding};
use privet_plan::suite::{Case, cases, gate};
use privet_prg::{Domain, Seed};
use privet_rep3::Security;
use privet_ring::Ring;

/// Elements of a vector whose three parts, each dealt by another party, are all there.
const N: usize = 130;

fn one(name: &str, op: Op, inputs: usize, from: u32, to: u32) -> Case {
    Case { name: format!("{name}, {from} to {to} bits"), plan: gate(op, inputs, N, from, to) }
}

/// The cases of the suite with these names.
fn from_suite(names: &[&str]) -> impl Iterator<Item = Case> {
    let mut all = cases();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.into_iter().map(move |name| {
        let place = all.iter().position(|case| case.name == name);
        all.swap_remove(place.unwrap_or_else(|| panic!("the suite has no case `{name}`")))
    })
}

/// One gate each.
pub fn gates() -> Vec<Case> {
    let truncate = |rounding| Op::Truncate { shift: 5, rounding };
    let mut all = vec![
        one("relu", Op::Relu, 1, 9, 9),
        one("widening relu", Op::Relu, 1, 8, 12),
        one("sign", Op::IsNegative, 1, 9, 5),
        one("max", Op::Max, 2, 9, 9),
        one("equal", Op::Equal, 2, 9, 7),
        one("mul", Op::Mul, 2, 13, 13),
        one("truncate", truncate(Rounding::Floor), 1, 12, 7),
        one("truncate stochastically", truncate(Rounding::Stochastic), 1, 12, 7),
        one("extend", Op::Extend, 1, 7, 12),
    ];
    all.extend(from_suite(&[
        "linear with bias, 37 bits",
        "batched product of two secrets",
        "convolution, 24 bits, 2 groups",
        "max pool [3, 1] stride [1, 2] padding [1, 0]",
        "argmax over 7",
        "select by a sign, then reuse",
    ]));
    all
}

/// Several gates one after the other.
pub fn networks() -> Vec<Case> {
    from_suite(&["local operations around a product", "what follows an inexact truncation", "small network"])
        .collect()
}

/// A run of a case: operands, shares and keys all follow from `seed`.
pub fn world(case: &Case, security: Security, seed: &Seed) -> World {
    let mut stream = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    World::new(&case.plan, security, &operands, seed)
}
