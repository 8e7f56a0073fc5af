//! Product with a public number p that is not known when a record is prepared: parties compute on their shares of x and open
//! `p [x]_i + s_i`. Nothing is prepared.

use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::price;
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};

/// [`privet_plan::ir::Op::Scale`].
pub(crate) struct Scale;

impl Gate for Scale {
    fn prepare(&self, _: &mut dyn Preprocess, _: &Given) -> Result<(), PrepareError> {
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (lambda, xh, p, leads) = (x.mask(cx, 0), x.value(0), x.value(1)[0], cx.leads() as u64);
        let ring = x.at.to();
        let mut y = cx.result_mask(x.at.wire(), ring, xh.len());
        for (y, (xh, r)) in y.iter_mut().zip(xh.iter().zip(lambda.own().iter())) {
            *y = ring.wrap(p.wrapping_mul((leads * xh).wrapping_sub(*r)).wrapping_add(*y));
        }
        cx.open_masked("product", ring, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::opened(of.elements(), of.result_bits())
    }
}
