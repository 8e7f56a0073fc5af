//! Selection `y + c (x - y)` by a secret 0/1 value c: one product. The result's mask is y's plus the product's.

use super::mul;
use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::masks::{Mask, Masks};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::price;
use crate::shares::Words;
use privet_family::{MaskFrom, OpeningList, Wire};
use privet_plan::cost::{Cost, Operation};

/// [`privet_plan::ir::Op::Select`].
pub(crate) struct Select;

/// The wire of the product.
fn picked(at: &At) -> Wire {
    at.wire().inner(1)
}

impl Gate for Select {
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        operand(2).add(&masks.fresh(picked(at), at.to(), at.len()))
    }

    fn mask_from(&self, _: &At) -> MaskFrom {
        MaskFrom::Derived
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (c, d) = (x.mask(cx, 0), x.mask(cx, 1).sub(&x.mask(cx, 2)));
        mul::prepare(cx, picked(&x.at), &[(&c, Some(&d))])
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (to, rc) = (x.at.to(), x.mask(cx, 0));
        let rd = x.mask(cx, 1).sub(&x.mask(cx, 2));
        let d = difference(to, &x.value(1), &x.value(2));
        let (product, y) = (mul::eval(cx, to, &[[(&x.value(0), rc.own()), (&d, rd.own())]])?, x.value(2));
        Ok(product.then(move |product| sum(to, &y, &product)))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::product(of)
    }
}

use super::max::{difference, sum};
