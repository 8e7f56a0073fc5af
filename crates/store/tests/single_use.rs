//! A session begins once and a record is claimed once, whatever is put back.

mod common;

use common::{PLAN, SECRET, SESSION, fill, id, key_file, put, record, reopen, session_file, session_id};
use privet_store::format::FormatError;
use privet_store::{Fresh, SessionFile, SessionId, Store, StoreError, hex, write_session};
use std::fs;
use std::path::Path;

#[test]
fn a_record_is_claimed_once() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3);
    let saved = fs::read(key_file(dir.path(), 1)).unwrap();
    let mut store = reopen(dir.path());
    assert_eq!(store.records(&SESSION).unwrap(), [0, 1, 2]);
    let mut claimed = store.claim(&id(1, 0)).unwrap();
    assert_eq!(claimed.take(8).unwrap(), 1u64.to_le_bytes());
    assert!(!key_file(dir.path(), 1).exists());
    let refused = |store: &mut Store, path: &Path| {
        let error = match store.claim(&id(1, 0)) {
            Ok(_) => panic!("{path:?}: claimed twice"),
            Err(e) => e,
        };
        assert!(matches!(error, StoreError::Used { .. }), "{error}");
        assert!(
            error.to_string().contains("used before") && error.to_string().contains("prepare"),
            "{error}"
        );
    };
    refused(&mut store, dir.path());
    // Put back after use, now and after a restart.
    put(dir.path(), 1, &saved);
    refused(&mut store, dir.path());
    assert_eq!(store.records(&SESSION).unwrap(), [0, 2]);
    drop(store);
    let mut store = reopen(dir.path());
    refused(&mut store, dir.path());
    assert_eq!(store.records(&SESSION).unwrap(), [0, 2]);
    // Copied over another number: it is not that record.
    fs::write(key_file(dir.path(), 2), &saved).unwrap();
    let error = store.claim(&id(2, 0)).err().unwrap();
    assert!(matches!(error, StoreError::Format { source: FormatError::Foreign { .. }, .. }), "{error}");
    // The wrong file is out of the way; the right one still works.
    assert!(
        store.records(&SESSION).unwrap() == [0] && key_file(dir.path(), 2).with_extension("refused").exists()
    );
    put(dir.path(), 2, &record(id(2, 0), &[vec![1; 8]]));
    store.claim(&id(2, 0)).map(drop).unwrap();
    assert!(matches!(store.claim(&id(9, 0)), Err(StoreError::Missing { .. })));
}

#[test]
fn records_that_are_used_together_are_claimed_all_or_none() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3);
    let mut store = reopen(dir.path());
    store.claim(&id(1, 0)).map(drop).unwrap();
    for (pair, missing) in [([0, 7], true), ([7, 0], true), ([0, 1], false), ([1, 0], false)] {
        let error = store.claim_all(&pair.map(|index| id(index, 0))).err().unwrap();
        assert_eq!(matches!(error, StoreError::Missing { .. }), missing, "{error}");
        assert_eq!(store.records(&SESSION).unwrap(), [0, 2], "nothing was used up");
    }
    let [mut second, mut first] = store.claim_all(&[2, 0].map(|index| id(index, 0))).unwrap();
    assert_eq!(second.take(8).unwrap(), 2u64.to_le_bytes());
    assert_eq!(first.take(8).unwrap(), 0u64.to_le_bytes());
    assert!(store.records(&SESSION).unwrap().is_empty());
    for index in [0, 2] {
        assert!(matches!(claimed_again(&mut store, index), StoreError::Used { .. }));
    }
}

fn claimed_again(store: &mut Store, index: u64) -> StoreError {
    store.claim(&id(index, 0)).err().unwrap()
}

#[test]
fn a_session_begins_once_and_only_with_its_own_file() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let file = dir.path().join(hex(&SESSION)).join("session.key");
    let sound = fs::read(&file).unwrap();
    let mut store = reopen(dir.path());
    let refused = |store: &mut Store, party: u8, plan: &[u8; 32], says: &str| {
        let error = store
            .begin_session(&SessionId { party, plan: *plan, ..session_id(0) }, 0)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(says), "{says}: {error}");
        assert!(!error.contains(&hex(&SECRET)), "the seed is secret");
    };
    refused(&mut store, 0, &[0; 32], "another plan");
    // The other party's file, or another session's, carried to the wrong place.
    refused(&mut store, 1, &PLAN, "another party");
    let other = SessionFile { id: SessionId { session: [0xEE; 16], ..session_id(0) }, ..session_file(0) };
    fs::write(&file, &*other.encode()).unwrap();
    refused(&mut store, 0, &PLAN, "another session");
    for cut in [0, 1, 20, sound.len() - 1] {
        fs::write(&file, &sound[..cut]).unwrap();
        refused(&mut store, 0, &PLAN, "damaged");
    }
    fs::write(&file, &sound).unwrap();
    assert_eq!(
        store.fresh_sessions(&PLAN).unwrap(),
        [Fresh { session: SESSION, checks: 0, records: vec![0] }]
    );
    store.begin_session(&session_id(0), 0).unwrap();
    refused(&mut store, 0, &PLAN, "used before");
    assert!(store.fresh_sessions(&PLAN).unwrap().is_empty());
    drop(store);
    refused(&mut reopen(dir.path()), 0, &PLAN, "used before");
    // It ended with the process that began it, and its keys are removed; nor does it come back with its file.
    assert!(!file.exists() && !key_file(dir.path(), 0).exists());
    let mut store = reopen(dir.path());
    write_session(dir.path(), &session_file(0)).unwrap();
    refused(&mut store, 0, &PLAN, "used before");
    assert!(
        store
            .may_begin(&SessionId { session: [1; 16], ..session_id(0) }, 0)
            .err()
            .unwrap()
            .to_string()
            .contains("is not in the store")
    );
}

#[test]
fn a_torn_last_line_of_the_journal_is_closed_off() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 12);
    let mut store = reopen(dir.path());
    store.claim(&id(1, 0)).map(drop).unwrap();
    drop(store);
    let journal = dir.path().join("journal");
    let torn = format!("record {}/1", hex(&SESSION)); // of "record ../10", cut before its last digit
    let whole = fs::read_to_string(&journal).unwrap();
    assert_eq!(whole, format!("{torn}\n"));
    fs::write(&journal, [whole.as_bytes(), torn.as_bytes()].concat()).unwrap();
    let mut store = reopen(dir.path());
    store.claim(&id(10, 0)).map(drop).unwrap();
    drop(store);
    let text = fs::read_to_string(&journal).unwrap();
    assert_eq!(text, format!("{torn}\n{torn}\n{torn}0\n"));
    assert!(matches!(reopen(dir.path()).claim(&id(10, 0)), Err(StoreError::Used { .. })));
}

#[test]
fn a_session_that_nobody_began_keeps_its_records() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
    let shelf = store.shelf().unwrap();
    let mut staged = shelf.stage(&SESSION, 1, Some(200), &|| true).unwrap().unwrap();
    staged.append(record(id(1, 0), &[vec![1; 8]])).unwrap();
    staged.commit().unwrap();
    store.drop_session(&SESSION).unwrap();
    assert_eq!(store.records(&SESSION).unwrap(), [0, 1]);
    store.begin_session(&session_id(0), 0).unwrap();
    store.drop_session(&SESSION).unwrap();
    assert!(!store.session_dir(&SESSION).exists());
    assert!(matches!(store.claim(&id(1, 0)), Err(StoreError::Missing { .. })));
}
