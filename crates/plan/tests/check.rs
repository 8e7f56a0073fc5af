//! Malformed plans and graphs are refused, each for its own reason; JSON and hashes are faithful.

mod common;

use common::build::Model;
use common::lower;
use common::{run, single, ty};
use privet_plan::functions::Function;
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Op, Plan, Rounding, Type};
use privet_plan::{Form, Graph, PlanError, Precision};
use privet_ring::{Conv2d, Pool2d};
use proptest::prelude::*;

fn small() -> (Model, Plan) {
    let mut m = Model::new(1, 2);
    let x = m.input(&[2, 1, 8, 8]);
    let c = m.conv(x, 2, 3, 1, 1, 1);
    let r = m.map(GraphOp::Relu, c);
    let window = window();
    let p = m.op(GraphOp::MaxPool2d { window }, &[r], &[2, 2, 4, 4]);
    let f = m.flatten(p);
    let l = m.linear(f, 3);
    m.finish(l);
    let plan = lower(&m.graph, &m.params, &Precision::default()).unwrap().plan;
    (m, plan)
}

fn window() -> Pool2d {
    Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false }
}

fn geometry() -> Conv2d {
    Conv2d {
        batch: 1,
        in_channels: 2,
        input: [4, 4],
        out_channels: 4,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 2,
    }
}

/// The problem of a single-node plan; panics when it is accepted.
fn refusal(op: Op, operands: &[Type], result: Type) -> String {
    match single(op.clone(), operands, result).check() {
        Err(PlanError::Node { problem, .. }) => problem,
        other => panic!("{op:?}: {other:?}"),
    }
}

fn accepted(op: Op, operands: &[Type], result: Type) {
    single(op, operands, result).check().unwrap();
}

