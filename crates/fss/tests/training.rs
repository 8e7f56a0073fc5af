//! What outlives a run: states over several steps, on records that know nothing of each other.

mod common;

use common::{NUMBER, RecordCoins, World};
use privet_fss::{SessionMasks, States, dropout_coins};
use privet_plan::interpret_step;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type, Update};
use privet_plan::suite::{Case, ChiSquare, LIMIT, Operands, training_cases};
use privet_prg::{Domain, HashKeys, Seed};
use privet_ring::{Ring, Tensor};
use privet_testkit::Mesh;

/// Three states: two change places, the first of them doubled; the third becomes a weight.
fn exchange() -> Case {
    let ty = Type { shape: vec![20], bits: 30, frac: 0 };
    let owner = || "model_owner".to_owned();
    let state = |name: &str| Op::State { name: name.into(), owner: owner() };
    let node = |op, inputs: &[usize]| Node {
        op,
        inputs: inputs.to_vec(),
        ty: ty.clone(),
        layer: String::new(),
        form: None,
    };
    let nodes = vec![
        node(state("a"), &[]),
        node(state("b"), &[]),
        node(state("c"), &[]),
        node(Op::Weight { name: "w".into(), owner: owner() }, &[]),
        node(Op::MulConst { value: 2 }, &[0]),
        node(Op::Mul, &[1, 2]),
    ];
    let update = |state, value| Update { state, value };
    let plan = Plan {
        version: PLAN_VERSION,
        name: "exchange".into(),
        batch: 20,
        nodes,
        outputs: vec![Output { value: 5, name: "y".into(), to: "receiver".into() }],
        updates: vec![update(0, 1), update(1, 4), update(2, 3)],
    };
    plan.check().unwrap();
    Case { name: "exchange".into(), plan }
}

fn operands(case: &Case, seed: &Seed) -> [Operands; 2] {
    let mut stream = seed.stream();
    case.operands(&mut || stream.elements(Ring::R64, 1)[0])
}

#[test]
fn steps_follow_each_other_on_fresh_records() {
    let cases = training_cases().into_iter().filter(|case| !case.plan.updates.is_empty());
    for case in cases.chain([exchange()]) {
        let [mut inputs, mut weights] = operands(&case, &Seed::random());
        let session = Seed::random();
        let mut held: Option<[States; 2]> = None;
        for step in 0..4 {
            let record = session.derive(Domain::Record, step);
            let both = [inputs, weights];
            let (mut world, mut keys) = World::new(&case.plan, &both, &session, &record);
            [inputs, weights] = both;
            // From the second step on, what the parties hold is what the last run left them.
            let states = held.get_or_insert_with(|| world.states.clone());
            world.states.clone_from(states);
            let masks = SessionMasks::new(&case.plan, world.device.as_ref(), &session);
            let mut coins = RecordCoins { plan: &case.plan, session: masks, record: &record };
            let (outputs, updates) = interpret_step(&case.plan, &inputs, &weights, &mut coins).unwrap();
            let [k0, k1] = &mut keys;
            let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
            case.compare(&world.outputs([&y0, &y1]), &outputs);
            for (states, done) in states.iter_mut().zip([y0, y1]) {
                states.replace(done.updates);
            }
            for (name, value) in &updates {
                let [a, b] = states.each_ref().map(|s| s.get(name).unwrap());
                let node =
                    case.plan.nodes.iter().find(|n| matches!(&n.op, Op::State { name: n, .. } if n == name));
                let sum = common::add(Ring::new(node.unwrap().ty.bits), a, b);
                assert_eq!(sum, value.data(), "{}: `{name}` after step {step}", case.name);
                assert_ne!(a, value.data(), "{}: a share is not the value", case.name);
            }
            weights.extend(updates);
        }
    }
}

/// The same state in two records: what is sent and what is opened differ in every element.
#[test]
fn a_state_that_stays_is_opened_under_another_mask_each_time() {
    let case = exchange();
    let both = operands(&case, &Seed::random());
    let session = Seed::random();
    let sent = [0, 1].map(|i| {
        let (world, mut keys) = World::new(&case.plan, &both, &session, &session.derive(Domain::Record, i));
        let mut mesh = Mesh::new(2);
        let log = mesh.record();
        let [k0, k1] = &mut keys;
        let _ = world.run([k0, k1], mesh).map(Result::unwrap);
        log.of(0).into_iter().take(3).map(|m| m.bytes).collect::<Vec<_>>()
    });
    for (first, second) in sent[0].iter().zip(&sent[1]) {
        let words = |bytes: &[u8]| privet_ring::unpack(Ring::new(30), bytes, 20).unwrap();
        assert!(words(first).iter().zip(words(second)).all(|(a, b)| *a != b));
    }
}

