//! Index of the largest element: the tournament of max, in which one bit chooses both the value and the index. Ties keep the
//! left candidate, whose index is smaller: the bit is that of `x >= y`.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::gates::relu::complement;
use crate::uses::Uses;
use crate::{compare, mux};
use privet_plan::tournament;

/// [`privet_plan::ir::Op::Argmax`].
pub(crate) struct Argmax {
    pub dim: usize,
}

impl Gate for Argmax {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (ring, index, shape) = (x.at.from(), x.at.to(), &x.at.operand(0).shape);
        let mut values = x.share(0).to_vec();
        let positions = tournament::positions(shape, self.dim);
        let mut places: Vec<u64> = positions.into_iter().map(|p| index.wrap(cx.side.constant(p))).collect();
        for level in &tournament::argmax(shape, self.dim).levels {
            let (mut more, mut place) = (Vec::new(), Vec::new());
            if level.pair_len() > 0 {
                let [lead, step] = [level.differences(ring, &values), level.differences(index, &places)];
                let keep = compare::negative(cx, x.at.digits(), ring, &lead)?;
                let keep = complement(cx.side, keep, lead.len());
                more = mux::choose(cx, ring, &keep, &lead)?;
                place = mux::choose(cx, index, &keep, &step)?;
            }
            (values, places) = (level.winners(ring, &values, &more), level.winners(index, &places, &place));
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
