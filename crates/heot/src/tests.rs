//! The shared suite, against the interpreter; what is declared against what is counted; and the tables of docs/heot.md.

use crate::context::Cx;
use crate::gate::{At, Kind, kind};
use crate::leaf::{self, Wanted};
use crate::product::{self, Second};
use crate::session::{Layers, Record};
use crate::{
    Announced, Drawn, Given, HEADER_BYTES, Outcome, Session, Side, Uses, compare, mux, planes, refusals, run,
    transfers,
};
use privet_family::is_static;
use privet_net::Step;
use privet_ot::{Pair, Source, Width};
use privet_plan::Plan;
use privet_plan::interpret_step;
use privet_plan::ir::{Op, ValueId};
use privet_plan::suite::{Case, Operands, View, cases, joined_cases, optional_cases, training_cases, unseen};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use privet_testkit::{Links, Mesh, Sent, record};
use std::collections::{BTreeMap, HashMap};

/// Transfers, prepared, between the two.
fn pair(links: &mut Links, [send, receive]: [usize; 2]) -> Pair {
    let step = Step::new(0, "transfers");
    let channel = links.to(1 - links.me());
    let mut pair = Pair::start(channel, &step, Source::SoftSpoken(Width::Four), &Seed::random()).unwrap();
    pair.prepare(channel, &step, send, receive).unwrap();
    pair
}

/// This side's share of operands by node: uniform, and what is left.
fn shares(plan: &Plan, side: Side, inputs: &Operands, seed: &Seed) -> HashMap<ValueId, Vec<u64>> {
    let mut all = HashMap::new();
    for (v, node) in plan.nodes.iter().enumerate() {
        if let Op::Input { name, .. } = &node.op {
            let ring = Ring::new(node.ty.bits);
            let mask = seed.derive(Domain::Mask, v as u64).stream().elements(ring, node.ty.len());
            let rest = inputs[name].data().iter().zip(&mask);
            let share = match side {
                Side::Server => rest.map(|(x, m)| ring.wrap(x.wrapping_sub(*m))).collect(),
                Side::Client => mask,
            };
            all.insert(v, share);
        }
    }
    all
}

/// What a node declares that it uses; bytes of a layer with hints follow from the session.
fn declared(plan: &Plan, session: &Session, v: ValueId) -> Uses {
    let Kind::Gate(gate) = kind(&plan.nodes[v].op) else { return Uses::default() };
    if is_static(plan, v) {
        return Uses::default();
    }
    let mut uses = gate.uses(&At { plan, id: v });
    uses.bytes[Side::Client as usize] += session.run_bytes(v).unwrap_or(0) as u64;
    uses
}

/// Everything of a run at one side.
struct Ran {
    outcome: Outcome,
    declared: Vec<Uses>,
    shares: HashMap<ValueId, Vec<u64>>,
}

fn party(links: &mut Links, plan: &Plan, operands: &[Operands; 2], seed: &Seed) -> Ran {
    let side = Side::ALL[links.me()];
    let mut prg = Seed::random().stream();
    let mut transfers = pair(links, transfers(plan, side));
    let step = Step::new(0, "session");
    let channel = links.to(1 - links.me());
    let (session, record) = match side {
        Side::Server => {
            let weights: BTreeMap<String, Vec<u64>> =
                operands[1].iter().map(|(name, t)| (name.clone(), t.data().to_vec())).collect();
            let session = Session::serve(plan, &weights, 10, 1, &mut prg).unwrap();
            for message in session.hints().unwrap() {
                channel.send(&step, message.to_vec()).unwrap();
            }
            let message = channel.recv(&step, session.mask_bytes()).unwrap();
            let record = session.masked(&message).unwrap();
            (session, record)
        }
        Side::Client => {
            let header = channel.recv(&step, HEADER_BYTES).unwrap();
            let announced = Announced::read(plan, &header, 1).unwrap();
            let hints = channel.recv(&step, announced.bytes()).unwrap();
            let session = announced.finish(&hints).unwrap();
            let (record, message) = session.mask(&mut prg).unwrap();
            channel.send(&step, message).unwrap();
            (session, record)
        }
    };
    let publics = plan.nodes.iter().filter_map(|node| {
        let Op::Public { name, .. } = &node.op else { return None };
        Some((name.clone(), operands[0][name].data()[0]))
    });
    let given = Given { inputs: shares(plan, side, &operands[0], seed), publics: publics.collect() };
    let mut cx = Cx::new(side, channel, &mut transfers, seed.derive(Domain::Common, 0), 1);
    let mut shares = HashMap::new();
    let mut watch = |v: ValueId, share: &[u64]| drop(shares.insert(v, share.to_vec()));
    let outcome = run(&mut cx, plan, &session, record, given, &mut watch).unwrap();
    let declared = (0..plan.nodes.len()).map(|v| declared(plan, &session, v)).collect();
    Ran { outcome, declared, shares }
}

