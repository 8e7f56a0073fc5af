//! Who may do what between real processes: files that differ, roles that somebody else has, orders that nobody may give,
//! and a party that is restarted while a client waits.

use crate::nodes::{FSS, Family, Nodes, REP3, copy, named, numbers, small, truth};
use privet_net::{NetworkProfile, TcpChannel};
use privet_party::config::{Loaded, Place};
use privet_party::session::control::{Amount, Id, Reply, Request, Status, Talk, hear, say};
use privet_party::session::family::dealing::messages::{DealReply, DealRequest};
use privet_party::session::links::{Links, Purpose};
use privet_party::session::order::{Consent, Go, Order, Preparation};
use privet_party::store::hex;
use privet_party::tensors::{self, Tensors};
use privet_plan::program::ONLY_PLAN;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs() -> Tensors {
    named("x", numbers(&[2, 3], 2))
}

/// A deployment whose model party 1 owns.
fn deployed(family: Family, roles: &[&str]) -> Nodes {
    Nodes::of(family, &small(), Some(&weights()), "lan", roles)
}

#[track_caller]
fn works(nodes: &Nodes) {
    nodes.run(nodes.family.prepare("1"), &inputs()).good();
    assert_eq!(nodes.outputs(), truth(&small(), &inputs(), &weights()));
}

/// The connections of a place, for a program of the test's own.
fn links(nodes: &Nodes, name: &str) -> Links {
    let loaded = Loaded::load(&nodes.path(name).join("node.toml")).unwrap();
    Links::new(loaded, &small().into(), NetworkProfile::LAN).unwrap()
}

/// Give a node a deployment file of its own, changed.
fn differ(nodes: &Nodes, name: &str, from: &str, to: &str) {
    let common = fs::read_to_string(nodes.path("deployment.toml")).unwrap();
    let own = common.replace(from, to);
    assert_ne!(own, common, "{from}");
    fs::write(nodes.path(name).join("deployment.toml"), own).unwrap();
    let plan = nodes.path(name).join("plan.json");
    copy(&nodes.path("plan.json"), &plan);
    let node = nodes.path(name).join("node.toml");
    let text = fs::read_to_string(&node).unwrap();
    fs::write(&node, text.replace("../deployment.toml", "deployment.toml")).unwrap();
}

#[test]
fn a_party_that_would_not_verify_is_refused_by_all() {
    let mut nodes = deployed(REP3, &[]);
    differ(&nodes, "party2", "security = \"malicious\"", "security = \"semi-honest\"");
    nodes.start_all();
    nodes.run(&[], &inputs()).says(&[
        "security is `malicious` here and `semi-honest` at party:2",
        "give every node the same deployment.toml",
    ]);
    let weaker = "security is `malicious` here and `semi-honest` at party:2";
    nodes.until("party 0's log", |n| n.log("party0").contains(weaker));
    // It calls party 1 only once party 0 has it in a job, which does not come to pass.
    let refused = links(&nodes, "party2").dial(&Place::Party(1), Purpose::Parties).err().unwrap();
    assert!(refused.to_string().contains("`semi-honest` here and `malicious` at party:1"), "{refused}");
    nodes.until("party 1's log", |n| n.log("party1").contains(weaker));
    nodes.until("party 2's log", |n| {
        n.log("party2").contains("`semi-honest` here and `malicious` at party:0")
    });
}

#[test]
fn a_client_that_believes_something_else_shares_nothing() {
    let mut nodes = deployed(FSS, &[]);
    nodes.start_all();
    works(&nodes);
    differ(&nodes, "client", "receiver = \"client:client\"", "receiver = \"party:0\"");
    nodes
        .run(&[], &inputs())
        .says(&["roles.receiver is `party:0` here and `client:client` at party:0", "fix:"]);
    // The dealer compares as well.
    let stranger = links(&nodes, "client").dial(&Place::Dealer, Purpose::Keys).err().unwrap();
    assert!(stranger.to_string().contains("roles.receiver"), "{stranger}");
}

