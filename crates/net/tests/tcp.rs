//! The channel over TLS and plain TCP on loopback.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, connect, connect_with, hello, pin, protection, step};
use privet_net::frame::{FrameError, MAX_CHUNK};
use privet_net::{Channel, FrameFilter, Listener, NetError, NetworkProfile, Options, dial};

#[test]
fn messages_of_every_size_arrive_whole_and_in_order() {
    for encrypted in [true, false] {
        let (mut a, mut b) = connect(encrypted);
        let sizes = [0, 1, 40, 16_384, MAX_CHUNK, MAX_CHUNK + 1, 5 * MAX_CHUNK + 17, 3];
        let sender = thread::spawn(move || {
            for (i, &n) in sizes.iter().enumerate() {
                a.send(&step(i as u32), (0..n).map(|j| (i * 31 + j * 7) as u8).collect()).unwrap();
            }
            a.recv(&step(99), 2).unwrap()
        });
        for (i, &n) in sizes.iter().enumerate() {
            let expected: Vec<u8> = (0..n).map(|j| (i * 31 + j * 7) as u8).collect();
            assert!(b.recv(&step(i as u32), n).unwrap() == expected, "message {i}");
        }
        b.send(&step(99), vec![1, 2]).unwrap();
        drop(b);
        assert_eq!(sender.join().unwrap(), [1, 2], "a proper end delivers what was queued");
    }
}

/// Which thread sends a message depends on its size, and on whether others wait.
#[test]
fn small_and_large_messages_keep_their_order_both_ways() {
    const SIZES: [usize; 7] = [1, 70_000, 64_000, 65_536, 10, 300_000, 0];
    let message = |i: usize, from: u8| vec![i as u8 ^ from; SIZES[i % SIZES.len()]];
    for encrypted in [true, false] {
        let (a, b) = connect(encrypted);
        let talk = move |mut channel: privet_net::TcpChannel, [me, peer]: [u8; 2]| {
            for i in 0..400 {
                channel.send(&step(i as u32), message(i, me)).unwrap();
                // several at once, and with pauses in which I/O threads fall asleep
                if i % 5 == usize::from(me) {
                    thread::sleep(Duration::from_micros(300));
                }
                if i % 3 == 2 {
                    for j in i - 2..=i {
                        let expected = message(j, peer);
                        assert!(channel.recv(&step(j as u32), expected.len()).unwrap() == expected, "{j}");
                    }
                }
            }
            channel
        };
        let other = thread::spawn(move || talk(b, [1, 2]));
        let a = talk(a, [2, 1]);
        drop((a, other.join().unwrap()));
    }
}

/// A message that the emulated network holds back is not overtaken by the next one, nor lost by it.
#[test]
fn small_messages_keep_their_order_over_an_emulated_network() {
    let network = NetworkProfile::parse("rtt=20ms,bandwidth=80Mbit/s").unwrap();
    let options = [Options { network, ..Options::default() }, Options::default()];
    let (mut a, mut b) = connect_with(true, options);
    for pause in [0, 1, 15] {
        for i in 0..10 {
            a.send(&step(1), vec![i; 1_000]).unwrap();
            thread::sleep(Duration::from_millis(pause));
        }
        (0..10).for_each(|i| assert!(b.recv(&step(1), 1_000).unwrap() == vec![i; 1_000], "message {i}"));
    }
}

#[test]
fn buffers_of_sent_messages_are_filled_again_and_every_message_stays_as_it_was() {
    const LEN: usize = 300_000;
    for encrypted in [true, false] {
        let (mut a, mut b) = connect(encrypted);
        let mut reused = 0;
        for i in 0..40u8 {
            let mut messages = Vec::new();
            for part in 0..3 {
                let mut buffer = a.spare();
                reused += usize::from(buffer.capacity() >= LEN);
                buffer.clear();
                buffer.resize(LEN, 3 * i + part);
                messages.push(buffer);
            }
            messages.into_iter().for_each(|message| a.send(&step(1), message).unwrap());
            (0..3).for_each(|part| assert!(b.recv(&step(1), LEN).unwrap() == vec![3 * i + part; LEN]));
            // What comes after has left after: so the buffers are back.
            a.send(&step(2), vec![1]).unwrap();
            assert_eq!(b.recv(&step(2), 1).unwrap(), [1]);
        }
        assert_eq!(reused, 39 * 3, "all but the first");
    }
}

