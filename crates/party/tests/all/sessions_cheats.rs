//! Clients and parties that do not do what they should, in sessions of real processes over TLS: each is found out, the
//! message names it and the step, nothing is revealed, and the next proper run works.

use crate::nodes::{FSS, Family, Nodes, REP3, REP3_SEMI_HONEST, named, numbers, small};
use privet_net::{Channel, NetworkProfile, TcpChannel};
use privet_party::config::{Loaded, Place, Security};
use privet_party::session::control::{Amount, Id, PartyRun, Reply, Request, Talk, TalkError, hear, say};
use privet_party::session::links::{Links, Purpose};
use privet_party::session::order::{Consent, Go, Order};
use privet_party::tensors::Tensors;
use privet_plan::ir::Type;
use privet_plan::program::ONLY_PLAN;
use privet_rep3::{
    Component, Digests, Evaluator, Given, Keys, Party, PartyId, Portion, Revealed, Share, SharedWeights,
};
use privet_ring::{Ring, pack};
use privet_testkit::fault::{Action, Faulty, When};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs() -> Tensors {
    named("x", numbers(&[2, 3], 2))
}

/// A deployment whose model party 1 owns, with little patience for peers that do nothing.
fn deployed(family: Family) -> Nodes {
    let nodes = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
    let file = nodes.path("deployment.toml");
    let text = fs::read_to_string(&file).unwrap();
    let patient =
        text.lines().find(|l| l.starts_with("step = ")).expect("timeouts are written out").to_owned();
    fs::write(&file, text.replace(&patient, "step = 3")).unwrap();
    nodes
}

/// The same, with everybody running but `absent`.
fn started_without(family: Family, absent: &str) -> Nodes {
    let mut nodes = deployed(family);
    family.services().filter(|s| *s != absent).for_each(|s| nodes.start(s));
    nodes
}

fn started(family: Family) -> Nodes {
    started_without(family, "nobody")
}

#[track_caller]
fn works(nodes: &Nodes) {
    nodes.run(nodes.family.prepare("1"), &inputs()).good();
}

/// The connections of a place, for a program of the test's own.
fn links(nodes: &Nodes, name: &str) -> Links {
    let loaded = Loaded::load(&nodes.path(name).join("node.toml")).unwrap();
    Links::new(loaded, &small().into(), NetworkProfile::LAN).unwrap()
}

/// A client's connections to all parties, each with a request.
fn asking(nodes: &Nodes, request: impl Fn(usize) -> Option<Request>) -> Vec<TcpChannel> {
    let links = links(nodes, "client");
    let dial = |party| {
        let mut channel = links.dial(&Place::Party(party as u8), Purpose::Client).unwrap();
        if let Some(request) = request(party) {
            say(&mut channel, Talk::Request, &request).unwrap();
        }
        channel
    };
    (0..nodes.family.parties.len()).map(dial).collect()
}

fn run_request(id: Id) -> Request {
    Request::Run { id, plan: ONLY_PLAN.into(), from: None, publics: BTreeMap::new() }
}

fn prepare_request(id: Id, runs: u64) -> Request {
    Request::Prepare { id, plan: ONLY_PLAN.into(), amount: Amount { runs, checks: 0, stream: false } }
}

fn begin_from(owner: u8) -> Order {
    Order::BeginFrom { plan: ONLY_PLAN.into(), owner: Some(owner), session: Id::fresh() }
}

/// Why a party says that a request failed.
fn failure(channel: &mut TcpChannel) -> String {
    match hear::<Reply>(channel, Talk::Reply) {
        Ok(Reply::Failed { reason }) => reason,
        Ok(other) => panic!("it went on: {other:?}"),
        Err(e) => e.to_string(),
    }
}

