use super::InterpretError;
use crate::ir::{Rounding, ValueId};
use privet_ring::Ring;

/// Where the randomness of stochastic rounding comes from.
pub trait Coins {
    /// `count` numbers uniform in `[0, 2^shift)` for node `node`, or `None` where there is no randomness.
    fn draw(&mut self, node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>>;

    /// `count` numbers uniform in 32 bits, the coins of dropout `stream`: the same whenever they are asked for again in a
    /// run. `None` where there is no randomness.
    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        let (_, _) = (stream, count);
        None
    }
}

impl<F: FnMut(ValueId, usize, u32) -> Vec<u64>> Coins for F {
    fn draw(&mut self, node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>> {
        Some(self(node, count, shift))
    }
}

/// For plans without stochastic rounding: a plan that has one is refused.
#[derive(Clone, Copy, Debug)]
pub struct NoCoins;

impl Coins for NoCoins {
    fn draw(&mut self, _node: ValueId, _count: usize, _shift: u32) -> Option<Vec<u64>> {
        None
    }
}

/// Coins, or where there are none the middle of what they may be.
pub(crate) struct OrMiddle<'a>(pub &'a mut dyn Coins);

impl Coins for OrMiddle<'_> {
    fn draw(&mut self, node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>> {
        self.0.draw(node, count, shift).or_else(|| Some(vec![(1 << (shift - 1)) - 1; count]))
    }
}

/// What happens to a value that breaks what a truncation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promises {
    /// The plan is refused.
    Kept,
    /// Its result is off by `2^(k - f)`, as it may be under a protocol.
    Broken,
}

/// One truncate-reduce.
pub(crate) struct Truncation<'a> {
    pub node: ValueId,
    pub layer: &'a str,
    pub ring: Ring,
    pub to: Ring,
    pub shift: u32,
    pub rounding: Rounding,
}

impl Truncation<'_> {
    /// Whether the result has more bits than truncate-reduce leaves.
    fn widens(&self) -> bool {
        self.to.bits() > self.ring.bits() - self.shift
    }

    /// Whether `v` is in `[-2^(k-2), 2^(k-2))`.
    fn fits(&self, v: u64) -> bool {
        let top = self.ring.signed(v) >> (self.ring.bits() - 2);
        top == 0 || top == -1
    }

    /// Floor: `signed(x) >> f`. Stochastic: that plus 1 where `s < x mod 2^f`, s uniform in f bits, which
    /// happens with probability `(x mod 2^f) / 2^f`. Within one unit: the floor, in the middle of what is allowed.
    /// All modulo 2^k'.
    pub fn apply(
        &self,
        x: &[u64],
        promises: Promises,
        coins: &mut dyn Coins,
    ) -> Result<Vec<u64>, InterpretError> {
        let to = self.to;
        if promises == Promises::Kept && self.widens() && x.iter().any(|&v| !self.fits(v)) {
            return Err(InterpretError::Overflow { node: self.node, layer: self.layer.into() });
        }
        let wrong = |v: u64| u64::from(self.widens() && !self.fits(v)) << (self.ring.bits() - self.shift);
        let floor = |v: u64| ((self.ring.signed(v) >> self.shift) as u64).wrapping_add(wrong(v));
        if self.rounding != Rounding::Stochastic {
            return Ok(x.iter().map(|&v| to.wrap(floor(v))).collect());
        }
        let low = Ring::new(self.shift);
        let drawn = coins.draw(self.node, x.len(), self.shift).filter(|s| s.len() == x.len());
        let s = drawn.ok_or_else(|| InterpretError::NoCoins { node: self.node, layer: self.layer.into() })?;
        let up = |v: u64, s: u64| (low.wrap(s) < low.wrap(v)) as u64;
        Ok(x.iter().zip(s).map(|(&v, s)| to.wrap(floor(v).wrapping_add(up(v, s)))).collect())
    }
}
