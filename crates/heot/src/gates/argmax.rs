//! Index of the largest element: the tournament of max, in which one bit chooses both the value and the index. Ties keep the
//! left candidate, whose index is smaller: the bit is that of `x >= y`.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::gates::relu::complement;
use crate::uses::Uses;
use crate::{compare, mux};
use privet_plan::tournament;
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Argmax`].
pub(crate) struct Argmax {
    pub dim: usize,
}

fn difference(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(x, y)| ring.wrap(x.wrapping_sub(*y))).collect()
}

fn sum(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(x, y)| ring.wrap(x.wrapping_add(*y))).collect()
}

impl Gate for Argmax {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (ring, index, shape) = (x.at.from(), x.at.to(), &x.at.operand(0).shape);
        let mut values = x.share(0).to_vec();
        let positions = tournament::positions(shape, self.dim);
        let mut places: Vec<u64> = positions.into_iter().map(|p| index.wrap(cx.side.constant(p))).collect();
        for level in &tournament::argmax(shape, self.dim).levels {
            let (mut won, mut place) = (Vec::new(), Vec::new());
            if level.pair_len() > 0 {
                let (right, right_place) = (level.right(&values), level.right(&places));
                let lead = difference(ring, &level.left(&values), &right);
                let step = difference(index, &level.left(&places), &right_place);
                let keep = compare::negative(cx, x.at.digits(), ring, &lead)?;
                let keep = complement(cx.side, keep, lead.len());
                won = sum(ring, &right, &mux::choose(cx, ring, &keep, &lead)?);
                place = sum(index, &right_place, &mux::choose(cx, index, &keep, &step)?);
            }
            (values, places) = (level.assemble(&won, &values), level.assemble(&place, &places));
        }
        Ok(places)
    }

    fn uses(&self, at: &At) -> Uses {
        let (bits, index) = (at.from().bits(), at.to().bits());
        let games = tournament::argmax(&at.operand(0).shape, self.dim);
        let pairs = games.levels.iter().map(|level| level.pair_len()).filter(|n| *n > 0);
        pairs.fold(Uses::default(), |total, n| {
            let choices = mux::choose_uses(bits, n).then(mux::choose_uses(index, n));
            total.then(compare::carry_uses(at.digits(), bits - 1, n)).then(choices)
        })
    }
}
