//! Key records and the journal: what is damaged, foreign or used is refused, whatever happens to the process.

use privet_prg::Seed;
use privet_store::format::{
    FormatError, HEADER_BYTES, Header, RecordId, RecordReader, RecordWriter, TRAILER_BYTES,
};
use privet_store::{
    Fresh, SessionFile, SessionId, Shelf, Space, Store, StoreError, hex, in_full, pending_record,
    write_session,
};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SESSION: [u8; 16] = [0xA1; 16];
const PLAN: [u8; 32] = [0x5B; 32];

fn id(index: u64, party: u8) -> RecordId {
    session_id(party).record(index)
}

fn session_id(party: u8) -> SessionId {
    SessionId { session: SESSION, party, plan: PLAN }
}

fn header(id: RecordId) -> Header {
    Header { id, set: [6; 16], seed: Seed::from_bytes([9; 16]) }
}

fn record(id: RecordId, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = RecordWriter::new(Vec::new(), &header(id)).unwrap();
    frames.iter().for_each(|f| writer.frame(f).unwrap());
    writer.finish().unwrap()
}

fn open(
    bytes: &[u8],
    wanted: &RecordId,
) -> Result<RecordReader<impl privet_store::format::Frames + use<>>, FormatError> {
    RecordReader::open(Cursor::new(bytes.to_vec()), Some(wanted))
}

/// Everything in a record, or why not.
fn read(bytes: &[u8], wanted: &RecordId, lengths: &[usize]) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = open(bytes, wanted).map_err(|e| e.to_string())?;
    lengths.iter().map(|&n| reader.take(n).map(<[u8]>::to_vec).map_err(|e| e.to_string())).collect()
}

fn lengths(frames: &[Vec<u8>]) -> Vec<usize> {
    frames.iter().map(Vec::len).collect()
}

const SECRET: [u8; 16] = [3; 16];

fn session_file(party: u8) -> SessionFile {
    SessionFile { id: session_id(party), checks: 0, keys: SECRET.to_vec().into() }
}

fn other_session(session: [u8; 16]) -> SessionFile {
    SessionFile { id: SessionId { session, ..session_id(0) }, ..session_file(0) }
}

/// Open a store that was just closed. A child process that another test forks holds copies of all our files
/// until it executes its program, and with them the lock.
fn reopen(dir: &Path) -> Store {
    for _ in 0..2000 {
        match Store::open(dir) {
            Err(StoreError::Journal { .. }) => std::thread::sleep(Duration::from_millis(5)),
            other => return other.unwrap_or_else(|e| panic!("{e}")),
        }
    }
    panic!("the store stays locked");
}

/// A store with a session and records 0..n of one frame each, which holds the record's number.
fn fill(dir: &Path, n: u64) {
    write_session(dir, &session_file(0)).unwrap();
    fill_with(dir, 0..n);
}

fn fill_with(dir: &Path, records: std::ops::Range<u64>) {
    records.for_each(|i| put(dir, i, &record(id(i, 0), &[i.to_le_bytes().to_vec()])));
}

fn put(dir: &Path, index: u64, bytes: &[u8]) {
    let mut file = pending_record(dir, &SESSION, index).unwrap();
    file.write_all(bytes).unwrap();
    file.commit().unwrap();
}

fn key_file(dir: &Path, index: u64) -> std::path::PathBuf {
    dir.join(hex(&SESSION)).join(format!("{index}.keys"))
}

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
    bytes[8] = 3;
    let error = open(&bytes, &id(0, 0)).err().unwrap().to_string();
    assert!(error.contains("format 3, this version reads 2"), "{error}");
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
fn a_store_serves_one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let store = reopen(dir.path());
    let error = Store::open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("another privet process uses this key store"), "{error}");
    assert!(error.contains("give this one its own `store` directory"), "{error}");
    let second = helper("opens", dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && err.contains("another privet process"), "{err}");
    drop(store);
    reopen(dir.path());
    let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("journal")), 0o600);
    assert_eq!((mode(&key_file(dir.path(), 0)), mode(&dir.path().join(hex(&SESSION)))), (0o600, 0o700));
}