#[test]
fn whoever_shares_anothers_model_is_told_before_keys_are_dealt() {
    for family in [FSS, REP3] {
        let mut nodes = deployed(family, &[]);
        nodes.start_all();
        let file = nodes.path("client/weights.safetensors");
        tensors::save(&file, &weights()).unwrap();
        let with = [family.prepare("1"), &["--weights", file.to_str().unwrap()]].concat();
        nodes.run(&with, &inputs()).says(&[
            "client:client has no role in this",
            "sharing the weights of plan `run` is for model_owner (party:1)",
            "[roles]",
        ]);
        for party in family.parties {
            assert!(nodes.records(party).is_empty() && nodes.runs(party).is_empty(), "{}", nodes.log(party));
        }
        works(&nodes);
    }
}

/// The open session's runs that are left at a party, by its status.
fn status(channel: &mut TcpChannel) -> Status {
    say(channel, Talk::Request, &Request::Status { id: Id::fresh() }).unwrap();
    match hear(channel, Talk::Reply).unwrap() {
        Reply::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_dealer_and_whoever_has_no_role_change_nothing() {
    let mut nodes =
        deployed(FSS, &["--data-owner", "client:alice", "--receiver", "client:alice", "--client", "eve"]);
    nodes.start_all();
    let all = |nodes: &Nodes, more: &[&str]| {
        nodes.finish(nodes.begin_as("alice", more, Some(&inputs()), &nodes.output())).good();
    };
    all(&nodes, &["--prepare", "4"]);
    let parties = [0, 1].map(Place::Party);
    let mut eve = parties.clone().map(|p| links(&nodes, "eve").dial(&p, Purpose::Client).unwrap());
    let before = eve.each_mut().map(status);
    assert!(before.iter().all(|s| s.can_run(ONLY_PLAN)));
    let (id, plan) = (Id::fresh(), ONLY_PLAN.to_owned());
    let amount = Amount { runs: 1, checks: 0, stream: false };
    for request in [
        Request::Prepare { id, plan: plan.clone(), amount },
        Request::ShareWeights { id, plan: plan.clone() },
        Request::Run { id, plan, from: None, publics: BTreeMap::new() },
    ] {
        say(&mut eve[0], Talk::Request, &request).unwrap();
        match hear(&mut eve[0], Talk::Reply).unwrap() {
            Reply::Failed { reason } => assert!(reason.contains("client:eve has no role"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    for place in &parties {
        let mut dealer = links(&nodes, "dealer").dial(place, Purpose::Client).unwrap();
        let request = Request::Prepare { id: Id::fresh(), plan: ONLY_PLAN.into(), amount };
        let _ = say(&mut dealer, Talk::Request, &request);
        let told = hear::<Reply>(&mut dealer, Talk::Reply).unwrap_err().to_string();
        assert!(told.contains("the dealer is no client"), "{told}");
    }
    assert_eq!(eve.each_mut().map(status), before, "something changed");
    all(&nodes, &[]);
}

#[test]
fn an_order_that_makes_no_sense_is_declined_and_the_party_serves_on() {
    // The test is party 0.
    let mut nodes = deployed(REP3, &[]);
    ["party1", "party2"].into_iter().for_each(|p| nodes.start(p));
    let links0 = links(&nodes, "party0");
    let listener = links0.listen().unwrap();
    let mut follower = loop {
        match links0.welcome(listener.accept(Duration::from_secs(20)).unwrap()).unwrap() {
            (channel, Place::Party(1), Purpose::Parties) => break channel,
            (other, ..) => drop(other),
        }
    };
    follower.set_patience(Some(Duration::from_secs(20)));
    let mut client = links(&nodes, "client").dial(&Place::Party(1), Purpose::Client).unwrap();
    let (x, plan, session) = (Id::fresh(), || ONLY_PLAN.to_owned(), Id::fresh());
    let begin = Order::BeginFrom { plan: plan(), owner: Some(1), session };
    say(
        &mut client,
        Talk::Request,
        &Request::Run { id: x, plan: plan(), from: None, publics: BTreeMap::new() },
    )
    .unwrap();
    let twice =
        Order::Run { ids: vec![x, x], plan: plan(), session, index: 1, from: None, publics: BTreeMap::new() };
    let training = Order::BeginTraining { ids: vec![x, x], training: x, checkpoint_every: 0 };
    let amount = Amount { runs: 1, checks: 1, stream: false };
    let what = Preparation { deal: x, session: Some(x), amount };
    let opening = Order::Prepare { id: x, plan: plan(), what };
    for order in [twice, training, opening] {
        say(&mut follower, Talk::Order, &order).unwrap();
        let declined = hear::<Consent>(&mut follower, Talk::Order).unwrap();
        assert!(
            matches!(&declined, Consent::Declined { reason } if reason.contains("makes no sense")),
            "{declined:?}"
        );
    }
    say(&mut follower, Talk::Order, &begin).unwrap();
    assert_eq!(hear::<Consent>(&mut follower, Talk::Order).unwrap(), Consent::Ready);
    say(&mut follower, Talk::Order, &Go::Off { reason: "a test".into() }).unwrap();
    assert!(!nodes.log("party1").contains("panicked"), "{}", nodes.log("party1"));
}

/// A deployment with little to wait for but the other client, and much patience.
fn waiting(family: Family) -> Nodes {
    let roles = ["--data-owner", "client:alice", "--receiver", "client:bob"];
    let mut nodes = deployed(family, &roles);
    let file = nodes.path("deployment.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("connect = 4", "connect = 60")).unwrap();
    nodes.start_all();
    nodes
}

/// By now alice's request waits at every party for bob's; parties say nothing of one that waits. Where a machine is slower
/// than this, the test still passes, and shows less.
fn asked() {
    std::thread::sleep(Duration::from_secs(2));
}

/// How long a client waits for a party to come back.
const COMING_BACK: Duration = Duration::from_secs(4);

#[test]
fn a_party_restarted_while_a_client_waits_is_asked_again() {
    for victim in REP3.parties {
        let mut nodes = waiting(REP3);
        let nowhere = nodes.path("nothing");
        let alice = nodes.begin_as("alice", &[], Some(&inputs()), &nowhere);
        asked();
        let killed = Instant::now();
        nodes.kill(victim);
        nodes.start(victim);
        let mut bob = nodes.begin_as("bob", &[], None, &nodes.output());
        let alice = nodes.finish(alice);
        if alice.code != Some(0) && killed.elapsed() > COMING_BACK {
            // On a busy machine a party may need longer to start. Then the client has waited for it, and names it.
            alice.says(&[&victim.replace("party", "party:"), "closed the connection", "fix:"]);
            bob.kill().unwrap();
            bob.wait().unwrap();
            continue;
        }
        alice.good();
        nodes.finish(bob).good();
        assert_eq!(nodes.outputs(), truth(&small(), &inputs(), &weights()), "{victim}");
    }
}

#[test]
fn a_party_that_is_gone_while_a_client_waits_is_named_at_once() {
    for victim in ["party0", "party2"] {
        let mut nodes = waiting(REP3);
        let alice = nodes.begin_as("alice", &[], Some(&inputs()), &nodes.output());
        asked();
        nodes.kill(victim);
        let start = Instant::now();
        let name = victim.replace("party", "party:");
        nodes.finish(alice).says(&[&format!("{name} ("), "closed the connection", "fix:"]);
        // Four seconds, on a machine that may be busy.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

#[test]
fn a_deal_that_only_one_party_asks_for_is_refused_in_time() {
    let mut nodes = deployed(FSS, &[]);
    nodes.start("dealer");
    // The test is party 0, and party 1 never calls.
    let mut dealer = links(&nodes, "party0").dial(&Place::Dealer, Purpose::Keys).unwrap();
    dealer.set_patience(Some(Duration::from_secs(60)));
    let (plan, deal) = (hex(&small().hash()), Id::fresh());
    let request = DealRequest { deal, plan, session: None, runs: 1, checks: 0 };
    say(&mut dealer, Talk::Deal, &request).unwrap();
    let told = hear::<DealReply>(&mut dealer, Talk::Deal).unwrap();
    let refused = |reason: &str| reason.contains("party 1 did not ask for this deal within 4 s");
    assert!(matches!(&told, DealReply::Refused { reason } if refused(reason)), "{told:?}");
}
