//! Who is let in, and what each side is told when it is not.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{PATIENCE, hello, identities, meet, pin, protection, terms};
use privet_net::{
    Channel, Fault, Hello, Identity, Listener, NetError, Options, Pin, Protection, Step, TcpChannel, dial,
};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};

fn defaults() -> [Options; 2] {
    [Options::default(), Options::default()]
}

/// Party 0 (listening) and a caller with any identity and pin.
fn meet_as(server_pins: Vec<Pin>, caller: Identity, expected: Pin) -> [Result<TcpChannel, NetError>; 2] {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), server_pins).unwrap();
    let address = listener.local_address().unwrap();
    let dialer = thread::spawn(move || {
        let hello = hello("party 1");
        dial(&address, &Protection::Tls(caller), &expected, &hello, Options::default(), PATIENCE)
            .map(|(c, _)| c)
    });
    let accepted = listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).map(|(c, _)| c);
    [accepted, dialer.join().unwrap()]
}

#[test]
fn greetings_are_exchanged() {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    let dialer = thread::spawn(move || {
        dial(&address, &protection(1, true), &pin(0), &hello("party 1"), Options::default(), PATIENCE)
            .unwrap()
            .1
    });
    let incoming = listener.accept(PATIENCE).unwrap();
    assert_eq!(incoming.hello(), &hello("party 1"));
    let channel = incoming.answer(&hello("party 0"), Options::default()).unwrap();
    assert_eq!(channel.peer(), "party 1");
    assert_eq!(dialer.join().unwrap(), hello("party 0"));
}

#[test]
fn every_difference_is_a_typed_error_on_both_sides() {
    type Check = fn(&NetError) -> bool;
    let base = || hello("party 1");
    let cases: [(Hello, Check); 5] = [
        (Hello { protocol_version: 99, ..base() }, |e| matches!(e, NetError::ProtocolVersion { .. })),
        (Hello { privet_version: "0.0.1".into(), ..base() }, |e| matches!(e, NetError::PrivetVersion { .. })),
        (Hello { terms: terms("semi-honest"), ..base() }, |e| matches!(e, NetError::TermsMismatch { .. })),
        (Hello { plan_hash: [8; 32], ..base() }, |e| matches!(e, NetError::PlanMismatch { .. })),
        (Hello { purpose: "keys".into(), ..base() }, |e| matches!(e, NetError::PurposeMismatch { .. })),
    ];
    for encrypted in [true, false] {
        for (theirs, check) in &cases {
            let (a, b) = meet(encrypted, [hello("party 0"), theirs.clone()], defaults());
            for error in [a.err().unwrap(), b.err().unwrap()] {
                assert!(check(&error), "{error}");
                assert_eq!(error.fault(), Fault::Incompatible);
            }
        }
    }
    let (a, _) = meet(true, [hello("party 0"), Hello { plan_hash: [0xab; 32], ..base() }], defaults());
    let text = a.err().unwrap().to_string();
    assert!(text.starts_with("party 1 has plan abababababab, this party has plan 090909090909:"), "{text}");
    // Each side names its own value as its own.
    let weaker = Hello { terms: terms("semi-honest"), ..base() };
    let (a, b) = meet(true, [hello("party 0"), weaker], defaults());
    let told = [a, b].map(|result| result.err().unwrap().to_string());
    assert!(told[0].contains("security is `malicious` here and `semi-honest` at party 1;"), "{told:?}");
    assert!(told[1].contains("security is `semi-honest` here and `malicious` at party 0;"), "{told:?}");
}

#[test]
fn a_certificate_that_is_not_pinned_is_refused_with_both_fingerprints() {
    let stranger = Identity::generate("party 1").unwrap();
    let (known, found) = (identities()[1].fingerprint(), stranger.fingerprint());
    let [server, client] = meet_as(vec![pin(1)], stranger, pin(0));
    let error = server.err().unwrap();
    assert!(matches!(&error, NetError::WrongCertificate { found: f, .. } if *f == found), "{error}");
    assert!(error.to_string().contains(&known.to_string()), "{error}");
    let error = client.err().unwrap();
    assert!(matches!(&error, NetError::CertificateRefused { ours, .. } if *ours == found), "{error}");
    assert_eq!(error.fault(), Fault::Configuration);
}