/// This test binary again, in one of the roles of [`helper_process`].
fn helper(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "helper_process", "--nocapture", "--test-threads=1"]);
    command.env("PRIVET_STORE_HELPER", role).env("PRIVET_STORE_DIR", dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Not a test by itself: the body of the child processes that other tests start and kill.
#[test]
fn helper_process() {
    let Ok(role) = std::env::var("PRIVET_STORE_HELPER") else { return };
    let dir = std::env::var_os("PRIVET_STORE_DIR").unwrap();
    let dir = Path::new(&dir);
    if role == "opens" {
        let _store = Store::open(dir).unwrap_or_else(|e| panic!("{e}"));
        return;
    }
    let mut store = reopen(dir);
    let mut out = std::io::stdout();
    match role.as_str() {
        "claims" => {
            for index in store.records(&SESSION).unwrap() {
                let mut keys = store.claim(&id(index, 0)).unwrap();
                let word = u64::from_le_bytes(keys.take(8).unwrap().try_into().unwrap());
                // From here on something that depends on the record may be known outside.
                writeln!(out, "used {word}").unwrap();
                out.flush().unwrap();
                // On a fast disk a life would otherwise use up all records before it is killed.
                std::thread::sleep(Duration::from_millis(2));
            }
            writeln!(out, "all used").unwrap();
        }
        "fills the disk" => {
            let mut file = pending_record(store.dir(), &SESSION, 7).unwrap();
            let error = loop {
                if let Err(e) = file.write_all(&[7; 4096]) {
                    break e;
                }
            };
            drop(file);
            let path = store.session_dir(&SESSION).display().to_string();
            writeln!(out, "refused {}", StoreError::Io { path, source: error }).unwrap();
            assert_eq!(store.records(&SESSION).unwrap(), [0], "no half record may count");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn killed_at_any_moment_no_record_is_used_twice() {
    const KILLS: usize = 50;
    let dir = tempfile::tempdir().unwrap();
    let mut records = 900;
    fill(dir.path(), records);
    let mut used: HashMap<u64, usize> = HashMap::new();
    let mut moments = Seed::random().stream();
    let mut kills = 0;
    for life in 0.. {
        let mut child = helper("claims", dir.path()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Some lives end before the store is open, most between two records.
        let word = moments.elements(privet_ring::Ring::R64, 1)[0];
        let (after, wait) = (word % 24, Duration::from_micros(word >> 32 & 0xFFF));
        let mut seen = 0;
        let mut finished = false;
        for line in lines {
            let Ok(line) = line else { break };
            if let Some(index) = line.rsplit_once("used ").map(|(_, index)| index) {
                let index = index.parse().unwrap();
                if let Some(before) = used.insert(index, life) {
                    panic!("record {index} was used in life {before} and again in life {life}");
                }
                seen += 1;
            }
            finished |= line.ends_with("all used");
            if seen == after && kills < KILLS {
                std::thread::sleep(wait);
                let _ = child.kill();
            }
        }
        let status = child.wait().unwrap();
        if finished && kills < KILLS {
            // On a busy machine lives last longer than they were meant to.
            fill_with(dir.path(), records..records + 300);
            records += 300;
            continue;
        }
        if kills == KILLS {
            assert!(status.success(), "the last life must end well: {status}");
            break;
        }
        assert_eq!(status.signal(), Some(libc_sigkill()), "life {life} ended with {status}");
        kills += 1;
    }
    assert_eq!(kills, KILLS);
    // A record may be burnt by a kill between its claim and its use; at most one a kill.
    let burnt = records - used.len() as u64;
    assert!(burnt <= KILLS as u64, "{burnt} records burnt by {KILLS} kills");
    let journal = fs::read_to_string(dir.path().join("journal")).unwrap();
    let names: Vec<&str> = journal.lines().collect();
    let distinct: std::collections::HashSet<&&str> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (records as usize, records as usize), "one entry a record");
}

const fn libc_sigkill() -> i32 {
    9
}

/// Needs a file system of its own: a small tmpfs, which only root may mount.
#[test]
fn a_full_disk_leaves_no_half_record() {
    let dir = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(dir.path()).output();
    if !mount.is_ok_and(|m| m.status.success()) {
        eprintln!("skipped: mounting a small tmpfs needs root");
        return;
    }
    fill(dir.path(), 1);
    let ran = helper("fills the disk", dir.path()).output().unwrap();
    let left: Vec<_> =
        fs::read_dir(dir.path().join(hex(&SESSION))).unwrap().map(|e| e.unwrap().file_name()).collect();
    let unmounted = Command::new("umount").arg(dir.path()).status().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && unmounted.success(), "{out}{err}");
    assert!(out.contains("no space left for keys; free some, or prepare fewer runs at a time"), "{out}");
    assert_eq!(left.len(), 2, "the unfinished record's file is removed: {left:?}");
}

#[test]
fn a_budget_refuses_keys_and_leaves_nothing_half_stored() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let stored = |path: std::path::PathBuf| fs::metadata(path).unwrap().len();
    let used = stored(dir.path().join(hex(&SESSION)).join("session.key")) + stored(key_file(dir.path(), 0));
    let keys = record(id(1, 0), &[vec![7; 5000]]);
    let room = keys.len() as u64;
    let names = |dir: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(dir.join(hex(&SESSION))).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(dir.path());

    let store = Store::open(dir.path()).unwrap().with_budget(Some(used + room - 1));
    let shelf = store.shelf().unwrap();
    let mut file = shelf.record(&SESSION, 1).unwrap();
    let error = keys.chunks(1000).find_map(|c| file.write_all(c).err()).expect("one byte too many");
    let error = StoreError::Io { path: "store".into(), source: error }.to_string();
    let budget = format!("the store may hold {} bytes (`disk_budget`", used + room - 1);
    assert!(error.contains(&budget) && error.ends_with("or prepare fewer runs at a time"), "{error}");
    drop(file);
    assert_eq!(names(dir.path()), before, "a half record stays");
    // What was taken back is free again.
    let mut file = shelf.record(&SESSION, 1).unwrap();
    file.write_all(&keys[..keys.len() - 1]).unwrap();
    drop((file, store));

    let store = reopen(dir.path()).with_budget(Some(used + room));
    let shelf = store.shelf().unwrap();
    let mut file = shelf.record(&SESSION, 1).unwrap();
    file.write_all(&keys).unwrap();
    file.commit().unwrap();
    assert_eq!(store.records(&SESSION).unwrap(), [0, 1]);
    let mut file = shelf.record(&SESSION, 2).unwrap();
    assert!(file.write_all(&[1]).is_err(), "a committed record keeps its room");
    assert!(shelf.new_session(&other_session([1; 16]), 1).is_err());
    drop(file);
    // Sessions that are being checked count as well, and a smaller budget than what is there leaves no room.
    let store = store.with_budget(Some(1));
    assert!(store.checking_shelf().unwrap().new_session(&other_session([2; 16]), 1).is_err());
    assert!(store.shelf().unwrap().record(&SESSION, 3).unwrap().write_all(&[1]).is_err());
}

#[test]
fn half_records_of_the_dead_are_removed_and_those_of_the_living_are_not() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let part = |index: u64| key_file(dir.path(), index).with_extension("part");
    fs::write(part(1), [1; 100]).unwrap();
    let mut file = pending_record(dir.path(), &SESSION, 2).unwrap();
    file.write_all(&record(id(2, 0), &[])).unwrap();
    let store = reopen(dir.path());
    assert!(!part(1).exists() && part(2).exists());
    file.commit().unwrap();
    assert_eq!(store.records(&SESSION).unwrap(), [0, 2]);
}

#[test]
fn used_records_make_room_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let bytes = fs::metadata(key_file(dir.path(), 0)).unwrap().len();
    let session = fs::metadata(dir.path().join(hex(&SESSION)).join("session.key")).unwrap().len();
    // Room for the journal's line as well.
    let mut store = Store::open(dir.path()).unwrap().with_budget(Some(session + bytes + 100));
    let keys = record(id(1, 0), &[vec![1; 8]]);
    assert!(store.shelf().unwrap().record(&SESSION, 1).unwrap().write_all(&keys).is_err());
    drop(store.claim(&id(0, 0)).unwrap());
    store.shelf().unwrap().record(&SESSION, 1).unwrap().write_all(&keys).unwrap();
}