#[test]
fn large_exchanges_do_not_lock_up() {
    const BIG: usize = 64 << 20;
    for encrypted in [true, false] {
        let (mut a, mut b) = connect(encrypted);
        let other = thread::spawn(move || b.exchange(&step(1), vec![2; BIG], BIG).unwrap());
        assert!(a.exchange(&step(1), vec![1; BIG], BIG).unwrap() == vec![2; BIG]);
        assert!(other.join().unwrap() == vec![1; BIG]);
        let total = a.meter().total();
        assert_eq!((total.sent, total.received, total.rounds), (BIG as u64, BIG as u64, 1));
        assert!(total.wire_sent > BIG as u64 && total.wire_sent < BIG as u64 + (BIG as u64) / 200);
    }
}

#[test]
fn both_sides_may_send_beyond_all_bounds_before_receiving() {
    const PART: usize = 48 << 20;
    let (a, b) = connect(false);
    let ends = [a, b].map(|mut end| {
        thread::spawn(move || {
            (0..4).for_each(|i| end.send(&step(i), vec![i as u8; PART]).unwrap());
            (0..4).for_each(|i| assert!(end.recv(&step(i), PART).unwrap() == vec![i as u8; PART]));
        })
    });
    ends.into_iter().for_each(|end| end.join().unwrap());
}

#[test]
fn a_dead_peer_surfaces_at_once_in_a_blocked_receive_and_in_send() {
    for encrypted in [true, false] {
        let (mut a, mut b) = connect(encrypted);
        let waiting = thread::spawn(move || {
            let error = b.recv(&step(5), 10).unwrap_err();
            (b.send(&step(6), vec![1]).unwrap_err(), error)
        });
        thread::sleep(Duration::from_millis(30));
        a.sever();
        let (sent, received) = waiting.join().unwrap();
        assert!(
            matches!(&received, NetError::Closed { step, .. } if step == "5 (layer5 / open)"),
            "{received}"
        );
        assert!(matches!(&sent, NetError::Closed { step, .. } if step == "6 (layer6 / open)"), "{sent}");
        let text = received.to_string();
        assert!(text.starts_with("party 0 (127.0.0.1:") && text.contains("look at its log"), "{text}");
    }
}

#[test]
fn a_peer_killed_in_the_middle_of_a_transfer_is_reported() {
    for encrypted in [true, false] {
        let (mut a, mut b) = connect(encrypted);
        // On a busy machine all of it may arrive before the end: then it is the next receive that ends.
        let other = thread::spawn(move || (0..2).find_map(|_| b.recv(&step(1), 200 << 20).err()).unwrap());
        a.send(&step(1), vec![3; 200 << 20]).unwrap();
        thread::sleep(Duration::from_millis(10));
        a.sever();
        let error = other.join().unwrap();
        assert!(matches!(error, NetError::Closed { .. }), "{error}");
    }
}

#[test]
fn the_peer_learns_why_this_side_gives_up() {
    let (mut a, mut b) = connect(true);
    a.send(&step(1), vec![4]).unwrap();
    b.recv(&step(1), 1).unwrap();
    a.abort("the disk is full");
    let error = b.recv(&step(2), 1).unwrap_err();
    assert_eq!(error, NetError::Aborted { peer: "party 0".into(), reason: "the disk is full".into() });
    assert!(matches!(a.recv(&step(2), 1).unwrap_err(), NetError::ClosedHere { .. }));
}

#[test]
fn different_steps_are_reported_on_both_sides() {
    let (mut a, mut b) = connect(true);
    let other = thread::spawn(move || b.exchange(&step(17), vec![0; 9], 9).unwrap_err());
    let ours = a.exchange(&step(18), vec![0; 9], 9).unwrap_err();
    let theirs = other.join().unwrap();
    let both = "is at step 17 (layer17 / open), party 0 at step 18 (layer18 / open)";
    assert!(ours.to_string().contains(both) || matches!(ours, NetError::Aborted { .. }), "{ours}");
    let swapped = "is at step 18 (layer18 / open), party 1 at step 17 (layer17 / open)";
    let theirs = theirs.to_string();
    assert!(theirs.contains(both) || theirs.contains(swapped), "{theirs}");
}

