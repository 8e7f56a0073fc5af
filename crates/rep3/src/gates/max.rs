//! Pairwise maximum `y + relu(x - y)`, and tournaments of it.

use super::relu;
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::local::{difference, sum};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_plan::cost::Operation;
use privet_plan::tournament::{self, Level, Tournament};
use privet_ring::{Pool2d, Ring};

/// The larger of x and y, as long as their difference does not wrap around.
pub(crate) fn eval(cx: &mut Party, ring: Ring, x: &Share, y: &Share) -> Result<Share, RunError> {
    let larger = relu::eval(cx, ring, ring, &difference(ring, x, y))?;
    Ok(sum(ring, y, &larger))
}

/// The winners of a tournament.
pub(crate) fn tournament(
    cx: &mut Party,
    ring: Ring,
    tournament: &Tournament,
    mut x: Share,
) -> Result<Share, RunError> {
    for level in &tournament.levels {
        // a level without a pair only moves candidates
        let more = match level.pair_len() {
            0 => Share::default(),
            _ => relu::eval(cx, ring, ring, &differences(level, ring, &x))?,
        };
        x = winners(level, ring, &x, &more);
    }
    Ok(x)
}

/// [`Level::differences`].
pub(super) fn differences(level: &Level, ring: Ring, x: &Share) -> Share {
    Share::new(level.differences(ring, &x.own), level.differences(ring, &x.next))
}

/// [`Level::winners`].
pub(super) fn winners(level: &Level, ring: Ring, x: &Share, more: &Share) -> Share {
    Share::new(level.winners(ring, &x.own, &more.own), level.winners(ring, &x.next, &more.next))
}

/// [`privet_plan::ir::Op::Max`].
pub(crate) struct Max;

impl Gate for Max {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        Ok(eval(cx, x.to(), &x.share(0), &x.share(1))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.relu(of.elements(), of.result_bits(), of.result_bits())
    }
}

/// [`privet_plan::ir::Op::MaxPool2d`]: rows, then columns.
pub(crate) struct Pool<'a>(pub &'a Pool2d);

impl Gate for Pool<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let [rows, columns] = tournament::max_pool(self.0, &x.ty(0).shape);
        let best = tournament(cx, x.to(), &rows, x.share(0))?;
        Ok(tournament(cx, x.to(), &columns, best)?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let all = tournament::max_pool(self.0, &of.operands[0].ty.shape);
        all.iter().map(|games| setting.tournament(games, of.result_bits())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};
    use privet_plan::tournament::max_pool;
    use privet_ring::Pool2d;

    #[test]
    fn the_larger_of_two() {
        for bits in [2, 5, 32, 64] {
            let ring = Ring::new(bits);
            // where no difference wraps around
            let x: Vec<u64> =
                edges(ring, 300).iter().map(|&x| ring.wrap((ring.signed(x) >> 1) as u64)).collect();
            let y: Vec<u64> = x.iter().rev().copied().collect();
            let program =
                |cx: &mut Party| eval(cx, ring, &share(cx.id, ring, &x), &share(cx.id, ring, &y)).unwrap();
            let expected: Vec<u64> = x
                .iter()
                .zip(&y)
                .map(|(&x, &y)| ring.wrap(ring.signed(x).max(ring.signed(y)) as u64))
                .collect();
            assert_eq!(value(ring, program), expected, "{ring}");
        }
    }

    #[test]
    fn pools() {
        let ring = Ring::new(20);
        let shape = [1, 3, 5, 6];
        let x: Vec<u64> = edges(ring, 90).iter().map(|&x| ring.wrap((ring.signed(x) >> 2) as u64)).collect();
        for (window, stride) in [(2, 2), (3, 2), (3, 1)] {
            let pool = Pool2d {
                kernel: [window; 2],
                stride: [stride; 2],
                padding: [0; 2],
                dilation: [1; 2],
                ceil_mode: false,
            };
            let [rows, columns] = max_pool(&pool, &shape);
            let program = |cx: &mut Party| {
                let x = tournament(cx, ring, &rows, share(cx.id, ring, &x)).unwrap();
                tournament(cx, ring, &columns, x).unwrap()
            };
            let out = |n: usize| (n - window) / stride + 1;
            let mut expected = Vec::new();
            for c in 0..3 {
                for i in 0..out(5) {
                    for j in 0..out(6) {
                        let at = |p: usize| (c * 5 + i * stride + p / window) * 6 + j * stride + p % window;
                        let largest = (0..window * window).map(|p| ring.signed(x[at(p)])).max();
                        expected.push(ring.wrap(largest.unwrap() as u64));
                    }
                }
            }
            assert_eq!(value(ring, program), expected, "{window} by {stride}");
        }
    }
}
