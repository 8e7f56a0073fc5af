//! Piecewise quadratics and exponentials: coefficients are looked up, and what is below a piece's first number is multiplied.
//!
//! The coins of [`privet_plan::tables`] are public here, from the common key: they are added before anything is split.

use super::lookup::{Entries, columns, groups, in_blocks, read, tables};
use super::{carries, digits, extend, truncate};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::linear::{self, dots};
use crate::local::{plus_public, sum};
use crate::moves::Masked;
use crate::planes::Words;
use crate::price::lookup::{exponential_width, quadratic_width};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Security, Share};
use privet_plan::cost::Operation;
use privet_plan::ir::Rounding;
use privet_plan::tables::{Exponential, Pieces};
use privet_ring::{Ring, mask_of};

/// `x >> m` in `high`, and the m bits below it in `low`, for x of any ring.
fn split(cx: &mut Party, x: &Share, m: u32, high: Ring, low: Ring) -> Result<[Share; 2], RunError> {
    let wide = Ring::new(high.bits().max(low.bits()));
    let carries = carries::count(cx, m, wide, x)?;
    let each = |f: fn(u64, u64, u32) -> u64, ring: Ring| {
        let component =
            |x: &[u64], c: &[u64]| x.iter().zip(c).map(|(&x, &c)| ring.wrap(f(x, c, m))).collect();
        Share::new(component(&x.own, &carries.own), component(&x.next, &carries.next))
    };
    let below = |x: u64, c: u64, m: u32| (x & ((1 << m) - 1)).wrapping_sub(c << m);
    Ok([each(|x, c, m| (x >> m).wrapping_add(c), high), each(below, low)])
}

/// `c0 + c1 t + c2 t^2` for coefficients by an index of these bits.
fn quadratic(
    cx: &mut Party,
    bits: &[Words],
    to: Ring,
    pieces: &[[i64; 3]],
    t: &Share,
) -> Result<Share, RunError> {
    let entries = [0, 1, 2].map(|c| pieces.iter().map(|piece| piece[c]).collect::<Vec<i64>>());
    let coefficients = columns(cx, bits, t.len(), to, &Entries::Alike(&entries))?;
    let square = linear::mul(cx, to, t, t)?;
    let terms = dots(cx, to, &coefficients[1..], &[t.clone(), square])?;
    Ok(sum(to, &coefficients[0], &terms))
}

/// How many pieces differ, in what is read of them.
pub(super) fn different(pieces: &Pieces) -> u64 {
    let read = if pieces.shift == 0 { 1 } else { 3 };
    let columns = (0..read).map(|c| pieces.pieces.iter().map(|piece| piece[c]).collect());
    groups(&columns.collect::<Vec<Vec<i64>>>()).len() as u64
}

/// A piecewise quadratic.
pub(crate) fn piecewise(
    cx: &mut Party,
    [from, to]: [Ring; 2],
    pieces: &Pieces,
    x: &Share,
) -> Result<Share, RunError> {
    let bits = pieces.index_bits();
    if pieces.shift == 0 {
        let columns = [pieces.pieces.iter().map(|piece| piece[0]).collect::<Vec<i64>>()];
        return tables(cx, [from, to], &columns, x);
    }
    let coins = cx.coins(pieces.shift, x.len())?;
    in_blocks(cx, x, [1, quadratic_width(bits, different(pieces))], |cx, block, x| {
        let coins = &coins[block];
        let x = plus_public(cx.id, from, x, |i| coins[i]);
        let [index, low] = split(cx, &x, pieces.shift, Ring::new(bits), to)?;
        let t = plus_public(cx.id, to, &low, |i| coins[i].wrapping_neg());
        let index = digits::bits(cx, bits, &index)?;
        quadratic(cx, &index, to, pieces.pieces, &t)
    })
}

/// Exponentials, row after row.
pub(crate) fn exponentials(
    cx: &mut Party,
    rings: [Ring; 2],
    e: &Exponential,
    x: &Share,
) -> Result<Share, RunError> {
    match cx.transcript {
        Some(_) => exponential(cx, rings, e, x),
        None => exponential_of_masked(cx, rings, e, x),
    }
}

