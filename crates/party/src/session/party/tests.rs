//! A party's service under test, in this process, with a family that computes nothing.

use super::super::control::{At, Id, hear};
use super::super::door::CLIENT_CONNECTIONS;
use super::super::links::Purpose;
use super::super::testing::{Stub, client, deployment, links, program, recorded, served};
use super::*;
use privet_net::Channel;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread::JoinHandle;

/// Party 0 of a deployment.
struct Party {
    deployment: String,
    seen: Arc<Mutex<Vec<Event>>>,
    service: JoinHandle<Result<(), ServeError>>,
}

impl Party {
    fn start(broken: bool) -> Party {
        let deployment = deployment();
        let (events, seen) = recorded();
        let me = Arc::new(links(&deployment, &Place::Party(0)));
        let plans = served(|| Stub { broken, ..Stub::default() });
        let service = std::thread::spawn(move || serve_family(0, me, Arc::new(program()), plans, events));
        Party { deployment, seen, service }
    }

    fn call(&self, place: &Place, purpose: Purpose) -> Result<TcpChannel, NetError> {
        let mut channel = links(&self.deployment, place).dial(&Place::Party(0), purpose)?;
        channel.set_patience(Some(Duration::from_secs(20)));
        Ok(channel)
    }

    fn told(&self, what: impl Fn(&Event) -> bool) -> bool {
        self.seen.lock().unwrap().iter().any(what)
    }
}

fn ask(channel: &mut TcpChannel, request: &Request) -> Result<Reply, TalkError> {
    say(channel, Talk::Request, request)?;
    hear(channel, Talk::Reply)
}

fn status(channel: &mut TcpChannel) -> Result<Reply, TalkError> {
    ask(channel, &Request::Status { id: Id::fresh() })
}

#[test]
fn a_panic_of_the_service_ends_it_with_an_error() {
    let party = Party::start(true);
    let mut alice = party.call(&client("alice"), Purpose::Client).unwrap();
    assert!(status(&mut alice).is_err(), "it answered");
    let ended = party.service.join().unwrap().unwrap_err();
    assert!(matches!(&ended, ServeError::Panicked(thread) if thread == "privet-service"), "{ended}");
    assert!(ended.to_string().contains("start it again"), "{ended}");
}

#[test]
fn the_dealer_is_no_client_and_learns_why() {
    let party = Party::start(false);
    for purpose in [Purpose::Client, Purpose::Parties, Purpose::Keys] {
        let mut dealer = party.call(&Place::Dealer, purpose).unwrap();
        let told = status(&mut dealer).unwrap_err().to_string();
        assert!(told.contains("this party does not serve that"), "{told}");
    }
    for purpose in [Purpose::Client, Purpose::Parties, Purpose::Keys] {
        let refused = |e: &Event| {
            matches!(e, Event::Refused { place: Place::Dealer, purpose: p, reason, .. }
                if *p == purpose && reason.code() == "access.not_admitted")
        };
        assert!(party.told(refused), "{purpose:?}");
    }
    let mut alice = party.call(&client("alice"), Purpose::Client).unwrap();
    assert!(matches!(status(&mut alice).unwrap(), Reply::Status(_)));
}

#[test]
fn a_place_without_a_role_gets_the_status_and_nothing_else() {
    let party = Party::start(false);
    let mut eve = party.call(&client("eve"), Purpose::Client).unwrap();
    assert!(matches!(status(&mut eve).unwrap(), Reply::Status(_)));
    let (id, plan) = (Id::fresh(), || "bare".to_owned());
    let amount = super::super::control::Amount { runs: 1, checks: 0, stream: false };
    for request in [
        Request::Prepare { id, plan: plan(), amount },
        Request::Run { id, plan: plan(), from: None::<At>, publics: BTreeMap::new() },
        Request::BeginTraining { id, checkpoint_every: 1 },
        Request::Resume { id, training: id },
    ] {
        match ask(&mut eve, &request).unwrap() {
            Reply::Failed { reason } => assert!(reason.contains("client:eve has no role"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    match ask(&mut eve, &Request::ShareWeights { id, plan: plan() }).unwrap() {
        Reply::Failed { reason } => assert!(reason.contains("has no weights to share"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_place_has_so_many_connections_and_requests_and_others_are_not_disturbed() {
    let party = Party::start(false);
    let alice = client("alice");
    let mut all: Vec<TcpChannel> =
        (0..CLIENT_CONNECTIONS).map(|_| party.call(&alice, Purpose::Client).unwrap()).collect();
    // Each with a request that waits for bob.
    for channel in &mut all {
        let (id, plan) = (Id::fresh(), "bare".to_owned());
        say(channel, Talk::Request, &Request::Run { id, plan, from: None, publics: BTreeMap::new() })
            .unwrap();
    }
    let mut more = party.call(&alice, Purpose::Client).unwrap();
    let told = status(&mut more).unwrap_err().to_string();
    let limit = format!("client:alice has {CLIENT_CONNECTIONS} connections for `client` here");
    assert!(told.contains(&limit) && told.contains("end some of its programs"), "{told}");
    let mut carol = party.call(&client("carol"), Purpose::Client).unwrap();
    assert!(matches!(status(&mut carol).unwrap(), Reply::Status(_)));
    // Whoever leaves while its request waits gives its seat up as soon as it is needed.
    all.iter_mut().take(2).for_each(|channel| channel.sever());
    let mut next = party.call(&alice, Purpose::Client).unwrap();
    assert!(matches!(status(&mut next).unwrap(), Reply::Status(_)));
}
