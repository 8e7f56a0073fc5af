//! Gates by themselves: what they cost, all shares of small rings, the ends of large ones, and what their messages tell.

use super::*;
use crate::rows::{self, Rows};
use privet_plan::Cut;

/// The bits of docs/heot.md, of both sides, counted: by digits of three bits, and of two.
#[test]
fn comparisons_and_choices_cost_what_the_tables_say() {
    let n = 640;
    let bits = |uses: Uses| {
        let total: u64 = uses.bytes.iter().sum();
        (8 * total / n as u64, uses.transfers().iter().sum::<usize>() / n, uses.steps)
    };
    let stored = |uses: Uses| uses.stored().map(|bytes| 8 * bytes / n as u64);
    let said = |digits: Digits| {
        let carry = |k| compare::carry_uses(digits, k, n);
        let relu = |from, to| crate::gates::relu::relu_uses(digits, [from, to], n);
        let of_cut = |promised| {
            let cut = Cut { bits: 37, shift: 12, promised };
            crate::gates::relu::relu_of_cut_uses(digits, cut, 37, n)
        };
        let all = [
            carry(12),
            carry(24),
            carry(36),
            carry(40),
            carry(63),
            relu(25, 37),
            relu(37, 37),
            relu(25, 25),
            of_cut(false),
            of_cut(true),
        ];
        all.map(|uses| (bits(uses.clone()), stored(uses)))
    };
    assert_eq!(
        said(Digits::Three),
        [
            ((60, 18, 4), [55, 30]),
            ((130, 38, 5), [121, 68]),
            ((200, 58, 6), [187, 106]),
            ((226, 66, 6), [212, 124]),
            ((360, 103, 7), [338, 194]),
            ((195, 41, 7), [210, 168]),
            ((276, 60, 7), [299, 218]),
            ((182, 40, 6), [197, 144]),
            ((292, 62, 8), [303, 256]),
            ((278, 60, 7), [287, 243]),
        ]
    );
    assert_eq!(
        said(Digits::Two),
        [
            ((54, 22, 5), [53, 42]),
            ((118, 46, 6), [117, 94]),
            ((182, 70, 7), [181, 146]),
            ((204, 78, 7), [203, 164]),
            ((333, 125, 7), [332, 271]),
            ((183, 49, 8), [206, 194]),
            ((258, 72, 8), [293, 258]),
            ((170, 48, 7), [193, 170]),
            ((274, 74, 9), [297, 296]),
            ((260, 72, 8), [281, 281]),
        ]
    );
    let leaves = Leaves::whole(24, Wanted::Less, Digits::Three);
    assert_eq!(bits(leaf::uses(leaves, n)), (94, 24, 2));
}

