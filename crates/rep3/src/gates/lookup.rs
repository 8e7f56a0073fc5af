//! Public tables at a secret place, piecewise quadratics and exponentials: the place's bits in digits, each compared with all
//! its values; over the low digit a table is a public sum of these bits, over the high one an inner product, which costs
//! one element.
//!
//! The coins of [`privet_plan::tables`] are public here, from the common key: they are added before anything is split.

use super::{carries, equal, extend, in_blocks, truncate};
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::linear::{self, dots};
use crate::local::{difference, plus_public, sum};
use crate::moves::Masked;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Security, Share};
use privet_plan::cost::Operation;
use privet_plan::ir::Rounding;
use privet_plan::tables::{Exponential, Pieces};
use privet_ring::Ring;

/// Most bits of an index that are one digit.
const DIGIT: u32 = 3;

/// `x >> m` in `high`, and the m bits below it in `low`, for x of any ring.
fn split(cx: &mut Party, x: &Share, m: u32, high: Ring, low: Ring) -> Result<[Share; 2], RunError> {
    let wide = Ring::new(high.bits().max(low.bits()));
    let carries = in_blocks(cx, x, |cx, x| carries::count(cx, m, wide, x))?;
    let each = |f: fn(u64, u64, u32) -> u64, ring: Ring| {
        let component =
            |x: &[u64], c: &[u64]| x.iter().zip(c).map(|(&x, &c)| ring.wrap(f(x, c, m))).collect();
        Share::new(component(&x.own, &carries.own), component(&x.next, &carries.next))
    };
    let below = |x: u64, c: u64, m: u32| (x & ((1 << m) - 1)).wrapping_sub(c << m);
    Ok([each(|x, c, m| (x >> m).wrapping_add(c), high), each(below, low)])
}

/// Vectors one after the other.
fn joined<'a>(parts: impl Iterator<Item = &'a Share> + Clone) -> Share {
    let one = |pick: fn(&Share) -> &[u64]| parts.clone().flat_map(|x| pick(x).iter().copied()).collect();
    Share::new(one(|x| &x.own), one(|x| &x.next))
}

/// Equal parts of a vector.
fn parts(x: &Share, count: usize) -> Vec<Share> {
    let n = x.len() / count.max(1);
    (0..count)
        .map(|i| Share::new(x.own[i * n..(i + 1) * n].to_vec(), x.next[i * n..(i + 1) * n].to_vec()))
        .collect()
}

/// For each value of the low `bits` bits of x, in order, whether x has it, in `to`.
fn one_hot(cx: &mut Party, bits: u32, to: Ring, x: &Share) -> Result<Vec<Share>, RunError> {
    let (ring, id, last) = (Ring::new(bits), cx.id, (1u64 << bits) - 1);
    let low = |x: &[u64]| x.iter().map(|&x| ring.wrap(x)).collect();
    let x = Share::new(low(&x.own), low(&x.next));
    let shifted: Vec<Share> = (0..last).map(|j| plus_public(id, ring, &x, |_| j.wrapping_neg())).collect();
    let hot = equal::eval(cx, ring, to, &joined(shifted.iter()))?;
    let mut hot = parts(&hot, last as usize);
    let zero = Share::new(vec![0; x.len()], vec![0; x.len()]);
    let one = plus_public(id, to, &zero, |_| 1);
    // the last value is what is left
    hot.push(hot.iter().fold(one, |rest, bit| difference(to, &rest, bit)));
    Ok(hot)
}

/// `sum over j of entry(j, i) x_j[i]`, entries being public.
fn weighted(ring: Ring, x: &[Share], entry: impl Fn(usize, usize) -> u64) -> Share {
    let component = |pick: fn(&Share) -> &[u64]| {
        let mut y = vec![0u64; pick(&x[0]).len()];
        for (j, x) in x.iter().enumerate() {
            for (i, (y, x)) in y.iter_mut().zip(pick(x)).enumerate() {
                *y = y.wrapping_add(x.wrapping_mul(entry(j, i)));
            }
        }
        y.into_iter().map(|y| ring.wrap(y)).collect()
    };
    Share::new(component(|x| &x.own), component(|x| &x.next))
}

/// `entry(column, index, i)` for every element i and column, index being x of `bits` bits.
fn read(
    cx: &mut Party,
    bits: u32,
    to: Ring,
    x: &Share,
    columns: usize,
    entry: impl Fn(usize, usize, usize) -> u64,
) -> Result<Vec<Share>, RunError> {
    if bits <= DIGIT {
        let hot = one_hot(cx, bits, to, x)?;
        return Ok((0..columns).map(|c| weighted(to, &hot, |j, i| entry(c, j, i))).collect());
    }
    let (low, high) = (bits.div_ceil(2), bits / 2);
    let [upper, _] = split(cx, x, low, Ring::new(high), Ring::new(1))?;
    let hot = one_hot(cx, low, to, x)?;
    let upper = one_hot(cx, high, to, &upper)?;
    let line = |h: usize| {
        let columns: Vec<Share> =
            (0..columns).map(|c| weighted(to, &hot, |l, i| entry(c, h << low | l, i))).collect();
        joined(columns.iter())
    };
    let lines: Vec<Share> = (0..1 << high).map(line).collect();
    let upper: Vec<Share> = upper.iter().map(|bit| joined(std::iter::repeat_n(bit, columns))).collect();
    Ok(parts(&dots(cx, to, &lines, &upper)?, columns))
}

