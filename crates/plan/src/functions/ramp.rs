//! GELU and SiLU: x or 0 less a bump. Of a product that they alone read they round what they need of it.

use super::Function;
use super::bounded::{
    BEFORE, Bump, COARSE, bounded, bump_inside, in_few, in_narrow, in_pieces, in_waves, shape_of, size_of,
    waves_of,
};
use super::build::{Build, Value, Way};

/// Whether a function is relu(x) - bump(|x|).
pub fn is_ramp(function: Function) -> bool {
    matches!(function, Function::Gelu | Function::GeluTanh | Function::Silu)
}

/// Fraction bits beyond those of the result that a ramp keeps of a product until the end.
pub const INSIDE: u32 = 3;

/// A ramp less its bump of a product x of more fraction bits: `whole` bits before the fraction hold it, and it stays a quarter of its ring
/// away from wrapping. With `out` fraction bits, which are `frac` or [`INSIDE`] more, within what is said of `frac`.
///
/// x is rounded once, with bits to spare. Of waves it may have the wrong sign where it is nearly 0: a bump goes on beyond 0, such
/// that `x - bump(x)` and `-bump(-x)` are the same.
pub(super) fn of_product(
    b: &mut Build<'_>,
    function: Function,
    x: Value,
    whole: u32,
    [bits, frac, out]: [u32; 3],
) -> Value {
    let shape = shape_of(function);
    let inside = frac + INSIDE;
    let read = Value { bits: whole + inside, frac: inside, ..x };
    let made = |b: &mut Build<'_>, x: Value, coarse: bool, bump: &dyn Fn(&mut Build<'_>, Value) -> Bump| {
        let wide = b.nearly(x, x.frac - inside, bits);
        let negative = match coarse {
            true => coarsely_negative(b, x, whole),
            false => {
                let narrow = b.resize(wide, read.bits);
                b.is_negative(narrow, 1)
            }
        };
        let not_negative = b.add_const(negative, 1);
        let positive = b.choose(not_negative, wide);
        let size = size_of(b, wide, positive);
        let size = b.resize(size, read.bits);
        let bump = bump_inside(b, size, [bits, inside], bump);
        let y = b.sub(positive, bump);
        b.dither(y, inside - out, bits)
    };
    let rounded = |b: &mut Build<'_>, x: Value| {
        let x = b.round(x, frac);
        let x = b.resize(x, whole + frac);
        let y = bounded(b, function, x, bits, frac);
        b.fit(y, bits, out)
    };
    let pieces = |b: &mut Build<'_>, x| made(b, x, false, &|b, a| in_pieces(b, a, &shape));
    let found = waves_of(function, &shape);
    let waves = |b: &mut Build<'_>, x| made(b, x, true, &|b, a| in_waves(b, a, &shape.waves, &found));
    let few = |b: &mut Build<'_>, x| made(b, x, false, &|b, a| in_few(b, function, a, &shape));
    let narrow = |b: &mut Build<'_>, x| made(b, x, false, &|b, a| in_narrow(b, a, &shape, frac));
    let mut ways: Vec<&Way<'_>> = vec![&rounded, &pieces];
    if whole >= shape.waves.whole && x.frac > COARSE {
        ways.push(&waves);
    }
    if shape.has_few(read) {
        ways.push(&few);
    }
    if shape.has_narrow(read, frac) {
        ways.push(&narrow);
    }
    b.cheapest(x, &ways)
}

/// A sign that is wrong is that of a number of which waves know: a rounded one is off by a unit and a half.
const _: () = assert!(1.5 <= BEFORE * (1u64 << COARSE) as f64);

/// The bit that x is negative, which it may miss where |x| is less than [`BEFORE`].
fn coarsely_negative(b: &mut Build<'_>, x: Value, whole: u32) -> Value {
    let shift = x.frac - COARSE;
    let coarse = b.nearly(x, shift, x.bits - shift);
    let coarse = b.resize(coarse, whole + COARSE);
    b.is_negative(coarse, 1)
}
