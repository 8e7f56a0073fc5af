//! A deployment of real processes over TLS, started and killed by tests.

pub mod dealing;
pub mod learning;

use privet_family::Dealing;
use privet_net::NetworkProfile;
use privet_party::config::{Loaded, Protocol, Security};
use privet_party::session::client::Client;
use privet_party::session::links::Links;
use privet_party::tensors::{self, Tensors};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::{FloatTensor, Program, decode_outputs, encode_inputs, encode_weights, interpret};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Nothing takes this long; whatever does, hangs.
const HARNESS: Duration = Duration::from_secs(30);

/// What a client printed.
pub struct Ran {
    pub code: Option<i32>,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn good(self) {
        assert_eq!(self.code, Some(0), "{}", self.err);
    }

    /// Failed with a message that says each of `says`.
    #[track_caller]
    pub fn says(self, says: &[&str]) {
        assert_eq!(self.code, Some(1), "{}", self.err);
        for text in says {
            assert!(self.err.contains(text), "`{text}` is not in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

/// A protocol family, as `privet init` takes it, and its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub protocol: &'static str,
    pub security: &'static str,
    pub parties: &'static [&'static str],
    pub dealer: bool,
    /// Its parameters, where they are not the defaults.
    pub set: &'static [&'static str],
    /// What runs use up, if anything.
    pub uses_up: Option<&'static str>,
}

const NAMES: [&str; 5] = ["party0", "party1", "party2", "party3", "party4"];

pub const FSS: Family = Family {
    protocol: "fss",
    security: "semi-honest",
    parties: NAMES.split_at(2).0,
    dealer: true,
    set: &[],
    uses_up: Some("keys"),
};
pub const REP3: Family = Family {
    protocol: "rep3",
    security: "malicious",
    parties: NAMES.split_at(3).0,
    dealer: false,
    set: &[],
    uses_up: None,
};
pub const REP3_SEMI_HONEST: Family = Family { security: "semi-honest", ..REP3 };
pub const SEMI2K: Family = Family {
    protocol: "semi2k",
    security: "semi-honest",
    parties: NAMES.split_at(3).0,
    dealer: false,
    set: &[],
    uses_up: Some("records"),
};
/// The same of two parties, with a dealer.
pub const SEMI2K_DEALT: Family =
    Family { parties: NAMES.split_at(2).0, dealer: true, set: &["helper=dealer"], ..SEMI2K };

pub const HEOT: Family = Family {
    protocol: "heot",
    security: "semi-honest",
    parties: NAMES.split_at(2).0,
    dealer: false,
    set: &[],
    uses_up: Some("records"),
};

/// Every family of the registry, against each kind of parties that it withstands: of three parties where it leaves that open, and
/// once more, of as few as it does with, where a deployment may choose a dealer.
pub fn families() -> Vec<Family> {
    let of = |protocol: Protocol| {
        let facts = protocol.facts();
        let three = 3.clamp(*facts.parties.start(), *facts.parties.end());
        let one = |security: &Security, n: usize, dealer, set| Family {
            protocol: facts.name,
            security: if *security == Security::Malicious { "malicious" } else { "semi-honest" },
            parties: &NAMES[..n],
            dealer,
            set,
            uses_up: facts.uses_up,
        };
        let each = |security: &Security| {
            let plain = one(security, three, facts.dealing == Dealing::Always, &[]);
            let Dealing::Chosen(parameter, word) = facts.dealing else { return vec![plain] };
            let set = Vec::leak(vec![&*String::leak(format!("{}={word}", parameter.name))]);
            vec![plain, one(security, facts.fewest_parties(), true, set)]
        };
        facts.withstands.iter().flat_map(each).collect::<Vec<_>>()
    };
    Protocol::all().flat_map(of).collect()
}

impl Family {
    /// The only party that may own a model, where the protocol has such a rule.
    pub fn owner(self) -> Option<u8> {
        self.protocol.parse::<Protocol>().unwrap().facts().holder("model_owner")
    }

    /// Whether it runs plans with states.
    pub fn trains(self) -> bool {
        self.protocol.parse::<Protocol>().unwrap().trains()
    }

