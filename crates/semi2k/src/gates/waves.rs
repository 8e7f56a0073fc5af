//! A sum of waves: the dealt words are functions of the mask, the factors are functions of the masked value.
//!
//! `x = xh - lambda`, so the cosine and the sine of every multiple of x's angle are sums of products of those of xh, which is
//! public, and those of lambda, which the helper knows.

use super::dealt;
use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::mutation;
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::seeds::PartySeed;
use crate::shares::Words;
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
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (waves, lambda) = (self.of(&x.at).map_err(PrepareError::Failed)?, x.mask(cx, 0));
        dealt::prepare(cx, &lambda, x.at.to(), waves.terms(), &|lambda, words| waves.words(lambda, words))
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let waves = self.of(&x.at).map_err(EvalError::Missing)?;
        let (to, xh) = (x.at.to(), x.value(0));
        let mut y = cx.result_mask(x.at.wire(), to, xh.len());
        let mut factors = vec![0; waves.terms()];
        dealt::read(cx, to, xh.len(), waves.terms(), |i, words| {
            waves.factors(xh[i], &mut factors);
            if mutation::active("waves-without-sines") {
                factors.iter_mut().skip(1).step_by(2).for_each(|sine| *sine = 0);
            }
            y[i] = to.wrap(y[i].wrapping_add(Waves::sum(&factors, words)));
        })?;
        cx.open_masked("waves", to, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "waves");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let terms = 2 * self.waves.len() as u64;
        dealt::price(of, of.elements(), terms, terms)
    }

    /// The mask.
    fn coins(&self, at: &At, _: &[PartySeed], mask: &dyn Fn() -> Words) -> Option<Vec<u64>> {
        Some(dealt::coins(&mask(), at.from()))
    }
}
