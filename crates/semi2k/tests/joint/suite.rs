//! The shared suite on records that the parties made themselves: they hold what a helper's hold, frame by frame as long, and
//! runs give what the interpreter does.
//!
//! Products of matrices are computed in clear ([`InClear`]) but for some cases: what is tested there is everything else.

use super::*;
use crate::common::{CHUNKED, NUMBER, RecordCoins, Seeds, World, sources, that_it_has};
use privet_family::keys::MemoryKeys;
use privet_family::{NodeStats, Parameters, Products};
use privet_kernels::{Device, cpu};
use privet_plan::interpret_step;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type, ValueId};
use privet_plan::suite::{Case, cases, exponential_cases, in_form, training_cases};
use privet_prg::Domain;
use privet_semi2k::{
    Begun, Done, Factor, JointSession, Layers, Linear, Own, PartySeed, PrepareError, Public, Semi2k,
    TRANSFERS, prepare_together, source, static_masks,
};
use privet_testkit::{Action, When};
use std::collections::HashMap;
use std::sync::Arc;

/// Opens both operands and shares the product by streams that all parties know: no protocol.
struct InClear {
    device: Arc<dyn Device>,
    statics: HashMap<ValueId, Words>,
    number: u8,
}

impl InClear {
    fn new(plan: &Plan, session: &PartySeed) -> InClear {
        let mut statics = HashMap::new();
        let seats = Seats::one(session.party());
        static_masks(plan, std::slice::from_ref(session), seats, |node, _, mask| {
            statics.insert(node, mask.clone());
        });
        InClear { device: cpu(1), statics, number: 0 }
    }
}

impl Linear for InClear {
    fn products(
        &mut self,
        transfers: &mut Transfers<'_>,
        what: Products,
        x: &Words,
        w: Factor,
    ) -> Result<Words, PrepareError> {
        let w = match w {
            Factor::Session(node) => &self.statics[&node],
            Factor::Record(w) => w,
        };
        let (ring, me) = (x.ring(), transfers.seats().parties().start);
        let (x, w) = (transfers.open("x", x)?, transfers.open("w", w)?);
        let mut product = vec![0; what.output_len()];
        let w = what.prepare(self.device.as_ref(), ring, &w);
        what.accumulate(self.device.as_ref(), ring, &x, &w, &mut product);
        self.number = self.number.wrapping_add(1);
        let of = |party: usize| {
            Seed::from_bytes([self.number; 16])
                .derive(Domain::Party, party as u64)
                .stream()
                .elements(ring, product.len())
        };
        let share = if me > 0 {
            of(me)
        } else {
            let rest = |rest: Vec<u64>, party| {
                rest.iter().zip(of(party)).map(|(a, b)| ring.wrap(a.wrapping_sub(b))).collect()
            };
            (1..transfers.parties()).fold(product.iter().map(|v| ring.wrap(*v)).collect(), rest)
        };
        Ok(Words::new(transfers.seats(), ring, vec![Secret::new(share)]))
    }
}