#[test]
fn stores_of_one_party_share_its_room() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = ["train", "evaluate"].map(|plan| dir.path().join(plan));
    let keys = record(id(0, 0), &[vec![7; 5000]]);
    let n = keys.len() as u64;
    let space = Arc::new(Space::new(dir.path(), Some(2 * n), n));
    let mut stores = dirs.clone().map(|dir| Store::open(&dir).unwrap().within(space.clone()));
    let write = |store: &Store, index| {
        let mut file = store.shelf().unwrap().record(&SESSION, index).map_err(|e| e.to_string())?;
        file.write_all(&keys).map_err(|e| e.to_string())?;
        file.commit().map_err(|e| e.to_string())
    };
    write(&stores[0], 0).unwrap();
    // What others put there counts as well: the files are counted before keys come.
    put(&dirs[1], 1, &record(id(1, 0), &[vec![7; 5000]]));
    assert!(write(&stores[0], 2).unwrap_err().contains("disk_budget"));
    assert!(write(&stores[1], 2).unwrap_err().contains("disk_budget"));
    // A record that one plan's run uses up makes room for the other's, as soon as it is over. (The journal grew.)
    stores[1].drop_record(&SESSION, 1).unwrap();
    let claimed = stores[0].claim(&id(0, 0)).unwrap();
    let space_left = |store: &Store| {
        let (shelf, stop) = (store.shelf().unwrap(), AtomicBool::new(false));
        let mut staged = shelf.stage(&SESSION, 5, None, &stop).unwrap().unwrap();
        (0..).take_while(|_| staged.append(vec![0; 500]).is_ok()).count() as u64 * 500
    };
    let (with, without) = (space_left(&stores[1]), {
        drop(claimed);
        space_left(&stores[1])
    });
    assert!(
        with + n <= without + 500 && without <= 2 * n && without + 600 > 2 * n,
        "{with}, {without} of {n}"
    );
    // Memory likewise: a stream of one plan waits until a record of the other is gone.
    let shelves = [stores[0].shelf().unwrap(), stores[1].shelf().unwrap()];
    let stop = AtomicBool::new(false);
    let mut first = shelves[0].stage(&SESSION, 6, Some(n), &stop).unwrap().unwrap();
    first.append(keys.clone()).unwrap();
    first.commit().unwrap();
    let blocker = vec![0; 2 * n as usize - 600];
    let mut file = shelves[0].record(&SESSION, 7).unwrap();
    file.write_all(&blocker).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| shelves[1].stage(&SESSION, 6, Some(n), &stop).unwrap().is_some());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished(), "neither place has room");
        stores[0].drop_record(&SESSION, 6).unwrap();
        assert!(waits.join().unwrap());
    });
    drop(file);
}

