//! States over several steps, each on a record of its own, among two, three and five parties: what they hold is what the interpreter
//! says, and no party's share tells it.

mod common;

use common::{RecordCoins, Seeds, World, sources};
use privet_family::States;
use privet_plan::interpret_step;
use privet_plan::ir::Op;
use privet_plan::suite::{Case, Operands, training_cases};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, unpack};
use privet_semi2k::Done;
use privet_testkit::Mesh;

fn stateful() -> impl Iterator<Item = Case> {
    training_cases().into_iter().filter(|case| !case.plan.updates.is_empty())
}

fn operands(case: &Case) -> [Operands; 2] {
    let mut stream = Seed::random().stream();
    case.operands(&mut || stream.elements(Ring::R64, 1)[0])
}

/// The bits of a state.
fn ring_of(case: &Case, state: &str) -> Ring {
    let named = |op: &Op| matches!(op, Op::State { name, .. } if name == state);
    Ring::new(case.plan.nodes.iter().find(|node| named(&node.op)).unwrap().ty.bits)
}

#[test]
fn steps_follow_each_other_on_fresh_records() {
    for parties in [2, 3, 5] {
        for case in stateful() {
            let [mut inputs, mut weights] = operands(&case);
            let mut held: Option<Vec<States>> = None;
            for step in 0..4 {
                let both = [inputs, weights];
                let (mut world, mut keys) =
                    World::new(&case.plan, &both, Seeds::of(parties, &Seed::random()));
                [inputs, weights] = both;
                // From the second step on, what the parties hold is what the last run left them.
                let states = held.get_or_insert_with(|| world.states.clone());
                world.states.clone_from(states);
                let seeds = [&world.session[..], &world.seeds];
                let mut coins = RecordCoins { plan: &case.plan, public: world.public.clone(), seeds };
                let (outputs, updates) = interpret_step(&case.plan, &inputs, &weights, &mut coins).unwrap();
                let all = world.run(sources(&mut keys), Mesh::new(parties)).into_iter();
                let done: Vec<Done> = all.map(|done| done.unwrap().0).collect();
                case.compare_within(parties.div_ceil(2) as u64, &world.outputs(&done), &outputs);
                for (states, done) in states.iter_mut().zip(done) {
                    states.replace(done.updates);
                }
                for (name, value) in &updates {
                    let ring = ring_of(&case, name);
                    let shares = states.iter().map(|states| states.get(name).unwrap());
                    let sum = shares.fold(vec![0u64; value.data().len()], |sum, share| {
                        assert_ne!(share, value.data(), "{}: a share is not the value", case.name);
                        sum.iter().zip(share).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
                    });
                    assert_eq!(sum, value.data(), "{}: `{name}` after step {step}, {parties}", case.name);
                }
                weights.extend(updates);
            }
        }
    }
}

/// The same state in two records: what each party sends of it differs in every element, however it is held.
#[test]
fn a_state_that_stays_is_opened_under_another_mask_each_time() {
    let case = stateful().next().expect("a case with states");
    let (both, seed) = (operands(&case), Seed::random());
    let Some(Op::State { name, .. }) =
        case.plan.nodes.iter().map(|node| &node.op).find(|op| matches!(op, Op::State { .. }))
    else {
        panic!("a state")
    };
    let ring = ring_of(&case, name);
    let sent = [1, 2].map(|i| {
        let mut seeds = Seeds::of(3, &seed.derive(Domain::Record, i));
        // the shares that are held stay the same ones
        seeds.states = Seeds::of(3, &seed).states;
        let (world, mut keys) = World::new(&case.plan, &both, seeds);
        let n = world.states[0].get(name).unwrap().len();
        let mut mesh = Mesh::new(3);
        let log = mesh.record();
        world.run(sources(&mut keys), mesh).into_iter().for_each(|done| drop(done.unwrap()));
        let held: Vec<Vec<u64>> = world.states.iter().map(|s| s.get(name).unwrap().to_vec()).collect();
        let first = |party| unpack(ring, &log.of(party)[0].bytes, n).unwrap();
        (held, (0..3).map(first).collect::<Vec<_>>())
    });
    assert_eq!(sent[0].0, sent[1].0, "shares that are held");
    for (first, second) in sent[0].1.iter().zip(&sent[1].1) {
        let same = first.iter().zip(second).filter(|(a, b)| a == b).count();
        assert!(same * 4 < first.len().max(4), "{same} of {} are sent as before", first.len());
    }
}

#[test]
fn a_state_that_is_not_held_is_named_before_anything_is_sent() {
    let case = stateful().next().unwrap();
    let (mut world, mut keys) = World::new(&case.plan, &operands(&case), Seeds::of(2, &Seed::random()));
    world.states.iter_mut().for_each(|states| *states = States::new());
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    for done in world.run(sources(&mut keys), mesh) {
        let error = done.map(drop).unwrap_err().to_string();
        assert!(error.contains("state `"), "{error}");
    }
    assert!(log.all().iter().all(Vec::is_empty), "something was sent");
}
