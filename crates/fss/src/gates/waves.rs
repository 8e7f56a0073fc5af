//! A sum of waves: the dealt words are functions of the mask, the factors are functions of the masked value.
//!
//! `x = xh - r`, so the cosine and the sine of every multiple of x's angle are sums of products of those of xh, which is public,
//! and those of r, which the dealer knows. One opening is all there is.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::Mask;
use crate::price;
use crate::public::Public;
use crate::{Deal, Eval, EvalError, Opened, entries};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_plan::waves::Waves;

/// [`privet_plan::ir::Op::Waves`].
pub(crate) struct Sum<'a> {
    pub step: u32,
    pub digits: u32,
    pub waves: &'a [[i64; 2]],
}

impl Sum<'_> {
    fn of(&self, at: &At) -> Result<Waves<'_>, String> {
        Waves::new(at.from().bits(), self.step, self.digits, self.waves)
    }
}

impl Gate for Sum<'_> {
    /// The mask.
    fn coins(&self, at: &At, _: &Public, mask: &dyn Fn() -> Mask) -> Option<Vec<u64>> {
        let ring = at.from();
        Some(mask().iter().map(|r| ring.wrap(*r)).collect())
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (waves, r) = (self.of(&x.at).map_err(KeyError::Corrupt)?, x.mask(cx, 0));
        entries::deal(cx, x.at.wire(), x.at.to(), r.len(), waves.terms(), |i, words| waves.words(r[i], words))
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let waves = self.of(&x.at).map_err(EvalError::Missing)?;
        let (wire, to, xh) = (x.at.wire(), x.at.to(), x.value(0));
        let mut y = cx.result_mask_share(wire, to, xh.len());
        let mut factors = vec![0; waves.terms()];
        entries::eval(cx, wire, to, xh.len(), waves.terms(), |i, words| {
            waves.factors(xh[i], &mut factors);
            y[i] = to.wrap(y[i].wrapping_add(Waves::sum(&factors, words)));
        })?;
        cx.open_masked("waves", to, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "waves");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::opened(of.elements(), 2 * self.waves.len() as u64, of.result_bits())
    }
}
