//! The shared suite, against the interpreter; what is declared against what is counted; and the tables of docs/heot.md.

use crate::coins::Drawn;
use crate::context::Cx;
use crate::evaluator::walk;
use crate::gate::{At, Kind, kind};
use crate::hints::Life;
use crate::leaf::{self, Leaves, Wanted};
use crate::material::{Stock, needs, source, transfers};
use crate::product::{self, Second};
use crate::{
    Given, Heot, Hints, Outcome, Session, Side, Uses, Weights, compare, make_material, most_runs, mux,
    planes, refusals,
};
use privet_family::keys::{KeyError, MemoryKeys};
use privet_family::{Forecast, is_static};
use privet_net::Step;
use privet_ot::{Pair, Source, Width};
use privet_plan::Plan;
use privet_plan::cost::{Operation, Prices, known};
use privet_plan::interpret_step;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type, ValueId};
use privet_plan::suite::{Case, Operands, View, cases, joined_cases, optional_cases, training_cases, unseen};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::{Ring, Tensor};
use privet_testkit::{Links, Mesh, Sent, record};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The number of a run's first step, above those of what is prepared.
const FIRST: u32 = 1 << 20;

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
    name: [u8; 32],
}

/// What a side keeps of a run.
fn kept(make: impl FnOnce(crate::Keep<'_>)) -> MemoryKeys {
    let mut frames = MemoryKeys::default();
    make(&mut |message| {
        frames.push(message.to_vec());
        Ok(())
    });
    frames
}

/// The side's weights, of an operand's names.
fn weights(operands: &Operands) -> BTreeMap<String, Vec<u64>> {
    operands.iter().map(|(name, t)| (name.clone(), t.data().to_vec())).collect()
}

/// Hints that are made for this.
fn hints(plan: &Plan, w: &BTreeMap<String, Vec<u64>>) -> Arc<Hints> {
    let weights = Weights::new(plan, w).unwrap();
    Arc::new(Hints::make(plan, Arc::new(weights), 10, 1).unwrap())
}

fn session(links: &mut Links, plan: &Plan, w: &BTreeMap<String, Vec<u64>>) -> Session {
    let side = Side::ALL[links.me()];
    let channel = links.to(1 - links.me());
    match side {
        Side::Server => Session::serve(plan, hints(plan, w), channel).unwrap(),
        Side::Client => Session::join(plan, 1, channel).unwrap(),
    }
}

fn party(links: &mut Links, plan: &Plan, operands: &[Operands; 2], seed: &Seed) -> Ran {
    let side = Side::ALL[links.me()];
    let mut made = kept(|keep| make_material(plan, side, 1, links.to(1 - links.me()), keep).unwrap());
    let stored = made.bytes() as u64;
    let session = session(links, plan, &weights(&operands[1]));
    let channel = links.to(1 - links.me());
    let mut masks = kept(|keep| session.make_masks(plan, channel, keep).unwrap());
    let publics = plan.nodes.iter().filter_map(|node| {
        let Op::Public { name, .. } = &node.op else { return None };
        Some((name.clone(), operands[0][name].data()[0]))
    });
    let inputs = shares(plan, side, &operands[0], seed);
    let given = Given { inputs, publics: publics.collect(), masks: &mut masks };
    let mut cx = Cx::new(side, channel, &mut made, seed.derive(Domain::Common, 0), FIRST);
    let mut shares = HashMap::new();
    let mut watch = |v: ValueId, share: &[u64]| drop(shares.insert(v, share.to_vec()));
    let outcome = walk(&mut cx, plan, &session, given, &mut watch).unwrap();
    let declared: Vec<Uses> = (0..plan.nodes.len()).map(|v| declared(plan, &session, v)).collect();
    drop(cx);
    assert_eq!([made.bytes(), masks.bytes()], [0; 2], "all of a record is read, and none of it twice");
    let said: u64 = declared.iter().map(|uses| uses.stored()[side as usize]).sum();
    assert_eq!(stored, said, "bytes of the record of the {side:?}");
    Ran { outcome, declared, shares, name: *session.name() }
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
        let logged: Vec<_> = log.of(side as usize).into_iter().filter(|sent| sent.step.id > FIRST).collect();
        assert_eq!(sent, record::bytes(&logged), "{}: bytes that {side:?} sent", case.name);
        let made: u64 = ran.declared.iter().map(|uses| uses.made().bytes[side as usize]).sum();
        assert_eq!(made, before(&log.of(side as usize)), "{}: what {side:?} sent before", case.name);
    }
    assert_eq!(ran[0].name, ran[1].name, "{}: both sides name the hints alike", case.name);
    let hints = log.of(0).into_iter().filter(|sent| sent.step.name.ends_with(" / hint"));
    let hints = record::bytes(&hints.collect::<Vec<_>>()) as f64;
    // norms may be larger than a price assumes, and other packings best for them
    let said = Heot.session(&case.plan).wire_bytes as f64;
    let near = (0.4 * hints..=2.5 * hints).contains(&said);
    assert!(near, "{}: {hints} bytes of hints, {said} said", case.name);
    openings(case, &[0, 1].map(|side| log.of(side)));
    prices(case, &ran);
}