/// A run of a client that sends `payload(party)` for its input; every party must say why it failed.
fn run_with(nodes: &Nodes, payload: impl Fn(usize) -> Vec<u8>) -> Vec<String> {
    if nodes.family.dealer {
        nodes.run(&["--prepare", "1", "--no-run"], &inputs()).good();
    }
    let id = Id::fresh();
    let mut channels = asking(nodes, |_| Some(run_request(id)));
    for channel in &mut channels {
        assert!(matches!(hear(channel, Talk::Reply).unwrap(), Reply::Share { .. }));
    }
    for (party, channel) in channels.iter_mut().enumerate() {
        // A party may have given up because of what another was sent.
        let _ = channel.send(&Talk::Tensor.step(), payload(party));
    }
    channels.iter_mut().map(failure).collect()
}

#[test]
fn inconsistent_components_of_an_input_are_refused() {
    let ring = Ring::new(64);
    for family in [REP3, REP3_SEMI_HONEST] {
        let nodes = started(family);
        works(&nodes);
        for component in 0..3 {
            let good = Portion::of(ring, &[7; 6]);
            // One of the two holders of the component is sent another last element.
            let payload = |party: usize| {
                let mut portion = good[party].clone();
                if party == component {
                    let mut own = portion.clone().expand(ring, 6).own.to_vec();
                    own[5] ^= 1 << 63;
                    portion.own = Component::Elements(Arc::new(own.into()));
                }
                let mut bytes = Vec::new();
                portion.encode(ring, &mut bytes);
                bytes
            };
            let reasons = run_with(&nodes, payload);
            let found =
                reasons.iter().filter(|r| r.contains("shared inputs") && r.contains("different copies"));
            assert!(found.count() >= 2, "{reasons:?}");
            works(&nodes);
        }
        nodes.nothing_secret_was_said(&[&weights(), &inputs()]);
    }
}

#[test]
fn different_masked_inputs_are_refused() {
    let nodes = started(FSS);
    let payload = |party: usize| {
        let mut bytes = Vec::new();
        pack(Ring::new(64), &[party as u64; 6], &mut bytes);
        bytes
    };
    let reasons = run_with(&nodes, payload);
    assert!(reasons.iter().any(|r| r.contains("received different tensors")), "{reasons:?}");
    works(&nodes);
}

#[test]
fn malformed_tensors_are_refused_by_name() {
    let ring = Ring::new(64);
    let nodes = started(REP3);
    works(&nodes);
    let mut good = Vec::new();
    Portion::of(ring, &[7; 6])[1].encode(ring, &mut good);
    let mut kind = good.clone();
    kind[0] = 9;
    let cut = good[..good.len() - 1].to_vec();
    let longer = [good.clone(), vec![0]].concat();
    let cases =
        [(kind, "tensor `x`: "), (cut, "tensor `x`: "), (longer, "tensor `x`: "), (vec![0; 4096], "at most")];
    for (bytes, says) in cases {
        let reasons = run_with(&nodes, |_| bytes.clone());
        assert!(reasons.iter().any(|r| r.contains(says)), "{says}: {reasons:?}");
        works(&nodes);
    }
    for party in nodes.family.parties {
        assert!(!nodes.log(party).contains("panicked"), "{}", nodes.log(party));
    }
}

#[test]
fn clients_that_ask_parties_for_different_things_are_told_and_leave_nothing_behind() {
    for family in [FSS, REP3] {
        let nodes = started(family);
        let id = Id::fresh();
        // Another number of runs; another request altogether; nothing at all.
        let mut channels = asking(&nodes, |p| Some(prepare_request(id, 1 + p as u64)));
        assert!(failure(&mut channels[0]).contains("asked the parties for different things"));
        let id = Id::fresh();
        let mut channels =
            asking(&nodes, |p| Some(if p == 0 { prepare_request(id, 1) } else { run_request(id) }));
        assert!(failure(&mut channels[0]).contains("asked the parties for different things"));
        let id = Id::fresh();
        let mut channels = asking(&nodes, |p| (p == 0).then_some(prepare_request(id, 1)));
        let reason = failure(&mut channels[0]);
        assert!(reason.contains("did not hear from the client: it must connect to all parties"), "{reason}");
        works(&nodes);
    }
}

