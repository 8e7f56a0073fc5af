//! Index of the largest element: the tournament of max, in which one bit selects both the value and the index. Ties keep
//! the left candidate, whose index is smaller: the bit is that of x >= y.

use super::in_blocks_of;
use super::max::{differences, winners};
use super::sign;
use super::times::bit_times;
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_plan::cost::Operation;
use privet_plan::tournament::{self, Tournament};
use privet_ring::Ring;

/// Indices in `index` of the winners among values in `ring`; `positions` are the candidates' public ones.
pub(crate) fn eval(
    cx: &mut Party,
    ring: Ring,
    index: Ring,
    tournament: &Tournament,
    mut x: Share,
    positions: &[u64],
) -> Result<Share, RunError> {
    let zero = Share::new(vec![0; positions.len()], vec![0; positions.len()]);
    let mut places = crate::local::plus_public(cx.id, index, &zero, |i| positions[i]);
    for level in &tournament.levels {
        let mut more = [Share::default(), Share::default()];
        if level.pair_len() > 0 {
            let [lead, step] = [differences(level, ring, &x), differences(level, index, &places)];
            more = in_blocks_of(cx, [&lead, &step], |cx, _, [lead, step]| {
                let keep = sign::msb(cx, ring, lead)?.not(cx.id);
                bit_times(cx, &keep, [(ring, lead), (index, step)])
            })?;
        }
        (x, places) = (winners(level, ring, &x, &more[0]), winners(level, index, &places, &more[1]));
    }
    Ok(places)
}

/// [`privet_plan::ir::Op::Argmax`].
pub(crate) struct Argmax {
    pub dim: usize,
}

impl Gate for Argmax {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let shape = &x.ty(0).shape;
        let (games, positions) =
            (tournament::argmax(shape, self.dim), tournament::positions(shape, self.dim));
        Ok(eval(cx, x.from(), x.to(), &games, x.share(0), &positions)?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let games = tournament::argmax(&of.operands[0].ty.shape, self.dim);
        setting.argmax(&games, of.operand_bits(), of.result_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};
    use privet_plan::tournament::{argmax, positions};

    #[test]
    fn the_first_of_the_largest() {
        for (ring, index) in [(Ring::new(6), Ring::new(3)), (Ring::new(40), Ring::new(40))] {
            for shape in [[70, 5, 1], [3, 8, 2], [4, 1, 1], [1, 2, 0]] {
                let n = shape.iter().product();
                let x: Vec<u64> =
                    edges(ring, n).iter().map(|&x| ring.wrap((ring.signed(x) >> 2) as u64)).collect();
                let (walk, places) = (argmax(&shape, 1), positions(&shape, 1));
                let program =
                    |cx: &mut Party| eval(cx, ring, index, &walk, share(cx.id, ring, &x), &places).unwrap();
                let mut expected = Vec::new();
                for o in 0..shape[0] {
                    for i in 0..shape[2] {
                        let at = |p: usize| ring.signed(x[(o * shape[1] + p) * shape[2] + i]);
                        let best = (0..shape[1]).rev().max_by_key(|&p| at(p)).unwrap();
                        expected.push(best as u64);
                    }
                }
                assert_eq!(value(index, program), expected, "{shape:?} of {ring}");
            }
        }
    }
}
