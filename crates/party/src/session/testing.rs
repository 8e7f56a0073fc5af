//! What tests of the service share: a deployment in one process without TLS, a program with every kind of plan, and a
//! family that computes nothing.

use super::control::{Id, KeyStream, Reply, Talk, say};
use super::engine::Served;
use super::family::{Encoded, Family, Given, Held, Made, Preparer, Ran};
use super::job::JobError;
use super::links::Links;
use super::order::Preparation;
use super::owner::{Piece, Shared};
use super::peers::Others;
use super::work::Work;
use crate::config::{Loaded, Place, parse_deployment, parse_node};
use crate::events::{Event, Events, Inline, Job, JobEvents};
use crate::registry::Protocol;
use privet_family::{Holder, NodeStats};
use privet_net::{Channel, Fingerprint, NetworkProfile};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type, Update};
use privet_plan::program::{NamedPlan, PROGRAM_VERSION};
use privet_plan::{Plan, Program};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zeroize::Zeroizing;

/// Clients with a role each: alice the data, bob the results, carol a model where [`Services::model_owners`] says so, dave the
/// states; eve has none.
pub const CLIENTS: [&str; 5] = ["alice", "bob", "carol", "dave", "eve"];

pub fn client(name: &str) -> Place {
    Place::Client(name.into())
}

/// Who serves in a deployment.
#[derive(Clone, Copy, Debug)]
pub struct Services {
    pub protocol: &'static str,
    pub parties: u8,
    pub dealer: bool,
}

impl Services {
    /// Two parties and a dealer, as `fss` has them.
    pub const FSS: Services = Services { protocol: "fss", parties: 2, dealer: true };

    /// Who has the weights of plan `infer`, and of plan `given`: party 1 and carol, or the party that the family's rules name.
    pub fn model_owners(&self) -> [Place; 2] {
        let rules = self.protocol.parse::<Protocol>().unwrap().facts().rules;
        match rules.iter().find(|rule| rule.is_about("model_owner")).map(|rule| rule.holder) {
            Some(Holder::Party(number)) => [Place::Party(number), Place::Party(number)],
            Some(Holder::AnyParty) | None => [Place::Party(1), client("carol")],
        }
    }

    /// Every place of the deployment.
    pub fn places(&self) -> Vec<Place> {
        let dealer = self.dealer.then_some(Place::Dealer);
        let services = (0..self.parties).map(Place::Party).chain(dealer);
        services.chain(CLIENTS.map(client)).collect()
    }
}

/// The deployment file of two parties and a dealer.
pub fn deployment() -> String {
    deployment_of(&Services::FSS)
}

/// A deployment file, with parties on free ports.
pub fn deployment_of(services: &Services) -> String {
    // Held until all are chosen, so that they differ.
    let ports: Vec<TcpListener> =
        (0..services.parties).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let fingerprint = |name: &str| Fingerprint::of(name.as_bytes()).to_string();
    let protocol = services.protocol;
    let mut text = format!("name = \"test\"\nprotocol = \"{protocol}\"\nplan = \"plan.json\"\n");
    for (party, port) in ports.iter().enumerate() {
        let (address, fingerprint) = (port.local_addr().unwrap(), fingerprint(&party.to_string()));
        text += &format!("[parties.{party}]\naddress = \"{address}\"\nfingerprint = \"{fingerprint}\"\n");
    }
    if services.dealer {
        let fingerprint = fingerprint("dealer");
        text += &format!("[dealer]\naddress = \"127.0.0.1:1\"\nfingerprint = \"{fingerprint}\"\n");
    }
    if services.dealer && protocol == "semi2k" {
        text += "[semi2k]\nhelper = \"dealer\"\n";
    }
    for name in CLIENTS {
        text += &format!("[clients.{name}]\nfingerprint = \"{}\"\n", fingerprint(name));
    }
    let [first, second] = services.model_owners();
    text + &format!(
        "[roles]\ndata_owner = \"client:alice\"\nreceiver = \"client:bob\"\nmodel_owner = \"{first}\"\n\
        \"model_owner.2\" = \"{second}\"\nlabel_owner = \"client:dave\"\n\
        [timeouts]\nconnect = 5\nstep = 5\nheartbeat = 1\n"
    )
}

/// The connections of a place.
pub fn links(deployment: &str, me: &Place) -> Links {
    let node = format!(
        "me = \"{me}\"\ndeployment = \"d\"\ncertificate = \"c\"\nkey = \"k\"\ninsecure = true\ncheckpoints = \"/nowhere\"\n"
    );
    let config =
        Loaded { node: parse_node(&node).unwrap(), deployment: parse_deployment(deployment).unwrap() };
    Links::new(config, &program(), NetworkProfile::LAN).unwrap()
}

