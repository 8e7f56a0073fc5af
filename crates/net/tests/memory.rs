//! The channel's promises, over memory: order, lengths, steps, counts, and what each kind of damage reports.

use std::thread;
use std::time::{Duration, Instant};

use privet_net::frame::{FrameError, HEADER_LEN, MAX_CHUNK};
use privet_net::mem::{MemChannel, MemOptions, pair, pair_with};
use privet_net::{Channel, Fault, FrameFilter, NetError, NetworkProfile, Step};

fn step(id: u32) -> Step {
    Step::new(id, format!("layer{id} / open"))
}

/// A pair whose first end sends through `filter`.
fn filtered(filter: FrameFilter) -> (MemChannel, MemChannel) {
    let options = MemOptions { filter: Some(filter), ..MemOptions::named("party 0") };
    pair_with(options, MemOptions::named("party 1"))
}

#[test]
fn messages_of_every_size_arrive_whole_and_in_order() {
    let (mut a, mut b) = pair();
    let sizes = [0, 1, 40, MAX_CHUNK - 1, MAX_CHUNK, MAX_CHUNK + 1, 3 * MAX_CHUNK, 5 * MAX_CHUNK + 17];
    for (i, &n) in sizes.iter().enumerate() {
        a.send(&step(i as u32), (0..n).map(|j| (i * 31 + j * 7) as u8).collect()).unwrap();
    }
    for (i, &n) in sizes.iter().enumerate() {
        let expected: Vec<u8> = (0..n).map(|j| (i * 31 + j * 7) as u8).collect();
        let got = if i % 2 == 0 { b.recv(&step(i as u32), n) } else { b.recv_up_to(&step(i as u32), n + 5) };
        assert!(got.unwrap() == expected, "message {i}");
    }
}

#[test]
fn both_sides_exchange_at_once() {
    let (mut a, mut b) = pair();
    let other = thread::spawn(move || b.exchange(&step(1), vec![2; 9_000_000], 7_000_000).unwrap());
    assert_eq!(a.exchange(&step(1), vec![1; 7_000_000], 9_000_000).unwrap(), vec![2; 9_000_000]);
    assert_eq!(other.join().unwrap(), vec![1; 7_000_000]);
}

#[test]
fn different_steps_name_both_parties_and_steps() {
    let (mut a, mut b) = pair();
    b.send(&Step::new(17, "conv2 / open"), vec![0; 8]).unwrap();
    let error = a.recv(&Step::new(18, "relu2 / bits"), 8).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("party 1 is at step 17 (conv2 / open), party 0 at step 18 (relu2 / bits)"),
        "{text}"
    );
    assert_eq!(error.fault(), Fault::Peer);
    // The error is final here, and the peer learns it too.
    assert_eq!(a.recv(&step(17), 8).unwrap_err(), error);
    assert_eq!(a.send(&step(17), vec![]).unwrap_err(), error);
    let told = b.recv(&Step::new(18, "x"), 1).unwrap_err();
    assert_eq!(told, NetError::Aborted { peer: "party 0".into(), reason: text });
}

#[test]
fn wrong_lengths_are_refused_before_the_body() {
    for (sent, expected) in [(7u64, 8u64), (9, 8), (0, 1), (1, 0), (3_000_000, 2_999_999)] {
        let (mut a, mut b) = pair();
        a.send(&step(3), vec![0; sent as usize]).unwrap();
        let error = b.recv(&step(3), expected as usize).unwrap_err();
        let (peer, step) = ("party 0".into(), step(3).to_string());
        assert_eq!(error, NetError::Length { peer, step, expected, found: sent });
    }
    let (mut a, mut b) = pair();
    a.send(&step(3), vec![0; 101]).unwrap();
    let error = b.recv_up_to(&step(3), 100).unwrap_err();
    assert!(matches!(error, NetError::TooLong { max: 100, found: 101, .. }), "{error}");
}

#[test]
fn every_flipped_bit_of_a_frame_is_noticed() {
    let frame_bits = (HEADER_LEN + 5 + step(9).name.len()) * 8;
    for bit in 0..frame_bits {
        let (mut a, mut b) = filtered(Box::new(move |mut frame| {
            if let Some(byte) = frame.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            vec![frame]
        }));
        a.send(&step(9), vec![0xa5; 5]).unwrap();
        drop(a); // a larger length would wait for more bytes
        let error = b.recv(&step(9), 5).unwrap_err();
        assert!(matches!(error, NetError::BadFrame { .. }), "bit {bit}: {error}");
    }
}

#[test]
fn lost_repeated_and_overtaken_frames_are_told_apart_from_data() {
    let lost: FrameFilter = Box::new({
        let mut n = 0;
        move |frame| {
            n += 1;
            if n == 1 { vec![] } else { vec![frame] }
        }
    });
    let repeated: FrameFilter = Box::new(|frame| vec![frame.clone(), frame]);
    let overtaken: FrameFilter = Box::new({
        let mut held: Option<Vec<u8>> = None;
        move |frame| match held.take() {
            None => {
                held = Some(frame);
                vec![]
            }
            Some(first) => vec![frame, first],
        }
    });
    for (filter, expected, found) in [(lost, 0, 1), (repeated, 1, 0), (overtaken, 0, 1)] {
        let (mut a, mut b) = filtered(filter);
        a.send(&step(1), vec![1; 4]).unwrap();
        a.send(&step(1), vec![2; 4]).unwrap();
        let error = (0..2).find_map(|_| b.recv(&step(1), 4).err()).unwrap();
        let (peer, at) = ("party 0".into(), step(1).to_string());
        assert_eq!(
            error,
            NetError::BadFrame { peer, step: at, error: FrameError::Sequence { expected, found } }
        );
    }
}