#[test]
fn shapes_bits_and_fractions_are_checked_for_every_operation() {
    let t = |shape: &[usize]| ty(shape, 16, 4);
    let (a, b) = (t(&[2, 3]), t(&[3, 2]));
    for op in [Op::Add, Op::Sub, Op::Max] {
        accepted(op.clone(), &[a.clone(), a.clone()], a.clone());
        refusal(op.clone(), &[a.clone(), b.clone()], a.clone());
        refusal(op.clone(), &[a.clone(), ty(&[2, 3], 15, 4)], a.clone());
        refusal(op.clone(), &[a.clone(), ty(&[2, 3], 16, 3)], a.clone());
        refusal(op, std::slice::from_ref(&a), a.clone());
    }
    let one = |op: Op, x: &Type, y: &Type| refusal(op, std::slice::from_ref(x), y.clone());
    one(Op::Neg, &a, &b);
    one(Op::AddConst { value: 1 }, &a, &ty(&[2, 3], 17, 4));
    one(Op::MulConst { value: 1 }, &a, &ty(&[2, 3], 16, 5));
    one(Op::Reduce, &a, &ty(&[2, 3], 17, 4));
    one(Op::Rescale, &a, &ty(&[2, 3], 17, 4));
    one(Op::Reshape, &a, &t(&[7]));
    one(Op::Permute { dims: vec![0, 0] }, &a, &t(&[2, 2]));
    one(Op::Permute { dims: vec![1, 0] }, &a, &a);
    one(Op::Permute { dims: vec![2, 0] }, &a, &b);
    for (dim, start, end, step) in [(2, 0, 1, 1), (1, 0, 4, 1), (1, 2, 2, 1), (1, 3, 2, 1), (1, 0, 3, 0)] {
        one(Op::Slice { dim, start, end, step }, &a, &t(&[2, 1]));
    }
    one(Op::Slice { dim: 1, start: 0, end: 3, step: 2 }, &a, &a);
    one(Op::Concat { dim: 2 }, &a, &a);
    refusal(Op::Concat { dim: 0 }, &[a.clone(), b.clone()], t(&[5, 3]));
    one(Op::Pad { amounts: vec![[0, 0]] }, &a, &a);
    one(Op::Pad { amounts: vec![[usize::MAX, 1], [0, 0]] }, &a, &a);
    one(Op::Expand, &a, &t(&[2, 6]));
    one(Op::Sum { dims: vec![2] }, &a, &t(&[2]));
    one(Op::Sum { dims: vec![0, 0] }, &a, &t(&[3]));
    one(Op::Sum { dims: vec![0] }, &a, &t(&[2]));
    one(Op::Relu, &a, &ty(&[2, 3], 15, 4));
    one(Op::Extend, &a, &ty(&[2, 3], 15, 4));
    let shift = |shift| Op::Truncate { shift, rounding: Rounding::Floor };
    accepted(shift(4), std::slice::from_ref(&a), ty(&[2, 3], 12, 0));
    one(shift(0), &a, &a);
    one(shift(5), &a, &ty(&[2, 3], 11, 0));
    one(shift(16), &ty(&[2, 3], 16, 20), &ty(&[2, 3], 1, 4));
    accepted(shift(4), std::slice::from_ref(&a), ty(&[2, 3], 13, 0));
    one(shift(4), &a, &ty(&[2, 3], 11, 0));
    one(shift(4), &a, &ty(&[2, 3], 65, 0));
    one(Op::IsNegative, &a, &a);
    refusal(Op::Equal, &[a.clone(), ty(&[2, 3], 15, 4)], ty(&[2, 3], 8, 0));
    refusal(Op::Select, &[a.clone(), a.clone(), a.clone()], a.clone());
    accepted(Op::Select, &[ty(&[2, 3], 16, 0), a.clone(), a.clone()], a.clone());
    one(Op::Argmax { dim: 2 }, &a, &ty(&[2], 8, 0));
    one(Op::Argmax { dim: 1 }, &t(&[1, 129]), &ty(&[1], 8, 0));
    accepted(Op::Argmax { dim: 1 }, &[t(&[1, 128])], ty(&[1], 8, 0));
    refusal(Op::Linear, &[a.clone(), b.clone()], ty(&[2, 3], 16, 8));
    accepted(Op::Linear, &[a.clone(), t(&[5, 3]), ty(&[5], 16, 8)], ty(&[2, 5], 16, 8));
    refusal(Op::Linear, &[a.clone(), t(&[5, 3]), ty(&[4], 16, 8)], ty(&[2, 5], 16, 8));
    refusal(Op::Linear, &[a.clone(), t(&[5, 3]), t(&[5])], ty(&[2, 5], 16, 8));
    refusal(Op::Linear, &[a.clone(), t(&[5, 3])], ty(&[2, 5], 16, 7));
    refusal(Op::MatMul, &[a.clone(), a.clone()], ty(&[2, 3], 16, 8));
    refusal(Op::MatMul, &[t(&[2, 2, 3]), t(&[3, 3, 2])], ty(&[2, 2, 2], 16, 8));
    refusal(Op::Mul, &[a.clone(), a.clone()], a.clone());
    let square = ty(&[2, 3], 16, 8);
    accepted(Op::Mul, &vec![a.clone(); 4], square.clone());
    accepted(Op::Mul, &[a.clone(), ty(&[2, 3], 20, 4)], square.clone());
    for operands in [vec![a.clone(); 3], vec![], vec![a.clone(), a.clone(), a.clone(), square.clone()]] {
        refusal(Op::Mul, &operands, square.clone());
    }
    refusal(Op::Mul, &[a.clone(), ty(&[2, 3], 15, 4)], square);
}

