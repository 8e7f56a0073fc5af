//! What reaches one side is new whenever the other side's randomness is, though all that the first one holds stays as it is:
//! its operands, and its part of all transfers. Of each kind of message no combination of bits may stay the same.
//!
//! Hints, and the client's masks and masked operands, are in `privet_he`: `torus/tests.rs` does the same for them.

use crate::context::Cx;
use crate::encryption::Encryption;
use crate::gates::relu::{relu, relu_of_cut};
use crate::gathered;
use crate::leaf::Digits;
use crate::material::{Maker, Stock};
use crate::matrices::{self, Matrices, Way};
use crate::product::{self, Second};
use crate::rows::{self, Rows};
use crate::table::{self, Entries};
use crate::{Side, compare, multiples, mux, planes};
use privet_he::layout::Matmul;
use privet_net::Step;
use privet_ot::{Pair, Source, Width, ideal};
use privet_plan::Cut;
use privet_plan::suite::{View, unseen};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_testkit::{Mesh, Sent};

/// Runs: more than any view here needs that has no seeds in it.
const ROWS: usize = 900;
/// Elements: whole bytes of planes, so that no bit is padding.
const N: usize = 8;
/// Transfers of a run in each direction, at most.
const TRANSFERS: usize = 256;

/// Shares that have digits of all kinds: nothing but zeros, nothing but ones, and mixed ones.
const OPERANDS: [[u64; N]; 2] = [[3, 0, 31, 16, 15, 1, 8, 30], [0, 0, 31, 16, 24, 30, 9, 3]];

/// Whether what the holder's peer sends in a program stays the same in any part.
fn check(rows: usize, holder: Side, steps: &[&str], program: impl Fn(&mut Cx, &[u64]) + Sync) {
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let (kept, others) = (Seed::random(), Seed::random());
    mesh.run(|links| {
        let me = links.me();
        let channel = links.to(1 - me);
        let source = Source::SoftSpoken(Width::Four);
        let mut pair = Pair::start(channel, &Step::new(0, "transfers"), source, &Seed::random()).unwrap();
        for row in 0..rows {
            let drawn = others.derive(Domain::Mask, row as u64);
            ideal::restock(&mut pair, [me, holder as usize], [&kept, &drawn], TRANSFERS);
            let first = 1 + 100 * row as u32;
            let coins = if me == holder as usize { &kept } else { &drawn };
            let prg = coins.derive(Domain::Public, 0).stream();
            let stock = Stock::fresh(pair, prg, first + 50);
            let mut cx = Cx::with(Side::ALL[me], channel, stock, Seed::from_bytes([9; 16]), first);
            program(&mut cx, &OPERANDS[me]);
            pair = cx.into_pair();
        }
    });
    // ciphertexts are megabytes: `privet_he` looks at views of its own products
    let is_looked_at = |s: &Sent| {
        s.step.id > 0 && !["encrypted", "gathered"].iter().any(|kind| s.step.name.starts_with(kind))
    };
    let sent: Vec<Sent> = log.of(holder.other() as usize).into_iter().filter(is_looked_at).collect();
    assert_eq!(sent.len(), steps.len() * rows, "messages to the {holder:?}");
    let mut runs = sent.chunks_exact(steps.len());
    let found = unseen(|| {
        let mut view = View::default();
        for (message, step) in runs.next().expect("runs enough").iter().zip(steps) {
            assert!(message.step.name.ends_with(step), "{} is no `{step}`", message.step.name);
            let bytes: Vec<u64> = message.bytes.iter().map(|b| u64::from(*b)).collect();
            view.elements((*step).into(), Ring::new(8), &bytes);
        }
        view
    });
    assert_eq!(found, Ok(()), "what the {holder:?} sees of {steps:?}");
}

/// With each side as the holder; what the server sends, and what the client sends.
fn both(server: &[&str], client: &[&str], program: impl Fn(&mut Cx, &[u64]) + Sync) {
    both_in(ROWS, server, client, program);
}

