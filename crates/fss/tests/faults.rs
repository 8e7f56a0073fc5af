//! Faults between the evaluators and in the keys, at every step of a whole network: a typed error that names
//! step and cause, never a wrong result, never a hang.

mod common;

use common::{World, in_form};
use privet_fss::keys::{KeyError, KeySource, MemoryKeys};
use privet_fss::{Done, EvalError};
use privet_net::mem::MemOptions;
use privet_net::{FrameFilter, NetError};
use privet_plan::Form;
use privet_plan::suite::{Case, cases, training_cases};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_testkit::{Action, Mesh, When};
use std::time::Duration;

/// No fault may take longer than this to be noticed, by far.
const HARNESS: Duration = Duration::from_secs(60);
/// A message that never comes is reported after this time.
const PATIENCE: Duration = Duration::from_secs(1);

/// The record that every fault hits anew, and what it gives without a fault.
fn network() -> (World, [MemoryKeys; 2], Vec<Vec<u64>>) {
    record_of("small network")
}

fn record_of(name: &str) -> (World, [MemoryKeys; 2], Vec<Vec<u64>>) {
    let case = cases().into_iter().chain(training_cases()).find(|c| c.name == name).unwrap();
    record(case)
}

/// The network with comparisons by chunks, in two levels.
fn chunked_network() -> (World, [MemoryKeys; 2], Vec<Vec<u64>>) {
    let mut case = cases().into_iter().find(|c| c.name == "small network").unwrap();
    case.plan = in_form(&case.plan, Form::Chunks { width: 4, fan: 4 }).unwrap();
    record(case)
}

