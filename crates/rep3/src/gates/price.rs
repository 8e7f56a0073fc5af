//! What the gates send, and remember to prove, is what the cost model declares, for every party, of either security.

use super::{argmax, choose, cut, equal, extend, lookup, max, pieces, relu, sign, truncate};
use crate::limits::Limits;
use crate::linear::{self, Operand};
use crate::price::Stated;
use crate::price::lookup::{exponential_width, quadratic_width, width};
use crate::testing::{edges, keys, share, three, value};
use crate::{Party, PartyId, Planes, Rep3, Security, Share, Talk, hidden_coins};
use privet_family::Products;
use privet_kernels::LinearShape;
use privet_plan::cost::Operation;
use privet_plan::ir::{Op, Rounding, Type};
use privet_plan::tables::{Exponential, Pieces};
use privet_plan::tournament;
use privet_plan::waves::Waves;
use privet_plan::{Cut, Form};
use privet_ring::{Conv2d, Pool2d, Ring};

fn check(op: &Op, shape: &[usize], (from, to): (u32, u32), program: impl Fn(&mut Party, &Share) + Sync) {
    let operand = Type { shape: shape.to_vec(), bits: from, frac: 0 };
    let n = shape.iter().product();
    let out = match op {
        Op::Argmax { dim } => tournament::argmax(shape, *dim).output_len(),
        Op::MaxPool2d { window } => tournament::max_pool(window, shape)[1].output_len(),
        _ => n,
    };
    let result = Type { shape: vec![out], bits: to, frac: 0 };
    let x = edges(Ring::new(from), n);
    counted(op, &[&operand], &result, |cx| program(cx, &share(cx.id, Ring::new(from), &x)));
}

fn counted(op: &Op, operands: &[&Type], result: &Type, program: impl Fn(&mut Party) + Sync) {
    counted_of(&Operation::of_types(op, operands, result), program);
}

fn counted_of(of: &Operation, program: impl Fn(&mut Party) + Sync) {
    for (security, declared) in [
        (Security::SemiHonest, privet_plan::cost::Security::SemiHonest),
        (Security::Malicious, privet_plan::cost::Security::Malicious),
    ] {
        let prices = Rep3 { security: declared };
        let parties = three(security, |cx| {
            program(cx);
            let stated = cx.transcript.take().map(|transcript| transcript.stated(cx.id));
            (cx.stats.sent_bytes, cx.stats.rounds, stated)
        });
        let sent = Talk { sent: parties.each_ref().map(|c| c.0), rounds: parties[0].1 };
        let declared = prices.talk(of);
        assert_eq!(declared, sent, "{of:?}, {security}");
        let claims = prices.claims(of);
        let declared = (sorted(claims.stated), claims.bytes);
        for (stated, bytes) in parties.into_iter().filter_map(|party| party.2) {
            let counted = (sorted(stated), bytes);
            assert_eq!(declared, counted, "statements about {of:?}");
        }
    }
}

/// Batches of statements in an order of their own: what proving them costs does not depend on theirs.
fn sorted(mut all: [Stated; 3]) -> [Stated; 3] {
    for stated in &mut all {
        stated.bits.sort_unstable();
        stated.numbers.sort_unstable();
        stated.ring.sort_unstable();
    }
    all
}

#[test]
fn declared_is_counted() {
    for n in [1, 64, 129, 500] {
        for (from, to) in
            [(1, 1), (1, 2), (2, 2), (3, 40), (4, 4), (5, 64), (13, 32), (24, 24), (32, 64), (64, 64)]
        {
            let (k, k2) = (Ring::new(from), Ring::new(to));
            check(&Op::IsNegative, &[n], (from, to), |cx, x| drop(sign::eval(cx, k, k2, x).unwrap()));
            check(&Op::IsNegative, &[n], (from, 1), |cx, x| drop(sign::bits(cx, k, x).unwrap()));
            check(&Op::Equal, &[n], (from, 1), |cx, x| drop(equal::bits(cx, k, x).unwrap()));
            check(&Op::Equal, &[n], (from, to), |cx, x| drop(equal::eval(cx, k, k2, x).unwrap()));
            check(&Op::Relu, &[n], (from, to), |cx, x| drop(relu::eval(cx, k, k2, x).unwrap()));
            check(&Op::Extend, &[n], (from, to), |cx, x| drop(extend::eval(cx, k, k2, x).unwrap()));
            check(&Op::Max, &[n], (from, from), |cx, x| drop(max::eval(cx, k, x, x).unwrap()));
        }
        for (from, shift) in [(2, 1), (5, 3), (32, 13), (64, 24), (64, 63)] {
            for rounding in [Rounding::Floor, Rounding::Stochastic, Rounding::OneUlp] {
                let op = Op::Truncate { shift, rounding };
                for to in [from - shift, from - shift + 1, from, 64] {
                    if to > from - shift && shift + 2 > from {
                        continue;
                    }
                    check(&op, &[n], (from, to), |cx, x| {
                        truncate::eval(cx, (Ring::new(from), Ring::new(to)), shift, rounding, x).unwrap();
                    });
                }
            }
        }
    }
}

