//! What is in a store is never replaced, and names and numbers are given once.

mod common;

use common::{
    PLAN, SESSION, contents, fill, id, key_file, other_session, put, put_on, record, reopen, session_file,
    session_id,
};
use privet_store::{
    Fresh, SessionFile, SessionId, Store, StoreError, in_full, pending_record, write_session,
};
use std::fs;

#[test]
fn a_known_session_is_never_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2);
    let mut store = reopen(dir.path());
    let refused = |store: &Store, file: &SessionFile| {
        let before = contents(dir.path());
        let error = store.shelf().unwrap().new_session(file, 2).unwrap_err();
        assert!(matches!(error, StoreError::Known { .. }) && !in_full(&error).contains("tmp"), "{error}");
        assert_eq!(contents(dir.path()), before);
    };
    // The very same file is refused as well: what comes with it would be new.
    refused(&store, &session_file(0));
    refused(&store, &SessionFile { keys: vec![9; 16].into(), ..session_file(0) });
    refused(&store, &SessionFile { id: SessionId { plan: [7; 32], ..session_id(0) }, ..session_file(0) });
    // Begun; over, its files gone; and after a restart.
    store.begin_session(&session_id(0), 0).unwrap();
    refused(&store, &session_file(0));
    store.drop_session(&SESSION).unwrap();
    refused(&store, &session_file(0));
    drop(store);
    let mut store = reopen(dir.path());
    refused(&store, &session_file(0));
    // Burnt, and being checked: neither for use nor for a check.
    let (burnt, checked) = (other_session([0xB0; 16]), other_session([0xC0; 16]));
    store.burn_session(&burnt.id.session).unwrap();
    refused(&store, &burnt);
    let checking = store.checking_shelf().unwrap();
    checking.new_session(&checked, 1).unwrap();
    refused(&store, &checked);
    for known in [&burnt, &checked, &session_file(0)] {
        assert!(matches!(checking.new_session(known, 1), Err(StoreError::Known { .. })));
    }
    store.adopt_session(&checked.id.session).unwrap();
    refused(&store, &checked);
    assert!(matches!(store.adopt_session(&checked.id.session), Err(StoreError::Known { .. })));
    // Another plan's store knows nothing of it: there is nothing that could be replaced.
    let other = tempfile::tempdir().unwrap();
    Store::open(other.path()).unwrap().shelf().unwrap().new_session(&session_file(0), 2).unwrap();
}

#[test]
fn further_records_are_above_all_that_were_ever_seen() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
    let shelf = store.shelf().unwrap();
    shelf.new_session(&session_file(0), 5).unwrap();
    (0..3).for_each(|i| put_on(&shelf, i, i).unwrap());
    let further = |indices: &[u64]| shelf.further_records(&session_file(0), indices);
    let refused = |index: u64, last: u64| match further(&[index, index + 1]) {
        Err(StoreError::NotAbove { index: i, last: l, .. }) => assert_eq!((i, l), (index, last)),
        other => panic!("{index}: {other:?}"),
    };
    // Announced with the session, though they never came.
    (0..5).for_each(|i| refused(i, 4));
    further(&[5, 6, 9]).unwrap();
    // Announced, in files, in memory, used, passed over, refused.
    (0..10).for_each(|i| refused(i, 9));
    store.begin_session(&session_id(0), 0).unwrap();
    let mut staged = shelf.stage(&SESSION, 10, Some(200), &|| true).unwrap().unwrap();
    staged.append(record(id(10, 0), &[])).unwrap();
    staged.commit().unwrap();
    refused(10, 10);
    put_on(&shelf, 11, 0).unwrap();
    store.drop_record(&SESSION, 11).unwrap();
    assert!(!key_file(dir.path(), 11).exists());
    refused(11, 11);
    assert!(matches!(put_on(&shelf, 11, 0), Err(StoreError::Used { .. })));
    put(dir.path(), 12, &record(id(13, 0), &[]));
    assert!(store.claim(&id(12, 0)).is_err() && key_file(dir.path(), 12).with_extension("refused").exists());
    refused(12, 12);
    store.claim(&id(10, 0)).map(drop).unwrap();
    refused(10, 12);
    further(&[13]).unwrap();
    refused(13, 13);
    further(&[]).unwrap();
    // What the directory and the journal say is enough where nothing was announced in this life.
    drop(store);
    fs::create_dir_all(dir.path().join("new")).unwrap();
    fs::copy(dir.path().join("journal"), dir.path().join("new/journal")).unwrap();
    let again = reopen(&dir.path().join("new"));
    write_session(again.dir(), &session_file(0)).unwrap();
    let error = again.shelf().unwrap().further_records(&session_file(0), &[11]).unwrap_err();
    assert!(matches!(error, StoreError::NotAbove { index: 11, last: 11, .. }), "{error}");
}

