//! Functions that are simple but on a bounded range: sigmoid, tanh, erf, GELU, SiLU.
//!
//! Each is a step, a ramp or a sign of x plus a bump that depends on |x| alone and vanishes (or, for tanh and erf, is 1) beyond
//! some |x|; the bump is a piecewise quadratic, or pieces of degree 6 or a sum of waves where a family has them for less.

use super::Function;
use super::build::{Build, Value, WORD, Way};
use super::cubic::{self, cubic};
use super::fit::Fit;
use super::polynomials::{Cut, Pieces};
use super::quadratic::{End, piecewise};
use super::ramp::is_ramp;
use crate::ir::Op;
use crate::waves::{MOST_COEFFICIENT, TURN};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Fraction bits of |x| that the table reads.
const MOST_READ: u32 = 24;
/// What a bump may differ by from what it stays, in parts of what its errors are measured by.
const STAYS: f64 = 0.25;
/// Most fraction bits of coefficients: with those of a cosine they leave results room up to 16.
const MOST_DIGITS: u32 = 29;

/// Waves are near a bump from this much before 0 on.
pub(super) const BEFORE: f64 = 1.0 / 128.0;

/// How a function is made of its bump.
pub(super) struct Shape {
    bump: fn(f64) -> f64,
    /// As pieces, the bump vanishes from 2^domain on.
    domain: u32,
    /// log2 of the number of segments a unit.
    per_unit: u32,
    /// How it is cut into few pieces of a higher degree.
    few: Cut,
    pub waves: Span,
}

/// The bump as waves.
pub(super) struct Span {
    /// It vanishes from here on.
    end: f64,
    /// The period is `2^whole / step`.
    pub whole: u32,
    step: u32,
    count: usize,
}

impl Span {
    const fn new(end: f64, whole: u32, step: u32, count: usize) -> Span {
        Span { end, whole, step, count }
    }
}

pub(super) fn shape_of(function: Function) -> Shape {
    let shape = |bump, domain, per_unit, few: [i32; 2], waves| {
        let few = Cut { per_unit: few[0], unit: few[1] };
        Shape { bump, domain, per_unit, few, waves }
    };
    match function {
        Function::Sigmoid => shape(|a| Function::Sigmoid.at(-a), 4, 5, [1, 0], Span::new(16.8, 7, 5, 14)),
        Function::Tanh => shape(libm::tanh, 3, 7, [2, -1], Span::new(6.0, 5, 3, 10)),
        Function::Erf => shape(libm::erf, 2, 7, [2, -1], Span::new(4.0, 6, 9, 11)),
        Function::Gelu => shape(|a| -Function::Gelu.at(-a), 3, 6, [1, -1], Span::new(5.6, 6, 5, 8)),
        Function::GeluTanh => shape(|a| -Function::GeluTanh.at(-a), 3, 6, [1, -1], Span::new(5.6, 6, 5, 9)),
        Function::GeluGrad => shape(|a| Function::GeluGrad.at(-a), 3, 7, [1, -1], Span::new(6.0, 6, 5, 9)),
        Function::GeluTanhGrad => {
            shape(|a| Function::GeluTanhGrad.at(-a), 3, 7, [1, -1], Span::new(6.0, 6, 5, 11))
        }
        Function::SiluGrad => shape(|a| Function::SiluGrad.at(-a), 5, 6, [1, 0], Span::new(19.9, 7, 5, 21)),
        _ => shape(|a| -Function::Silu.at(-a), 5, 6, [1, 0], Span::new(19.9, 5, 1, 17)),
    }
}

/// What an error of the bump is measured by: where results are near zero, what two units in the last of 24 places leave beside
/// what is rounded later; else as much less than 2^-16 of the nearer result, that of -a or that of a.
fn bound(function: Function, a: f64) -> f64 {
    let near = function.at(a).abs().min(function.at(-a).abs());
    f64::max(2f64.powi(-23), near * 2f64.powi(-16)) - 1.2 * 2f64.powi(-24)
}

