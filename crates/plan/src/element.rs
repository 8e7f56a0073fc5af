//! The two kinds of number that a plan is evaluated on.

use crate::functions::Function;
use privet_ring::Ring;

/// A number that the plan's operations compute on: `u64` for ring elements, `f64` for the real reference.
///
/// Ring arithmetic wraps modulo 2^64; a result is reduced modulo 2^k once, by [`Element::reduce`].
pub trait Element: Copy + Send + Sync + PartialEq {
    /// 0.
    const ZERO: Self;
    /// a + b.
    fn add(self, b: Self) -> Self;
    /// a - b.
    fn sub(self, b: Self) -> Self;
    /// a * b.
    fn mul(self, b: Self) -> Self;
    /// The public integer `value`, read with `frac` fraction bits.
    fn constant(value: i64, frac: u32) -> Self;
    /// The public integer `value` as a factor.
    fn factor(value: i64) -> Self;
    /// Modulo 2^k; a real number stays, but for a bit.
    fn reduce(self, ring: Ring) -> Self;
    /// Read with `to` fraction bits what had `from`: a ring element stays, a real number is scaled.
    fn rescale(self, from: u32, to: u32) -> Self;
    /// The whole number `value`.
    fn whole(value: u64) -> Self;
    /// Whether the signed value in `ring` is below zero.
    fn is_negative(self, ring: Ring) -> bool;
    /// The signed value of `from` as an element of `to`; a real number stays.
    fn extend(self, from: Ring, to: Ring) -> Self;
    /// `b + relu(a - b mod 2^k)`; for real numbers the greater of both.
    fn max(a: Self, b: Self, ring: Ring) -> Self;
    /// As an element of `ring` with `frac` fraction bits; a real number is rounded.
    fn to_ring(self, ring: Ring, frac: u32) -> u64;
    /// The signed value of an element with `frac` fraction bits.
    fn from_ring(ring: Ring, frac: u32, value: u64) -> Self;
    /// `y`, which approximates `function` of `x`; for real numbers the function itself.
    fn approximated(function: &Function, shape: &[usize], x: &[Self], y: &[Self]) -> Vec<Self>;
}

impl Element for u64 {
    const ZERO: u64 = 0;

    fn add(self, b: u64) -> u64 {
        self.wrapping_add(b)
    }

    fn sub(self, b: u64) -> u64 {
        self.wrapping_sub(b)
    }

    fn mul(self, b: u64) -> u64 {
        self.wrapping_mul(b)
    }

    fn constant(value: i64, _frac: u32) -> u64 {
        value as u64
    }

    fn factor(value: i64) -> u64 {
        value as u64
    }

    fn reduce(self, ring: Ring) -> u64 {
        ring.wrap(self)
    }

    fn rescale(self, _from: u32, _to: u32) -> u64 {
        self
    }

    fn whole(value: u64) -> u64 {
        value
    }

    fn is_negative(self, ring: Ring) -> bool {
        ring.msb(self) == 1
    }

    fn extend(self, from: Ring, to: Ring) -> u64 {
        to.wrap(from.signed(self) as u64)
    }

    fn max(a: u64, b: u64, ring: Ring) -> u64 {
        let difference = ring.wrap(a.wrapping_sub(b));
        ring.wrap(if difference.is_negative(ring) { b } else { b.wrapping_add(difference) })
    }

    fn to_ring(self, _ring: Ring, _frac: u32) -> u64 {
        self
    }

    fn from_ring(ring: Ring, _frac: u32, value: u64) -> u64 {
        ring.wrap(value)
    }

    fn approximated(_function: &Function, _shape: &[usize], _x: &[u64], y: &[u64]) -> Vec<u64> {
        y.to_vec()
    }
}

impl Element for f64 {
    const ZERO: f64 = 0.0;

    fn add(self, b: f64) -> f64 {
        self + b
    }

    fn sub(self, b: f64) -> f64 {
        self - b
    }

    fn mul(self, b: f64) -> f64 {
        self * b
    }

    fn constant(value: i64, frac: u32) -> f64 {
        value as f64 * 2f64.powi(-(frac as i32))
    }

    fn factor(value: i64) -> f64 {
        value as f64
    }

    /// A bit stays one: 1 + 1 = 0. (What else has one ring bit is the low bit of some integer, and is not read.)
    fn reduce(self, ring: Ring) -> f64 {
        if ring.bits() == 1 { self.rem_euclid(2.0) } else { self }
    }

    fn rescale(self, from: u32, to: u32) -> f64 {
        self * 2f64.powi(from as i32 - to as i32)
    }

    fn whole(value: u64) -> f64 {
        value as f64
    }

    fn is_negative(self, _ring: Ring) -> bool {
        self < 0.0
    }

    fn extend(self, _from: Ring, _to: Ring) -> f64 {
        self
    }

    fn max(a: f64, b: f64, _ring: Ring) -> f64 {
        a.max(b)
    }

    fn to_ring(self, ring: Ring, frac: u32) -> u64 {
        ring.wrap((self * 2f64.powi(frac as i32)).round() as i64 as u64)
    }

    fn from_ring(ring: Ring, frac: u32, value: u64) -> f64 {
        ring.signed(value) as f64 * 2f64.powi(-(frac as i32))
    }

    fn approximated(function: &Function, shape: &[usize], x: &[f64], _y: &[f64]) -> Vec<f64> {
        function.of(shape, x)
    }
}
