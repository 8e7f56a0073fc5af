//! Against `rustls` as the peer, and against peers that keep to no rule.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use rustls::{AlertDescription, Connection, ServerConnection};

use super::*;
use crate::tcp::tls::{self, PinnedPeers};
use crate::{Identity, Pin};

/// Sizes around those of a record.
const SIZES: [usize; 9] = [1, 40, CONTENT - 1, CONTENT, CONTENT + 1, 2 * CONTENT, 100_000, 3, 300_000];

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + len) as u8).collect()
}

fn identities() -> [(Identity, Arc<PinnedPeers>); 2] {
    let [a, b] = ["a", "b"].map(|name| Identity::generate(name).unwrap());
    let know = |id: &Identity| PinnedPeers::new(&[Pin::new("peer", id.fingerprint())]);
    let (knows_a, knows_b) = (know(&a), know(&b));
    [(a, knows_b), (b, knows_a)]
}

/// A caller's records, and a peer whose own are those of `rustls`.
fn beside_rustls() -> (Records, Connection) {
    let [(caller, knows_called), (called, knows_caller)] = identities();
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let peer = thread::spawn(move || {
        let config = tls::server_config(&called, &knows_caller).unwrap();
        let mut peer = Connection::Server(ServerConnection::new(config).unwrap());
        while peer.is_handshaking() {
            peer.complete_io(&mut far).unwrap();
        }
        peer
    });
    let records = tls::client(&caller, &knows_called).unwrap().shake_hands(&mut near).unwrap();
    (records, peer.join().unwrap())
}

/// Both sides' records.
fn pair() -> [Records; 2] {
    let [(caller, knows_called), (called, knows_caller)] = identities();
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let peer =
        thread::spawn(move || tls::server(&called, &knows_caller).unwrap().shake_hands(&mut far).unwrap());
    let records = tls::client(&caller, &knows_called).unwrap().shake_hands(&mut near).unwrap();
    [records, peer.join().unwrap()]
}

fn wire(out: &mut Out) -> Vec<u8> {
    let mut wire = Vec::new();
    out.flush(&mut wire).unwrap();
    wire
}

fn sealed(records: &mut Records, parts: [&[u8]; 3]) -> Vec<u8> {
    let mut out = Out::default();
    records.seal(parts, &mut out).unwrap();
    wire(&mut out)
}

/// Everything that `records` open of `wire`, which comes in pieces of `piece` bytes.
fn opened(records: &mut Records, wire: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
    opened_with(records, wire, piece, &mut Out::default())
}

/// The same, with what is said in return.
fn opened_with(
    records: &mut Records,
    mut wire: &[u8],
    piece: usize,
    out: &mut Out,
) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    loop {
        match records.next(out)? {
            Record::Content(bytes) => content.extend_from_slice(bytes),
            Record::Incomplete if wire.is_empty() => return Ok(content),
            Record::Incomplete => {
                let free = records.space();
                let n = wire.len().min(piece).min(free.len());
                free[..n].copy_from_slice(&wire[..n]);
                records.filled(n);
                wire = &wire[n..];
            }
            Record::End => {
                content.extend_from_slice(b"end");
                return Ok(content);
            }
        }
    }
}

fn told_by_rustls(peer: &mut Connection, mut wire: &[u8]) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    while !wire.is_empty() {
        peer.read_tls(&mut wire).unwrap();
        peer.process_new_packets()?;
        let mut read = vec![0; CONTENT];
        while let Ok(n @ 1..) = peer.reader().read(&mut read) {
            content.extend_from_slice(&read[..n]);
        }
    }
    Ok(content)
}

fn said_by_rustls(peer: &mut Connection, content: &[u8]) -> Vec<u8> {
    peer.set_buffer_limit(None);
    peer.writer().write_all(content).unwrap();
    let mut wire = Vec::new();
    while peer.wants_write() {
        peer.write_tls(&mut wire).unwrap();
    }
    wire
}

#[test]
fn rustls_reads_what_is_sealed_and_the_other_way_round_through_updates_of_keys() {
    let (mut records, mut peer) = beside_rustls();
    for (i, len) in SIZES.into_iter().enumerate() {
        let message = bytes(len);
        let (head, rest) = message.split_at(len / 3);
        let (body, name) = rest.split_at(rest.len() / 2);
        let wire = sealed(&mut records, [head, body, name]);
        assert_eq!(told_by_rustls(&mut peer, &wire).unwrap(), message, "{len} bytes to it");
        let piece = [1 << 20, 16_000, 1000][i % 3];
        let wire = said_by_rustls(&mut peer, &message);
        assert_eq!(opened(&mut records, &wire, piece).unwrap(), message, "{len} bytes from it");
        peer.refresh_traffic_keys().unwrap();
    }
}

