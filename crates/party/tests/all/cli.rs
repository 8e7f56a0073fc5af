//! The `privet` binary as an operator meets it: what it writes, prints, refuses, and its exit codes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PLAN: &str = r#"{"version":1,"name":"tiny","batch":2,"nodes":[
{"op":{"kind":"input","name":"x","owner":"data_owner","limit":8.0},"inputs":[],"ty":{"shape":[2,3],"bits":64,"frac":12},"layer":""},
{"op":{"kind":"weight","name":"fc.weight","owner":"model_owner"},"inputs":[],"ty":{"shape":[4,3],"bits":64,"frac":12},"layer":"fc"},
{"op":{"kind":"linear"},"inputs":[0,1],"ty":{"shape":[2,4],"bits":64,"frac":24},"layer":"fc"},
{"op":{"kind":"truncate","shift":12,"rounding":"floor"},"inputs":[2],"ty":{"shape":[2,4],"bits":52,"frac":12},"layer":"fc"},
{"op":{"kind":"relu"},"inputs":[3],"ty":{"shape":[2,4],"bits":64,"frac":12},"layer":"relu"}],
"outputs":[{"value":4,"name":"logits","to":"receiver"}]}"#;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn privet(args: &[&str]) -> Ran {
    let out = Command::new(env!("CARGO_BIN_EXE_privet")).args(args).stdin(Stdio::null()).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Ran { code: out.status.code().unwrap(), out: text(out.stdout), err: text(out.stderr) }
}

impl Ran {
    #[track_caller]
    fn good(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// Refused with `code`, a message that says each of `says`, a remedy, and no trace of a panic.
    #[track_caller]
    fn refused(self, code: i32, says: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        for text in says {
            assert!(self.err.contains(text), "`{text}` is not in: {}", self.err);
        }
        assert!(!self.err.contains("panicked") && !self.err.contains("RUST_BACKTRACE"), "{}", self.err);
    }
}

struct Local {
    dir: tempfile::TempDir,
}

impl Local {
    fn new() -> Local {
        Local::of(&[])
    }

    fn of(more: &[&str]) -> Local {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("plan-in.json"), PLAN).unwrap();
        let (to, plan) = (dir.path().join("d"), dir.path().join("plan-in.json"));
        privet(&[&["init", "--local", &text(&to), "--plan", &text(&plan)], more].concat()).good();
        Local { dir }
    }

    fn path(&self, at: &str) -> PathBuf {
        self.dir.path().join("d").join(at)
    }

    fn edit(&self, at: &str, change: impl Fn(String) -> String) {
        let old = fs::read_to_string(self.path(at)).unwrap();
        let new = change(old.clone());
        assert_ne!(old, new, "the edit of {at} changes nothing");
        fs::write(self.path(at), new).unwrap();
    }

    fn doctor(&self, node: &str, more: &[&str]) -> Ran {
        let config = text(&self.path(node).join("node.toml"));
        privet(&[&["doctor", "--config", &config], more].concat())
    }

