//! Arithmetic modulo a prime below 2^50 on registers, each bound in the type.

use crate::lane::Lane;
use crate::word::{Below, Factor};

/// A prime p below 2^50 on registers of `L`. Every word stays below 4 p < 2^52.
#[derive(Clone, Copy)]
pub(crate) struct Field<L: Lane> {
    pub(crate) lane: L,
    p: L::V,
    twice: L::V,
}

impl<L: Lane> Field<L> {
    #[inline(always)]
    pub(crate) fn new(lane: L, p: u64) -> Field<L> {
        Field { lane, p: lane.splat(p), twice: lane.splat(2 * p) }
    }

    /// A factor everywhere.
    #[inline(always)]
    pub(crate) fn factor(self, Factor { value, quotient }: Factor<u64>) -> Factor<L::V> {
        Factor { value: self.lane.splat(value), quotient: self.lane.splat(quotient) }
    }

    #[inline(always)]
    pub(crate) fn add(self, a: Below<L::V, 2>, b: Below<L::V, 2>) -> Below<L::V, 4> {
        Below::claim(self.lane.add(a.words(), b.words()))
    }

    /// `a + 2 p - b`.
    #[inline(always)]
    pub(crate) fn sub(self, a: Below<L::V, 2>, b: Below<L::V, 2>) -> Below<L::V, 4> {
        Below::claim(self.lane.sub(self.lane.add(a.words(), self.twice), b.words()))
    }

    #[inline(always)]
    pub(crate) fn halve(self, a: Below<L::V, 4>) -> Below<L::V, 2> {
        Below::claim(self.lane.less(a.words(), self.twice))
    }

    #[inline(always)]
    pub(crate) fn canonical(self, a: Below<L::V, 2>) -> Below<L::V, 1> {
        Below::claim(self.lane.less(a.words(), self.p))
    }

    #[inline(always)]
    pub(crate) fn times(self, a: Below<L::V, 4>, factor: Factor<L::V>) -> Below<L::V, 2> {
        Below::claim(self.lane.times(a.words(), factor, self.p))
    }

    /// A limb times a factor: any word below 2^52 will do.
    #[inline(always)]
    pub(crate) fn times_limb(self, limb: L::V, factor: Factor<L::V>) -> Below<L::V, 2> {
        Below::claim(self.lane.times(limb, factor, self.p))
    }
}

impl<V: Copy> From<Below<V, 2>> for Below<V, 4> {
    #[inline(always)]
    fn from(v: Below<V, 2>) -> Below<V, 4> {
        Below::claim(v.words())
    }
}

impl<V: Copy> From<Below<V, 1>> for Below<V, 2> {
    #[inline(always)]
    fn from(v: Below<V, 1>) -> Below<V, 2> {
        Below::claim(v.words())
    }
}