#[test]
fn tables_mixtures_and_bits_are_checked() {
    let one = |op: Op, x: &Type, y: &Type| refusal(op, std::slice::from_ref(x), y.clone());
    let x = ty(&[2, 3], 4, 4);
    let lookup = |tables: usize, entries: usize| Op::Lookup { tables: vec![vec![0; entries]; tables] };
    accepted(lookup(2, 16), std::slice::from_ref(&x), ty(&[2, 2, 3], 9, 7));
    for op in [lookup(0, 16), lookup(17, 16), lookup(2, 15)] {
        one(op, &x, &ty(&[2, 2, 3], 9, 7));
    }
    one(lookup(2, 16), &x, &ty(&[2, 3], 9, 7));
    one(lookup(1, 1 << 13), &ty(&[1], 13, 0), &ty(&[1, 1], 9, 7));
    let piecewise = |shift, pieces| Op::Piecewise { shift, pieces: vec![[0; 3]; pieces] };
    accepted(piecewise(2, 4), std::slice::from_ref(&x), ty(&[2, 3], 30, 1));
    for op in [piecewise(4, 1), piecewise(5, 1), piecewise(2, 3), piecewise(u32::MAX, 1)] {
        one(op, &x, &ty(&[2, 3], 30, 1));
    }
    one(piecewise(2, 4), &x, &ty(&[3, 2], 30, 1));
    one(piecewise(32, 4), &ty(&[1], 34, 0), &ty(&[1], 34, 0));
    let e = ty(&[3], 20, 16);
    let rows = |first, rows: &[(i32, u32)]| Op::Exponential { first, rows: rows.to_vec(), scale: 0 };
    accepted(rows(20, &[(-8, 30), (0, 5)]), std::slice::from_ref(&e), ty(&[2, 3], 64, 0));
    for op in [
        rows(20, &[]),
        rows(20, &[(0, 5), (-8, 30)]),
        rows(20, &[(-8, 41), (0, 5)]),
        rows(7, &[(-8, 30), (0, 5)]),
        rows(u32::MAX, &[(-8, 30), (0, 5)]),
        rows(20, &[(-8, u32::MAX), (0, 5)]),
        rows(20, &[(i32::MIN, 30), (0, 5)]),
        rows(20, &[(-65, 30), (0, 5)]),
    ] {
        one(op, &e, &ty(&[2, 3], 64, 0));
    }
    let mix = |rows: &[&[i64]]| Op::Mix { rows: rows.iter().map(|row| row.to_vec()).collect() };
    accepted(mix(&[&[1, 2], &[3, 4], &[5, 6]]), std::slice::from_ref(&x), ty(&[3, 3], 4, 4));
    one(mix(&[&[1, 2], &[3]]), &x, &ty(&[2, 3], 4, 4));
    one(mix(&[&[1, 2]]), &x, &ty(&[2, 3], 4, 4));
    one(mix(&[]), &x, &x);
    one(mix(&[&[]]), &ty(&[], 4, 4), &ty(&[], 4, 4));
    accepted(Op::ShiftUp { shift: 3 }, std::slice::from_ref(&x), ty(&[2, 3], 7, 7));
    for (shift, bits, frac) in [(0, 4, 4), (3, 8, 7), (3, 7, 6), (64, 4, 4), (u32::MAX, 3, 3)] {
        one(Op::ShiftUp { shift }, &x, &ty(&[2, 3], bits, frac));
    }
    one(Op::Dropout { stream: 0, keep: 0 }, &x, &x);
    accepted(Op::Reverse { dims: vec![1, 0] }, std::slice::from_ref(&x), x.clone());
    one(Op::Reverse { dims: vec![1, 1] }, &x, &x);
    one(Op::Reverse { dims: vec![2] }, &x, &x);
    let bit = ty(&[2, 3], 1, 0);
    accepted(Op::Choose, &[bit.clone(), x.clone()], x.clone());
    refusal(Op::Choose, &[x.clone(), x.clone()], x.clone());
    refusal(Op::Choose, &[ty(&[2, 3], 1, 1), x.clone()], x.clone());
    refusal(Op::Choose, &[ty(&[2], 1, 0), x.clone()], x.clone());
    refusal(Op::Choose, &[bit, x.clone()], ty(&[2, 3], 5, 4));
}