/// Where nothing is proved: e^f of the masked value's fraction f at the place of its whole number, among zeros, times `e^(e - d)` for every
/// whole number that x then has.
fn exponential_of_masked(
    cx: &mut Party,
    [from, to]: [Ring; 2],
    e: &Exponential,
    x: &Share,
) -> Result<Share, RunError> {
    let n = e.entries();
    let factors = |v: u64, to: &mut [u64]| {
        let (whole, fraction) = e.split(v);
        // by no index: to the dealer v is no secret, but its time would show what it dealt
        let first = e.first_of_secret(fraction);
        to.iter_mut().enumerate().for_each(|(i, to)| *to = first & u64::from(i == whole).wrapping_neg());
    };
    let inner = |d: u64, dealt: &[u64], turned: &mut [u64], sums: &mut [u64]| {
        let (whole, fraction) = e.split(d);
        let coin = e.coin_of_secret(fraction);
        turned.copy_from_slice(dealt);
        turn(turned, whole);
        for (row, sum) in sums.iter_mut().enumerate() {
            let terms = turned.iter().enumerate().map(|(i, a)| a.wrapping_mul(e.second(row, i, coin)));
            *sum = terms.fold(*sum, u64::wrapping_add);
        }
    };
    cx.masked(&Masked { from, to, terms: n, rows: e.rows(), factors, inner }, x)
}

/// Turn words, of which there is a power of two and at most 64, such that what stood at the place `by` comes first. It takes the same time
/// and reads the same memory whatever `by` is.
fn turn(words: &mut [u64], by: usize) {
    let (n, mut first) = (words.len(), [0; 32]);
    for bit in 0..n.ilog2() {
        let (step, mask) = (1 << bit, mask_of(by as u64, bit as usize));
        first[..step].copy_from_slice(&words[..step]);
        // in order, so that what is read has not been turned yet
        for i in 0..n - step {
            words[i] ^= mask & (words[i] ^ words[i + step]);
        }
        words[n - step..].iter_mut().zip(&first).for_each(|(word, first)| *word ^= mask & (*word ^ first));
    }
    privet_prg::wiped::clear(&mut first[..n / 2]);
}

/// Where everything is proved.
pub(crate) fn exponential(
    cx: &mut Party,
    [from, to]: [Ring; 2],
    e: &Exponential,
    x: &Share,
) -> Result<Share, RunError> {
    let (word, whole, rising) = (Ring::R64, e.entries().trailing_zeros(), e.rising());
    let coins = cx.coins(from.bits() - whole, x.len())?;
    let width = exponential_width(whole, [e.rows() as u64, different(&rising)]);
    in_blocks(cx, x, [e.rows(), width], |cx, block, x| {
        let coins = &coins[block];
        let x = plus_public(cx.id, from, x, |i| coins[i]);
        let [index, t] = split(cx, &x, rising.shift, Ring::new(whole + rising.index_bits()), word)?;
        let bits = digits::bits(cx, whole + rising.index_bits(), &index)?;
        let (fraction, number) = bits.split_at(rising.index_bits() as usize);

        let first = quadratic(cx, fraction, word, rising.pieces, &t)?;
        // below half of what is left of the ring: e is below 4, and e^2 below 8 with a bit less dropped
        let short = Ring::new(word.bits() - e.dropped());
        let first = truncate::eval(cx, (word, short), e.dropped(), Rounding::Floor, &first)?;
        let first = extend::non_negative(cx, short, word, &first)?;

        let shared: Vec<u64> = coins.iter().map(|&d| e.coin(d)).collect();
        let second = |row: usize, index: usize, i: usize| e.second(row, index, shared[i]);
        let second = read(cx, number, x.len(), word, &Entries::Each(e.rows(), &second))?;
        let each = |x: &[u64]| x.repeat(e.rows());
        let y = linear::mul(cx, word, &Share::new(each(&first.own), each(&first.next)), &second)?;
        let reduced = |y: &[u64]| y.iter().map(|&y| to.wrap(y)).collect();
        Ok(Share::new(reduced(&y.own), reduced(&y.next)))
    })
}

/// [`privet_plan::ir::Op::Piecewise`].
pub(crate) struct Quadratics<'a> {
    pub shift: u32,
    pub pieces: &'a [[i64; 3]],
}

