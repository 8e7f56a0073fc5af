//! Who may ask what, as a full table, and orders of any form.

use super::super::access::{Access, admits, tenant};
use super::super::control::{Amount, At, Id};
use super::super::door::Seats;
use super::super::links::Purpose;
use super::super::order::{Preparation, Start, Version};
use super::super::testing::{CLIENTS, Services, Stub, client, deployment_of, links, program, served};
use super::*;
use crate::config::{DeploymentFile, parse_deployment_file};
use crate::events::{Events, Number};
use privet_net::{Fingerprint, Listener, TcpChannel};
use proptest::prelude::*;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SESSION: Id = Id([9; 16]);
const TRAINING: Id = Id([8; 16]);

/// Both ends of a connection to party `me` on which nothing passes, for callers that are only looked at.
fn line(text: &str, me: u8, party: &Links, listener: &Listener, place: &Place) -> (TcpChannel, TcpChannel) {
    std::thread::scope(|scope| {
        let dialled = scope.spawn(|| links(text, place).dial(&Place::Party(me), Purpose::Client).unwrap());
        let caller = listener.accept(Duration::from_secs(10)).unwrap();
        let accepted = party.answer(caller, Purpose::Client).unwrap();
        (accepted, dialled.join().unwrap())
    })
}

/// A party with a caller for every place, whose request is set by the test.
struct World {
    places: Vec<Place>,
    engine: Engine<Stub>,
    callers: BTreeMap<Place, Caller>,
    claims: Arc<AtomicUsize>,
    _far: Vec<TcpChannel>,
}

impl World {
    /// Party `me` of a deployment.
    fn new(services: &Services, me: u8) -> World {
        let claims: Arc<AtomicUsize> = Arc::default();
        let text = deployment_of(services);
        let party = Arc::new(links(&text, &Place::Party(me)));
        let listener = party.listen().unwrap();
        let (seats, mut far) = (Seats::default(), Vec::new());
        let mut callers = BTreeMap::new();
        for place in services.places() {
            let (channel, other) = line(&text, me, &party, &listener, &place);
            far.push(other);
            let seat = seats.take(&place, Purpose::Client, 1).unwrap();
            let request = Request::Status { id: Id([0; 16]) };
            let connection = Number::of(1);
            let (since, granted) = (Instant::now(), false);
            let caller = Caller { channel, connection, place, request, since, granted, seat };
            callers.insert(caller.place.clone(), caller);
        }
        let stub = || Stub { claims: claims.clone(), ..Stub::default() };
        let engine = Engine::new(me, party, Arc::new(program()), served(stub), Events::unheard());
        World { places: services.places(), engine, callers, claims, _far: far }
    }

    fn set(&mut self, state: &State) {
        for served in self.engine.plans.values_mut() {
            served.family.open = state.open.then_some(SESSION);
            served.family.left = state.open.then_some(state.left);
        }
        let begun = || Training::at(TRAINING, 0, Version::first(TRAINING), 0);
        self.engine.training = state.training.then(begun);
    }

    /// Consent to the order that fits a request, with these places as its callers, out of the map for the time.
    fn consent(&mut self, ask: &Ask, from: &[Place]) -> Result<(), JobError> {
        let mut callers: Vec<Caller> = from.iter().filter_map(|p| self.callers.remove(p)).collect();
        assert_eq!(callers.len(), from.len(), "{from:?}");
        for (n, caller) in callers.iter_mut().enumerate() {
            caller.request = ask.request(Id([n as u8; 16]));
        }
        let ids = callers.iter().map(|c| c.request.id()).collect();
        let order = ask.order(ids, self.engine.plans.values().next().unwrap().family.open);
        let result = match order {
            Some(order) => self.engine.consent(&order, &callers),
            None => self.engine.admitted(&callers),
        };
        self.callers.extend(callers.into_iter().map(|c| (c.place.clone(), c)));
        result
    }
}

/// What a party has open.
struct State {
    name: &'static str,
    open: bool,
    left: usize,
    training: bool,
}

const STATES: [State; 4] = [
    State { name: "nothing is open", open: false, left: 0, training: false },
    State { name: "sessions are open", open: true, left: 3, training: false },
    State { name: "sessions are used up", open: true, left: 0, training: false },
    State { name: "a training is under way", open: true, left: 3, training: true },
];

/// A request, by its kind and plan.
struct Ask {
    kind: &'static str,
    plan: &'static str,
}

