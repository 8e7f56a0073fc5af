//! Every wait for a service has a bound, and a service that is busy or waits itself is not given up. Whoever is silent here is
//! alive: its process stands, and its heartbeats come.

use super::super::client::Client;
use super::super::control::{Id, hear};
use super::super::links::Purpose;
use super::super::testing::{Stub, client, deployment, links, program, recorded, served};
use super::*;
use privet_net::Listener;
use privet_plan::program::ONLY_PLAN;
use std::sync::Mutex;
use std::thread::spawn;

/// Nothing takes this long.
const HANGS: Duration = Duration::from_secs(60);

/// `Timeouts::turn` is 2 + 2 * 3 + 2 * 1 seconds.
fn impatient() -> String {
    deployment().replace("connect = 5\nstep = 5", "connect = 3\nstep = 2")
}
const TURNS: Duration = Duration::from_secs(10);

type Seen = Arc<Mutex<Vec<Event>>>;

/// A party whose family takes so long to say how things stand.
fn serves(deployment: &str, party: u8, hangs: Duration) -> Seen {
    let (events, seen) = recorded();
    let me = Arc::new(links(deployment, &Place::Party(party)));
    let plans = served(|| Stub { hangs, ..Stub::default() });
    spawn(move || serve_family(party, me, Arc::new(program()), plans, events));
    seen
}

/// A party that takes every call, and says nothing; gives how many came.
fn silent(deployment: &str, party: u8) -> Arc<Mutex<Vec<TcpChannel>>> {
    let me = links(deployment, &Place::Party(party));
    let listener: Listener = me.listen().unwrap();
    let all: Arc<Mutex<Vec<TcpChannel>>> = Arc::default();
    let held = all.clone();
    spawn(move || {
        while let Ok(caller) = listener.accept(HANGS) {
            if let Ok((channel, ..)) = me.welcome(caller) {
                held.lock().unwrap().push(channel);
            }
        }
    });
    all
}

/// What a client of alice says of a party that lets it wait, and how long it did.
#[track_caller]
fn given_up(deployment: &str, party: u8, ask: fn(&mut Client) -> Option<String>) {
    let mut alice = Client::new(links(deployment, &client("alice")), Arc::new(program()));
    let begun = Instant::now();
    let (done, said) = channel();
    spawn(move || done.send(ask(&mut alice)));
    let error = said.recv_timeout(HANGS).expect("the client waits").expect("it was answered");
    assert!(
        error.contains(&format!("party:{party} is alive")) && error.contains("in vain for 10 s"),
        "{error}"
    );
    assert!(begun.elapsed() >= TURNS, "{:?}", begun.elapsed());
}

fn asks_status(client: &mut Client) -> Option<String> {
    client.status().err().map(|e| e.to_string())
}

fn asks_for_keys(client: &mut Client) -> Option<String> {
    client.prepare("bare", 1, 0).err().map(|e| e.to_string())
}

fn asks_to_run(client: &mut Client) -> Option<String> {
    let x = privet_plan::FloatTensor { shape: vec![1], data: vec![1.0] };
    let inputs = BTreeMap::from([("x".to_owned(), x)]);
    client.step("bare", &inputs, &BTreeMap::new()).err().map(|e| e.to_string())
}

#[test]
fn a_client_gives_up_a_party_that_is_alive_and_silent() {
    assert_ne!(ONLY_PLAN, "bare");
    std::thread::scope(|scope| {
        for party in [0, 1] {
            scope.spawn(move || {
                let deployment = impatient();
                let held = silent(&deployment, party);
                serves(&deployment, 1 - party, Duration::ZERO);
                std::thread::scope(|scope| {
                    scope.spawn(|| given_up(&deployment, party, asks_status));
                    // Party 0 waits for party 1 in a job, and says so before the client gives up anybody.
                    if party == 0 {
                        scope.spawn(|| given_up(&deployment, 0, asks_for_keys));
                        scope.spawn(|| given_up(&deployment, 0, asks_to_run));
                    }
                });
                assert!(!held.lock().unwrap().is_empty());
            });
        }
    });
}

#[test]
fn a_client_gives_up_a_service_that_hangs() {
    let deployment = impatient();
    serves(&deployment, 0, 2 * HANGS);
    serves(&deployment, 1, Duration::ZERO);
    given_up(&deployment, 0, asks_status);
}

#[test]
fn a_party_that_waits_for_another_is_not_given_up_and_says_who_is_missing() {
    let deployment = impatient().replace("step = 2", "step = 20");
    let seen = serves(&deployment, 0, Duration::ZERO);
    let mut alice = links(&deployment, &client("alice")).dial(&Place::Party(0), Purpose::Client).unwrap();
    // Far shorter than what the service waits for bob.
    alice.set_patience_for_turns(Duration::from_secs(6));
    let (id, plan, begun) = (Id::fresh(), "bare".to_owned(), Instant::now());
    let request = Request::Run { id, plan, from: None, publics: BTreeMap::new() };
    say(&mut alice, Talk::Request, &request).unwrap();
    match hear(&mut alice, Talk::Reply).unwrap() {
        Reply::Failed { reason } => {
            assert!(reason.contains("client:bob did not ask for the same within 20 s"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() >= Duration::from_secs(20), "{:?}", begun.elapsed());
    let failed = |e: &Event| matches!(e, Event::JobFailed { reason, .. } if reason.code() == "job.absent");
    assert!(seen.lock().unwrap().iter().any(failed));
    // The connection is good for the next request.
    say(&mut alice, Talk::Request, &Request::Status { id: Id::fresh() }).unwrap();
    assert!(matches!(hear(&mut alice, Talk::Reply).unwrap(), Reply::Status(_)));
}

#[test]
fn a_party_dials_party_0_again_where_that_is_alive_and_silent() {
    let deployment = impatient();
    let held = silent(&deployment, 0);
    let begun = Instant::now();
    let seen = serves(&deployment, 1, Duration::ZERO);
    while held.lock().unwrap().len() < 2 {
        assert!(begun.elapsed() < HANGS, "it waits for an order for ever");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begun.elapsed() >= TURNS, "{:?}", begun.elapsed());
    let stuck = |e: &Event| matches!(e, Event::NoOrder { reason } if reason.code() == "net.stuck");
    assert!(seen.lock().unwrap().iter().any(stuck));
}

#[test]
fn a_party_that_has_nothing_to_order_is_not_dialled_again() {
    let deployment = impatient();
    serves(&deployment, 0, Duration::ZERO);
    let seen = serves(&deployment, 1, Duration::ZERO);
    std::thread::sleep(TURNS + Duration::from_secs(4));
    let seen = seen.lock().unwrap();
    let dialled = seen.iter().filter(|e| matches!(e, Event::LeaderConnected { .. })).count();
    assert_eq!(dialled, 1, "{seen:?}");
}
