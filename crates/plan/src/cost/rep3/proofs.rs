//! What verification sends, from the numbers of statements alone (docs/rep3.md, section 6). Parties that verify take their
//! folds from here, so that what is declared is what is done.

use super::{SEED, Talk};

/// Bytes of remembered columns after which a run verifies before it goes on.
pub const LARGE_BYTES: u64 = 128 << 20;

/// Bytes of the columns of a batch of statements: two operands a term, and what the verifiers add.
pub fn batch_bytes(words: usize, terms: usize) -> u64 {
    8 * words as u64 * (2 * terms as u64 + 1)
}

/// Bytes of the columns of products with so many elements of both operands and the result.
pub fn product_bytes(first: usize, second: usize, result: usize) -> u64 {
    16 * (first as u64 + second as u64 + result as u64)
}

/// Whether matrix products of so many rows and columns are proved element by element, as sums of products. Rows and columns combined
/// leave an element of the extension ring for every place of the inner dimension, which pays where they are many.
pub fn by_element(rows: usize, depth: usize, columns: usize) -> bool {
    rows * columns <= 8 && depth > 0
}

/// The rings that statements are combined over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// GF(2^64), of 64 lanes of bits.
    Bits,
    /// The Galois ring of degree 64 over Z_2^64, of ring elements.
    Ring,
}

impl Extension {
    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Extension::Bits => 8,
            Extension::Ring => 8 * 64,
        }
    }

    /// Variables of the first fold of so many words: a group has 2 to the power of that.
    pub const fn first(self, words: usize) -> u32 {
        // values on the wire against items, which take many multiplications each
        match (self, words) {
            (_, 0) => 0,
            (Extension::Bits, _) => 6,
            (Extension::Ring, 1..256) => 2,
            (Extension::Ring, 256..8192) => 4,
            (Extension::Ring, _) => 6,
        }
    }

    /// Words and lanes: items of a term with so many words after the first fold. A word of bits is 64 statements, and the lanes
    /// become coefficients.
    const fn lanes(self) -> usize {
        match self {
            Extension::Bits => 64,
            Extension::Ring => 1,
        }
    }

    /// Variables of the second fold, of as many items as the first one made, in `first` variables.
    fn second(self, first: u32, items: usize) -> u32 {
        match (self, first) {
            (Extension::Bits, _) => 4,
            // long statements, whose sums a word at a time are cheaper the fewer there are side by side
            (Extension::Ring, 6) => 2,
            (Extension::Ring, _) => self.vars(items),
        }
    }

    /// Most variables of the last fold.
    const fn last(self) -> u32 {
        match self {
            Extension::Bits => 7,
            Extension::Ring => 4,
        }
    }

    /// Variables of the next fold of so many items.
    pub fn vars(self, items: usize) -> u32 {
        // rounds against values on the wire; in the larger ring a product of elements costs much more than a value where
        // there are many
        match (self, items) {
            (Extension::Bits, _) => 6,
            (Extension::Ring, 0..1024) => 4,
            (Extension::Ring, 1024..8192) => 3,
            (Extension::Ring, _) => 2,
        }
    }
}

/// What is stated about one prover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// Words and terms of every batch of statements about bits.
    pub bits: Vec<(usize, usize)>,
    /// Elements and terms of every batch of statements about ring elements, whatever their rings.
    pub ring: Vec<(usize, usize)>,
    /// The inner dimensions of all matrix products, added up (input channels times kernel of a convolution).
    pub depth: usize,
}

/// The public shape of a proof in one ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    extension: Extension,
    /// Variables of every fold; empty where there is nothing to prove.
    vars: Vec<u32>,
    of_words: usize,
}

impl Shape {
    /// Of batches with so many words and terms, and `more` items that join them after the folds of words: then as many folds
    /// as it takes to bring the items and one mask into one group.
    pub fn new(extension: Extension, batches: &[(usize, usize)], more: usize) -> Shape {
        let first = extension.first(batches.iter().map(|(words, _)| words).sum());
        let groups = |vars: u32| -> usize {
            batches.iter().map(|(words, terms)| words.div_ceil(1 << vars) * terms).sum()
        };
        let mut items = groups(first) * extension.lanes();
        let mut vars = vec![first];
        if items > 0 {
            let second = extension.second(first, items);
            vars.push(second);
            // lanes of a word, or words of one column
            items = match extension {
                Extension::Bits => items >> second,
                Extension::Ring => groups(first + second),
            };
        }
        let of_words = vars.len();
        items += more;
        if items == 0 {
            return Shape { extension, vars: vec![], of_words: 0 };
        }
        while items >= 1 << extension.last() {
            vars.push(extension.vars(items));
            items = items.div_ceil(1 << extension.vars(items));
        }
        vars.push((items + 1).next_power_of_two().ilog2());
        Shape { extension, vars, of_words }
    }

