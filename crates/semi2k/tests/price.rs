//! Declared prices, by hand; facts.

use privet_family::{Forecast, Parameters};
use privet_plan::cost::{Cost, Known, Network, Operation, Rates, preparations};
use privet_plan::ir::{Op, Rounding, Type};
use privet_plan::suite::gate;
use privet_plan::{Form, Prices};
use privet_ring::Pool2d;
use privet_semi2k::{FACTS, Semi2k, TRANSFERS, source};

fn ty(shape: &[usize], bits: u32, frac: u32) -> Type {
    Type { shape: shape.to_vec(), bits, frac }
}

fn price(family: &Semi2k, op: Op, operands: &[Type], result: Type) -> Cost {
    family.operation(&Operation::of_types(&op, &operands.iter().collect::<Vec<_>>(), &result))
}

#[test]
fn prices_of_gates_by_hand() {
    let of = |parties| Semi2k::helped(parties);
    let x = ty(&[6400], 64, 16);
    // chunks of 63 bits: 31 pairs and one bit, 94 planes; 31 nodes in 5 levels, two products each but for the lowest of a level
    let relu = price(&of(2), Op::Relu, std::slice::from_ref(&x), x.clone());
    assert_eq!((relu.comparisons, relu.rounds), (6400, 7));
    assert_eq!(relu.key_bytes.most(), 6400 / 8 * (64 + 94 + (2 * 31 - 5) + 1 + 2 * 64));
    assert_eq!(relu.key_bytes.most().div_ceil(6400), 43, "at most 60 bytes a ReLU");
    assert_eq!(relu.key_bytes.most(), relu.key_bytes.least(), "all records are alike");
    let five = price(&of(5), Op::Relu, std::slice::from_ref(&x), x.clone());
    assert_eq!(
        (five.wire_bytes.most(), five.key_bytes.most(), five.rounds),
        (4 * relu.wire_bytes.most(), relu.key_bytes.most(), 7)
    );
    // free, or an offset alone
    for (rounding, bytes) in [(Rounding::OneUlp, 0), (Rounding::Stochastic, 8 * 6400)] {
        let op = Op::Truncate { shift: 16, rounding };
        let cost = price(&of(3), op, std::slice::from_ref(&x), ty(&[6400], 48, 0));
        assert_eq!(
            (cost.key_bytes.most(), cost.wire_bytes.most(), cost.rounds),
            (bytes, 0, 0),
            "{rounding:?}"
        );
    }
    let w = [ty(&[4, 30], 64, 16), ty(&[10, 30], 64, 16)];
    let linear = price(&of(3), Op::Linear, &w, ty(&[4, 10], 64, 32));
    assert_eq!(
        (linear.macs, linear.wire_bytes.most(), linear.key_bytes.most(), linear.rounds),
        (1200, 640, 320, 1)
    );
    let window =
        Pool2d { kernel: [3, 3], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let op = Op::MaxPool2d { window };
    let pool = price(&of(2), op, &[ty(&[1, 1, 5, 5], 32, 0)], ty(&[1, 1, 2, 2], 32, 0));
    assert_eq!((pool.comparisons, pool.rounds), (2 * 2 * 5 + 2 * 2 * 2, 4 * 6));
    // without a helper the parties prepare among themselves, which is no part of the run
    let alone = price(&Semi2k::alone(2), Op::Relu, std::slice::from_ref(&x), x.clone());
    assert!(alone.offline.wire_bytes > 0 && alone.offline.transfers > 0 && relu.offline.is_nothing());
    assert_eq!(
        (alone.key_bytes.most(), alone.wire_bytes.most()),
        (relu.key_bytes.most(), relu.wire_bytes.most())
    );
}

#[test]
fn silent_transfers_take_longer_and_fewer_bytes() {
    let x = ty(&[6400], 64, 16);
    let of = |family: &Semi2k| price(family, Op::Relu, std::slice::from_ref(&x), x.clone());
    let family = Semi2k::alone(3);
    let mut chosen = Parameters::default();
    assert!(chosen.set(&TRANSFERS, TRANSFERS.word("ferret").unwrap()));
    let forced = chosen.clone();
    let [mine, silent] =
        [Parameters::default(), chosen].map(|c| of(&Semi2k { source: source(&c), ..family }));
    assert_eq!(of(&family), mine);
    // left open, it is as suits the network, and who compiles is told so; a deployment may force either
    let on = |family: &Semi2k, network| {
        family
            .on(&network)
            .map(|(set, prices)| (set, prices.operation(&Operation::of_types(&Op::Relu, &[&x], &x)).offline))
    };
    assert_eq!(on(&family, Network::LAN), Some(("transfers = \"softspoken\"", mine.offline)));
    assert_eq!(on(&family, Network::WAN), Some(("transfers = \"ferret\"", silent.offline)));
    assert_eq!(on(&Semi2k { source: source(&forced), ..family }, Network::WAN), None);
    assert_eq!((mine.offline.silent, silent.offline.silent), (0, silent.offline.transfers));
    assert_eq!(mine.offline.transfers, silent.offline.transfers);
    // 31 bits a transfer, and 0.7
    let made = |source_bits: f64| silent.offline.transfers as f64 * source_bits / 8.0 / 2.0;
    let saved = (mine.offline.wire_bytes - silent.offline.wire_bytes) as f64;
    assert!((saved / made(31.0 - 0.7) - 1.0).abs() < 0.01, "{saved}");
    assert_eq!(family.preparations().len(), 2);
    assert!(Semi2k::helped(3).preparations().is_empty(), "a helper makes no transfers");
    let plan = gate(Op::Relu, 1, 6400, 64, 64);
    let ways = preparations(&plan, &family, &Rates::default());
    assert!(ways[0].lan_s < ways[1].lan_s && ways[0].wan_s > ways[1].wan_s, "{ways:?}");
}

#[test]
fn weights_of_a_party_send_less_before_a_run_and_more_records_share_them() {
    let types = [ty(&[64, 256], 64, 16), ty(&[256, 256], 64, 16)];
    let result = ty(&[64, 256], 64, 32);
    let mut of = Operation::of_types(&Op::Linear, &[&types[0], &types[1]], &result);
    of.operands[1].known = Known::Role("model_owner");
    let family = Semi2k::alone(2);
    let all = [family, Semi2k { owned: true, ..family }, Semi2k { records: 1, ..family }];
    let [shared, owned, one] = all.map(|family| family.operation(&of).offline);
    // who has the weights multiplies alone, and takes about as long as each of two who share them
    let work = owned.values as f64 / shared.values as f64;
    assert!((0.8..=1.0).contains(&work), "{owned:?} {shared:?}");
    assert!(10 * owned.wire_bytes < 6 * shared.wire_bytes, "{owned:?} {shared:?}");
    assert!(one.values > shared.values && one.wire_bytes > shared.wire_bytes, "{one:?} {shared:?}");
    // what a job takes once, records share; a helper's takes nothing
    let plan = gate(Op::Relu, 1, 64, 64, 64);
    let [few, many] = [1, 8].map(|records| Semi2k { records, ..Semi2k::alone(3) }.run(&plan).offline);
    assert_eq!((few.base, many.base), (2 * 256, 2 * 256 / 8));
    assert!(Semi2k::helped(3).run(&plan).offline.is_nothing());
}

#[test]
fn forms_trade_bytes_for_rounds() {
    let family = Semi2k::helped(2);
    let (x, bit) = (ty(&[640], 40, 16), ty(&[640], 1, 0));
    let forms = family.forms(&Operation::of_types(&Op::IsNegative, &[&x], &bit));
    assert!(forms.len() > 2 && !forms.contains(&Form::Tree), "{forms:?}");
    let price = |form: &Form| {
        let of = Operation { form: Some(*form), ..Operation::of_types(&Op::IsNegative, &[&x], &bit) };
        family.operation(&of)
    };
    let [few, many] = [price(&forms[0]), price(forms.last().unwrap())];
    assert!(few.key_bytes.most() < many.key_bytes.most() && few.rounds > many.rounds, "{few:?} {many:?}");
    assert!(family.forms(&Operation::of_types(&Op::Mul, &[&x, &x], &x)).is_empty());
}

#[test]
fn the_facts_name_no_dealer() {
    assert!(!FACTS.has_dealer(&Default::default()) && FACTS.needs_preparation());
    assert_eq!((FACTS.fewest_parties(), FACTS.parties_text()), (2, "2 to 8".into()));
    assert_eq!(Semi2k::alone(2).facts().name, "semi2k");
}
