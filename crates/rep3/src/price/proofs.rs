//! What verification sends, from the numbers of statements alone (docs/rep3.md, section 6). Parties that verify take their
//! folds from here, so that what is declared is what is done.

use super::{SEED, Talk};
use privet_family::Products;
use privet_kernels::LinearShape;

/// Bytes of the columns of a batch of statements: two factors a term, and what the verifiers add.
pub fn batch_bytes(words: usize, terms: usize) -> u64 {
    8 * words as u64 * (2 * terms as u64 + 1)
}

/// Whether a number of so many bits has a word of its own in statements about numbers. Shorter ones share words, from three to a word on:
/// eight such words leave one element of GF(2^64) to be folded, words of bits as many as they are.
pub const fn alone(bits: u32) -> bool {
    64 / bits < 3
}

/// Bytes of the columns of a batch of statements about numbers that have words of their own: a number and a bit a term.
pub fn numbers_bytes(numbers: usize, terms: usize) -> u64 {
    8 * (numbers as u64 * (terms as u64 + 1) + (numbers.div_ceil(64) * terms) as u64)
}

/// Bytes of the columns of products with so many elements of both operands and the result.
pub fn product_bytes(first: usize, second: usize, result: usize) -> u64 {
    16 * (first as u64 + second as u64 + result as u64)
}

/// Bytes of the columns of products with tags, with so many elements of the first operand and the result.
pub fn tagged_bytes(first: usize, result: usize) -> u64 {
    16 * (first as u64 + result as u64)
}

/// Making tags of these products' second operands as a matrix product: of the bits of the columns' coefficients with weights as they lie.
pub fn making_tags(products: &Products) -> Products {
    let bits = Extension::Ring.random_bits() as usize;
    let (shape, groups) = match products.shape {
        LinearShape::MatMulT { k, n, .. } => (LinearShape::MatMul { m: bits, k: n, n: k }, 1),
        LinearShape::MatMul { k, n, .. } => (LinearShape::MatMulT { m: k, k: n, n: bits }, 1),
        LinearShape::Conv2d(c) => {
            let (channels, places) = (c.out_channels / c.groups, depth(products.shape) / c.groups);
            (LinearShape::MatMul { m: bits, k: channels, n: places }, c.groups)
        }
    };
    Products { shape, count: products.count * groups }
}

/// Whether a layer with tags has so few rows that each is multiplied with the tag. More of them take longer than combining them, and one product of elements
/// for each place.
pub fn few_rows(shape: LinearShape) -> bool {
    match shape {
        LinearShape::MatMulT { m, .. } | LinearShape::MatMul { m, .. } => m <= 32,
        LinearShape::Conv2d(_) => false,
    }
}

/// The terms of an element where matrix products are proved element by element, as sums of products; else none. Rows and columns
/// combined leave an element of the extension ring for every place of the inner dimension, which pays where they are many.
pub fn by_element(shape: LinearShape) -> Option<usize> {
    match shape {
        LinearShape::MatMulT { m, k, n } | LinearShape::MatMul { m, k, n } => {
            (m * n <= 8 && k > 0).then_some(k)
        }
        LinearShape::Conv2d(_) => None,
    }
}

/// The inner dimension of one product, all groups of a convolution together.
pub fn depth(shape: LinearShape) -> usize {
    match shape {
        LinearShape::MatMulT { k, .. } | LinearShape::MatMul { k, .. } => k,
        LinearShape::Conv2d(c) => c.in_channels * c.kernel[0] * c.kernel[1],
    }
}

/// What statements are combined over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// GF(2^64), of 64 lanes of bits.
    Bits,
    /// Two Galois rings of degree 32 over Z_2^64 side by side, of ring elements.
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

    /// The first bits of an element, from which random coefficients of statements are drawn. Of both Galois rings they are 24 coefficients each: a
    /// word times such an element takes three quarters of the time that it takes with all 32, and 2^-44 is left of the error (docs/rep3.md, section 6).
    pub const fn random_bits(self) -> u32 {
        match self {
            Extension::Bits => 64,
            Extension::Ring => 48,
        }
    }

    /// 1, as an element of the exceptional set by its bits: of two rings it is 1 in each.
    pub const fn one(self) -> u64 {
        match self {
            Extension::Bits => 1,
            Extension::Ring => 0b11,
        }
    }
}

