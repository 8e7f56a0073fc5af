//! What is made before a run: of many rounds and chunks, by encryption and by transfers, and new for every run.

use super::*;
use crate::material::Correlation;
use crate::matrices::{Matrices, Way};
use crate::product::Factors;
use privet_ot::params::{B11, B12};

/// Two ReLUs and a maximum, in two widths of comparison.
fn of_relus(n: usize) -> Plan {
    let ty = |bits| Type { shape: vec![n], bits, frac: 0 };
    let node = |op, inputs: &[ValueId], bits| {
        let (inputs, layer) = (inputs.to_vec(), format!("{bits} bits"));
        Node { op, inputs, ty: ty(bits), layer, form: None }
    };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let relus = [37, 64].map(|bits| node(Op::Relu, &[if bits == 37 { 0 } else { 1 }], bits));
    let nodes = [vec![node(input, &[], 25)], relus.to_vec(), vec![node(Op::Max, &[2, 2], 64)]].concat();
    let outputs = vec![Output { value: 3, name: "y".into(), to: "receiver".into() }];
    let (name, updates) = ("many".into(), Vec::new());
    Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates }
}

/// Material of many rounds and many chunks, so that rounds begin within nodes. Of very many transfers by the set of distant sides.
#[test]
fn material_by_ferret_is_read_as_it_was_made() {
    for (n, link, wanted) in
        [(20_000, Link::Near, B11), (20_000, Link::Distant, B11), (82_000, Link::Distant, B12)]
    {
        let plan = of_relus(n);
        let both: usize = transfers(&needs(&plan)).iter().sum();
        let found = source(both, link);
        assert!(matches!(found, Source::Ferret(p) if p == wanted && both > p.usable()), "{both} transfers");
        let ring = Ring::new(25);
        let x = Seed::random().stream().elements(ring, n);
        let operands = [[("x".to_owned(), Tensor::new(vec![n], x.clone()).unwrap())].into(), Operands::new()];
        let seed = Seed::random();
        let ran = Mesh::new(2).run(|links| party_over(link, links, &plan, &operands, &seed));
        let found = ran[0].outcome.outputs[0].iter().zip(ran[1].outcome.outputs[0].iter());
        for ((a, b), x) in found.zip(&x) {
            assert_eq!(a.wrapping_add(*b), ring.signed(*x).max(0) as u64);
        }
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
    for (bits, [count, m, k, o], encrypted, gathered) in [
        (37, [5, 128, 64, 128], true, true),
        (37, [3, 70, 128, 64], true, true),
        (37, [2, 9, 70, 20], true, false),
        (64, [2, 9, 70, 20], true, false),
        (45, [3, 40, 1, 40], true, false),
        (20, [1, 2, 3, 2], false, false),
    ] {
        let plan = of_matrices(bits, [count, m, k, o]);
        plan.check().unwrap();
        let needs = needs(&plan);
        let is_encrypted = needs.iter().any(|need| need.of.is_encrypted());
        assert_eq!(needs.iter().any(|need| need.of.is_gathered()), gathered, "{bits} bits");
        assert_eq!(is_encrypted, encrypted, "{bits} bits");
        check(&Case { name: plan.name.clone(), plan }, &Seed::random());
    }
}

/// No product of a transformer is refused in any ring: distances of a run's products stay below 2^-40 together.
#[test]
fn products_of_matrices_have_parameters_in_every_ring() {
    for bits in 1..=64 {
        for (m, k, o) in [(1, 1, 1), (128, 64, 128), (128, 128, 64), (1024, 64, 1024), (1024, 1024, 64)] {
            let of = Matrices { ring: Ring::new(bits), m, k, o, way: Way::Blocks };
            assert!(of.fits().is_ok(), "{bits} bits, {m} x {k} x {o}: {:?}", of.fits());
        }
    }
}

/// Products of thousands of elements by encryption, in several chunks; of fewer, and squares, by transfers.
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
        let products = [[0, 1], [0, 0]].map(|of| node(Op::Mul, &of));
        let nodes = [node(input("x"), &[]), node(input("y"), &[])].into_iter().chain(products).collect();
        let output = |value, name: &str| Output { value, name: name.into(), to: "receiver".into() };
        let outputs = vec![output(2, "product"), output(3, "square")];
        let (name, updates) = (format!("{n} elements of {bits} bits"), Vec::new());
        let plan = Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates };
        plan.check().unwrap();
        let is_slotted = needs(&plan).iter().any(|need| need.of.is_encrypted());
        assert_eq!(is_slotted, n > 1000, "{n} elements");
        let square = Factors { ring: Ring::new(bits), second: Second::Same };
        assert_eq!(square.transfers(), [0, bits as usize], "a square takes one way");
        check(&Case { name: plan.name.clone(), plan }, &Seed::random());
    }
}

