//! Declared prices, by hand, and estimates of whole plans.

use privet_fss::Fss;
use privet_plan::cost::{Cost, Network, Operation};
use privet_plan::ir::{Op, Rounding, Type};
use privet_plan::suite::lowered_step;
use privet_plan::{Form, Prices, Rates, estimate};
use privet_ring::Pool2d;

fn ty(shape: &[usize], bits: u32, frac: u32) -> Type {
    Type { shape: shape.to_vec(), bits, frac }
}

fn price(op: Op, operands: &[Type], result: Type) -> Cost {
    Fss.operation(&Operation::of_types(&op, &operands.iter().collect::<Vec<_>>(), &result))
}

#[test]
fn prices_of_gates_by_hand() {
    let x = ty(&[1000], 64, 16);
    let relu = price(Op::Relu, std::slice::from_ref(&x), x.clone());
    // n = 63: 16 * (56 + 2) bytes and 57 calls; two words; one bit and one word opened
    assert_eq!((relu.comparisons, relu.aes, relu.rounds), (1000, 57_000, 2));
    assert_eq!((relu.key_bytes.least(), relu.key_bytes.most()), (928_000, 928_000 + 16_000));
    assert_eq!(relu.wire_bytes.most(), 125 + 8000);
    let op = Op::Truncate { shift: 16, rounding: Rounding::Floor };
    let truncate = price(op, std::slice::from_ref(&x), ty(&[1000], 48, 0));
    assert_eq!((truncate.key_bytes.least(), truncate.aes), (16 * 11 * 1000, 10_000));
    assert_eq!(truncate.key_bytes.most() - truncate.key_bytes.least(), 2 * 6 * 1000);
    assert_eq!(truncate.wire_bytes.most(), 125 + 6000);
    let small = price(Op::Extend, &[ty(&[8], 5, 0)], ty(&[8], 12, 0));
    assert_eq!(
        (small.key_bytes.least(), small.key_bytes.most(), small.aes),
        (8 * 32, 8 * 32 + 24, 8),
        "early termination needs no level"
    );
    let w = [ty(&[4, 30], 64, 16), ty(&[10, 30], 64, 16)];
    let linear = price(Op::Linear, &w, ty(&[4, 10], 64, 32));
    assert_eq!(
        (linear.macs, linear.wire_bytes.most(), linear.key_bytes.most(), linear.rounds),
        (1200, 320, 320, 1)
    );
    let window =
        Pool2d { kernel: [3, 3], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let pool = price(Op::MaxPool2d { window }, &[ty(&[1, 1, 5, 5], 32, 0)], ty(&[1, 1, 2, 2], 32, 0));
    assert_eq!((pool.comparisons, pool.rounds), (2 * 2 * 5 + 2 * 2 * 2, 8));
    let argmax = price(Op::Argmax { dim: 1 }, &[ty(&[7, 10], 32, 0)], ty(&[7], 8, 0));
    // four levels: bit, then value and index
    assert_eq!((argmax.comparisons, argmax.rounds), (63, 8));
    assert_eq!(price(Op::IsNegative, &[ty(&[64], 32, 0)], ty(&[64], 8, 0)).wire_bytes.most(), 8 + 64);
    let equal = price(Op::Equal, &[ty(&[8], 32, 0), ty(&[8], 32, 0)], ty(&[8], 8, 0));
    assert_eq!((equal.key_bytes.most(), equal.aes), (8 * (16 * 27 + 2), 8 * 26));
    // two and a half frames of words: the second one is evaluator 0's
    let frame = 64 * 1024;
    let many = price(
        Op::Mul,
        &[ty(&[5 * frame / 2], 64, 0), ty(&[5 * frame / 2], 64, 0)],
        ty(&[5 * frame / 2], 64, 0),
    );
    assert_eq!((many.key_bytes.most(), many.key_bytes.least()), (8 * frame as u64 * 3 / 2, 8 * frame as u64));
}

/// ReLU by chunks of 63 bits, 4 at a time: 232 planes of tables and 81 + 15 of products, opened 31, 7 and 1.
#[test]
fn prices_of_chunks_by_hand() {
    let price = |n: usize, width, fan| {
        let x = ty(&[n], 64, 16);
        let of = Operation {
            form: Some(Form::Chunks { width, fan }),
            ..Operation::of_types(&Op::Relu, &[&x], &x)
        };
        Fss.operation(&of)
    };
    let small = price(100, 4, 4);
    // 100 comparisons are two words a plane; tables and the lower level fall to one evaluator, all else to the other
    assert_eq!((small.key_bytes.most(), small.key_bytes.least()), (16 * (232 + 15), 16 * 81 + 2 * 8 * 100));
    assert_eq!((small.wire_bytes.most(), small.rounds, small.aes), (16 * (31 + 7) + 13 + 800, 4, 0));
    let many = price(1_000_000, 4, 4);
    let bytes = many.key_bytes.most() + many.key_bytes.least();
    assert_eq!(bytes, 8 * 15_625 * 328 + 16_000_000);
    assert!(
        many.key_bytes.most() < 30_000_000 && many.key_bytes.most() - many.key_bytes.least() < 1 << 20,
        "{many:?}"
    );
    let table = price(64, 7, 9);
    assert_eq!(table.rounds, 3);
}

/// Every sensible form has a price; the curve goes from few bytes to few rounds.
#[test]
fn forms_trade_bytes_for_rounds() {
    let (x, bit) = (ty(&[640], 40, 16), ty(&[640], 1, 0));
    let forms = Fss.forms(&Operation::of_types(&Op::IsNegative, &[&x], &bit));
    assert!(forms.len() > 3 && forms.contains(&Form::Tree), "{forms:?}");
    let price = |form: &Form| {
        let of = Operation { form: Some(*form), ..Operation::of_types(&Op::IsNegative, &[&x], &bit) };
        Fss.operation(&of)
    };
    let [few, tree] = [price(&forms[0]), price(&Form::Tree)];
    assert!(
        20 * few.key_bytes.most() < tree.key_bytes.most() && few.rounds > tree.rounds,
        "{few:?} {tree:?}"
    );
    assert!(Fss.forms(&Operation::of_types(&Op::Mul, &[&x, &x], &x)).is_empty());
}

#[test]
fn a_step_of_training_has_an_estimate() {
    let plan = lowered_step().plan;
    let found = estimate(&plan, &Fss, &Rates::default(), &Network::LAN);
    let states = plan.nodes.iter().filter(|n| matches!(n.op, Op::State { .. }));
    let (count, words) = states.fold((0, 0), |(count, words), n| (count + 1, words + n.ty.len() as u64));
    assert_eq!(found.session.client_bytes, 16 * count + 8 * words, "a seed, and a share of each state");
    assert_eq!(
        (found.whole_run.rounds, found.whole_run.wire_bytes.most()),
        (1, 0),
        "states are opened together"
    );
    assert!(found.total.key_bytes.most() > 0 && found.total.macs > 0 && found.total.offline.is_nothing());
}
