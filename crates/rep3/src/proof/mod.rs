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
#[cfg(test)]
use privet_plan::cost::proofs::Stated;
use privet_plan::cost::proofs::{LARGE_BYTES, batch_bytes, product_bytes};
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

/// One party's view of a batch of statements `sum over t of u_t v_t + s_B + s_A = 0`, word by word. All columns of a
/// batch have the same length.
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

/// A batch of statements about one prover's messages.
pub(crate) struct Claim {
    pub algebra: Algebra,
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
    pub fn push(&mut self, algebra: Algebra, prover: PartyId, view: View) {
        let (terms, columns): (usize, Vec<&Column>) = match &view {
            View::Prover { u, v } => {
                assert_eq!(u.len(), v.len(), "columns of u and v");
                (u.len(), u.iter().chain(v).collect())
            }
            View::Before { u, s } => (u.len(), u.iter().chain([s]).collect()),
            View::After { v, s } => (v.len(), v.iter().chain([s]).collect()),
        };
        assert!(terms > 0, "a statement without terms");
        let words = columns[0].len();
        assert!(columns.iter().all(|c| c.len() == words), "columns of one length");
        self.bytes += batch_bytes(words, terms);
        self.claims.push(Claim { algebra, prover, view });
    }

    /// How much is stated about each party, in party `id`'s view, and the bytes that it takes to remember.
    #[cfg(test)]
    pub fn stated(mut self, id: PartyId) -> ([Stated; 3], u64) {
        let bytes = self.bytes;
        let (claims, products) = self.take();
        (batch::Batches::sort(id, claims, &products).map(|batches| batches.stated()), bytes)
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