#[test]
fn a_small_message_is_one_record_whatever_its_parts_are() {
    let [mut a, mut b] = pair();
    let once = sealed(&mut a, [b"head", b"body", b"name"]);
    assert_eq!(once.len(), 5 + 12 + 1 + 16);
    assert_eq!(opened(&mut b, &once, 1).unwrap(), b"headbodyname");
    assert!(sealed(&mut a, [b"", b"", b""]).is_empty());
}

#[test]
fn what_comes_before_something_is_sent_is_not_lost() {
    let [mut a, mut b] = pair();
    let wires = [&b"first "[..], b"second"].map(|part| sealed(&mut a, [part, b"", b""])).concat();
    b.space()[..wires.len()].copy_from_slice(&wires);
    b.filled(wires.len());
    let answer = sealed(&mut b, [b"answer", b"", b""]);
    assert_eq!(opened(&mut b, &[], 1).unwrap(), b"first second");
    assert_eq!(opened(&mut a, &answer, 9).unwrap(), b"answer");
}

#[test]
fn a_goodbye_is_understood_on_both_sides_and_comes_once() {
    let (mut records, mut peer) = beside_rustls();
    let mut out = Out::default();
    records.close(&mut out);
    records.close(&mut out);
    let mut last = &wire(&mut out)[..];
    assert_eq!(last.len(), 5 + 2 + 1 + 16);
    peer.read_tls(&mut last).unwrap();
    assert!(peer.process_new_packets().unwrap().peer_has_closed());
    assert!(records.seal([b"more", b"", b""], &mut out).is_err(), "nothing comes after it");
    let mut said = said_by_rustls(&mut peer, b"left ");
    peer.send_close_notify();
    peer.write_tls(&mut said).unwrap();
    assert_eq!(opened(&mut records, &said, 7).unwrap(), b"left end");
    assert_eq!(opened(&mut records, &[], 7).unwrap(), b"end", "as often as it is asked");
}

#[test]
fn the_peer_is_told_what_was_wrong_with_its_records() {
    let (mut records, mut peer) = beside_rustls();
    let mut wrong = said_by_rustls(&mut peer, b"something");
    *wrong.last_mut().unwrap() ^= 1;
    let mut out = Out::default();
    assert_eq!(opened_with(&mut records, &wrong, 1 << 20, &mut out), Err(Error::DecryptError));
    records.refuse(&mut out);
    let error = told_by_rustls(&mut peer, &wire(&mut out)).unwrap_err();
    assert_eq!(error, Error::AlertReceived(AlertDescription::BadRecordMac));
    // And nothing of an alert that it sent itself.
    let (mut records, mut peer) = beside_rustls();
    let mut wrong = sealed(&mut records, [b"something", b"", b""]);
    *wrong.last_mut().unwrap() ^= 1;
    assert!(told_by_rustls(&mut peer, &wrong).is_err());
    let mut alert = Vec::new();
    peer.write_tls(&mut alert).unwrap();
    let mut out = Out::default();
    let told = opened_with(&mut records, &alert, 1 << 20, &mut out);
    assert_eq!(told, Err(Error::AlertReceived(AlertDescription::BadRecordMac)));
    records.refuse(&mut out);
    assert_eq!(out.len(), 0);
}

#[test]
fn every_changed_byte_is_refused() {
    let len = sealed(&mut pair()[0], [b"head", b"body", b""]).len();
    for at in 0..len {
        let [mut a, mut b] = pair();
        let mut wire = sealed(&mut a, [b"head", b"body", b""]);
        wire[at] ^= 1 << (at % 8);
        let found = opened(&mut b, &wire, 99);
        // a longer record has not come whole
        let waits = (3..5).contains(&at) && found == Ok(Vec::new());
        // type and version have one value in TLS 1.3, by which `rustls` goes whatever they are: what is opened is the same
        let unread = at < 3 && found.as_deref() == Ok(b"headbody");
        assert!(waits || unread || found.is_err(), "byte {at}: {found:?}");
    }
}

#[test]
fn records_that_are_repeated_left_out_or_exchanged_are_refused() {
    for order in [[0, 0], [1, 0], [1, 1]] {
        let [mut a, mut b] = pair();
        let wires = [&b"first"[..], b"other"].map(|part| sealed(&mut a, [part, b"", b""]));
        let wire = order.map(|i| &wires[i][..]).concat();
        assert_eq!(opened(&mut b, &wire, 1 << 20), Err(Error::DecryptError));
    }
    let [mut a, mut b] = pair();
    let mine = sealed(&mut a, [b"mine", b"", b""]);
    assert_eq!(
        opened(&mut a, &mine, 1 << 20),
        Err(Error::DecryptError),
        "each direction has keys of its own"
    );
    assert_eq!(opened(&mut b, &mine, 1 << 20).unwrap(), b"mine");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_is_refused_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..99) {
        let [_, mut b] = pair();
        // Nothing of it was sealed with the right key, so nothing is content.
        if let Ok(content) = opened(&mut b, &bytes, piece) {
            prop_assert!(content.is_empty());
        }
    }
}
