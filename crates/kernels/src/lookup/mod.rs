//! Public tables read at a secret place: additive shares of a few words that stand at one dealt point of a small domain,
//! and of zeros elsewhere, over the whole domain; sums of them with a public table give shares of what a table holds at the
//! difference of a public point and the dealt one.
//!
//! The tree is the half-tree of [`crate::compare`] down to leaves of two points each; a leaf's words come from as many
//! hashes, one hash a word, whose halves are the word at both points. They are corrected as in Boyle, Gilboa, Ishai (CCS 2016,
//! section 3.2). [`spec`] is the plain definition of one key, [`cpu`] evaluates and deals batches. Argument: docs/fss.md.

pub mod cpu;
pub mod spec;

/// A batch of keys over one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupShape {
    /// n, bits of the domain; 1 to 16.
    pub bits: u32,
    /// Words that stand at the dealt point.
    pub words: usize,
    /// Keys in the batch.
    pub count: usize,
}

/// Points to a leaf.
pub const LEAF_POINTS: usize = 2;

impl LookupShape {
    /// Tree levels above the leaves.
    pub const fn depth(&self) -> usize {
        self.bits as usize - 1
    }

    /// Points of the domain.
    pub const fn points(&self) -> usize {
        1 << self.bits
    }

    /// Words of a leaf.
    pub const fn leaf_words(&self) -> usize {
        self.words * LEAF_POINTS
    }

    /// Hashes of a leaf: one a word, for both points.
    pub const fn leaf_blocks(&self) -> usize {
        self.words
    }

    /// Bytes of one key: a root seed and a correction word of 16 bytes a level, and 8 bytes a word of a leaf, word after word,
    /// each for both points; all little endian, key after key.
    pub const fn key_row(&self) -> usize {
        16 * (1 + self.depth()) + 8 * self.leaf_words()
    }

    /// Bytes of one party's keys.
    pub const fn key_bytes(&self) -> usize {
        self.key_row() * self.count
    }

    /// AES calls of one party's evaluation: one for every inner node and as many for a leaf as its words need.
    pub const fn aes_calls(&self) -> usize {
        let leaves = self.points() / LEAF_POINTS;
        (leaves - 1 + leaves * self.leaf_blocks()) * self.count
    }
}

/// What is read, each of it as long as the domain.
#[derive(Clone, Copy, Debug)]
pub enum Read<'a> {
    /// Tables, for keys of one word: `tables[i][point - alpha]` times that word, at `out[i * count + key]`.
    Tables(&'a [Vec<i64>]),
    /// Quadratics `c0 + c1 t + c2 t^2` with `t = low - r`, for keys of the words 1, r and r^2; coefficients by
    /// `point - alpha`, and the public numbers `low` of every key.
    Quadratics(&'a [[i64; 3]], &'a [u64]),
}

impl Read<'_> {
    /// Words of a key that is read so.
    pub fn words(&self) -> usize {
        match self {
            Read::Tables(_) => 1,
            Read::Quadratics(..) => 3,
        }
    }

    /// Multiplications a key and point.
    pub fn products(&self) -> usize {
        match self {
            Read::Tables(tables) => tables.len(),
            Read::Quadratics(..) => 6,
        }
    }

    /// Results a key.
    pub fn results(&self) -> usize {
        match self {
            Read::Tables(tables) => tables.len(),
            Read::Quadratics(..) => 1,
        }
    }
}
