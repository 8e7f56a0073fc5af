//! Training with keys that come as a stream, where one process after the other is killed (SIGKILL) at random moments and
//! started again: each party, the dealer, the model's owner, and the owners of rows and labels, which are processes of their
//! own as well. Training goes on from the last common step with fresh keys, and all that anybody learns is what the
//! interpreter says, integer by integer.

use crate::nodes::learning::{ROLES, Truth, batch, client, client_at, first_states, program, rate};
use crate::nodes::{FSS, Family, Nodes, REP3};
use privet_party::session::client::{Client, ClientError, Publics};
use privet_party::session::control::{At, Id, KeyStream};
use privet_party::store::{hex, unhex};
use privet_party::tensors::{self, Tensors};
use privet_prg::{Prg, Seed};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Kills of one process; of any of a family's processes by night, so many that 500 moments are met.
const KILLS: usize = 20;
const KILLS_BY_NIGHT: usize = 250;
/// Longest time from a moment that is waited for to the kill, microseconds: a few steps, or most of a recovery.
const MOMENT: u64 = 300_000;
/// Steps from one checkpoint to the next: those after it are lost with a party's memory.
const EVERY: u64 = 3;
const RATE: f64 = 0.25;

/// What a process of a client is told: its name, and the folder that clients and test share.
const CLIENT: &str = "PRIVET_TEST_CLIENT";
const FOLDER: &str = "PRIVET_TEST_FOLDER";

/// Files of that folder.
struct Folder(PathBuf);

impl Folder {
    /// Write a file whole or not at all, whenever this process is killed.
    fn put(&self, name: &str, text: &[u8]) {
        let part = self.0.join(format!("{name}.part"));
        fs::write(&part, text).unwrap();
        fs::rename(part, self.0.join(name)).unwrap();
    }

    fn number(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.0.join(name)).ok()?.parse().ok()
    }

    /// The training, once its owner knows it.
    fn training(&self) -> Option<Id> {
        unhex(&fs::read_to_string(self.0.join("training")).ok()?).map(Id)
    }

    /// The step that training ends with.
    fn last(&self) -> Option<u64> {
        self.number("last")
    }

    /// What somebody learned at a step, which may have been done more than once.
    fn learned(&self, what: &str, step: u64, outputs: &Tensors) {
        self.put(&format!("{what}-{step}"), &tensors::encode(outputs).unwrap());
    }

    /// The steps of which something was learned, ascending.
    fn steps(&self, what: &str) -> Vec<u64> {
        let names = fs::read_dir(&self.0).unwrap().filter_map(|e| e.unwrap().file_name().into_string().ok());
        let step = |name: String| name.strip_prefix(what)?.strip_prefix('-')?.parse().ok();
        let mut steps: Vec<u64> = names.filter_map(step).collect();
        steps.sort_unstable();
        steps
    }

    /// What was learned, by step.
    fn all_learned(&self, what: &str) -> BTreeMap<u64, Tensors> {
        let load = |step| (step, tensors::load(&self.0.join(format!("{what}-{step}"))).unwrap());
        self.steps(what).into_iter().map(load).collect()
    }
}

/// Not a test of its own: a client in a process of its own, which the tests below start and kill.
#[test]
fn client_process() {
    let Ok(name) = env::var(CLIENT) else { return };
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    let client = client_at(&folder.join(&name).join("node.toml"));
    let folder = Folder(folder.join("learned"));
    match &*name {
        "carol" => own(client, &folder),
        _ => take_part(client, &name, &folder),
    }
}

fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Alice, who owns rows and learns the error, and bob, who owns labels: one step after the other, from wherever the parties
/// are after something failed.
fn take_part(mut client: Client, name: &str, folder: &Folder) {
    let mut at: Option<At> = None;
    loop {
        let Some(from) = at.or_else(|| client.join_training().ok()) else {
            pause();
            continue;
        };
        if folder.last().is_some_and(|last| from.step >= last) {
            return;
        }
        let (rows, labels) = batch(from.step);
        let mine = if name == "alice" { rows } else { labels };
        match client.step("train", &mine, &rate(RATE)) {
            Ok(outcome) => {
                at = client.training();
                if name == "alice" {
                    folder.learned("error", from.step, &outcome.outputs);
                }
            }
            Err(e) => {
                eprintln!("step {}: {e}", from.step);
                at = None;
                pause();
            }
        }
    }
}

/// Carol, who owns the model: begins the training or goes on with it, has keys come, and looks at the states.
fn own(mut client: Client, folder: &Folder) {
    let mut resume = true;
    while folder.number("done").is_none() {
        if let Err(e) = see_to_it(&mut client, folder, &mut resume) {
            eprintln!("{e}");
            resume = true;
        }
        pause();
    }
}

fn see_to_it(client: &mut Client, folder: &Folder, resume: &mut bool) -> Result<(), ClientError> {
    let Some(training) = folder.training() else {
        let training = client.begin_training(&first_states(), EVERY)?;
        folder.put("training", hex(&training.0).as_bytes());
        *resume = false;
        return Ok(());
    };
    let status = client.status()?;
    if *resume || status.iter().any(|s| s.training.is_none_or(|at| at.training != training)) {
        client.resume(training)?;
        *resume = false;
    }
    let dry = |s: &KeyStream| s.to_come == 0;
    if status.iter().any(|s| s.plans["train"].stream.as_ref().is_none_or(dry)) {
        client.prepare_stream("train", 1000)?;
    }
    // What is revealed is one step's, whoever is killed and whatever the others do meanwhile.
    client.prepare("reveal", 1, 0)?;
    let at = client.join_training()?;
    let outcome = client.step("reveal", &Tensors::new(), &Publics::new())?;
    folder.learned("states", at.step, &outcome.outputs);
    Ok(())
}