#[test]
fn a_server_that_is_not_the_expected_one_is_refused() {
    let expected = Identity::generate("party 0").unwrap().fingerprint();
    let [server, client] = meet_as(vec![pin(1)], identities()[1].clone(), Pin::new("party 0", expected));
    let error = client.err().unwrap();
    let found = identities()[0].fingerprint();
    assert!(matches!(&error, NetError::WrongCertificate { found: f, .. } if *f == found), "{error}");
    assert!(error.to_string().contains(&expected.to_string()), "{error}");
    let error = server.err().unwrap();
    assert!(matches!(&error, NetError::CertificateRefused { ours, .. } if *ours == found), "{error}");
}

#[test]
fn without_a_pinned_fingerprint_tls_lets_nobody_in() {
    let [server, client] = meet_as(vec![Pin::insecure("party 1")], identities()[1].clone(), pin(0));
    assert!(matches!(server.err().unwrap(), NetError::WrongCertificate { .. }));
    assert!(client.is_err());
    let [_, client] = meet_as(vec![pin(1)], identities()[1].clone(), Pin::insecure("party 0"));
    assert!(matches!(client.err().unwrap(), NetError::WrongCertificate { .. }));
}

#[test]
fn expired_and_future_certificates_are_refused_with_their_dates() {
    let now = time::OffsetDateTime::now_utc();
    let day = time::Duration::days(1);
    for (from, until) in [(now - day * 10, now - day * 2), (now + day * 2, now + day * 10)] {
        let caller = Identity::generate_for("party 1", from, until).unwrap();
        let pinned = Pin::new("party 1", caller.fingerprint());
        let [server, client] = meet_as(vec![pinned], caller, pin(0));
        let error = server.err().unwrap();
        assert!(matches!(&error, NetError::CertificateDates { .. }), "{error}");
        assert!(error.to_string().contains(&until.date().to_string()), "{error}");
        assert!(matches!(client.err().unwrap(), NetError::CertificateRefused { .. }));
    }
}

#[test]
fn a_role_must_be_the_one_pinned_for_the_certificate() {
    let caller = identities()[1].clone();
    let pinned = vec![Pin::new("dealer", caller.fingerprint())];
    let [server, client] = meet_as(pinned, caller, pin(0));
    let error = server.err().unwrap();
    let expected = NetError::WrongRole { claimed: "party 1".into(), pinned: "dealer".into() };
    assert_eq!(error, expected);
    assert!(client.is_err());
}

#[test]
fn a_peer_that_is_turned_away_learns_the_reason() {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    let dialer = thread::spawn(move || {
        dial(&address, &protection(1, true), &pin(0), &hello("party 1"), Options::default(), PATIENCE)
            .and_then(|(mut channel, _)| channel.recv(&Step::new(1, "x"), 1))
    });
    listener.accept(PATIENCE).unwrap().refuse(&hello("party 0"), "busy with another job");
    let error = dialer.join().unwrap().unwrap_err();
    assert_eq!(error, NetError::Aborted { peer: "party 0".into(), reason: "busy with another job".into() });
}

#[test]
fn plain_and_tls_do_not_mix() {
    for server_encrypted in [true, false] {
        let listener = Listener::bind("127.0.0.1:0", protection(0, server_encrypted), vec![pin(1)]).unwrap();
        let address = listener.local_address().unwrap();
        let dialer = thread::spawn(move || {
            let protection = protection(1, !server_encrypted);
            dial(&address, &protection, &pin(0), &hello("party 1"), Options::default(), PATIENCE)
                .err()
                .unwrap()
        });
        let error = listener.accept(PATIENCE).err().unwrap();
        assert!(matches!(error, NetError::NotTls { .. }), "{error}");
        let error = dialer.join().unwrap();
        assert!(matches!(error, NetError::NotTls { .. } | NetError::Closed { .. }), "{error}");
    }
}

#[test]
fn older_tls_is_refused() {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    let client = thread::spawn(move || {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = "privet".try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        while tls.is_handshaking() {
            if tls.complete_io(&mut socket).is_err() {
                return;
            }
        }
        panic!("TLS 1.2 was accepted");
    });
    let error = listener.accept(PATIENCE).err().unwrap();
    assert!(matches!(error, NetError::TlsVersion { .. }), "{error}");
    client.join().unwrap();
}