/// Variables of the two folds of words of bits: a group of the first has 2 to the power of that many words, one of the second as
/// many lanes.
pub const OF_BITS: [u32; 2] = [6, 4];

/// The same for ring elements, of so many words in all batches; `items` says how many are left after a first fold of so many variables.
fn of_ring(words: usize, items: impl Fn(u32) -> usize) -> [u32; 2] {
    // values on the wire against items, which take many multiplications each
    let first = match words {
        0..256 => 2,
        256..8192 => 4,
        _ => 6,
    };
    let second = match (first, items(first)) {
        // long statements, whose sums a word at a time are cheaper the fewer there are side by side
        (6, _) => 2,
        (_, 0..1024) => 4,
        (_, 1024..8192) => 3,
        _ => 2,
    };
    [first, second]
}

/// How items are brought to those that are opened: variables of every fold, and the groups that the last one leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    vars: Vec<u32>,
    opened: usize,
}

/// Items of a group of the last fold: its last place is a mask's.
pub const fn room(vars: u32) -> usize {
    (1 << vars) - 1
}

/// Groups of so many items in a last fold, each with a mask.
fn last_groups(items: usize, vars: u32) -> usize {
    items.div_ceil(room(vars)).max(1)
}

/// The one fold of so many elements of GF(2^64). Devices have kernels for 4 and for 6 variables: the more of them, the more products and the
/// fewer elements are opened. These take 16 bytes each, which less than a further fold's rounds are worth.
fn at_once(items: usize) -> Way {
    let vars = match items {
        0..16 => group_of(items + 1),
        16..65_536 => 4,
        _ => 6,
    };
    Way { vars: vec![vars], opened: last_groups(items, vars) }
}

/// Statements in a word of bits, whose lanes become coefficients.
const LANES: usize = 64;

/// Items that the first fold leaves of as many numbers as a group has words.
pub const NUMBERS: usize = 8;

/// Groups of 2^vars words, of all terms.
fn groups(batches: &[(usize, usize)], vars: u32) -> usize {
    batches.iter().map(|(words, terms)| words.div_ceil(1 << vars) * terms).sum()
}

/// Variables of a group of so many items.
fn group_of(items: usize) -> u32 {
    items.next_power_of_two().ilog2()
}

/// What a value on the wire, a pair of factors that are opened and a fold with rounds of its own are worth, in products of elements of the
/// larger ring.
const VALUE: usize = 16;
const OPENED: usize = 48;
const FOLD: usize = 4096;

/// Most variables of a fold in the larger ring.
const MOST: u32 = 4;

/// The folds of elements of the larger ring, with a mask in every group of the last one, that cost least: the fewer variables the first ones
/// have, the fewer products there are, and the more folds. `left` says how many items there are when so many variables are folded;
/// `free` folds take no rounds of their own, as another proof takes as many.
fn cheapest(left: impl Fn(u32) -> usize, free: usize) -> Way {
    let all = group_of(left(0) + 1) as usize;
    // the value that follows from the claim is not computed
    let cost = |vars: u32, groups: usize| (3usize.pow(vars) - 1) * (groups + VALUE);
    let least = |of: &dyn Fn(u32) -> usize| {
        (1..=MOST).map(|vars| (of(vars), vars)).min_by_key(|(cost, _)| *cost).expect("some variables")
    };
    // by how many folds are left and by the variables of those before: what they cost, and the next one's variables
    let mut best: Vec<Vec<(usize, u32)>> = Vec::with_capacity(all);
    for _ in 0..all {
        let of = |before: u32| match best.last() {
            None => least(&|vars| {
                let opened = last_groups(left(before), vars);
                cost(vars, opened) + OPENED * opened
            }),
            Some(others) => least(&|vars| {
                let after = before + vars;
                cost(vars, left(after)) + others[(after as usize).min(all)].0
            }),
        };
        let of_all = (0..=all as u32).map(of).collect();
        best.push(of_all);
    }
    let in_all = |folds: &usize| best[folds - 1][0].0 + FOLD * folds.saturating_sub(free.max(1));
    let folds = (1..=all).min_by_key(in_all).expect("a fold");
    let (mut before, mut vars, mut opened) = (0, Vec::with_capacity(folds), 0);
    for of_all in best[..folds].iter().rev() {
        let (_, next) = of_all[(before as usize).min(all)];
        opened = last_groups(left(before), next);
        vars.push(next);
        before += next;
    }
    Way { vars, opened }
}