/// Every operation refuses another number of operands than it takes, and says so.
#[test]
fn operands_are_counted() {
    let window = window();
    let geometry = geometry();
    let none = vec![
        Op::Input { name: "a".into(), owner: "o".into(), limit: 1.0 },
        Op::Weight { name: "a".into(), owner: "o".into() },
        Op::State { name: "a".into(), owner: "o".into() },
        Op::Public { name: "a".into(), limit: 1.0 },
    ];
    let one = vec![
        Op::Neg,
        Op::AddConst { value: 1 },
        Op::MulConst { value: 1 },
        Op::SumPool2d { window },
        Op::AdaptiveSumPool2d,
        Op::Sum { dims: vec![] },
        Op::Reduce,
        Op::Rescale,
        Op::Reshape,
        Op::Permute { dims: vec![0] },
        Op::Slice { dim: 0, start: 0, end: 1, step: 1 },
        Op::Reverse { dims: vec![] },
        Op::Pad { amounts: vec![[0, 0]] },
        Op::Expand,
        Op::Mix { rows: vec![vec![1]] },
        Op::ShiftUp { shift: 1 },
        Op::Dropout { stream: 0, keep: 1 },
        Op::Truncate { shift: 1, rounding: Rounding::Floor },
        Op::Dither { shift: 1 },
        Op::Piecewise { shift: 1, pieces: vec![] },
        Op::Lookup { tables: vec![] },
        Op::Exponential { first: 1, rows: vec![], scale: 0 },
        Op::Relu,
        Op::Extend,
        Op::MaxPool2d { window },
        Op::IsNegative,
        Op::Argmax { dim: 0 },
    ];
    let function = Function::Exp;
    let two = vec![
        Op::Add,
        Op::Sub,
        Op::Approximates { function },
        Op::MatMul,
        Op::Scale,
        Op::Max,
        Op::Equal,
        Op::Choose,
    ];
    let (bias, three) = (vec![Op::Linear, Op::Conv2d { geometry }], vec![Op::Select]);
    let x = ty(&[1], 16, 0);
    let lists = [(none, 0..=0), (one, 1..=1), (two, 2..=2), (bias, 2..=3), (three, 3..=3)];
    for (op, takes) in lists.into_iter().flat_map(|(ops, n)| ops.into_iter().map(move |op| (op, n.clone()))) {
        for count in (0..5).filter(|count| !takes.contains(count)) {
            if op == Op::Scale && count > 1 {
                continue; // refused because the second operand is not public
            }
            let problem = refusal(op.clone(), &vec![x.clone(); count], x.clone());
            assert!(problem.starts_with(&format!("{count} operands, takes ")), "{op:?}: {problem}");
        }
    }
    for count in [0, 1, 3] {
        let problem = refusal(Op::Mul, &vec![x.clone(); count], x.clone());
        assert_eq!(problem, format!("{count} operands, takes pairs"));
    }
    assert!(refusal(Op::Concat { dim: 0 }, &[], x).starts_with("0 operands, takes at least 1"));
}

