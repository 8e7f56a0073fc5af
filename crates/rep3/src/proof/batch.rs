//! Batches of statements as the folds want them, and their random coefficients.

use super::extension::Extension;
use super::field::Gf;
use super::galois::Gr;
use super::{Algebra, Claim, Column, View};
use crate::PartyId;
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

/// All batches about one prover, by algebra.
#[derive(Default)]
pub(super) struct Batches {
    pub bits: Vec<Batch>,
    pub ring: Vec<Batch>,
}

impl Batches {
    /// Sort the claims of a transcript by prover.
    pub fn sort(claims: Vec<Claim>) -> [Batches; 3] {
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
            match algebra {
                Algebra::Bits => of.bits.push(Batch { shift: 0, words, terms, u, v, s }),
                Algebra::Ring(ring) => {
                    of.ring.push(Batch { shift: 64 - ring.bits(), words, terms, u, v, s });
                }
            }
        }
        sorted
    }
}

/// Groups of words of the first fold.
pub(super) fn groups<E: Extension>(words: usize) -> usize {
    words.div_ceil(1 << E::FIRST)
}

/// Items after the first fold.
pub(super) fn items<E: Extension>(batches: &[Batch]) -> usize {
    batches.iter().map(|b| E::items(b.words, b.terms)).sum()
}

/// The random coefficients of one prover's statements: word l of group g has `s_g rho_l`. Elements of the exceptional
/// set by their coefficients; `rho_0` is 1.
pub(super) struct Weights {
    pub rho: Vec<u64>,
    /// All batches' groups, one batch after the other.
    pub s: Vec<u64>,
}

impl Weights {
    fn draw<E: Extension>(prg: &mut Prg, batches: &[Batch]) -> Weights {
        let mut rho = prg.elements(Ring::R64, 1 << E::FIRST);
        rho[0] = 1;
        let s = prg.elements(Ring::R64, batches.iter().map(|b| groups::<E>(b.words)).sum());
        Weights { rho, s }
    }

    /// Both algebras' weights from the seed that the verifiers reveal.
    pub fn expand(seed: &Seed, batches: &Batches) -> (Weights, Weights) {
        let mut prg = seed.stream();
        (Weights::draw::<Gf>(&mut prg, &batches.bits), Weights::draw::<Gr>(&mut prg, &batches.ring))
    }

    /// Batches with their own groups' coefficients.
    pub fn of<'a, E: Extension>(
        &'a self,
        batches: &'a [Batch],
    ) -> impl Iterator<Item = (&'a Batch, &'a [u64])> {
        let mut rest = &self.s[..];
        batches.iter().map(move |b| {
            let (s, after) = rest.split_at(groups::<E>(b.words));
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