/// The audit lists what the sides opened to each other, in their order, with its size.
fn openings(case: &Case, sent: &[Vec<Sent>; 2]) {
    let planned: Vec<_> =
        Heot.openings(&case.plan).into_iter().filter(|o| o.what.starts_with("masked ")).collect();
    let opened = sent.each_ref().map(|sent| -> Vec<&Sent> {
        let of_both =
            |name: &str| name.ends_with(" / masked factors") || name.ends_with(" / masked matrices");
        let is_one = |sent: &&Sent| sent.step.id > FIRST && of_both(&sent.step.name);
        sent.iter().filter(is_one).collect()
    });
    for sent in &opened {
        assert_eq!(sent.len(), planned.len(), "{}: openings of operands", case.name);
    }
    for ((planned, server), client) in planned.iter().zip(&opened[0]).zip(&opened[1]) {
        assert_eq!(*server.step.name, *format!("{} / {}", planned.layer, planned.what), "{}", case.name);
        let node = &case.plan.nodes[planned.node.unwrap()];
        let known = matches!(node.op, Op::Mul) && node.inputs.iter().any(|i| is_static(&case.plan, *i));
        // where the server knows one operand, each side opens one of them and not its share of both
        let shares = if known { 1 } else { 2 };
        let bits = 8 * (server.bytes.len() + client.bytes.len()) as u64;
        let said = shares * planned.bits;
        assert!(bits >= said && bits < said + 32, "{}: {bits} bits opened, {planned:?}", case.name);
    }
}

/// Bytes of messages that make material, beside those of transfers and of the public coins.
fn before(sent: &[Sent]) -> u64 {
    let is_one = |sent: &&Sent| {
        let name = &*sent.step.name;
        name == "corrections" || name.starts_with("encrypted") && !name.ends_with("public coins")
    };
    sent.iter().filter(is_one).map(|sent| sent.bytes.len() as u64).sum()
}

