//! Against `rustls` as the peer, and against peers that keep to no rule.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use rustls::{Connection, ServerConnection};

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
fn opened(records: &mut Records, mut wire: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    loop {
        match records.next()? {
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
    records.key_records = 5;
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
    assert!(records.sealer.seq <= 5 && records.opener.seq < 30, "both directions got new keys");
}

#[test]
fn a_goodbye_is_understood_on_both_sides_and_comes_once() {
    let (mut records, mut peer) = beside_rustls();
    let mut out = Out::default();
    records.close(&mut out);
    records.close(&mut out);
    let mut last = &wire(&mut out)[..];
    assert_eq!(last.len(), HEAD + 2 + 1 + TAG);
    peer.read_tls(&mut last).unwrap();
    assert!(peer.process_new_packets().unwrap().peer_has_closed());
    let mut said = said_by_rustls(&mut peer, b"left ");
    peer.send_close_notify();
    peer.write_tls(&mut said).unwrap();
    assert_eq!(opened(&mut records, &said, 7).unwrap(), b"left end");
}

#[test]
fn the_peer_is_told_what_was_wrong_with_its_records() {
    let (mut records, mut peer) = beside_rustls();
    let mut out = Out::default();
    records.refuse(&Error::DecryptError, &mut out);
    let error = told_by_rustls(&mut peer, &wire(&mut out)).unwrap_err();
    assert_eq!(error, Error::AlertReceived(AlertDescription::BadRecordMac));
    // And nothing of an alert that it sent itself.
    let [mut records, _] = pair();
    records.refuse(&error, &mut out);
    assert_eq!(out.len(), 0);
}

#[test]
fn every_changed_bit_is_refused() {
    let [mut a, _] = pair();
    let len = sealed(&mut a, [b"head", b"body", b""]).len();
    for at in 0..len {
        let [mut a, mut b] = pair_of(&SECRETS);
        let mut wire = sealed(&mut a, [b"head", b"body", b""]);
        assert_eq!(wire.len(), len);
        wire[at] ^= 1 << (at % 8);
        let longer = (3..5).contains(&at) && opened(&mut b, &wire, 99) == Ok(Vec::new());
        assert!(longer || opened(&mut b, &wire, 99).is_err(), "byte {at}");
    }
}

#[test]
fn records_that_are_repeated_left_out_or_exchanged_are_refused() {
    for order in [[0, 0], [1, 0], [1, 1]] {
        let [mut a, mut b] = pair_of(&SECRETS);
        let wires = [&b"first"[..], b"other"].map(|part| sealed(&mut a, [part, b"", b""]));
        let wire = order.map(|i| &wires[i][..]).concat();
        assert_eq!(opened(&mut b, &wire, 1 << 20), Err(Error::DecryptError));
    }
    let [mut a, mut b] = pair_of(&SECRETS);
    let mine = sealed(&mut a, [b"mine", b"", b""]);
    let back = opened(&mut a, &mine, 1 << 20);
    assert_eq!(back, Err(Error::DecryptError), "each direction has keys of its own");
    assert_eq!(opened(&mut b, &mine, 1 << 20).unwrap(), b"mine");
}

/// One record of whatever a peer likes to put into it.
fn crafted(a: &mut Records, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Out::default();
    a.sealer.seal(kind, content, &mut out).unwrap();
    wire(&mut out)
}

#[test]
fn padding_is_taken_off_and_what_no_peer_sends_is_refused() {
    // A record ends with its type, so this is content, its type and padding.
    let [mut a, mut b] = pair_of(&SECRETS);
    let wire = [crafted(&mut a, 0, &[1, 2, 0, DATA, 0, 0]), crafted(&mut a, 0, &[DATA, 0])].concat();
    assert_eq!(opened(&mut b, &wire, 1 << 20).unwrap(), [1, 2, 0]);
    let refused = |kind: u8, content: &[u8]| {
        let [mut a, mut b] = pair_of(&SECRETS);
        let wire = crafted(&mut a, kind, content);
        opened(&mut b, &wire, 1 << 20).unwrap_err()
    };
    for (kind, content) in [
        (0, &[0; 9][..]),                  // nothing but padding
        (20, &[1]),                        // the change of a cipher, after the handshake
        (99, &[1]),                        // an unknown type
        (HANDSHAKE, &[24, 0, 0, 1, 2]),    // an update that asks for something unknown
        (HANDSHAKE, &[4, 0, 0, 1, 0]),     // a ticket
        (HANDSHAKE, &[24, 0, 0, 1, 0, 0]), // more than one
        (ALERT, &[1]),
    ] {
        let error = refused(kind, content);
        assert!(matches!(error, Error::General(_)), "{kind} {content:?}: {error}");
    }
    assert_eq!(refused(ALERT, &[2, 20]), Error::AlertReceived(AlertDescription::BadRecordMac));
    assert_eq!(refused(DATA, &bytes(CONTENT + 1)), Error::PeerSentOversizedRecord);
    assert_eq!(refused(DATA, &bytes(SEALED)), Error::PeerSentOversizedRecord, "by its head");
    let [_, mut b] = pair_of(&SECRETS);
    let plain = opened(&mut b, &[ALERT, 3, 3, 0, 2, 1, 0], 1 << 20);
    assert!(matches!(plain, Err(Error::General(_))), "{plain:?}");
    let [_, mut b] = pair_of(&SECRETS);
    assert_eq!(opened(&mut b, &[DATA, 3, 3, 0, 3, 1, 2, 3], 1 << 20), Err(Error::DecryptError));
}

#[test]
fn an_update_of_keys_is_needed_and_happens_once_for_each_that_is_told() {
    let [mut a, mut b] = pair();
    (a.key_records, b.key_records) = (3, 2);
    for i in 0..20u8 {
        let wire = sealed(&mut a, [&[i], b"", b""]);
        assert_eq!(opened(&mut b, &wire, 1 << 20).unwrap(), [i]);
        let wire = sealed(&mut b, [&[i], b"", b""]);
        assert_eq!(opened(&mut a, &wire, 1 << 20).unwrap(), [i]);
    }
    // 20 records of 3 a key, of which the last is the update.
    assert_eq!((a.sealer.seq, b.opener.seq), (2, 2));
}

/// Keys that both sides have, without the cost of a handshake.
const SECRETS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

struct NoSecrets;

impl Secrets for NoSecrets {
    fn next_sending(&mut self) -> Result<ConnectionTrafficSecrets, Error> {
        Err(Error::EncryptError)
    }

    fn next_receiving(&mut self) -> Result<ConnectionTrafficSecrets, Error> {
        Err(Error::DecryptError)
    }
}

fn pair_of(secrets: &[[u8; 32]; 2]) -> [Records; 2] {
    let direction = |i: usize| {
        let (key, iv) = (AeadKey::from(secrets[i]), Iv::copy(&secrets[i][..12]));
        (0, ConnectionTrafficSecrets::Aes256Gcm { key, iv })
    };
    let side = |tx, rx| {
        let secrets = ExtractedSecrets { tx: direction(tx), rx: direction(rx) };
        Records::new(secrets, Box::new(NoSecrets), &[]).unwrap()
    };
    [side(0, 1), side(1, 0)]
}

proptest! {
    #[test]
    fn whatever_comes_is_refused_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..99) {
        let [_, mut b] = pair_of(&SECRETS);
        // Nothing of it was sealed with the right key, so nothing is content.
        if let Ok(content) = opened(&mut b, &bytes, piece) {
            prop_assert!(content.is_empty());
        }
    }

    #[test]
    fn whatever_a_peer_seals_is_its_content_or_refused(
        kind in 1u8..,
        content in prop::collection::vec(any::<u8>(), 0..400),
        padding in 0usize..300,
        piece in 1usize..999,
    ) {
        let [mut a, mut b] = pair_of(&SECRETS);
        let inner = [&content[..], &[kind], &vec![0; padding]].concat();
        let wire = crafted(&mut a, 0, &inner);
        let found = opened(&mut b, &wire, piece);
        match kind {
            DATA => prop_assert_eq!(found.unwrap(), content),
            ALERT if content.len() == 2 && content[1] == 0 => prop_assert_eq!(found.unwrap(), b"end"),
            _ => prop_assert!(found.is_err()),
        }
    }
}