/// Every number of pairs below the cut, odd bits, and more rounds than a sign takes.
#[test]
fn declared_is_counted_in_relus_of_truncations() {
    let cuts = (1..=62).map(|shift| (64, shift)).chain([(3, 1), (4, 1), (4, 2), (12, 9), (33, 15)]);
    for (n, (bits, shift)) in [1, 129].into_iter().flat_map(|n| cuts.clone().map(move |of| (n, of))) {
        let (cut, left) = (Cut { bits, shift, promised: false }, bits - shift);
        for to in [left, left + 1, 64] {
            let [x, y] = [left, to].map(|bits| Type { shape: vec![n], bits, frac: 0 });
            let of = Operation { cut: Some(cut), ..Operation::of_types(&Op::Relu, &[&x], &y) };
            let [ring, left, to] = [bits, left, to].map(Ring::new);
            counted_of(&of, |cx| {
                drop(cut::relu(cx, cut, to, &share(cx.id, ring, &edges(ring, n))).unwrap());
            });
            let of = Operation { form: Some(Form::AfterTruncation), ..of };
            counted_of(&of, |cx| {
                drop(cut::apart(cx, cut, [left, to], &share(cx.id, ring, &edges(ring, n))).unwrap());
            });
        }
    }
}

#[test]
fn declared_is_counted_in_choices() {
    for n in [1, 129, Rep3::BLOCK + 65] {
        let bit = Type { shape: vec![n], bits: 1, frac: 0 };
        counted(&Op::Choose, &[&bit, &bit], &bit, |cx| {
            let words = vec![0; n.div_ceil(64)];
            let bits = Planes::new(n, 1, words.clone(), words);
            choose::both(cx, &bits, &bits.clone()).unwrap();
        });
    }
    for (n, bits) in [(1, 3), (129, 2), (500, 40), (64, 64), (Rep3::BLOCK + 65, 2)] {
        let ring = Ring::new(bits);
        let [bit, x] = [1, bits].map(|bits| Type { shape: vec![n], bits, frac: 0 });
        counted(&Op::Choose, &[&bit, &x], &x, |cx| {
            let words = vec![0; n.div_ceil(64)];
            let bit = Planes::new(n, 1, words.clone(), words);
            choose::eval(cx, ring, &bit, &share(cx.id, ring, &edges(ring, n))).unwrap();
        });
    }
}

#[test]
fn declared_is_counted_in_look_ups() {
    let of = |shape: &[usize], bits: u32, frac: u32| Type { shape: shape.to_vec(), bits, frac };
    for n in [1, 129, 300] {
        for (bits, to) in [(1, 64), (3, 7), (4, 64), (8, 2)] {
            let tables = vec![vec![5; 1 << bits]; 3];
            let (x, y) = (of(&[n], bits, 0), of(&[3, n], to, 0));
            let rings = [bits, to].map(Ring::new);
            counted(&Op::Lookup { tables: tables.clone() }, &[&x], &y, |cx| {
                lookup::tables(cx, rings, &tables, &share(cx.id, rings[0], &edges(rings[0], n))).unwrap();
            });
        }
        for (bits, shift, to) in [(2, 0, 64), (2, 1, 1), (5, 20, 64)] {
            let pieces = vec![[1, 2, 3]; 1 << bits];
            let (x, y) = (of(&[n], bits + shift, 0), of(&[n], to, 0));
            let rings = [bits + shift, to].map(Ring::new);
            counted(&Op::Piecewise { shift, pieces: pieces.clone() }, &[&x], &y, |cx| {
                let x = share(cx.id, rings[0], &edges(rings[0], n));
                pieces::piecewise(cx, rings, &Pieces { shift, pieces: &pieces }, &x).unwrap();
            });
        }
        for (whole, frac, first, rows) in [(5, 24, 25, vec![(-30, 35)]), (6, 9, 18, vec![(-32, 29), (10, 5)])]
        {
            let (x, y) = (of(&[n], whole + frac, frac), of(&[rows.len(), n], 64, 0));
            let (ring, e) = (Ring::new(x.bits), Exponential::new(&x, first, &rows, 0).unwrap());
            counted(&Op::Exponential { first, rows: rows.clone(), scale: 0 }, &[&x], &y, |cx| {
                pieces::exponentials(cx, [ring, Ring::R64], &e, &share(cx.id, ring, &edges(ring, n)))
                    .unwrap();
            });
        }
    }
}