/// A price is what both sides counted; of a layer with a hint it is near it.
fn prices(case: &Case, ran: &[Ran]) {
    let known = known(&case.plan);
    for (v, node) in case.plan.nodes.iter().enumerate() {
        let Kind::Gate(_) = kind(&node.op) else { continue };
        if node.op.is_local() || is_static(&case.plan, v) || node.ty.is_empty() {
            continue;
        }
        let cost = Heot.operation(&Operation::of(&case.plan, v, &known));
        let used = &ran[0].outcome.used[v];
        let sent = used.bytes[0].max(used.bytes[1]);
        assert_eq!(cost.rounds, used.steps, "{}: steps of node {v}", case.name);
        if crate::gates::linear::has_hint(&At { plan: &case.plan, id: v }) {
            let off = cost.wire_bytes as f64 / sent as f64;
            assert!((0.4..2.5).contains(&off), "{}: node {v} sent {sent}, {cost:?}", case.name);
        } else {
            assert_eq!(cost.wire_bytes, sent, "{}: bytes of node {v}", case.name);
            let stored = [cost.key_bytes, cost.key_bytes_other];
            assert_eq!(stored, used.stored(), "{}: bytes of the records of node {v}", case.name);
            let made = used.made();
            let offline = [cost.offline.wire_bytes, cost.offline.values];
            assert!(offline[0] >= made.bytes[0].max(made.bytes[1]), "{}: node {v}", case.name);
            assert_eq!(offline[1], made.values, "{}: transforms of node {v}", case.name);
            let read = [0, 1].map(|side: usize| ran[side].outcome.nodes[v].key_bytes);
            assert_eq!(read, stored, "{}: what node {v} read of the records", case.name);
        }
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

/// Material of many rounds and many chunks: two widths of comparison, so that rounds begin within nodes.
#[test]
fn material_by_ferret_is_read_as_it_was_made() {
    let ty = |bits| Type { shape: vec![20_000], bits, frac: 0 };
    let node = |op, inputs: &[ValueId], bits| {
        let (inputs, layer) = (inputs.to_vec(), format!("{bits} bits"));
        Node { op, inputs, ty: ty(bits), layer, form: None }
    };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let relus = [37, 64].map(|bits| node(Op::Relu, &[if bits == 37 { 0 } else { 1 }], bits));
    let nodes = [vec![node(input, &[], 25)], relus.to_vec(), vec![node(Op::Max, &[2, 2], 64)]].concat();
    let outputs = vec![Output { value: 3, name: "y".into(), to: "receiver".into() }];
    let (name, updates) = ("many".into(), Vec::new());
    let plan = Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates };
    let both: usize = transfers(&needs(&plan)).iter().sum();
    assert!(matches!(source(both), Source::Ferret(p) if both > p.usable()), "{both} transfers");
    let ring = Ring::new(25);
    let x = Seed::random().stream().elements(ring, 20_000);
    let operands =
        [[("x".to_owned(), Tensor::new(vec![20_000], x.clone()).unwrap())].into(), Operands::new()];
    let seed = Seed::random();
    let ran = Mesh::new(2).run(|links| party(links, &plan, &operands, &seed));
    let found = ran[0].outcome.outputs[0].iter().zip(ran[1].outcome.outputs[0].iter());
    for ((a, b), x) in found.zip(&x) {
        assert_eq!(a.wrapping_add(*b), ring.signed(*x).max(0) as u64);
    }
}

/// A product of so many pairs of matrices that both sides share.
fn of_matrices(bits: u32, [count, m, k, o]: [usize; 4]) -> Plan {
    let ty = |shape: &[usize]| Type { shape: shape.to_vec(), bits, frac: 0 };
    let input = |name: &str| Op::Input { name: name.into(), owner: "data_owner".into(), limit: 1.0 };
    let node = |op, inputs: &[ValueId], shape: &[usize]| Node {
        op,
        inputs: inputs.to_vec(),
        ty: ty(shape),
        layer: "attention".into(),
        form: None,
    };
    let nodes = vec![
        node(input("x"), &[], &[count, m, k]),
        node(input("y"), &[], &[count, k, o]),
        node(Op::MatMul, &[0, 1], &[count, m, o]),
    ];
    let outputs = vec![Output { value: 2, name: "z".into(), to: "receiver".into() }];
    let (name, updates) = (format!("{bits} bits"), Vec::new());
    Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates }
}

/// Products of matrices that both sides share, several side by side: by encryption in several chunks, and by transfers.
#[test]
fn products_of_secret_matrices_are_right_in_every_ring() {
    for (bits, [count, m, k, o], encrypted) in [
        (37, [5, 128, 64, 128], true),
        (64, [2, 9, 70, 20], true),
        (45, [3, 40, 1, 40], true),
        (20, [1, 2, 3, 2], false),
    ] {
        let plan = of_matrices(bits, [count, m, k, o]);
        plan.check().unwrap();
        let is_encrypted = needs(&plan).iter().any(|need| need.of.is_encrypted());
        assert_eq!(is_encrypted, encrypted, "{bits} bits");
        check(&Case { name: plan.name.clone(), plan }, &Seed::random());
    }
}