/// The same of products before a run and in it: bytes of both sides before, transfers, bits in the run, steps, and bits of the records.
#[test]
fn products_cost_what_the_tables_say() {
    let (ring, n, each) = (Ring::new(37), 64, 768);
    let of = |uses: Uses, elements: usize| {
        let (all, made) = (|bytes: [u64; 2]| bytes.iter().sum::<u64>() as f64, uses.made());
        let each = |total: f64| (10.0 * total / elements as f64).round() / 10.0;
        let transfers = uses.transfers().iter().sum::<usize>() as f64;
        let stored = uses.stored().map(|bytes| each(bytes as f64));
        (each(all(made.bytes)), each(transfers), each(all(uses.bytes)), uses.steps, stored)
    };
    let elements = |second| of(product::uses(37, 8 * n, second), 8 * n);
    // without what Ferret sends for transfers
    assert_eq!(elements(Second::Shared), (166.5, 74.0, 18.5, 1, [13.9; 2]));
    assert_eq!(elements(Second::Same), (83.3, 37.0, 9.3, 1, [9.3; 2]));
    let row = |known| of(rows::uses(Rows { ring, each, known }, n), n * each);
    assert_eq!(row(false), (39.8, 0.1, 9.3, 1, [9.3; 2]));
    assert_eq!(row(true), (19.9, 0.0, 4.6, 1, [4.6, 9.3]));
    let ty = |shape: &[usize], bits, frac| Type { shape: shape.to_vec(), bits, frac };
    let node =
        |op, inputs: &[usize], ty| Node { op, inputs: inputs.to_vec(), ty, layer: String::new(), form: None };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    for (scale, least, cost) in [(0, -30, (58.6, 21.0, 114.1, 4)), (1, -14, (65.0, 22.0, 62.0, 4))] {
        let e = Op::Exponential { first: 14, rows: vec![(least, 24)], scale };
        let from = ty(&[n], 17, 12 + scale);
        let nodes = vec![node(input.clone(), &[], from), node(e, &[0], ty(&[1, n], 41, 0))];
        let (name, outputs, updates) = (String::new(), Vec::new(), Vec::new());
        let plan = Plan { version: PLAN_VERSION, name, batch: n, nodes, outputs, updates };
        let Kind::Gate(gate) = kind(&plan.nodes[1].op) else { panic!("a gate") };
        let found = of(gate.uses(&At { plan: &plan, id: 1 }), n);
        assert_eq!((found.0, found.1, found.2, found.3), cost, "scale {scale}");
    }
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
    for (bits, digits) in [1, 2, 3, 4, 6].into_iter().flat_map(|bits| Digits::ALL.map(move |cut| (bits, cut)))
    {
        let n = 1usize << (2 * bits);
        let ring = Ring::new(bits);
        let own = |side: Side| -> Vec<u64> {
            (0..n as u64).map(|i| ring.wrap(i >> (bits * side as u32))).collect()
        };
        let found = both(|cx, _| {
            let x = own(cx.side);
            let carry = compare::carry(cx, digits, bits, &x).unwrap();
            let negative = compare::negative(cx, digits, ring, &x).unwrap();
            [carry, negative, compare::zero(cx, digits, ring, &x).unwrap()]
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

/// The same of carries out of low parts together with signs: all shares, and every place where a ring of six bits is cut.
#[test]
fn carries_and_signs_of_one_comparison_are_right() {
    let (ring, n) = (Ring::new(6), 1 << 12);
    let own = |side: Side| -> Vec<u64> { (0..n).map(|i| ring.wrap(i >> (6 * side as u32))).collect() };
    for (low, digits) in (1..5).flat_map(|low| Digits::ALL.map(move |cut| (low, cut))) {
        let cut = Cut { bits: 6, shift: low, promised: false };
        let found = both(|cx, _| compare::carry_and_sign(cx, digits, cut, &own(cx.side)).unwrap());
        let (s, c, part) = (own(Side::Server), own(Side::Client), Ring::new(low));
        for i in 0..n as usize {
            let carry = found.iter().fold(0, |sum, (carry, _)| sum + carry[i]);
            let sign = found.iter().fold(0, |sum, (_, sign)| sum ^ planes::bit(sign, i));
            let expected = (part.wrap(s[i]) + part.wrap(c[i])) >> low;
            assert_eq!(Ring::new(6 - low).wrap(carry), expected, "{} and {} cut by {low}", s[i], c[i]);
            assert_eq!(sign, ring.msb(s[i] + c[i]), "{} and {} cut by {low}", s[i], c[i]);
        }
    }
}

/// ReLUs of what is cut, into a larger ring: all shares of all values of seven bits, and of those that a plan may promise.
#[test]
fn relus_of_what_is_cut_are_right_for_all_shares() {
    let (ring, to) = (Ring::new(7), Ring::new(9));
    let kinds = (1..6).flat_map(|shift| [false, true].map(|promised| (shift, promised)));
    for ((shift, promised), digits) in kinds.flat_map(|kind| Digits::ALL.map(move |cut| (kind, cut))) {
        let cut = Cut { bits: 7, shift, promised };
        if cut.chosen_bits() < 2 {
            continue;
        }
        let most = if promised { 1i64 << 5 } else { 1 << 6 };
        let values = (-most..most).flat_map(|x| (0..1 << 7).map(move |s| (x, s)));
        let shares: Vec<(i64, [u64; 2])> =
            values.map(|(x, s)| (x, [s, ring.wrap((x as u64).wrapping_sub(s))])).collect();
        let found = both(|cx, _| {
            let own: Vec<u64> = shares.iter().map(|(_, own)| own[cx.side as usize]).collect();
            crate::gates::relu::relu_of_cut(cx, digits, cut, to, &own).unwrap()
        });
        for (found, (x, [s, _])) in sums(to, &found).iter().zip(&shares) {
            assert_eq!(
                *found,
                to.wrap((x >> shift).max(0) as u64),
                "{x} with {s} at the server, {cut:?}, {digits:?}"
            );
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
        let positive = |x: &u64| to.wrap(from.signed(*x).max(0) as u64);
        let truth: Vec<u64> = sums(from, &x).iter().map(positive).collect();
        for digits in Digits::ALL {
            let relu =
                |cx: &mut Cx| crate::gates::relu::relu(cx, digits, [from, to], &x[cx.side as usize]).unwrap();
            assert_eq!(sums(to, &both(|cx, _| relu(cx))), truth, "{from} to {to}, {digits:?}");
        }
    }
    for k in [1, 2, 3, 63, 64] {
        let ring = Ring::new(k);
        let (x, y, d) = (ends(ring, &mut prg), ends(ring, &mut prg), ends(Ring::new(1), &mut prg));
        let found = both(|cx, _| {
            let i = cx.side as usize;
            let (bits, n) = (planes::plane(&d[i], 0), x[i].len());
            let chosen = mux::choose(cx, ring, &bits, &x[i]).unwrap();
            let product = product::multiply(cx, ring, &x[i], &y[i], Second::Shared).unwrap();
            let square = product::multiply(cx, ring, &x[i], &x[i], Second::Same).unwrap();
            [chosen, product, square, mux::element(cx, ring, &bits, n).unwrap()]
        });
        let of = |which: usize| sums(ring, &[found[0][which].clone(), found[1][which].clone()]);
        let bits: Vec<u64> = d[0].iter().zip(&d[1]).map(|(a, b)| a ^ b).collect();
        let (x, y) = (sums(ring, &x), sums(ring, &y));
        for i in 0..x.len() {
            let [product, square] = [y[i], x[i]].map(|y| ring.wrap(x[i].wrapping_mul(y)));
            let truth = [x[i] * bits[i], product, square, bits[i]];
            assert_eq!([0, 1, 2, 3].map(|which| of(which)[i]), truth, "{ring}, element {i}");
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
        let row =
            |_| crate::gates::relu::relu(&mut cx, Digits::Three, [from, to], &x[side as usize]).unwrap();
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
