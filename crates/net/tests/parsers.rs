//! Everything read from a peer or a file: any bytes give a value or an error, never a panic, and never more than they should.

use privet_net::certs::CertificateInfo;
use privet_net::frame::{
    Decoder, Encoder, FrameError, HEADER_LEN, Header, Kind, MAX_CHUNK, chunk_at, parse_header,
};
use privet_net::hello::MAX_HELLO;
use privet_net::{Fingerprint, Hello, NetworkProfile, Step, Terms};
use proptest::prelude::*;

fn frame(step: &Step, message: &[u8]) -> Vec<u8> {
    let (header, name) = Encoder::default().data(step, message, 0);
    [&header[..], chunk_at(message, 0), name].concat()
}

proptest! {
    #[test]
    fn any_bytes_are_a_header_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(header) = parse_header(&bytes) {
            prop_assert!(header.len as usize <= MAX_CHUNK);
        }
    }

    #[test]
    fn any_change_of_a_header_keeps_lengths_bounded(at in 0..HEADER_LEN, value: u8) {
        let mut bytes = frame(&Step::new(5, "s"), &[1, 2, 3]);
        bytes[at] = value;
        if let Ok(header) = parse_header(&bytes) {
            prop_assert!(header.len as usize <= MAX_CHUNK && u64::from(header.len) <= header.total);
        }
    }

    #[test]
    fn frames_come_back_however_the_stream_is_cut(
        message in proptest::collection::vec(any::<u8>(), 0..300),
        id: u32,
        cuts in proptest::collection::vec(1usize..50, 1..40),
    ) {
        let step = Step::new(id, "conv1 / open");
        let bytes = frame(&step, &message);
        let mut decoder = Decoder::default();
        let (mut got, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            decoder.feed(head, &mut |f| got.push(f)).unwrap();
            rest = tail;
        }
        prop_assert!(decoder.at_boundary());
        prop_assert_eq!(got.len(), 1);
        prop_assert_eq!((got[0].header.step, got[0].header.kind, got[0].name.as_str()), (id, Kind::Data, "conv1 / open"));
        prop_assert_eq!(&got[0].payload, &message);
    }

    #[test]
    fn any_bytes_are_a_greeting_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
        let _ = Hello::decode(&bytes);
        // The same after a good beginning, so that the terms are reached.
        let mut greeting = Hello::new("party 1", [2; 32], "online", Terms::default()).encode();
        greeting.extend_from_slice(&bytes);
        if let Ok(hello) = Hello::decode(&greeting) {
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
    }

    #[test]
    fn greetings_come_back_and_cut_ones_are_refused(
        role in "[a-z0-9 ü]{0,20}", purpose in "[a-z]{0,64}", plan_hash: [u8; 32], cut in 0usize..100,
        list in proptest::collection::vec(("[a-z ü]{0,50}", "[a-z0-9:]{0,100}"), 0..80),
    ) {
        let hello = Hello::new(&role, plan_hash, &purpose, Terms::new(list.clone()));
        let bytes = hello.encode();
        prop_assert!(bytes.len() <= MAX_HELLO);
        prop_assert_eq!(Hello::decode(&bytes), Ok(hello.clone()));
        let texts = [&role, &purpose, &hello.privet_version].map(|t| 1 + t.len()).iter().sum::<usize>();
        prop_assert!(Hello::decode(&bytes[..60 + texts - 1 - cut.min(59 + texts)]).is_err());
        prop_assert!(Hello::decode(&[&bytes[..], &[1]].concat()).is_err());
        // Cut anywhere it is an error, or differs.
        let cut = Hello::decode(&bytes[..bytes.len().saturating_sub(1 + cut)]);
        prop_assert!(cut.is_err() || cut.is_ok_and(|cut| hello.check(&cut).is_err()));
        let mut other = list;
        other.push(("one".into(), "more".into()));
        let other = Hello { terms: Terms::new(other), ..hello.clone() };
        prop_assert!(hello.check(&other).is_err() && other.check(&hello).is_err());
    }

    #[test]
    fn any_text_is_a_setting_or_an_error(text in "\\PC{0,80}") {
        let _ = Fingerprint::parse(&text);
        let _ = NetworkProfile::parse(&text);
    }

    #[test]
    fn any_bytes_are_a_certificate_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(CertificateInfo::from_der(&bytes).is_err());
    }
}