/// A product of `[..]` elements with numbers of `from`, expanded: of both sides, or of a weight.
fn of_rows(bits: u32, from: &[usize], to: &[usize], known: bool) -> Plan {
    let input = |name: &str| Op::Input { name: name.into(), owner: "data_owner".into(), limit: 1.0 };
    let node = |op, inputs: &[ValueId], shape: &[usize]| Node {
        op,
        inputs: inputs.to_vec(),
        ty: Type { shape: shape.to_vec(), bits, frac: 0 },
        layer: "norm".into(),
        form: None,
    };
    let weight = Op::Weight { name: "y".into(), owner: "model_owner".into() };
    let nodes = vec![
        node(input("x"), &[], to),
        node(if known { weight } else { input("y") }, &[], from),
        node(Op::Expand, &[1], to),
        node(Op::Mul, &[2, 0], to),
    ];
    let outputs = vec![Output { value: 3, name: "z".into(), to: "receiver".into() }];
    let (name, updates) = (format!("{bits} bits, {from:?} to {to:?}"), Vec::new());
    Plan { version: PLAN_VERSION, name, batch: to[0], nodes, outputs, updates }
}

/// Numbers that serve rows, of lines and of columns, in several chunks; where rows are short, each element by itself.
#[test]
fn products_of_rows_are_right_in_every_ring() {
    let is_of_rows =
        |plan: &Plan| needs(plan).iter().any(|need| matches!(need.of, crate::material::Kind::Rows(_)));
    for (bits, from, to, rows) in [
        (37, vec![300, 1], vec![300, 256], true),
        (64, vec![5, 1, 40], vec![5, 200, 40], true),
        (12, vec![40], vec![3, 90, 40], true),
        (5, vec![2, 1], vec![2, 200], true),
        (33, vec![1, 1], vec![1, 70_000], true),
        (37, vec![9, 1], vec![9, 3], false),
    ] {
        for known in [false, true] {
            let plan = of_rows(bits, &from, &to, known);
            plan.check().unwrap();
            assert_eq!(is_of_rows(&plan), rows, "{}", plan.name);
            check(&Case { name: plan.name.clone(), plan }, &Seed::random());
        }
    }
}

/// What two runs of one preparation use up has nothing alike: words of A, of B, of factors, of leaves.
#[test]
fn material_of_two_runs_differs() {
    let of_matrices = of_matrices(37, [2, 20, 30, 10]);
    assert!(needs(&of_matrices).iter().any(|need| need.of.is_encrypted()));
    for plan in [of_matrices, of_rows(64, &[9, 1], &[9, 300], false), of_relus(9000)] {
        differs(&plan);
    }
}

fn differs(plan: &Plan) {
    let drawn = Mesh::new(2).run(|links| {
        let (at, peer) = ((Side::ALL[links.me()], Link::Near), 1 - links.me());
        let mut maker = MaterialMaker::start(plan, at, 1, 2, links.to(peer)).unwrap();
        let made = [0, 1].map(|_| {
            let made = kept(|keep| maker.run(links.to(peer), keep).unwrap());
            made.frames().map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        if transfers(&needs(plan)) != [0; 2] {
            let error = maker.run(links.to(peer), &mut |_| Ok(())).unwrap_err().to_string();
            assert!(error.contains("more runs than were begun"), "{error}");
        }
        made
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
