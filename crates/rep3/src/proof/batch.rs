//! Batches of statements as the folds want them, and their random coefficients.

use super::products::{Product, ProductClaim};
use super::{Claim, Column, Kind, Operand, Rest};
use crate::price::proofs::{self, Shapes, Stated};
use crate::{PartyId, mutation};
use privet_family::Secret;
use privet_kernels::fold::{GROUP, number_weights};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use std::ops::Range;

/// Which factor of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Factor {
    Left,
    Right,
}

/// One batch of statements; the columns that this party does not have are left out.
pub(super) struct Batch {
    /// Where the statement holds (64 bits for words of bits).
    pub ring: Ring,
    /// Words of every column.
    pub words: usize,
    /// This party's summands of the left and right factor of every term; the prover has the factors.
    pub terms: Vec<[Option<Operand>; 2]>,
    /// What a verifier adds alone.
    rest: Option<Rest>,
    kind: Kind,
}

impl Batch {
    /// Left or right factors, term by term, or what this party has of them.
    pub fn operands(&self, factor: Factor) -> impl Iterator<Item = Option<&Operand>> {
        self.terms.iter().map(move |term| term[factor as usize].as_ref())
    }

    /// Both, at a party that has all of them.
    pub fn factors(&self) -> impl Iterator<Item = (&Operand, &Operand)> {
        self.terms.iter().filter_map(|[left, right]| Some((left.as_ref()?, right.as_ref()?)))
    }

    /// Left factors as they are remembered, where none of them is a sum: numbers, and elements of rings.
    pub fn left_words(&self) -> impl Iterator<Item = &[u64]> {
        self.columns(Factor::Left)
    }

    /// Right factors as they are remembered, where none of them is a sum.
    pub fn right_words(&self) -> impl Iterator<Item = &[u64]> {
        self.columns(Factor::Right)
    }

    fn columns(&self, factor: Factor) -> impl Iterator<Item = &[u64]> {
        debug_assert!(!self.has_sums(), "a sum is read as a column");
        self.operands(factor).filter_map(|operand| Some(&operand?.column()?[..]))
    }

    /// Whether factors are sums of columns.
    pub fn has_sums(&self) -> bool {
        self.terms.iter().flatten().flatten().any(|operand| operand.column().is_none())
    }

    /// What a verifier adds alone in statements about words of bits, from the first word on: pieces of whole groups but for the last, and which words they are. None where
    /// this party is no verifier.
    pub fn rest_in_pieces(&self, mut see: impl FnMut(Range<usize>, &[u64])) -> Option<()> {
        let rest = self.rest.as_ref()?;
        if let Some(column) = rest.column() {
            see(0..self.words, column);
            return Some(());
        }
        let mut scratch = Secret::new(vec![0; PIECE.min(self.words)]);
        for start in (0..self.words).step_by(PIECE) {
            let range = start..self.words.min(start + PIECE);
            see(range.clone(), rest.words(range, &mut scratch));
        }
        Some(())
    }

    /// What a verifier adds alone in statements about numbers: a column, and products of words and bits.
    pub fn rest_of_numbers(&self) -> Option<(&Column, &[[Column; 2]])> {
        debug_assert!(self.of_numbers(), "bits for right factors");
        self.rest.as_ref()?.summands()
    }

    /// What a verifier adds alone in statements about elements of a ring.
    pub fn rest_column(&self) -> Option<&Column> {
        self.rest.as_ref()?.column()
    }

    /// Its coefficients s, where blocks have 2^vars words.
    fn coefficients(&self, vars: u32) -> usize {
        if self.of_numbers() { number_weights(self.words) } else { self.words.div_ceil(1 << vars) }
    }

    /// Whether a word is one statement over GF(2^64), not 64 over GF(2).
    pub fn of_numbers(&self) -> bool {
        self.kind == Kind::Numbers
    }
}

/// What is stated about one prover in one algebra.
#[derive(Default)]
pub(super) struct Statements {
    /// Those of numbers after those of words of bits.
    pub batches: Vec<Batch>,
    /// Variables of the two folds of words; none where there are no words.
    pub vars: [u32; 2],
    /// Over rings alone.
    pub products: Vec<Product>,
}

impl Statements {
    /// Words of all factors.
    pub fn words(&self) -> usize {
        self.batches.iter().map(|b| b.words * b.terms.len()).sum()
    }

    /// Words and terms of every batch, of numbers or of others.
    fn extents(&self, of_numbers: bool) -> Vec<(usize, usize)> {
        self.batches
            .iter()
            .filter(|b| b.of_numbers() == of_numbers)
            .map(|b| (b.words, b.terms.len()))
            .collect()
    }
}

/// Words of a sum that are made at a time: they stay in the first-level cache.
const PIECE: usize = 16 * GROUP;