#[test]
fn damaged_repeated_and_lost_frames_are_refused() {
    let flip = || -> FrameFilter {
        Box::new(|mut frame| {
            frame[60] ^= 4;
            vec![frame]
        })
    };
    let repeat = || -> FrameFilter { Box::new(|frame| vec![frame.clone(), frame]) };
    let lose_first = || -> FrameFilter {
        let mut first = true;
        Box::new(move |frame| if std::mem::take(&mut first) { vec![] } else { vec![frame] })
    };
    for encrypted in [true, false] {
        let cases = [
            (flip(), FrameError::Checksum { seq: 0 }),
            (repeat(), FrameError::Sequence { expected: 1, found: 0 }),
            (lose_first(), FrameError::Sequence { expected: 0, found: 1 }),
        ];
        for (filter, expected) in cases {
            let options = [Options { filter: Some(filter), ..Options::default() }, Options::default()];
            let (mut a, mut b) = connect_with(encrypted, options);
            a.send(&step(1), vec![0; 100]).unwrap();
            // The other side may have noticed the first already.
            let _ = a.send(&step(1), vec![0; 100]);
            let error = (0..2).find_map(|_| b.recv(&step(1), 100).err()).unwrap();
            let (peer, at) = ("party 0".into(), step(1).to_string());
            assert_eq!(error, NetError::BadFrame { peer, step: at, error: expected });
            let told = a.recv(&step(2), 1).unwrap_err();
            assert!(
                matches!(&told, NetError::Aborted { reason, .. } if reason.contains("bad frame")),
                "{told}"
            );
        }
    }
}

#[test]
fn heartbeats_keep_a_busy_peer_alive() {
    let quick = || Options {
        heartbeat: Duration::from_millis(20),
        silence: Duration::from_millis(1500),
        ..Options::default()
    };
    let (mut a, mut b) = connect_with(true, [quick(), quick()]);
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(2000)); // computes
        b.send(&step(1), vec![5]).unwrap();
        b
    });
    assert_eq!(a.recv(&step(1), 1).unwrap(), [5]);
    drop(other.join().unwrap());
}

#[test]
fn a_peer_without_heartbeats_is_given_up() {
    let mute = Options { heartbeat: Duration::from_secs(100), ..Options::default() };
    let strict = Options { silence: Duration::from_millis(150), ..Options::default() };
    let (a, mut b) = connect_with(true, [mute, strict]);
    let error = b.recv(&step(3), 1).unwrap_err();
    assert!(matches!(&error, NetError::Silent { step, .. } if step.contains("layer3")), "{error}");
    drop(a);
}

#[test]
fn parties_that_wait_for_each_other_are_told() {
    let quick = || Options { heartbeat: Duration::from_millis(20), ..Options::default() };
    let (mut a, mut b) = connect_with(true, [quick(), quick()]);
    a.send(&step(1), vec![1]).unwrap();
    b.recv(&step(1), 1).unwrap();
    let other = thread::spawn(move || b.recv(&step(2), 1).unwrap_err());
    let errors = [a.recv(&step(2), 1).unwrap_err(), other.join().unwrap()];
    assert!(errors.iter().any(|e| matches!(e, NetError::Stalled { .. })), "{errors:?}");
    assert!(errors.iter().all(|e| e.to_string().contains("wait for each other")), "{errors:?}");
}