/// Records of all cases, by case and party.
fn records(
    parties: usize,
    cases: &[Case],
    seeds: &[Seeds],
    encrypted: bool,
) -> Vec<Vec<(MemoryKeys, Vec<NodeStats>)>> {
    let all = Mesh::new(parties).run(|links| {
        let (me, step) = (links.me(), Step::new(0, "start"));
        let start = |(_, channel): (usize, &mut dyn privet_net::Channel)| {
            Pair::start(channel, &step, Source::SoftSpoken(Width::Four), &Seed::random()).unwrap()
        };
        let mut pairs: Vec<Pair> = links.others().map(start).collect();
        let mut records = Vec::new();
        for (case, seeds) in cases.iter().zip(seeds) {
            let peers = links.others().zip(&mut pairs);
            let peers = peers.map(|((number, channel), pair)| Peer { number, channel, pair }).collect();
            let mut keys = vec![MemoryKeys::default()];
            let public = Public::new(&seeds.public, NUMBER);
            let own = Own { session: &seeds.session[me], record: &seeds.record[me], public };
            let mut transfers = Transfers::new(me, peers, 1);
            let mut linear: Box<dyn Linear> = if encrypted {
                let encryption = transfers.encryption(&Seed::random(), 1).unwrap();
                Box::new(Layers::new(&case.plan, own.session, encryption).all_encrypted())
            } else {
                Box::new(InClear::new(&case.plan, own.session))
            };
            let (mut seen, linear) = (Vec::new(), linear.as_mut());
            let mut see = |node| seen.push(node);
            let stats = prepare_together(&case.plan, &own, transfers, linear, &mut keys, &mut see).unwrap();
            assert!(seen.into_iter().eq(0..case.plan.nodes.len()), "{}: every node, in order", case.name);
            records.push((keys.remove(0), stats));
        }
        records
    });
    let mut by_party: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
    cases.iter().map(|_| by_party.iter_mut().map(|records| records.next().unwrap()).collect()).collect()
}

fn check_all(parties: usize, cases: Vec<Case>) {
    check(parties, None, cases, false);
}

