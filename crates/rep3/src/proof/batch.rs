//! Batches of statements as the folds want them, and their random coefficients.

use super::products::{Coefficients, Product, ProductClaim};
use super::{Algebra, Claim, Column, View};
use crate::PartyId;
use privet_plan::cost::proofs::{Shapes, Stated};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

/// One batch of statements; the columns that this party does not have are left out.
pub(super) struct Batch {
    /// Left shift that makes the statement one modulo 2^64 (0 for bits).
    pub shift: u32,
    /// Words of every column.
    pub words: usize,
    /// Terms of the statement.
    pub terms: usize,
    pub u: Vec<Column>,
    pub v: Vec<Column>,
    pub s: Option<Column>,
}

/// What is stated about one prover in one algebra.
#[derive(Default)]
pub(super) struct Statements {
    pub batches: Vec<Batch>,
    /// Variables of the first fold, which is of words; none where there are no words.
    pub vars: u32,
    /// Over rings alone.
    pub products: Vec<Product>,
}

impl Statements {
    /// Words and terms of every batch.
    fn extents(&self) -> Vec<(usize, usize)> {
        self.batches.iter().map(|b| (b.words, b.terms)).collect()
    }
}

/// All that is stated about one prover.
#[derive(Default)]
pub(super) struct Batches {
    pub bits: Statements,
    pub ring: Statements,
}

impl Batches {
    /// Sort what party `id` remembers by prover.
    pub fn sort(id: PartyId, claims: Vec<Claim>, products: Vec<ProductClaim>) -> [Batches; 3] {
        let mut sorted = <[Batches; 3]>::default();
        for Claim { algebra, prover, view } in claims {
            let (u, v, s) = match view {
                View::Prover { u, v } => (u, v, None),
                View::Before { u, s } => (u, vec![], Some(s)),
                View::After { v, s } => (vec![], v, Some(s)),
            };
            let first = u.first().or(v.first());
            let (words, terms) = (first.map_or(0, |c| c.len()), u.len().max(v.len()));
            if words == 0 {
                continue;
            }
            let of = &mut sorted[prover.index()];
            let (of, shift) = match algebra {
                Algebra::Bits => (&mut of.bits, 0),
                Algebra::Ring(ring) => (&mut of.ring, 64 - ring.bits()),
            };
            of.batches.push(Batch { shift, words, terms, u, v, s });
        }
        for (prover, of) in PartyId::ALL.into_iter().zip(&mut sorted) {
            of.ring.products.extend(products.iter().map(|p| p.about(id, prover)));
            let shapes = of.shapes();
            (of.bits.vars, of.ring.vars) = (shapes.bits.vars(0), shapes.ring.vars(0));
        }
        sorted
    }

    /// How much is stated.
    pub fn stated(&self) -> Stated {
        let depth = self.ring.products.iter().map(Product::depth).sum();
        Stated { bits: self.bits.extents(), ring: self.ring.extents(), depth }
    }

    /// The public shapes of the proofs.
    pub fn shapes(&self) -> Shapes {
        Shapes::of(&self.stated())
    }
}

/// Groups of words of the first fold.
fn groups(words: usize, vars: u32) -> usize {
    words.div_ceil(1 << vars)
}

/// The random coefficients of one prover's statements: word l of group g has `s_g rho_l`. Elements of the exceptional
/// set by their coefficients; `rho_0` is 1.
pub(super) struct Weights {
    /// Variables of the first fold.
    pub vars: u32,
    pub rho: Vec<u64>,
    /// All batches' groups, one batch after the other.
    pub s: Vec<u64>,
    /// Every product's.
    pub products: Vec<Vec<Coefficients>>,
}

impl Weights {
    fn draw(prg: &mut Prg, statements: &Statements) -> Weights {
        let mut rho = prg.elements(Ring::R64, 1 << statements.vars);
        rho[0] = 1;
        let s = prg
            .elements(Ring::R64, statements.batches.iter().map(|b| groups(b.words, statements.vars)).sum());
        let products = statements.products.iter().map(|p| p.draw(prg)).collect();
        Weights { vars: statements.vars, rho, s, products }
    }

    /// Both algebras' weights from the seed that the verifiers reveal.
    pub fn expand(seed: &Seed, batches: &Batches) -> (Weights, Weights) {
        let mut prg = seed.stream();
        (Weights::draw(&mut prg, &batches.bits), Weights::draw(&mut prg, &batches.ring))
    }

    /// Batches with their own groups' coefficients.
    pub fn of<'a>(&'a self, batches: &'a [Batch]) -> impl Iterator<Item = (&'a Batch, &'a [u64])> {
        let mut rest = &self.s[..];
        batches.iter().map(move |b| {
            let (s, after) = rest.split_at(groups(b.words, self.vars));
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