/// As many elements as are read at a time, and some more: gates and prices cut them alike, and results are the same.
#[test]
fn long_look_ups_are_read_in_blocks() {
    let of = |n: usize, bits: u32| Type { shape: vec![n], bits, frac: 0 };
    let longer = |width: usize| {
        assert!(width > 8, "elements that take much");
        Limits::default().over(width).block + 65
    };
    let tables = [(0..64).map(|i| i * i % 67).collect::<Vec<i64>>()];
    let (n, rings) = (longer(width(6, 1, 64)), [6, 9].map(Ring::new));
    let places: Vec<u64> = (0..n as u64).map(|i| i % 64).collect();
    counted(&Op::Lookup { tables: tables.to_vec() }, &[&of(n, 6)], &of(n, 9), |cx| {
        let x = share(cx.id, rings[0], &places);
        lookup::tables(cx, rings, &tables, &x).unwrap();
    });
    let found =
        value(rings[1], |cx| lookup::tables(cx, rings, &tables, &share(cx.id, rings[0], &places)).unwrap());
    assert!(found.iter().zip(&places).all(|(y, x)| *y == tables[0][*x as usize] as u64));

    let pieces: Vec<[i64; 3]> = (0..8).map(|i| [i, 3 * i, 1]).collect();
    let (n, rings) = (longer(quadratic_width(3, 8)), [5, 20].map(Ring::new));
    counted(&Op::Piecewise { shift: 2, pieces: pieces.clone() }, &[&of(n, 5)], &of(n, 20), |cx| {
        let x = share(cx.id, rings[0], &edges(rings[0], n));
        pieces::piecewise(cx, rings, &Pieces { shift: 2, pieces: &pieces }, &x).unwrap();
    });

    let x = Type { shape: vec![1], bits: 14, frac: 9 };
    let rows = vec![(-32, 29), (10, 5)];
    let e = Exponential::new(&x, 18, &rows, 0).unwrap();
    let n = longer(exponential_width(5, [2, pieces::different(&e.rising())]));
    let (x, y) = (Type { shape: vec![n], ..x }, Type { shape: vec![2, n], bits: 64, frac: 0 });
    counted(&Op::Exponential { first: 18, rows: rows.clone(), scale: 0 }, &[&x], &y, |cx| {
        let x = share(cx.id, Ring::new(14), &edges(Ring::new(14), n));
        pieces::exponentials(cx, [Ring::new(14), Ring::R64], &e, &x).unwrap();
    });
}

#[test]
fn declared_is_counted_in_waves() {
    let waves = vec![[1, 2]; 40];
    // nobody can prove them, so the declared statements are none
    for n in [1, 129, crate::moves::masked_block(80) + 70, 3 * crate::moves::masked_block(80)] {
        let [x, y] = [20, 64].map(|bits| Type { shape: vec![n], bits, frac: 0 });
        let op = Op::Waves { step: 1, digits: 29, waves: waves.clone() };
        let sum = Waves::new(20, 1, 29, &waves).unwrap();
        let found = three(Security::SemiHonest, |cx| {
            super::waves::eval(cx, Ring::R64, &sum, &share(cx.id, Ring::new(20), &edges(Ring::new(20), n)))
                .unwrap();
            (cx.stats.sent_bytes, cx.stats.rounds)
        });
        let declared = Rep3 { security: Security::SemiHonest }.talk(&Operation::of_types(&op, &[&x], &y));
        assert_eq!(declared, Talk { sent: found.map(|f| f.0), rounds: found[0].1 }, "{n} elements");
        let refused = three(Security::Malicious, |cx| {
            let x = share(cx.id, Ring::new(20), &edges(Ring::new(20), n));
            super::waves::eval(cx, Ring::R64, &sum, &x).is_err() && cx.stats.sent_bytes == 0
        });
        assert!(refused.iter().all(|refused| *refused), "nothing is sent that cannot be proved");
    }
}

