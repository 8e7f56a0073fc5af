//! What each party remembers of a run in order to prove its messages, and to check the others' (docs/rep3.md, section 6).

mod ahead;
mod batch;
mod column;
mod convolution;
mod drawn;
mod extension;
mod field;
mod fold;
mod folded;
mod galois;
mod mask;
mod numbers;
mod outer;
mod products;
mod rest;
mod roles;
mod spent;
mod tags;
mod tensor;
#[cfg(test)]
mod tests;
mod under_way;
mod verification;
mod verify;
mod words;

use crate::PartyId;
#[cfg(test)]
use crate::price::proofs::Stated;
use crate::price::proofs::{batch_bytes, numbers_bytes, product_bytes, tagged_bytes};
use ahead::Ahead;
pub(crate) use column::{Column, Operand};
pub(crate) use mask::Mask;
use privet_kernels::Device;
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
pub(crate) use products::ProductClaim;
pub(crate) use rest::Rest;
pub use spent::Wiping;
use tags::Tagged;
pub(crate) use tags::{TaggedClaim, Tags};
pub(crate) use under_way::UnderWay;

/// What a cheating prover does with its statements once it knows its coefficients' seed, for tests.
#[cfg(test)]
pub(crate) struct Adapt(Box<Adapting>);

#[cfg(test)]
type Adapting = dyn FnOnce(&mut batch::Batches, &privet_prg::Seed) + Send;

#[cfg(test)]
impl Adapt {
    fn new(adapt: impl FnOnce(&mut batch::Batches, &privet_prg::Seed) + Send + 'static) -> Adapt {
        Adapt(Box::new(adapt))
    }

    fn done_to(self, mut batches: batch::Batches, seed: &privet_prg::Seed) -> batch::Batches {
        (self.0)(&mut batches, seed);
        batches
    }
}

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
    /// Words each of which is one statement over GF(2^64): of every term, the left factor is a word, the right one a bit, 64 of
    /// them in a word.
    Numbers,
    /// Elements of a ring, one statement each.
    Ring(Ring),
}

impl Kind {
    /// Words of a right factor, where left ones have so many.
    fn right_words(self, words: usize) -> usize {
        match self {
            Kind::Numbers => words.div_ceil(64),
            Kind::Bits | Kind::Ring(_) => words,
        }
    }
}

/// One party's view of a batch of statements `sum over t of left_t right_t + rest_B + rest_A = 0`, word by word. Both verifiers have a summand
/// of every factor, or one of them has it all. All columns of a batch are as long as the statements, but for those of bits.
pub(crate) enum View {
    /// The prover's: left and right factor of every term. Of ring elements they are the sums of the verifiers' modulo 2^64, whatever the
    /// ring; of left ones only the ring's bits count.
    Prover(Vec<[Operand; 2]>),
    /// A verifier's, B's or A's.
    Verifier {
        /// Its summands of both factors of every term; none where the other verifier has all of a factor.
        terms: Vec<[Option<Column>; 2]>,
        /// What it adds alone: messages, masks, products of its own.
        rest: Rest,
    },
}

impl View {
    /// Of a prover that remembers every factor.
    pub fn prover(terms: impl IntoIterator<Item = [Column; 2]>) -> View {
        View::Prover(terms.into_iter().map(|term| term.map(Operand::from)).collect())
    }

    /// Of a verifier that has a summand of every factor.
    pub fn verifier(terms: impl IntoIterator<Item = [Column; 2]>, rest: impl Into<Rest>) -> View {
        View::Verifier { terms: terms.into_iter().map(|term| term.map(Some)).collect(), rest: rest.into() }
    }

    /// Words of statements.
    pub fn words(&self) -> usize {
        match self {
            View::Prover(terms) => terms.first().map_or(0, |[left, _]| left.len()),
            View::Verifier { rest, .. } => rest.len(),
        }
    }

    /// The claim that is remembered.
    fn into_claim(self, kind: Kind, prover: PartyId) -> Claim {
        let words = self.words();
        let (terms, rest) = match self {
            View::Prover(terms) => (terms.into_iter().map(|term| term.map(Some)).collect(), None),
            View::Verifier { terms, rest } => {
                let of = |term: [Option<Column>; 2]| term.map(|summand| summand.map(Operand::from));
                (terms.into_iter().map(of).collect(), Some(rest))
            }
        };
        Claim { kind, prover, words, terms, rest }
    }
}

/// A batch of statements about one prover's messages, as a party sees it.
pub(crate) struct Claim {
    pub kind: Kind,
    pub prover: PartyId,
    /// Words of statements.
    pub words: usize,
    /// See [`View`]; the prover has all factors.
    pub terms: Vec<[Option<Operand>; 2]>,
    /// The verifiers'.
    pub rest: Option<Rest>,
}