/// All that is stated about one prover.
#[derive(Default)]
pub(super) struct Batches {
    pub bits: Statements,
    pub ring: Statements,
}

impl Batches {
    /// Sort what party `id` remembers by prover; and the public shapes of the proofs.
    pub fn sort(id: PartyId, claims: Vec<Claim>, products: &[ProductClaim]) -> ([Batches; 3], [Shapes; 3]) {
        let mut sorted = <[Batches; 3]>::default();
        for Claim { kind, prover, words, terms, rest } in claims {
            if words == 0 {
                continue;
            }
            let of = &mut sorted[prover.index()];
            let (of, ring) = match kind {
                Kind::Bits | Kind::Numbers => (&mut of.bits, Ring::R64),
                Kind::Ring(ring) => (&mut of.ring, ring),
            };
            of.batches.push(Batch { ring, words, terms, rest, kind });
        }
        for (prover, of) in PartyId::ALL.into_iter().zip(&mut sorted) {
            of.bits.batches.sort_by_key(Batch::of_numbers);
            of.ring.products.extend(products.iter().map(|p| p.about(id, prover)));
        }
        let shapes = Shapes::of(&sorted.each_ref().map(Batches::stated));
        for (of, shapes) in sorted.iter_mut().zip(&shapes) {
            for (of, shape) in [(&mut of.bits, &shapes.bits), (&mut of.ring, &shapes.ring)] {
                if shape.of_words() > 0 {
                    of.vars = [shape.vars(0), shape.vars(1)];
                }
            }
        }
        (sorted, shapes)
    }

    /// How much is stated.
    pub fn stated(&self) -> Stated {
        let depth = self.ring.products.iter().map(Product::depth).sum();
        let [bits, numbers] = [false, true].map(|of_numbers| self.bits.extents(of_numbers));
        Stated { bits, numbers, ring: self.ring.extents(false), depth }
    }
}

/// The random coefficients of one prover's statements about words: of ring elements, word l of group i of block b has `s_b sigma_i rho_l`, where
/// a block is what becomes one item; of words of bits, word l of group b has `s_b rho_l`, and its lanes powers of Y beside. So has number l
/// of a group, of which eight stand side by side in 64 numbers.
/// Elements of the exceptional set by their coefficients; `rho_0` and `sigma_0` are 1.
pub(super) struct Weights {
    /// Variables of the two folds of words.
    pub vars: [u32; 2],
    pub rho: Vec<u64>,
    /// 1 for bits: what the second fold folds are lanes.
    pub sigma: Vec<u64>,
    /// Variables of what has an `s` of its own.
    block: u32,
    /// All batches' blocks, one batch after the other.
    pub s: Vec<u64>,
}

impl Weights {
    fn draw(prg: &mut Prg, statements: &Statements, algebra: proofs::Extension) -> Weights {
        let [first, second] = statements.vars;
        let (random, one) = (Ring::new(algebra.random_bits()), algebra.one());
        let mut rho = prg.elements(random, 1 << first);
        rho[0] = one;
        if mutation::active("coefficients-alike") {
            rho.fill(one);
        }
        let (block, mut sigma) = match algebra {
            proofs::Extension::Bits => (first, vec![one; 1 << second]),
            proofs::Extension::Ring => (first + second, prg.elements(random, 1 << second)),
        };
        sigma[0] = one;
        let blocks = statements.batches.iter().map(|b| b.coefficients(block)).sum();
        let s = prg.elements(random, blocks);
        Weights { vars: statements.vars, rho, sigma, block, s }
    }

    /// Both algebras' weights from the seed that the verifiers reveal.
    pub fn expand(seed: &Seed, batches: &Batches) -> (Weights, Weights) {
        let mut prg = seed.stream();
        let bits = Weights::draw(&mut prg, &batches.bits, proofs::Extension::Bits);
        (bits, Weights::draw(&mut prg, &batches.ring, proofs::Extension::Ring))
    }

    /// Batches with their own blocks' coefficients.
    pub fn of<'a>(&'a self, batches: &'a [Batch]) -> impl Iterator<Item = (&'a Batch, &'a [u64])> {
        let mut rest = &self.s[..];
        batches.iter().map(move |b| {
            let (s, after) = rest.split_at(b.coefficients(self.block));
            rest = after;
            (b, s)
        })
    }
}

/// Shorthand for a party's role in a proof.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Prover,
    Before,
    After,
}

impl Role {
    /// What `id` is in the proof of `prover`.
    pub fn of(id: PartyId, prover: PartyId) -> Role {
        if id == prover {
            Role::Prover
        } else if id.next() == prover {
            Role::Before
        } else {
            Role::After
        }
    }
}
