//! Truncate-reduce: `signed(x) >> f` in k - f bits, exact or stochastic. Where a plan asks for one unit in the last place
//! only, exact as well: nothing cheaper is known here.
//!
//! Floor: `TR(x) = TR(xh) - TR(r) - 1{xh_low < r_low}` with the low f bits of both.
//! Stochastic (Orca, Lemma 1): with `t` uniform in f bits, drawn by the dealer, and
//! `th = t + r_low mod 2^f`: `TR(xh) - TR(r) - 1{th < r_low} + 1{th < xh_low}` is `TR(x) + 1{t < x_low}`,
//! and `1{th < xh_low} = 1 - 1{xh_low < th + 1}` is a comparison over f + 1 bits.
//!
//! Two words of k - f bits an element: `T(ch) = T0 + ch * S` with `S = +-1` secret.

use crate::compare::{self, Predicate};
use crate::deal::dealer_secret;
use crate::keys::KeyError;
use crate::{Deal, Eval, EvalError, Wire, tables};
use privet_plan::ir::Rounding;
use privet_prg::{Domain, Seed};
use privet_ring::Ring;

/// The ring of the result. Panics unless `shift < k`; plans are checked for it.
pub fn result_ring(from: Ring, shift: u32) -> Ring {
    Ring::new(from.bits() - shift)
}

/// Bits of the comparison's domain.
pub fn compare_bits(shift: u32, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Floor | Rounding::OneUlp => shift,
        Rounding::Stochastic => shift + 1,
    }
}

/// The dealer's coins in a record: `t` for every element, uniform in `shift` bits.
pub(crate) fn coins_of(record: &Seed, wire: Wire, shift: u32, n: usize) -> Vec<u64> {
    dealer_secret(&record.derive(Domain::Dealer, 0), wire, 1).elements(Ring::new(shift), n)
}

/// Deal for a value with mask `r`; the result's mask is the fresh mask of `wire`.
pub fn deal(
    cx: &mut Deal,
    wire: Wire,
    from: Ring,
    shift: u32,
    rounding: Rounding,
    r: &[u64],
) -> Result<(), KeyError> {
    let (to, n, low) = (result_ring(from, shift), r.len(), Ring::new(shift));
    // `base`: what the result is short of where c = 0; `alpha`: the comparison's threshold.
    let (alpha, base): (Vec<u64>, Vec<u64>) = match rounding {
        Rounding::Floor | Rounding::OneUlp => r.iter().map(|&r| (low.wrap(r), 0)).unzip(),
        Rounding::Stochastic => cx
            .secret(wire, 1)
            .elements(low, n)
            .into_iter()
            .zip(r)
            .map(|(t, &r)| {
                let th = low.wrap(t.wrapping_add(r));
                (th + 1, 1u64.wrapping_sub((th < low.wrap(r)) as u64))
            })
            .unzip(),
    };
    let m = compare::deal(cx, wire, compare_bits(shift, rounding), &alpha)?;
    let s = cx.fresh_mask(wire, to, n);
    tables::deal(cx, wire, to, n, |i| {
        let t0 = base[i].wrapping_sub(m.get(i)).wrapping_sub(from.wrap(r[i]) >> shift).wrapping_add(s[i]);
        [t0, (2 * m.get(i)).wrapping_sub(1)]
    })
}

/// Evaluate on the masked value `xh`; gives the masked result. Two rounds: one bit, then k - f bits.
pub fn eval(
    cx: &mut Eval,
    wire: Wire,
    from: Ring,
    shift: u32,
    rounding: Rounding,
    xh: &[u64],
) -> Result<Vec<u64>, EvalError> {
    let (to, n, low) = (result_ring(from, shift), xh.len(), Ring::new(shift));
    let bits = compare_bits(shift, rounding);
    let ch = compare::eval(cx, wire, "carry bit", bits, Predicate::Less, n, |i| low.wrap(xh[i]))?;
    let leads = cx.leads() as u64;
    let mut y = vec![0; n];
    tables::eval(cx, wire, to, n, |range, [t0, step]| {
        for ((i, y), (t0, step)) in range.clone().zip(&mut y[range]).zip(t0.iter().zip(step)) {
            let public = (from.wrap(xh[i]) >> shift) * leads;
            *y = t0.wrapping_add(ch.get(i) * step).wrapping_add(public);
        }
    })?;
    cx.open_masked("truncated", to, y)
}