    /// The same of so many parties.
    pub fn among(self, parties: usize) -> Family {
        Family { parties: &NAMES[..parties], ..self }
    }

    /// All that serve.
    pub fn services(self) -> impl Iterator<Item = &'static str> {
        self.parties.iter().copied().chain(self.dealer.then_some("dealer"))
    }

    /// Arguments of `privet run` that have `runs` runs prepared, where runs use something up.
    pub fn prepare(self, runs: &'static str) -> &'static [&'static str] {
        match (self.uses_up.is_some(), runs) {
            (false, _) => &[],
            (true, "1") => &["--prepare", "1"],
            (true, _) => &["--prepare", "4"],
        }
    }
}

pub struct Nodes {
    pub family: Family,
    dir: tempfile::TempDir,
    network: &'static str,
    running: BTreeMap<&'static str, Child>,
    /// Everything that processes printed and no log file holds.
    printed: Mutex<String>,
}

pub const PARTIES: [&str; 2] = ["party0", "party1"];

/// The text with ports that no other deployment of this process has, and that the system gives to no connection: between two lives of a
/// node its port is free, and must be so when it comes back.
fn with_own_ports(text: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // another process's tests begin elsewhere, and `privet init` chooses others
    let first = 12_000 + std::process::id() as u16 % 32 * 256;
    let next = || loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    };
    let mut parts = text.split(HOST);
    let mut changed = parts.next().unwrap_or_default().to_string();
    for part in parts {
        changed += &format!("{HOST}{}{}", next(), part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    changed
}

impl Nodes {
    /// Files of a deployment whose model party 1 owns; nobody runs yet.
    pub fn new(plan: &Plan, weights: &Tensors, network: &'static str) -> Nodes {
        Self::with_owner(plan, Some(weights), network)
    }

    /// The same, with weights that the client owns where `weights` is none.
    pub fn with_owner(plan: &Plan, weights: Option<&Tensors>, network: &'static str) -> Nodes {
        Self::of(FSS, plan, weights, network, &[])
    }

    /// The same for any family, with more arguments of `privet init`.
    pub fn of(
        family: Family,
        plan: &Plan,
        weights: Option<&Tensors>,
        network: &'static str,
        more: &[&str],
    ) -> Nodes {
        Self::of_program(family, &plan.clone().into(), weights, network, more)
    }

    /// The same for a program.
    pub fn of_program(
        family: Family,
        program: &Program,
        weights: Option<&Tensors>,
        network: &'static str,
        more: &[&str],
    ) -> Nodes {
        let nodes = Nodes {
            family,
            dir: tempfile::tempdir().unwrap(),
            network,
            running: BTreeMap::new(),
            printed: Mutex::default(),
        };
        fs::write(nodes.dir.path().join("plan.json"), program.to_json()).unwrap();
        let mut init = Command::new(env!("CARGO_BIN_EXE_privet"));
        init.args(["init", "--protocol", family.protocol, "--security", family.security]);
        init.args(["--parties", &family.parties.len().to_string()]).args(more);
        for said in family.set {
            init.args(["--set", said]);
        }
        init.arg("--local").arg(nodes.path("")).arg("--plan").arg(nodes.dir.path().join("plan.json"));
        match weights {
            Some(weights) => {
                let path = nodes.dir.path().join("weights.safetensors");
                tensors::save(&path, weights).unwrap();
                init.arg("--weights").arg(path);
            }
            None if !more.contains(&"--model-owner") && family.owner().is_none() => {
                init.args(["--model-owner", "client:client"]);
            }
            None => {}
        }
        let done = init.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let file = nodes.path("deployment.toml");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("connect = 30", "connect = 4").replace("heartbeat = 5", "heartbeat = 1");
        fs::write(&file, with_own_ports(&text)).unwrap();
        nodes
    }

    pub fn path(&self, at: &str) -> PathBuf {
        self.dir.path().join("d").join(at)
    }

    /// Further settings of all parties, before they are started.
    pub fn set(&self, settings: &str) {
        for party in self.family.parties {
            let file = self.path(party).join("node.toml");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, format!("{settings}\n{text}")).unwrap();
        }
    }

    pub fn start(&mut self, name: &'static str) {
        self.start_process(name, self.service(name));
    }

    /// Start any process, to be killed under a name; what it says goes to that name's log.
    pub fn start_process(&mut self, name: &'static str, mut command: Command) {
        let log = self.path(&format!("{name}.log"));
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = command.stderr(log).spawn().unwrap();
        assert!(self.running.insert(name, child).is_none(), "{name} runs already");
    }

    /// Wait for a process that ends by itself.
    #[track_caller]
    pub fn ends(&mut self, name: &'static str) {
        let child = self.running.remove(name).unwrap();
        let status = wait(child).unwrap_or_else(|| panic!("{name} does not end: {}", self.log(name)));
        assert!(status.success(), "{name}: {status}: {}", self.log(name));
    }

    pub fn service(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
        command.arg(if name == "dealer" { "dealer" } else { "party" });
        command.args(["--network", self.network, "--config"]).arg(self.path(name).join("node.toml"));
        command.args(["--log-format", "json", "--log-level", "debug"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Start a node that is expected to refuse to run.
    pub fn start_refused(&self, name: &str) -> Ran {
        let child = self.service(name).stderr(Stdio::piped()).spawn().unwrap();
        self.finish(child)
    }

    pub fn start_all(&mut self) {
        self.family.services().for_each(|name| self.start(name));
    }

    /// As `kill -9`.
    pub fn kill(&mut self, name: &str) -> ExitStatus {
        let mut child = self.running.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap()
    }

    /// Process id of a running node.
    pub fn pid(&self, name: &str) -> u32 {
        self.running[name].id()
    }

    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    /// The events that a node told of, each with all its fields. What is written at this moment may be missing.
    pub fn events(&self, name: &str) -> Vec<serde_json::Value> {
        self.log(name).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The events of one name.
    pub fn told(&self, name: &str, event: &str) -> Vec<serde_json::Value> {
        let mut events = self.events(name);
        events.retain(|e| e["event"] == event);
        events
    }

    /// A place's connections, and the program.
    pub fn links(&self, who: &str) -> (Links, Program) {
        let config = Loaded::load(&self.path(who).join("node.toml")).unwrap();
        let program = Program::from_json(&fs::read(&config.deployment.plan).unwrap()).unwrap();
        (Links::new(config, &program, NetworkProfile::LAN).unwrap(), program)
    }

    /// A client in this process.
    pub fn client(&self, who: &str) -> Client {
        let (links, program) = self.links(who);
        Client::new(links, Arc::new(program))
    }

    /// `privet run` with inputs, in the background.
    pub fn begin(&self, more: &[&str], inputs: &Tensors) -> Child {
        self.begin_as("client", more, Some(inputs), &self.output())
    }

    /// `privet run` as a place, with inputs if it has some, and its outputs to a file.
    pub fn begin_as(&self, who: &str, more: &[&str], inputs: Option<&Tensors>, output: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
        command.arg("run").arg("--config").arg(self.path(who).join("node.toml")).args(more);
        if let Some(inputs) = inputs {
            // A file for each client: several may run at once.
            let file = tempfile::Builder::new().tempfile_in(self.dir.path()).unwrap();
            let (_, path) = file.keep().unwrap();
            fs::write(&path, tensors::encode(inputs).unwrap()).unwrap();
            command.arg("--input").arg(path);
        }
        command.arg("--output").arg(output);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Wait for a process, for a bounded time.
    pub fn finish(&self, mut child: Child) -> Ran {
        let mut stderr = child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut stderr, &mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let Some(status) = wait(child) else {
            let logs: Vec<String> = self.family.services().map(|p| self.log(p)).collect();
            panic!("no end after {HARNESS:?}: {}\n{logs:?}", reader.join().unwrap());
        };
        let err = reader.join().unwrap();
        self.printed.lock().unwrap().push_str(&err);
        Ran { code: status.code(), err }
    }

    pub fn run(&self, more: &[&str], inputs: &Tensors) -> Ran {
        let _ = fs::remove_file(self.output());
        self.finish(self.begin(more, inputs))
    }

    pub fn output(&self) -> PathBuf {
        self.dir.path().join("output.safetensors")
    }

    /// What the last run revealed.
    pub fn outputs(&self) -> Tensors {
        tensors::load(&self.output()).unwrap()
    }

    /// Unused record files at a party, by path.
    pub fn records(&self, name: &str) -> Vec<PathBuf> {
        self.key_files(name, "keys")
    }

    /// Unfinished files at a party.
    pub fn parts(&self, name: &str) -> usize {
        self.key_files(name, "part").len()
    }

    fn key_files(&self, name: &str, extension: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for session in sessions(&self.path(name).join("store")) {
            // A session that ends meanwhile has no files.
            let entries = fs::read_dir(session).into_iter().flatten().map(|e| e.unwrap().path());
            found.extend(entries.filter(|p| p.extension().is_some_and(|e| e == extension)));
        }
        found.sort();
        found
    }

    /// What a party has used up, of all plans.
    pub fn journal(&self, name: &str) -> Vec<String> {
        let store = self.path(name).join("store");
        let stores = std::iter::once(store.clone()).chain(sessions(&store));
        let texts = stores.map(|dir| fs::read_to_string(dir.join("journal")).unwrap_or_default());
        texts.collect::<String>().lines().map(str::to_owned).collect()
    }

    /// No name is in the journal of a party twice, and nobody took part in a run of the same session and number twice.
    #[track_caller]
    pub fn used_once(&self) {
        for party in self.family.parties {
            for (what, lines) in [("journal", self.journal(party)), ("runs", self.runs(party))] {
                let distinct: HashSet<&String> = lines.iter().collect();
                assert_eq!(distinct.len(), lines.len(), "{party}, {what}: {lines:?}");
            }
        }
    }

    /// Every run that a party took part in, by session and number.
    pub fn runs(&self, party: &str) -> Vec<String> {
        let run = |e: &serde_json::Value| format!("{}/{}", e["session"].as_str().unwrap(), e["run"]);
        self.told(party, "run_began").iter().map(run).collect()
    }

    /// Wait until something is true. Where it never is, everybody's log is shown: whoever is waited for says why.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&Nodes) -> bool) {
        let started = Instant::now();
        while !condition(self) {
            if started.elapsed() >= HARNESS {
                let logs = self.family.services().map(|name| format!("== {name}\n{}", self.log(name)));
                panic!("waited in vain for {what}\n{}", logs.collect::<String>());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// None of the secrets that these processes handled is in what they wrote for people to read.
    pub fn nothing_secret_was_said(&self, tensors: &[&Tensors]) {
        let mut secrets: Vec<String> = Vec::new();
        for name in self.family.parties {
            for session in all_sessions(&self.path(name).join("store")) {
                let Ok(text) = fs::read(session.join("session.key")) else { continue };
                let keys: serde_json::Value = serde_json::from_slice(&text).unwrap();
                // A seed, then public hash keys.
                secrets.push(keys["keys"].as_str().unwrap()[..32].to_owned());
            }
        }
        for entry in fs::read_dir(self.path("")).unwrap() {
            let Ok(pem) = fs::read_to_string(entry.unwrap().path().join("key.pem")) else { continue };
            secrets.extend(pem.lines().filter(|l| !l.starts_with('-')).map(str::to_owned));
        }
        for value in tensors.iter().flat_map(|t| t.values()).flat_map(|t| &t.data) {
            let encoded = (value * 4096.0).round() as i64;
            // Short numbers occur in any text.
            let texts = [value.to_string(), encoded.to_string(), format!("{encoded:x}")];
            secrets.extend(texts.into_iter().filter(|t| t.len() >= 5));
        }
        assert!(secrets.len() > 10, "the test must know secrets");
        let mut said = self.printed.lock().unwrap().clone();
        self.family.services().for_each(|name| said.push_str(&self.log(name)));
        // ports are numbers of five digits
        let said: String =
            said.split("127.0.0.1:").map(|t| t.trim_start_matches(|c: char| c.is_ascii_digit())).collect();
        for secret in secrets {
            assert!(!says(&said, &secret), "a secret ({} characters) was written out", secret.len());
        }
    }
}

/// Whether `text` has `secret` in it; a short number only as a whole word, as names of jobs are random digits.
fn says(text: &str, secret: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let whole =
        |(at, _): (usize, &str)| !text[..at].ends_with(word) && !text[at + secret.len()..].starts_with(word);
    text.match_indices(secret).any(|found| secret.len() > 8 || whole(found))
}

/// How a process ended; none if it did not in time, and was killed.
fn wait(mut child: Child) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if started.elapsed() > HARNESS {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn sessions(store: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(store) else { return Vec::new() };
    entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect()
}

/// Those of all plans, where a program has several.
fn all_sessions(store: &Path) -> Vec<PathBuf> {
    let direct = sessions(store);
    let below: Vec<PathBuf> = direct.iter().flat_map(|dir| sessions(dir)).collect();
    direct.into_iter().chain(below).collect()
}

/// Copy a file over another.
pub fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|e| panic!("{} to {}: {e}", from.display(), to.display()));
}

/// Cut a file off.
pub fn cut(path: &Path, bytes: u64) {
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

fn node(op: Op, inputs: &[usize], shape: &[usize], bits: u32, frac: u32, layer: &str) -> Node {
    let ty = Type { shape: shape.to_vec(), bits, frac };
    Node { op, inputs: inputs.to_vec(), ty, layer: layer.into(), form: None }
}

fn input(n: &[usize]) -> Node {
    let op = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 8.0 };
    node(op, &[], n, 64, 12, "")
}

fn plan(name: &str, nodes: Vec<Node>) -> Plan {
    let value = nodes.len() - 1;
    let outputs = vec![Output { value, name: "logits".into(), to: "receiver".into() }];
    let batch = nodes[0].ty.shape[0];
    let plan = Plan { version: PLAN_VERSION, name: name.into(), batch, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    plan
}

/// A layer of a network: linear, truncation, ReLU.
pub fn small() -> Plan {
    let weight = Op::Weight { name: "fc.weight".into(), owner: "model_owner".into() };
    let truncate = Op::Truncate { shift: 12, rounding: Rounding::Floor };
    let nodes = vec![
        input(&[2, 3]),
        node(weight, &[], &[4, 3], 64, 12, "fc"),
        node(Op::Linear, &[0, 1], &[2, 4], 64, 24, "fc"),
        node(truncate, &[2], &[2, 4], 52, 12, "fc"),
        node(Op::Relu, &[3], &[2, 4], 64, 12, "relu"),
    ];
    plan("small", nodes)
}

/// Many rounds, so that a slow network gives time to kill somebody; the weight is there to be shared.
pub fn deep(layers: usize, n: usize) -> Plan {
    let weight = Op::Weight { name: "fc.weight".into(), owner: "model_owner".into() };
    let mut nodes = vec![input(&[n]), node(weight, &[], &[n], 64, 12, "bias")];
    nodes.push(node(Op::Add, &[0, 1], &[n], 64, 12, "bias"));
    for i in 0..layers {
        nodes.push(node(Op::Relu, &[i + 2], &[n], 64, 12, &format!("relu{i}")));
    }
    plan("deep", nodes)
}

/// Numbers that no log holds by chance, exact at 12 fraction bits.
pub fn numbers(shape: &[usize], salt: usize) -> FloatTensor {
    let n: usize = shape.iter().product();
    let value = |i: usize| (((i * 7919 + salt * 104_729) % 32_768) as f64 - 16_384.0) / 4096.0;
    FloatTensor { shape: shape.to_vec(), data: (0..n).map(value).collect() }
}

pub fn named(name: &str, tensor: FloatTensor) -> Tensors {
    Tensors::from([(name.to_owned(), tensor)])
}

/// What the plan means, by the interpreter.
pub fn truth(plan: &Plan, inputs: &Tensors, weights: &Tensors) -> Tensors {
    let (x, w) = (encode_inputs(plan, None, inputs).unwrap(), encode_weights(plan, None, weights).unwrap());
    let outputs = interpret(plan, &x, &w, &mut privet_plan::NoCoins).unwrap();
    named("logits", decode_outputs(plan, &outputs).remove(0))
}
