//! Faults between three parties and in their records, at every message and every frame of a whole network: a typed error, never a
//! wrong result, never a hang.

mod common;

use common::{Seeds, World, sources};
use privet_family::keys::MemoryKeys;
use privet_net::NetError;
use privet_net::mem::MemOptions;
use privet_plan::suite::cases;
use privet_prg::Seed;
use privet_ring::Ring;
use privet_semi2k::EvalError;
use privet_testkit::{Action, Mesh, When};
use std::time::Duration;

/// No fault may take longer than this to be noticed, by far.
const HARNESS: Duration = Duration::from_secs(60);
/// A message that never comes is reported after this time.
const PATIENCE: Duration = Duration::from_secs(1);
const PARTIES: usize = 3;

fn network() -> (World, Vec<MemoryKeys>) {
    let case = cases().into_iter().find(|c| c.name == "small network").unwrap();
    let seed = Seed::from_bytes([3; 16]);
    let mut stream = seed.stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    World::new(&case.plan, &operands, Seeds::of(PARTIES, &seed))
}

fn frames(keys: &MemoryKeys) -> Vec<Vec<u8>> {
    keys.frames().map(<[u8]>::to_vec).collect()
}

fn record(frames: Vec<Vec<u8>>) -> MemoryKeys {
    let mut keys = MemoryKeys::default();
    frames.into_iter().for_each(|frame| keys.push(frame));
    keys
}

fn links(what: String) -> Mesh {
    let options =
        |me: usize, _| MemOptions { patience: PATIENCE, ..MemOptions::named(format!("party {me}")) };
    Mesh::with(PARTIES, options).bound(HARNESS, what)
}

#[test]
fn a_fault_in_a_message_ends_the_run_at_its_receiver() {
    let (world, keys) = network();
    let sound: Vec<_> = {
        let mut mesh = Mesh::new(PARTIES);
        let log = mesh.record();
        let mut keys: Vec<MemoryKeys> = keys.iter().map(|k| record(frames(k))).collect();
        world.run(sources(&mut keys), mesh).into_iter().for_each(|done| drop(done.unwrap()));
        log.of(1).into_iter().filter(|m| m.to == 2).collect()
    };
    assert!(sound.len() > 15, "{} messages", sound.len());
    for (at, message) in sound.iter().enumerate() {
        let actions = [
            Action::Truncate(message.bytes.len().saturating_sub(1)),
            Action::Kill,
            Action::OtherStep(1),
            Action::Replace(vec![0; message.bytes.len() + 1]),
        ];
        for action in actions {
            let what = format!("message {at}: {action:?}");
            let mut mesh = links(what.clone());
            mesh.fault(1, 2, [(When::Message(at as u64), action)]);
            let mut keys: Vec<MemoryKeys> = keys.iter().map(|k| record(frames(k))).collect();
            let mut results = world.run(sources(&mut keys), mesh);
            let error = results.pop().unwrap().expect_err(&what);
            assert!(matches!(error, EvalError::Net(_)), "{what}: {error}");
        }
    }
}

#[test]
fn a_message_that_never_comes_is_missed() {
    let (world, mut keys) = network();
    let mut mesh = links("a lost message".into());
    mesh.fault(0, 2, [(When::Message(3), Action::Drop)]);
    let mut results = world.run(sources(&mut keys), mesh);
    let error = results.pop().unwrap().unwrap_err();
    assert!(matches!(error, EvalError::Net(NetError::Silent { .. } | NetError::Desync { .. })), "{error:?}");
}

#[test]
fn a_record_that_is_not_the_plans_is_refused() {
    let (world, keys) = network();
    let all = frames(&keys[1]);
    for at in 0..all.len() {
        let short: Vec<Vec<u8>> = all[..at].to_vec();
        let mut cut = all.clone();
        cut[at].pop();
        for frames_of_1 in [short, cut] {
            let mut keys = [record(frames(&keys[0])), record(frames_of_1), record(frames(&keys[2]))];
            let mut results = world.run(sources(&mut keys), links(format!("frame {at}")));
            let error = results.swap_remove(1).unwrap_err();
            assert!(matches!(error, EvalError::Keys(_)), "frame {at}: {error}");
        }
    }
}

#[test]
fn what_was_not_shared_is_named() {
    let (mut world, mut keys) = network();
    world.inputs.clear();
    for result in world.run(sources(&mut keys), links("no input".into())) {
        let error = result.unwrap_err();
        assert!(matches!(error, EvalError::Missing(_)), "{error}");
    }
    let (mut world, mut keys) = network();
    world.weights.clear();
    for result in world.run(sources(&mut keys), links("no weights".into())) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("share the model again"), "{error}");
    }
}
