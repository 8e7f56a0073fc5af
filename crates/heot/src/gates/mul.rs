//! Products of elements.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::product::{self, Second};
use crate::rows::{self, Rows};
use crate::uses::Uses;
use privet_plan::Spread;

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Mul;

/// The operand that stands second, and what it is.
fn second(at: &At) -> (usize, Second) {
    match [at.is_static(0), at.is_static(1)] {
        [_, true] => (1, Second::AtServer),
        [true, false] => (0, Second::AtServer),
        [false, false] if at.node().inputs[0] == at.node().inputs[1] => (1, Second::Same),
        [false, false] => (1, Second::Shared),
    }
}

/// The operand whose numbers each serve a row of the other one, and how many there are, where that takes less than elements by themselves.
/// AGREEMENT.
fn by_rows(at: &At) -> Option<(usize, Rows, usize)> {
    let rows = |i: usize| {
        let Spread { rows, each } = Spread::of(at.plan, at.node().inputs[i])?;
        let of = Rows { ring: at.to(), each, known: at.is_static(i) };
        (!at.is_static(1 - i) && rows::is_less(of, rows)).then_some((i, of, rows))
    };
    if second(at).1 == Second::Same { None } else { rows(1).or_else(|| rows(0)) }
}

impl Gate for Mul {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        if let Some((spread, of, _)) = by_rows(&x.at) {
            let order = Spread::order(x.at.plan, x.at.node().inputs[spread]);
            let (numbers, elements) = (x.share(spread), x.share(1 - spread));
            let numbers: Vec<u64> = order.iter().step_by(of.each).map(|at| numbers[*at]).collect();
            let elements: Vec<u64> = order.iter().map(|at| elements[*at]).collect();
            let products = rows::multiply(cx, of, &elements, &numbers)?;
            let mut out = vec![0; products.len()];
            order.iter().zip(products).for_each(|(at, product)| out[*at] = product);
            return Ok(out);
        }
        let (y, second) = second(&x.at);
        product::multiply(cx, x.at.to(), &x.share(1 - y), &x.share(y), second)
    }

    fn uses(&self, at: &At) -> Uses {
        match by_rows(at) {
            Some((_, of, count)) => rows::uses(of, count),
            None => product::uses(at.to().bits(), at.len(), second(at).1),
        }
    }
}
