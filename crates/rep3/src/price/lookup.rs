//! What look-ups, piecewise quadratics and exponentials send and have to prove: `crates/rep3/src/gates/lookup.rs`.

use super::Setting;
use super::claims::Moves;
use crate::gates::digits;

/// Most values of one digit that are turned into numbers.
const MOST: u64 = 63;
/// Ring bits of an exponential's quadratic, and log2 of the number of its pieces.
const WORD: u32 = 64;
const PIECES: u32 = 7;

/// Bits of the low digit and of the high one, of which there may be none, for an index of so many bits into so many tables, of which
/// so many groups of entries differ. What is proved decides.
pub(crate) fn sizes(bits: u32, columns: u64, groups: u64) -> [u32; 2] {
    proved(bits, columns, groups).1
}

/// How much is proved of an element while that is read, but 1 at least: so many times as few elements are read at a time as a gate takes.
pub(crate) fn width(bits: u32, columns: u64, groups: u64) -> usize {
    proved(bits, columns, groups).0.max(1) as usize
}

/// What is proved of an element by digits of which sizes: a bit made a number weighs two, and a product in an inner product three.
fn proved(bits: u32, columns: u64, groups: u64) -> (u64, [u32; 2]) {
    let (number, product) = (2, 3);
    let values = |bits: u32| (1u64 << bits) - 1;
    let one = (groups - 1 <= MOST).then_some((number * (groups - 1), [bits, 0]));
    let two = (1..=bits / 2).map(|high| {
        let low = bits - high;
        let cost = number * (values(low) + values(high)) + product * columns * values(high);
        // of two digits that cost the same, the more equal ones
        (cost, [low, high])
    });
    one.into_iter().chain(two).min().unwrap_or((0, [bits, 0]))
}

/// The same of a piecewise quadratic, with its two products of coefficients.
pub(crate) fn quadratic_width(bits: u32, groups: u64) -> usize {
    width(bits, 3, groups) + 6
}

/// The same of an exponential by so many pieces that differ, and by entries of `whole` bits.
pub(crate) fn exponential_width(whole: u32, [rows, pieces]: [u64; 2]) -> usize {
    quadratic_width(PIECES, pieces).max(width(whole, rows, 1 << whole))
}

impl Setting {
    /// Bits of numbers, and for each value of digits of them whether they have it.
    fn bits_of(&self, n: u64, bits: u32) -> Moves {
        self.digits(n, bits, |places| digits::levels(places).iter().map(|level| carries_of(level)).collect())
    }

    /// `columns` tables with so many groups of entries, read at n places whose bits are there.
    fn read(&self, n: u64, bits: u32, [columns, groups]: [u64; 2], to: u32) -> Moves {
        let [low, high] = sizes(bits, columns, groups);
        let numbers = match high {
            0 => groups - 1,
            _ => (1 << low) + (1 << high) - 2,
        };
        let rounds = |size: u32| digits::products(size).iter().map(Vec::len).collect::<Vec<usize>>();
        let (below, above) = (rounds(low), rounds(high));
        let ands = (0..below.len().max(above.len())).map(|round| {
            [&below, &above].iter().map(|rounds| rounds.get(round).copied().unwrap_or(0) as u64).sum()
        });
        let hot = self.ands(n, ands).then(self.numbers(numbers * n, to));
        match high {
            0 => hot,
            _ => hot.then(self.sums_of_products(columns * n, to, (1 << high) - 1)),
        }
    }

    /// Block after block of n, as they are looked up, of each of whose elements so much is proved.
    fn look_ups(&self, n: u64, width: usize, block: impl Fn(u64) -> Moves) -> Moves {
        let mut blocks = self.limits.over(width).blocks(n as usize).map(|range| block(range.len() as u64));
        let first = blocks.next().unwrap_or_default();
        blocks.fold(first, Moves::then_if_verified)
    }

    /// `columns` tables with so many groups of entries, read at n places of `bits` bits.
    pub fn tables(&self, n: u64, bits: u32, of: [u64; 2], to: u32) -> Moves {
        let width = width(bits, of[0], of[1]);
        self.look_ups(n, width, |n| self.bits_of(n, bits).then(self.read(n, bits, of, to)))
    }

    /// Coefficients by an index of `bits` bits, and their sum with powers of t.
    fn quadratic(&self, n: u64, bits: u32, groups: u64, to: u32) -> Moves {
        self.read(n, bits, [3, groups], to)
            .then(self.sums_of_products(n, to, 1))
            .then(self.sums_of_products(n, to, 2))
    }

    /// A piecewise quadratic by an index of `bits` bits, of pieces of which so many differ.
    pub fn piecewise(&self, n: u64, bits: u32, shift: u32, groups: u64, to: u32) -> Moves {
        match shift {
            0 => self.tables(n, bits, [1, groups], to),
            _ => self.look_ups(n, quadratic_width(bits, groups), |n| {
                self.carries(n, shift, bits.max(to))
                    .then(self.bits_of(n, bits))
                    .then(self.quadratic(n, bits, groups, to))
            }),
        }
    }

    /// Of numbers of `whole` and `frac` bits; so many bits of the first factor are dropped, and so many of its pieces differ.
    pub fn exponential(
        &self,
        n: u64,
        [whole, frac]: [u32; 2],
        dropped: u32,
        [rows, pieces]: [u64; 2],
    ) -> Moves {
        self.look_ups(n, exponential_width(whole, [rows, pieces]), |n| {
            self.carries(n, frac - PIECES, WORD)
                .then(self.bits_of(n, PIECES + whole))
                .then(self.quadratic(n, PIECES, pieces, WORD))
                .then(self.truncate(n, WORD, dropped))
                .then(self.extend_non_negative(n, WORD - dropped, WORD))
                .then(self.read(n, whole, [rows, 1 << whole], WORD))
                .then(self.sums_of_products(rows * n, WORD, 1))
        })
    }
}

/// ANDs of a level of carries.
fn carries_of(level: &[(usize, usize, bool)]) -> u64 {
    level.iter().map(|(_, _, hands_on)| 1 + u64::from(*hands_on)).sum()
}