#[test]
fn a_client_that_stops_in_the_middle_is_given_up() {
    for family in [FSS, REP3] {
        let nodes = started(family);
        works(&nodes);
        if family.dealer {
            nodes.run(&["--prepare", "1", "--no-run"], &inputs()).good();
        }
        let id = Id::fresh();
        let mut channels = asking(&nodes, |_| Some(run_request(id)));
        for channel in &mut channels {
            assert!(matches!(hear(channel, Talk::Reply).unwrap(), Reply::Share { .. }));
        }
        // It lives on, and sends nothing.
        for party in family.parties {
            nodes.until("its log", |n| n.log(party).contains("a request failed"));
        }
        let logs: Vec<String> = family.parties.iter().map(|p| nodes.log(p)).collect();
        let waited =
            |l: &&String| l.contains("(shared tensor): client:client is alive, but this party waited");
        assert!(logs.iter().filter(waited).count() >= 1, "{logs:?}");
        let reasons: Vec<String> = channels.iter_mut().map(failure).collect();
        assert!(reasons.iter().any(|r| r.contains("in vain for 3 s")), "{reasons:?}");
        works(&nodes);
    }
}

/// A party of the test's own that consents to everything it is ordered, in the place of party `me`.
struct Fake {
    links: Links,
    leader: TcpChannel,
}

impl Fake {
    fn of(nodes: &Nodes, me: &str) -> Fake {
        let links = links(nodes, me);
        let leader = links.dial(&Place::Party(0), Purpose::Parties).unwrap();
        Fake { links, leader }
    }

    /// Consent to the next order and hear whether it is to be carried out.
    fn consent(&mut self) -> (Order, Go) {
        let order = hear(&mut self.leader, Talk::Order).unwrap();
        say(&mut self.leader, Talk::Order, &Consent::Ready).unwrap();
        (order, hear(&mut self.leader, Talk::Order).unwrap())
    }
}

impl Fake {
    /// Be party 2 for one run of `small()` whose model party 1 owns, with faults on what it sends to the parties before
    /// and after; gives how many of them happened.
    fn run(mut self, mut client: TcpChannel, faults: [Vec<(When, Action)>; 2]) -> usize {
        let (me, security, plan, device) =
            (PartyId::ALL[2], Security::Malicious, small(), privet_kernels::cpu(1));
        let receive = |channel: &mut TcpChannel, ty: &Type| {
            say(channel, Talk::Reply, &Reply::Share { seeds: BTreeMap::new() }).unwrap();
            let ring = Ring::new(ty.bits);
            let bytes = channel.recv_up_to(&Talk::Tensor.step(), Portion::max_len(ring, ty.len())).unwrap();
            Portion::decode(ring, ty.len(), &bytes).unwrap().expand(ring, ty.len())
        };
        let digests = |name, ty: &Type, share: &Share| {
            let mut digests = Digests::default();
            digests.add(name, Ring::new(ty.bits), share);
            digests
        };
        hear::<Request>(&mut client, Talk::Request).unwrap();
        let mut prev = self.links.dial(&Place::Party(1), Purpose::Parties).unwrap();
        let mut met = |order: &Order| {
            let theirs = prev.exchange(&Talk::Order.step(), order.digest().to_vec(), 32).unwrap();
            assert_eq!(theirs, order.digest());
        };

        let mut order = hear::<Order>(&mut self.leader, Talk::Order).unwrap();
        if let Order::Run { .. } = order {
            // Of a session before this party came.
            say(&mut self.leader, Talk::Order, &Consent::NoSession).unwrap();
            order = hear(&mut self.leader, Talk::Order).unwrap();
        }
        assert!(matches!(order, Order::BeginFrom { owner: Some(1), .. }), "{order:?}");
        self.agree_to(&order, &mut met);
        let keys = Keys::agree(me, &mut prev, &mut self.leader).unwrap();
        let (x, w) = (&plan.nodes[0].ty, &plan.nodes[1].ty);
        let share = receive(&mut prev, w);
        let mut cx = Party::new(me, security, &*device, keys.derive(0), &mut prev, &mut self.leader);
        cx.compare("shared weights", digests("fc.weight", w, &share)).unwrap();
        let weights = BTreeMap::from([("fc.weight".to_owned(), share)]);
        let weights = SharedWeights::new(&mut cx, &plan, weights).unwrap();

        let order = hear::<Order>(&mut self.leader, Talk::Order).unwrap();
        let Order::Run { index, .. } = order else { panic!("{order:?}") };
        let mut met = |order: &Order| {
            prev.exchange(&Talk::Order.step(), order.digest().to_vec(), 32).unwrap();
        };
        self.agree_to(&order, &mut met);
        let share = receive(&mut client, x);
        let [to_prev, to_next] = faults;
        let planned = to_prev.len() + to_next.len();
        let (mut prev, mut next) = (Faulty::new(prev, to_prev), Faulty::new(self.leader, to_next));
        let mut cx = Party::new(me, security, &*device, keys.derive(index), &mut prev, &mut next);
        cx.compare("shared inputs", digests("x", x, &share)).unwrap();
        let inputs = HashMap::from([(0, share)]);
        let given = Given { inputs, ..Given::default() };
        if let Ok(outcome) = Evaluator::new(&plan, &weights).run(&mut cx, given, &mut |_| {}) {
            let account = PartyRun {
                plan: ONLY_PLAN.into(),
                at: None,
                protocol: "rep3".parse().unwrap(),
                security,
                dealer: false,
                online_s: 0.0,
                nodes: outcome.nodes,
                checks: outcome.checks,
                openings: vec![],
                peak_rss_bytes: 0,
                encrypted: true,
            };
            let mut bytes = Vec::new();
            Revealed::of(&outcome.outputs[0]).encode(Ring::new(64), &mut bytes);
            // a client that heard of a fault from the other parties has hung up
            let done = Reply::Done { account: Some(Box::new(account)) };
            if say(&mut client, Talk::Reply, &done).is_ok() {
                let _ = client.send(&Talk::Result.step(), bytes);
            }
        }
        planned - prev.pending().len() - next.pending().len()
    }