fn check(case: &Case, seed: &Seed) {
    let mut random = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || random.elements(Ring::R64, 1)[0]);
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let ran = mesh.run(|links| party(links, &case.plan, &operands, seed));
    let coins = seed.derive(Domain::Common, 0);
    let mut drawn = Drawn { plan: &case.plan, seed: &coins, client: &ran[1].shares };
    let (truth, _) = interpret_step(&case.plan, &operands[0], &operands[1], &mut drawn).unwrap();
    let sum = |i: usize| -> Vec<u64> {
        let ring = Ring::new(case.plan.nodes[case.plan.outputs[i].value].ty.bits);
        let both = ran[0].outcome.outputs[i].iter().zip(ran[1].outcome.outputs[i].iter());
        both.map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
    };
    let found: Vec<Vec<u64>> = (0..truth.len()).map(sum).collect();
    case.compare(&found, &truth);
    for side in Side::ALL {
        let ran = &ran[side as usize];
        for (v, (declared, used)) in ran.declared.iter().zip(&ran.outcome.used).enumerate() {
            assert_eq!(declared, used, "{}: node {v} {:?} at {side:?}", case.name, case.plan.nodes[v].op);
        }
        let sent: u64 = ran.outcome.nodes.iter().map(|node| node.sent_bytes).sum();
        let logged: Vec<_> = log.of(side as usize).into_iter().filter(|sent| sent.step.id > 0).collect();
        assert_eq!(sent, record::bytes(&logged), "{}: bytes that {side:?} sent", case.name);
    }
}

/// Every plan of the suite that the family has gates for; it says which it has not.
#[test]
fn protocol_equals_interpreter_on_the_suite() {
    let joined = joined_cases().into_iter().map(|[_, after]| after);
    let all = cases().into_iter().chain(optional_cases()).chain(training_cases()).chain(joined);
    let (given, refused): (Vec<Case>, Vec<Case>) = all.partition(|case| refusals(&case.plan).is_empty());
    let lacked = ["exponentials", "waves", "dropout", "states", "matrices"];
    for case in &refused {
        let said: Vec<String> = refusals(&case.plan).iter().map(|r| r.to_string()).collect();
        let known = lacked.iter().any(|what| said.iter().any(|s| s.contains(what.trim_end_matches('s'))));
        assert!(known, "{}: {said:?}", case.name);
    }
    assert!(given.len() > 110, "{} of {} plans", given.len(), given.len() + refused.len());
    println!("{} of {} plans", given.len(), given.len() + refused.len());
    let mut failed = Vec::new();
    for case in &given {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if std::panic::catch_unwind(|| check(case, &Seed::random())).is_err() {
            failed.push(&case.name);
        }
    }
    assert!(failed.is_empty(), "these went wrong, as said above: {failed:?}");
}

/// A plan whose convolution has no packing is refused before a session is begun.
#[test]
fn convolutions_without_a_packing_are_refused() {
    let is_conv = |op: &Op| matches!(op, Op::Conv2d { .. });
    let has_one = |case: &Case| case.plan.nodes.iter().any(|node| is_conv(&node.op));
    let mut plan = cases().into_iter().find(has_one).unwrap().plan;
    assert!(refusals(&plan).is_empty());
    for node in &mut plan.nodes {
        if let Op::Conv2d { geometry } = &mut node.op {
            (geometry.kernel, geometry.stride) = ([3, 3], [1, 1]);
            (geometry.dilation, geometry.padding) = ([36, 36], [36; 4]);
        }
    }
    let said: Vec<String> = refusals(&plan).iter().map(|r| r.to_string()).collect();
    assert!(said.iter().any(|s| s.contains("no packing")), "{said:?}");
}

