//! One process at a time has a store; killed at any moment, or on a full disk, it uses no record twice and leaves no half.

mod common;

use common::{SESSION, fill, fill_with, id, key_file, reopen};
use privet_prg::Seed;
use privet_store::{Store, StoreError, hex, pending_record};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

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