impl Ask {
    fn all() -> Vec<Ask> {
        let plans = ["infer", "given", "bare", "train"];
        let of_plans = ["prepare", "share", "run"].map(|kind| plans.map(|plan| Ask { kind, plan }));
        let others = ["status", "begin", "resume"].map(|kind| Ask { kind, plan: "" });
        of_plans.into_iter().flatten().chain(others).collect()
    }

    fn request(&self, id: Id) -> Request {
        let plan = self.plan.to_owned();
        match self.kind {
            "status" => Request::Status { id },
            "prepare" => Request::Prepare { id, plan, amount: AMOUNT },
            "share" => Request::ShareWeights { id, plan },
            "run" => {
                let from = (plan == "train").then_some(At { training: TRAINING, step: 0 });
                Request::Run { id, plan, from, publics: BTreeMap::new() }
            }
            "begin" => Request::BeginTraining { id, checkpoint_every: 0 },
            "resume" => Request::Resume { id, training: TRAINING },
            other => panic!("{other}"),
        }
    }

    /// As an honest party 0 with a session open, or none, orders it.
    fn order(&self, ids: Vec<Id>, open: Option<Id>) -> Option<Order> {
        let (id, plan) = (ids[0], self.plan.to_owned());
        let start = Start { training: TRAINING, version: Version::first(TRAINING) };
        Some(match self.kind {
            "status" => return None,
            "prepare" => {
                let what = Preparation { deal: Id([1; 16]), session: open, amount: AMOUNT };
                Order::Prepare { id, plan, what }
            }
            "share" => Order::Begin { id, plan, session: Id([2; 16]) },
            "run" => {
                let from = (plan == "train").then_some(start);
                Order::Run { ids, plan, session: SESSION, index: 1, from, publics: BTreeMap::new() }
            }
            "begin" => Order::BeginTraining { ids, training: TRAINING, checkpoint_every: 0 },
            "resume" => Order::Resume { id, training: TRAINING },
            other => panic!("{other}"),
        })
    }
}

const AMOUNT: Amount = Amount { runs: 2, checks: 0, stream: false };

fn short(place: &Place) -> String {
    place.to_string().replace("client:", "").replace("party:", "p")
}

/// What a party says, in a word.
fn word(result: &Result<(), JobError>) -> &'static str {
    match result {
        Ok(()) => "yes",
        Err(JobError::Access(AccessError::NoRole { .. })) => "no role",
        Err(JobError::Access(AccessError::NothingToShare(_))) => "no weights",
        Err(JobError::SessionLost) => "no session",
        Err(JobError::NoTraining) => "no training",
        Err(e) => panic!("{e}"),
    }
}

/// Every number of parties, with and without a dealer.
const DEPLOYMENTS: [Services; 6] = [
    Services::FSS,
    Services { protocol: "rep3", parties: 3, dealer: false },
    Services { protocol: "semi2k", parties: 2, dealer: false },
    Services { protocol: "semi2k", parties: 3, dealer: true },
    Services { protocol: "semi2k", parties: 5, dealer: false },
    Services { protocol: "heot", parties: 2, dealer: false },
];

/// Every place and request in every state, at every party: whom it must ask with, and whether the party consents to an
/// order for it.
#[test]
fn who_may_ask_what_is_this_table() {
    for services in &DEPLOYMENTS {
        let wanted = expected(services);
        for me in 0..services.parties {
            let table = table(&mut World::new(services, me));
            for (row, (found, wanted)) in table.lines().zip(wanted.lines()).enumerate() {
                assert_eq!(found, wanted, "line {row} at party {me} of {services:?}");
            }
            assert_eq!(table.lines().count(), wanted.lines().count());
            assert_eq!(table.lines().count(), 4 * (1 + 15 * services.places().len()), "every cell once");
        }
        println!("## {services:?}, the same at every party\n{wanted}");
    }
}

fn table(world: &mut World) -> String {
    let mut table = String::new();
    for state in &STATES {
        world.set(state);
        writeln!(table, "# {}", state.name).unwrap();
        for ask in Ask::all() {
            for place in &world.places.clone() {
                writeln!(table, "{} {}; {}; {}", ask.kind, ask.plan, short(place), cell(world, &ask, place))
                    .unwrap();
            }
        }
    }
    table
}