/// The bits of docs/heot.md, of both sides, counted.
#[test]
fn comparisons_and_choices_cost_what_the_tables_say() {
    let n = 640;
    let bits = |uses: Uses| {
        let total: u64 = uses.bytes.iter().sum();
        (8 * total / n as u64, (uses.transfers[0] + uses.transfers[1]) / n, uses.steps)
    };
    assert_eq!(bits(compare::carry_uses(24, n)), (165, 38, 5));
    assert_eq!(bits(compare::carry_uses(36, n)), (255, 58, 6));
    assert_eq!(bits(compare::carry_uses(40, n)), (287, 66, 6));
    assert_eq!(bits(compare::carry_uses(63, n)), (460, 103, 7));
    assert_eq!(bits(compare::carry_uses(12, n)).1, 18);
    let relu = |from, to| bits(compare::carry_uses(from - 1, n).then(mux::widen_uses([from, to], n)));
    assert_eq!(relu(25, 37), (266, 41, 7));
    assert_eq!(relu(25, 25), (217, 40, 7));
    assert_eq!(bits(leaf::uses(24, n, Wanted::Less)), (129, 24, 2));
}

/// A program of one step at both sides, with transfers enough.
fn both<T: Send>(program: impl Fn(&mut Cx, &mut Prg) -> T + Sync) -> Vec<T> {
    Mesh::new(2).run(|links| {
        let side = Side::ALL[links.me()];
        let mut transfers = pair(links, [1 << 19; 2]);
        let mut prg = Seed::from_bytes([links.me() as u8; 16]).stream();
        let channel = links.to(1 - links.me());
        let mut cx = Cx::new(side, channel, &mut transfers, Seed::from_bytes([9; 16]), 1);
        program(&mut cx, &mut prg)
    })
}

/// All pairs of shares of small rings: no case is left out.
#[test]
fn carries_and_signs_of_all_small_shares_are_right() {
    for bits in [1, 2, 3, 4, 6] {
        let n = 1usize << (2 * bits);
        let ring = Ring::new(bits);
        let own = |side: Side| -> Vec<u64> {
            (0..n as u64).map(|i| ring.wrap(i >> (bits * side as u32))).collect()
        };
        let found = both(|cx, _| {
            let x = own(cx.side);
            let carry = compare::carry(cx, bits, &x).unwrap();
            let negative = compare::negative(cx, ring, &x).unwrap();
            [carry, negative, compare::zero(cx, ring, &x).unwrap()]
        });
        let (s, c) = (own(Side::Server), own(Side::Client));
        for i in 0..n {
            let of = |which: usize| found.iter().fold(0, |sum, f| sum ^ planes::bit(&f[which], i));
            assert_eq!(of(0), (s[i] + c[i]) >> bits, "carry of {} and {}", s[i], c[i]);
            assert_eq!(of(1), ring.msb(s[i] + c[i]), "sign of {} and {}", s[i], c[i]);
            assert_eq!(of(2), u64::from(ring.wrap(s[i] + c[i]) == 0), "{} and {}", s[i], c[i]);
        }
    }
}

/// Shares, one a side, of the ends of a ring, of what is near 0, and of uniform elements: 67 of them, which fill no word.
fn ends(ring: Ring, prg: &mut Prg) -> [Vec<u64>; 2] {
    let (half, n) = (1u64 << (ring.bits() - 1), 67);
    let mut x = vec![0, 1, ring.mask(), half, half - 1, half.wrapping_add(1)];
    x.extend(prg.elements(ring, n - x.len()));
    let server = prg.elements(ring, n);
    let client = x.iter().zip(&server).map(|(x, s)| ring.wrap(x.wrapping_sub(*s))).collect();
    [server, client]
}