    fn agree_to(&mut self, order: &Order, met: &mut dyn FnMut(&Order)) {
        say(&mut self.leader, Talk::Order, &Consent::Ready).unwrap();
        assert_eq!(hear::<Go>(&mut self.leader, Talk::Order).unwrap(), Go::Go);
        met(order);
    }
}

#[test]
fn a_party_that_changes_a_message_is_found_out_before_anything_is_revealed() {
    let nodes = started_without(REP3, "party2");
    let links = links(&nodes, "party2");
    let listener = links.listen().unwrap();
    let run = |faults| {
        let _ = fs::remove_file(nodes.output());
        let fake = Fake::of(&nodes, "party2");
        let child = nodes.begin(&[], &inputs());
        let client = links.welcome(listener.accept(Duration::from_secs(20)).unwrap()).unwrap().0;
        let happened = fake.run(client, faults);
        (happened, nodes.finish(child))
    };
    let (_, honest) = run([vec![], vec![]]);
    honest.good();
    let right = nodes.outputs();
    let mut failures = 0;
    for side in 0..2 {
        for message in (1..).step_by(2) {
            let mut faults = [vec![], vec![]];
            faults[side].push((When::Message(message), Action::FlipBit(13)));
            let (happened, ran) = run(faults);
            assert!(!ran.err.contains("panicked"), "{}", ran.err);
            if happened == 0 {
                break;
            }
            match ran.code {
                Some(0) => assert_eq!(nodes.outputs(), right, "side {side}, message {message}"),
                _ => {
                    failures += 1;
                    assert!(!nodes.output().exists(), "something was revealed");
                    assert!(ran.err.contains("party"), "{}", ran.err);
                }
            }
        }
    }
    assert!(failures > 5, "{failures}");
    let logs = ["party0", "party1"].map(|p| nodes.log(p));
    assert!(logs.iter().all(|l| l.contains("party 2") && !l.contains("panicked")), "{logs:?}");
    assert!(logs.iter().any(|l| l.contains("the session is over: a party does not follow the protocol")));
    nodes.nothing_secret_was_said(&[&weights(), &inputs()]);
}