#[test]
fn geometries_are_checked() {
    let (x, w, y) = (ty(&[1, 2, 4, 4], 32, 0), ty(&[4, 1, 3, 3], 32, 0), ty(&[1, 4, 4, 4], 32, 0));
    accepted(Op::Conv2d { geometry: geometry() }, &[x.clone(), w.clone()], y.clone());
    let broken: Vec<fn(&mut Conv2d)> = vec![
        |g| g.batch = 2,
        |g| g.in_channels = 4,
        |g| g.input = [4, 5],
        |g| g.out_channels = 6,
        |g| g.out_channels = 0,
        |g| g.kernel = [3, 1],
        |g| g.kernel = [0, 3],
        |g| g.kernel = [usize::MAX, 3],
        |g| g.stride = [0, 1],
        |g| g.stride = [2, 1],
        |g| g.padding = [0, 1, 1, 1],
        |g| g.padding = [usize::MAX, 1, 1, 1],
        |g| g.dilation = [3, 1],
        |g| g.dilation = [0, 1],
        |g| g.dilation = [usize::MAX, 1],
        |g| g.groups = 1,
        |g| g.groups = 0,
        |g| g.groups = 3,
    ];
    for (i, breaks) in broken.into_iter().enumerate() {
        let mut g = geometry();
        breaks(&mut g);
        let problem = refusal(Op::Conv2d { geometry: g }, &[x.clone(), w.clone()], y.clone());
        assert!(!problem.is_empty(), "case {i}");
    }
    let broken: Vec<fn(&mut Pool2d)> = vec![
        |p| p.kernel = [0, 2],
        |p| p.kernel = [5, 2],
        |p| p.kernel = [usize::MAX, 2],
        |p| p.stride = [0, 2],
        |p| p.stride = [1, 2],
        |p| p.padding = [1, 0],
        |p| p.padding = [usize::MAX, 0],
        |p| p.dilation = [4, 1],
        |p| p.dilation = [0, 1],
    ];
    let out = ty(&[1, 2, 2, 2], 32, 0);
    accepted(Op::MaxPool2d { window: window() }, std::slice::from_ref(&x), out.clone());
    for breaks in broken {
        let mut window = window();
        breaks(&mut window);
        refusal(Op::MaxPool2d { window }, std::slice::from_ref(&x), out.clone());
        refusal(Op::SumPool2d { window }, std::slice::from_ref(&x), out.clone());
    }
    let all_padding = Pool2d { kernel: [1, 1], padding: [1, 1], stride: [1, 1], ..window() };
    let problem =
        refusal(Op::MaxPool2d { window: all_padding }, std::slice::from_ref(&x), ty(&[1, 2, 6, 6], 32, 0));
    assert!(problem.contains("padding entirely"), "{problem}");
    refusal(Op::AdaptiveSumPool2d, &[ty(&[1, 2, 4, 5], 32, 0)], ty(&[1, 2, 3, 3], 32, 0));
    refusal(Op::AdaptiveSumPool2d, std::slice::from_ref(&x), ty(&[1, 1, 2, 2], 32, 0));
    refusal(Op::MaxPool2d { window: window() }, &[ty(&[2, 4, 4], 32, 0)], out);
}

#[test]
fn whole_plan_faults_are_refused() {
    let broken: Vec<fn(&mut Plan)> = vec![
        |p| p.version += 1,
        |p| p.batch = 0,
        |p| p.name = "a\nb".into(),
        |p| p.outputs.clear(),
        |p| p.outputs[0].value = usize::MAX,
        |p| p.outputs[0].name.clear(),
        |p| p.outputs[0].to.clear(),
        |p| p.outputs.push(p.outputs[0].clone()),
        |p| p.nodes.swap(0, 3),
        |p| p.nodes[3].inputs[0] = 3,
        |p| p.nodes[3].inputs[0] = usize::MAX,
        |p| p.nodes[0].inputs.push(0),
        |p| p.nodes[0].ty.bits = 0,
        |p| p.nodes[0].ty.bits = 65,
        |p| p.nodes[0].ty.frac = 64,
        |p| p.nodes[0].ty.shape = vec![1 << 20, 1 << 20, 1 << 20, 1 << 20],
        |p| p.nodes[0].ty.shape = vec![0, 1, 8, 8],
        |p| p.nodes[0].ty.shape = vec![1; 9],
        |p| p.nodes[0].layer = "x".repeat(5000),
        |p| p.nodes[0].op = Op::Input { name: "x0".into(), owner: String::new(), limit: 1.0 },
        |p| p.nodes[0].op = Op::Input { name: "x0".into(), owner: "o".into(), limit: f64::NAN },
        |p| p.nodes[0].op = Op::Input { name: "x0".into(), owner: "o".into(), limit: -1.0 },
        |p| p.nodes[1].op = p.nodes[2].op.clone(),
        |p| p.nodes.push(p.nodes[0].clone()),
    ];
    for (i, breaks) in broken.into_iter().enumerate() {
        let (_, mut plan) = small();
        assert!(matches!(plan.nodes[3].op, Op::Conv2d { .. }));
        breaks(&mut plan);
        assert!(plan.check().is_err(), "case {i} was accepted");
        assert!(Plan::from_json(&plan.to_json()).is_err(), "case {i} was read");
    }
}