/// No product of a transformer is refused in any ring: distances of a run's products stay below 2^-40 together.
#[test]
fn products_of_matrices_have_parameters_in_every_ring() {
    for bits in 1..=64 {
        for (m, k, o) in [(1, 1, 1), (128, 64, 128), (128, 128, 64), (1024, 64, 1024), (1024, 1024, 64)] {
            let of = crate::matrices::Matrices { ring: Ring::new(bits), m, k, o };
            assert!(of.fits().is_ok(), "{bits} bits, {m} x {k} x {o}: {:?}", of.fits());
        }
    }
}

/// Products of thousands of elements by encryption, in several chunks; of fewer, and of one that the server knows, by transfers.
#[test]
fn products_of_many_elements_are_right() {
    for (bits, n) in [(64, (1 << 16) + 5000), (64, 3), (37, 100)] {
        let ty = || Type { shape: vec![n], bits, frac: 0 };
        let input = |name: &str| Op::Input { name: name.into(), owner: "data_owner".into(), limit: 1.0 };
        let node = |op, inputs: &[ValueId]| Node {
            op,
            inputs: inputs.to_vec(),
            ty: ty(),
            layer: "gelu".into(),
            form: None,
        };
        let nodes = vec![node(input("x"), &[]), node(input("y"), &[]), node(Op::Mul, &[0, 1])];
        let outputs = vec![Output { value: 2, name: "z".into(), to: "receiver".into() }];
        let (name, updates) = (format!("{n} elements of {bits} bits"), Vec::new());
        let plan = Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates };
        plan.check().unwrap();
        let is_slotted = needs(&plan).iter().any(|need| need.of.is_encrypted());
        assert_eq!(is_slotted, n > 1000, "{n} elements");
        check(&Case { name: plan.name.clone(), plan }, &Seed::random());
    }
}

/// What two runs use up has nothing alike: words of A, of B, of factors.
#[test]
fn material_of_two_runs_differs() {
    let plan = of_matrices(37, [2, 20, 30, 10]);
    assert!(needs(&plan).iter().any(|need| need.of.is_encrypted()));
    let drawn = Mesh::new(2).run(|links| {
        let (side, peer) = (Side::ALL[links.me()], 1 - links.me());
        let make =
            |links: &mut Links| kept(|keep| make_material(&plan, side, 1, links.to(peer), keep).unwrap());
        [0, 1].map(|_| make(links).frames().map(<[u8]>::to_vec).collect::<Vec<_>>())
    });
    for [first, second] in drawn {
        let words = |frames: &[Vec<u8>]| -> Vec<u64> {
            let all = frames
                .iter()
                .flat_map(|frame| frame.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)));
            all.filter(|word| *word >> 32 != 0).collect()
        };
        let first: std::collections::HashSet<u64> = words(&first).into_iter().collect();
        let again = words(&second).iter().filter(|word| first.contains(word)).count();
        assert_eq!(again, 0, "words that came twice");
    }
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
        (8 * total / n as u64, uses.transfers().iter().sum::<usize>() / n, uses.steps)
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
    let stored = |uses: Uses| uses.stored().map(|bytes| 8 * bytes / n as u64);
    assert_eq!(stored(compare::carry_uses(24, n)), [149, 68]);
    assert_eq!(stored(compare::carry_uses(36, n)), [231, 106]);
    assert_eq!(stored(compare::carry_uses(36, n).then(mux::widen_uses([37, 37], n))), [343, 218]);
    assert_eq!(stored(compare::carry_uses(24, n).then(mux::widen_uses([25, 37], n))), [285, 181]);
}

