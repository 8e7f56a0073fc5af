//! Key records and the journal: what is damaged, foreign or used is refused, whatever happens to the process.

use privet_fss::keys::{KeyError, KeySource};
use privet_party::store::format::{
    FormatError, HEADER_BYTES, Header, RecordId, RecordReader, RecordWriter, TRAILER_BYTES,
};
use privet_party::store::{SessionKeys, Space, Store, StoreError, hex, pending_record, write_session};
use privet_prg::{HashKeys, Seed};
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
    RecordId { session: SESSION, index, party, plan: PLAN }
}

fn record(id: RecordId, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = RecordWriter::new(Vec::new(), &Header { id, seed: Seed::from_bytes([9; 16]) }).unwrap();
    frames.iter().for_each(|f| writer.frame(f).unwrap());
    writer.finish().unwrap()
}

fn open(bytes: &[u8], wanted: &RecordId) -> Result<impl KeySource + use<>, FormatError> {
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

fn session_keys(party: u8) -> SessionKeys {
    let hash = HashKeys { inner: [1; 16], leaf: [2; 16] };
    SessionKeys { session: SESSION, plan: PLAN, party, seed: Seed::from_bytes([3; 16]), hash }
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
    write_session(dir, &session_keys(0)).unwrap();
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
    bytes[8] = 2;
    let error = open(&bytes, &id(0, 0)).err().unwrap().to_string();
    assert!(error.contains("format 2, this version reads 1"), "{error}");
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
    assert!(matches!(reader.take(17), Err(KeyError::Corrupt(_))));
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
    put(dir.path(), 2, &saved);
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
        let error = store.begin_session(&SESSION, party, plan).err().unwrap().to_string();
        assert!(error.contains(says), "{says}: {error}");
        assert!(!error.contains(&hex(&[3; 16])), "the seed is secret");
    };
    refused(&mut store, 0, &[0; 32], "another plan");
    // The other party's file, or another session's, carried to the wrong place.
    refused(&mut store, 1, &PLAN, "another party");
    let other = SessionKeys { session: [0xEE; 16], ..session_keys(0) };
    fs::write(&file, &*other.encode()).unwrap();
    refused(&mut store, 0, &PLAN, "another session");
    for cut in [0, 1, 20, sound.len() - 1] {
        fs::write(&file, &sound[..cut]).unwrap();
        refused(&mut store, 0, &PLAN, "damaged");
    }
    fs::write(&file, &sound).unwrap();
    assert_eq!(store.fresh_sessions(&PLAN).unwrap(), [(SESSION, vec![0])]);
    store.begin_session(&SESSION, 0, &PLAN).unwrap();
    refused(&mut store, 0, &PLAN, "used before");
    assert!(store.fresh_sessions(&PLAN).unwrap().is_empty());
    drop(store);
    refused(&mut reopen(dir.path()), 0, &PLAN, "used before");
    // It ended with the process that began it, and its keys are removed; nor does it come back with its file.
    assert!(!file.exists() && !key_file(dir.path(), 0).exists());
    let mut store = reopen(dir.path());
    write_session(dir.path(), &session_keys(0)).unwrap();
    refused(&mut store, 0, &PLAN, "used before");
    assert!(store.may_begin(&[1; 16], 0, &PLAN).unwrap_err().to_string().contains("is not in the store"));
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
    assert!(shelf.session(&SessionKeys { session: [1; 16], ..session_keys(0) }).is_err());
    drop(file);
    // Sessions that are being checked count as well, and a smaller budget than what is there leaves no room.
    let store = store.with_budget(Some(1));
    assert!(store.checking_shelf().unwrap().session(&session_keys(0)).is_err());
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