/// `tables[i][x]`, table after table.
pub(crate) fn tables(
    cx: &mut Party,
    [from, to]: [Ring; 2],
    tables: &[Vec<i64>],
    x: &Share,
) -> Result<Share, RunError> {
    let columns = read(cx, from.bits(), to, x, tables.len(), |t, index, _| tables[t][index] as u64)?;
    Ok(joined(columns.iter()))
}

/// `c0 + c1 t + c2 t^2` for coefficients by x of `bits` bits.
fn quadratic(
    cx: &mut Party,
    bits: u32,
    to: Ring,
    x: &Share,
    pieces: &[[i64; 3]],
    t: &Share,
) -> Result<Share, RunError> {
    let coefficients = read(cx, bits, to, x, 3, |c, index, _| pieces[index][c] as u64)?;
    let square = linear::mul(cx, to, t, t)?;
    let terms = dots(cx, to, &coefficients[1..], &[t.clone(), square])?;
    Ok(sum(to, &coefficients[0], &terms))
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
        let columns = read(cx, bits, to, x, 1, |_, index, _| pieces.pieces[index][0] as u64)?;
        return Ok(joined(columns.iter()));
    }
    let coins = cx.coins(pieces.shift, x.len())?;
    let x = plus_public(cx.id, from, x, |i| coins[i]);
    let [index, low] = split(cx, &x, pieces.shift, Ring::new(bits), to)?;
    let t = plus_public(cx.id, to, &low, |i| coins[i].wrapping_neg());
    quadratic(cx, bits, to, &index, pieces.pieces, &t)
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
        let first = e.first(fraction);
        // not by index: to the dealer v is no secret, but its time would show what it dealt
        to.iter_mut().enumerate().for_each(|(i, to)| *to = first & u64::from(i == whole).wrapping_neg());
    };
    let words = |d: u64, to: &mut [u64]| {
        let (whole, fraction) = e.split(d);
        let coin = e.coin(fraction);
        for (row, to) in to.chunks_exact_mut(n).enumerate() {
            for (i, to) in to.iter_mut().enumerate() {
                *to = e.second(row, i.wrapping_sub(whole) & (n - 1), coin);
            }
        }
    };
    cx.masked(&Masked { from, to, terms: n, rows: e.rows(), factors, words }, x)
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
    let x = plus_public(cx.id, from, x, |i| coins[i]);
    let [index, t] = split(cx, &x, rising.shift, Ring::new(whole + rising.index_bits()), word)?;
    let [number, _] = split(cx, &index, rising.index_bits(), Ring::new(whole), Ring::new(1))?;

    let first = quadratic(cx, rising.index_bits(), word, &index, rising.pieces, &t)?;
    // below a quarter of what is left of the ring
    let short = Ring::new(word.bits() - e.dropped());
    let first = truncate::eval(cx, (word, short), e.dropped(), Rounding::Floor, &first)?;
    let first = in_blocks(cx, &first, |cx, x| extend::non_negative(cx, short, word, x))?;

    let shared: Vec<u64> = coins.iter().map(|&d| e.coin(d)).collect();
    let second = |row: usize, index: usize, i: usize| e.second(row, index, shared[i]);
    let second = read(cx, whole, word, &number, e.rows(), second)?;
    let first = joined(std::iter::repeat_n(&first, e.rows()));
    let y = linear::mul(cx, word, &first, &joined(second.iter()))?;
    let reduced = |y: &[u64]| y.iter().map(|&y| to.wrap(y)).collect();
    Ok(Share::new(reduced(&y.own), reduced(&y.next)))
}

/// [`privet_plan::ir::Op::Lookup`].
pub(crate) struct Tables<'a>(pub &'a [Vec<i64>]);

impl Gate for Tables<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        Ok(tables(cx, [x.from(), x.to()], self.0, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let tables = self.0.len() as u64;
        setting.read(of.elements() / tables, of.operand_bits(), tables, of.result_bits())
    }
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
        let index = of.operand_bits() - self.shift;
        setting.piecewise(of.elements(), index, self.shift, of.result_bits())
    }

    fn draws_coins(&self) -> bool {
        true
    }
}

/// [`privet_plan::ir::Op::Exponential`].
pub(crate) struct Exponentials<'a> {
    pub first: u32,
    pub rows: &'a [(i32, u32)],
}

impl Gate for Exponentials<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let e = Exponential::new(x.ty(0), self.first, self.rows).map_err(RunError::Missing)?;
        Ok(exponentials(cx, [x.from(), x.to()], &e, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let (rows, frac) = (self.rows.len() as u64, of.operands[0].ty.frac);
        let (n, whole) = (of.elements() / rows, of.operand_bits() - frac);
        match setting.security {
            Security::Malicious => setting.exponential(n, [whole, frac], self.first, rows),
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
    fn tables_of_every_small_size() {
        for bits in 1..=8 {
            let (ring, x) = (Ring::new(bits), (0..1 << bits).collect::<Vec<u64>>());
            let contents: Vec<Vec<i64>> =
                (1..4i64).map(|t| (0..1i64 << bits).map(|i| i * i * t - 77).collect()).collect();
            for to in [9, 64].map(Ring::new) {
                let y = value(to, |cx| tables(cx, [ring, to], &contents, &share(cx.id, ring, &x)).unwrap());
                let expected: Vec<u64> = contents.iter().flatten().map(|&y| to.wrap(y as u64)).collect();
                assert_eq!(y, expected, "{ring} to {to}");
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
        for (bits, frac, rows) in
            [(29, 24, vec![(-30, 35)]), (30, 24, vec![(-32, 29), (10, 5)]), (11, 9, vec![(-2, 30)])]
        {
            let e = Exponential::new(&Type { shape: vec![1], bits, frac }, 18, &rows).unwrap();
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
