//! Shares that outlive a run: steps one after the other, checkpoints, and parties that come back with something else.

mod common;

use common::cheat::{Trial, honest};
use common::small::{self, world};
use common::{Common, World, derived, parties, updated};
use privet_kernels::cpu;
use privet_plan::interpret_step;
use privet_plan::ir::{Op, Plan};
use privet_plan::suite::{Case, training_cases};
use privet_prg::{Domain, Seed};
use privet_rep3::{
    Keys, Outcome, Party, PartyId, RunError, Security, Share, SharingError, StateError, StateKinds, States,
};
use privet_ring::{PackError, Ring, Tensor};
use privet_testkit::{Action, Attack, Mesh};
use std::time::Duration;

/// A step that updates two of three states.
fn step() -> Case {
    let mut all = training_cases();
    let place = all.iter().position(|case| !case.plan.updates.is_empty());
    all.swap_remove(place.expect("the suite has a case with states"))
}

fn kinds(plan: &Plan) -> StateKinds {
    StateKinds::of([plan]).unwrap()
}

/// The world's run `number`, and its states replaced.
fn step_on(world: &mut World, session: &[Keys; 3], number: u64) -> [Outcome; 3] {
    world.keys = session.each_ref().map(|keys| keys.derive(number));
    let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
    for (states, outcome) in world.states.iter_mut().zip(&outcomes) {
        states.extend(outcome.states.clone());
    }
    outcomes
}

/// Steps on shares are the interpreter's on values; after the second the parties stop and go on from what they wrote.
#[test]
fn steps_follow_each_other_over_a_checkpoint() {
    let case = step();
    for security in [Security::SemiHonest, Security::Malicious] {
        let seed = Seed::random();
        let mut stream = seed.derive(Domain::Public, 0).stream();
        let [inputs, mut weights] = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        let mut world = World::new(&case.plan, security, &[inputs.clone(), weights.clone()], &seed);
        for number in 0..4 {
            let session = common::keys(&seed.derive(Domain::Session, number / 2));
            let mut coins = Common(&case.plan, security, derived(&derived(&session, number), 0));
            let (truth, next) = interpret_step(&case.plan, &inputs, &weights, &mut coins).unwrap();
            let outcomes = step_on(&mut world, &session, number);
            case.compare(&world.outputs(outcomes.each_ref()), &truth);
            let values = updated(&case.plan, outcomes.each_ref());
            assert_eq!(values.len(), case.plan.updates.len());
            for (name, value) in values {
                assert_eq!(value, next[&name].data(), "{security}: {name} after step {number}");
                let shape = next[&name].shape().to_vec();
                weights.insert(name, Tensor::new(shape, value).unwrap());
            }
            if number == 1 {
                for states in &mut world.states {
                    let bytes = kinds(&case.plan).encode(states).unwrap();
                    *states = kinds(&case.plan).decode(&bytes).unwrap();
                }
            }
        }
    }
}

/// A plan that reads states and replaces none leaves them alone, and one that has a state missing is not run.
#[test]
fn states_are_read_by_name() {
    let case = step();
    let mut world = world(&case, Security::SemiHonest, &Seed::random());
    world.plan.updates.clear();
    assert!(world.run(Mesh::new(3)).iter().all(|y| y.as_ref().unwrap().states.is_empty()));
    world.states.iter_mut().for_each(|states| drop(states.remove("still")));
    for error in world.run(Mesh::new(3)).map(|y| y.err().unwrap()) {
        assert!(matches!(&error, RunError::Missing(what) if what.contains("state `still`")), "{error}");
    }
    let mut world = small::world(&case, Security::SemiHonest, &Seed::random());
    world.publics.clear();
    for error in world.run(Mesh::new(3)).map(|y| y.err().unwrap()) {
        // one of them may see first that another gave up
        assert!(
            !matches!(&error, RunError::Missing(what) if !what.contains("public number `rate`")),
            "{error}"
        );
    }
}