/// What is stated about one prover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// Words and terms of every batch of statements about bits.
    pub bits: Vec<(usize, usize)>,
    /// Numbers and terms of every batch of statements about numbers that have words of their own.
    pub numbers: Vec<(usize, usize)>,
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
    /// Groups of the last fold, whose factors are opened.
    opened: usize,
}

impl Shape {
    fn new(extension: Extension, of_words: &[u32], items: Way) -> Shape {
        let vars = [of_words, &items.vars].concat();
        Shape { extension, vars, of_words: of_words.len(), opened: items.opened }
    }

    /// Of nothing.
    fn empty(extension: Extension) -> Shape {
        Shape { extension, vars: vec![], of_words: 0, opened: 0 }
    }

    /// Of what is stated about bits and numbers: two folds of words, and one of items, with a mask in every group. A group of words of bits
    /// leaves an item for every lane, as many numbers eight.
    fn bits(stated: &Stated) -> Shape {
        let [first, second] = OF_BITS;
        match LANES * groups(&stated.bits, first) + NUMBERS * groups(&stated.numbers, first) {
            0 => Shape::empty(Extension::Bits),
            items => Shape::new(Extension::Bits, &OF_BITS, at_once(items.div_ceil(1 << second))),
        }
    }

    /// Of what is stated about ring elements; the products' items join after the folds of words, where there are any. `free` folds
    /// take no rounds of their own.
    fn ring(stated: &Stated, free: usize) -> Shape {
        let words = stated.ring.iter().map(|(words, _)| words).sum();
        if words > 0 {
            let of_words = of_ring(words, |vars| groups(&stated.ring, vars));
            let items = groups(&stated.ring, of_words.iter().sum()) + stated.depth;
            let others = cheapest(|vars| items.div_ceil(1 << vars), free.saturating_sub(2));
            return Shape::new(Extension::Ring, &of_words, others);
        }
        match stated.depth {
            0 => Shape::empty(Extension::Ring),
            depth => Shape::new(Extension::Ring, &[], cheapest(|vars| depth.div_ceil(1 << vars), free)),
        }
    }

    /// How many folds are of words: two, where there are words.
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

    /// Groups of the last fold, whose factors the verifiers open to each other.
    pub fn opened(&self) -> usize {
        self.opened
    }