impl Gate for Quadratics<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let pieces = Pieces { shift: self.shift, pieces: self.pieces };
        Ok(piecewise(cx, [x.from(), x.to()], &pieces, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let pieces = Pieces { shift: self.shift, pieces: self.pieces };
        let index = of.operand_bits() - self.shift;
        setting.piecewise(of.elements(), index, self.shift, different(&pieces), of.result_bits())
    }

    fn draws_coins(&self) -> bool {
        true
    }
}

/// [`privet_plan::ir::Op::Exponential`].
pub(crate) struct Exponentials<'a> {
    pub first: u32,
    pub rows: &'a [(i32, u32)],
    pub scale: u32,
}

impl Gate for Exponentials<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let e = Exponential::new(x.ty(0), self.first, self.rows, self.scale).map_err(RunError::Missing)?;
        Ok(exponentials(cx, [x.from(), x.to()], &e, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let (rows, frac) = (self.rows.len() as u64, of.operands[0].ty.frac);
        let (n, whole) = (of.elements() / rows, of.operand_bits() - frac);
        match setting.security {
            Security::Malicious => {
                let e = Exponential::new(of.operands[0].ty, self.first, self.rows, self.scale);
                // a plan whose exponential is none is refused
                let (dropped, pieces) = e.map_or((1, 1), |e| (e.dropped(), different(&e.rising())));
                setting.exponential(n, [whole, frac], dropped, [rows, pieces])
            }
            Security::SemiHonest => {
                setting.masked(n, [of.operand_bits(), of.result_bits()], 1 << whole, rows)
            }
        }
    }

    fn draws_coins(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::rounding_coins;
    use crate::testing::{COMMON, edges, share, value};
    use privet_plan::ir::Type;
    use privet_prg::Seed;

    fn drawn(bits: u32, n: usize) -> Vec<u64> {
        rounding_coins(&Seed::from_bytes(COMMON), 0, bits, n)
    }

    #[test]
    fn words_are_turned() {
        for n in [1, 2, 4, 32, 64usize] {
            for by in 0..n {
                let mut words: Vec<u64> = (0..n as u64).map(|i| i * i + 1).collect();
                let mut expected = words.clone();
                expected.rotate_left(by);
                turn(&mut words, by);
                assert_eq!(words, expected, "{n} by {by}");
            }
        }
    }

    #[test]
    fn quadratics_are_those_of_the_interpreter() {
        for (shift, bits, to) in [(0, 3, 64), (5, 1, 64), (12, 4, 40), (20, 8, 64)] {
            let table: Vec<[i64; 3]> =
                (0..1i64 << bits).map(|i| [i * 1_000_003, 17 - i, 3 * i + 1]).collect();
            let pieces = Pieces { shift, pieces: &table };
            let (from, to) = (Ring::new(shift + bits), Ring::new(to));
            let x = edges(from, 300);
            let y = value(to, |cx| piecewise(cx, [from, to], &pieces, &share(cx.id, from, &x)).unwrap());
            let coins = if shift == 0 { vec![0; 300] } else { drawn(shift, 300) };
            let expected: Vec<u64> = x.iter().zip(coins).map(|(&x, d)| to.wrap(pieces.at(x, d))).collect();
            assert_eq!(y, expected, "{bits} bits and {shift} below");
        }
    }

    #[test]
    fn exponentials_are_those_of_the_interpreter() {
        for (bits, frac, rows, scale) in [
            (29, 24, vec![(-30, 35)], 0),
            (30, 24, vec![(-32, 29), (10, 5)], 0),
            (11, 9, vec![(-2, 30)], 0),
            (17, 13, vec![(-14, 24)], 1),
        ] {
            let e = Exponential::new(&Type { shape: vec![1], bits, frac }, 18, &rows, scale).unwrap();
            let from = Ring::new(bits);
            let x = edges(from, 200);
            for to in [40, 64].map(Ring::new) {
                let y = value(to, |cx| exponential(cx, [from, to], &e, &share(cx.id, from, &x)).unwrap());
                let coins = drawn(frac, x.len());
                let row = |row: usize| x.iter().zip(&coins).map(move |(&x, &d)| (row, x, d));
                let expected: Vec<u64> =
                    (0..rows.len()).flat_map(row).map(|(row, x, d)| to.wrap(e.at(row, x, d))).collect();
                assert_eq!(y, expected, "{bits} bits, {frac} of the fraction");
            }
        }
    }
}