#[test]
fn what_is_written_is_read_back_and_nothing_else() {
    let case = step();
    let world = world(&case, Security::Malicious, &Seed::random());
    let kinds = kinds(&case.plan);
    for states in &world.states {
        let bytes = kinds.encode(states).unwrap();
        // w: 15 of 64 bits, v: 15 of 40, still: 3 of 64; two components
        assert_eq!((bytes.len(), kinds.encoded_len()), (2 * (15 * 8 + 15 * 5 + 3 * 8), bytes.len()));
        let back = kinds.decode(&bytes).unwrap();
        assert!(states.keys().eq(back.keys()));
        assert!(states.iter().all(|(name, x)| x.own == back[name].own && x.next == back[name].next));
        for len in [0, 1, bytes.len() - 1] {
            assert!(matches!(
                kinds.decode(&bytes[..len]),
                Err(StateError::Bytes(SharingError::Length { .. }))
            ));
        }
        assert!(kinds.decode(&[&bytes[..], &[0]].concat()).is_err());
    }
    let mut states = world.states[0].clone();
    states.remove("v");
    assert_eq!(kinds.encode(&states).err(), Some(StateError::Missing("v".into())));
    states.insert("v".into(), Share::new(vec![1], vec![2]));
    let length = StateError::Length { name: "v".into(), expected: 15, found: 1 };
    assert_eq!(kinds.encode(&states).err(), Some(length));
}

/// Bits behind the last element of a component: one form alone.
#[test]
fn bits_behind_the_last_element_are_refused() {
    let mut plan = step().plan;
    for node in &mut plan.nodes {
        if matches!(&node.op, Op::State { name, .. } if name == "v") {
            node.ty.bits = 3;
        }
    }
    let kinds = kinds(&plan);
    let mut bytes = vec![0; kinds.encoded_len()];
    assert!(kinds.decode(&bytes).is_ok());
    // 45 bits take 6 bytes, and "v" comes before "w" and after "still"
    bytes[2 * 24 + 5] = 0x20;
    let error = kinds.decode(&bytes).err();
    let padding = StateError::Bytes(SharingError::Pack(PackError::Padding { elements: 15, bits: 3 }));
    assert_eq!(error, Some(padding));
}

#[test]
fn plans_of_a_program_agree_about_states() {
    let plan = step().plan;
    let mut other = plan.clone();
    assert_eq!(StateKinds::of([&plan, &other]).unwrap(), kinds(&plan));
    for node in &mut other.nodes {
        if matches!(&node.op, Op::State { name, .. } if name == "still") {
            node.ty.bits = 30;
        }
    }
    assert_eq!(StateKinds::of([&plan, &other]).err(), Some(StateError::Plans("still".into())));
}

fn compare(
    plan: &Plan,
    states: &[States; 3],
    context: impl Fn(PartyId) -> Vec<u8> + Sync,
) -> [Option<String>; 3] {
    let ends = parties(Mesh::new(3), |id, prev, next| {
        let device = cpu(1);
        let [own, next_key, common] = [(); 3].map(|()| Seed::from_bytes([1; 16]));
        let keys = Keys { own, next: next_key, common };
        let mut cx = Party::new(id, Security::Malicious, device.as_ref(), keys, prev, next);
        let digests = kinds(plan).digests(&context(id), &states[id.index()]).unwrap();
        cx.compare("restored states", digests)
    });
    ends.map(|end| end.err().map(|e| e.to_string()))
}