/// What a listener says to a client that offers these key exchanges only, and what the client is told.
fn offering(kx_groups: Vec<&'static dyn SupportedKxGroup>) -> (NetError, rustls::Error) {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    let client = thread::spawn(move || {
        let provider = CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() };
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = "privet".try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        loop {
            assert!(tls.is_handshaking(), "a client without a certificate was let in");
            if let Err(error) = tls.complete_io(&mut socket) {
                break error.downcast::<rustls::Error>().unwrap();
            }
        }
    });
    (listener.accept(PATIENCE).err().unwrap(), client.join().unwrap())
}

#[test]
fn a_client_without_the_post_quantum_key_exchange_is_refused() {
    use rustls::{AlertDescription, Error};
    for classical in [aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1] {
        let (error, told) = offering(vec![classical]);
        assert!(matches!(&error, NetError::KeyExchange { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Incompatible);
        assert!(error.to_string().contains("X25519MLKEM768"), "{error}");
        assert_eq!(told, Error::AlertReceived(AlertDescription::HandshakeFailure));
    }
    // With it, the same client comes as far as the certificates, which it does not know.
    let (_, told) = offering(vec![aws_lc_rs::kx_group::X25519MLKEM768]);
    assert!(matches!(told, Error::InvalidCertificate(_)), "{told}");
}

#[test]
fn garbage_instead_of_a_greeting_is_refused() {
    for (encrypted, garbage) in [
        (true, &b"GET / HTTP/1.1\r\n\r\n"[..]),
        (false, b"GET / HTTP/1.1\r\n\r\n"),
        (false, &[0, 4, 1, 2, 3, 4]),
    ] {
        let listener = Listener::bind("127.0.0.1:0", protection(0, encrypted), vec![pin(1)]).unwrap();
        let address = listener.local_address().unwrap();
        let caller = thread::spawn(move || {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.write_all(garbage).unwrap();
            let _ = socket.read_to_end(&mut Vec::new());
        });
        let error = listener.accept(PATIENCE).err().unwrap();
        assert!(matches!(error, NetError::NotTls { .. } | NetError::BadHello { .. }), "{error}");
        caller.join().unwrap();
    }
}

#[test]
fn the_listener_outlives_a_bad_caller() {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    drop(TcpStream::connect(&address).unwrap());
    let error = listener.accept(PATIENCE).err().unwrap();
    assert!(matches!(error, NetError::Closed { .. }), "{error}");
    let good = thread::spawn(move || {
        dial(&address, &protection(1, true), &pin(0), &hello("party 1"), Options::default(), PATIENCE)
            .unwrap()
    });
    listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).unwrap();
    good.join().unwrap();
}

#[test]
fn a_port_in_use_and_a_bad_address_are_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = Listener::bind(&address, protection(0, true), vec![]).unwrap_err();
    assert_eq!(error, NetError::PortInUse { address: address.clone() });
    assert!(
        error.to_string().contains(&address) && error.to_string().contains("choose another port"),
        "{error}"
    );
    for bad in ["127.0.0.1", "", "127.0.0.1:99999", "203.0.113.77:1"] {
        let error = Listener::bind(bad, protection(0, true), vec![]).unwrap_err();
        assert!(matches!(error, NetError::Address { .. }), "{bad}: {error}");
    }
}

#[test]
fn a_peer_that_is_not_up_yet_is_waited_for_and_one_that_never_comes_is_reported() {
    let address = {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        probe.local_addr().unwrap().to_string()
    };
    let (hello1, short) = (hello("party 1"), Duration::from_millis(100));
    let error =
        dial(&address, &protection(1, true), &pin(0), &hello1, Options::default(), short).err().unwrap();
    assert!(matches!(&error, NetError::Refused { address: a, .. } if *a == address), "{error}");

    let late = address.clone();
    let dialer = thread::spawn(move || {
        dial(&late, &protection(1, true), &pin(0), &hello("party 1"), Options::default(), PATIENCE).unwrap()
    });
    thread::sleep(Duration::from_millis(80));
    let listener = Listener::bind(&address, protection(0, true), vec![pin(1)]).unwrap();
    listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).unwrap();
    dialer.join().unwrap();
    let error = listener.accept(Duration::from_millis(20)).err().unwrap();
    assert!(matches!(error, NetError::Timeout { .. }), "{error}");
}
