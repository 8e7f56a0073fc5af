//! Keys from a checked dealer, with real processes: init, serve, prepare with a check, run.

use privet_party::tensors;
use privet_plan::FloatTensor;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const PLAN: &str = r#"{"version":1,"name":"tiny","batch":2,"nodes":[
{"op":{"kind":"input","name":"x","owner":"data_owner","limit":8.0},"inputs":[],"ty":{"shape":[2,3],"bits":64,"frac":12},"layer":""},
{"op":{"kind":"weight","name":"fc.weight","owner":"model_owner"},"inputs":[],"ty":{"shape":[4,3],"bits":64,"frac":12},"layer":"fc"},
{"op":{"kind":"linear"},"inputs":[0,1],"ty":{"shape":[2,4],"bits":64,"frac":24},"layer":"fc"},
{"op":{"kind":"truncate","shift":12,"rounding":"floor"},"inputs":[2],"ty":{"shape":[2,4],"bits":52,"frac":12},"layer":"fc"},
{"op":{"kind":"relu"},"inputs":[3],"ty":{"shape":[2,4],"bits":64,"frac":12},"layer":"relu"}],
"outputs":[{"value":4,"name":"logits","to":"receiver"}]}"#;

struct Nodes(Vec<Child>);

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn privet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn good(output: Output) -> String {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn write(path: &Path, name: &str, shape: [usize; 2], data: &[f64]) {
    let tensor = FloatTensor { shape: shape.to_vec(), data: data.to_vec() };
    tensors::save(path, &BTreeMap::from([(name.to_owned(), tensor)])).unwrap();
}

/// Names of a store's sessions that have files, and the journal.
fn store(nodes: &Path, party: &str) -> (Vec<PathBuf>, String) {
    let store = nodes.join(party).join("store");
    let entries = fs::read_dir(&store).unwrap().map(|e| e.unwrap().path());
    (entries.filter(|p| p.is_dir()).collect(), fs::read_to_string(store.join("journal")).unwrap())
}

#[test]
fn checked_keys_give_the_right_result_and_opened_sessions_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("plan.json"), PLAN).unwrap();
    let nodes = at("nodes");
    let roles =
        ["--model-owner", "client:client", "--data-owner", "client:client", "--receiver", "client:client"];
    let mut init = privet();
    good(
        init.args(["init", "--local"])
            .arg(&nodes)
            .arg("--plan")
            .arg(at("plan.json"))
            .args(roles)
            .output()
            .unwrap(),
    );
    let start = |command: &str, node: &str| {
        let config = nodes.join(node).join("node.toml");
        let log = fs::File::create(at(&format!("{node}.log"))).unwrap();
        privet().arg(command).arg("--config").arg(config).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    };
    let _running = Nodes(vec![start("dealer", "dealer"), start("party", "party0"), start("party", "party1")]);
    write(&at("x.safetensors"), "x", [2, 3], &[1.0, 2.0, -3.0, 0.5, -0.25, 4.0]);
    write(
        &at("w.safetensors"),
        "fc.weight",
        [4, 3],
        &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, -1.0, -1.0, -1.0],
    );
    let run = |more: &[&str]| {
        let mut command = privet();
        command.arg("run").arg("--config").arg(nodes.join("client/node.toml"));
        command.arg("--weights").arg(at("w.safetensors")).arg("--input").arg(at("x.safetensors"));
        good(command.arg("--output").arg(at("y.safetensors")).args(more).output().unwrap());
        tensors::load(&at("y.safetensors")).unwrap()["logits"].data.clone()
    };
    let y = run(&["--prepare", "2", "--checks", "1"]);
    assert_eq!(y, [1.0, 2.0, 0.0, 0.0, 0.5, 0.0, 4.0, 0.0]);
    let stores = ["party0", "party1"].map(|party| store(&nodes, party));
    for (sessions, journal) in &stores {
        assert_eq!(sessions.len(), 1, "the opened session and the place for checks are gone");
        assert_eq!(journal.lines().filter(|l| l.starts_with("session")).count(), 2, "one burnt, one begun");
        assert_eq!(journal.lines().filter(|l| l.starts_with("record")).count(), 1);
    }
    assert_eq!(stores[0].0[0].file_name(), stores[1].0[0].file_name());
    // The kept session takes no unchecked records: they make a session beside it, and the kept one's second run goes first.
    assert_eq!(run(&["--prepare", "1"]), y);
    let records = |sessions: &[PathBuf]| {
        let of = |s: &PathBuf| fs::read_dir(s).unwrap().filter(|e| is_record(e.as_ref().unwrap())).count();
        sessions.iter().map(|s| (s.clone(), of(s))).collect::<Vec<_>>()
    };
    let checked = stores.map(|(sessions, _)| sessions[0].clone());
    for (party, checked) in ["party0", "party1"].into_iter().zip(&checked) {
        let all = records(&store(&nodes, party).0);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.iter().all(|(s, n)| *n == usize::from(s != checked)), "{all:?}");
    }
    // Checks make another one, which is begun before the unchecked one.
    assert_eq!(run(&["--prepare", "1", "--checks", "2"]), y);
    for party in ["party0", "party1"] {
        let all = records(&store(&nodes, party).0);
        let left: Vec<usize> = all.iter().map(|(_, n)| *n).collect();
        assert_eq!((left.len(), left.iter().sum::<usize>()), (2, 1), "{all:?}");
        let unused = all.iter().find(|(_, n)| *n == 1).unwrap();
        let file = fs::read_to_string(unused.0.join("session.key")).unwrap();
        assert!(file.contains("\"checks\":0"), "the unchecked one waits");
    }
}

fn is_record(entry: &fs::DirEntry) -> bool {
    entry.path().extension() == Some("keys".as_ref())
}