/// The same in so many runs.
fn both_in(rows: usize, server: &[&str], client: &[&str], program: impl Fn(&mut Cx, &[u64]) + Sync) {
    check(rows, Side::Client, server, &program);
    check(rows, Side::Server, client, &program);
}

#[test]
fn relus_into_larger_rings_tell_neither_side_anything() {
    let server = ["entries", "comparison", "choices", "bits"];
    let client = ["digits", "comparison", "choices", "bits"];
    for digits in Digits::ALL {
        both(&server, &client, |cx, x| {
            relu(cx, digits, [Ring::new(5), Ring::new(9)], x).unwrap();
        });
    }
}

/// Of values that are cut to three bits.
#[test]
fn relus_of_what_is_cut_tell_neither_side_anything() {
    let server = ["entries", "comparison", "comparison and carry", "choices", "bits"];
    let client = ["digits", "comparison", "comparison and carry", "choices", "bits"];
    both(&server, &client, |cx, x| {
        let cut = Cut { bits: 7, shift: 4, promised: false };
        relu_of_cut(cx, Digits::Three, cut, Ring::new(6), x).unwrap();
    });
    // a low part of two digits, and a high one of two
    both(&server, &client, |cx, x| {
        let cut = Cut { bits: 9, shift: 4, promised: true };
        relu_of_cut(cx, Digits::Two, cut, Ring::new(6), x).unwrap();
    });
}

#[test]
fn equality_and_bits_as_elements_tell_neither_side_anything() {
    let steps = ["entries", "comparison", "bits"];
    let client = ["digits", "comparison", "bits"];
    both(&steps, &client, |cx, x| {
        let bits = compare::zero(cx, Digits::Three, Ring::new(5), x).unwrap();
        mux::element(cx, Ring::new(6), &bits, N).unwrap();
    });
    // four bits: one node
    both(&steps, &client, |cx, x| {
        let bits = compare::zero(cx, Digits::Two, Ring::new(4), x).unwrap();
        mux::element(cx, Ring::new(6), &bits, N).unwrap();
    });
}

#[test]
fn choices_tell_neither_side_anything() {
    both(&["choices"], &["choices"], |cx, x| {
        mux::choose(cx, Ring::new(5), &planes::plane(x, 1), x).unwrap();
    });
}

/// Of two choices with the same operands: what is used once is new the second time.
#[test]
fn a_second_choice_of_the_same_tells_neither_side_anything() {
    let steps = ["choices", "choices"];
    both(&steps, &steps, |cx, x| {
        for _ in 0..2 {
            mux::choose(cx, Ring::new(5), &planes::plane(x, 1), x).unwrap();
        }
    });
}

#[test]
fn tables_tell_neither_side_anything() {
    let tables = [vec![1, 0, 0, 5, 31, 2, 2, 9], vec![0; 8]];
    both(&["entries"], &["index"], |cx, x| {
        table::look_up(cx, 3, Ring::new(5), &Entries::Same(&tables), x).unwrap();
    });
}

#[test]
fn products_tell_neither_side_anything() {
    let steps = ["corrections", "masked factors"];
    both(&steps, &steps, |cx, x| {
        product::multiply(cx, Ring::new(5), x, x, Second::Shared).unwrap();
    });
    both(&steps[1..], &steps, |cx, x| {
        product::multiply(cx, Ring::new(5), x, x, Second::Same).unwrap();
    });
    both(&steps[1..], &steps, |cx, x| {
        let known = if cx.side == Side::Server { x.to_vec() } else { vec![0; N] };
        product::multiply(cx, Ring::new(5), x, &known, Second::AtServer).unwrap();
    });
}