#[test]
fn an_emulated_network_delays_and_limits_over_tls() {
    let network = NetworkProfile { rtt_ms: 40.0, bandwidth_bytes_per_s: Some(10e6) };
    let slow = || Options { network, ..Options::default() };
    let (mut a, mut b) = connect_with(true, [slow(), slow()]);
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
fn leaving_delivers_everything_to_a_slow_peer_that_still_talks() {
    const PART: usize = 24 << 20;
    for encrypted in [true, false] {
        let quick = || Options { heartbeat: Duration::from_millis(10), ..Options::default() };
        let (mut a, mut b) = connect_with(encrypted, [quick(), quick()]);
        let sender = thread::spawn(move || {
            // More than both queues and the sockets hold, then gone.
            (0..8).for_each(|i| a.send(&step(i), vec![i as u8; PART]).unwrap());
        });
        for i in 0..8 {
            thread::sleep(Duration::from_millis(40)); // computes, while its heartbeats reach the leaving peer
            assert!(b.recv(&step(i), PART).unwrap() == vec![i as u8; PART], "message {i}");
        }
        sender.join().unwrap();
        let error = b.recv(&step(9), 1).unwrap_err();
        assert!(matches!(error, NetError::Ended { .. }), "{error}");
    }
}

#[test]
fn a_party_that_panics_tells_its_peer() {
    let (mut a, b) = connect(true);
    let broken = thread::spawn(move || {
        let _b = b;
        panic!("expected by this test");
    });
    assert!(broken.join().is_err());
    let error = a.recv(&step(1), 1).unwrap_err();
    assert!(matches!(&error, NetError::Aborted { reason, .. } if reason.contains("unexpectedly")), "{error}");
}

#[test]
fn texts_and_sizes_of_a_hostile_peer_are_bounded() {
    let (mut a, mut b) = connect(true);
    a.abort(&"\u{1b}[31mx".repeat(10_000));
    let NetError::Aborted { reason, .. } = b.recv(&step(1), 1).unwrap_err() else { panic!("another error") };
    assert!(reason.len() <= 2000 && !reason.contains('\u{1b}'));
    let (mut a, mut b) = connect(true);
    a.send(&step(1), vec![0; 1 << 20]).unwrap();
    assert!(matches!(b.recv_up_to(&step(1), 1000).unwrap_err(), NetError::TooLong { max: 1000, .. }));
}

/// Passes bytes on until the end, inverting one bit of the byte with number `at`.
fn relay(mut from: TcpStream, mut to: TcpStream, at: Option<usize>) {
    let (mut buffer, mut passed) = ([0; 65536], 0);
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if let Some(at) = at.filter(|at| (passed..passed + n).contains(at)) {
            buffer[at - passed] ^= 0x10;
        }
        passed += n;
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[test]
fn a_bit_flipped_on_the_wire_breaks_the_encrypted_connection() {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let server = listener.local_address().unwrap();
    let middle = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = middle.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (client, server) = (middle.accept().unwrap().0, TcpStream::connect(server).unwrap());
        let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || relay(back_from, back_to, None));
        relay(client, server, Some(500_000));
    });
    let dialer = thread::spawn(move || {
        let hello = hello("party 1");
        dial(&address, &protection(1, true), &pin(0), &hello, Options::default(), PATIENCE).unwrap().0
    });
    let (mut a, _) = listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).unwrap();
    let mut b = dialer.join().unwrap();
    b.send(&step(1), vec![7; 1 << 20]).unwrap();
    let error = a.recv(&step(1), 1 << 20).unwrap_err();
    assert!(matches!(error, NetError::BadRecord { .. }), "{error}");
    assert!(error.to_string().contains("damaged or tampered with"), "{error}");
    assert!(b.recv(&step(2), 1).is_err());
}

#[test]
fn a_live_peer_that_does_nothing_is_given_up_when_patience_ends() {
    let options = || Options { heartbeat: Duration::from_millis(20), ..Options::default() };
    let (mut a, mut b) = connect_with(true, [options(), options()]);
    a.set_patience(Some(Duration::from_millis(200)));
    // Part of a message is not the message, but it is progress: the wait begins anew with every frame.
    b.send(&step(1), vec![7; 3]).unwrap();
    assert_eq!(a.recv(&step(1), 3).unwrap(), [7; 3]);
    let error = a.recv(&step(2), 3).unwrap_err();
    assert!(matches!(&error, NetError::Stuck { peer, .. } if peer == "party 1"), "{error}");
    assert!(error.to_string().contains("2 (layer2 / open)") && error.to_string().contains("timeouts.step"));
    assert_eq!(a.recv(&step(2), 3).unwrap_err(), error, "final");
    assert!(!a.is_open());
    let told = b.recv(&step(2), 3).unwrap_err().to_string();
    assert!(told.contains("party 0 gave up") && told.contains("waited for it in vain"), "{told}");
    assert!(!b.is_open());
}

#[test]
fn a_peer_that_takes_nothing_in_is_given_up_as_well() {
    const PART: usize = 48 << 20;
    let options = || Options { heartbeat: Duration::from_millis(20), ..Options::default() };
    let (mut a, b) = connect_with(false, [options(), options()]);
    a.set_patience(Some(Duration::from_millis(300)));
    assert!(a.is_open() && b.is_open());
    let error = (0..20).find_map(|i| a.send(&step(i), vec![1; PART]).err()).expect("queues are bounded");
    assert!(matches!(error, NetError::Stuck { .. }), "{error}");
}

#[test]
fn leaving_a_live_peer_that_takes_nothing_in_is_bounded() {
    for encrypted in [true, false] {
        let options = || Options { heartbeat: Duration::from_millis(50), ..Options::default() };
        let (mut a, b) = connect_with(encrypted, [options(), options()]);
        a.set_patience(Some(Duration::from_secs(1)));
        // More than the queues of both sides and the sockets hold, and less than what `send` waits for.
        for _ in 0..100 {
            a.send(&step(1), vec![1; 1 << 20]).unwrap();
        }
        let (left, heard) = std::sync::mpsc::channel();
        thread::spawn(move || {
            drop(a);
            let _ = left.send(());
        });
        heard.recv_timeout(Duration::from_secs(60)).expect("it waits for ever");
        drop(b);
    }
}