/// A program of one step at both sides, with transfers enough.
fn both<T: Send>(program: impl Fn(&mut Cx, &mut Prg) -> T + Sync) -> Vec<T> {
    Mesh::new(2).run(|links| {
        let side = Side::ALL[links.me()];
        let stock = Stock::fresh(pair(links, [1 << 19; 2]), Seed::random().stream(), 0);
        let mut prg = Seed::from_bytes([links.me() as u8; 16]).stream();
        let channel = links.to(1 - links.me());
        let mut cx = Cx::with(side, channel, stock, Seed::from_bytes([9; 16]), 1);
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
        let stock = Stock::fresh(pair(links, [1 << 20; 2]), Seed::random().stream(), 0);
        let channel = links.to(1 - links.me());
        let mut cx = Cx::with(side, channel, stock, Seed::random(), 1);
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

fn small_network() -> (Plan, BTreeMap<String, Vec<u64>>) {
    let plan = cases().into_iter().find(|case| case.name.starts_with("small network")).unwrap().plan;
    let mut prg = Seed::random().stream();
    let weights = plan.nodes.iter().filter_map(|node| {
        let Op::Weight { name, .. } = &node.op else { return None };
        Some((name.clone(), prg.elements(Ring::new(20), node.ty.len())))
    });
    let weights = weights.collect();
    (plan, weights)
}

/// Bits past the last element, sessions of the other side, masks that are another session's or not there, records cut off.
#[test]
fn wrong_messages_sessions_and_records_are_refused_with_their_reason() {
    let (plan, weights) = small_network();
    let refused = Mesh::new(2).run(|links| {
        let side = Side::ALL[links.me()];
        let (plan, zeros) = (&plan, zero_inputs(&plan));
        let own = session(links, plan, &weights);
        // of which the other side has the other one
        let other = match side {
            Side::Server => Session::join(plan, 1, links.to(1)),
            Side::Client => Session::serve(plan, hints(plan, &weights), links.to(0)),
        };
        let other = other.unwrap();
        let channel = links.to(1 - links.me());
        let [mut short, mut cut] = [0, 1].map(|_| kept(|keep| keep(&[0]).unwrap()));
        let mut said = Vec::new();
        let mut none = |_: &[u8]| Err(KeyError::Corrupt("the disk is full".into()));
        said.push(make_material(plan, side, 1, channel, &mut none).unwrap_err_text());
        let mut cx = Cx::new(side, channel, &mut cut, Seed::from_bytes([9; 16]), 1);
        let of = Leaves { bits: 3, wanted: Wanted::Less };
        said.push(cx.take(of, 8).unwrap_err_text());
        said.push(cx.take(of, 8).unwrap_err_text());
        // three elements in a byte: nothing may be past them
        assert!(cx.incoming(3, vec![7]).is_ok());
        said.push(cx.incoming(3, vec![7, 8]).unwrap_err_text());
        for session in [&other, &own] {
            let given = Given { inputs: zeros.clone(), publics: BTreeMap::new(), masks: &mut short };
            said.push(walk(&mut cx, plan, session, given, &mut |_, _| {}).unwrap_err_text());
        }
        said
    });
    let whys = ["the disk is full", "were due", "has ended", "bits past", "of the other side", "were due"];
    for said in refused {
        assert_eq!(said.len(), whys.len());
        for (said, why) in said.iter().zip(whys) {
            assert!(said.contains(why), "{said}");
        }
    }
}

/// What announces hints is read in full or not at all; parameters that nobody has are refused, and weights that are not there.
#[test]
fn announcements_that_nobody_can_read_are_refused() {
    let (plan, weights) = small_network();
    let announced = |bytes: &[u8]| {
        Mesh::new(2).run(|links| {
            let side = Side::ALL[links.me()];
            let channel = links.to(side.other() as usize);
            match side {
                Side::Server => {
                    channel.send(&Step::new(1, "announced hints"), bytes.to_vec()).unwrap();
                    String::new()
                }
                Side::Client => Session::join(&plan, 1, channel).map(|_| ()).unwrap_err().to_string(),
            }
        })[1]
            .clone()
    };
    // a norm for which there are no parameters
    let mut wide = vec![7; 25];
    (wide[16], wide[24]) = (255, 0);
    assert!(announced(&wide).contains("modulus"), "{}", announced(&wide));
    assert!(announced(&[0; 24]).contains("24 bytes"), "{}", announced(&[0; 24]));
    let missing = Weights::new(&plan, &BTreeMap::new()).unwrap_err_text();
    assert!(missing.contains("was not given"), "{missing:?}");
    assert_eq!(weights.len(), plan.nodes.iter().filter(|n| matches!(n.op, Op::Weight { .. })).count());
}

/// Hints draw all anew: two sets at equal weights have nothing alike, and masks neither.
#[test]
fn hints_and_masks_of_equal_weights_differ() {
    let (plan, weights) = small_network();
    let drawn = Mesh::new(2).run(|links| {
        let mut all = Vec::new();
        for _ in 0..2 {
            let session = session(links, &plan, &weights);
            for _ in 0..2 {
                let masks = kept(|keep| session.make_masks(&plan, links.to(1 - links.me()), keep).unwrap());
                all.push((*session.name(), masks.frames().map(<[u8]>::to_vec).collect::<Vec<_>>()));
            }
        }
        all
    });
    assert!(drawn[0].iter().zip(&drawn[1]).all(|(server, client)| server.0 == client.0));
    for drawn in drawn {
        assert!(drawn[0].0 == drawn[1].0 && drawn[2].0 == drawn[3].0 && drawn[0].0 != drawn[2].0);
        for (i, (_, masks)) in drawn.iter().enumerate() {
            let others = drawn.iter().enumerate().filter(|(j, _)| *j != i).flat_map(|(_, d)| &d.1);
            assert!(others.into_iter().all(|other| !masks.contains(other)), "masks {i} came twice");
        }
    }
    let outputs: u64 = 1 << 34;
    assert!(most_runs(&plan) > 1 << 20 && most_runs(&plan) < outputs);
}

/// One set of hints for two clients: the same bytes for both, masks of their own, and runs that are counted together.
#[test]
fn sessions_of_several_clients_share_hints_and_their_life() {
    let (plan, weights) = small_network();
    let shared = hints(&plan, &weights);
    let begun = |_: usize| {
        Mesh::new(2).run(|links| {
            let side = Side::ALL[links.me()];
            let channel = links.to(1 - links.me());
            let session = match side {
                Side::Server => Session::serve(&plan, Arc::clone(&shared), channel).unwrap(),
                Side::Client => Session::join(&plan, 1, channel).unwrap(),
            };
            let masks = kept(|keep| session.make_masks(&plan, channel, keep).unwrap());
            (session, masks.frames().map(<[u8]>::to_vec).collect::<Vec<_>>())
        })
    };
    let sessions = [0, 1].map(begun);
    let names: Vec<&[u8; 32]> = sessions.iter().flatten().map(|(session, _)| session.name()).collect();
    assert!(names.iter().all(|name| *name == names[0]), "all hold the same hints");
    for (first, second) in sessions[0].iter().zip(&sessions[1]) {
        assert!(first.1.iter().all(|mask| !second.1.contains(mask)), "clients have masks of their own");
    }
    let whole = most_runs(&plan);
    for (n, session) in [0, 1, 1, 0, 1].into_iter().enumerate() {
        assert!(sessions[session][0].0.take_run());
        let left = whole - n as u64 - 1;
        assert!(sessions.iter().all(|both| both[0].0.runs_left() == left) && shared.runs_left() == left);
    }
    assert_eq!(sessions[0][1].0.runs_left(), whole, "a client counts its own");
}

/// Whoever asks at the same time: no run is given twice, and none beyond the last.
#[test]
fn a_life_ends_after_its_last_run() {
    let (runs, life) = (1000, Life::of(1000));
    let taken: u64 = std::thread::scope(|scope| {
        let asks = || (0..runs).filter(|_| life.take()).count() as u64;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(asks)).collect();
        all.into_iter().map(|asks| asks.join().unwrap()).sum()
    });
    assert_eq!((taken, life.left(), life.take()), (runs, 0, false));
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