    /// The doctor's findings of one check: `(status, found, remedy)`.
    fn finding(&self, node: &str, check: &str) -> (i32, String, String, String) {
        let calls = ["port", "dealer"].contains(&check) || check.starts_with("party:");
        let ran =
            self.doctor(node, if calls { &["--json", "--timeout", "1"] } else { &["--json", "--offline"] });
        let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(value["ok"], ran.code == 0, "{}", ran.out);
        let all = value["findings"].as_array().unwrap();
        let found = all.iter().find(|f| f["check"] == check);
        let found = found.unwrap_or_else(|| panic!("no check `{check}` in {}", ran.out));
        let field = |key: &str| found[key].as_str().unwrap_or_default().to_string();
        (ran.code, field("status"), field("found"), field("remedy"))
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

#[test]
fn init_local_writes_a_whole_deployment_once() {
    let local = Local::new();
    let deployment = privet_party::config::load_deployment(&local.path("deployment.toml")).unwrap();
    assert_eq!(deployment.places().len(), 4);
    for node in ["party0", "party1", "dealer", "client"] {
        let loaded = privet_party::config::Loaded::load(&local.path(node).join("node.toml")).unwrap();
        assert_eq!(loaded.deployment, deployment_at(&loaded, &deployment));
        let mode = |at: &str| fs::metadata(local.path(node).join(at)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("key.pem"), mode("")), (0o600, 0o700), "{node}");
        let identity = privet_net::Identity::load(&loaded.node.certificate, &loaded.node.key).unwrap();
        assert_eq!(deployment.fingerprint(&loaded.node.me), Some(&identity.fingerprint()));
        assert!(identity.info().days_left() > 390);
        assert_eq!(loaded.node.threads.is_some(), node.starts_with("party"), "parties share the cores");
        assert_eq!(loaded.node.weights, None);
    }
    let key = fs::read(local.path("dealer/key.pem")).unwrap();
    let plan = text(&local.path("plan.json"));
    privet(&["init", "--local", &text(&local.path("")), "--plan", &plan])
        .refused(1, &["deployment.toml", "fix:"]);
    assert_eq!(fs::read(local.path("dealer/key.pem")).unwrap(), key, "a second init must not touch keys");
}

/// The deployment with its plan's path as the node reaches it (`party0/../plan.json`).
fn deployment_at(
    loaded: &privet_party::config::Loaded,
    d: &privet_party::config::Deployment,
) -> privet_party::config::Deployment {
    privet_party::config::Deployment { plan: loaded.deployment.plan.clone(), ..d.clone() }
}

#[test]
fn three_parties_are_set_up_without_a_dealer() {
    let local = Local::of(&["--protocol", "rep3"]);
    let load = |l: &Local| privet_party::config::load_deployment(&l.path("deployment.toml")).unwrap();
    let deployment = load(&local);
    let places: Vec<String> = deployment.places().iter().map(ToString::to_string).collect();
    assert_eq!(places, ["party:0", "party:1", "party:2", "client:client"]);
    assert_eq!(deployment.security.to_string(), "malicious");
    assert!(!local.path("dealer").exists());
    let weaker = Local::of(&["--protocol", "rep3", "--security", "semi-honest"]);
    assert_eq!(load(&weaker).security.to_string(), "semi-honest");

    // A doctor calls every other party, and nobody else.
    let ran = local.doctor("party0", &["--json", "--timeout", "1"]);
    let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let checks: Vec<&str> =
        value["findings"].as_array().unwrap().iter().map(|f| f["check"].as_str().unwrap()).collect();
    let called: Vec<&&str> = checks.iter().filter(|c| c.starts_with("party:") || **c == "dealer").collect();
    assert_eq!(called, [&"party:1", &"party:2"]);
    assert_eq!(ran.code, 0, "{}", ran.out);

    // There is nothing to deal.
    let (plan, store) = (text(&local.path("plan.json")), text(&local.path("party0/store")));
    let deal = ["deal", "--plan", &plan, "--stores", &store, &store, "--protocol", "rep3"];
    privet(&deal).refused(2, &["nothing to deal", "fix:"]);
    let node = text(&local.path("party2/node.toml"));
    privet(&["dealer", "--config", &node]).refused(2, &["nothing to deal", "start the parties"]);
}

#[test]
fn places_and_security_that_a_protocol_lacks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = text(&dir.path().join("n"));
    let init = |more: &[&str]| {
        privet(&[&["init", "--name", "w", "--dir", &at, "--address", "h.example:7701"], more].concat())
    };
    init(&["--me", "party:2"]).refused(2, &["fss has no party:2", "dealer"]);
    init(&["--me", "dealer", "--protocol", "rep3"]).refused(2, &["rep3 has no dealer", "party:2"]);
    init(&["--me", "party:0", "--security", "malicious"])
        .refused(2, &["fss is not secure", "--protocol rep3"]);
    init(&["--me", "party:0", "--model-owner", "party:2"]).refused(2, &["fss has no party:2"]);
    init(&["--me", "party:0", "--protocol", "spdz"]).refused(2, &["spdz"]);
    init(&["--me", "party:0", "--protocol", "rep3", "--security", "covert"]).refused(2, &["covert"]);
    init(&["--me", "party:2", "--protocol", "rep3"]).good();
    let card = format!("dealer@127.0.0.1:7702#{}", "ab".repeat(32));
    privet(&["init", "--dir", &at, "--join", &card]).refused(2, &["rep3 has no dealer"]);
    let card = format!("party:1@127.0.0.1:7702#{}", "ab".repeat(32));
    assert!(privet(&["init", "--dir", &at, "--join", &card]).good().contains("still missing"));
}

