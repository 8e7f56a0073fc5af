//! Comparison by chunks: XOR shares of `1{x < r}` (or `1{x = r}`) for a public x and a dealt r, from small tables and
//! products of masks, in bit planes. Whoever runs the protocol has its page in `docs`, "Comparison by chunks", with the proof.
//!
//! Kernels here know neither how many parties share a bit nor where its shares come from: each works on one party's shares,
//! and `leads` says which one party adds public constants. [`spec`] is the plain definition of one comparison, [`cpu`]
//! computes on planes.
//!
//! *Planes.* A buffer of P planes for n comparisons has `P * n.div_ceil(64)` words, in blocks of [`BLOCK`] comparisons: in a
//! block plane after plane, comparison i of the block at bit `i % 64` of word `i / 64`. The last block has as few words a
//! plane as it needs, so cutting a buffer at a multiple of [`BLOCK`] leaves two valid ones.

pub mod cpu;
pub mod spec;

/// Comparisons to a block: a plane of a block is one register of 512 bits.
pub const BLOCK: usize = 512;
/// Words of a plane in a whole block.
pub const SIDE: usize = BLOCK / 64;

/// Words of `planes` planes for `count` comparisons.
pub const fn words(planes: usize, count: usize) -> usize {
    planes * count.div_ceil(64)
}

/// How a comparison is cut into chunks and put together again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Bits of each chunk, from the top.
    pub sizes: Vec<u32>,
    /// What is done after the tables are read, each level after an opening.
    pub levels: Vec<Level>,
    /// `1{x = r}` is computed instead of `1{x < r}`.
    pub equal: bool,
}

impl Chunks {
    /// `bits` bits (1 to 64) in chunks of at most `width` bits (1 to 8), at most `fan` (2 to 9) combined at once; chunks
    /// and groups are as even as can be.
    pub fn new(bits: u32, width: u32, fan: u32, equal: bool) -> Chunks {
        assert!((1..=64).contains(&bits), "a comparison has 1 to 64 bits, not {bits}");
        assert!(
            (1..=8).contains(&width) && (2..=9).contains(&fan),
            "no chunks of {width} bits, {fan} at a time"
        );
        let sizes = even(bits, width);
        let (mut levels, mut items) = (Vec::new(), sizes.len());
        while items > 1 {
            let groups: Vec<usize> = even(items as u32, fan).into_iter().map(|g| g as usize).collect();
            items = groups.len();
            levels.push(Level { groups, equal });
        }
        Chunks { sizes, levels, equal }
    }

    /// Bits compared.
    pub fn bits(&self) -> u32 {
        self.sizes.iter().sum()
    }

    /// Dealt planes of the chunks' tables: of each chunk of r the unary code, `1{v < chunk}` for all v but the largest.
    pub fn tables(&self) -> usize {
        self.sizes.iter().map(|s| (1 << s) - 1).sum()
    }

    /// Planes that reading the tables gives: [`Level::opened`] of the first level, or the result's one.
    pub fn leaves(&self) -> usize {
        items(self.sizes.len(), self.equal)
    }

    /// Operations on planes of one party's evaluation.
    pub fn work(&self) -> usize {
        // a table of s bits is read by 2^s + s - 2 choices
        let leaves: usize = self.sizes.iter().map(|s| (1 << s) + *s as usize - 1).sum();
        leaves + self.levels.iter().map(Level::work).sum::<usize>()
    }
}

/// One level: neighbours combined, group by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Items of each group, from the top.
    pub groups: Vec<usize>,
    equal: bool,
}

impl Level {
    /// Planes that are opened, each under a mask: of every item its `lt` and its `eq`; the lowest has no `eq`. For
    /// equality `eq` alone.
    pub fn opened(&self) -> usize {
        items(self.groups.iter().sum(), self.equal)
    }

    /// Planes of dealt products of these masks.
    pub fn products(&self) -> usize {
        self.each().map(|g| g.products()).sum()
    }

    /// Planes of the result: the next level's items.
    pub fn results(&self) -> usize {
        items(self.groups.len(), self.equal)
    }

    /// Whether equality is computed.
    pub fn is_equal(&self) -> bool {
        self.equal
    }

    fn work(&self) -> usize {
        self.each().map(|g| if self.equal { 1 << g.size } else { 4 << g.size } - g.last as usize).sum()
    }

    /// The groups from the top.
    fn each(&self) -> impl Iterator<Item = Group> + '_ {
        let count = self.groups.len();
        let mut first = 0;
        self.groups.iter().enumerate().map(move |(i, &size)| {
            let group = Group { size, first, last: i + 1 == count, equal: self.equal };
            first += if self.equal { size } else { 2 * size };
            group
        })
    }
}

/// A group of items; `a_j` masks the `eq` of item j, `b_j` its `lt`.
#[derive(Clone, Copy)]
struct Group {
    size: usize,
    /// The first plane of its items.
    first: usize,
    /// It has the lowest item.
    last: bool,
    equal: bool,
}

impl Group {
    /// Items that have an `eq`: the variables of the products.
    fn variables(&self) -> usize {
        if self.last && !self.equal { self.size - 1 } else { self.size }
    }

    /// The plane of `lt` of item j.
    fn lt(&self, j: usize) -> usize {
        self.first + 2 * j
    }

    /// The plane of `eq` of item j.
    fn eq(&self, j: usize) -> usize {
        if self.equal { self.first + j } else { self.first + 2 * j + 1 }
    }

    /// Products of two and more `a`; then for every item, from the last, its `b` with every choice of earlier `a`.
    fn products(&self) -> usize {
        let (v, g) = (self.variables(), self.size);
        let alone = (1 << v) - 1 - v;
        if self.equal { alone } else { alone + (1 << g) - 1 - g }
    }
}

/// Planes of so many items.
fn items(count: usize, equal: bool) -> usize {
    if equal { count } else { 2 * count - 1 }
}

/// `total` cut into as few parts of at most `most` as there can be, as even as can be, the larger ones last.
fn even(total: u32, most: u32) -> Vec<u32> {
    let parts = total.div_ceil(most);
    (0..parts).map(|i| (total + i) / parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_items_are_cut_evenly() {
        assert_eq!(even(24, 7), [6; 4]);
        assert_eq!(even(5, 4), [2, 3]);
        assert_eq!(even(1, 8), [1]);
        for total in 1..=64 {
            for most in 1..=9 {
                let parts = even(total, most);
                assert_eq!(parts.iter().sum::<u32>(), total);
                assert!(
                    parts.is_sorted()
                        && *parts.last().unwrap() <= most
                        && parts[0] + 1 >= *parts.last().unwrap()
                );
            }
        }
    }

    /// 63 bits by 4 and 4, as the reference counts them.
    #[test]
    fn counts_by_hand() {
        let chunks = Chunks::new(63, 4, 4, false);
        assert_eq!((chunks.tables(), chunks.leaves(), chunks.levels.len()), (15 * 15 + 7, 31, 2));
        let counts: Vec<_> = chunks.levels.iter().map(|l| (l.opened(), l.products(), l.results())).collect();
        assert_eq!(counts, [(31, 3 * 22 + 15, 7), (7, 15, 1)]);
        let equal = Chunks::new(8, 2, 4, true);
        assert_eq!((equal.tables(), equal.leaves(), equal.levels[0].products()), (12, 4, 11));
        assert!(Chunks::new(8, 8, 2, false).levels.is_empty());
    }
}
