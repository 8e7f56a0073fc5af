//! Functions that are simple but on a bounded range: sigmoid, tanh, GELU, SiLU.
//!
//! Each is a step, a ramp or a sign of x plus a bump that depends on |x| alone and vanishes (or, for tanh, is 1) beyond
//! some |x|; the bump is a piecewise quadratic, or a sum of waves where a family has them for less.

use super::Function;
use super::build::{Build, Value, WORD};
use super::fit::Fit;
use super::quadratic::{End, piecewise};
use crate::ir::Op;
use crate::waves::{MOST_COEFFICIENT, TURN};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Fraction bits of |x| that the table reads.
const MOST_READ: u32 = 24;
/// Most fraction bits of coefficients: with those of a cosine they leave results room up to 16.
const MOST_DIGITS: u32 = 29;

/// How a function is made of its bump.
struct Shape {
    bump: fn(f64) -> f64,
    /// As pieces, the bump vanishes from 2^domain on.
    domain: u32,
    /// log2 of the number of segments a unit.
    per_unit: u32,
    waves: Span,
}

/// The bump as waves.
struct Span {
    /// It vanishes from here on.
    end: f64,
    /// The period is `2^whole / step`.
    whole: u32,
    step: u32,
    count: usize,
}

impl Span {
    const fn new(end: f64, whole: u32, step: u32, count: usize) -> Span {
        Span { end, whole, step, count }
    }
}

fn shape_of(function: Function) -> Shape {
    let shape = |bump, domain, per_unit, waves| Shape { bump, domain, per_unit, waves };
    match function {
        Function::Sigmoid => shape(|a| Function::Sigmoid.at(-a), 4, 5, Span::new(16.8, 7, 5, 14)),
        Function::Tanh => shape(libm::tanh, 3, 7, Span::new(6.0, 5, 3, 10)),
        Function::Gelu => shape(|a| -Function::Gelu.at(-a), 3, 6, Span::new(5.6, 6, 5, 8)),
        Function::GeluTanh => shape(|a| -Function::GeluTanh.at(-a), 3, 6, Span::new(5.6, 6, 5, 9)),
        Function::GeluGrad => shape(|a| Function::GeluGrad.at(-a), 3, 7, Span::new(6.0, 6, 5, 9)),
        Function::GeluTanhGrad => shape(|a| Function::GeluTanhGrad.at(-a), 3, 7, Span::new(6.0, 6, 5, 11)),
        Function::SiluGrad => shape(|a| Function::SiluGrad.at(-a), 5, 6, Span::new(19.9, 7, 5, 21)),
        _ => shape(|a| -Function::Silu.at(-a), 5, 6, Span::new(19.9, 5, 1, 17)),
    }
}

/// What an error of the bump is measured by: where results are near zero, what two units in the last of 24 places leave beside
/// what is rounded later; else as much less than 2^-16 of the nearer result, that of -a or that of a.
fn bound(function: Function, a: f64) -> f64 {
    let near = function.at(a).abs().min(function.at(-a).abs());
    f64::max(2f64.powi(-23), near * 2f64.powi(-16)) - 1.2 * 2f64.powi(-24)
}

/// The waves of a function's bump: found once.
fn waves_of(function: Function, shape: &Shape) -> Arc<Fit> {
    static FOUND: Mutex<BTreeMap<&str, Arc<Fit>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let Span { end, whole, step, count } = shape.waves;
    let period = (1u64 << whole) as f64 / step as f64;
    let near = || Arc::new(Fit::near(shape.bump, |a| bound(function, a), end, period, count));
    found.entry(function.name()).or_insert_with(near).clone()
}

/// The function of x in any ring; `bits` and `frac` are those of the result.
pub(super) fn bounded(b: &mut Build<'_>, function: Function, x: Value, bits: u32, frac: u32) -> Value {
    let shape = shape_of(function);
    let pieces = |b: &mut Build<'_>, x| of_bump(b, function, x, [bits, frac], |b, a| in_pieces(b, a, &shape));
    let waves = |b: &mut Build<'_>, x| {
        let found = waves_of(function, &shape);
        of_bump(b, function, x, [bits, frac], |b, a| in_waves(b, a, &shape.waves, &found))
    };
    match x.bits >= x.frac + shape.waves.whole {
        true => b.cheapest(x, &[&pieces, &waves]),
        false => pieces(b, x),
    }
}

/// The bump of a = |x|, and the bit that a is where it holds, unless it holds everywhere.
type Bump = (Value, Option<Value>);

