//! ReLUs of values that are cut to fewer bits: nobody else reads what is between, or somebody does.

use super::{Builder, Case};
use crate::ir::{Op, Rounding};

/// ReLUs that alone read a truncation to every kind of ring, into their own ring and a larger one; and truncations that are read twice, or
/// revealed.
pub(super) fn cuts() -> Vec<Case> {
    let alone = [(37, 12, 37, 300), (8, 3, 5, 70), (9, 7, 9, 60), (64, 24, 64, 500), (40, 1, 39, 65)];
    let mut all: Vec<Case> = alone.into_iter().map(|(k, shift, to, n)| cut(k, shift, to, n)).collect();
    let mut b = Builder::new("a truncation that two ReLUs read, and one that is revealed");
    let [twice, revealed] = [4, 5].map(|shift| truncated(&mut b, 20, shift, 70));
    let relus = [(twice, 20), (twice, 18), (revealed, 20)].map(|(y, to)| b.add(Op::Relu, &[y], &[70], to));
    all.push(b.done(&[&relus[..], &[revealed]].concat()));
    let promised =
        [(37, 12, 37, 300), (8, 3, 6, 70), (9, 6, 4, 60), (64, 24, 64, 500), (40, 1, 40, 65), (12, 9, 9, 40)];
    all.extend(promised.into_iter().map(|(k, shift, to, n)| promised_cut(k, shift, to, n)));
    all
}

fn truncated(b: &mut Builder, k: u32, shift: u32, n: usize) -> usize {
    let x = b.input(&[n], k);
    b.frac(x, shift);
    b.add(Op::Truncate { shift, rounding: Rounding::Floor }, &[x], &[n], k - shift)
}

/// The truncation has a bit more than is left. Its operand is extended from a bit less, so that it keeps the promise.
fn promised_cut(k: u32, shift: u32, to: u32, n: usize) -> Case {
    let mut b =
        Builder::new(&format!("relu of {k} bits promised and cut by {shift}, into {to}, {n} elements"));
    let half = b.input(&[n], k - 1);
    let x = b.add(Op::Extend, &[half], &[n], k);
    [half, x].into_iter().for_each(|v| b.frac(v, shift));
    let y = b.add(Op::Truncate { shift, rounding: Rounding::Floor }, &[x], &[n], k - shift + 1);
    let z = b.add(Op::Relu, &[y], &[n], to);
    b.done(&[z])
}

fn cut(k: u32, shift: u32, to: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("relu of {k} bits cut by {shift}, into {to}, {n} elements"));
    let y = truncated(&mut b, k, shift, n);
    let z = b.add(Op::Relu, &[y], &[n], to);
    b.done(&[z])
}