/// What a place hears that asks for something, and with whom it has to ask.
fn cell(world: &mut World, ask: &Ask, place: &Place) -> String {
    let before = world.claims.load(Ordering::SeqCst);
    let alone = [place.clone()];
    match world.engine.access().callers(place, &ask.request(Id([0; 16]))) {
        Ok(needed) if needed == alone => word(&world.consent(ask, &alone)).to_owned(),
        Ok(needed) => {
            let incomplete = world.consent(ask, &alone);
            assert!(
                matches!(incomplete, Err(JobError::OtherRequest | JobError::SessionLost)),
                "{place} alone got its {} of {}: {incomplete:?}",
                ask.kind,
                ask.plan
            );
            let said = word(&world.consent(ask, &needed)).to_owned();
            let with: Vec<String> = needed.iter().map(short).collect();
            // One more is one too many, whoever it is.
            let more: Vec<Place> = needed.iter().cloned().chain([client("eve")]).collect();
            assert!(world.consent(ask, &more).is_err());
            format!("{said} ({})", with.join("+"))
        }
        Err(e) => {
            let refused = world.consent(ask, &alone);
            assert_eq!(refused.as_ref().unwrap_err().to_string(), e.to_string());
            assert_eq!(world.claims.load(Ordering::SeqCst), before, "a run was used up");
            word(&refused).to_owned()
        }
    }
}

/// The table as it has to be: for each request, who is let do it alone or with others; everybody else has no role. What
/// changes with the state is what is said to those who may.
fn expected(services: &Services) -> String {
    let all: Vec<String> = services.places().iter().map(short).collect();
    let parties = (0..services.parties).map(|party| format!("p{party}"));
    let everybody: Vec<String> = parties.chain(CLIENTS.map(str::to_owned)).collect();
    let everybody: Vec<&str> = everybody.iter().map(|place| &**place).collect();
    let owners = services.model_owners().map(|place| short(&place));
    let [infer, given] = owners.each_ref().map(|owner| &**owner);
    // (request, plan, who may, needs an open session, needs a training)
    let may: [(&str, &str, &[&str], bool, bool); 15] = [
        ("prepare", "infer", &[infer, "alice", "bob"], false, false),
        ("prepare", "given", &["alice", "bob", given], false, false),
        ("prepare", "bare", &["alice", "bob"], false, false),
        ("prepare", "train", &["alice", "bob", "dave"], false, false),
        ("share", "infer", &[infer], false, false),
        ("share", "given", &[given], false, false),
        ("share", "bare", &[], false, false),
        ("share", "train", &[], false, false),
        ("run", "infer", &["alice", "bob"], true, false),
        ("run", "given", &["alice", "bob"], true, false),
        ("run", "bare", &["alice", "bob"], true, false),
        ("run", "train", &["alice", "bob"], true, true),
        ("status", "", &everybody, false, false),
        ("begin", "", &["dave"], false, false),
        ("resume", "", &[infer, "alice", "bob", given, "dave"], false, false),
    ];
    let mut table = String::new();
    for (state, open, training) in [
        ("nothing is open", false, false),
        ("sessions are open", true, false),
        ("sessions are used up", true, false),
        ("a training is under way", true, true),
    ] {
        writeln!(table, "# {state}").unwrap();
        for (kind, plan, who, needs_session, needs_training) in may {
            for place in &all {
                let together = if kind == "run" { " (alice+bob)" } else { "" };
                let cell = match who.contains(&&**place) {
                    false if kind == "share" && who.is_empty() => "no weights".to_owned(),
                    false => "no role".to_owned(),
                    true if needs_session && !open => format!("no session{together}"),
                    true if needs_training && !training => format!("no training{together}"),
                    true => format!("yes{together}"),
                };
                writeln!(table, "{kind} {plan}; {place}; {cell}").unwrap();
            }
        }
    }
    table
}

/// Who may connect for what, at either party.
#[test]
fn who_is_let_in_is_this_table() {
    let party = |n| Place::Party(n);
    let [client, dealer] = [client("alice"), Place::Dealer];
    for (me, place, lets_in) in [
        (0, party(0), [false, true, false, true, false]),
        (0, party(1), [true, true, false, true, true]),
        (0, party(2), [true, true, false, true, true]),
        (0, dealer.clone(), [false, false, false, true, false]),
        (0, client.clone(), [false, true, false, true, false]),
        (1, party(0), [false, true, false, true, false]),
        (1, party(1), [false, true, false, true, false]),
        (1, party(2), [true, true, false, true, true]),
        (1, dealer, [false, false, false, true, false]),
        (1, client, [false, true, false, true, false]),
        (3, party(2), [false, true, false, true, false]),
        (3, party(4), [true, true, false, true, true]),
    ] {
        let found = Purpose::ALL.map(|purpose| admits(me, &place, purpose).is_ok());
        assert_eq!(found, lets_in, "{place} at party {me}: {:?}", Purpose::ALL);
    }
}

