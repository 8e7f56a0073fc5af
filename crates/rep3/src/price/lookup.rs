//! What look-ups, piecewise quadratics and exponentials send and have to prove: `crates/rep3/src/gates/lookup.rs`.

use super::Setting;
use super::claims::Moves;

/// Most bits of an index that are one digit.
const DIGIT: u32 = 3;
/// Ring bits and fraction bits of an exponential's quadratic, and log2 of the number of its pieces.
const WORD: u32 = 64;
const WIDE: u32 = 61;
const PIECES: u32 = 7;

impl Setting {
    /// All values of a digit but one.
    fn one_hot(&self, n: u64, bits: u32, to: u32) -> Moves {
        self.equal(((1 << bits) - 1) * n, bits, to)
    }

    /// `columns` tables read at n places of `bits` bits.
    pub fn read(&self, n: u64, bits: u32, columns: u64, to: u32) -> Moves {
        if bits <= DIGIT {
            return self.one_hot(n, bits, to);
        }
        let (low, high) = (bits.div_ceil(2), bits / 2);
        self.carries(n, low, high)
            .then(self.one_hot(n, low, to))
            .then(self.one_hot(n, high, to))
            .then(self.sums_of_products(columns * n, to, 1 << high))
    }

    /// Coefficients by an index of `bits` bits, and their sum with powers of t.
    fn quadratic(&self, n: u64, bits: u32, to: u32) -> Moves {
        self.read(n, bits, 3, to).then(self.sums_of_products(n, to, 1)).then(self.sums_of_products(n, to, 2))
    }

    /// A piecewise quadratic by an index of `bits` bits.
    pub fn piecewise(&self, n: u64, bits: u32, shift: u32, to: u32) -> Moves {
        match shift {
            0 => self.read(n, bits, 1, to),
            _ => self.carries(n, shift, bits.max(to)).then(self.quadratic(n, bits, to)),
        }
    }

    /// Of numbers of `whole` and `frac` bits; the first factor has `first` fraction bits.
    pub fn exponential(&self, n: u64, [whole, frac]: [u32; 2], first: u32, rows: u64) -> Moves {
        let dropped = WIDE - first;
        self.carries(n, frac - PIECES, WORD)
            .then(self.carries(n, PIECES, whole))
            .then(self.quadratic(n, PIECES, WORD))
            .then(self.truncate(n, WORD, dropped))
            .then(self.extend_non_negative(n, WORD - dropped, WORD))
            .then(self.read(n, whole, rows, WORD))
            .then(self.sums_of_products(rows * n, WORD, 1))
    }
}
