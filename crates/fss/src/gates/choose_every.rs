//! x where all of m bits are 1: a dealt table for each element, of which the masked bits pick one entry.
//!
//! The masked bits `b_j ^ m_j` are public; as the digits of a number p they are all of b XORed with the number m of their masks. All
//! of b are 1 exactly at `p = ~m`. So with `d(p) = 1{p = ~m}` an entry has the words `d(p)` and `s - d(p) r`, and
//! `y + s = d(p) xh + (s - d(p) r)`: no comparison, one round. For one bit that is [`super::choose`].

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, entries};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use std::ops::Deref;

/// [`privet_plan::ir::Op::ChooseEvery`].
pub(crate) struct ChooseEvery;

/// Words of an element's table: two for every value of its bits.
fn words(bits: usize) -> usize {
    2 << bits
}

/// The numbers that `n` elements' bits are the digits of.
fn numbers(n: usize, bits: impl Iterator<Item = impl Deref<Target: AsRef<[u64]>>>) -> Vec<u64> {
    let mut numbers = vec![0; n];
    for (j, bits) in bits.enumerate() {
        numbers.iter_mut().zip(bits.deref().as_ref()).for_each(|(p, b)| *p |= (b & 1) << j);
    }
    numbers
}

/// Operands of a node before the last one.
fn bits(at: &At) -> usize {
    at.node().inputs.len() - 1
}

impl Gate for ChooseEvery {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (m, wire, ring, n) = (bits(&x.at), x.at.wire(), x.at.to(), x.at.len());
        let masks = Secret::new(numbers(n, (0..m).map(|j| x.mask(cx, j))));
        let (r, s) = (x.mask(cx, m), cx.fresh_mask(wire, ring, n));
        let every = (1u64 << m) - 1;
        entries::deal(cx, wire, ring, n, words(m), |i, words| {
            for (p, entry) in (0u64..).zip(words.chunks_exact_mut(2)) {
                let d = u64::from(p ^ masks[i] == every);
                entry.copy_from_slice(&[d, s[i].wrapping_sub(d * r[i])]);
            }
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (m, wire, ring, n) = (bits(&x.at), x.at.wire(), x.at.to(), x.at.len());
        let (at, xh) = (numbers(n, (0..m).map(|j| x.value(j))), x.value(m));
        let mut y = vec![0; n];
        entries::eval(cx, wire, ring, n, words(m), |i, words| {
            let entry = 2 * at[i] as usize;
            y[i] = words[entry].wrapping_mul(xh[i]).wrapping_add(words[entry + 1]);
        })?;
        cx.open_masked("chosen", ring, y)
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "chosen");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::opened(of.elements(), words(of.operands.len() - 1) as u64, of.result_bits())
    }
}