#[test]
fn records_and_session_files_are_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2);
    let mut store = reopen(dir.path());
    let shelf = store.shelf().unwrap();
    let before = contents(dir.path());
    for index in 0..2 {
        assert!(matches!(put_on(&shelf, index, 77), Err(StoreError::Occupied { .. })));
        assert!(matches!(pending_record(dir.path(), &SESSION, index), Err(StoreError::Occupied { .. })));
    }
    // Begun before the other was complete: the name decides, in one step.
    let mut late = shelf.file(&SESSION, 2).unwrap();
    late.append(record(id(2, 0), &[vec![7; 8]])).unwrap();
    fs::write(key_file(dir.path(), 2), b"came first").unwrap();
    assert!(matches!(late.commit(), Err(StoreError::Occupied { .. })));
    assert_eq!(fs::read(key_file(dir.path(), 2)).unwrap(), b"came first");
    fs::remove_file(key_file(dir.path(), 2)).unwrap();
    // Further records come with the same session, byte for byte, or not at all.
    shelf.further_records(&session_file(0), &[2]).unwrap();
    write_session(dir.path(), &session_file(0)).unwrap();
    let other = SessionFile { keys: vec![9; 16].into(), ..session_file(0) };
    assert!(matches!(shelf.further_records(&other, &[3]), Err(StoreError::OtherSession { .. })));
    assert!(matches!(write_session(dir.path(), &other), Err(StoreError::Occupied { .. })));
    let foreign = SessionFile { id: session_id(1), ..session_file(0) };
    assert!(matches!(shelf.further_records(&foreign, &[3]), Err(StoreError::Format { .. })));
    let unknown = shelf.further_records(&other_session([4; 16]), &[0]);
    assert!(matches!(unknown, Err(StoreError::Missing { .. })));
    assert_eq!(contents(dir.path()), before);
    let mut kept = store.claim(&id(1, 0)).unwrap();
    assert_eq!(kept.take(8).unwrap(), 1u64.to_le_bytes());
}

#[test]
fn how_a_session_was_checked_is_kept_and_holds_for_all_of_its_records() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let file = SessionFile { checks: 3, ..session_file(0) };
    let checking = store.checking_shelf().unwrap();
    checking.new_session(&file, 1).unwrap();
    put_on(&checking, 0, 0).unwrap();
    assert!(store.fresh_sessions(&PLAN).unwrap().is_empty(), "not accepted yet");
    store.adopt_session(&SESSION).unwrap();
    let shelf = store.shelf().unwrap();
    for claims in [0, 3] {
        let more = SessionFile { checks: claims, ..session_file(0) };
        assert!(matches!(shelf.further_records(&more, &[1]), Err(StoreError::Checked { .. })));
    }
    drop(store);
    let mut store = reopen(dir.path());
    let fresh = Fresh { session: SESSION, checks: 3, records: vec![0] };
    assert_eq!(store.fresh_sessions(&PLAN).unwrap(), [fresh]);
    let error = store.begin_session(&session_id(0), 4).err().unwrap();
    assert!(matches!(error, StoreError::Unchecked { found: 3, least: 4, .. }), "{error}");
    assert!(error.to_string().contains("min_checks"));
    assert_eq!(store.begin_session(&session_id(0), 3).unwrap().checks, 3);
}
