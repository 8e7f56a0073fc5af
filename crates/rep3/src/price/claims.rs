//! What is stated about the three parties' messages, as far as the price of proving it goes: how many statements, of how many terms.

use super::Talk;
use super::proofs::{self, Extension, Stated};

/// The statements of some moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// About each party.
    pub stated: [Stated; 3],
    /// Whether there are results of layers with tags.
    pub tagged: bool,
    /// Whether some of them wait for coefficients ahead of the verification.
    pub waits: bool,
    /// Seeds that were told ahead.
    pub seeds: u64,
    /// Bytes of all columns, which every party remembers until they are verified.
    pub bytes: u64,
    /// Of these, those of ring elements; of a matrix product, an item of the extension ring for each place of its inner dimension.
    pub ring_bytes: u64,
}

impl Claims {
    /// A batch of `words[j]` words of statements about each party j; nothing where there are no words.
    pub(super) fn batch(&mut self, extension: Extension, words: [u64; 3], terms: usize) {
        for (stated, words) in self.stated.iter_mut().zip(words) {
            if words > 0 {
                let batches = match extension {
                    Extension::Bits => &mut stated.bits,
                    Extension::Ring => &mut stated.ring,
                };
                batches.push((words as usize, terms));
                let bytes = proofs::batch_bytes(words as usize, terms);
                self.bytes += bytes;
                self.ring_bytes += if extension == Extension::Ring { bytes } else { 0 };
            }
        }
    }

    /// A batch of statements about `elements[j]` numbers of so many bits of each party j.
    pub(super) fn numbers(&mut self, elements: [u64; 3], bits: u32, terms: usize) {
        if !proofs::alone(bits) {
            let together = 64 / bits as u64;
            return self.batch(Extension::Bits, elements.map(|n| n.div_ceil(together)), terms);
        }
        for (stated, n) in self.stated.iter_mut().zip(elements.map(|n| n as usize)) {
            if n > 0 {
                stated.numbers.push((n, terms));
                self.bytes += proofs::numbers_bytes(n, terms);
            }
        }
    }

    /// Matrix products of inner dimension `depth` in all, with so many elements of both operands and the result.
    pub(super) fn products(&mut self, depth: usize, [first, second, result]: [usize; 3]) {
        self.bytes += proofs::product_bytes(first, second, result);
        if result > 0 {
            self.stated.iter_mut().for_each(|stated| stated.depth += depth);
            self.ring_bytes += (depth * Extension::Ring.bytes()) as u64;
        }
    }

    /// Products of layers with tags, with so many elements of the first operand and the result: items for `places` of the inner dimensions
    /// and columns are made of them, `ahead` of the verification or not.
    pub(super) fn tagged(&mut self, places: usize, [first, result]: [usize; 2], ahead: bool) {
        self.bytes += proofs::tagged_bytes(first, result);
        if result > 0 {
            self.tagged = true;
            self.waits |= ahead;
            self.ring_bytes += (places * Extension::Ring.bytes()) as u64;
        }
    }

    /// Join others.
    pub(super) fn add(&mut self, other: Claims) {
        for (stated, other) in self.stated.iter_mut().zip(other.stated) {
            stated.bits.extend(other.bits);
            stated.numbers.extend(other.numbers);
            stated.ring.extend(other.ring);
            stated.depth += other.depth;
        }
        self.tagged |= other.tagged;
        self.waits |= other.waits;
        self.seeds += other.seeds;
        self.bytes += other.bytes;
        self.ring_bytes += other.ring_bytes;
    }

    /// What verifying them costs.
    pub fn verification(&self) -> Talk {
        proofs::verification(&self.stated, self.tagged, self.seeds)
    }

    /// Another round of the protocol begins, with seeds for what waits for them.
    pub(super) fn told_ahead(&mut self) {
        self.seeds += u64::from(std::mem::take(&mut self.waits));
    }
}

/// What a gate, or some of its moves, sends, has to prove, and multiplies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    /// What is sent.
    pub talk: Talk,
    /// Products of elements.
    pub macs: u64,
    /// In pieces: between two of them the parties verify, if they have stated much.
    pub pieces: Vec<Piece>,
}

/// What lies between two places at which the parties may verify.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub rounds: u64,
    /// What is stated.
    pub claims: Claims,
}

impl Moves {
    /// A reshare of `elements` elements of `bits` bits, about which nothing is stated yet.
    pub fn reshare(elements: u64, bits: u32) -> Moves {
        Talk::reshare(elements, bits).into()
    }

    /// One after the other.
    pub fn then(self, other: Moves) -> Moves {
        let talk = self.talk.then(other.talk);
        self.joined(other, talk, |a, b| a + b)
    }

    /// In the same rounds.
    pub fn and_also(self, other: Moves) -> Moves {
        let talk = self.talk.and_also(other.talk);
        self.joined(other, talk, u64::max)
    }

    /// [`Moves::then`], with what was stated so far verified in between if it is much.
    pub fn then_if_verified(mut self, other: Moves) -> Moves {
        self.pieces.push(Piece::default());
        self.then(other)
    }

    /// The first of the others' pieces comes to the last of these.
    fn joined(mut self, other: Moves, talk: Talk, rounds: fn(u64, u64) -> u64) -> Moves {
        let mut others = other.pieces.into_iter();
        if let Some(first) = others.next() {
            let last = self.last();
            last.rounds = rounds(last.rounds, first.rounds);
            last.claims.add(first.claims);
        }
        self.pieces.extend(others);
        Moves { talk, macs: self.macs + other.macs, pieces: self.pieces }
    }

    fn last(&mut self) -> &mut Piece {
        if self.pieces.is_empty() {
            self.pieces.push(Piece::default());
        }
        self.pieces.last_mut().unwrap_or_else(|| unreachable!("there is one"))
    }

    /// With a batch of statements about it.
    pub fn stating(mut self, extension: Extension, words: [u64; 3], terms: usize) -> Moves {
        self.last().claims.batch(extension, words, terms);
        self
    }

    /// With a batch of statements about numbers of so many bits.
    pub fn stating_numbers(mut self, elements: [u64; 3], bits: u32, terms: usize) -> Moves {
        self.last().claims.numbers(elements, bits, terms);
        self
    }

    /// With matrix products of inner dimension `depth` in all, with so many elements of both operands and the result.
    pub fn stating_products(mut self, depth: usize, elements: [usize; 3]) -> Moves {
        self.last().claims.products(depth, elements);
        self
    }

    /// With products of layers with tags, combined `ahead` of the verification or not.
    pub fn stating_tagged(mut self, places: usize, elements: [usize; 2], ahead: bool) -> Moves {
        self.last().claims.tagged(places, elements, ahead);
        self
    }

    /// With so many products of elements.
    pub fn multiplying(mut self, macs: u64) -> Moves {
        self.macs += macs;
        self
    }
}

impl From<Talk> for Moves {
    fn from(talk: Talk) -> Moves {
        let piece = Piece { rounds: talk.rounds, ..Piece::default() };
        Moves { talk, macs: 0, pieces: vec![piece] }
    }
}

impl std::iter::Sum for Moves {
    fn sum<I: Iterator<Item = Moves>>(moves: I) -> Moves {
        moves.fold(Moves::default(), Moves::then)
    }
}