    /// How many folds are of words: two, but where there are no words one of nothing.
    pub fn of_words(&self) -> usize {
        self.of_words
    }

    /// Folds.
    pub fn folds(&self) -> usize {
        self.vars.len()
    }

    /// Variables of fold `k` (from 0); none after the last.
    pub fn vars(&self, k: usize) -> u32 {
        self.vars.get(k).copied().unwrap_or(0)
    }

    /// Whether fold `k` is the last.
    pub fn is_last(&self, k: usize) -> bool {
        k + 1 == self.vars.len()
    }

    /// Bytes of the prover's message `k`: every value but the first, which follows from the claim.
    pub fn message_bytes(&self, k: usize) -> usize {
        self.vars.get(k).map_or(0, |&v| (3usize.pow(v) - 1) * self.extension.bytes())
    }

    /// Bytes of what a verifier tells the other at the end: its operand and its share of the claim.
    pub fn final_bytes(&self) -> usize {
        if self.vars.is_empty() { 0 } else { 2 * self.extension.bytes() }
    }
}

/// The shapes of one prover's proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// Of statements about bits.
    pub bits: Shape,
    /// Of statements about ring elements.
    pub ring: Shape,
}

impl Shapes {
    /// Of the proofs of these statements.
    pub fn of(stated: &Stated) -> Shapes {
        // a product states two inner products
        let ring = Shape::new(Extension::Ring, &stated.ring, 2 * stated.depth);
        Shapes { bits: Shape::new(Extension::Bits, &stated.bits, 0), ring }
    }

    /// Folds of the longer one.
    pub fn folds(&self) -> usize {
        self.bits.folds().max(self.ring.folds())
    }

    /// Bytes of the prover's message `k`.
    pub fn message_bytes(&self, k: usize) -> usize {
        self.bits.message_bytes(k) + self.ring.message_bytes(k)
    }

    /// Bytes of a verifier's last values.
    pub fn final_bytes(&self) -> usize {
        self.bits.final_bytes() + self.ring.final_bytes()
    }

    /// Challenges of fold `k`, which both algebras use.
    pub fn challenges(&self, k: usize) -> usize {
        self.bits.vars(k).max(self.ring.vars(k)) as usize
    }

    /// Bytes of the challenges that follow message `k`: none after the last.
    pub fn challenge_bytes(&self, k: usize) -> usize {
        if k + 1 >= self.folds() { 0 } else { 8 * self.challenges(k) }
    }
}

/// The folds that have messages when all three prove at once. Where there are nothing but products, the fold of words is
/// one of nothing and is left out.
pub fn folds(shapes: &[Shapes; 3]) -> std::ops::Range<usize> {
    let folds = shapes.iter().map(Shapes::folds).max().unwrap_or(0);
    let silent = shapes.iter().all(|s| s.message_bytes(0) == 0);
    usize::from(silent && folds > 0)..folds
}

/// What one verification of these statements costs; `stated[i]` are those about party i. Nothing where nothing is stated.
pub fn verification(stated: &[Stated; 3]) -> Talk {
    let shapes = stated.each_ref().map(Shapes::of);
    let folds = folds(&shapes);
    if folds.is_empty() {
        return Talk::default();
    }
    let sent = [0, 1, 2].map(|id| {
        let [own, ahead, behind] = [0, 1, 2].map(|i| &shapes[(id + i) % 3]);
        let messages: usize = folds.clone().map(|k| own.message_bytes(k)).sum();
        let checked = [ahead, behind].map(|s| {
            let challenges: usize = (0..s.folds()).map(|k| s.challenge_bytes(k)).sum();
            challenges + s.final_bytes()
        });
        // here and a verdict, to both; a byte with every challenge, and one before the last values
        let signals = 4 + (folds.len() - 1) + 1;
        (messages + checked.iter().sum::<usize>() + signals) as u64 + 2 * SEED
    });
    Talk { sent, rounds: 2 * folds.len() as u64 + 4 }
}
