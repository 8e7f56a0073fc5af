//! Training: states and their updates, public numbers, bits, factors, the guard.

use super::demand::small_integer;
use super::emit::{Emitted, alike, common, local};
use super::fine::leading;
use super::forms::{Emitter, Form, MODEL_OWNER};
use crate::graph::GraphOp;
use crate::ir::{Op, Update};

/// Bits of magnitude promised: products stay below 2^14.
const PROMISED: u32 = 14;
/// Most fraction bits of a value.
const MOST_FRACTION: u32 = 63;
/// Fewest bits of a public factor, where there is room: a relative error of 2^-17.
const ENOUGH: u32 = 16;
/// The same of what is only added to other products, where fewer bits save a truncation: a relative error of 2^-14.
const IN_SUMS: u32 = 13;
/// Fewest bits of a factor that is not refused.
const LEAST: u32 = 6;
/// Bits of the number of values out of range.
const COUNT_BITS: u32 = 32;
/// Bits of the guard's answer.
const ANSWER_BITS: u32 = 8;

/// Bits of magnitude of values with `frac` fraction bits: those with more than activations are smaller, which leaves their
/// factors more bits.
fn promised(frac: u32, k: u32) -> u32 {
    PROMISED.min((k - 6).saturating_sub(frac))
}

pub(super) fn state(
    e: &mut Emitter<'_>,
    v: usize,
    name: &str,
    frac: Option<u32>,
    owner: Option<&str>,
) -> Emitted {
    let format = e.format(v);
    let frac = frac.unwrap_or(format.f);
    if frac < format.f || frac + PROMISED + 2 > format.k {
        let most = format.k - PROMISED - 2;
        let what = format!("a state of {frac} fraction bits, not {} to {most}", format.f);
        return Err(e.problem(v, what, "give it as many as activations have, or a few more"));
    }
    let op = Op::State { name: name.into(), owner: owner.unwrap_or(MODEL_OWNER).into() };
    Ok(e.push(v, op, vec![], &e.node(v).shape, format.k, frac))
}

/// A public number gets all fraction bits that its products leave, since it may become much smaller than its limit.
pub(super) fn public(e: &mut Emitter<'_>, v: usize, name: &str, limit: f64) -> Emitted {
    let format = e.format(v);
    let leading = leading(limit);
    let frac = (leading + format.k - PROMISED - 3 - format.f).min(MOST_FRACTION - format.f);
    if frac < leading + ENOUGH {
        let what = format!("a public number of at most {limit} has only {frac} fraction bits");
        return Err(e.problem(v, what, "scale the values that it multiplies down, and the number up"));
    }
    let op = Op::Public { name: name.into(), limit };
    Ok(e.push(v, op, vec![], &[], format.k, frac))
}

/// The public operand of a product and the other one.
fn public_operand(e: &Emitter<'_>, v: usize) -> Option<(usize, usize)> {
    let is_public = |i: usize| matches!(e.node(i).op, GraphOp::Public { .. });
    match e.node(v).inputs[..] {
        [x, p] if is_public(p) => Some((x, p)),
        [p, x] if is_public(p) => Some((x, p)),
        _ => None,
    }
}

/// Whether `v` is a product with a public number.
pub(super) fn reads_public(e: &Emitter<'_>, v: usize) -> bool {
    public_operand(e, v).is_some()
}

pub(super) fn scale(e: &mut Emitter<'_>, v: usize) -> Form {
    let (x, p) = public_operand(e, v).expect("the caller has looked");
    let format = e.format(v);
    let (x, p) = (e.obtain(x, format.k, format.f), e.native(p));
    let shape = e.plan.nodes[x.id].ty.shape.clone();
    e.push(v, Op::Scale, vec![x.id, p.id], &shape, format.k, x.frac + p.frac)
}

/// `not (x - 1 < 0)`, x an integer of m bits, or of the narrow ring's.
pub(super) fn positive(e: &mut Emitter<'_>, v: usize) -> Form {
    let (x, format) = (e.node(v).inputs[0], e.format(v));
    let x = match e.may_be_narrow(x) {
        true => e.narrowed(x),
        false => e.at_most(x, format.m(), format.f),
    };
    let before = e.unary(v, Op::AddConst { value: -1 }, x, x.bits, x.frac);
    let negative = e.unary(v, Op::IsNegative, before, 1, 0);
    e.unary(v, Op::AddConst { value: 1 }, negative, 1, 0)
}

pub(super) fn choose(e: &mut Emitter<'_>, v: usize) -> Form {
    let inputs = &e.node(v).inputs;
    let (bit, x) = (e.native(inputs[0]), alike(e, v, &inputs[1..])[0]);
    e.push(v, Op::Choose, vec![bit.id, x.id], &e.node(v).shape, x.bits, x.frac)
}