#[test]
fn init_local_takes_roles_and_refuses_bad_ones() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("p.json");
    fs::write(&plan, PLAN).unwrap();
    let (to, plan) = (text(&dir.path().join("d")), text(&plan));
    let init = |more: &[&str]| privet(&[&["init", "--local", &to, "--plan", &plan], more].concat());
    init(&["--receiver", "dealer"]).refused(2, &["dealer", "fix:"]);
    init(&["--receiver", "client:../x"]).refused(2, &["not a place"]);
    init(&["--client", "party0"]).refused(2, &["party0"]);
    let weights = ["--weights", "models/it's \"mine\".safetensors"];
    init(&[&["--model-owner", "client:a"], &weights[..]].concat()).refused(2, &["client:a", "fix:"]);
    privet(&["init", "--local", &to]).refused(2, &["--plan"]);
    privet(&["init", "--local", &to, "--plan", "/no/such"]).refused(1, &["/no/such", "fix:"]);
    privet(&["init"]).refused(2, &["nothing to do"]);
    assert!(!Path::new(&to).join("deployment.toml").exists());
    let out = init(&["--model-owner", "client:lab", "--data-owner", "client:ward", "--json"]).good();
    let written: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(written["nodes"].as_array().unwrap().len(), 5);
    assert!(dir.path().join("d/lab/key.pem").exists() && dir.path().join("d/ward/key.pem").exists());
}

#[test]
fn init_local_gives_the_weights_to_the_party_that_owns_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("p.json");
    fs::write(&plan, PLAN).unwrap();
    let weights = text(&dir.path().join("it's \"mine\".safetensors"));
    let (to, plan) = (text(&dir.path().join("d")), text(&plan));
    privet(&["init", "--local", &to, "--plan", &plan, "--weights", &weights]).good();
    let node = |name: &str| {
        let path = dir.path().join("d").join(name).join("node.toml");
        privet_party::config::Loaded::load(&path).unwrap().node
    };
    assert_eq!(node("party1").weights.as_deref(), Some(Path::new(&weights)));
    assert_eq!(node("party0").weights, None);
}

#[test]
fn operators_exchange_cards_until_the_deployment_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let dir = |i: usize| text(&root.path().join(format!("n{i}")));
    let places = ["party:0", "party:1", "dealer", "client:client"];
    let mut cards = Vec::new();
    for (i, place) in places.iter().enumerate() {
        let address = format!("127.0.0.1:{}", 7700 + i);
        let dir = dir(i);
        let mut args = vec!["init", "--name", "ward", "--me", place, "--dir", &dir, "--json"];
        if i < 3 {
            args.extend(["--address", &address]);
        }
        let value: serde_json::Value = serde_json::from_str(&privet(&args).good()).unwrap();
        cards.push(value["card"].as_str().unwrap().to_string());
    }
    let first = privet(&["init", "--dir", &dir(0), "--join", &cards[1]]).good();
    assert!(first.contains("still missing") && first.contains("dealer"), "{first}");
    let last = privet(&["init", "--dir", &dir(0), "--join", &cards[2], &cards[3]]).good();
    assert!(last.contains("complete"), "{last}");
    let path = root.path().join("n0/deployment.toml");
    privet_party::config::load_deployment(&path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("# Who takes part"), "comments are kept");

    // A renewed certificate is pinned only by explicit request.
    let config = text(&root.path().join("n1/node.toml"));
    privet(&["certs", "renew", "--config", &config]).good();
    let shown = privet(&["certs", "show", "--config", &config, "--json"]).good();
    let card =
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()["card"].as_str().unwrap().to_string();
    assert_ne!(card, cards[1]);
    privet(&["init", "--dir", &dir(0), "--join", &card]).refused(1, &["pinned to another", "--replace"]);
    privet(&["init", "--dir", &dir(0), "--replace", "--join", &card]).good();
    assert!(fs::read_to_string(&path).unwrap().contains(card.split('#').next_back().unwrap()));

    privet(&["init", "--dir", &dir(0), "--join", "party:1"]).refused(2, &["FINGERPRINT"]);
    privet(&["init", "--name", "w", "--me", "party:0", "--dir", &dir(9)]).refused(2, &["--address"]);
}