    /// Bytes of what a verifier tells the other at the end: its summands of both factors of every group and its share of the claim.
    pub fn final_bytes(&self) -> usize {
        if self.vars.is_empty() { 0 } else { (2 * self.opened + 1) * self.extension.bytes() }
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
    /// Of the proofs of these statements, those about each party. Where nothing but products is stated about rings, all have the same
    /// folds of their items.
    pub fn of(stated: &[Stated; 3]) -> [Shapes; 3] {
        let bits = stated.each_ref().map(Shape::bits);
        let free = bits.iter().map(Shape::folds).max().unwrap_or(0);
        let mut bits = bits.into_iter();
        stated.each_ref().map(|stated| Shapes {
            bits: bits.next().unwrap_or_else(|| unreachable!("three")),
            ring: Shape::ring(stated, free),
        })
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

    /// Bytes of the challenges before message `k`, which are of the fold before: none before the first, nor after the last.
    pub fn challenge_bytes(&self, k: usize) -> usize {
        if k == 0 || k >= self.folds() { 0 } else { 8 * self.challenges(k - 1) }
    }
}

/// The folds when all three prove at once.
pub fn folds(shapes: &[Shapes; 3]) -> usize {
    shapes.iter().map(Shapes::folds).max().unwrap_or(0)
}

/// What one verification of these statements costs; `stated[i]` are those about party i. With results of layers that have tags their difference is
/// compared: two elements to the party before. `seeds` were told before it begins, which is counted here. Nothing where nothing is stated.
pub fn verification(stated: &[Stated; 3], tagged: bool, seeds: u64) -> Talk {
    let shapes = Shapes::of(stated);
    let folds = folds(&shapes).max(usize::from(tagged));
    if folds == 0 {
        return Talk::default();
    }
    let difference = if tagged { 2 * Extension::Ring.bytes() } else { 0 };
    let sent = [0, 1, 2].map(|id| {
        let [own, ahead, behind] = [0, 1, 2].map(|i| &shapes[(id + i) % 3]);
        let messages: usize = (0..folds).map(|k| own.message_bytes(k)).sum();
        // to the provers that it checks, and what it was told itself, to who checks it
        let challenges: usize = [own, ahead, behind]
            .iter()
            .map(|s| (0..folds).map(|k| s.challenge_bytes(k)).sum::<usize>())
            .sum();
        // a byte with every challenge, and a verdict to both
        let signals = (folds - 1) + 2;
        let last = ahead.final_bytes() + behind.final_bytes();
        // halves of seeds: one to each of two provers, then the other one, and what it was told itself
        (messages + challenges + signals + last + difference) as u64 + 6 * SEED * (1 + seeds)
    });
    Talk { sent, rounds: 2 * folds as u64 + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn products(depth: usize, free: usize) -> Shape {
        Shape::ring(&Stated { depth, ..Stated::default() }, free)
    }

    #[test]
    fn the_last_groups_take_what_is_left_of_any_products() {
        for depth in (1..70).chain([127, 128, 129, 1039, 1040, 1041, 4608, 100_000, 1 << 24]) {
            for free in 0..8 {
                let Shape { vars, opened, .. } = products(depth, free);
                assert!(vars.iter().all(|vars| (1..=MOST).contains(vars)), "{depth}: {vars:?}");
                let (last, others) = vars.split_last().expect("a fold");
                let items = others.iter().fold(depth, |items, vars| items.div_ceil(1 << vars));
                // each with a mask, and none of masks alone
                assert!(items <= opened * room(*last), "{depth}, {free} folds are free: {vars:?}, {opened}");
                assert!(
                    items > (opened - 1) * room(*last),
                    "{depth}, {free} folds are free: {vars:?}, {opened}"
                );
            }
        }
    }

    /// The same of items that bits leave: one fold, whatever there is.
    #[test]
    fn one_fold_takes_what_bits_leave() {
        for items in (1..70).chain([255, 256, 65_535, 65_536, 1 << 20]) {
            let Way { vars, opened } = at_once(items);
            let [vars] = vars[..] else { panic!("{items}: {vars:?}") };
            assert!((1..=6).contains(&vars) && (items < 16 || vars % 2 == 0), "{items}: {vars}");
            assert!(items <= opened * room(vars) && items > (opened - 1) * room(vars), "{items}: {opened}");
        }
    }

    /// A fold that takes no rounds is taken where it saves products; one that does, only where it saves many.
    #[test]
    fn folds_are_as_many_as_pay() {
        let products_of = |depth: usize, free| {
            let shape = products(depth, free);
            let (mut groups, mut sum) = (depth, OPENED * shape.opened);
            for vars in shape.vars {
                groups = groups.div_ceil(1 << vars);
                sum += (3usize.pow(vars) - 1) * groups;
            }
            sum
        };
        assert!([3, 4, 5].map(|free| products_of(2080, free)).is_sorted_by(|more, less| more >= less));
        assert!(products_of(2080, 3) < products_of(2080, 1));
        assert!(products(2080, 1).folds() <= 2, "a fifth is not worth its rounds");
        assert!([0, 1].iter().all(|free| products(3, *free).folds() == 1));
        assert!(products(1 << 20, 3).folds() > 3, "a million products are worth a round");
        assert_eq!(products(0, 5).folds(), 0);
    }
}