#[test]
fn a_party_that_is_stuck_in_a_step_is_named_by_all() {
    let mut nodes = started_without(REP3, "party2");
    let mut fake = Fake::of(&nodes, "party2");
    let client = {
        // The client needs somebody to talk to at party 2.
        let listener = fake.links.listen().unwrap();
        let client = nodes.begin(&[], &inputs());
        let channel = fake.links.welcome(listener.accept(Duration::from_secs(20)).unwrap()).unwrap().0;
        let (order, go) = fake.consent();
        assert_eq!(go, Go::Go);
        let mut other = fake.links.dial(&Place::Party(1), Purpose::Parties).unwrap();
        let digest = order.digest().to_vec();
        assert_eq!(other.exchange(&Talk::Order.step(), digest, 32).unwrap(), order.digest());
        // From here on it is alive, but does nothing.
        for party in ["party0", "party1"] {
            nodes.until("its log", |n| n.log(party).contains("a request failed"));
        }
        let logs = ["party0", "party1"].map(|p| nodes.log(p));
        let named = logs.iter().filter(|l| l.contains("session / keys") && l.contains("party:2 is alive"));
        assert!(named.count() >= 1, "{logs:?}");
        drop((channel, other, listener));
        client
    };
    drop(fake);
    assert_ne!(nodes.finish(client).code, Some(0));
    nodes.start("party2");
    works(&nodes);
}

/// The connections of parties 1 and 2 to a party 0 of the test's own.
fn followers(links: &Links) -> [TcpChannel; 2] {
    let listener = links.listen().unwrap();
    let mut followers = [None, None];
    while followers.iter().any(Option::is_none) {
        match links.welcome(listener.accept(Duration::from_secs(20)).unwrap()).unwrap() {
            (channel, Place::Party(p), Purpose::Parties) => followers[p as usize - 1] = Some(channel),
            (_, place, _) => panic!("{place} called"),
        }
    }
    followers.map(Option::unwrap)
}

/// What a party says to an order.
fn consent(channel: &mut TcpChannel, order: &Order) -> Consent {
    say(channel, Talk::Order, order).unwrap();
    hear(channel, Talk::Order).unwrap()
}

/// A party 0 that could choose a number would choose the coins of the run.
#[test]
fn a_run_has_the_next_number_and_no_other() {
    let nodes = started_without(REP3, "party0");
    let leader = links(&nodes, "party0");
    let [mut next, mut prev] = followers(&leader);
    let session = Id::fresh();
    let begin = Order::BeginFrom { plan: ONLY_PLAN.into(), owner: Some(1), session };
    for channel in [&mut next, &mut prev] {
        assert_eq!(consent(channel, &begin), Consent::Ready);
    }
    for channel in [&mut next, &mut prev] {
        say(channel, Talk::Order, &Go::Go).unwrap();
    }
    // A proper beginning of a session, as party 0.
    let (me, device, plan) = (PartyId::ALL[0], privet_kernels::cpu(1), small());
    let keys = Keys::agree(me, &mut prev, &mut next).unwrap();
    say(&mut next, Talk::Reply, &Reply::Share { seeds: BTreeMap::new() }).unwrap();
    let (ring, n) = (Ring::new(plan.nodes[1].ty.bits), plan.nodes[1].ty.len());
    let bytes = next.recv_up_to(&Talk::Tensor.step(), Portion::max_len(ring, n)).unwrap();
    let share = Portion::decode(ring, n, &bytes).unwrap().expand(ring, n);
    let mut digests = Digests::default();
    digests.add("fc.weight", ring, &share);
    let mut cx = Party::new(me, Security::Malicious, &*device, keys.derive(0), &mut prev, &mut next);
    cx.enter(0, "session");
    cx.compare("shared weights", digests).unwrap();
    SharedWeights::new(&mut cx, &plan, BTreeMap::from([("fc.weight".to_owned(), share)])).unwrap();

    let client = links(&nodes, "client");
    let id = Id::fresh();
    let mut callers = [1, 2].map(|party| {
        let mut channel = client.dial(&Place::Party(party), Purpose::Client).unwrap();
        say(&mut channel, Talk::Request, &run_request(id)).unwrap();
        channel
    });
    let run = |index| {
        let (plan, publics) = (ONLY_PLAN.into(), BTreeMap::new());
        Order::Run { ids: vec![id], plan, session, index, from: None, publics }
    };
    // The next number is taken, and stays the next one as long as nothing is done under it.
    for channel in [&mut next, &mut prev] {
        for _ in 0..2 {
            assert_eq!(consent(channel, &run(1)), Consent::Ready);
            say(channel, Talk::Order, &Go::Again).unwrap();
        }
    }
    for (channel, chosen) in [(&mut next, 24), (&mut prev, 2)] {
        let answer = consent(channel, &run(chosen));
        let says = format!("party 0 ordered run {chosen} of a session of which run 1 is next");
        assert!(matches!(&answer, Consent::Declined { reason } if reason.contains(&says)), "{answer:?}");
    }
    for channel in &mut callers {
        assert!(failure(channel).contains("of which run 1 is next"));
    }
    // Whoever was ordered another number has no session any more.
    for channel in [&mut next, &mut prev] {
        let order = Order::Run {
            ids: vec![],
            plan: ONLY_PLAN.into(),
            session,
            index: 1,
            from: None,
            publics: BTreeMap::new(),
        };
        assert_eq!(consent(channel, &order), Consent::NoSession);
    }
}