#[test]
fn a_truncated_frame_is_noticed() {
    let (mut a, mut b) = filtered(Box::new(|mut frame| {
        frame.truncate(frame.len() - 3);
        vec![frame]
    }));
    a.send(&step(1), vec![1; 100]).unwrap();
    drop(a);
    let error = b.recv(&step(1), 100).unwrap_err();
    assert!(matches!(error, NetError::BadFrame { .. }), "{error}");
}

#[test]
fn a_peer_that_ends_is_told_apart_from_one_that_is_killed() {
    let (a, mut b) = pair();
    drop(a);
    let error = b.recv(&step(5), 1).unwrap_err();
    assert!(matches!(&error, NetError::Ended { step, .. } if step.contains("layer5")), "{error}");

    let (mut a, mut b) = pair();
    a.send(&step(4), vec![7]).unwrap();
    a.sever();
    assert!(a.send(&step(5), vec![1]).is_err());
    assert_eq!(b.recv(&step(4), 1).unwrap(), [7], "what was sent before still counts");
    let error = b.recv(&step(5), 1).unwrap_err();
    assert!(matches!(&error, NetError::Closed { .. }), "{error}");
    assert!(error.to_string().contains("party 0"), "{error}");
    assert!(matches!(b.send(&step(6), vec![1]).unwrap_err(), NetError::Closed { .. }));
}

#[test]
fn a_send_to_a_dead_peer_fails_with_its_last_words() {
    let (mut a, mut b) = pair();
    a.abort("disk full");
    let error = b.send(&step(2), vec![1]).unwrap_err();
    assert_eq!(error, NetError::Aborted { peer: "party 0".into(), reason: "disk full".into() });
}

#[test]
fn texts_from_the_peer_cannot_control_a_terminal() {
    let (mut a, mut b) = pair();
    a.send(&Step::new(1, "evil\u{1b}[2J\nname"), vec![]).unwrap();
    let text = b.recv(&step(2), 0).unwrap_err().to_string();
    assert!(!text.contains('\u{1b}') && !text.contains('\n'), "{text:?}");
    let long = Step::new(1, "ü".repeat(200));
    let (mut a, mut b) = pair();
    a.send(&long, vec![1]).unwrap();
    assert_eq!(b.recv(&long, 1).unwrap(), [1]);
}

#[test]
fn bytes_and_rounds_are_counted_by_phase() {
    let (mut a, mut b) = pair();
    let meter = a.meter();
    meter.phase("conv1");
    let other = thread::spawn(move || {
        for i in 0..3 {
            b.exchange(&step(i), vec![0; 50], 100).unwrap();
        }
        b.send(&step(3), vec![0; 10]).unwrap();
        b.send(&step(4), vec![0; 20]).unwrap();
        b
    });
    for i in 0..3 {
        a.exchange(&step(i), vec![0; 100], 50).unwrap();
    }
    meter.phase("relu1");
    a.recv(&step(3), 10).unwrap();
    a.recv(&step(4), 20).unwrap();
    let phases = meter.snapshot();
    let (conv, relu) = (&phases[0], &phases[1]);
    assert_eq!((conv.0.as_str(), relu.0.as_str()), ("conv1", "relu1"));
    assert_eq!((conv.1.sent, conv.1.received, conv.1.rounds, conv.1.messages), (300, 150, 3, 3));
    let header = (HEADER_LEN + step(0).name.len()) as u64;
    assert_eq!(conv.1.wire_sent, 3 * (100 + header));
    assert_eq!((relu.1.sent, relu.1.received, relu.1.rounds), (0, 30, 0), "nothing sent: no further round");
    let b = other.join().unwrap();
    assert_eq!(b.meter().total().sent, 180);
    assert_eq!(b.meter().total().rounds, 3);
}

#[test]
fn an_emulated_network_delays_and_limits() {
    let network = NetworkProfile { rtt_ms: 40.0, bandwidth_bytes_per_s: Some(10e6) };
    let ends = ["party 0", "party 1"].map(|n| MemOptions { network, ..MemOptions::named(n) });
    let [a, b] = ends;
    let (mut a, mut b) = pair_with(a, b);
    let start = Instant::now();
    let other = thread::spawn(move || {
        b.recv(&step(0), 600_000).unwrap();
        b.send(&step(0), vec![1]).unwrap();
        b
    });
    a.send(&step(0), vec![0; 600_000]).unwrap();
    a.recv(&step(0), 1).unwrap();
    // One round trip plus 60 ms of occupied link: a lower bound, so load cannot break it.
    assert!(start.elapsed() >= Duration::from_millis(100));
    drop(other.join().unwrap());
}

#[test]
fn a_silent_peer_is_reported() {
    let impatient = MemOptions { patience: Duration::from_millis(50), ..MemOptions::named("party 1") };
    let (a, mut b) = pair_with(MemOptions::named("party 0"), impatient);
    let error = b.recv(&step(8), 1).unwrap_err();
    assert!(matches!(&error, NetError::Silent { step, .. } if step.contains("layer8")), "{error}");
    drop(a);
}

#[test]
fn what_a_peer_sent_before_it_went_can_still_be_received() {
    let (mut a, mut b) = pair();
    a.send(&step(1), vec![6]).unwrap();
    drop(a);
    assert!(matches!(b.send(&step(1), vec![1]).unwrap_err(), NetError::Ended { .. }));
    assert_eq!(b.recv(&step(1), 1).unwrap(), [6]);
    assert!(matches!(b.recv(&step(2), 1).unwrap_err(), NetError::Ended { .. }));
}
