//! Smooth functions as plan operations that every protocol family has: comparisons, products and local sums.
//!
//! One definition for lowering, benches and tests: [`emit`] writes the nodes of a [`Function`] of a value. Methods,
//! accuracy and cost are in `docs/functions.md`.

mod angles;
mod attention;
mod bounded;
mod build;
mod chebyshev;
mod cubic;
mod exp;
mod fit;
mod largest;
mod mantissa;
mod meaning;
mod norm;
mod normalise;
mod polynomials;
mod powers;
mod quadratic;
mod quartic;
mod ramp;
mod sextic;
mod softmax;

pub use attention::{Weighted, attention};
pub use build::{Build, Value};
pub use norm::{Lines, normalised};
pub use ramp::{INSIDE, is_ramp};

use serde::{Deserialize, Serialize};

/// A function of real numbers, elementwise but for the softmaxes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Function {
    /// e^x; above what the type holds, its largest value (to a relative 2^-16).
    Exp,
    /// Natural logarithm; of x <= 0 that of one unit in the last place.
    Log,
    /// 1 / x; where that is more than the type holds, its largest value (to a relative 2^-16) with the sign of x;
    /// 1 / 0 as for one unit in the last place.
    Reciprocal,
    /// Square root; 0 of x < 0.
    Sqrt,
    /// 1 / sqrt(x); of x <= 0 that of one unit in the last place.
    Rsqrt,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
    /// Sine of an angle in radians.
    Sin,
    /// Cosine of an angle in radians.
    Cos,
    /// The largest whole number that is not above x, exactly.
    Floor,
    /// x Phi(x), Phi the normal distribution function.
    Gelu,
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`.
    GeluTanh,
    /// x / (1 + e^-x).
    Silu,
    /// The derivative of [`Function::Gelu`].
    GeluGrad,
    /// The derivative of [`Function::GeluTanh`].
    GeluTanhGrad,
    /// The derivative of [`Function::Silu`].
    SiluGrad,
    /// e^x over its sum along `dim`; all |x| below 2^(k-2) units in the last place.
    Softmax {
        /// Dimension.
        dim: usize,
    },
    /// Logarithm of the softmax.
    LogSoftmax {
        /// Dimension.
        dim: usize,
    },
    /// `x / sqrt(mean(x^2) + eps)`, means along the last dimension. Lowering finds it in a captured model; no model names it.
    Normalise {
        /// What is added to the mean.
        eps: f64,
    },
}

/// Write `function` of `x` as nodes of a plan, some of which may be off by a unit: call [`crate::shown::make_exact`] when the plan is
/// whole. The result has `bits` ring bits and `frac` fraction bits.
///
/// `x` may have any type with 2 to 30 fraction bits and at least 3 bits before them: its ring says how large it may
/// be, so fewer ring bits make a cheaper function. `frac` is 2 to 30, and `bits` at least `frac + 3`; results that
/// grow with x (GELU, SiLU, square root, logarithm of a softmax) must have the bits for it. Every value of x's type gives
/// a defined result.
///
/// # Errors
/// When the types are outside these limits, or a softmax has more than 2^16 classes.
pub fn emit(
    build: &mut Build<'_>,
    function: Function,
    x: Value,
    bits: u32,
    frac: u32,
) -> Result<Value, String> {
    let shape = build.shape(x).to_vec();
    function.check(&shape)?;
    if matches!(function, Function::Normalise { .. }) {
        return Err("a normalisation is found where its parts are captured, with their ranges".into());
    }
    check_types(function, [x.bits, x.frac], [bits, frac])?;
    let result = match function {
        Function::Softmax { dim } => softmax::softmax(build, x, dim, bits, frac),
        Function::LogSoftmax { dim } => softmax::log_softmax(build, x, dim, bits, frac),
        _ => {
            let flat = build.reshape(x, &[shape.iter().product()]);
            let y = match function {
                Function::Exp => exp::exp(build, flat, bits, frac),
                Function::Log => powers::log(build, flat, bits, frac),
                Function::Reciprocal => powers::reciprocal(build, flat, bits, frac),
                Function::Sqrt => powers::sqrt(build, flat, bits, frac),
                Function::Rsqrt => powers::rsqrt(build, flat, bits, frac),
                Function::Sin | Function::Cos => angles::wave(build, function, flat, bits, frac),
                Function::Floor => build.down(flat, flat.frac, 0),
                _ => bounded::bounded(build, function, flat, bits, frac),
            };
            build.reshape(y, &shape)
        }
    };
    let result = build.fit(result, bits, frac);
    Ok(build.approximates(function, x, result))
}

/// Ring bits and fraction bits of an operand and of a result.
fn check_types(function: Function, operand: [u32; 2], result: [u32; 2]) -> Result<(), String> {
    for (what, [bits, frac]) in [("operand", operand), ("result", result)] {
        if !(2..=MOST_FRACTION).contains(&frac) || bits < frac + 3 || bits > 64 {
            return Err(format!(
                "a function's {what} of {bits} ring bits and {frac} fraction bits; these must be 2 to {MOST_FRACTION} fraction bits and 3 to {} more",
                64 - frac.min(64)
            ));
        }
    }
    let ([from, before], [bits, frac]) = (operand, result);
    let need = frac + function.before_fraction(from - before);
    if bits < need {
        return Err(format!(
            "{} of numbers of {from} ring bits and {before} fraction bits needs {need} ring bits for {frac} fraction bits, not {bits}",
            function.name(),
        ));
    }
    Ok(())
}

/// [`emit`] of a ramp ([`is_ramp`]) for a product x that it alone reads, in its ring, of which it leaves a quarter at each end: `whole` bits before
/// the fraction hold it. The result has `out` fraction bits, and is as near to the function of x itself as one with `frac` is.
///
/// # Errors
/// As for [`emit`].
pub fn emit_of_product(
    build: &mut Build<'_>,
    function: Function,
    (x, whole): (Value, u32),
    [bits, frac, out]: [u32; 3],
) -> Result<Value, String> {
    check_types(function, [whole + frac, frac], [bits, out])?;
    let shape = build.shape(x).to_vec();
    let flat = build.reshape(x, &[shape.iter().product()]);
    let y = ramp::of_product(build, function, flat, whole, [bits, frac, out]);
    let y = build.reshape(y, &shape);
    Ok(build.approximates(function, x, y))
}

/// Most fraction bits of operands and results.
pub const MOST_FRACTION: u32 = 30;

impl Function {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Function::Exp => "exp",
            Function::Log => "log",
            Function::Reciprocal => "reciprocal",
            Function::Sqrt => "sqrt",
            Function::Rsqrt => "rsqrt",
            Function::Sigmoid => "sigmoid",
            Function::Tanh => "tanh",
            Function::Erf => "erf",
            Function::Sin => "sin",
            Function::Cos => "cos",
            Function::Floor => "floor",
            Function::Gelu => "gelu",
            Function::GeluTanh => "gelu_tanh",
            Function::Silu => "silu",
            Function::GeluGrad => "gelu_grad",
            Function::GeluTanhGrad => "gelu_tanh_grad",
            Function::SiluGrad => "silu_grad",
            Function::Softmax { .. } => "softmax",
            Function::LogSoftmax { .. } => "log_softmax",
            Function::Normalise { .. } => "normalise",
        }
    }

    /// Bits before the fraction, sign included, that results need so as not to wrap, for operands with `operand` of
    /// them. What saturates needs only 3.
    pub fn before_fraction(&self, operand: u32) -> u32 {
        match self {
            Function::Gelu | Function::GeluTanh | Function::Silu | Function::Floor => operand,
            Function::Sqrt => operand / 2 + 2,
            Function::LogSoftmax { .. } => operand + 2,
            _ => 3,
        }
    }

    /// The dimension that a softmax runs over.
    pub fn dim(&self) -> Option<usize> {
        match self {
            Function::Softmax { dim } | Function::LogSoftmax { dim } => Some(*dim),
            _ => None,
        }
    }

    /// Whether it can be taken of a tensor of `shape`.
    pub(crate) fn check(&self, shape: &[usize]) -> Result<(), String> {
        if let Function::Normalise { eps } = self
            && (shape.is_empty() || !(0.0..f64::INFINITY).contains(eps))
        {
            return Err(format!("lines of shape {shape:?} with {eps} added to their means"));
        }
        match self.dim() {
            Some(dim) if dim >= shape.len() => Err(format!("dimension {dim} of shape {shape:?}")),
            Some(dim) if shape[dim] > softmax::MOST_CLASSES => {
                Err(format!("{} classes, at most {}", shape[dim], softmax::MOST_CLASSES))
            }
            _ => Ok(()),
        }
    }
}