/// Everything below a directory, by path.
fn contents(dir: &Path) -> HashMap<std::path::PathBuf, Vec<u8>> {
    let mut all = HashMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true => all.extend(contents(&entry)),
            false => drop(all.insert(entry.clone(), fs::read(entry).unwrap())),
        }
    }
    all
}

fn put_on(shelf: &Shelf, index: u64, word: u64) -> Result<(), StoreError> {
    let mut file = shelf.file(&SESSION, index)?;
    file.append(record(id(index, 0), &[word.to_le_bytes().to_vec()]))?;
    file.commit()
}

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
    let mut staged = shelf.stage(&SESSION, 10, Some(200), &AtomicBool::new(false)).unwrap().unwrap();
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

#[test]
fn a_session_that_nobody_began_keeps_its_records() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
    let shelf = store.shelf().unwrap();
    let mut staged = shelf.stage(&SESSION, 1, Some(200), &AtomicBool::new(false)).unwrap().unwrap();
    staged.append(record(id(1, 0), &[vec![1; 8]])).unwrap();
    staged.commit().unwrap();
    store.drop_session(&SESSION).unwrap();
    assert_eq!(store.records(&SESSION).unwrap(), [0, 1]);
    store.begin_session(&session_id(0), 0).unwrap();
    store.drop_session(&SESSION).unwrap();
    assert!(!store.session_dir(&SESSION).exists());
    assert!(matches!(store.claim(&id(1, 0)), Err(StoreError::Missing { .. })));
}
