//! `privet bench --stream`: what it reports of keys that come while runs use them up, and that each was used once.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const RUNS: usize = 4;

fn bench(workload: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
    command.arg("bench").args(workload).args(["--json", "--runs", "4", "--dir"]).arg(dir).output().unwrap()
}

fn figures(workload: &[&str], dir: &Path) -> Value {
    let done = bench(workload, dir);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// The lines of a party's journal, each of which is there once.
fn journal(dir: &Path, party: &str) -> BTreeSet<String> {
    let store = dir.join("nodes").join(party).join("store");
    let text = fs::read_to_string(store.join("journal")).unwrap();
    let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), text.lines().count(), "{party}: {text}");
    for session in fs::read_dir(store).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        let left = fs::read_dir(session)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension() == Some("keys".as_ref()));
        assert_eq!(left.count(), 0, "{party} has keys that no run used");
    }
    lines
}

#[test]
fn a_stream_is_reported_and_used_once() {
    // Predictions and steps of training, with keys in files and in memory.
    for (train, memory) in [(false, "0"), (true, "1 GB")] {
        let dir = tempfile::tempdir().unwrap();
        let mut workload = vec!["mlp", "--stream", "--ahead", "2", "--memory-budget", memory];
        // The batch that its step of training was captured with.
        workload.extend(if train { ["--train", "--batch=128"] } else { ["--batch", "2"] });
        let found = figures(&workload, dir.path());
        let stream = &found["stream"];
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number in {found}"));
        for name in ["dealer_mb_s", "consumed_mb_s"] {
            let rate = number(&stream[name]);
            assert!(rate > 0.0 && rate.is_finite(), "{name}: {found}");
        }
        assert!(number(&stream["waited_s"]) >= 0.0);
        // Two parties and the dealer.
        let cpu = stream["cpu_s_per_gb"].as_array().unwrap();
        assert!(cpu.len() == 3 && cpu.iter().all(|s| number(s) > 0.0), "{found}");
        assert_eq!(found["peak_rss_mb"].as_array().unwrap().len(), 3);
        assert!(number(&found["key_bytes"]) > 0.0 && number(&found["offline_s"]["median"]) > 0.0);
        assert!(number(&found["max_abs_err"]) < 0.01, "{found}");
        let journals = ["party0", "party1"].map(|p| journal(dir.path(), p));
        assert_eq!(journals[0], journals[1]);
        let records = journals[0].iter().filter(|l| l.starts_with("record ")).count();
        // One that is not counted, those that are asked for alone, and those of the stream; and the session.
        assert_eq!((records, journals[0].len()), (2 * RUNS + 1, 2 * RUNS + 2), "{journals:?}");
    }
}

#[test]
fn a_family_without_keys_has_no_stream() {
    let dir = tempfile::tempdir().unwrap();
    let done = bench(&["relu-10", "--stream", "--protocol", "rep3"], dir.path());
    assert_eq!(done.status.code(), Some(2), "{}", String::from_utf8_lossy(&done.stderr));
    // What is about streams alone is refused without one.
    for option in ["--ahead", "--memory-budget"] {
        assert_eq!(bench(&["relu-10", option, "2"], dir.path()).status.code(), Some(2), "{option}");
    }
}
