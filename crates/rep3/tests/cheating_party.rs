//! One party follows another program than the others, from one step to the next consistent with itself: what a changed
//! message alone cannot express.

mod common;

use common::World;
use common::cheat::{Trial, Verdict, judge, verdict};
use common::small::{gates, networks, world};
use privet_family::Secret;
use privet_kernels::{CompareOut, CompareShape, Device, LinearShape, Weights, cpu};
use privet_plan::ir::{Op, Rounding};
use privet_prg::{Seed, TreeHash};
use privet_rep3::{PartyId, Security};
use privet_ring::Ring;
use privet_testkit::{Attack, Tally, spread};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A device that returns wrong products, or wrong bits: its party sends wrong summands and goes on with them as if they
/// were right.
struct Crooked {
    sound: Arc<dyn Device>,
    products: bool,
    bits: bool,
}

impl Device for Crooked {
    fn name(&self) -> String {
        "crooked".into()
    }
    fn shared(&self) -> Arc<dyn Device> {
        Arc::new(Crooked { sound: self.sound.clone(), ..*self })
    }
    fn threads(&self) -> usize {
        self.sound.threads()
    }
    fn compare_gen(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        alpha: &[u64],
        roots: &[u128],
        deltas: &[u128],
        key0: &mut [u8],
        key1: &mut [u8],
    ) {
        self.sound.compare_gen(hash, shape, alpha, roots, deltas, key0, key1);
    }
    fn compare_eval(
        &self,
        hash: &TreeHash,
        shape: CompareShape,
        key: &[u8],
        x: &[u64],
        want_eq: bool,
    ) -> CompareOut {
        self.sound.compare_eval(hash, shape, key, x, want_eq)
    }
    fn prepare(&self, ring: Ring, shape: LinearShape, weights: &[u64]) -> Arc<dyn Weights> {
        self.sound.prepare(ring, shape, weights)
    }
    fn linear_acc(&self, ring: Ring, shape: LinearShape, x: &[u64], weights: &dyn Weights, out: &mut [u64]) {
        self.sound.linear_acc(ring, shape, x, weights, out);
        if self.products {
            out[0] = out[0].wrapping_add(1);
        }
    }
    fn add_weighted(&self, weights: &[u64], rows: &[&[u64]], out: &mut [u64]) {
        self.sound.add_weighted(weights, rows, out);
        if self.products && !out.is_empty() {
            out[0] = out[0].wrapping_add(1);
        }
    }
    fn bit_planes(&self, values: &[u64], places: &[usize], out: &mut [u64]) {
        self.sound.bit_planes(values, places, out);
        if self.bits && !out.is_empty() {
            out[0] ^= 2;
        }
    }
}

fn flipped(seed: &Seed) -> Seed {
    let mut bytes = *seed.expose();
    bytes[7] ^= 0x10;
    Seed::from_bytes(bytes)
}

fn shifted(component: &mut Arc<Secret>) {
    Arc::make_mut(component)[0] ^= 1;
}