#[test]
fn what_is_missing_is_named_before_anything_is_sent() {
    let case = training_cases().into_iter().find(|c| c.name == "a step that updates states").unwrap();
    let both = operands(&case, &Seed::random());
    let (mut world, mut keys) = World::new(&case.plan, &both, &Seed::random(), &Seed::random());
    let mut error = |world: &World| {
        let mut links = Mesh::new(2).into_links();
        let a = links[0].to(1);
        let error = world.evaluate(0, &mut keys[0], a).unwrap_err().to_string();
        assert_eq!(a.meter().total().messages, 0);
        error
    };
    let states = world.states[0].clone();
    for name in ["w", "v", "still"] {
        let mut others = States::new();
        states.iter().filter(|(n, _)| *n != name).for_each(|(n, share)| others.insert(n, share.to_vec()));
        world.states[0] = others.clone();
        assert!(error(&world).contains(&format!("no share of state `{name}`")));
        others.insert(name, vec![1, 2]);
        world.states[0] = others;
        assert!(error(&world).contains(&format!("no share of state `{name}`")));
    }
    world.states[0] = states;
    world.publics.clear();
    assert_eq!(error(&world), "public number `rate` was not given");
}

/// Masks of what is made of a value several times, over and over: each is computed once, not once for every path.
#[test]
fn sums_of_sums_take_no_time() {
    let mut nodes = Vec::new();
    let mut add = |op, inputs: &[usize], shape: &[usize]| {
        let ty = Type { shape: shape.to_vec(), bits: 64, frac: 0 };
        nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer: String::new(), form: None });
        nodes.len() - 1
    };
    let mut x = add(Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 }, &[], &[2, 3]);
    for i in 0..60 {
        let shape = [[3, 2], [2, 3]][i % 2];
        let local = [Op::Reshape, Op::Permute { dims: vec![1, 0] }, Op::Reshape][i % 3].clone();
        let turned = add(local, &[x], &shape);
        let more = add(Op::AddConst { value: 3 }, &[turned], &shape);
        x = add(Op::Add, &[turned, more], &shape);
    }
    let square = add(Op::Mul, &[x, x], &[2, 3]);
    let output = |value, name: &str| Output { value, name: name.into(), to: "receiver".into() };
    let outputs = vec![output(x, "x"), output(square, "square")];
    let plan = Plan { version: PLAN_VERSION, name: "sums".into(), batch: 2, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    let case = Case { name: "sums".into(), plan };
    let both = operands(&case, &Seed::random());
    let (world, mut keys) = World::new(&case.plan, &both, &Seed::random(), &Seed::random());
    let [k0, k1] = &mut keys;
    let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
    let truth = privet_plan::interpret(&case.plan, &both[0], &both[1], &mut privet_plan::NoCoins).unwrap();
    case.compare(&world.outputs([&y0, &y1]), &truth);
}

#[test]
fn dropout_coins_are_fair_and_differ_by_record_stream_and_session() {
    let keys = |i| HashKeys::from_seed(&Seed::from_bytes([8; 16]).derive(Domain::Public, i));
    let n = 4096;
    let all = [(keys(0), 0, 0), (keys(0), 0, 1), (keys(0), 1, 0), (keys(1), 0, 0)]
        .map(|(hash, record, stream)| dropout_coins(&hash, record, stream, n));
    for (i, coins) in all.iter().enumerate() {
        assert_eq!(coins.len(), n);
        assert!(coins.iter().all(|c| c >> 32 == 0));
        let mut chi = ChiSquare::new();
        for bit in 0..32 {
            chi.coin(coins.iter().map(|c| c >> bit & 1).sum(), n as u64);
        }
        assert!(chi.deviate() < LIMIT, "deviate {:.1}", chi.deviate());
        for other in &all[..i] {
            assert!(coins.iter().zip(other).filter(|(a, b)| a == b).count() < 3);
        }
    }
    assert_eq!(
        dropout_coins(&keys(0), 0, 0, 7),
        all[0][..7],
        "a shorter draw is the beginning of a longer one"
    );
}

/// An element that is dropped is a public zero: nothing of the operand is left in it.
#[test]
fn dropped_elements_are_zero_at_both() {
    let case = training_cases().into_iter().find(|c| c.name == "dropout").unwrap();
    let both = operands(&case, &Seed::random());
    let (world, mut keys) = World::new(&case.plan, &both, &Seed::random(), &Seed::random());
    let [k0, k1] = &mut keys;
    let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
    let coins = dropout_coins(&world.hash, NUMBER, 0, 300);
    let x: &Tensor = &both[0]["x0"];
    for (i, coin) in coins.iter().enumerate() {
        let shares = [y0.outputs[0][i], y1.outputs[0][i]];
        match *coin < 1 << 31 {
            true => assert_eq!(Ring::new(40).wrap(shares[0].wrapping_add(shares[1])), x.data()[i]),
            false => assert_eq!(shares, [0, 0]),
        }
    }
}