/// All claims since the last verification; every party has the same ones in the same order, each its own view.
#[derive(Default)]
pub(crate) struct Transcript {
    claims: Vec<Claim>,
    products: Vec<ProductClaim>,
    tagged: Vec<Tagged>,
    /// Of those of `tagged` that are combined by now.
    ahead: Vec<Ahead>,
    /// Of all columns, whatever this party's view of them.
    bytes: u64,
}

/// What is verified at a time.
struct Taken {
    claims: Vec<Claim>,
    products: Vec<ProductClaim>,
    tagged: Vec<Tagged>,
    ahead: Vec<Ahead>,
}

impl Transcript {
    /// Remember a batch of statements. Panics where a view's columns differ in length, or there are no terms, or a verifier lacks a
    /// factor of ring elements.
    pub fn push(&mut self, kind: Kind, prover: PartyId, view: View) {
        let claim = view.into_claim(kind, prover);
        let Claim { words, terms, rest, .. } = &claim;
        assert!(!terms.is_empty(), "a statement without terms");
        assert!(
            rest.as_ref().is_none_or(|rest| rest.is_even(kind)),
            "products as long as what they are added to"
        );
        for [left, right] in terms {
            for (factor, words) in [(left, *words), (right, kind.right_words(*words))] {
                let fits = match factor {
                    Some(factor) => factor.len() == words && factor.is_even(),
                    None => !matches!(kind, Kind::Ring(_)),
                };
                assert!(fits, "columns of one length");
                let sound = match factor {
                    Some(Operand::Sum(_)) => kind == Kind::Bits,
                    Some(Operand::Total(_)) => matches!(kind, Kind::Ring(_)),
                    Some(Operand::Whole(_)) | None => true,
                };
                assert!(sound, "a sum of columns of another kind");
            }
        }
        self.bytes += match kind {
            Kind::Numbers => numbers_bytes(*words, terms.len()),
            Kind::Bits | Kind::Ring(_) => batch_bytes(*words, terms.len()),
        };
        self.claims.push(claim);
    }

    /// How much is stated about each party, in party `id`'s view, and the bytes that it takes to remember.
    #[cfg(test)]
    pub fn stated(mut self, id: PartyId) -> ([Stated; 3], u64) {
        let bytes = self.bytes;
        let Taken { claims, products, .. } = self.take();
        (batch::Batches::sort(id, claims, &products).0.map(|batches| batches.stated()), bytes)
    }

    /// The statements, for tests that look at them one by one.
    #[cfg(test)]
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Remember the statements about everybody's reshare of one node's products. Panics where a length is not what
    /// the shape says, or where there are results and nothing is multiplied for them.
    pub fn push_products(&mut self, claim: ProductClaim) {
        let (shape, count) = (claim.products.shape, claim.products.count);
        let lens = [claim.x.len(), claim.w.len(), claim.before.len(), claim.after.len()];
        let expected = [shape.input_len(), shape.weight_len(), shape.output_len(), shape.output_len()];
        assert_eq!(lens, expected.map(|n| n * count), "elements of a product");
        assert!(lens[2] == 0 || lens[1] > 0, "statements without terms");
        self.bytes += product_bytes(lens[0], lens[1], lens[2]);
        if lens[2] > 0 {
            self.products.push(claim);
        }
    }

    /// Remember results of a layer with tags, which may be combined `ahead` of the verification. Panics where a length is not what the shape says.
    pub fn push_tagged(&mut self, claim: TaggedClaim, ahead: bool) {
        let (products, lens) = (claim.products, [claim.x.len(), claim.z.len()]);
        assert_eq!(lens, [products.input_len(), products.output_len()], "elements of a product");
        self.bytes += tagged_bytes(lens[0], lens[1]);
        if lens[1] > 0 {
            self.tagged.push(Tagged::new(claim, ahead));
        }
    }

    /// Whether results wait for coefficients ahead of the verification.
    pub fn waits(&self) -> bool {
        self.tagged.iter().any(Tagged::waits)
    }

    /// Begin with all results that wait, by coefficients from a seed that nobody knew before these were in.
    fn begin_ahead(&mut self, device: &dyn Device, coefficients: &Seed, ahead: Ahead) {
        let mut prg = coefficients.derive(Domain::Common, 1).stream();
        self.tagged
            .iter_mut()
            .filter(|tagged| tagged.waits())
            .for_each(|tagged| tagged.begin(device, &mut prg));
        self.ahead.push(ahead);
    }

    /// Everything, and nothing is left.
    fn take(&mut self) -> Taken {
        let Transcript { claims, products, tagged, ahead, bytes: _ } = std::mem::take(self);
        Taken { claims, products, tagged, ahead }
    }

    /// Bytes of all columns since the last verification.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