#[test]
fn certificates_are_made_shown_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let at = text(dir.path());
    let cert = text(&dir.path().join("cert.pem"));
    privet(&["certs", "new", "--name", "ward 7", "--dir", &at, "--days", "40"]).good();
    privet(&["certs", "new", "--name", "again", "--dir", &at]).refused(1, &["exists"]);
    let shown = privet(&["certs", "show", &cert]).good();
    assert!(
        shown.contains("ward 7") && (shown.contains("39 days left") || shown.contains("40 days left")),
        "{shown}"
    );
    let print = privet(&["certs", "fingerprint", &cert]).good();
    assert_eq!(print.trim().len(), 64);
    assert!(shown.contains(print.trim()));
    privet(&["certs", "check", &cert]).good();
    let late = privet(&["certs", "check", &cert, "--days-left", "60"]);
    assert_eq!(late.code, 4);
    assert!(late.out.contains("renew"), "{}", late.out);
    expired(dir.path());
    let gone = privet(&["certs", "check", &cert, "--json"]);
    assert_eq!(gone.code, 4);
    assert!(gone.out.contains("expired"), "{}", gone.out);
    fs::write(&cert, "not PEM").unwrap();
    privet(&["certs", "show", &cert]).refused(1, &["cert.pem"]);
}

/// Replace the identity in `dir` by one that ended yesterday.
fn expired(dir: &Path) {
    let identity = privet_net::Identity::generate_days("old", -1).unwrap();
    identity.write(&dir.join("cert.pem"), &dir.join("key.pem"), true).unwrap();
}