fn check(parties: usize, owner: Option<usize>, cases: Vec<Case>, encrypted: bool) {
    let seed = Seed::random();
    let of = |i| Seeds::of(parties, &seed.derive(Domain::Record, i as u64)).owned(owner);
    let seeds = || (0..cases.len()).map(of);
    let all = records(parties, &cases, &seeds().collect::<Vec<_>>(), encrypted);
    for ((case, seeds), records) in cases.iter().zip(seeds()).zip(all) {
        let mut stream = seed.derive(Domain::Public, 0).stream();
        let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        let (mut keys, stats): (Vec<MemoryKeys>, Vec<_>) = records.into_iter().unzip();
        let (dealt, of_helper) = World::new(&case.plan, &operands, Seeds { ..copy(&seeds) });
        let lengths = |keys: &MemoryKeys| keys.frames().map(<[u8]>::len).collect::<Vec<_>>();
        for (keys, helper) in keys.iter().zip(&of_helper) {
            assert_eq!(lengths(keys), lengths(helper), "{}: frames as a helper's", case.name);
        }
        assert!(stats.iter().all(|stats| stats.len() == dealt.prepared.len()));
        let world = World::prepared(&case.plan, [&operands[0], &operands[1]], seeds, stats[0].clone());
        let mut coins = RecordCoins {
            plan: &case.plan,
            public: world.public.clone(),
            seeds: [&world.session, &world.seeds],
        };
        let (outputs, updates) = interpret_step(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();
        let results = world.run(sources(&mut keys), Mesh::new(parties));
        let done: Vec<Done> = results.into_iter().map(|result| result.unwrap().0).collect();
        assert!(keys.iter().all(|k| k.bytes() == 0), "{}: frames left over", case.name);
        case.compare_within(parties.div_ceil(2) as u64, &world.outputs(&done), &outputs);
        let found = world.updates(&done);
        for (name, value) in &updates {
            assert_eq!(found[name], value.data(), "{}: state `{name}` after the step", case.name);
        }
    }
}

fn copy(seeds: &Seeds) -> Seeds {
    let Seeds { session, record, public, states } = seeds;
    Seeds { session: session.clone(), record: record.clone(), public: public.clone(), states: states.clone() }
}

fn all_cases() -> Vec<Case> {
    let chosen = exponential_cases(&Semi2k::alone(2));
    that_it_has(false, cases().into_iter().chain(training_cases()).chain(chosen).collect())
}

#[test]
fn two_parties() {
    check_all(2, all_cases());
}

#[test]
fn two_parties_in_other_forms() {
    for form in CHUNKED {
        let formed = all_cases().into_iter().step_by(5);
        let formed = formed.filter_map(|case| Some(Case { plan: in_form(&case.plan, form)?, ..case }));
        check_all(2, formed.collect());
    }
}

#[test]
fn three_parties() {
    check_all(3, all_cases().into_iter().step_by(3).collect());
}

#[test]
fn five_parties() {
    check_all(5, all_cases().into_iter().step_by(9).collect());
}

/// Cases with layers or products of elements, nothing in clear; with weights that nobody knows, and that one party knows.
#[test]
fn layers_by_encryption() {
    let encrypted =
        |plan: &Plan, node: &Node| Products::of(plan, node).is_some() || matches!(node.op, Op::Mul);
    let layers = |plan: &Plan| plan.nodes.iter().any(|node| encrypted(plan, node));
    let cases = || all_cases().into_iter().filter(move |case| layers(&case.plan));
    for (parties, owner, step) in
        [(2, None, 2), (3, None, 4), (2, Some(0), 3), (2, Some(1), 3), (3, Some(1), 5)]
    {
        let some: Vec<Case> = cases().step_by(step).collect();
        assert!(some.len() > 1, "{} cases of {parties} parties", some.len());
        check(parties, owner, some, true);
    }
}

/// All that weights are used for, by transfers alone.
#[test]
fn weights_of_one_party() {
    for (parties, owner) in [(2, 1), (3, 0)] {
        let weight = |node: &Node| matches!(node.op, Op::Weight { .. });
        let cases = all_cases().into_iter().filter(|case| case.plan.nodes.iter().any(weight));
        let some: Vec<Case> = cases.step_by(2).collect();
        assert!(some.len() > 1, "{} cases", some.len());
        check(parties, Some(owner), some, false);
    }
}

/// A layer that is large enough to be encrypted.
fn layer() -> Case {
    let ty = |shape: [usize; 2], frac| Type { shape: shape.to_vec(), bits: 64, frac };
    let node = |op, inputs, ty| Node { op, inputs, ty, layer: "layer".into(), form: None };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let weight = Op::Weight { name: "w".into(), owner: "model_owner".into() };
    let nodes = vec![
        node(input, vec![], ty([8, 40], 8)),
        node(weight, vec![], ty([30, 40], 8)),
        node(Op::Linear, vec![0, 1], ty([8, 30], 16)),
        node(Op::Relu, vec![2], ty([8, 30], 16)),
    ];
    let outputs = vec![Output { value: 3, name: "y".into(), to: "receiver".into() }];
    let (version, name) = (PLAN_VERSION, "layer".to_string());
    let plan = Plan { version, name: name.clone(), batch: 8, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    Case { name, plan }
}

/// What a deployment says of how transfers are made.
fn made_by(transfers: &str) -> Parameters {
    let mut said = Parameters::default();
    assert!(said.set(&TRANSFERS, TRANSFERS.word(transfers).expect("a word that it knows")));
    said
}

/// A message that is cut short, or a peer that is gone, ends all lanes: with an error that says what went wrong, and never with a wait.
#[test]
fn a_fault_ends_all_lanes() {
    let case = cases().into_iter().find(|case| case.name == "small network").unwrap();
    let prepare_in = |mut mesh: Mesh, fault: Option<(usize, Action)>| {
        let log = mesh.record();
        if let Some((at, action)) = fault {
            mesh.fault(1, 0, [(When::Message(at as u64), action)]);
        }
        let seeds = Seeds::of(2, &Seed::from_bytes([5; 16]));
        let ends = mesh.run(|links| {
            let (me, step) = (links.me(), Step::new(0, "start"));
            let mut pairs = Vec::new();
            for (_, channel) in links.others() {
                let source = Source::SoftSpoken(Width::Four);
                pairs.push(Pair::start(channel, &step, source, &Seed::random()).map_err(PrepareError::from)?);
            }
            let peers = links.others().zip(&mut pairs);
            let peers = peers.map(|((number, channel), pair)| Peer { number, channel, pair }).collect();
            let own = Own {
                session: &seeds.session[me],
                record: &seeds.record[me],
                public: Public::new(&seeds.public, NUMBER),
            };
            let (mut linear, mut keys) = (InClear::new(&case.plan, own.session), vec![MemoryKeys::default()]);
            let transfers = Transfers::new(me, peers, 1);
            prepare_together(&case.plan, &own, transfers, &mut linear, &mut keys, &mut |_| {}).map(|_| ())
        });
        (ends, log)
    };
    let (ends, log) = prepare_in(Mesh::new(2), None);
    assert!(ends.iter().all(Result::is_ok));
    let sent = log.of(1);
    let shared: Vec<usize> = (0..sent.len()).filter(|at| sent[*at].step.name.starts_with("shared")).collect();
    assert!(shared.len() > 3, "nodes share messages");
    for at in shared {
        let len = sent[at].bytes.len();
        for action in [Action::Truncate(len - 1), Action::Kill] {
            let patience = std::time::Duration::from_secs(5);
            let what = format!("{action:?} at message {at}");
            let mesh = Mesh::patient(2, patience).bound(4 * patience, &what);
            // who receives it fails; who sent the last one may be done before
            let (ends, _) = prepare_in(mesh, Some((at, action)));
            let why = ends[0].as_ref().expect_err(&what).to_string();
            assert!(!why.contains("another node"), "{what}: {why}");
        }
    }
}

/// Records of a session whose products with weights are made together: each is right, and none has another's masks. Whatever makes
/// the transfers, and whoever knows the weights.
#[test]
fn records_that_are_begun_together() {
    const RECORDS: u64 = 3;
    let case = layer();
    for (parties, owner, transfers) in [
        (2, None, "softspoken"),
        (3, None, "softspoken"),
        (2, None, "ferret"),
        (3, None, "auto"),
        (2, Some(1), "softspoken"),
        (3, Some(2), "softspoken"),
    ] {
        let source = source(&made_by(transfers));
        let seeds = Seeds::of(parties, &Seed::random()).owned(owner);
        let all = Mesh::new(parties).run(|links| {
            let own = seeds.session[links.me()].clone();
            fn channels(links: &mut Links) -> Vec<&mut dyn privet_net::Channel> {
                links.others().map(|(_, channel)| channel).collect()
            }
            let (public, records) = (seeds.public.clone(), RECORDS as usize);
            let mut session =
                JointSession::start(&case.plan, own, public, records, source, 1, channels(links)).unwrap();
            assert_eq!(session.at_once(), records);
            let numbers: Vec<u64> = (NUMBER..NUMBER + RECORDS).collect();
            let begun = session.begin(&numbers, channels(links)).unwrap();
            let finish = |begun: Begun| {
                let (seed, mut keys) = (begun.seed().clone(), vec![MemoryKeys::default()]);
                let stats = session.record(begun, channels(links), &mut keys, &mut |_| {}).unwrap();
                (seed, keys.remove(0), stats)
            };
            begun.into_iter().map(finish).collect::<Vec<_>>()
        });
        let mut all: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
        let mut stream = Seed::random().stream();
        for number in 0..RECORDS {
            let (mut record, mut keys, mut stats) = (Vec::new(), Vec::new(), Vec::new());
            for (party, records) in all.iter_mut().enumerate() {
                let (seed, of_party, of_nodes) = records.next().unwrap();
                record.push(PartySeed::new(party, seed));
                keys.push(of_party);
                stats = of_nodes;
            }
            let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
            let own = Seeds { record, ..copy(&seeds) };
            let world = World::prepared(&case.plan, [&operands[0], &operands[1]], own, stats);
            let seeds = [world.session.as_slice(), world.seeds.as_slice()];
            let mut coins = RecordCoins { plan: &case.plan, public: world.public.clone(), seeds };
            let (outputs, _) = interpret_step(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();
            let results = world.run(sources(&mut keys), Mesh::new(parties));
            let done: Vec<Done> = results.into_iter().map(|result| result.unwrap().0).collect();
            assert!(keys.iter().all(|k| k.bytes() == 0), "frames left over in record {number}");
            case.compare_within(0, &world.outputs(&done), &outputs);
        }
    }
}
