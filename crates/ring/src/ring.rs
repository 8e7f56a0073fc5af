use std::fmt;

/// The ring Z_2^k of `k` bits, 1 <= k <= 64, elements in two's complement.
///
/// Elements live in the low `k` bits of a `u64`. Functions that return an element return it reduced
/// (upper bits zero); functions that take one accept any upper bits unless they say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ring(u8);

impl Ring {
    /// Z_2^64.
    pub const R64: Ring = Ring(64);

    /// The ring of `bits` bits. Panics unless `1 <= bits <= 64`: a plan is checked before it gets here.
    pub const fn new(bits: u32) -> Ring {
        assert!(bits >= 1 && bits <= 64);
        Ring(bits as u8)
    }

    /// k, the ring's bits.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// 2^k - 1.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }

    /// Reduce modulo 2^k.
    pub const fn wrap(self, x: u64) -> u64 {
        x & self.mask()
    }

    /// The signed representative in [-2^(k-1), 2^(k-1)).
    pub const fn signed(self, x: u64) -> i64 {
        let s = 64 - self.0 as u32;
        ((x << s) as i64) >> s
    }

    /// The most significant of the ring's bits, 0 or 1.
    pub const fn msb(self, x: u64) -> u64 {
        (x >> (self.0 - 1)) & 1
    }

    /// Bytes that `n` elements take when packed bit by bit.
    pub const fn packed_bytes(self, n: usize) -> usize {
        (n * self.0 as usize).div_ceil(8)
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Z_2^{}", self.0)
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