#[test]
fn no_party_acts_before_all_consented_and_different_orders_are_found_out() {
    // The test is party 0. It tells party 2 of another session than party 1.
    let nodes = started_without(REP3, "party0");
    let links = links(&nodes, "party0");
    let mut followers = followers(&links);
    for channel in &mut followers {
        let order = begin_from(1);
        say(channel, Talk::Order, &order).unwrap();
        assert_eq!(hear::<Consent>(channel, Talk::Order).unwrap(), Consent::Ready);
    }
    // A run of a session that is not open, and an owner that is none, get no consent.
    for channel in &mut followers {
        say(channel, Talk::Order, &Go::Off { reason: "a test".into() }).unwrap();
        let (plan, session) = (ONLY_PLAN.into(), Id::fresh());
        let run = Order::Run { ids: vec![], plan, session, index: 1, from: None, publics: BTreeMap::new() };
        say(channel, Talk::Order, &run).unwrap();
        assert_eq!(hear::<Consent>(channel, Talk::Order).unwrap(), Consent::NoSession);
        say(channel, Talk::Order, &begin_from(2)).unwrap();
        let declined = hear::<Consent>(channel, Talk::Order).unwrap();
        assert!(
            matches!(&declined, Consent::Declined { reason } if reason.contains("no role")),
            "{declined:?}"
        );
    }
    for channel in &mut followers {
        let order = begin_from(1);
        say(channel, Talk::Order, &order).unwrap();
        assert_eq!(hear::<Consent>(channel, Talk::Order).unwrap(), Consent::Ready);
    }
    for channel in &mut followers {
        say(channel, Talk::Order, &Go::Go).unwrap();
    }
    for channel in &mut followers {
        let told: TalkError = hear::<Order>(channel, Talk::Order).unwrap_err();
        assert!(told.to_string().contains("gave up"), "{told}");
    }
    let found = |p: &str| nodes.log(p).contains("different orders, or party");
    nodes.until("a party's log", |_| ["party1", "party2"].into_iter().any(found));
}

#[test]
fn a_connection_for_something_else_is_refused() {
    let nodes = started(REP3);
    works(&nodes);
    // Party 1 takes calls of parties from party 2 alone; nobody but parties calls as one; nobody deals.
    let cases =
        [("party0", 1, Purpose::Parties), ("client", 0, Purpose::Parties), ("client", 2, Purpose::Keys)];
    for (who, party, purpose) in cases {
        let mut channel = links(&nodes, who).dial(&Place::Party(party), purpose).unwrap();
        let told = hear::<Order>(&mut channel, Talk::Order).unwrap_err().to_string();
        assert!(told.contains("does not serve that"), "{told}");
    }
    works(&nodes);
}

#[test]
fn plans_fit_the_harness() {
    let plan = small();
    assert_eq!((plan.nodes[0].ty.bits, plan.nodes[0].ty.len()), (64, 6), "what the cheats above send");
}