fn record(case: Case) -> (World, [MemoryKeys; 2], Vec<Vec<u64>>) {
    let seed = |i| Seed::from_bytes([3; 16]).derive(Domain::Public, i);
    let mut stream = seed(0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    let (world, keys) = World::new(&case.plan, &operands, &seed(1), &seed(2));
    let mut read = copy(&keys);
    let [k0, k1] = &mut read;
    let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
    let outputs = world.outputs([&y0, &y1]);
    (world, keys, outputs)
}

fn copy(keys: &[MemoryKeys; 2]) -> [MemoryKeys; 2] {
    use privet_fss::keys::KeySink;
    let mut copies = [MemoryKeys::default(), MemoryKeys::default()];
    for (b, keys) in keys.iter().enumerate() {
        for frame in keys.frames() {
            let mut both = [Vec::new(), Vec::new()];
            both[b] = frame.to_vec();
            copies.put(both.each_mut()).unwrap();
        }
    }
    copies
}

/// Sound channels but for what happens to the frames that party 0 sends; `what` is the run's name.
fn links(what: &str, mut filter: Option<FrameFilter>) -> Mesh {
    let options = |me: usize, _| MemOptions {
        patience: PATIENCE,
        filter: if me == 0 { filter.take() } else { None },
        ..MemOptions::named(format!("party {me}"))
    };
    Mesh::with(2, options).bound(HARNESS, what)
}

/// Channels with one fault in what party 0 sends.
fn fault(what: &str, at: u64, action: Action) -> Mesh {
    let mut mesh = links(what, None);
    mesh.fault(0, 1, [(When::Message(at), action)]);
    mesh
}

/// Messages that party 0 sends in a sound run.
fn steps(world: &World, keys: &[MemoryKeys; 2]) -> u64 {
    let mut keys = copy(keys);
    let [k0, k1] = &mut keys;
    let mut mesh = Mesh::new(2);
    let meter = mesh.end(0, 1).meter();
    let _ = world.run([k0, k1], mesh).map(Result::unwrap);
    meter.total().messages
}

/// The outcome of a run with a fault that the receiver, party 1, must notice.
#[track_caller]
fn noticed(
    world: &World,
    outputs: &[Vec<u64>],
    what: &str,
    [y0, y1]: [Result<Done, EvalError>; 2],
    says: &[&str],
) {
    let error = match (&y0, &y1) {
        (_, Err(e)) => e.to_string(),
        (Ok(a), Ok(b)) if world.outputs([a, b]) == outputs => {
            panic!("{what}: not noticed, and without effect")
        }
        (_, Ok(_)) => panic!("{what}: party 1 did not notice"),
    };
    for word in says {
        assert!(error.contains(word), "{what}: `{word}` is not in: {error}");
    }
    // Only a party that had nothing more to receive may end without an error.
    if let Err(e) = y0 {
        let text = e.to_string();
        assert!(text.contains("step ") || text.contains("closed its channel"), "{what}: no step in: {text}");
    }
}

/// Nobody reads past the last step: the run is right at the receiver, and complete unless the sender finds
/// the channel closed before it has sent twice.
#[track_caller]
fn harmless(world: &World, outputs: &[Vec<u64>], what: &str, [y0, y1]: [Result<Done, EvalError>; 2]) {
    let y1 = y1.unwrap_or_else(|e| panic!("{what}: {e}"));
    match y0 {
        Ok(y0) => assert_eq!(world.outputs([&y0, &y1]), outputs, "{what}"),
        Err(e) => assert!(e.to_string().contains("ended the session"), "{what}: {e}"),
    }
}

#[test]
fn messages_lost_cut_or_out_of_order_end_the_run_with_their_step() {
    let (world, keys, outputs) = network();
    let messages = steps(&world, &keys);
    assert!(messages > 15, "{messages}");
    every_loss_is_noticed(&world, &keys, &outputs, messages, messages);
    let (world, keys, outputs) = chunked_network();
    let messages = steps(&world, &keys);
    every_loss_is_noticed(&world, &keys, &outputs, messages, messages);
    // Its states are three messages that are all sent before anybody receives.
    let (world, keys, outputs) = record_of("a step that updates states");
    every_loss_is_noticed(&world, &keys, &outputs, 3, steps(&world, &keys));
}

/// Of the first `tried` messages.
fn every_loss_is_noticed(
    world: &World,
    keys: &[MemoryKeys; 2],
    outputs: &[Vec<u64>],
    tried: u64,
    messages: u64,
) {
    for at in 0..tried {
        let last = at + 1 == messages;
        for (action, says) in [
            (Action::Drop, if last { "ended the session" } else { "ran apart" }),
            (Action::Truncate(0), "sent a message of 0 bytes"),
            (Action::Reorder, if last { "ended the session" } else { "ran apart" }),
            (Action::Swap, if last { "ended the session" } else { "bytes" }),
            (Action::Kill, "closed the connection"),
            (Action::Duplicate, "ran apart"),
        ] {
            let what = format!("{action:?} of message {at}");
            let mut keys = copy(keys);
            let [k0, k1] = &mut keys;
            let duplicate = action == Action::Duplicate;
            let ends = world.run([k0, k1], fault(&what, at, action));
            if last && duplicate {
                harmless(world, outputs, &what, ends);
            } else {
                noticed(world, outputs, &what, ends, &[says, "step ", "node"]);
            }
        }
    }
}

#[test]
fn frames_damaged_on_the_way_end_the_run() {
    let (world, keys, outputs) = network();
    let messages = steps(&world, &keys);
    type Damage = fn(Vec<u8>, &mut Vec<Vec<u8>>) -> Vec<Vec<u8>>;
    let damages: [(&str, Damage, &str); 6] = [
        (
            "a flipped bit in the payload",
            |mut f, _| {
                f[41] ^= 4;
                vec![f]
            },
            "checksum",
        ),
        (
            "a flipped bit in the step",
            |mut f, _| {
                f[8] ^= 1;
                vec![f]
            },
            "checksum",
        ),
        (
            "a frame cut off",
            |mut f, _| {
                f.truncate(41);
                vec![f]
            },
            "step",
        ),
        ("a frame lost", |_, _| vec![], "frame"),
        ("a frame repeated", |f, _| vec![f.clone(), f], "repeated"),
        (
            "a frame overtaken",
            |f, held| {
                held.push(f);
                vec![]
            },
            "overtaken",
        ),
    ];
    for at in 0..messages {
        for (what, damage, says) in damages {
            let last = at + 1 == messages;
            let (mut count, mut held) = (0, Vec::new());
            let filter: FrameFilter = Box::new(move |frame| {
                let number = count;
                count += 1;
                match number == at {
                    true => damage(frame, &mut held),
                    false => std::iter::once(frame).chain(held.drain(..)).collect(),
                }
            });
            let what = format!("{what} ({at})");
            let mut keys = copy(&keys);
            let [k0, k1] = &mut keys;
            let ends = world.run([k0, k1], links(&what, Some(filter)));
            if last && what.contains("repeated") {
                harmless(&world, &outputs, &what, ends);
            } else {
                noticed(&world, &outputs, &what, ends, &[says, "step ", "node"]);
            }
        }
    }
}

#[test]
fn a_wrong_step_is_named_on_both_sides() {
    let (world, keys, outputs) = network();
    for at in 0..steps(&world, &keys) {
        for by in [1, u32::MAX] {
            let what = format!("step of message {at} off by {}", by as i32);
            let mut keys = copy(&keys);
            let [k0, k1] = &mut keys;
            let ends = world.run([k0, k1], fault(&what, at, Action::OtherStep(by)));
            let (found, due) =
                (format!("at step {}", (at as u32 + 1).wrapping_add(by)), format!("step {} ", at + 1));
            noticed(&world, &outputs, &what, ends, &["ran apart", "party 0", "party 1", &found, &due]);
        }
    }
}

/// Fails at frame `at`, as a store does for a damaged, missing or unreadable frame.
struct BadKeys<'a> {
    inner: &'a mut MemoryKeys,
    left: usize,
    short: bool,
    frame: Vec<u8>,
}