#[test]
fn graph_faults_are_refused() {
    let broken: Vec<fn(&mut Graph)> = vec![
        |g| g.version += 1,
        |g| g.batch = 0,
        |g| g.batch = 3,
        |g| g.outputs.clear(),
        |g| g.outputs[0].node = 1000,
        |g| g.outputs[0].name.clear(),
        |g| g.nodes[3].inputs[0] = 3,
        |g| g.nodes[3].inputs.clear(),
        |g| g.nodes[0].shape = vec![],
        |g| g.nodes[0].shape = vec![2, usize::MAX, 8],
        |g| g.nodes[0].range = Some([1.0, 0.0]),
        |g| g.nodes[0].range = Some([0.0, f64::INFINITY]),
        |g| g.nodes[4].op = GraphOp::Clamp { lo: Some(1.0), hi: Some(0.0) },
        |g| g.nodes[4].op = GraphOp::MulScalar { value: f64::NAN },
        |g| {
            g.nodes[4].op = GraphOp::AvgPool2d { window: window(), count_include_pad: true, divisor: Some(0) }
        },
        |g| g.nodes.push(g.nodes[0].clone()),
    ];
    for (i, breaks) in broken.into_iter().enumerate() {
        let mut graph = small().0.graph;
        breaks(&mut graph);
        assert!(graph.check().is_err(), "case {i} was accepted");
    }
}

#[test]
fn json_round_trips_and_the_hash_sees_every_field() {
    let (m, plan) = small();
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    assert_eq!(Graph::from_json(&m.graph.to_json()).unwrap(), m.graph);
    let changes: Vec<fn(&mut Plan)> = vec![
        |p| p.version += 1,
        |p| p.name.push('x'),
        |p| p.batch += 1,
        |p| p.nodes[3].layer.push('x'),
        |p| p.nodes[3].ty.bits += 1,
        |p| p.nodes[3].ty.frac += 1,
        |p| p.nodes[3].ty.shape[0] += 1,
        |p| p.nodes[3].inputs.swap(0, 1),
        |p| p.nodes.swap(1, 2),
        |p| {
            if let Op::Input { limit, .. } = &mut p.nodes[0].op {
                *limit = f64::from_bits(limit.to_bits() + 1);
            }
        },
        |p| {
            if let Op::Input { owner, .. } = &mut p.nodes[0].op {
                owner.push('x');
            }
        },
        |p| {
            if let Op::Conv2d { geometry } = &mut p.nodes[3].op {
                geometry.padding[3] += 1;
            }
        },
        |p| p.outputs[0].to.push('x'),
        |p| p.outputs[0].name.push('x'),
        |p| p.outputs[0].value -= 1,
    ];
    let mut hashes = vec![plan.hash()];
    for change in changes {
        let mut other = plan.clone();
        change(&mut other);
        hashes.push(other.hash());
    }
    let n = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), n, "two different plans share a hash");
    assert_eq!(plan.hash(), Plan::from_json(&plan.to_json()).unwrap().hash());
}

