//! Truncations: exact ones by the carry of the low parts, and such as the shares alone give.
//!
//! `x = c + s - 2^k w` for both sides' shares, where w says whether they wrap. Modulo 2^(k - f) the last term is gone after a
//! division by 2^f. In a larger ring `2^(k-2) + x` has a highest bit of 0, so w is the OR of both sides' highest bits.

use crate::context::{Cx, RunError, Side};
use crate::gate::{At, Gate, Held};
use crate::uses::Uses;
use crate::{compare, mutation, mux, planes};
use privet_plan::ir::Rounding;
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Truncate`].
pub(crate) struct Truncate {
    pub shift: u32,
    pub rounding: Rounding,
}

/// [`privet_plan::ir::Op::Dither`]: the client's low part is the coin. `x + d` with `d = -c mod 2^f` has the server's low part
/// alone, so there is no carry.
pub(crate) struct Dither {
    pub shift: u32,
}

/// Bits of the result beyond those that truncation leaves.
fn beyond(at: &At, shift: u32) -> u32 {
    (at.to().bits() + shift).saturating_sub(at.from().bits())
}

/// `(x >> f)` of both sides' shares, less what they wrap.
fn high(cx: &mut Cx, at: &At, shift: u32, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (from, to, beyond) = (at.from(), at.to(), beyond(at, shift));
    if beyond == 0 {
        return Ok(x.iter().map(|x| to.wrap(x >> shift)).collect());
    }
    let quarter = 1u64 << (from.bits() - 2);
    let shifted: Vec<u64> = x.iter().map(|x| from.wrap(x.wrapping_add(cx.side.constant(quarter)))).collect();
    let wraps = mux::wraps(cx, from, beyond, &shifted)?;
    let part = |(x, wraps): (&u64, u64)| {
        let wrapped = wraps << (from.bits() - shift);
        to.wrap((x >> shift).wrapping_sub(wrapped).wrapping_sub(cx.side.constant(quarter >> shift)))
    };
    Ok(shifted.iter().zip(wraps).map(part).collect())
}

fn high_uses(at: &At, shift: u32) -> Uses {
    mux::wraps_uses(beyond(at, shift), at.len())
}

impl Gate for Truncate {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (to, n, own) = (x.at.to(), x.at.len(), x.share(0));
        if x.at.cut().is_some() {
            // the ReLU that alone reads it finds the carry with its sign
            return Ok(own.to_vec());
        }
        let low = Ring::new(self.shift);
        let mut out = high(cx, &x.at, self.shift, &own)?;
        if self.rounding == Rounding::OneUlp {
            return Ok(out);
        }
        let mut lows: Vec<u64> = own.iter().map(|x| low.wrap(*x)).collect();
        if self.rounding == Rounding::Stochastic && cx.side == Side::Server {
            // up where the coin is below the low part: floor of x and the coin's complement
            for ((x, coin), out) in lows.iter_mut().zip(cx.coins(x.at.id, low, n)).zip(&mut out) {
                let coin = if mutation::active("coin-forgotten") { 0 } else { low.wrap(!coin) };
                let sum = *x + coin;
                (*x, *out) = (low.wrap(sum), to.wrap(out.wrapping_add(sum >> self.shift)));
            }
        }
        let carry = compare::carry(cx, x.at.digits(), self.shift, &lows)?;
        let carry = match to.bits() {
            1 => (0..n).map(|i| planes::bit(&carry, i)).collect(),
            _ => mux::element(cx, to, &carry, n)?,
        };
        if !mutation::active("low-part-forgotten") {
            out.iter_mut().zip(carry).for_each(|(x, c)| *x = to.wrap(x.wrapping_add(c)));
        }
        Ok(out)
    }

    fn uses(&self, at: &At) -> Uses {
        if at.cut().is_some() {
            return Uses::default();
        }
        let high = high_uses(at, self.shift);
        if self.rounding == Rounding::OneUlp {
            return high;
        }
        let carry = compare::carry_uses(at.digits(), self.shift, at.len());
        high.then(carry).then(mux::element_uses(at.to().bits(), at.len()))
    }

    #[cfg(test)]
    fn coins(&self, at: &At, _: [&[u64]; 2], public: &dyn Fn(Ring, usize) -> Vec<u64>) -> Option<Vec<u64>> {
        (self.rounding == Rounding::Stochastic).then(|| public(Ring::new(self.shift), at.len()))
    }
}

impl Gate for Dither {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (to, low, own) = (x.at.to(), Ring::new(self.shift), x.share(0));
        let mut out = high(cx, &x.at, self.shift, &own)?;
        if cx.side == Side::Client {
            for (out, x) in out.iter_mut().zip(own.iter()) {
                *out = to.wrap(out.wrapping_add(u64::from(low.wrap(*x) > 0)));
            }
        }
        Ok(out)
    }

    fn uses(&self, at: &At) -> Uses {
        high_uses(at, self.shift)
    }

    #[cfg(test)]
    fn coins(
        &self,
        _: &At,
        [_, client]: [&[u64]; 2],
        _: &dyn Fn(Ring, usize) -> Vec<u64>,
    ) -> Option<Vec<u64>> {
        // rounded up where it is below the low part, which is the floor with its complement added: of -c, c - 1
        let low = Ring::new(self.shift);
        Some(client.iter().map(|x| low.wrap(x.wrapping_sub(1))).collect())
    }
}