impl KeySource for BadKeys<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        if self.left == 0 {
            if self.short {
                return Err(KeyError::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
            return Err(KeyError::Corrupt("frame 7 of the key record is damaged".into()));
        }
        self.left -= 1;
        self.frame = self.inner.take(len)?.to_vec();
        Ok(&self.frame)
    }
}

#[test]
fn a_bad_key_frame_ends_the_run_on_both_sides() {
    every_bad_frame_is_named(network());
    every_bad_frame_is_named(chunked_network());
}

fn every_bad_frame_is_named((world, keys, _): (World, [MemoryKeys; 2], Vec<Vec<u64>>)) {
    let frames = keys[1].frames().count();
    assert!(frames > 10, "{frames}");
    for left in 0..frames {
        for short in [false, true] {
            let what = format!("key frame {left}");
            let mut keys = copy(&keys);
            let [k0, k1] = &mut keys;
            let mut bad = BadKeys { inner: k1, left, short, frame: Vec::new() };
            let [y0, y1] = world.run([k0, &mut bad], links(&what, None));
            assert!(matches!(y1, Err(EvalError::Keys(_))), "{what}");
            let other = y0.expect_err("the other evaluator cannot finish").to_string();
            assert!(other.contains("step ") && other.contains("node"), "{what}: {other}");
        }
    }
}

#[test]
fn keys_of_the_wrong_length_missing_or_of_another_plan_are_refused() {
    let (world, keys, _) = network();
    let run = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        use privet_fss::keys::KeySink;
        let mut frames: Vec<Vec<u8>> = keys[1].frames().map(<[u8]>::to_vec).collect();
        change(&mut frames);
        let mut changed = [MemoryKeys::default(), MemoryKeys::default()];
        frames.iter_mut().for_each(|f| changed.put([&mut Vec::new(), f]).unwrap());
        let [mut k0, _] = copy(&keys);
        let [y0, y1] = world.run([&mut k0, &mut changed[1]], links("keys", None));
        assert!(y0.is_err());
        y1.expect_err("the keys are not the plan's").to_string()
    };
    assert!(
        run(&|f| {
            f.pop();
        })
        .contains("the key stream has ended")
    );
    assert!(run(&|f| f.clear()).contains("the key stream has ended"));
    assert!(
        run(&|f| {
            f[3].pop();
        })
        .contains("bytes where")
    );
    assert!(run(&|f| f.swap(0, 1)).contains("bytes where"));
    assert!(
        run(&|f| {
            f.remove(0);
        })
        .contains("bytes where")
    );
}

/// A dead or silent peer before the first message, and inputs that nobody shared.
#[test]
fn silence_and_missing_operands_are_named() {
    let (mut world, keys, _) = network();
    let mut ends = links("one evaluator alone", None).into_links();
    let mut k0 = copy(&keys);
    let error = world.evaluate(0, &mut k0[0], ends[0].to(1)).unwrap_err();
    assert!(matches!(error, EvalError::Net(NetError::Silent { .. })), "{error}");
    assert!(error.to_string().contains("step 1 (node"), "{error}");

    let run = |world: &World| {
        let mut ends = links("one evaluator alone", None).into_links();
        world.evaluate(0, &mut copy(&keys)[0], ends[0].to(1)).unwrap_err().to_string()
    };
    let inputs = std::mem::take(&mut world.inputs);
    assert_eq!(run(&world), "input `x0` was not shared");
    world.inputs = inputs
        .into_iter()
        .map(|(v, mut x)| {
            (v, {
                x.pop();
                x
            })
        })
        .collect();
    assert_eq!(run(&world), "input `x0` was not shared");
    world.weights.clear();
    assert!(run(&world).contains("was not shared; share the model again"));
}