/// At a server of many clients: whose deployment a certificate leads to, and what its holder may ask there.
#[test]
fn whose_deployment_a_call_is_for_is_this_table() {
    let fingerprint = |name: &str| Fingerprint::of(name.as_bytes());
    let mut text = format!(
        "name = \"test\"\nprotocol = \"heot\"\nplan = \"plan.json\"\n[parties.0]\naddress = \"10.0.0.1:1\"\n\
        fingerprint = \"{}\"\n[parties.1]\neach_client = true\n[roles]\ndata_owner = \"party:1\"\n\
        receiver = \"party:1\"\nmodel_owner = \"party:0\"\n\"model_owner.2\" = \"party:0\"\nlabel_owner = \"party:1\"\n",
        fingerprint("server")
    );
    let clients = ["alice", "bob", "carol"];
    for client in clients {
        text += &format!("[clients.{client}]\nfingerprint = \"{}\"\n", fingerprint(client));
    }
    let DeploymentFile::EachClient(server) = parse_deployment_file(&text).unwrap() else { panic!("{text}") };
    let nobody = fingerprint("");
    for (shown, whose) in [
        (Some(fingerprint("alice")), Some("alice")),
        (Some(fingerprint("bob")), Some("bob")),
        (Some(fingerprint("carol")), Some("carol")),
        (Some(fingerprint("server")), None),
        (Some(fingerprint("stranger")), None),
        (Some(nobody), None),
        (None, None),
    ] {
        assert_eq!(tenant(&server, shown.as_ref()).ok(), whose, "{shown:?}");
    }
    let program = program();
    for (client, deployment) in server.clients() {
        let me = Place::Party(1);
        assert_eq!(
            deployment.places(),
            [Place::Party(0), me.clone()],
            "nobody else has a part in {client}'s"
        );
        assert_eq!(deployment.fingerprint(&me), Some(&fingerprint(client)));
        let differs =
            |other: &str| deployment.terms().difference(&server.of(other).unwrap().terms()).is_some();
        assert!(
            clients.into_iter().all(|other| differs(other) == (other != client)),
            "greetings of {client}"
        );
        let access = Access::new(deployment, &program);
        let alone = Some(vec![me.clone()]);
        for (plan, request, callers) in [
            ("infer", "prepare", alone.clone()),
            ("infer", "run", alone.clone()),
            ("infer", "share", None),
            ("given", "share", None),
            ("", "status", alone),
        ] {
            let (id, plan) = (SESSION, plan.to_owned());
            let request = match request {
                "prepare" => Request::Prepare { id, plan, amount: AMOUNT },
                "run" => Request::Run { id, plan, from: None, publics: BTreeMap::new() },
                "share" => Request::ShareWeights { id, plan },
                _ => Request::Status { id },
            };
            assert_eq!(access.callers(&me, &request).ok(), callers, "{client}: {request:?}");
        }
    }
}

#[test]
fn a_wrong_role_is_told_who_asked_and_who_has_it() {
    let engine = World::new(&Services::FSS, 0).engine;
    let request = Request::ShareWeights { id: SESSION, plan: "infer".into() };
    let told = engine.access().callers(&client("eve"), &request).unwrap_err().to_string();
    assert_eq!(
        told,
        "client:eve has no role in this: sharing the weights of plan `infer` is for model_owner (party:1); \
         see [roles] in the deployment file"
    );
    let unknown = Request::ShareWeights { id: SESSION, plan: "in\u{1b}fer".into() };
    let told = engine.access().callers(&client("eve"), &unknown).unwrap_err().to_string();
    assert!(told.contains("`in\\u{1b}fer`") && told.contains("infer, given, bare, train"), "{told}");
}

fn any_id() -> impl Strategy<Value = Id> {
    (0u8..10).prop_map(|n| Id([n; 16]))
}