/// Blocks overlap, so several of them could be taken for one another.
#[test]
fn waves_of_several_blocks_are_those_of_every_element() {
    let (waves, bits) = (vec![[3, -2]; 40], 20);
    let block = crate::moves::masked_block(80);
    let (sum, n) = (Waves::new(bits, 1, 29, &waves).unwrap(), 3 * block + 70);
    let x = edges(Ring::new(bits), n);
    let shares = three(Security::SemiHonest, |cx| {
        super::waves::eval(cx, Ring::R64, &sum, &share(cx.id, Ring::new(bits), &x)).unwrap()
    });
    let found = crate::testing::open(Ring::R64, shares.each_ref());
    let pairs = PartyId::ALL.map(|id| keys(id).own);
    let coins = hidden_coins(pairs.each_ref(), 0, bits, n, block);
    assert_eq!(found.len(), n);
    for (i, (found, (x, d))) in found.iter().zip(x.iter().zip(coins)).enumerate() {
        assert_eq!(*found, sum.at(*x, d), "element {i} of {n}");
    }
}

#[test]
fn declared_is_counted_in_tournaments() {
    let (ring, index) = (Ring::new(20), Ring::new(7));
    for shape in [[3, 10, 7, 5], [1, 1, 2, 3]] {
        let window =
            Pool2d { kernel: [2; 2], stride: [1; 2], padding: [0; 2], dilation: [1; 2], ceil_mode: false };
        let [rows, columns] = tournament::max_pool(&window, &shape);
        check(&Op::MaxPool2d { window }, &shape, (20, 20), |cx, x| {
            let x = max::tournament(cx, ring, &rows, x.clone()).unwrap();
            max::tournament(cx, ring, &columns, x).unwrap();
        });
        let (walk, places) = (tournament::argmax(&shape, 1), tournament::positions(&shape, 1));
        check(&Op::Argmax { dim: 1 }, &shape, (20, 7), |cx, x| {
            argmax::eval(cx, ring, index, &walk, x.clone(), &places).unwrap();
        });
    }
}

#[test]
fn long_vectors_go_in_blocks() {
    let (n, ring) = (Rep3::BLOCK + 65, Ring::new(2));
    check(&Op::Relu, &[n], (2, 2), |cx, x| drop(relu::eval(cx, ring, ring, x).unwrap()));
    check(&Op::IsNegative, &[n], (2, 1), |cx, x| {
        let bits = sign::bits(cx, ring, x).unwrap();
        assert_eq!((bits.n, bits.own.len()), (n, n.div_ceil(64)));
    });
}

#[test]
fn declared_is_counted_in_products() {
    let (ring, bits) = (Ring::new(20), 20);
    let ty = |shape: &[usize]| Type { shape: shape.to_vec(), bits, frac: 0 };
    let zeros = |ty: &Type| Share::new(vec![0; ty.len()], vec![0; ty.len()]);
    for n in [1, 130] {
        let x = ty(&[n]);
        counted(&Op::Mul, &[&x, &x], &x, |cx| drop(linear::mul(cx, ring, &zeros(&x), &zeros(&x)).unwrap()));
    }
    let geometry = Conv2d {
        batch: 2,
        in_channels: 4,
        input: [5, 6],
        out_channels: 6,
        kernel: [3, 2],
        stride: [1, 2],
        padding: [1, 1, 0, 0],
        dilation: [1; 2],
        groups: 2,
    };
    let [height, width] = geometry.output();
    let one = |shape| Products { shape, count: 1 };
    let batch = Products { shape: LinearShape::MatMul { m: 3, k: 4, n: 2 }, count: 10 };
    let large = Products { shape: LinearShape::MatMul { m: 3, k: 4, n: 5 }, count: 10 };
    for (op, products, x, w, y) in [
        (Op::Linear, one(LinearShape::MatMulT { m: 3, k: 5, n: 2 }), ty(&[3, 5]), ty(&[2, 5]), ty(&[3, 2])),
        (Op::Linear, one(LinearShape::MatMulT { m: 3, k: 5, n: 7 }), ty(&[3, 5]), ty(&[7, 5]), ty(&[3, 7])),
        (Op::MatMul, large, ty(&[5, 2, 3, 4]), ty(&[5, 2, 4, 5]), ty(&[5, 2, 3, 5])),
        (Op::MatMul, batch, ty(&[5, 2, 3, 4]), ty(&[5, 2, 4, 2]), ty(&[5, 2, 3, 2])),
        (
            Op::Conv2d { geometry },
            one(LinearShape::Conv2d(geometry)),
            ty(&[2, 4, 5, 6]),
            ty(&[6, 2, 3, 2]),
            ty(&[2, 6, height, width]),
        ),
    ] {
        counted(&op, &[&x, &w], &y, |cx| {
            let operand = Operand::new(cx.device, ring, products, &zeros(&w));
            linear::products(cx, ring, products, &zeros(&x), &operand, None).unwrap();
        });
    }
}