#[test]
fn doctor_finds_nothing_wrong_with_a_fresh_node() {
    let local = Local::new();
    let ran = local.doctor("client", &["--offline"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains("0 failures"), "{}", ran.out);
    for check in ["key", "certificate", "identity", "plan", "store", "configuration"] {
        assert!(ran.out.contains(&format!("ok    {check} ")), "{check} is not ok in\n{}", ran.out);
    }
    // Peers that do not run yet are a warning; with --strict a failure.
    let (code, status, found, remedy) = local.finding("client", "dealer");
    assert_eq!((code, status.as_str()), (0, "warn"), "{found}");
    assert!(remedy.contains("start dealer"), "{remedy}");
    assert_eq!(local.doctor("client", &["--strict", "--timeout", "1"]).code, 4);
}

#[test]
fn doctor_names_what_is_broken_and_the_repair() {
    let local = Local::new();
    let broken = |node: &str, check: &str, found_says: &str, remedy_says: &str| {
        let (code, status, found, remedy) = local.finding(node, check);
        assert_eq!((code, status.as_str()), (4, "fail"), "{check}: {found}");
        assert!(found.contains(found_says), "{check}: {found}");
        assert!(remedy.contains(remedy_says), "{check}: {remedy}");
    };
    // The key of party 0 can be read by others.
    let key = local.path("party0/key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    broken("party0", "key", "0644", "chmod 600");
    // The dealer's certificate has expired and is not the pinned one.
    expired(&local.path("dealer"));
    broken("dealer", "certificate", "expired", "renew");
    broken("dealer", "identity", "pins", "--replace");
    // Another program has the port of party 1.
    let deployment = privet_party::config::load_deployment(&local.path("deployment.toml")).unwrap();
    let busy = std::net::TcpListener::bind(deployment.parties[1].address.to_string()).unwrap();
    broken("party1", "port", "in use", "ss -ltnp");
    drop(busy);
    // The budget is smaller than the keys of one run.
    local.edit("party1/node.toml", |t| t.replace("# disk_budget = \"50 GB\" ", "disk_budget = \"1 kB\""));
    broken("party1", "disk", "budget 1.00 kB", "raise `disk_budget`");
    // The plan is gone, then is no plan.
    fs::write(local.path("plan.json"), "{}").unwrap();
    broken("party1", "plan", "not a plan", "plan.json");
    fs::write(local.path("plan.json"), PLAN.replace("receiver", "spy")).unwrap();
    broken("party1", "plan", "spy", "compile");
    // The key belongs to another certificate.
    fs::copy(local.path("client/key.pem"), local.path("party1/key.pem")).unwrap();
    broken("party1", "key pair", "does not belong", "renew");
    // An unknown key in the deployment, then in the node file.
    local.edit("deployment.toml", |t| t.replace("connect =", "conect ="));
    broken("party1", "deployment", "conect", "operators.md");
    local.edit("party1/node.toml", |t| t.replace("store =", "stores ="));
    broken("party1", "configuration", "stores", "operators.md");
    broken_path();
}

fn broken_path() {
    let ran = privet(&["doctor", "--config", "/no/such/node.toml"]);
    assert_eq!(ran.code, 4);
    assert!(ran.out.contains("/no/such/node.toml") && ran.out.contains("privet init"), "{}", ran.out);
}

#[test]
fn doctor_calls_a_running_peer() {
    use privet_net::{Hello, Options, Terms};
    use privet_net::{Identity, Listener, Pin, Protection};
    use privet_party::{config::Place, session::probe};
    let local = Local::new();
    let deployment = privet_party::config::load_deployment(&local.path("deployment.toml")).unwrap();
    let hash = privet_plan::Plan::from_json(PLAN.as_bytes()).unwrap().hash();
    let serve = |folder: &str, plan: [u8; 32], terms: Terms| {
        let at = |f: &str| local.path(folder).join(f);
        let identity = Identity::load(&at("cert.pem"), &at("key.pem")).unwrap();
        let client = Place::Client("client".into());
        let pins = vec![Pin::new(client.to_string(), *deployment.fingerprint(&client).unwrap())];
        let address = deployment.dealer.as_ref().unwrap().address.to_string();
        let listener = Listener::bind(&address, Protection::Tls(identity), pins).unwrap();
        std::thread::spawn(move || {
            let call = listener.accept(std::time::Duration::from_secs(20))?;
            assert_eq!(call.hello().purpose, probe::PURPOSE);
            let hello = Hello::new(&Place::Dealer.to_string(), plan, probe::PURPOSE, terms);
            probe::answer(call.answer(&hello, Options::default())?)
        })
    };
    let running = serve("dealer", hash, deployment.terms());
    let (_, status, found, _) = local.finding("client", "dealer");
    assert_eq!(status, "ok", "{found}");
    running.join().unwrap().unwrap();

    let other_plan = serve("dealer", [7; 32], deployment.terms());
    let (code, status, found, remedy) = local.finding("client", "dealer");
    assert_eq!((code, status.as_str()), (4, "fail"), "{found}");
    assert!(found.contains("plan") && remedy.contains("same plan"), "{found} {remedy}");
    other_plan.join().unwrap().unwrap_err();

    let mut elsewhere = deployment.clone();
    elsewhere.timeouts.step = std::time::Duration::from_secs(1);
    let other_terms = serve("dealer", hash, elsewhere.terms());
    let (code, status, found, remedy) = local.finding("client", "dealer");
    assert_eq!((code, status.as_str()), (4, "fail"), "{found}");
    assert!(found.contains("timeouts.step is `300 s` here and `1 s` at dealer"), "{found}");
    assert!(remedy.contains("same deployment.toml"), "{remedy}");
    other_terms.join().unwrap().unwrap_err();

    let impostor = serve("party1", hash, deployment.terms());
    let (code, status, found, remedy) = local.finding("client", "dealer");
    assert_eq!((code, status.as_str()), (4, "fail"), "{found}");
    assert!(found.contains("fingerprint") && remedy.contains("--replace"), "{found} {remedy}");
    impostor.join().unwrap().unwrap_err();
}

#[test]
fn plans_are_shown_and_audited() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("p.json");
    fs::write(&plan, PLAN).unwrap();
    let plan = text(&plan);
    let shown = privet(&["plan", "show", &plan]).good();
    for line in ["hash", "2x3 over Z_2^64", "output   logits to receiver", "linear, truncate"] {
        assert!(shown.contains(line), "`{line}` is not in\n{shown}");
    }
    let audit: serde_json::Value =
        serde_json::from_str(&privet(&["plan", "audit", &plan, "--json"]).good()).unwrap();
    let list = audit["openings"].as_array().unwrap();
    let what: Vec<(&str, u64, &str)> = list
        .iter()
        .map(|o| (o["what"].as_str().unwrap(), o["bits"].as_u64().unwrap(), o["class"].as_str().unwrap()))
        .collect();
    assert_eq!(
        what,
        [
            ("weight `fc.weight` of model_owner", 12 * 64, "masked"),
            ("input `x` of data_owner", 6 * 64, "masked"),
            ("product", 8 * 64, "masked"),
            ("carry bit", 8, "masked"),
            ("truncated", 8 * 52, "masked"),
            ("sign bit", 8, "masked"),
            ("relu", 8 * 64, "masked"),
            ("output `logits`", 8 * 64, "revealed"),
        ]
    );
    assert_eq!(list[0]["when"], "session");
    assert_eq!(list[7]["to"], "receiver");
    let estimate = privet(&["plan", "estimate", &plan, "--network", "rtt=60ms,bandwidth=293Mbit/s"]).good();
    assert!(estimate.contains("whole run") && estimate.contains("60 ms round trip"), "{estimate}");
    let e: serde_json::Value =
        serde_json::from_str(&privet(&["plan", "estimate", &plan, "--json"]).good()).unwrap();
    assert_eq!(e["total"]["comparisons"], 16, "8 truncations and 8 signs");
    assert!(estimate.contains("on a LAN") && estimate.contains("on a WAN"), "{estimate}");
    assert!(e["lan_s"].as_f64() < e["wan_s"].as_f64());
    privet(&["plan", "estimate", &plan, "--network", "moon"]).refused(2, &["moon", "rtt="]);
    let people = privet(&["plan", "audit", &plan]).good();
    assert!(people.contains("REVEALED to receiver") && people.contains("It uses up"), "{people}");
    assert_eq!(audit["stored_bytes_per_run"][0], e["total"]["key_bytes"]);
    assert!(audit["stored_bytes_per_run"][1].as_u64() <= e["total"]["key_bytes"].as_u64());
    privet(&["plan", "show", "/no/such.json"]).refused(1, &["/no/such.json", "fix:"]);
    fs::write(dir.path().join("p.json"), PLAN.replace("\"batch\"", "\"batches\"")).unwrap();
    privet(&["plan", "audit", &plan]).refused(1, &["batches", "fix:"]);
}

#[test]
fn plans_are_estimated_and_audited_for_three_parties() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("p.json");
    fs::write(&plan, PLAN).unwrap();
    let plan = text(&plan);
    let json = |args: &[&str]| -> serde_json::Value {
        let family = ["--protocol", "rep3", "--json"];
        serde_json::from_str(&privet(&[&["plan", args[0], &plan], &args[1..], &family].concat()).good())
            .unwrap()
    };
    let audit = json(&["audit"]);
    assert_eq!((&audit["protocol"], &audit["security"]), (&"rep3".into(), &"malicious".into()));
    let what = |audit: &serde_json::Value| -> Vec<String> {
        let list = audit["openings"].as_array().unwrap().iter();
        list.map(|o| format!("{}: {}", o["class"].as_str().unwrap(), o["what"].as_str().unwrap())).collect()
    };
    let [weight, input] = ["weight `fc.weight` of model_owner", "input `x` of data_owner"];
    let [weight, input] = [weight, input].map(|x| format!("masked: shares of {x}"));
    let [proofs, output] = ["masked: proofs of all messages", "revealed: output `logits`"].map(String::from);
    let [tags, of_tags] =
        ["masked: shares of tags of weights", "masked: proofs of all tags"].map(String::from);
    assert_eq!(what(&audit), [weight.clone(), tags, of_tags, input.clone(), proofs, output.clone()]);
    assert_eq!(what(&json(&["audit", "--security", "semi-honest"])), [weight, input, output]);

    let estimate = json(&["estimate"]);
    assert_eq!((&estimate["protocol"], &estimate["security"]), (&"rep3".into(), &"malicious".into()));
    assert_eq!(estimate["total"]["key_bytes"], 0);
    assert!(estimate["total"]["wire_bytes"].as_u64().unwrap() > 0);
    assert!(estimate["lan_s"].as_f64() < estimate["wan_s"].as_f64());
    let people = privet(&["plan", "estimate", &plan, "--protocol", "rep3"]).good();
    assert!(people.contains("rep3, malicious") && !people.contains("keys a run"), "{people}");
    privet(&["plan", "audit", &plan, "--security", "malicious"]).refused(2, &["fss is not secure"]);
}

