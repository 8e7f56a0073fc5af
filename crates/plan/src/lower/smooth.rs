//! Smooth functions, and what they read.

use super::emit::Emitted;
use super::forms::{Emitter, Form};
use super::operand::Dropped;
use super::precision::Format;
use crate::functions::{self, Function, MOST_FRACTION};
use crate::graph::GraphOp;

/// Bits before the fraction that a smooth function's operand has at least.
const LEAST_WHOLE: u32 = 3;

/// A smooth function of an activation, in the ring that its readers want.
pub(super) fn smooth(e: &mut Emitter<'_>, v: usize, function: Function) -> Emitted {
    if let Some((product, out)) = ramp(e, v, function) {
        return of_product(e, v, function, product, out);
    }
    let (format, x) = (e.format(v), operand(e, v, function));
    let f = format.f.min(MOST_FRACTION);
    let need = f + function.before_fraction(x.bits - x.frac);
    let bits = e.wide[v].unwrap_or(format.m()).max(need.min(64));
    let layer = e.node(v).layer.clone();
    // the operand is not inside: a guard has to see its bound
    let before = e.plan.nodes.len();
    let mut build = e.build(&layer);
    let operand = build.value(x.id);
    match functions::emit(&mut build, function, operand, bits, f) {
        Ok(y) => {
            e.inside.push(before..y.id);
            Ok(Form { id: y.id, bits: y.bits, frac: y.frac })
        }
        Err(what) => Err(e.problem(v, what, TYPES)),
    }
}

/// What function `v` reads. An inverse square root reads as many fraction bits as there are: that of a small variance has few others.
pub(super) fn operand(e: &mut Emitter<'_>, v: usize, function: Function) -> Form {
    let (x, format) = (e.node(v).inputs[0], e.format(v));
    let f = format.f.min(MOST_FRACTION);
    let native = e.native(x);
    let finer = matches!(function, Function::Rsqrt | Function::Sqrt | Function::Log | Function::Reciprocal)
        && native.frac > f
        && native.frac <= MOST_FRACTION;
    // as many bits before the fraction as functions take, and no more than an activation has
    let whole = LEAST_WHOLE..=format.m() - f;
    let form = match dropped(e, v, function).filter(|d| whole.contains(&d.whole())) {
        _ if finer => native,
        Some(dropped) => dropped.taken(e, v, dropped.left()),
        None => e.at_most(x, format.m(), f),
    };
    // an exact factor leaves small values in fewer bits than functions take
    match form.bits < form.frac + LEAST_WHOLE {
        true => e.obtain(x, form.frac + LEAST_WHOLE, form.frac),
        false => form,
    }
}

/// The product that a ramp alone reads and rounds by itself, where it stays away from the ends of its ring; and the fraction bits of the result:
/// more than those of activations where a layer with weights is all that reads them and has room for them.
fn ramp(e: &Emitter<'_>, v: usize, function: Function) -> Option<(Form, u32)> {
    let (x, Format { k, f, g, .. }) = (e.node(v).inputs[0], e.format(v));
    let dropped = Dropped::nearer(e, x, f, 1).filter(|_| functions::is_ramp(function))?;
    let product = dropped.product;
    let apt = product.bits == k && e.wide[v] == Some(k) && product.frac > f + functions::INSIDE;
    let reader = e.draft.graph.nodes.iter().position(|n| n.inputs.first() == Some(&v));
    let room = reader
        .filter(|&r| e.uses[v] == 1 && matches!(e.node(r).op, GraphOp::Linear | GraphOp::Conv2d { .. }));
    let room = room.is_some_and(|r| f + functions::INSIDE + g + e.need(r) <= k);
    let out = if room { f + functions::INSIDE } else { f };
    (apt && e.may_keep(x, product)).then_some((product, out))
}

/// A ramp of a product, in the product's ring.
fn of_product(e: &mut Emitter<'_>, v: usize, function: Function, product: Form, out: u32) -> Emitted {
    let (format, before) = (e.format(v), e.plan.nodes.len());
    let layer = e.node(v).layer.clone();
    let mut build = e.build(&layer);
    let x = build.value(product.id);
    let whole = format.m() - format.f;
    match functions::emit_of_product(&mut build, function, (x, whole), [format.k, format.f, out]) {
        Ok(y) => {
            e.inside.push(before..y.id);
            Ok(Form { id: y.id, bits: y.bits, frac: y.frac })
        }
        Err(what) => Err(e.problem(v, what, TYPES)),
    }
}

/// What a function with other numbers would take.
const TYPES: &str = "use from 2 to 30 fraction bits, and at most 60 ring bits";

/// What a function that alone reads a product drops of it. A softmax needs no more than what activations have, however they are rounded; the next
/// whole number below has to be that of what others would read.
fn dropped(e: &Emitter<'_>, v: usize, function: Function) -> Option<Dropped> {
    let (x, f) = (e.node(v).inputs[0], e.format(v).f.min(MOST_FRACTION));
    if function == Function::Floor {
        return None;
    }
    match matches!(function, Function::Softmax { .. }) {
        true => Dropped::to(e, x, f, 1),
        false => Dropped::nearer(e, x, f, 1),
    }
}
