//! What an authenticated peer that keeps to no rule can cost: memory and time are bounded here, not by it.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use common::{PATIENCE, connect_with, hello, step};
use privet_net::frame::{Encoder, HEADER_LEN, MAX_CHUNK, chunk_at};
use privet_net::{Channel, Listener, NetError, NetworkProfile, Options, Pin, Security, Step, TcpChannel};

const MIB: usize = 1 << 20;

fn of(encrypted: bool) -> (TcpChannel, TcpChannel) {
    connect_with(encrypted, [Options::default(), Options::default()])
}

/// A channel, and the bare socket of a peer that has greeted and from now on does as the test likes.
fn bare_peer() -> (TcpChannel, TcpStream) {
    let pins = vec![Pin::insecure("party 1")];
    let listener = Listener::bind("127.0.0.1:0", Security::InsecurePlain, pins).unwrap();
    let address = listener.local_address().unwrap();
    let caller = thread::spawn(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        let greeting = hello("party 1").encode();
        socket.write_all(&(greeting.len() as u16).to_be_bytes()).unwrap();
        socket.write_all(&greeting).unwrap();
        let mut prefix = [0; 2];
        socket.read_exact(&mut prefix).unwrap();
        socket.read_exact(&mut vec![0; u16::from_be_bytes(prefix).into()]).unwrap();
        socket
    });
    let (channel, _) = listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).unwrap();
    (channel, caller.join().unwrap())
}

/// The frames of a message.
fn frames(encoder: &mut Encoder, step: &Step, message: &[u8]) -> Vec<Vec<u8>> {
    (0..message.len())
        .step_by(MAX_CHUNK)
        .map(|offset| {
            let (header, name) = encoder.data(step, message, offset);
            [&header[..], chunk_at(message, offset), name].concat()
        })
        .collect()
}

#[test]
fn empty_messages_that_nobody_receives_are_bounded() {
    const MESSAGES: usize = 1_000_000;
    let named = Step::new(1, "n".repeat(96));
    for encrypted in [true, false] {
        let (mut a, b) = of(encrypted);
        a.set_patience(Some(Duration::from_secs(2)));
        let error = (0..MESSAGES).find_map(|_| a.send(&named, Vec::new()).err());
        assert!(matches!(error, Some(NetError::Stuck { .. })), "{error:?}");
        // 64 MiB at 512 bytes a message beside its name, and one turn of reading.
        let most = (64 * MIB / (512 + 96) + MIB / (HEADER_LEN + 96)) * (HEADER_LEN + 96 + 30);
        let taken = b.meter().total().wire_received as usize;
        assert!(taken < most, "{taken} bytes taken in, {most} are the most");
    }
}

#[test]
fn a_blocked_send_does_not_lift_the_bound_on_what_is_taken_in() {
    let (mut channel, mut socket) = bare_peer();
    socket.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let sender = thread::spawn(move || {
        // More than the queue holds while the peer reads nothing: the last waits until the inbound queue is full too.
        (0..4).for_each(|i| channel.send(&step(i), vec![1; 40 * MIB]).unwrap());
        channel
    });
    thread::sleep(Duration::from_millis(300));
    let mut encoder = Encoder::default();
    let message = vec![2; 4 * MIB];
    let flood = (0..100).flat_map(|_| frames(&mut encoder, &step(1), &message)).collect::<Vec<_>>();
    let stalled = flood.iter().any(|frame| socket.write_all(frame).is_err());
    assert!(stalled, "400 MiB were taken in");
    let mut channel = sender.join().unwrap();
    let taken = channel.meter().total().wire_received as usize;
    assert!((60 * MIB..70 * MIB).contains(&taken), "{taken} bytes taken in");
    channel.sever();
}

#[test]
fn a_message_has_one_deadline_however_its_parts_are_spread() {
    let (mut channel, mut socket) = bare_peer();
    channel.set_patience(Some(Duration::from_secs(2)));
    let message = vec![3; 12 * MAX_CHUNK];
    let drip = thread::spawn(move || {
        for frame in frames(&mut Encoder::default(), &step(1), &vec![3; 12 * MAX_CHUNK]) {
            // Each in time, were there a deadline for each.
            if socket.write_all(&frame).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(500));
        }
    });
    let error = channel.recv(&step(1), message.len()).err().expect("it takes too long");
    assert!(matches!(&error, NetError::Slow { peer, kib_per_s: 4096, .. } if peer == "party 1"), "{error}");
    assert!(error.to_string().contains("1 (layer1 / open)") && error.to_string().contains("timeouts.step"));
    assert_eq!(channel.recv(&step(1), 1).unwrap_err(), error, "final");
    drip.join().unwrap();
}

#[test]
fn slow_links_carry_messages_that_take_longer_than_the_patience() {
    const LONG: usize = 40 * MIB;
    let network = NetworkProfile { rtt_ms: 0.0, bandwidth_bytes_per_s: Some(20e6) };
    let slow = Options { network, ..Options::default() };
    let (mut a, mut b) = connect_with(true, [slow, Options::default()]);
    b.set_patience(Some(Duration::from_secs(1)));
    let start = Instant::now();
    let sender = thread::spawn(move || a.send(&step(1), vec![4; LONG]).map(|()| a));
    assert!(b.recv(&step(1), LONG).unwrap() == vec![4; LONG]);
    assert!(start.elapsed() > Duration::from_secs(2), "the link is slower than that");
    drop(sender.join().unwrap().unwrap());
}

#[test]
fn a_sender_is_patient_with_a_slow_link_as_well() {
    const LONG: usize = 100 * MIB;
    let network = NetworkProfile { rtt_ms: 0.0, bandwidth_bytes_per_s: Some(20e6) };
    let slow = Options { network, ..Options::default() };
    let (mut a, mut b) = connect_with(false, [slow, Options::default()]);
    a.set_patience(Some(Duration::from_millis(1500)));
    let receiver = thread::spawn(move || {
        let whole = b.recv(&step(1), LONG).unwrap() == vec![5; LONG];
        whole && b.recv(&step(2), 1).unwrap() == [6]
    });
    a.send(&step(1), vec![5; LONG]).unwrap();
    let start = Instant::now();
    a.send(&step(2), vec![6]).unwrap();
    assert!(start.elapsed() > Duration::from_millis(1600), "there was room only after 36 MiB had left");
    drop(a);
    assert!(receiver.join().unwrap());
}
