//! Functions that are simple but on a bounded range: sigmoid, tanh, GELU, SiLU.
//!
//! Each is a step, a ramp or a sign of x plus a bump that depends on |x| alone and vanishes (or, for tanh, is 1) beyond
//! some |x|; the bump is a piecewise quadratic.

use super::Function;
use super::build::{Build, Value, WORD};
use super::quadratic::{Table, split};

/// Fraction bits of |x| that the table reads.
const MOST_READ: u32 = 24;

/// How a function is made of its bump.
struct Shape {
    /// The bump vanishes from 2^domain on.
    domain: u32,
    /// log2 of the number of segments a unit.
    per_unit: u32,
    bump: fn(f64) -> f64,
}

fn shape_of(function: Function) -> Shape {
    match function {
        Function::Sigmoid => Shape { domain: 4, per_unit: 4, bump: |a| Function::Sigmoid.at(-a) },
        Function::Tanh => Shape { domain: 3, per_unit: 6, bump: libm::tanh },
        Function::Gelu => Shape { domain: 3, per_unit: 5, bump: |a| -Function::Gelu.at(-a) },
        Function::GeluTanh => Shape { domain: 3, per_unit: 5, bump: |a| -Function::GeluTanh.at(-a) },
        _ => Shape { domain: 5, per_unit: 5, bump: |a| -Function::Silu.at(-a) },
    }
}

/// The function of x in any ring; `bits` and `frac` are those of the result.
pub(super) fn bounded(b: &mut Build<'_>, function: Function, x: Value, bits: u32, frac: u32) -> Value {
    let Shape { domain, per_unit, bump } = shape_of(function);
    let ramp = !matches!(function, Function::Sigmoid | Function::Tanh);
    let whole = b.read(x, 0);
    let negative_wide = b.is_negative(whole, WORD);
    let negative = b.resize(negative_wide, x.bits);
    let part = b.muls(&[(whole, negative)])[0];
    let positive = b.sub(whole, part);
    let size = b.sub(positive, part);

    // where the bump counts: everywhere, if the ring ends before
    let inside = (x.bits - 1 > x.frac + domain).then(|| {
        let distance = b.add_const(size, -(1 << (x.frac + domain)));
        b.is_negative(distance, WORD)
    });
    let value = bump_at(b, size, x.frac, domain, per_unit, bump);
    let sign = b.affine(negative_wide, -2, 1);
    let weight = match (ramp, inside) {
        (true, None) => None,
        (true, Some(inside)) => Some(inside),
        (false, None) => Some(sign),
        (false, Some(inside)) => Some(b.muls(&[(sign, inside)])[0]),
    };
    let mut y = match weight {
        Some(weight) => b.muls(&[(value, weight)])[0],
        None => value,
    };
    y = b.read(y, value.frac);
    match function {
        // beyond: the sign
        Function::Tanh => {
            if let Some(weight) = weight.filter(|_| inside.is_some()) {
                let beyond = b.sub(sign, weight);
                let beyond = b.mul_const(beyond, 1 << y.frac);
                let beyond = b.read(beyond, y.frac);
                y = b.add(y, beyond);
            }
            b.round(y, frac)
        }
        // bump(|x|) where x < 0, 1 - bump(|x|) elsewhere
        Function::Sigmoid => {
            let step = b.affine(negative_wide, -(1 << y.frac), 1 << y.frac);
            let step = b.read(step, y.frac);
            let y = b.sub(step, y);
            b.round(y, frac)
        }
        // relu(x) - bump(|x|)
        _ => {
            let bump = b.round(y, frac);
            let bump = b.resize_small(bump, frac + 1, bits);
            let ramp = b.read(positive, x.frac);
            let ramp = b.fit(ramp, bits, frac);
            b.sub(ramp, bump)
        }
    }
}

/// The bump of a = |x|, whole with `frac` fraction bits, for a below 2^domain: 61 fraction bits in [`WORD`].
fn bump_at(
    b: &mut Build<'_>,
    a: Value,
    frac: u32,
    domain: u32,
    per_unit: u32,
    bump: fn(f64) -> f64,
) -> Value {
    let a = b.resize(a, (frac + domain).min(a.bits));
    let domain = a.bits.saturating_sub(frac).min(domain);
    let a = b.read(a, frac);
    let (a, frac) = match frac > MOST_READ {
        true => (b.down(a, frac - MOST_READ, MOST_READ), MOST_READ),
        false => (a, frac),
    };
    // a segment has at least four units
    let per_unit = per_unit.min(frac - 2);
    let (index, t) = split(b, a, frac - per_unit);
    Table::new(domain + per_unit, per_unit, frac, 61, bump).at(b, index, t)
}
