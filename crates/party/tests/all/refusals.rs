//! A plan that the protocol must not run is refused with the node, wherever somebody meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// An output shows a truncation with `one_ulp`.
const PLAN: &str = r#"{"version":1,"name":"tiny","batch":2,"nodes":[
{"op":{"kind":"input","name":"x","owner":"data_owner","limit":8.0},"inputs":[],"ty":{"shape":[2,3],"bits":64,"frac":12},"layer":""},
{"op":{"kind":"weight","name":"fc.weight","owner":"model_owner"},"inputs":[],"ty":{"shape":[4,3],"bits":64,"frac":12},"layer":"fc"},
{"op":{"kind":"linear"},"inputs":[0,1],"ty":{"shape":[2,4],"bits":64,"frac":24},"layer":"fc"},
{"op":{"kind":"truncate","shift":12,"rounding":"one_ulp"},"inputs":[2],"ty":{"shape":[2,4],"bits":52,"frac":12},"layer":"fc"}],
"outputs":[{"value":3,"name":"logits","to":"receiver"}]}"#;

const SAYS: &str =
    "protocol rep3 refuses plan tiny: node 3 (fc): an output shows a truncation with `one_ulp`";

/// The same of a program with that one plan, which is what parties have.
const RUN: &str = "protocol rep3 refuses plan run: node 3 (fc): an output shows a truncation with `one_ulp`";

fn privet(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_privet")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn refused(args: &[&str], says: &str) {
    let out = privet(args);
    let error = text(&out.stderr);
    assert!(!out.status.success() && error.contains(says), "{args:?}: {}{error}", text(&out.stdout));
    assert!(error.contains("compile the model again"), "a remedy: {error}");
    assert!(!error.contains("panicked"), "{error}");
}

#[track_caller]
fn good(args: &[&str]) -> String {
    let out = privet(args);
    assert!(out.status.success(), "{args:?}: {}{}", text(&out.stdout), text(&out.stderr));
    text(&out.stdout)
}

fn path(at: &Path) -> &str {
    at.to_str().unwrap()
}

#[test]
fn a_plan_that_shows_a_function_of_shares_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, exact) = (dir.path().join("plan.json"), dir.path().join("exact.json"));
    fs::write(&plan, PLAN).unwrap();
    fs::write(&exact, PLAN.replace("one_ulp", "floor")).unwrap();
    let (plan, exact) = (path(&plan), path(&exact));

    for what in ["estimate", "audit"] {
        for security in ["semi-honest", "malicious"] {
            let rep3 = ["--protocol", "rep3", "--security", security];
            refused(&[&["plan", what, plan], &rep3[..]].concat(), SAYS);
            good(&[&["plan", what, exact], &rep3[..]].concat());
        }
        good(&["plan", what, plan, "--protocol", "fss"]);
    }
    let shown = good(&["plan", "show", plan]);
    for family in ["rep3", "semi2k", "heot"] {
        assert!(
            shown.contains(&format!("refused  protocol {family} refuses plan tiny: node 3 (fc)")),
            "{shown}"
        );
    }
    assert_eq!(shown.matches("refused  ").count(), 3, "{shown}");
    assert!(shown.contains(SAYS) && !good(&["plan", "show", exact]).contains("refused"), "{shown}");

    let to = dir.path().join("d");
    good(&["init", "--local", path(&to), "--plan", plan, "--protocol", "rep3"]);
    refused(&["party", "--config", path(&to.join("party1/node.toml"))], RUN);
}