/// Whatever a party comes back with in place of what it had: an honest party that holds the same component names it.
#[test]
fn a_party_that_restores_something_else_is_found_out() {
    let case = step();
    let mut world = world(&case, Security::Malicious, &Seed::random());
    let before = world.states.clone();
    let session = common::keys(&Seed::random());
    step_on(&mut world, &session, 1);
    let now = world.states.clone();
    let here = |_| b"step 1".to_vec();
    assert!(compare(&case.plan, &now, here).iter().all(Option::is_none));
    for cheat in PartyId::ALL {
        let i = cheat.index();
        let mut others: Vec<(&str, States)> = vec![("an older step", before[i].clone())];
        for name in ["w", "v", "still"] {
            for own in [true, false] {
                let mut states = now[i].clone();
                let share = states.get_mut(name).unwrap();
                let component = if own { &mut share.own } else { &mut share.next };
                std::sync::Arc::make_mut(component)[2] ^= 1;
                others.push((name, states));
            }
        }
        for (what, states) in others {
            let mut all = now.clone();
            all[i] = states;
            let ends = compare(&case.plan, &all, here);
            let named = honest(cheat).iter().any(|id| {
                ends[id.index()]
                    .as_ref()
                    .is_some_and(|e| e.contains(&cheat.to_string()) && e.contains("restored states"))
            });
            assert!(named, "{what} at {cheat}: {ends:?}");
        }
        let ends =
            compare(&case.plan, &now, |id| if id == cheat { b"step 2".to_vec() } else { b"step 1".to_vec() });
        assert!(ends.iter().any(Option::is_some), "another step at {cheat}");
    }
}

/// Both of an honest party's digests, under different contexts, have nothing in common.
#[test]
fn digests_are_of_components_and_their_context() {
    let case = step();
    let world = world(&case, Security::Malicious, &Seed::random());
    let digests = |id: PartyId, context: &[u8]| {
        kinds(&case.plan).digests(context, &world.states[id.index()]).unwrap().finish()
    };
    for id in PartyId::ALL {
        let [own, next] = digests(id, b"a");
        assert_eq!(next, digests(id.next(), b"a")[0], "both holders");
        assert_ne!(own, next);
        assert!(digests(id, b"b").iter().all(|digest| *digest != own && *digest != next));
    }
}

/// A step in which somebody cheats gives no states; the step repeated from the same states, under other keys, is right.
#[test]
fn a_step_that_fails_leaves_the_states() {
    let case = step();
    let seed = Seed::random();
    let mut world = world(&case, Security::Malicious, &seed);
    let session = common::keys(&seed.derive(Domain::Session, 7));
    let before = world.states.clone();
    world.keys = session.each_ref().map(|keys| keys.derive(1));
    let truth = Trial::honest(&world);
    for by in PartyId::ALL {
        let sent = &truth.sent[by.index()];
        for number in (0..sent.len()).step_by(sent.len() / 8) {
            let mut bytes = sent[number].bytes.clone();
            bytes[0] ^= 1;
            let attack = Attack {
                by: by.index(),
                what: "a bit".into(),
                changes: vec![(number, Action::Replace(bytes))],
            };
            let mut mesh = Mesh::patient(3, Duration::from_secs(60));
            mesh.attack(&attack);
            let outcomes = world.run(mesh);
            // who has states has the right ones: those of a run in which nothing was changed
            let right = world.run(Mesh::new(3)).map(Result::unwrap);
            let mut failed = 0;
            for id in honest(by) {
                match &outcomes[id.index()] {
                    Ok(outcome) => assert!(same(&outcome.states, &right[id.index()].states)),
                    Err(_) => failed += 1,
                }
            }
            assert!(
                failed > 0 || number + 4 > sent.len(),
                "message {number} by {by} changed, and nobody noticed"
            );
        }
    }
    let mut again = || {
        world.states = before.clone();
        let outcomes = step_on(&mut world, &session, 2);
        updated(&case.plan, outcomes.each_ref())
    };
    let first = again();
    assert_eq!(first, again(), "the step has no coins, so it is the same step");
}

fn same(a: &States, b: &States) -> bool {
    a.len() == b.len() && a.iter().all(|(name, a)| a.own == b[name].own && a.next == b[name].next)
}
