//! Products of elements.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::product::{self, Second};
use crate::rows::{self, Rows};
use crate::uses::Uses;
use privet_family::Secret;
use privet_plan::Spread;

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Mul;

/// Which operands are a pair of factors.
type Pair = [usize; 2];

/// The pairs of a node, in order.
fn pairs(at: &At) -> impl Iterator<Item = Pair> + use<> {
    (0..at.node().inputs.len()).step_by(2).map(|i| [i, i + 1])
}

/// A pair with the operand behind that stands second, and what that is.
fn second(at: &At, [x, y]: Pair) -> (Pair, Second) {
    match [x, y].map(|i| at.is_static(i)) {
        [_, true] => ([x, y], Second::AtServer),
        [true, false] => ([y, x], Second::AtServer),
        [false, false] if at.node().inputs[x] == at.node().inputs[y] => ([x, y], Second::Same),
        [false, false] => ([x, y], Second::Shared),
    }
}

/// A pair with the operand behind whose numbers each serve a row of the other one, and how many there are, where that takes less than elements by
/// themselves. AGREEMENT.
fn by_rows(at: &At, pair: Pair) -> Option<(Pair, Rows, usize)> {
    let rows = |[elements, numbers]: Pair| {
        let Spread { rows, each } = Spread::of(at.plan, at.node().inputs[numbers])?;
        let of = Rows { ring: at.to(), each, known: at.is_static(numbers) };
        (!at.is_static(elements) && rows::is_less(of, rows)).then_some(([elements, numbers], of, rows))
    };
    let [x, y] = pair;
    if second(at, pair).1 == Second::Same { None } else { rows([x, y]).or_else(|| rows([y, x])) }
}

/// The products of a pair.
fn multiply(cx: &mut Cx, x: &Held, pair: Pair) -> Result<Vec<u64>, RunError> {
    let to = x.at.to();
    let share = |i: usize| Secret::new(x.share(i).iter().map(|v| to.wrap(*v)).collect::<Vec<u64>>());
    if let Some(([elements, numbers], of, _)) = by_rows(&x.at, pair) {
        let order = Spread::order(x.at.plan, x.at.node().inputs[numbers]);
        let (numbers, elements) = (share(numbers), share(elements));
        let numbers: Vec<u64> = order.iter().step_by(of.each).map(|at| numbers[*at]).collect();
        let elements: Vec<u64> = order.iter().map(|at| elements[*at]).collect();
        let products = rows::multiply(cx, of, &elements, &numbers)?;
        let mut out = vec![0; products.len()];
        order.iter().zip(products).for_each(|(at, product)| out[*at] = product);
        return Ok(out);
    }
    let ([x, y], second) = second(&x.at, pair);
    product::multiply(cx, to, &share(x), &share(y), second)
}

impl Gate for Mul {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (to, mut sum) = (x.at.to(), vec![0u64; x.at.len()]);
        for pair in pairs(&x.at) {
            let products = multiply(cx, x, pair)?;
            sum.iter_mut().zip(products).for_each(|(sum, z)| *sum = to.wrap(sum.wrapping_add(z)));
        }
        Ok(sum)
    }

    fn uses(&self, at: &At) -> Uses {
        let of = |pair: Pair| match by_rows(at, pair) {
            Some((_, of, count)) => rows::uses(of, count),
            None => product::uses(at.to().bits(), at.len(), second(at, pair).1),
        };
        pairs(at).map(of).fold(Uses::default(), Uses::then)
    }
}