/// Orders of every kind, with names from a small pool, so that many fit half-way.
fn any_order() -> impl Strategy<Value = Order> {
    let plan =
        prop::sample::select(vec!["infer", "given", "bare", "train", "", "none"]).prop_map(str::to_owned);
    let amount = (0u64..3, 0u64..3, any::<bool>());
    let amount = amount.prop_map(|(runs, checks, stream)| Amount { runs, checks, stream });
    let session = prop::option::of(any_id());
    let start = (any_id(), any_id(), 0u64..3)
        .prop_map(|(training, trail, step)| Start { training, version: Version { step, trail } });
    let ids = || prop::collection::vec(any_id(), 0..4);
    let publics = prop::collection::btree_map("[a-b]", any::<u64>(), 0..2);
    prop_oneof![
        (any_id(), plan.clone(), any_id(), session, amount).prop_map(|(id, plan, deal, session, amount)| {
            Order::Prepare { id, plan, what: Preparation { deal, session, amount } }
        }),
        (any_id(), plan.clone(), any_id()).prop_map(|(id, plan, session)| Order::Begin { id, plan, session }),
        (plan.clone(), prop::option::of(any::<u8>()), any_id())
            .prop_map(|(plan, owner, session)| Order::BeginFrom { plan, owner, session }),
        (ids(), plan, any_id(), any::<u64>(), prop::option::of(start), publics).prop_map(
            |(ids, plan, session, index, from, publics)| Order::Run {
                ids,
                plan,
                session,
                index,
                from,
                publics
            }
        ),
        (ids(), any_id(), any::<u64>()).prop_map(|(ids, training, checkpoint_every)| Order::BeginTraining {
            ids,
            training,
            checkpoint_every
        }),
        (any_id(), any_id()).prop_map(|(id, training)| Order::Resume { id, training }),
    ]
}

#[test]
fn no_order_ends_the_engine_and_none_is_obeyed_that_nobody_asked_for() {
    let mut world = World::new(&Services::FSS, 0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(4000));
    let asks = 0..Ask::all().len();
    let strategy = (any_order(), prop::collection::vec((1usize..8, asks), 0..4), 0usize..4);
    let world = std::cell::RefCell::new(&mut world);
    runner
        .run(&strategy, |(order, asking, state)| {
            let mut world = world.borrow_mut();
            world.set(&STATES[state]);
            let mut callers = Vec::new();
            for (n, (place, ask)) in asking.into_iter().enumerate() {
                if let Some(mut caller) = world.callers.remove(&Services::FSS.places()[place]) {
                    caller.request = Ask::all()[ask].request(Id([n as u8; 16]));
                    callers.push(caller);
                }
            }
            let result = world.engine.consent(&order, &callers);
            let asked = callers.iter().all(|c| world.engine.access().callers(&c.place, &c.request).is_ok());
            let by_itself = matches!(order, Order::BeginFrom { .. });
            let obeyed = result.is_ok();
            world.callers.extend(callers.into_iter().map(|c| (c.place.clone(), c)));
            prop_assert!(!obeyed || (asked && order.well_formed().is_ok()));
            let ids = order.requests();
            prop_assert!(!obeyed || by_itself || !ids.is_empty());
            prop_assert!((1..ids.len()).all(|i| !ids[..i].contains(&ids[i])) || !obeyed, "{:?}", order);
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_order_that_names_a_request_twice_is_malformed() {
    let mut world = World::new(&Services::FSS, 0);
    world.set(&STATES[1]);
    let (x, y) = (Id([1; 16]), Id([2; 16]));
    for (ids, fits) in [(vec![x, y], true), (vec![x, x], false), (vec![x, y, x], false)] {
        let twice = Order::BeginTraining { ids: ids.clone(), training: TRAINING, checkpoint_every: 0 };
        assert_eq!(twice.well_formed().is_ok(), fits);
        let (plan, publics) = ("infer".to_owned(), BTreeMap::new());
        let run = Order::Run { ids, plan, session: SESSION, index: 1, from: None, publics };
        assert_eq!(run.well_formed().is_ok(), fits);
        let refused = world.engine.consent(&run, &[]);
        assert_eq!(matches!(refused, Err(JobError::Malformed(_))), !fits);
    }
    let most = (0..20_000u32).map(|n| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        Id(id)
    });
    let many = Order::BeginTraining { ids: most.collect(), training: TRAINING, checkpoint_every: 0 };
    assert!(many.well_formed().is_err());
    let amount = Amount { checks: 1, ..AMOUNT };
    let what = Preparation { deal: x, session: Some(SESSION), amount };
    let opening = Order::Prepare { id: x, plan: "infer".into(), what };
    assert!(opening.well_formed().is_err(), "an open session's keys would be revealed");
}