#[test]
fn estimates_go_by_this_machine_by_the_profile_that_is_named_or_by_the_shipped_one() {
    let dir = tempfile::tempdir().unwrap();
    let profile = |name: &str| privet_plan::suite::repository().join("benches").join(name);
    let another = profile("results-intel-avx512/profile.json");
    // the profile of a machine that is not this one lies where this machine's would
    let cache = dir.path().join("privet");
    fs::create_dir(&cache).unwrap();
    let strange = fs::read_to_string(&another).unwrap().replacen("Intel", "Another", 1);
    fs::write(cache.join("machine.json"), strange).unwrap();
    let predict = |named: Option<&Path>| -> serde_json::Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
        command.args(["bench", "relu-200", "--predict", "--json"]).env("XDG_CACHE_HOME", dir.path());
        match named {
            Some(path) => command.env("PRIVET_PROFILE", path),
            None => command.env_remove("PRIVET_PROFILE"),
        };
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let (shipped, by_name) = (predict(None), predict(Some(&another)));
    assert!(shipped["rates_from"].as_str().unwrap().contains("shipped"), "{shipped}");
    assert_eq!(by_name["rates_from"], "rates of the profile in PRIVET_PROFILE");
    assert_ne!(shipped["predicted_s"], by_name["predicted_s"]);
    assert_eq!(predict(Some(&profile("nothing.json"))), shipped);
}

