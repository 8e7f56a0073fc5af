//! What each party remembers of a run in order to prove its messages, and to check the others' (docs/rep3.md, section 6).

mod batch;
mod column;
mod extension;
mod field;
mod fold;
mod galois;
mod outer;
mod products;
mod tensor;
#[cfg(test)]
mod tests;
mod verify;
mod words;

use crate::PartyId;
pub(crate) use column::Column;
use privet_kernels::fold::Words;
#[cfg(test)]
use privet_plan::cost::proofs::Stated;
use privet_plan::cost::proofs::{LARGE_BYTES, batch_bytes, numbers_bytes, product_bytes};
use privet_ring::Ring;
pub(crate) use products::ProductClaim;

/// Where the statements live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algebra {
    /// Z_2, 64 statements a word.
    Bits,
    /// Z_2^k, one statement a word.
    Ring(Ring),
}

/// What a batch of statements is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words of bits: 64 statements a word.
    Bits,
    /// Words each of which is one statement over GF(2^64): a word and a bit a term. The first `first` terms have their words in
    /// u and their bits in v, 64 of them in a word; all others the other way round.
    Numbers { first: usize },
    /// Elements of a ring, one statement each.
    Ring(Ring),
}

impl Kind {
    /// An operand of term `t`.
    pub fn operand(self, t: usize, of_u: bool, column: &Column) -> Words<'_> {
        match self {
            Kind::Numbers { first } if of_u != (t < first) => Words::Bits(column),
            _ => Words::Whole(column),
        }
    }
}

/// One party's view of a batch of statements `sum over t of u_t v_t + s_B + s_A = 0`, word by word. All columns of a
/// batch are as long as the statements, but for those of bits.
pub(crate) enum View {
    /// The prover's.
    Prover {
        /// Known to the party before as well.
        u: Vec<Column>,
        /// Known to the party after as well; as many as `u`.
        v: Vec<Column>,
    },
    /// The party before the prover.
    Before {
        /// As the prover's.
        u: Vec<Column>,
        /// `s_B`.
        s: Column,
    },
    /// The party after the prover.
    After {
        /// As the prover's.
        v: Vec<Column>,
        /// `s_A`.
        s: Column,
    },
}

impl View {
    /// Words of statements.
    pub fn words(&self, kind: Kind) -> usize {
        let column = match self {
            View::Prover { u, v } => match kind {
                Kind::Numbers { first: 0 } => v.first(),
                _ => u.first(),
            },
            View::Before { s, .. } | View::After { s, .. } => Some(s),
        };
        column.map_or(0, |c| c.len())
    }
}

/// A batch of statements about one prover's messages.
pub(crate) struct Claim {
    pub kind: Kind,
    pub prover: PartyId,
    pub view: View,
}

/// All claims since the last verification; every party has the same ones in the same order, each its own view.
#[derive(Default)]
pub(crate) struct Transcript {
    claims: Vec<Claim>,
    products: Vec<ProductClaim>,
    /// Of all columns, whatever this party's view of them.
    bytes: u64,
}

impl Transcript {
    /// Remember a batch of statements. Panics where a view's columns differ in number or length, or there are no terms.
    pub fn push(&mut self, kind: Kind, prover: PartyId, view: View) {
        let (none, words) = (vec![], view.words(kind));
        let (u, v, s) = match &view {
            View::Prover { u, v } => {
                assert_eq!(u.len(), v.len(), "columns of u and v");
                (u, v, None)
            }
            View::Before { u, s } => (u, &none, Some(s)),
            View::After { v, s } => (&none, v, Some(s)),
        };
        let terms = u.len().max(v.len());
        assert!(terms > 0, "a statement without terms");
        assert!(s.is_none_or(|s| s.len() == words), "columns of one length");
        for (of_u, columns) in [(true, u), (false, v)] {
            let fits = |(t, c): (usize, &Column)| kind.operand(t, of_u, c).needs(words);
            assert!(columns.iter().enumerate().all(fits), "columns of one length");
        }
        self.bytes += match kind {
            Kind::Numbers { .. } => numbers_bytes(words, terms),
            _ => batch_bytes(words, terms),
        };
        self.claims.push(Claim { kind, prover, view });
    }

    /// How much is stated about each party, in party `id`'s view, and the bytes that it takes to remember.
    #[cfg(test)]
    pub fn stated(mut self, id: PartyId) -> ([Stated; 3], u64) {
        let bytes = self.bytes;
        let (claims, products) = self.take();
        (batch::Batches::sort(id, claims, &products).0.map(|batches| batches.stated()), bytes)
    }

    /// The statements, for tests that look at them one by one.
    #[cfg(test)]
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Remember the statements about everybody's reshare of one node's products. Panics where a length is not what
    /// the shape says.
    pub fn push_products(&mut self, claim: ProductClaim) {
        let (shape, count) = (claim.products.shape, claim.products.count);
        let lens = [claim.x.len(), claim.w.len(), claim.before.len(), claim.after.len()];
        let expected = [shape.input_len(), shape.weight_len(), shape.output_len(), shape.output_len()];
        assert_eq!(lens, expected.map(|n| n * count), "elements of a product");
        self.bytes += product_bytes(lens[0], lens[1], lens[2]);
        if lens[2] > 0 {
            self.products.push(claim);
        }
    }

    /// Everything, and nothing is left.
    fn take(&mut self) -> (Vec<Claim>, Vec<ProductClaim>) {
        self.bytes = 0;
        (std::mem::take(&mut self.claims), std::mem::take(&mut self.products))
    }

    fn is_large(&self) -> bool {
        self.bytes > LARGE_BYTES
    }
}
