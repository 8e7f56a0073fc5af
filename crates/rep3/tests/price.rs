//! Declared prices, by hand, and estimates of whole plans; what the family refuses.

use privet_plan::cost::{Cost, Network, Operation};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::suite::lowered_step;
use privet_plan::{Prices, Rates, Target, admit, estimate};
use privet_rep3::{Rep3, Security};

fn ty(shape: &[usize], bits: u32, frac: u32) -> Type {
    Type { shape: shape.to_vec(), bits, frac }
}

#[test]
fn prices_of_gates_by_hand() {
    let price = |op: Op, operands: &[Type], result: Type| {
        Rep3::default().operation(&Operation::of_types(&op, &operands.iter().collect::<Vec<_>>(), &result))
    };
    let w = [ty(&[4, 30], 37, 8), ty(&[10, 30], 37, 8)];
    let linear = price(Op::Linear, &w, ty(&[4, 10], 37, 16));
    assert_eq!(
        (linear.macs, linear.wire_bytes.most(), linear.key_bytes.most(), linear.rounds),
        (1200, 185, 0, 1)
    );
    let op = Op::Truncate { shift: 16, rounding: Rounding::OneUlp };
    assert_eq!(price(op, &[ty(&[1000], 64, 16)], ty(&[1000], 48, 0)), Cost::default());
}

#[test]
fn a_step_of_training_has_an_estimate() {
    let plan = lowered_step().plan;
    let of = |security| estimate(&plan, &Rep3 { security }, &Rates::default(), &Network::LAN);
    let (trusted, proved) = (of(Security::SemiHonest), of(Security::Malicious));
    let states = plan.nodes.iter().filter(|n| matches!(n.op, Op::State { .. }));
    let shared: u64 = states.map(|n| 2 * 8 * n.ty.len() as u64 + 4 * 16 + 6).sum();
    assert_eq!((trusted.session.client_bytes, proved.session.client_bytes), (shared, shared));
    assert_eq!((trusted.whole_run, trusted.total.key_bytes.most()), (Cost::default(), 0));
    assert!(trusted.total.macs > 0 && trusted.total.macs == proved.total.macs);
    assert!(proved.whole_run.rounds > 0 && proved.total.wire_bytes.most() > trusted.total.wire_bytes.most());
}

/// An input truncated with a rounding, then `rest`, then an output.
fn truncated(rounding: Rounding, rest: &[Op]) -> Plan {
    let node = |op, inputs: Vec<usize>, bits, frac| Node {
        op,
        inputs,
        ty: ty(&[4], bits, frac),
        layer: "fc".into(),
        form: None,
    };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let mut nodes = vec![node(input, vec![], 32, 8)];
    nodes.push(node(Op::Truncate { shift: 8, rounding }, vec![0], 24, 0));
    for op in rest {
        nodes.push(node(op.clone(), vec![nodes.len() - 1], 24, 0));
    }
    let outputs = vec![Output { value: nodes.len() - 1, name: "y".into(), to: "receiver".into() }];
    let plan = Plan { version: PLAN_VERSION, name: "net".into(), batch: 4, nodes, outputs, updates: vec![] };
    plan.check().unwrap();
    plan
}

/// What `one_ulp` gives is a function of the shares, and is not opened itself.
#[test]
fn a_truncation_to_one_ulp_is_not_shown_by_an_output() {
    for security in [Security::SemiHonest, Security::Malicious] {
        let family = Rep3 { security };
        let refused = |rounding, rest: &[Op]| {
            family.refusals(&truncated(rounding, rest)).iter().map(|r| r.node).collect::<Vec<_>>()
        };
        assert_eq!(refused(Rounding::OneUlp, &[]), [1]);
        assert_eq!(refused(Rounding::OneUlp, &[Op::Neg, Op::Reshape]), [1], "through local operations");
        assert_eq!(refused(Rounding::OneUlp, &[Op::Relu]), [0; 0], "a gate reads it");
        assert_eq!(refused(Rounding::Floor, &[]), [0; 0]);
        assert_eq!(refused(Rounding::Stochastic, &[Op::Neg]), [0; 0]);
        let error = admit(&truncated(Rounding::OneUlp, &[]), "net", &family).unwrap_err().to_string();
        assert!(error.starts_with("protocol rep3 refuses plan net: node 1 (fc): an output shows"), "{error}");
        assert!(error.contains("compile the model again"), "{error}");
    }
}