#[test]
fn a_greeting_of_another_protocol_is_read_as_far_as_needed() {
    let hello = Hello { protocol_version: 99, ..Hello::new("party 1", [2; 32], "online", Terms::default()) };
    let longer = [&hello.encode()[..], b"fields of the future"].concat();
    assert!(Hello::decode(&longer).is_ok_and(|read| read.protocol_version == 99 && read.role == hello.role));
}

#[test]
fn each_bad_header_has_its_reason() {
    let good = frame(&Step::new(5, "s"), &[1, 2, 3]);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        parse_header(&bytes).unwrap_err()
    };
    assert!(parse_header(&good).is_ok());
    assert_eq!(
        parse_header(&good[..HEADER_LEN - 1]).unwrap_err(),
        FrameError::Short { found: HEADER_LEN - 1 }
    );
    assert_eq!(with(0, b"PV"), FrameError::Magic);
    assert_eq!(with(2, &[9]), FrameError::Version { found: 9 });
    assert_eq!(with(3, &[0]), FrameError::Fields);
    assert_eq!(with(3, &[5]), FrameError::Fields);
    assert_eq!(with(4, &[4]), FrameError::Fields);
    assert_eq!(with(5, &[97]), FrameError::Fields);
    assert_eq!(with(6, &[1]), FrameError::Fields);
    assert_eq!(with(12, &[4, 0, 0, 0]), FrameError::Length { found: 4, max: 3 });
    let mut huge = good.clone();
    huge[12..16].fill(0xff);
    huge[24..32].fill(0xff);
    let expected = FrameError::Length { found: u32::MAX.into(), max: MAX_CHUNK as u64 };
    assert_eq!(parse_header(&huge).unwrap_err(), expected);
}

/// What a decoder makes of data frames, each given as (first, payload bytes, bytes of the whole message).
fn cut_as(frames: &[(bool, usize, u64)]) -> Result<usize, FrameError> {
    let (mut decoder, mut got) = (Decoder::default(), 0);
    for (seq, &(first, len, total)) in (0..).zip(frames) {
        let (kind, name_len, payload) = (Kind::Data, 0, vec![7; len]);
        let header = Header { kind, first, summed: true, name_len, step: 1, len: len as u32, seq, total };
        let bytes = [&header.encode(&payload, &[])[..], &payload].concat();
        decoder.feed(&bytes, &mut |_| got += 1)?;
    }
    Ok(got)
}

#[test]
fn a_message_is_cut_in_one_way_only() {
    const FULL: usize = MAX_CHUNK;
    let (two, three) = (2 * FULL as u64, 2 * FULL as u64 + 3);
    let sound = [(true, 0, 0), (true, 5, 5), (true, FULL, three), (false, FULL, three), (false, 3, three)];
    assert_eq!(cut_as(&sound), Ok(5));
    let chunk = |found, due| Err(FrameError::Chunk { found, due });
    assert_eq!(cut_as(&[(true, 0, 5)]), chunk(0, 5), "empty, of a message that is not");
    assert_eq!(cut_as(&[(true, 1, 5)]), chunk(1, 5), "a drop");
    assert_eq!(cut_as(&[(true, FULL, two), (false, 0, two)]), chunk(0, FULL as u64));
    assert_eq!(cut_as(&[(true, FULL, three), (false, FULL, three), (false, 2, three)]), chunk(2, 3));
    for mixed in [
        &[(false, 0, 0)][..],
        &[(false, 5, 5)],
        &[(true, 0, 0), (false, 0, 0)],
        &[(true, FULL, two), (true, FULL, two)],
        &[(true, FULL, two), (false, 3, three)],
        &[(true, FULL, two), (false, FULL, two), (false, 0, two)],
    ] {
        assert_eq!(cut_as(mixed), Err(FrameError::Interleaved), "{mixed:?}");
    }
}
