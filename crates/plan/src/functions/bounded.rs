//! Functions that are simple but on a bounded range: sigmoid, tanh, GELU, SiLU.
//!
//! Each is a step, a ramp or a sign of x plus a bump that depends on |x| alone and vanishes (or, for tanh, is 1) beyond
//! some |x|; the bump is a piecewise quadratic.

use super::Function;
use super::build::{Build, Value};
use super::quadratic::{End, piecewise};

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
        Function::Sigmoid => Shape { domain: 4, per_unit: 5, bump: |a| Function::Sigmoid.at(-a) },
        Function::Tanh => Shape { domain: 3, per_unit: 7, bump: libm::tanh },
        Function::Gelu => Shape { domain: 3, per_unit: 6, bump: |a| -Function::Gelu.at(-a) },
        Function::GeluTanh => Shape { domain: 3, per_unit: 6, bump: |a| -Function::GeluTanh.at(-a) },
        Function::GeluGrad => Shape { domain: 3, per_unit: 7, bump: |a| Function::GeluGrad.at(-a) },
        Function::GeluTanhGrad => Shape { domain: 3, per_unit: 7, bump: |a| Function::GeluTanhGrad.at(-a) },
        Function::SiluGrad => Shape { domain: 5, per_unit: 6, bump: |a| Function::SiluGrad.at(-a) },
        _ => Shape { domain: 5, per_unit: 6, bump: |a| -Function::Silu.at(-a) },
    }
}

/// The function of x in any ring; `bits` and `frac` are those of the result.
pub(super) fn bounded(b: &mut Build<'_>, function: Function, x: Value, bits: u32, frac: u32) -> Value {
    let shape = shape_of(function);
    let negative = b.is_negative(x, 1);
    let not_negative = b.add_const(negative, 1);
    let positive = b.choose(not_negative, x);
    let twice = b.mul_const(positive, 2);
    let size = b.sub(twice, x);
    let (mut value, inside) = bump_at(b, size, &shape);
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

/// The bump of a = |x| up to the first number of its last piece, 61 fraction bits in [`WORD`]; and the bit that a is below that,
/// where it may be beyond.
fn bump_at(b: &mut Build<'_>, a: Value, shape: &Shape) -> (Value, Option<Value>) {
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
    let a = b.resize(a, frac + domain);
    let a = match frac > MOST_READ {
        true => b.dither(a, frac - MOST_READ, a.bits - (frac - MOST_READ)),
        false => a,
    };
    // a piece has at least four units
    let per_unit = shape.per_unit.min(a.frac - 2);
    (piecewise(b, a, domain + per_unit, 61, End::Unused, shape.bump), inside)
}
