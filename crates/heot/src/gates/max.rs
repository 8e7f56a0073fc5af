//! Pairwise maximum `y + relu(x - y)`, and tournaments of it.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::gates::relu::{relu, relu_uses};
use crate::leaf::Digits;
use crate::uses::Uses;
use privet_plan::tournament::{self, Tournament};
use privet_ring::{Pool2d, Ring};

/// The larger of x and y, as long as their difference does not wrap around.
fn larger(cx: &mut Cx, digits: Digits, ring: Ring, [x, y]: [&[u64]; 2]) -> Result<Vec<u64>, RunError> {
    let difference: Vec<u64> = x.iter().zip(y).map(|(x, y)| ring.wrap(x.wrapping_sub(*y))).collect();
    let lead = relu(cx, digits, [ring; 2], &difference)?;
    Ok(lead.iter().zip(y).map(|(l, y)| ring.wrap(l.wrapping_add(*y))).collect())
}

/// The winners of a tournament.
fn play(
    cx: &mut Cx,
    digits: Digits,
    ring: Ring,
    games: &Tournament,
    mut x: Vec<u64>,
) -> Result<Vec<u64>, RunError> {
    for level in &games.levels {
        let more = match level.pair_len() {
            0 => Vec::new(),
            _ => relu(cx, digits, [ring; 2], &level.differences(ring, &x))?,
        };
        x = level.winners(ring, &x, &more);
    }
    Ok(x)
}

fn play_uses(digits: Digits, bits: u32, games: &Tournament) -> Uses {
    let pairs = games.levels.iter().map(|level| level.pair_len()).filter(|n| *n > 0);
    pairs.fold(Uses::default(), |sum, n| sum.then(relu_uses(digits, [bits; 2], n)))
}

/// [`privet_plan::ir::Op::Max`].
pub(crate) struct Max;

impl Gate for Max {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        larger(cx, x.at.digits(), x.at.to(), [&x.share(0), &x.share(1)])
    }

    fn uses(&self, at: &At) -> Uses {
        relu_uses(at.digits(), [at.to().bits(); 2], at.len())
    }
}

/// [`privet_plan::ir::Op::MaxPool2d`]: rows, then columns.
pub(crate) struct Pool<'a>(pub &'a Pool2d);

impl Gate for Pool<'_> {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let [rows, columns] = tournament::max_pool(self.0, &x.at.operand(0).shape);
        let (digits, ring) = (x.at.digits(), x.at.to());
        let best = play(cx, digits, ring, &rows, x.share(0).to_vec())?;
        play(cx, digits, ring, &columns, best)
    }

    fn uses(&self, at: &At) -> Uses {
        let [rows, columns] = tournament::max_pool(self.0, &at.operand(0).shape);
        let uses = |games| play_uses(at.digits(), at.to().bits(), games);
        uses(&rows).then(uses(&columns))
    }
}