/// x * c. Small integers and powers of two need no truncation of their own. Else c is `2^-j c'` with c' in [1, 2); c' gets as
/// many bits as keep the product below 2^(k-2) units. Where these are few, because x is a long sum or has many fraction
/// bits, `2^-j x` is truncated first.
pub(super) fn mul_scalar(e: &mut Emitter<'_>, v: usize, value: f64) -> Emitted {
    let power = value.abs().log2();
    if power.fract() == 0.0 && power.abs() <= 62.0 {
        return power_of_two(e, v, power as i32, value < 0.0);
    }
    if let Some(value) = small_integer(value) {
        return local(e, v, Op::MulConst { value });
    }
    let (x, k, frac) = (e.node(v).inputs[0], e.format(v).k, e.frac(v));
    let (j, growth) = (leading(value), e.fine[x].growth);
    let room = (k - 3)
        .saturating_sub(promised(frac, k) + frac + growth)
        .min((MOST_FRACTION - frac).saturating_sub(j));
    // as many fraction bits as products have: one truncation serves the sum of both
    let as_products = frac.saturating_sub(j);
    if e.fine[v].frac.is_none() && e.fine[v].summed && (IN_SUMS..=room).contains(&as_products) {
        let x = e.obtain(x, k, frac);
        return Ok(times(e, v, x, value, frac));
    }
    if room >= ENOUGH {
        let x = e.obtain(x, k, frac);
        return Ok(times(e, v, x, value, j + room));
    }
    let x = match common(e, v)[0] {
        x if x.frac + j <= MOST_FRACTION => x,
        _ => e.obtain(x, k, frac),
    };
    let shift = x.frac + j - frac;
    if x.frac + j > MOST_FRACTION || shift + 2 > k {
        return Err(e.problem(v, format!("the factor {value} is too small"), "multiply in two steps"));
    }
    let moved = e.unary(v, Op::Rescale, x, k, x.frac + j);
    let x = if shift == 0 { moved } else { e.truncate(v, moved, shift, moved.bits) };
    // what is left of a sum is no larger than its promise
    let before = (promised(frac, k) + growth.min(j)).saturating_sub(j);
    let room = (k - 3).saturating_sub(frac + before).min(MOST_FRACTION - frac);
    if room < LEAST {
        let what = format!("the factor {value} leaves only {room} bits for its fraction");
        return Err(e.problem(v, what, "for c near 1 write x + (1 - c) (y - x) in place of c x + (1 - c) y"));
    }
    Ok(times(e, v, x, value * 2f64.powi(j as i32), room))
}

/// x times `value`, rounded to `frac` fraction bits.
fn times(e: &mut Emitter<'_>, v: usize, x: Form, value: f64, frac: u32) -> Form {
    let value = (value * 2f64.powi(frac as i32)).round_ties_even() as i64;
    let y = e.unary(v, Op::MulConst { value }, x, x.bits, x.frac);
    e.unary(v, Op::Rescale, y, x.bits, x.frac + frac)
}

/// `x 2^power`: the point moves, as far as there are fraction bits.
fn power_of_two(e: &mut Emitter<'_>, v: usize, power: i32, negative: bool) -> Emitted {
    let (x, k, f) = (e.node(v).inputs[0], e.format(v).k, e.format(v).f);
    let mut form = if e.is_parameter(x) { e.weight(x, k, f) } else { e.native(x) };
    let moved = form.frac as i32 - power;
    let moves = form.bits == k && moved >= f as i32 && moved <= MOST_FRACTION as i32;
    if !moves {
        form = if power < 0 { e.obtain(x, k, e.frac(v)) } else { common(e, v)[0] };
    }
    if negative {
        form = e.unary(v, Op::Neg, form, form.bits, form.frac);
    }
    if power == 0 {
        return Ok(form);
    }
    if power > 0 && !moves {
        return Ok(e.unary(v, Op::MulConst { value: 1 << power }, form, form.bits, form.frac));
    }
    let moved = form.frac as i32 - power;
    if !(0..=MOST_FRACTION as i32).contains(&moved) {
        return Err(e.problem(v, format!("the factor 2^{power} is too small"), "multiply in two steps"));
    }
    Ok(e.unary(v, Op::Rescale, form, form.bits, moved as u32))
}

/// `-limit <= x < limit` for all elements: the signs of `x + limit` and `limit - 1 - x` over the whole ring, summed, and the
/// sign of that less one. (Where one of both wraps, the other is negative.) No value may be beyond a quarter of the ring, so where
/// a form has so many fraction bits that the limit is, the quarter takes its place.
pub(super) fn in_range(e: &mut Emitter<'_>, v: usize, limit: f64) -> Form {
    let mut distances = Vec::new();
    for &x in &e.node(v).inputs {
        let format = e.format(v);
        let x = match e.is_parameter(x) || e.native(x).bits != format.k {
            true => e.obtain(x, format.k, format.f),
            false => e.native(x),
        };
        let quarter = 2f64.powi(x.bits as i32 - 2);
        let limit = (limit * 2f64.powi(x.frac as i32)).min(quarter) as i64;
        let n = e.plan.nodes[x.id].ty.len();
        let flat = e.push(v, Op::Reshape, vec![x.id], &[n], x.bits, x.frac);
        let whole = e.unary(v, Op::Rescale, flat, x.bits, 0);
        let above = e.unary(v, Op::AddConst { value: limit }, whole, x.bits, 0);
        let turned = e.unary(v, Op::Neg, whole, x.bits, 0);
        let below = e.unary(v, Op::AddConst { value: limit - 1 }, turned, x.bits, 0);
        distances.extend([(above, n), (below, n)]);
    }
    let bits = distances[0].0.bits;
    let ids = distances.iter().map(|(x, _)| x.id).collect();
    let total = distances.iter().map(|(_, n)| n).sum();
    let all = e.push(v, Op::Concat { dim: 0 }, ids, &[total], bits, 0);
    let negative = e.unary(v, Op::IsNegative, all, COUNT_BITS, 0);
    let count = e.push(v, Op::Sum { dims: vec![0] }, vec![negative.id], &[], COUNT_BITS, 0);
    let before = e.unary(v, Op::AddConst { value: -1 }, count, COUNT_BITS, 0);
    e.unary(v, Op::IsNegative, before, ANSWER_BITS, 0)
}

/// Every update in the very numbers of its state.
pub(super) fn updates(e: &mut Emitter<'_>) {
    for update in &e.draft.graph.updates {
        let state = e.native(update.state);
        let value = e.obtain(update.node, state.bits, state.frac);
        e.plan.updates.push(Update { state: state.id, value: value.id });
    }
}