/// A training between processes.
struct School {
    nodes: Nodes,
    folder: Folder,
}

const CLIENTS: [&str; 3] = ["carol", "alice", "bob"];

impl School {
    fn open(family: Family) -> School {
        let nodes = Nodes::of_program(family, &program(), None, "lan", &ROLES);
        let folder = Folder(nodes.path("learned"));
        fs::create_dir(&folder.0).unwrap();
        let mut school = School { nodes, folder };
        family.services().chain(CLIENTS).for_each(|name| school.start(name));
        school
    }

    fn start(&mut self, name: &'static str) {
        if !CLIENTS.contains(&name) {
            return self.nodes.start(name);
        }
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "training_kills::client_process", "--nocapture"]);
        command.env(CLIENT, name).env(FOLDER, self.nodes.path("")).stdin(Stdio::null()).stdout(Stdio::null());
        self.nodes.start_process(name, command);
    }

    /// The newest step that alice heard the end of.
    fn step(&self) -> Option<u64> {
        self.folder.steps("error").last().copied()
    }

    /// Wait for a step that nobody has done before.
    #[track_caller]
    fn goes_on(&self) {
        let before = self.step();
        self.nodes.until("a further step", |_| self.step() > before);
    }

    /// Let it go on for some steps after the last one that anybody did, to the end, and see that all that was learned is right.
    fn finish(mut self) {
        self.goes_on();
        let last = self.step().unwrap() + 2 * EVERY + 2;
        self.folder.put("last", last.to_string().as_bytes());
        ["alice", "bob"].into_iter().for_each(|name| self.nodes.ends(name));
        self.folder.put("done", last.to_string().as_bytes());
        self.nodes.ends("carol");

        let mut truth = Truth::begin();
        let mut states = vec![truth.states()];
        let mut errors = self.folder.all_learned("error");
        for step in 0..last {
            let error = truth.step(step, &rate(RATE));
            // Killed between the end of a step and the file, alice did not write what she had learned.
            assert!(errors.remove(&step).is_none_or(|found| found == error), "step {step}");
            states.push(truth.states());
        }
        assert!(errors.is_empty(), "steps after the last one: {:?}", errors.keys());
        for (step, found) in self.folder.all_learned("states") {
            assert_eq!(found, states[step as usize], "states of step {step}");
        }
        let mut carol = client(&self.nodes, "carol");
        carol.prepare("reveal", 1, 0).unwrap();
        assert_eq!(carol.join_training().unwrap().step, last);
        let revealed = carol.step("reveal", &Tensors::new(), &Publics::new()).unwrap().outputs;
        assert_eq!(revealed, states[last as usize]);
        self.nodes.used_once();
        for name in self.nodes.family.services().chain(CLIENTS) {
            assert!(!self.nodes.log(name).contains("panicked"), "{name}: {}", self.nodes.log(name));
        }
        self.nodes.nothing_secret_was_said(&[&first_states(), &batch(0).0, &batch(0).1, &revealed]);
    }
}

/// Random moments; the seed is printed, and `PRIVET_TEST_MOMENTS` takes it for the same ones.
fn moments() -> Prg {
    let given = env::var("PRIVET_TEST_MOMENTS").ok();
    let seed = given.map_or_else(|| *Seed::random().expose(), |text| unhex(&text).expect("32 digits"));
    eprintln!("PRIVET_TEST_MOMENTS={}", hex(&seed));
    Seed::from_bytes(seed).stream()
}

fn survives(family: Family, victims: &[&'static str]) {
    let mut moments = moments();
    let mut school = School::open(family);
    let by_night = victims.len() > 1 && env::var_os("PRIVET_NIGHTLY").is_some();
    for _ in 0..if by_night { KILLS_BY_NIGHT } else { KILLS } {
        let [coin, delay, which] = moments.elements(privet_ring::Ring::R64, 3)[..] else { unreachable!() };
        let victim = victims[which as usize % victims.len()];
        // After a step of the training that goes on, or in the middle of its recovery.
        if coin >> 63 == 0 {
            school.goes_on();
        }
        std::thread::sleep(Duration::from_micros(delay % MOMENT));
        school.nodes.kill(victim);
        school.start(victim);
    }
    school.finish();
}

macro_rules! killed {
    ($($test:ident: $family:ident, $($victim:literal),+;)*) => {
        $(#[test]
        fn $test() {
            survives($family, &[$($victim),+]);
        })*
    };
}

killed! {
    fss_party_0: FSS, "party0";
    fss_party_1: FSS, "party1";
    fss_dealer: FSS, "dealer";
    fss_owner_of_the_model: FSS, "carol";
    fss_owner_of_the_rows: FSS, "alice";
    fss_owner_of_the_labels: FSS, "bob";
    fss_anybody: FSS, "party0", "party1", "dealer", "carol", "alice", "bob";
    rep3_party_0: REP3, "party0";
    rep3_party_1: REP3, "party1";
    rep3_party_2: REP3, "party2";
    rep3_owner_of_the_model: REP3, "carol";
    rep3_owner_of_the_rows: REP3, "alice";
    rep3_owner_of_the_labels: REP3, "bob";
    rep3_anybody: REP3, "party0", "party1", "party2", "carol", "alice", "bob";
}
