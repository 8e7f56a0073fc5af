//! Damaged, foreign and moved records are refused by name, and errors say no path.

mod common;

use common::{SESSION, fill, id, key_file, lengths, open, read, record, reopen, session_id};
use privet_store::format::{FormatError, HEADER_BYTES, RecordId, TRAILER_BYTES};
use privet_store::{Store, hex, in_full};
use proptest::prelude::*;
use std::fs;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_come_back_as_written(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..12)) {
        let bytes = record(id(4, 1), &frames);
        prop_assert_eq!(read(&bytes, &id(4, 1), &lengths(&frames)).unwrap(), frames);
    }

    #[test]
    fn a_flipped_bit_anywhere_is_refused(bit in 0usize..8 * 600, lens in prop::collection::vec(1usize..90, 1..6)) {
        let frames: Vec<Vec<u8>> = lens.iter().map(|&n| vec![0x3C; n]).collect();
        let mut bytes = record(id(4, 1), &frames);
        let bit = bit % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(read(&bytes, &id(4, 1), &lengths(&frames)).is_err(), "bit {}", bit);
    }

    #[test]
    fn other_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(open(&bytes, &id(0, 0)).is_err());
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let frames = [vec![1; 5], vec![2; 64], vec![3; 1]];
    let bytes = record(id(0, 0), &frames);
    for cut in 0..bytes.len() {
        let error = match open(&bytes[..cut], &id(0, 0)) {
            Ok(_) => panic!("cut to {cut} of {} bytes and opened", bytes.len()),
            Err(e) => e,
        };
        assert!(matches!(error, FormatError::Truncated { found } if found == cut as u64), "{cut}: {error}");
        assert!(error.to_string().contains("deal new keys"));
    }
    let longer = [&bytes[..], &[0; 32]].concat();
    assert!(open(&longer, &id(0, 0)).is_err());
    let twice = [&bytes[..], &bytes[..]].concat();
    assert!(open(&twice, &id(0, 0)).is_err(), "a trailer must say where the record begins");
}

#[test]
fn a_record_of_something_else_is_refused_by_name() {
    let bytes = record(id(5, 1), &[vec![1; 8]]);
    for (wanted, what) in [
        (id(6, 1), "another run (found 5, wanted 6)"),
        (id(5, 0), "another party (found 1, wanted 0)"),
        (RecordId { session: [0xA2; 16], ..id(5, 1) }, "another session"),
        (RecordId { plan: [0; 32], ..id(5, 1) }, "another plan"),
    ] {
        let error = open(&bytes, &wanted).err().unwrap().to_string();
        assert!(error.contains(what) && error.contains("put back the right file"), "{error}");
    }
    assert!(open(&bytes, &id(5, 1)).is_ok());
}

#[test]
fn another_format_version_is_named() {
    let mut bytes = record(id(0, 0), &[]);
    bytes[8] = 4;
    let error = open(&bytes, &id(0, 0)).err().unwrap().to_string();
    assert!(error.contains("format 4, this version reads 3"), "{error}");
    bytes[0] = b'Q';
    assert!(matches!(open(&bytes, &id(0, 0)), Err(FormatError::NotARecord)));
}

#[test]
fn frames_moved_within_or_between_records_are_refused() {
    let frames = [vec![1; 16], vec![2; 16], vec![3; 16]];
    let bytes = record(id(0, 0), &frames);
    let span = |i: usize| HEADER_BYTES + 24 * i..HEADER_BYTES + 24 * (i + 1);
    let mut swapped = bytes.clone();
    swapped[span(0)].copy_from_slice(&bytes[span(1)]);
    swapped[span(1)].copy_from_slice(&bytes[span(0)]);
    let error = read(&swapped, &id(0, 0), &[16; 3]).unwrap_err();
    assert!(
        error.contains("frame 0 of the key record is damaged") && error.contains("deal new keys"),
        "{error}"
    );
    let mut mixed = bytes.clone();
    mixed[span(2)].copy_from_slice(&record(id(1, 0), &frames)[span(2)]);
    assert!(read(&mixed, &id(0, 0), &[16; 3]).unwrap_err().contains("frame 2"));
    let mut foreign_end = bytes.clone();
    let trailer = bytes.len() - TRAILER_BYTES..;
    foreign_end[trailer.clone()].copy_from_slice(&record(id(1, 0), &frames)[trailer]);
    assert!(matches!(open(&foreign_end, &id(0, 0)), Err(FormatError::Damaged("trailer"))));
}

#[test]
fn reading_past_the_end_or_across_frames_is_refused() {
    let frames = [vec![1; 16], vec![2; 16]];
    let bytes = record(id(0, 0), &frames);
    assert!(read(&bytes, &id(0, 0), &[16, 16, 1]).unwrap_err().contains("ends before the plan does"));
    for wrong in [1, 15, 17, 40, 4000] {
        let error = read(&bytes, &id(0, 0), &[wrong]).unwrap_err();
        assert!(error.contains("deal new keys"), "{wrong}: {error}");
    }
    let mut reader = open(&bytes, &id(0, 0)).unwrap();
    assert!(matches!(reader.take(17), Err(FormatError::Frame(0))));
}

#[test]
fn errors_name_no_path_but_the_log_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let mut store = reopen(dir.path());
    let path = dir.path().display().to_string();
    fs::write(key_file(dir.path(), 0), "damaged").unwrap();
    let damaged = store.claim(&id(0, 0)).err().unwrap();
    fs::write(dir.path().join(hex(&SESSION)).join("session.key"), "damaged").unwrap();
    let session = store.may_begin(&session_id(0), 0).err().unwrap();
    let locked = Store::open(dir.path()).err().unwrap();
    fs::remove_dir_all(dir.path().join(hex(&SESSION))).unwrap();
    let missing = store.records(&SESSION).unwrap_err();
    for error in [damaged, session, locked, missing] {
        let (said, logged) = (error.to_string(), in_full(&error));
        assert!(!said.contains(&path) && logged.starts_with(&said) && logged.contains(&path), "{logged}");
    }
}
