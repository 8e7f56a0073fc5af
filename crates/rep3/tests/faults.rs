//! Faults between the parties, at every message of a run: every party ends with a typed error that names step and peer,
//! or with the right result; never a wrong one, never a hang.

mod common;

use common::World;
use privet_net::NetError;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::suite::Case;
use privet_prg::Seed;
use privet_rep3::{Outcome, PartyId, RunError, Security};
use privet_ring::Ring;
use privet_testkit::{Action, Mesh, When, spread};
use std::collections::BTreeSet;
use std::time::Duration;

/// No fault may take longer than this to be noticed, by far.
const HARNESS: Duration = Duration::from_secs(120);
/// Longer than a loaded machine needs for any message.
const PATIENCE: Duration = Duration::from_secs(60);
/// A message that never comes is reported after this time, in runs that miss one.
const SHORT: Duration = Duration::from_millis(1500);
/// Faulty runs at once: most of them wait.
const THREADS: usize = 24;

/// A run with every kind of move, short enough that every message can be hit.
fn network(security: Security) -> (World, Vec<Vec<u64>>) {
    // three parts, so that every party has every role
    let (n, k) = (150, 20);
    let node = |op, inputs: &[usize], bits, layer: &str| {
        let ty = Type { shape: vec![n], bits, frac: 0 };
        Node { op, inputs: inputs.to_vec(), ty, layer: layer.into(), form: None }
    };
    let input = |i: usize| Op::Input { name: format!("x{i}"), owner: "data-owner".into(), limit: 1.0 };
    let mut nodes = vec![
        node(input(0), &[], k, "input"),
        node(input(1), &[], k, "input"),
        node(Op::Mul, &[0, 1], k, "product"),
        node(Op::Truncate { shift: 6, rounding: Rounding::Floor }, &[2], k - 6, "truncation"),
        node(Op::Relu, &[3], k - 6, "relu"),
        node(Op::Equal, &[4, 3], 5, "equality"),
        node(Op::Relu, &[3], k - 4, "wide relu"),
        node(Op::Rescale, &[6], k - 4, "wide relu"),
        node(Op::Truncate { shift: 6, rounding: Rounding::Stochastic }, &[7], k - 4, "truncation that keeps"),
        node(Op::IsNegative, &[3], 1, "sign bit"),
        node(Op::Choose, &[9, 8], k - 4, "choice"),
    ];
    for v in [0, 2, 7] {
        nodes[v].ty.frac = 6;
    }
    let output = |value: usize| Output { value, name: format!("y{value}"), to: "receiver".into() };
    let outputs = vec![output(4), output(5), output(10)];
    let plan =
        Plan { version: PLAN_VERSION, name: "faults".into(), batch: n, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    let seed = Seed::from_bytes([3; 16]);
    let mut stream = seed.stream();
    let case = Case { name: "faults".into(), plan };
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    let world = World::new(&case.plan, security, &operands, &seed);
    let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
    let outputs = world.outputs(outcomes.each_ref());
    (world, outputs)
}

/// Messages from `from` to the party after or before it in a sound run.
fn messages(world: &World, from: PartyId, onward: bool) -> u64 {
    let to = if onward { from.next() } else { from.prev() };
    world.transcript()[from.index()].iter().filter(|sent| sent.to == to.index()).count() as u64
}

type Results = [Result<Outcome, RunError>; 3];

/// The receiver of the fault must notice and say where; the others may have been done before.
#[track_caller]
fn noticed(what: &str, receiver: PartyId, results: &Results, says: &[&str]) {
    let error = match &results[receiver.index()] {
        Err(e) => e.to_string(),
        Ok(_) => panic!("{what}: {receiver} did not notice"),
    };
    assert!(error.contains("step ") && error.contains("party"), "{what}: no step or party in: {error}");
    assert!(says.is_empty() || says.iter().any(|word| error.contains(word)), "{what}: {error}");
    for e in results.iter().filter_map(|result| result.as_ref().err()) {
        let text = e.to_string();
        assert!(text.contains("party"), "{what}: no party in: {text}");
        assert!(text.contains("step ") || text.contains("closed its channel"), "{what}: no step in: {text}");
    }
}

fn every_message_is_missed(security: Security, stride: usize) {
    let (world, outputs) = network(security);
    let mut faults = Vec::new();
    for from in PartyId::ALL {
        for onward in [true, false] {
            let count = messages(&world, from, onward);
            assert!(count > 5, "{from}: {count}");
            for at in (0..count).step_by(stride) {
                for action in [
                    Action::Drop,
                    Action::Truncate(0),
                    Action::Reorder,
                    Action::Duplicate,
                    Action::Kill,
                    Action::Delay(Duration::from_millis(5)),
                ] {
                    faults.push((from, onward, at, at + 1 == count, action));
                }
            }
        }
    }
    spread(faults.len(), THREADS, |i| {
        let (from, onward, at, last, ref action) = faults[i];
        let receiver = if onward { from.next() } else { from.prev() };
        let what = format!("{security}: {action:?} of message {at} from {from} to {receiver}");
        // where nobody may be left who sends the next message
        let patience = if matches!(action, Action::Drop | Action::Reorder) { SHORT } else { PATIENCE };
        let mut mesh = Mesh::patient(3, patience).bound(HARNESS, &what);
        mesh.fault(from.index(), receiver.index(), [(When::Message(at), action.clone())]);
        let results = world.run(mesh);
        let harmless = matches!(action, Action::Delay(_)) || (last && *action == Action::Duplicate);
        if harmless {
            let done = results.each_ref().map(|y| y.as_ref().unwrap_or_else(|e| panic!("{what}: {e}")));
            assert_eq!(world.outputs(done), outputs, "{what}");
            return;
        }
        let says: &[&str] = match action {
            Action::Truncate(_) => &["sent a message of 0 bytes"],
            // by the next message, or by silence where the sender waits for somebody who waits for the receiver
            Action::Drop | Action::Reorder => &["ran apart", "ended the session", "nothing came", "closed"],
            Action::Duplicate => &["ran apart"],
            _ => &["closed the connection", "ended the session"],
        };
        noticed(&what, receiver, &results, says);
    });
}

#[test]
fn lost_cut_repeated_and_late_messages_semi_honest() {
    every_message_is_missed(Security::SemiHonest, 1);
}

#[test]
fn lost_cut_repeated_and_late_messages_malicious() {
    every_message_is_missed(Security::Malicious, 3);
}

/// A party that dies between two messages ends the run of both others.
#[test]
fn a_dead_party_ends_the_run_of_both_others() {
    let (world, _) = network(Security::SemiHonest);
    for dead in PartyId::ALL {
        let mesh = Mesh::patient(3, PATIENCE).bound(HARNESS, format!("{dead} dead"));
        let results = common::parties(mesh, |id, prev, next| {
            (id != dead).then(|| world.evaluate(id, prev, next).map(|_| ()))
        });
        let others: Vec<_> = results.into_iter().flatten().collect();
        assert_eq!(others.len(), 2);
        for result in others {
            let error = result.expect_err("nobody can finish alone").to_string();
            assert!(error.contains("party"), "{error}");
        }
    }
}

/// A party that is killed at any step of the run, both its links at once.
#[test]
fn a_party_killed_at_any_step_ends_the_run_of_both_others() {
    let (world, _) = network(Security::SemiHonest);
    for dead in PartyId::ALL {
        let steps: BTreeSet<u32> = world.transcript()[dead.index()].iter().map(|sent| sent.step.id).collect();
        for step in steps {
            let what = format!("{dead} killed at step {step}");
            let mut mesh = Mesh::patient(3, PATIENCE).bound(HARNESS, &what);
            mesh.dies(dead.index(), step);
            let results = world.run(mesh);
            assert!(results[dead.index()].is_err(), "{what}");
            // of the others each that still had to receive from it; whoever waits for the other one is told by it
            let errors: Vec<String> = [dead.next(), dead.prev()]
                .iter()
                .filter_map(|id| results[id.index()].as_ref().err().map(RunError::to_string))
                .collect();
            assert!(errors.iter().any(|e| e.contains(&dead.to_string())), "{what}: {errors:?}");
            assert!(errors.iter().all(|e| e.contains("party")), "{what}: {errors:?}");
        }
    }
}

/// A silent party, and operands that nobody shared.
#[test]
fn silence_and_missing_operands_are_named() {
    let (mut world, _) = network(Security::SemiHonest);
    let mut links = Mesh::patient(3, Duration::from_millis(200)).into_links();
    let [prev, next] = links[0].both([2, 1]);
    let error = world.evaluate(PartyId::ALL[0], prev, next).map(|_| ()).unwrap_err();
    assert!(matches!(error, RunError::Net(NetError::Silent { .. })), "{error}");
    assert!(error.to_string().contains("step 1 (run / coins"), "{error}");
    for input in world.inputs.iter_mut() {
        input.remove(&1);
    }
    for result in world.run(Mesh::new(3)) {
        assert_eq!(result.map(|_| ()).unwrap_err().to_string(), "input `x1` was not shared");
    }
}

/// Not a fault of the channel but of what it is used for: a party that runs another plan.
#[test]
fn another_plan_is_noticed_at_the_first_step_that_differs() {
    let (world, _) = network(Security::SemiHonest);
    let (mut other, _) = network(Security::SemiHonest);
    other.plan.nodes[3].op = Op::Truncate { shift: 5, rounding: Rounding::Floor };
    other.plan.nodes[3].ty.bits += 1;
    other.plan.nodes[4].ty.bits += 1;
    let mesh = Mesh::patient(3, PATIENCE).bound(HARNESS, "another plan");
    let results = common::parties(mesh, |id, prev, next| {
        let world = if id.index() == 1 { &other } else { &world };
        world.evaluate(id, prev, next).map(|_| ())
    });
    let errors = results.map(|result| result.unwrap_err().to_string());
    assert!(errors.iter().all(|e| e.contains("truncation / ") || e.contains("ended")), "{errors:?}");
}