#[test]
fn benchmarks_of_both_families_say_what_they_measured() {
    let bench = |more: &[&str]| -> serde_json::Value {
        let args = ["bench", "relu-200", "--runs", "1", "--json"];
        serde_json::from_str(&privet(&[&args, more].concat()).good()).unwrap()
    };
    let fss = bench(&[]);
    assert_eq!((&fss["protocol"], &fss["security"]), (&"fss".into(), &"semi-honest, TLS".into()));
    assert_eq!(fss["peak_rss_mb"].as_array().unwrap().len(), 3, "two parties and the dealer");
    assert!(fss["key_bytes"].as_u64() > Some(0) && fss["dealer_aes_per_s"].as_f64() > Some(0.0));
    let mut bytes = Vec::new();
    for security in ["semi-honest", "malicious"] {
        let rep3 = bench(&["--protocol", "rep3", "--security", security]);
        assert_eq!(rep3["security"], format!("{security}, TLS"));
        assert_eq!((&rep3["key_bytes"], &rep3["offline_s"]["median"]), (&0.into(), &0.0.into()));
        assert_eq!(rep3["peak_rss_mb"].as_array().unwrap().len(), 3);
        assert!(rep3["setup_s"].as_f64() > Some(0.0) && rep3.get("dealer_aes_per_s").is_none());
        assert!(rep3["max_abs_err"].as_f64() < Some(1e-6), "{rep3}");
        let sent = rep3["bytes_sent"].as_u64().unwrap();
        assert_eq!(rep3["mb_per_sample"].as_f64(), Some(sent as f64 / 1e6));
        let proofs = rep3.get("verification").map_or(0, |v| v["bytes_sent"].as_u64().unwrap());
        assert_eq!(proofs > 0, security == "malicious");
        bytes.push(sent - proofs);
    }
    assert_eq!(bytes[0], bytes[1], "proofs come on top, the messages are the same");
    privet(&["bench", "relu-200", "--security", "malicious"]).refused(2, &["fss is not secure"]);
    privet(&["bench", "nothing-200"]).refused(2, &["nothing-200", "lenet"]);
}

/// Small transformers between real processes: results are those of float64.
#[test]
fn small_transformers_run_in_both_families() {
    for (workload, more) in [
        ("bert-small", &[][..]),
        ("bert-small", &["--protocol", "rep3", "--security", "malicious"][..]),
        ("gpt2-small", &["--protocol", "rep3", "--security", "semi-honest"][..]),
        ("vit-small", &[][..]),
    ] {
        let args = [&["bench", workload, "--runs", "1", "--json"], more].concat();
        let found: serde_json::Value = serde_json::from_str(&privet(&args).good()).unwrap();
        assert!(found["max_abs_err"].as_f64() < Some(1e-4), "{found}");
        assert!(found["rounds"].as_u64() > Some(0));
    }
}

#[test]
fn usage_errors_and_closed_pipes() {
    privet(&["frobnicate"]).refused(2, &["frobnicate"]);
    assert!(privet(&["--help"]).good().contains("Exit codes"));
    let env: serde_json::Value = serde_json::from_str(&privet(&["env", "--json"]).good()).unwrap();
    assert!(env["cores"].as_u64().unwrap() >= 1);
    assert_eq!(env["privet"], env!("CARGO_PKG_VERSION"));
    let odd =
        Command::new(env!("CARGO_BIN_EXE_privet")).arg("env").env("PRIVET_CPU", "abacus").output().unwrap();
    assert_eq!(odd.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&odd.stderr).contains("abacus"));
    privet(&["report", "/no/run.json"]).refused(1, &["/no/run.json", "fix:"]);

    // A reader that went away before anything was written ends the command quietly.
    let mut child = Command::new(env!("CARGO_BIN_EXE_privet"))
        .arg("env")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert!(ran.stderr.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0));
}