/// Sums of both sides' shares.
fn sums(ring: Ring, shares: &[Vec<u64>]) -> Vec<u64> {
    shares[0].iter().zip(&shares[1]).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
}

/// From the narrowest rings to the widest, and between neighbours, at the ends of each.
#[test]
fn gates_are_right_at_the_ends_of_every_kind_of_ring() {
    let mut prg = Seed::random().stream();
    for (from, to) in [(2, 2), (2, 3), (2, 64), (6, 7), (33, 64), (63, 64), (64, 64)] {
        let [from, to] = [from, to].map(Ring::new);
        let x = ends(from, &mut prg);
        let found = both(|cx, _| crate::gates::relu::relu(cx, [from, to], &x[cx.side as usize]).unwrap());
        let positive = |x: &u64| to.wrap(from.signed(*x).max(0) as u64);
        let truth: Vec<u64> = sums(from, &x).iter().map(positive).collect();
        assert_eq!(sums(to, &found), truth, "{from} to {to}");
    }
    for k in [1, 2, 3, 63, 64] {
        let ring = Ring::new(k);
        let (x, y, d) = (ends(ring, &mut prg), ends(ring, &mut prg), ends(Ring::new(1), &mut prg));
        let found = both(|cx, _| {
            let i = cx.side as usize;
            let (bits, n) = (planes::plane(&d[i], 0), x[i].len());
            let chosen = mux::choose(cx, ring, &bits, &x[i]).unwrap();
            let product = product::multiply(cx, ring, &x[i], &y[i], Second::Shared).unwrap();
            [chosen, product, mux::element(cx, ring, &bits, n).unwrap()]
        });
        let of = |which: usize| sums(ring, &[found[0][which].clone(), found[1][which].clone()]);
        let bits: Vec<u64> = d[0].iter().zip(&d[1]).map(|(a, b)| a ^ b).collect();
        let (x, y) = (sums(ring, &x), sums(ring, &y));
        for i in 0..x.len() {
            let truth = [x[i] * bits[i], ring.wrap(x[i].wrapping_mul(y[i])), bits[i]];
            assert_eq!([0, 1, 2].map(|which| of(which)[i]), truth, "{ring}, element {i}");
        }
    }
}

/// What is sent, and what both sides end with but a part of it, has no relation in any combination of bits: with operands
/// fixed, all of it is new in every run.
#[test]
fn messages_are_uniform_whatever_the_operands_are() {
    let (from, to, n) = (Ring::new(5), Ring::new(9), 8);
    let rows = 1200;
    let x: [Vec<u64>; 2] = [vec![3, 0, 31, 16, 15, 1, 8, 30], vec![0, 0, 31, 16, 1, 30, 9, 3]];
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let shares = mesh.run(|links| {
        let side = Side::ALL[links.me()];
        let mut transfers = pair(links, [1 << 20; 2]);
        let channel = links.to(1 - links.me());
        let mut cx = Cx::new(side, channel, &mut transfers, Seed::random(), 1);
        let row = |_| crate::gates::relu::relu(&mut cx, [from, to], &x[side as usize]).unwrap();
        (0..rows).map(row).collect::<Vec<_>>()
    });
    let run = |sent: Vec<Sent>| sent.into_iter().filter(|s| s.step.id > 0).collect();
    let sent: Vec<Vec<Sent>> = log.all().into_iter().map(run).collect();
    let mut number = 0;
    let found = unseen(|| {
        let mut view = View::default();
        for sent in &sent {
            let each = sent.len() / rows;
            for message in &sent[number * each..(number + 1) * each] {
                // eight elements: no plane has padding
                view.elements(message.step.name.to_string(), Ring::new(8), &words(&message.bytes));
            }
        }
        view.elements("the client's shares".into(), to, &shares[1][number]);
        number += 1;
        view
    });
    assert_eq!(found, Ok(()), "{n} elements");
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.iter().map(|b| u64::from(*b)).collect()
}

