//! What the receiver makes of each fault that a peer can commit on whole messages.

use std::time::Duration;

use privet_net::mem::{MemChannel, pair};
use privet_net::{Channel, NetError, Step};
use privet_testkit::fault::{Action, Faulty, When};

fn step(id: u32) -> Step {
    Step::new(id, format!("s{id}"))
}

/// Sends messages 0, 1, 2 (of 4, 5, 6 bytes, each filled with its number) at steps 10, 11, 12, with one fault;
/// returns what the peer makes of the three.
fn outcome(when: When, action: Action) -> Vec<Result<Vec<u8>, NetError>> {
    let (a, mut b): (MemChannel, MemChannel) = pair();
    let mut a = Faulty::new(a, [(when, action)]);
    for i in 0..3u8 {
        let _ = a.send(&step(10 + u32::from(i)), vec![i; 4 + usize::from(i)]);
    }
    assert!(a.pending().is_empty(), "the fault was reached");
    drop(a);
    (0..3).map(|i| b.recv(&step(10 + i), 4 + i as usize)).collect()
}

fn is_fine(outcome: &Result<Vec<u8>, NetError>, i: u8) -> bool {
    matches!(outcome, Ok(m) if *m == vec![i; 4 + usize::from(i)])
}

#[test]
fn without_a_fault_everything_passes() {
    let (a, mut b) = pair();
    let mut a = Faulty::new(a, []);
    a.send(&step(1), vec![1]).unwrap();
    assert_eq!(b.exchange(&step(1), vec![2], 1).unwrap(), [1]);
    assert_eq!(a.recv_up_to(&step(1), 4).unwrap(), [2]);
    assert_eq!((a.peer(), a.meter().total().sent), ("party 1", 1));
    a.abort("enough");
    assert!(matches!(b.recv(&step(2), 1).unwrap_err(), NetError::Aborted { .. }));
}

#[test]
fn a_missing_repeated_or_overtaken_message_is_a_desync() {
    for action in [Action::Drop, Action::Reorder] {
        let got = outcome(When::Message(1), action);
        assert!(is_fine(&got[0], 0));
        assert!(
            matches!(&got[1], Err(NetError::Desync { peer_step, .. }) if peer_step == "12 (s12)"),
            "{got:?}"
        );
    }
    let got = outcome(When::Step(10), Action::Duplicate);
    assert!(is_fine(&got[0], 0));
    assert!(matches!(&got[1], Err(NetError::Desync { peer_step, .. }) if peer_step == "10 (s10)"), "{got:?}");
    assert_eq!(got[1], got[2], "the error is final");
}

#[test]
fn a_message_of_the_wrong_length_is_refused() {
    let got = outcome(When::Step(11), Action::Truncate(3));
    assert!(matches!(got[1], Err(NetError::Length { expected: 5, found: 3, .. })), "{got:?}");
    let got = outcome(When::Message(0), Action::Swap);
    assert!(matches!(got[0], Err(NetError::Length { expected: 4, found: 5, .. })), "{got:?}");
}

#[test]
fn what_a_channel_cannot_know_passes_it() {
    // A sound message with wrong content is for the protocol's own checks.
    let got = outcome(When::Message(1), Action::FlipBit(9));
    assert_eq!(got[1].as_deref(), Ok(&[1, 3, 1, 1, 1][..]));
    let got = outcome(When::Message(1), Action::Delay(Duration::from_millis(5)));
    assert!((0..3).all(|i| is_fine(&got[i], i as u8)));
}

#[test]
fn a_killed_peer_is_reported_after_what_it_sent() {
    let got = outcome(When::Message(1), Action::Kill);
    assert!(is_fine(&got[0], 0));
    assert!(matches!(&got[1], Err(NetError::Closed { step, .. }) if step == "11 (s11)"), "{got:?}");
}