/// Plans of every kind: `infer` with the first model owner's weights, `given` with the second's, `bare` with none, `train` with dave's state.
pub fn program() -> Program {
    let node = |op, inputs: &[usize]| Node {
        op,
        inputs: inputs.to_vec(),
        ty: Type { shape: vec![1], bits: 64, frac: 12 },
        layer: String::new(),
        form: None,
    };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 8.0 };
    let weight = |owner: &str| Op::Weight { name: "w".into(), owner: owner.into() };
    let state = Op::State { name: "s".into(), owner: "label_owner".into() };
    let plan = |name: &str, other: Option<Op>, updates| {
        let mut nodes = vec![node(input.clone(), &[])];
        let added = other.map(|op| {
            nodes.push(node(op, &[]));
            nodes.push(node(Op::Add, &[0, 1]));
        });
        let outputs =
            vec![Output { value: added.map_or(0, |()| 2), name: "y".into(), to: "receiver".into() }];
        let plan = Plan { version: PLAN_VERSION, name: "p".into(), batch: 1, nodes, outputs, updates };
        NamedPlan { name: name.into(), plan }
    };
    let plans = vec![
        plan("infer", Some(weight("model_owner")), vec![]),
        plan("given", Some(weight("model_owner.2")), vec![]),
        plan("bare", None, vec![]),
        plan("train", Some(state), vec![Update { state: 1, value: 2 }]),
    ];
    Program { version: PROGRAM_VERSION, name: "test".into(), plans }
}

/// Events that are kept.
pub fn recorded() -> (Events, Arc<Mutex<Vec<Event>>>) {
    #[derive(Default)]
    struct Kept(Arc<Mutex<Vec<Event>>>);
    impl Inline for Kept {
        fn take(&self, event: &Event) {
            self.0.lock().unwrap().push(event.clone());
        }
    }
    let kept: Arc<Mutex<Vec<Event>>> = Arc::default();
    (Events::to(vec![], vec![Arc::new(Kept(kept.clone()))]), kept)
}

/// Of a job whose events nobody hears.
pub fn job_events() -> JobEvents {
    JobEvents::new(Events::unheard(), Job::deal(Id([9; 16]), None))
}

/// A family that computes nothing, and counts what is taken from it.
#[derive(Default)]
pub struct Stub {
    pub open: Option<Id>,
    pub left: Option<usize>,
    /// Runs that were claimed.
    pub claims: Arc<AtomicUsize>,
    /// Whether it panics when it is asked how things stand.
    pub broken: bool,
    /// How long it takes to say how things stand.
    pub hangs: Duration,
}

/// All plans of the program, each with a stub.
pub(in crate::session) fn served(stub: impl Fn() -> Stub) -> BTreeMap<String, Served<Stub>> {
    let one = |p: NamedPlan| (p.name, Served { plan: Arc::new(p.plan), family: stub() });
    program().plans.into_iter().map(one).collect()
}

impl Held for u8 {
    fn replace(&mut self, updates: u8) {
        *self = updates;
    }
}

/// Prepares nothing.
pub struct Nothing;

impl Preparer for Nothing {
    type Made = ();
    fn run(self, _: &mut Work<'_>) -> Result<Made<()>, JobError> {
        Ok(Made { key_bytes: 0, made: () })
    }
}

impl Family for Stub {
    type Tensors = ();
    type States = u8;
    type Preparer = Nothing;

    fn prepared(&self) -> usize {
        assert!(!self.broken, "broken on purpose");
        std::thread::sleep(self.hangs);
        0
    }
    fn open_session(&self) -> Option<Id> {
        self.open
    }
    fn runs_left(&self) -> Option<usize> {
        self.left
    }
    fn key_stream(&self) -> Option<KeyStream> {
        None
    }
    fn close(&mut self) {
        self.open = None;
    }
    fn give_up_claim(&mut self) {}
    fn next_session(&self) -> Result<Id, JobError> {
        Ok(Id([7; 16]))
    }
    fn next_run(&self) -> Result<u64, JobError> {
        Ok(1)
    }
    fn may_prepare(&self, _: &Preparation) -> Result<(), JobError> {
        Ok(())
    }
    fn may_begin(&self, _: Id) -> Result<(), JobError> {
        Ok(())
    }
    fn claim(&mut self, _: u64) -> Result<(), JobError> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn preparer(&mut self, _: &Preparation) -> Result<Nothing, JobError> {
        Ok(Nothing)
    }
    fn preparation_ended(&mut self, _: &Preparation, _: Option<()>) {}
    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.open = Some(session);
        Ok(())
    }
    fn grant(&self, _: Shared, _: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError> {
        Ok(say(channel, Talk::Reply, &Reply::Share { seeds: BTreeMap::new() })?)
    }
    fn receive(&self, _: Shared, _: &[Piece], _: &mut dyn Channel, (): &mut ()) -> Result<(), JobError> {
        Ok(())
    }
    fn share_own(&self, _: &[Piece], _: &Encoded, _: &mut Others, (): &mut ()) -> Result<(), JobError> {
        Ok(())
    }
    fn open(&mut self, (): (), _: &mut Others) -> Result<(), JobError> {
        Ok(())
    }
    fn run(&mut self, _: Given<Stub>, _: &mut Others) -> Result<Ran<u8>, JobError> {
        Ok(Ran {
            online: Duration::ZERO,
            nodes: Vec::new(),
            checks: NodeStats::default(),
            openings: Vec::new(),
            outputs: Vec::new(),
            updates: 0,
        })
    }
    fn hold(&self, (): ()) -> u8 {
        0
    }
    fn compare(&self, _: &Program, _: &[u8], _: &u8, _: &mut Others) -> Result<(), JobError> {
        Ok(())
    }
    fn save(&self, _: &Program, _: &u8) -> Result<Zeroizing<Vec<u8>>, JobError> {
        Ok(Zeroizing::new(Vec::new()))
    }
    fn restore(&self, _: &Program, _: &[u8]) -> Result<u8, String> {
        Ok(0)
    }
}