/// How the corrupt party's world differs from what it should be.
type Deviation = (&'static str, fn(&mut World, usize));

fn crooked(world: &mut World, products: bool, bits: bool) {
    world.device = Arc::new(Crooked { sound: cpu(1), products, bits });
}

const DEVIATIONS: [Deviation; 16] = [
    ("wrong products on its device", |world, _| crooked(world, true, false)),
    ("wrong bit planes on its device", |world, _| crooked(world, false, true)),
    ("another key with the party before", |world, i| world.keys[i].own = flipped(&world.keys[i].own)),
    ("another key with the party after", |world, i| world.keys[i].next = flipped(&world.keys[i].next)),
    ("another common key", |world, i| world.keys[i].common = flipped(&world.keys[i].common)),
    ("another first component of an input", |world, i| {
        world.inputs[i].values_mut().for_each(|share| shifted(&mut share.own));
    }),
    ("another second component of an input", |world, i| {
        world.inputs[i].values_mut().for_each(|share| shifted(&mut share.next));
    }),
    ("another first component of the weights", |world, i| {
        world.weights[i].values_mut().for_each(|share| shifted(&mut share.own));
    }),
    ("another second component of the weights", |world, i| {
        world.weights[i].values_mut().for_each(|share| shifted(&mut share.next));
    }),
    ("another first component of the states", |world, i| {
        world.states[i].values_mut().for_each(|share| shifted(&mut share.own));
    }),
    ("another second component of the states", |world, i| {
        world.states[i].values_mut().for_each(|share| shifted(&mut share.next));
    }),
    ("another public number", |world, _| world.publics.values_mut().for_each(|rate| *rate += 2)),
    ("other coins of a dropout", |world, _| {
        for node in &mut world.plan.nodes {
            if let Op::Dropout { stream, .. } = &mut node.op {
                *stream += 1;
            }
        }
    }),
    ("another rounding", |world, _| {
        for node in &mut world.plan.nodes {
            if let Op::Truncate { rounding, .. } = &mut node.op {
                *rounding = match rounding {
                    Rounding::Floor => Rounding::Stochastic,
                    _ => Rounding::Floor,
                };
            }
        }
    }),
    ("other constants", |world, _| {
        for node in &mut world.plan.nodes {
            if let Op::AddConst { value } | Op::MulConst { value } = &mut node.op {
                *value += 2;
            }
        }
    }),
    ("no proofs", |world, _| world.security = Security::SemiHonest),
];

/// Every deviation by every party in every plan; how they ended.
fn deviate(security: Security) -> BTreeMap<&'static str, [usize; 4]> {
    let mut cases = gates();
    cases.extend(networks());
    if cfg!(debug_assertions) {
        // Without optimisation a run takes several times as long. The last and the fifth from behind have every gate.
        cases = cases.into_iter().rev().step_by(4).collect();
    }
    let tally = Tally::default();
    spread(cases.len(), 2, |i| {
        let (case, seed) = (&cases[i], Seed::random());
        let world = || world(case, security, &seed);
        let truth = Trial::honest(&world());
        for (what, change) in DEVIATIONS {
            for by in PartyId::ALL {
                let (sound, mut other) = (world(), world());
                change(&mut other, by.index());
                let trial = Trial::of(None, PATIENCE, |id, prev, next| {
                    if id == by { &other } else { &sound }.evaluate(id, prev, next)
                });
                let attack =
                    Attack { by: by.index(), what: format!("{}: {what}", case.name), changes: vec![] };
                let verdict = match security {
                    Security::Malicious => judge(&truth, &trial, &attack),
                    Security::SemiHonest => verdict(&truth, &trial, by),
                };
                tally.count(what, verdict as usize);
            }
        }
    });
    print!("{security}: detected, harmless, halved, accepted\n{tally}");
    tally.counts()
}

#[test]
fn a_party_that_runs_something_else_is_found_out() {
    for (what, [detected, ..]) in deviate(Security::Malicious) {
        // What a receiver is sent under another common key is found wrong by the receiver.
        assert!(detected > 0 || what == "another common key", "{what} was never detected");
    }
}

#[test]
fn where_nobody_proves_anything_it_is_not() {
    for (what, [.., accepted]) in deviate(Security::SemiHonest) {
        assert!(
            accepted > 0 || ["another common key", "no proofs"].contains(&what),
            "{what} never changed an output"
        );
    }
}

#[test]
fn a_run_is_whole_when_nobody_deviates() {
    let case = &gates()[0];
    let seed = Seed::random();
    let truth = Trial::honest(&world(case, Security::Malicious, &seed));
    let again = Trial::honest(&world(case, Security::Malicious, &seed));
    let attack = Attack { by: 0, what: "nothing".into(), changes: vec![] };
    assert_eq!(judge(&truth, &again, &attack), Verdict::Harmless);
}