/// Messages of another length, bits past the last element, sessions of the other side, layers that were not prepared.
#[test]
fn wrong_messages_and_sessions_are_refused_with_their_reason() {
    let plan = cases().into_iter().find(|case| case.name.starts_with("small network")).unwrap().plan;
    let mut prg = Seed::random().stream();
    let weights = plan.nodes.iter().filter_map(|node| {
        let Op::Weight { name, .. } = &node.op else { return None };
        Some((name.clone(), prg.elements(Ring::new(20), node.ty.len())))
    });
    let weights: BTreeMap<String, Vec<u64>> = weights.collect();
    let server = Session::serve(&plan, &weights, 1, 1, &mut prg).unwrap();
    let [header, hints] = server.hints().unwrap();
    for found in [0, HEADER_BYTES - 1, HEADER_BYTES + 1] {
        let mut bytes = header.to_vec();
        bytes.resize(found, 0);
        assert!(Announced::read(&plan, &bytes, 1).is_err(), "{found} bytes announce nothing");
    }
    let announced = || Announced::read(&plan, header, 1).unwrap();
    assert_eq!(announced().bytes(), hints.len());
    let error = announced().finish(&hints[1..]).unwrap_err().to_string();
    assert!(error.contains("were announced"), "{error}");
    let client = announced().finish(hints).unwrap();
    assert!(client.hints().is_none() && server.mask(&mut prg).is_none());
    let (_, message) = client.mask(&mut prg).unwrap();
    assert_eq!([message.len(); 2], [client.mask_bytes(), server.mask_bytes()]);
    for found in [0, message.len() - 1, message.len() + 1] {
        let mut bytes = message.clone();
        bytes.resize(found, 0);
        assert!(server.masked(&bytes).unwrap_err().to_string().contains("were due"));
    }
    assert!(client.masked(&message).is_err() && server.masked(&message).is_ok());
    // a norm for which there are no parameters
    let mut lean = header.to_vec();
    lean[16] = 255;
    assert!(Announced::read(&plan, &lean, 1).unwrap_err_text().contains("modulus"));
    let missing = Session::serve(&plan, &BTreeMap::new(), 1, 1, &mut prg).unwrap_err().to_string();
    assert!(missing.contains("was not given"), "{missing}");
    let refused = Mesh::new(2).run(|links| {
        let side = Side::ALL[links.me()];
        let mut transfers = pair(links, [1; 2]);
        let channel = links.to(1 - links.me());
        let mut cx = Cx::new(side, channel, &mut transfers, Seed::from_bytes([9; 16]), 1);
        // three elements in a byte: nothing may be past them
        assert!(cx.plane(3, &[7]).is_ok() && cx.masked_bits(3, &[7]).is_ok());
        let mut said = vec![cx.plane(3, &[8]).unwrap_err_text(), cx.masked_bits(3, &[8]).unwrap_err_text()];
        said.push(cx.words(Ring::new(3), &[0], 3).unwrap_err_text());
        let (own, other) = match side {
            Side::Server => (&server, &client),
            Side::Client => (&client, &server),
        };
        let zeros = zero_inputs(&plan);
        for session in [other, own] {
            let given = Given { inputs: zeros.clone(), ..Given::default() };
            let record = match side {
                Side::Server => Record { layers: Layers::Server(BTreeMap::new()) },
                Side::Client => Record { layers: Layers::Client(BTreeMap::new()) },
            };
            said.push(run(&mut cx, &plan, session, record, given, &mut |_, _| {}).unwrap_err_text());
        }
        said
    });
    for said in refused {
        for (said, why) in said.iter().zip(["bits past", "", "", "of the other side", "was not prepared"]) {
            assert!(said.contains(why), "{said}");
        }
    }
}

/// Shares of inputs that are nothing but zeros.
fn zero_inputs(plan: &Plan) -> HashMap<ValueId, Vec<u64>> {
    let nodes = plan.nodes.iter().enumerate().filter(|(_, node)| matches!(node.op, Op::Input { .. }));
    nodes.map(|(v, node)| (v, vec![0; node.ty.len()])).collect()
}

trait ErrorText {
    fn unwrap_err_text(self) -> String;
}

impl<T> ErrorText for Result<T, crate::RunError> {
    fn unwrap_err_text(self) -> String {
        self.map(|_| ()).unwrap_err().to_string()
    }
}