#[test]
fn unknown_fields_and_truncated_files_are_refused() {
    let json = small().1.to_json();
    for end in (0..json.len()).step_by(37) {
        assert!(Plan::from_json(&json[..end]).is_err());
    }
    let text = String::from_utf8(json).unwrap();
    assert!(Plan::from_json(text.replacen("\"batch\"", "\"extra\":1,\"batch\"", 1).as_bytes()).is_err());
    assert!(Plan::from_json(text.replacen("\"kind\":\"relu\"", "\"kind\":\"gelu\"", 1).as_bytes()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// One byte of a plan's JSON replaced: read and run, or refused, but never a panic.
    #[test]
    fn a_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte in prop::sample::select(&b"0123456789-.,[]{}e\"xn"[..])) {
        static JSON: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| small().1.to_json());
        let mut json = JSON.clone();
        let i = at.index(json.len());
        json[i] = byte;
        let _ = Plan::from_json(&json);
    }

    /// The same for a captured graph, lowered when it is accepted.
    #[test]
    fn a_changed_graph_never_panics(at in any::<prop::sample::Index>(), byte in prop::sample::select(&b"0123456789-.,[]{}e\"xn"[..])) {
        static MODEL: std::sync::LazyLock<(Graph, std::collections::BTreeMap<String, privet_plan::FloatTensor>)> =
            std::sync::LazyLock::new(|| { let m = small().0; (m.graph, m.params) });
        let mut json = MODEL.0.to_json();
        let i = at.index(json.len());
        json[i] = byte;
        if let Ok(graph) = Graph::from_json(&json) {
            let _ = lower(&graph, &MODEL.1, &Precision::default());
            let _ = graph.with_batch(3);
        }
    }

    #[test]
    fn truncation_equals_floored_division(x in any::<i64>(), k in 2u32..=64, cut in 0u32..64) {
        let (shift, ring) = (1 + cut % (k - 1), privet_ring::Ring::new(k));
        let x = ring.signed(x as u64);
        let op = Op::Truncate { shift, rounding: Rounding::Floor };
        let got = run(op, &[ty(&[1], k, shift.min(63))], ty(&[1], k - shift, 0), &[&[x]]);
        prop_assert_eq!(got[0] as i128, (x as i128).div_euclid(1i128 << shift));
    }
}

#[test]
fn gates_that_look_at_a_sign_need_two_bits() {
    let one = ty(&[1, 1, 2, 2], 1, 0);
    let pooled = ty(&[1, 1, 1, 1], 1, 0);
    let gates = [
        (Op::Relu, vec![one.clone()], one.clone()),
        (Op::IsNegative, vec![one.clone()], one.clone()),
        (Op::Max, vec![one.clone(), one.clone()], one.clone()),
        (Op::MaxPool2d { window: window() }, vec![one.clone()], pooled),
        (Op::Argmax { dim: 3 }, vec![one.clone()], ty(&[1, 1, 2], 8, 0)),
    ];
    for (op, operands, result) in gates {
        assert!(refusal(op, &operands, result).contains("1 bit"));
    }
    accepted(Op::Relu, &[ty(&[3], 2, 0)], ty(&[3], 2, 0));
    accepted(Op::Extend, &[ty(&[3], 64, 0)], ty(&[3], 64, 0));
}

#[test]
fn only_comparisons_have_a_form_and_it_is_within_bounds() {
    let x = ty(&[4], 16, 4);
    let with = |op: Op, form| {
        let mut plan = single(op, std::slice::from_ref(&x), x.clone());
        plan.nodes[1].form = Some(form);
        plan
    };
    let chunks = |width, fan| Form::Chunks { width, fan };
    for form in [Form::Tree, chunks(1, 2), chunks(8, 9)] {
        let plan = with(Op::Relu, form);
        plan.check().unwrap();
        assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
        assert!(with(Op::Neg, form).check().is_err(), "a negation compares nothing");
    }
    for form in [chunks(0, 2), chunks(9, 2), chunks(4, 1), chunks(4, 10)] {
        assert!(with(Op::Relu, form).check().is_err(), "{form}");
    }
    assert_ne!(with(Op::Relu, Form::Tree).hash(), with(Op::Relu, chunks(4, 4)).hash());
}
