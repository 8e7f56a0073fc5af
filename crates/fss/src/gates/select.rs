//! Selection `y + c (x - y)` by a secret 0/1 value c: one product. The result's mask is y's plus the product's.

use super::max::{difference, sum};
use super::mul;
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::{Mask, Masks};
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};

/// [`privet_plan::ir::Op::Select`].
pub(crate) struct Select;

/// The wire of the product.
fn picked(at: &At) -> Wire {
    at.wire().inner(1)
}

impl Gate for Select {
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        Secret::new(sum(at.to(), &operand(2), &masks.fresh(picked(at), at.to(), at.len())))
    }

    fn derives_mask(&self, _: &At) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let to = x.at.to();
        let rc = x.mask(cx, 0);
        let rd = Secret::new(difference(to, &x.mask(cx, 1), &x.mask(cx, 2)));
        mul::deal(cx, picked(&x.at), to, &[[&rc, &rd]])
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let to = x.at.to();
        let rc = x.mask(cx, 0);
        let rd = Secret::new(difference(to, &x.mask(cx, 1), &x.mask(cx, 2)));
        let d = difference(to, &x.value(1), &x.value(2));
        let (product, y) =
            (mul::eval(cx, picked(&x.at), to, &[[(&x.value(0), &rc), (&d, &rd)]])?, x.value(2));
        Ok(product.then(move |product| sum(to, &y, &product)))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "product");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::bilinear(of.elements(), of.result)
    }
}