fn of_bump(
    b: &mut Build<'_>,
    function: Function,
    x: Value,
    [bits, frac]: [u32; 2],
    bump: impl Fn(&mut Build<'_>, Value) -> Bump,
) -> Value {
    let negative = b.is_negative(x, 1);
    let not_negative = b.add_const(negative, 1);
    let positive = b.choose(not_negative, x);
    let twice = b.mul_const(positive, 2);
    let size = b.sub(twice, x);
    let (mut value, inside) = bump(b, size);
    match function {
        // bump(|x|) and 1 beyond, with the sign of x
        Function::Tanh => {
            if let Some(inside) = inside {
                let less = b.add_const(value, -(1 << value.frac));
                let less = b.choose(inside, less);
                value = b.add_const(less, 1 << value.frac);
            }
            let turned = b.choose(negative, value);
            let turned = b.mul_const(turned, -2);
            let y = b.add(value, turned);
            b.dither(y, y.frac - frac, bits)
        }
        // bump(|x|) where x < 0, 1 - bump(|x|) elsewhere
        Function::Sigmoid | Function::GeluGrad | Function::GeluTanhGrad | Function::SiluGrad => {
            if let Some(inside) = inside {
                value = b.choose(inside, value);
            }
            let rest = b.mul_const(value, -2);
            let rest = b.add_const(rest, 1 << value.frac);
            let rest = b.choose(not_negative, rest);
            let y = b.add(value, rest);
            b.dither(y, y.frac - frac, bits)
        }
        // relu(x) - bump(|x|)
        _ => {
            if let Some(inside) = inside {
                value = b.choose(inside, value);
            }
            let bump = b.dither(value, value.frac - frac, bits);
            let ramp = b.fit(positive, bits, frac);
            b.sub(ramp, bump)
        }
    }
}

/// a modulo 2^domain, with as many fraction bits as tables read.
fn window(b: &mut Build<'_>, a: Value, domain: u32) -> Value {
    let (frac, a) = (a.frac, b.resize(a, a.frac + domain));
    match frac > MOST_READ {
        true => b.dither(a, frac - MOST_READ, a.bits - (frac - MOST_READ)),
        false => a,
    }
}

/// The bump up to the first number of its last piece, 61 fraction bits in [`WORD`].
fn in_pieces(b: &mut Build<'_>, a: Value, shape: &Shape) -> Bump {
    let frac = a.frac;
    // a ring that ends earlier: |x| is at most 2^(k - 1)
    let (inside, domain) = match a.bits - 1 > frac + shape.domain {
        true => {
            let end = (1i64 << (frac + shape.domain)) - (1i64 << frac >> shape.per_unit.min(frac - 2));
            let distance = b.add_const(a, -end);
            (Some(b.is_negative(distance, 1)), shape.domain)
        }
        false => (None, a.bits - frac),
    };
    let a = window(b, a, domain);
    // a piece has at least four units
    let per_unit = shape.per_unit.min(a.frac - 2);
    (piecewise(b, a, domain + per_unit, 61, End::Unused, shape.bump), inside)
}

/// The bump as a sum of waves, 58 or 59 fraction bits in [`WORD`], up to the end of the span.
fn in_waves(b: &mut Build<'_>, a: Value, span: &Span, found: &Fit) -> Bump {
    let end = (span.end * 2f64.powi(a.frac as i32)).ceil();
    let inside = (end < 2f64.powi(a.bits as i32 - 1)).then(|| {
        let distance = b.add_const(a, -(end as i64));
        b.is_negative(distance, 1)
    });
    let a = window(b, a, span.whole);
    // room for results below 16, and for coefficients
    let unit = |digits: u32| 2f64.powi(digits as i32);
    let digits =
        (0..=MOST_DIGITS).rev().find(|&d| found.largest() * unit(d) < MOST_COEFFICIENT as f64).unwrap_or(0);
    let fixed = |v: f64, digits: u32| (v * unit(digits)).round_ties_even() as i64;
    let waves = found.waves.iter().map(|wave| wave.map(|c| fixed(c, digits))).collect();
    let op = Op::Waves { step: span.step, digits, waves };
    let y = b.like(op, &[a], WORD, TURN + digits);
    (b.add_const(y, fixed(found.constant, TURN + digits)), inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_are_within_half_of_what_is_left_for_them() {
        for function in [
            Function::Sigmoid,
            Function::Tanh,
            Function::Gelu,
            Function::GeluTanh,
            Function::Silu,
            Function::GeluGrad,
            Function::GeluTanhGrad,
            Function::SiluGrad,
        ] {
            let shape = shape_of(function);
            let Span { end, whole, step, .. } = shape.waves;
            let (found, period) = (waves_of(function, &shape), (1u64 << whole) as f64 / step as f64);
            let error = |x: f64| (found.at(x, period) - (shape.bump)(x)).abs() / bound(function, x);
            let worst = (0..=20_000).map(|i| error(i as f64 / 20_000.0 * end)).fold(0.0, f64::max);
            let sum: f64 = found.waves.as_flattened().iter().map(|c| c.abs()).sum();
            println!("{} {worst:.3}, coefficients {:.2} sum {sum:.2}", function.name(), found.largest());
            assert!(worst < 0.5, "{}: {worst}", function.name());
        }
    }
}