/// A number that serves eight elements, twice: two digits, and no seed and no mask serves two.
#[test]
fn products_of_rows_tell_neither_side_anything() {
    let of = |known| Rows { ring: Ring::new(8), each: N, known };
    let (rows, steps) = (2600, ["corrections", "masked factors", "corrections", "masked factors"]);
    both_in(rows, &steps, &steps, |cx, x| {
        for _ in 0..2 {
            rows::multiply(cx, of(false), x, &x[..1]).unwrap();
        }
    });
    both_in(rows, &["masked factors"; 2], &steps, |cx, x| {
        let known = if cx.side == Side::Server { x[0] } else { 0 };
        for _ in 0..2 {
            rows::multiply(cx, of(true), x, &[known]).unwrap();
        }
    });
}

/// Products with what the client knows, of one bit and of two, each twice.
#[test]
fn multiples_tell_neither_side_anything() {
    for (bits, server) in
        [(1, &["multiples"; 2][..]), (2, &["corrections", "multiples", "corrections", "multiples"])]
    {
        both(server, &["multiples"; 2], |cx, x| {
            let mask = Ring::new(bits);
            let known = x.iter().map(|x| if cx.side == Side::Client { mask.wrap(*x) } else { 0 });
            let known: Vec<u64> = known.collect();
            for _ in 0..2 {
                multiples::multiply(cx, Ring::new(5), bits, x, &known).unwrap();
            }
        });
    }
}

/// A table of the server's own for each element.
#[test]
fn exponentials_tell_neither_side_anything() {
    both(&["entries"], &["index"], |cx, x| {
        let own = |i: usize, table: usize, entries: &mut [u64]| {
            entries
                .iter_mut()
                .enumerate()
                .for_each(|(j, entry)| *entry = x[i] * (1 + table as u64) + j as u64);
        };
        let entries = Entries::Own { tables: 2, of: &own };
        table::look_up(cx, 3, Ring::new(5), &entries, x).unwrap();
    });
}

/// A side's share of gathered products, whose operands are always the same on both sides: new whenever the peer's coins are.
#[test]
fn shares_of_gathered_products_tell_neither_side_anything() {
    let (ring, shape) = (Ring::new(5), Matmul { groups: 1, m: 2, k: 1, o: 4 });
    for holder in Side::ALL {
        let (kept, others) = (Seed::random(), Seed::random());
        let shares = Mesh::new(2).run(|links| {
            let me = links.me();
            let channel = links.to(1 - me);
            let source = Source::SoftSpoken(Width::Four);
            let mut pair = Pair::start(channel, &Step::new(0, "transfers"), source, &Seed::random()).unwrap();
            let mut encryption = Encryption::new(1);
            let (a, b) = OPERANDS[me].split_at(2);
            let row = |row: usize| {
                let drawn = others.derive(Domain::Mask, row as u64);
                let coins = if me == holder as usize { &kept } else { &drawn };
                let prg = &mut coins.derive(Domain::Public, 0).stream();
                let (side, pair, encryption) = (Side::ALL[me], &mut pair, &mut encryption);
                let mut maker = Maker { side, pair, channel: &mut *channel, step: 1, prg, encryption };
                gathered::product(&mut maker, ring, shape, a, &b[..4]).unwrap().to_vec()
            };
            (0..ROWS).map(row).collect::<Vec<_>>()
        });
        let mut rows = shares[holder as usize].iter();
        let found = unseen(|| {
            let mut view = View::default();
            view.elements("share".into(), ring, rows.next().expect("runs enough"));
            view
        });
        assert_eq!(found, Ok(()), "what the {holder:?} has");
    }
}

/// Both operands of two products: no mask serves two.
#[test]
fn products_of_matrices_tell_neither_side_anything() {
    let steps = ["masked matrices"; 2];
    both(&steps, &steps, |cx, x| {
        for _ in 0..2 {
            let of = Matrices { ring: Ring::new(5), m: 2, k: 4, o: 2, way: Way::Blocks };
            matrices::multiply(cx, of, 1, x, x).unwrap();
        }
    });
}