/// The waves of a function's bump: found once.
pub(super) fn waves_of(function: Function, shape: &Shape) -> Arc<Fit> {
    static FOUND: Mutex<BTreeMap<&str, Arc<Fit>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let Span { end, whole, step, count } = shape.waves;
    let period = (1u64 << whole) as f64 / step as f64;
    let near = || Arc::new(Fit::near(shape.bump, |a| bound(function, a), [-BEFORE, end], period, count));
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
    let few =
        |b: &mut Build<'_>, x| of_bump(b, function, x, [bits, frac], |b, a| in_few(b, function, a, &shape));
    let mut ways: Vec<&Way<'_>> = vec![&pieces];
    if x.bits >= x.frac + shape.waves.whole {
        ways.push(&waves);
    }
    if shape.has_few(x) {
        ways.push(&few);
    }
    let narrow =
        |b: &mut Build<'_>, x| of_bump(b, function, x, [bits, frac], |b, a| in_narrow(b, a, &shape, frac));
    if is_ramp(function) && shape.has_narrow(x, frac) {
        ways.push(&narrow);
    }
    b.cheapest(x, &ways)
}

/// The bump of a = |x|, and the bit that a is where it holds, unless it holds everywhere.
pub(super) type Bump = (Value, Option<Value>);

fn of_bump(
    b: &mut Build<'_>,
    function: Function,
    x: Value,
    [bits, frac]: [u32; 2],
    bump: impl Fn(&mut Build<'_>, Value) -> Bump,
) -> Value {
    if is_ramp(function) && x.frac <= frac && x.bits <= bits {
        // the ReLU widens as it goes, and its sign is needed for nothing else
        let ramp = b.like(Op::Relu, &[x], bits, x.frac);
        let positive = b.resize(ramp, x.bits);
        let size = size_of(b, x, positive);
        let bump = bump_inside(b, size, [bits, frac], bump);
        let ramp = b.fit(ramp, bits, frac);
        return b.sub(ramp, bump);
    }
    let negative = b.is_negative(x, 1);
    let not_negative = b.add_const(negative, 1);
    let positive = b.choose(not_negative, x);
    let size = size_of(b, x, positive);
    if is_ramp(function) {
        let bump = bump_inside(b, size, [bits, frac], bump);
        let ramp = b.fit(positive, bits, frac);
        return b.sub(ramp, bump);
    }
    let (mut value, inside) = bump(b, size);
    match function {
        // bump(|x|) and 1 beyond, with the sign of x
        Function::Tanh | Function::Erf => {
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
        _ => {
            if let Some(inside) = inside {
                value = b.choose(inside, value);
            }
            let rest = b.mul_const(value, -2);
            let rest = b.add_const(rest, 1 << value.frac);
            let rest = b.choose(not_negative, rest);
            let y = b.add(value, rest);
            b.dither(y, y.frac - frac, bits)
        }
    }
}

/// |x| from x and max(x, 0).
pub(super) fn size_of(b: &mut Build<'_>, x: Value, positive: Value) -> Value {
    let twice = b.mul_const(positive, 2);
    b.sub(twice, x)
}

/// The bump of a = |x|, 0 where it does not hold, in the given numbers.
pub(super) fn bump_inside(
    b: &mut Build<'_>,
    a: Value,
    [bits, frac]: [u32; 2],
    bump: impl Fn(&mut Build<'_>, Value) -> Bump,
) -> Value {
    let (value, inside) = bump(b, a);
    let shift = value.frac - frac;
    match inside {
        // 0 is exact, as it is chosen last: off by a unit, the largest x would be beyond the type
        Some(inside) => {
            let value = b.nearly(value, shift, bits);
            b.choose(inside, value)
        }
        None => b.dither(value, shift, bits),
    }
}

/// a modulo 2^domain, with as many fraction bits as are read.
fn window(b: &mut Build<'_>, a: Value, domain: u32, most: u32) -> Value {
    let (frac, a) = (a.frac, b.resize(a, a.frac + domain));
    match frac > most {
        true => b.dither(a, frac - most, a.bits - (frac - most)),
        false => a,
    }
}

/// What the bump is read of as pieces: |x| modulo 2^domain, which it is less by a quarter of a unit at most where the bit says so, unless
/// it always is.
fn within(b: &mut Build<'_>, a: Value, shape: &Shape, [domain, most]: [u32; 2]) -> (Value, Option<Value>) {
    let frac = a.frac;
    // a ring that ends earlier: |x| is at most 2^(k - 1)
    let (inside, domain) = match a.bits - 1 > frac + domain {
        true => {
            let end = (1i64 << (frac + domain)) - (1i64 << frac >> shape.per_unit.min(frac - 2));
            (Some(before(b, a, end)), domain)
        }
        false => (None, a.bits - frac),
    };
    (window(b, a, domain, most), inside)
}

/// The bump up to the first number of its last piece, 61 fraction bits in [`WORD`].
pub(super) fn in_pieces(b: &mut Build<'_>, a: Value, shape: &Shape) -> Bump {
    let (a, inside) = within(b, a, shape, [shape.domain, MOST_READ]);
    // a piece has at least four units
    let per_unit = shape.per_unit.min(a.frac - 2);
    (piecewise(b, a, a.bits - a.frac + per_unit, 61, End::Unused, shape.bump), inside)
}

impl Shape {
    /// Whether there are such pieces for |x|.
    pub fn has_few(&self, x: Value) -> bool {
        let (frac, domain) = (x.frac.min(self.few.most_read()), self.domain.min(x.bits - x.frac));
        self.few.suits(Value { bits: domain + frac, frac, ..x })
    }

    /// The least step from which on, and from a margin before, the bump is no different from what it is at `2^domain`; else a margin before that,
    /// as what is read with fewer fraction bits may be rounded up.
    fn end(&self, bound: &dyn Fn(f64) -> f64, domain: u32, frac: u32) -> f64 {
        let (whole, step, margin) = (2f64.powi(domain as i32), self.few.step(), self.margin(frac));
        let last = (self.bump)(whole).round();
        let stays = |a: f64| ((self.bump)(a) - last).abs() <= STAYS * bound(a);
        let ends = (1..(whole / step) as u32).map(|i| f64::from(i) * step);
        // it comes nearer and nearer
        let end = ends.rev().take_while(|end| stays(end - margin)).last();
        end.unwrap_or(whole - margin)
    }

    /// How far before `2^domain` a bump may end that is read of |x| with so many fraction bits.
    fn margin(&self, read: u32) -> f64 {
        let missed = if read > COARSE { 3.0 * 2f64.powi(-(COARSE as i32)) } else { 0.0 };
        2f64.powi(-(self.per_unit.min(read - 2) as i32)) + missed
    }

    /// The least domain beyond which the bump is less than a unit in the last of `frac` places: it is taken for 0 there, and nothing is rounded.
    fn narrow_domain(&self, read: u32, frac: u32) -> u32 {
        let end = |domain: u32| 2f64.powi(domain as i32) - self.margin(read);
        let vanishes = |domain: &u32| (self.bump)(end(*domain)).abs() < 2f64.powi(-(frac as i32));
        (1..self.domain).find(vanishes).unwrap_or(self.domain)
    }

    /// Whether there are pieces of degree 3 for |x|, for results of `frac` fraction bits.
    pub fn has_narrow(&self, x: Value, frac: u32) -> bool {
        let (read, domain) = (x.frac.min(MOST_READ), self.narrow_domain(x.frac, frac).min(x.bits - x.frac));
        cubic::suits(domain + read, cubic::index(domain, frac), frac)
    }
}

/// The bump in pieces of degree 3, for results of `frac` fraction bits.
pub(super) fn in_narrow(b: &mut Build<'_>, a: Value, shape: &Shape, frac: u32) -> Bump {
    let (a, inside) = within(b, a, shape, [shape.narrow_domain(a.frac, frac), MOST_READ]);
    (cubic(b, a, cubic::index(a.bits - a.frac, frac), frac, shape.bump), inside)
}

/// The bump in few pieces, up to where it is what it stays.
pub(super) fn in_few(b: &mut Build<'_>, function: Function, a: Value, shape: &Shape) -> Bump {
    let domain = shape.domain.min(a.bits - a.frac);
    let (bound, unit) = (|a| bound(function, a), 2f64.powi(a.frac as i32));
    let end = shape.end(&bound, domain, a.frac);
    let inside = (end * unit < 2f64.powi(a.bits as i32 - 1)).then(|| before(b, a, (end * unit) as i64));
    let a = window(b, a, domain, shape.few.most_read());
    (Pieces { f: &shape.bump, bound: &bound, end, cut: shape.few }.of(b, a), inside)
}

/// Fraction bits that tell near enough whether a number is inside: up to 3 units of them less than the end.
pub(super) const COARSE: u32 = 8;

/// The bit that a is below `end`, which it may miss where a is near below.
fn before(b: &mut Build<'_>, a: Value, end: i64) -> Value {
    let below = |b: &mut Build<'_>, a: Value, end: i64| {
        let distance = b.add_const(a, -end);
        b.is_negative(distance, 1)
    };
    let exactly = |b: &mut Build<'_>, a: Value| below(b, a, end);
    let shift = a.frac.saturating_sub(COARSE);
    // off by a unit and a half: what is below this is below the end
    let nearly = |b: &mut Build<'_>, a: Value| {
        let coarse = b.nearly(a, shift, a.bits - shift);
        below(b, coarse, (end >> shift) - 1)
    };
    match shift {
        0 => exactly(b, a),
        _ => b.rounded(a, &exactly, &nearly),
    }
}

/// The bump as a sum of waves, 58 or 59 fraction bits in [`WORD`], up to the end of the span.
pub(super) fn in_waves(b: &mut Build<'_>, a: Value, span: &Span, found: &Fit) -> Bump {
    let end = (span.end * 2f64.powi(a.frac as i32)).ceil();
    let inside = (end < 2f64.powi(a.bits as i32 - 1)).then(|| before(b, a, end as i64));
    let a = window(b, a, span.whole, MOST_READ);
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

    /// How many there are is what they cost.
    #[test]
    fn pieces_are_few_and_within_what_is_allowed() {
        for (function, most) in [
            (Function::Sigmoid, 9),
            (Function::Tanh, 8),
            (Function::Erf, 5),
            (Function::Gelu, 9),
            (Function::GeluTanh, 8),
            (Function::Silu, 13),
            (Function::GeluGrad, 11),
            (Function::GeluTanhGrad, 10),
            (Function::SiluGrad, 13),
        ] {
            let shape = shape_of(function);
            let bound = |a| bound(function, a);
            let end = shape.end(&bound, shape.domain, 24);
            let pieces = Pieces { f: &shape.bump, bound: &bound, end, cut: shape.few };
            let (count, error) = pieces.worst(shape.domain);
            println!("{} {count} pieces up to {end:.3}, {error:.3}", function.name());
            assert!(count <= most, "{}: {count} pieces", function.name());
            assert!(error <= 0.25, "{}: {error}", function.name());
        }
    }

    #[test]
    fn waves_are_within_half_of_what_is_left_for_them() {
        for function in [
            Function::Sigmoid,
            Function::Tanh,
            Function::Erf,
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
            let place = |i: i32| (end + BEFORE) * i as f64 / 20_000.0 - BEFORE;
            let worst = (0..=20_000).map(|i| error(place(i))).fold(0.0, f64::max);
            let sum: f64 = found.waves.as_flattened().iter().map(|c| c.abs()).sum();
            println!("{} {worst:.3}, coefficients {:.2} sum {sum:.2}", function.name(), found.largest());
            assert!(worst < 0.5, "{}: {worst}", function.name());
        }
    }
}
