//! What reaches one side is new whenever the other side's randomness is, though all that the first one holds stays as it is:
//! its operands, and its part of all transfers. Of each kind of message no combination of bits may stay the same.
//!
//! Hints, and the client's masks and masked operands, are in `privet_he`: `torus/tests.rs` does the same for them.

use crate::context::Cx;
use crate::gates::relu::relu;
use crate::material::Stock;
use crate::matrices::{self, Matrices};
use crate::product::{self, Second};
use crate::{Side, compare, mux, planes, table};
use privet_net::Step;
use privet_ot::{Pair, Source, Width, ideal};
use privet_plan::suite::{View, unseen};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_testkit::{Mesh, Sent};

/// Runs: more than any view here needs.
const ROWS: usize = 900;
/// Elements: whole bytes of planes, so that no bit is padding.
const N: usize = 8;
/// Transfers of a run in each direction, at most.
const TRANSFERS: usize = 256;

/// Shares that have digits of all kinds: nothing but zeros, nothing but ones, and mixed ones.
const OPERANDS: [[u64; N]; 2] = [[3, 0, 31, 16, 15, 1, 8, 30], [0, 0, 31, 16, 24, 30, 9, 3]];

/// Whether what the holder's peer sends in a program stays the same in any part.
fn check(holder: Side, steps: &[&str], program: impl Fn(&mut Cx, &[u64]) + Sync) {
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let (kept, others) = (Seed::random(), Seed::random());
    mesh.run(|links| {
        let me = links.me();
        let channel = links.to(1 - me);
        let source = Source::SoftSpoken(Width::Four);
        let mut pair = Pair::start(channel, &Step::new(0, "transfers"), source, &Seed::random()).unwrap();
        for row in 0..ROWS {
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
    let is_looked_at = |s: &Sent| s.step.id > 0 && !s.step.name.starts_with("encrypted");
    let sent: Vec<Sent> = log.of(holder.other() as usize).into_iter().filter(is_looked_at).collect();
    assert_eq!(sent.len(), steps.len() * ROWS, "messages to the {holder:?}");
    let mut rows = sent.chunks_exact(steps.len());
    let found = unseen(|| {
        let mut view = View::default();
        for (message, step) in rows.next().expect("rows enough").iter().zip(steps) {
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
    check(Side::Client, server, &program);
    check(Side::Server, client, &program);
}

#[test]
fn comparisons_and_widening_choices_tell_neither_side_anything() {
    let steps = ["entries", "comparison", "choices", "chosen"];
    both(&steps, &["digits", "comparison", "choices", "chosen"], |cx, x| {
        relu(cx, [Ring::new(5), Ring::new(9)], x).unwrap();
    });
}

#[test]
fn equality_and_bits_as_elements_tell_neither_side_anything() {
    let steps = ["entries", "comparison", "products of bits"];
    both(&steps, &["digits", "comparison", "bits"], |cx, x| {
        let bits = compare::zero(cx, Ring::new(5), x).unwrap();
        mux::element(cx, Ring::new(6), &bits, N).unwrap();
    });
}

#[test]
fn choices_tell_neither_side_anything() {
    both(&["choices", "chosen"], &["choices", "chosen"], |cx, x| {
        mux::choose(cx, Ring::new(5), &planes::plane(x, 1), x).unwrap();
    });
}

/// Of two choices with the same operands: what is used once is new the second time.
#[test]
fn a_second_choice_of_the_same_tells_neither_side_anything() {
    let steps = ["choices", "chosen", "choices", "chosen"];
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
        table::look_up(cx, 3, Ring::new(5), &tables, x).unwrap();
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

/// Both operands of two products: no mask serves two.
#[test]
fn products_of_matrices_tell_neither_side_anything() {
    let steps = ["masked matrices"; 2];
    both(&steps, &steps, |cx, x| {
        for _ in 0..2 {
            let of = Matrices { ring: Ring::new(5), m: 2, k: 4, o: 2 };
            matrices::multiply(cx, of, 1, x, x).unwrap();
        }
    });
}
