//! A sum of waves: the dealer of a part knows `v = x + d` and deals the waves at v; the two others know d, and so their coefficients.

use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::moves::Masked;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_plan::cost::Operation;
use privet_plan::waves::Waves;
use privet_ring::Ring;

/// The sum at x.
pub(crate) fn eval(cx: &mut Party, to: Ring, w: &Waves, x: &Share) -> Result<Share, RunError> {
    let from = Ring::new(w.bits());
    let factors = |v, to: &mut [u64]| w.factors(v, to);
    let inner = |d, dealt: &[u64], words: &mut [u64], sums: &mut [u64]| {
        w.words(d, words);
        sums[0] = sums[0].wrapping_add(Waves::sum(dealt, words));
    };
    cx.masked(&Masked { from, to, terms: w.terms(), rows: 1, factors, inner }, x)
}

/// [`privet_plan::ir::Op::Waves`].
pub(crate) struct Sum<'a> {
    pub step: u32,
    pub digits: u32,
    pub waves: &'a [[i64; 2]],
}

impl Gate for Sum<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let waves =
            Waves::new(x.from().bits(), self.step, self.digits, self.waves).map_err(RunError::Missing)?;
        Ok(eval(cx, x.to(), &waves, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.masked(of.elements(), [of.operand_bits(), of.result_bits()], 2 * self.waves.len(), 1)
    }
}
