//! A key that is a sum: everybody has a share, nobody the key, and all but one may collude (semi-honest).
//!
//! Each party encrypts its share of the operand under *its* share of the key and a common public polynomial, so the sum of
//! the bodies encrypts the sum of the shares under the sum of the keys. Each multiplies that by its share of the weights
//! ([`Weights::multiply`]), the results are added, and each takes its key off with noise and a fresh share of its own
//! ([`Joined::partial`]); [`Partials::open`] leaves the last share. `docs/he.md` argues for each message.

use crate::answer::{Cleared, Weights, drowned};
use crate::context::{Coeff, Context};
use crate::encode;
use crate::key::{PublicKey, Query, SecretKey};
use crate::layout::Layout;
use crate::mutation;
use crate::params::Parameters;
use crate::sample;
use crate::wire::{self, WireError};
use privet_prg::{Domain, Prg, Seed};
use std::sync::Arc;

/// Public polynomials that all parties draw alike, from a public seed that they tossed together.
pub struct Publics {
    seed: Seed,
    next: u64,
}

/// A public polynomial, or one for each of an operand's. A second encryption under it would give the first one away, so
/// it is used up.
#[must_use]
pub struct Reference(Seed);

/// One party's share of the key.
pub struct KeyShare(SecretKey);

/// What one party adds to the product: for every answer a mask and the outputs' coefficients, modulo q.
pub struct Summand(Vec<Cleared>);

/// The product under the joint key; used up when its key shares are taken off.
pub struct Joined(Vec<Cleared>);

/// One party's partial decryption of the outputs, in the order of answers.
pub struct Partial(Vec<Vec<u128>>);

/// The outputs' coefficients, to which partial decryptions are added.
pub struct Partials(Vec<Vec<u128>>);

impl Publics {
    /// From a public seed that is used for nothing else.
    pub fn new(seed: Seed) -> Publics {
        Publics { seed, next: 0 }
    }

    /// The next reference. All parties ask for them in one order.
    pub fn reference(&mut self) -> Reference {
        self.next += if mutation::active("publics-repeat") { 0 } else { 1 };
        Reference(self.seed.derive(Domain::Common, self.next))
    }
}

impl KeyShare {
    /// A fresh share, and what it adds to the joint public key. `prg` is the party's own.
    pub fn generate(context: &Arc<Context>, reference: Reference, prg: &mut Prg) -> (KeyShare, PublicKey) {
        let key = SecretKey::generate(context, prg);
        let public = key.public_under(reference.0, prg);
        (KeyShare(key), public)
    }

    /// Encrypt a share of the operand, for [`Query::sum`].
    pub fn encrypt(
        &self,
        reference: Reference,
        parameters: &Parameters,
        layout: &dyn Layout,
        x: &[u64],
        prg: &mut Prg,
    ) -> Query {
        self.0.encrypt_under(reference.0, parameters, layout, x, prg)
    }
}

impl PublicKey {
    /// The joint public key. Panics where there is none, or where they are of several references.
    pub fn sum(context: &Context, shares: Vec<PublicKey>) -> PublicKey {
        let add = |mut sum: PublicKey, share: PublicKey| {
            assert_eq!(sum.seed, share.seed, "public keys of one reference");
            context.add(&mut sum.b.words, &share.b.words, false);
            sum
        };
        shares.into_iter().reduce(add).expect("a party at least")
    }
}

impl Query {
    /// The operand under the joint key. Panics where there is none, or where they are of several references or layouts.
    pub fn sum(context: &Context, queries: Vec<Query>) -> Query {
        let add = |mut sum: Query, query: Query| {
            assert_eq!(sum.seed, query.seed, "queries of one reference");
            assert_eq!(sum.bodies.len(), query.bodies.len(), "queries of one layout");
            let bodies = sum.bodies.iter_mut().zip(&query.bodies);
            bodies.for_each(|(a, b)| context.add(&mut a.words, &b.words, false));
            sum
        };
        queries.into_iter().reduce(add).expect("a party at least")
    }
}

impl Weights {
    /// This party's weights times the operand, re-randomised under the joint key: pseudo-random to all others together.
    pub fn multiply(&self, public: &PublicKey, layout: &dyn Layout, query: &Query, prg: &mut Prg) -> Summand {
        let context = self.context();
        let all = self.cleared(public, layout, query, prg, |mut cleared, _, prg| {
            let n = cleared.body.words.len().checked_div(context.primes().len()).expect("there are primes");
            let mut errors = sample::errors(prg, n);
            mutation::constant("summand-without-error", &mut errors, sample::OFFSET);
            context.add(&mut cleared.body.words, &context.small(&errors).words, false);
            cleared
        });
        Summand(all)
    }
}

impl Summand {
    /// Bytes of the summands of this layout.
    pub fn bytes(parameters: &Parameters, layout: &dyn Layout) -> usize {
        let primes = parameters.set().primes.len();
        let outputs = |a| wire::residue_bytes(primes * layout.outputs(a).len());
        layout.answers() * parameters.set().poly_bytes() + (0..layout.answers()).map(outputs).sum::<usize>()
    }

    /// All answers, mask and outputs of each.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for answer in &self.0 {
            wire::put_residues(&answer.mask.words, &mut out);
            wire::put_residues(&answer.body.words, &mut out);
        }
        out
    }

    /// Exactly [`Summand::bytes`] bytes, each word below its prime.
    pub fn decode(
        context: &Context,
        parameters: &Parameters,
        layout: &dyn Layout,
        bytes: &[u8],
    ) -> Result<Summand, WireError> {
        let expected = Summand::bytes(parameters, layout);
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let mut rest = bytes;
        let mut take = |n: usize| {
            let (head, tail) = rest.split_at(wire::residue_bytes(n * context.primes().len()));
            rest = tail;
            wire::residues(context, n, head).map(|mut v| Coeff { words: std::mem::take(&mut v.words) })
        };
        let answer = |a| {
            let mask = take(context.degree())?;
            Ok(Cleared { mask, body: take(layout.outputs(a).len())? })
        };
        Ok(Summand((0..layout.answers()).map(answer).collect::<Result<_, WireError>>()?))
    }

    /// The product of the sums. Panics where there is none, or where they are of several layouts.
    pub fn sum(context: &Context, summands: Vec<Summand>) -> Joined {
        let add = |mut sum: Summand, other: Summand| {
            assert_eq!(sum.0.len(), other.0.len(), "summands of one layout");
            for (a, b) in sum.0.iter_mut().zip(&other.0) {
                context.add(&mut a.mask.words, &b.mask.words, false);
                context.add(&mut a.body.words, &b.body.words, false);
            }
            sum
        };
        Joined(summands.into_iter().reduce(add).expect("a party at least").0)
    }
}

impl Joined {
    /// Take off this party's share of the key, drowned, and a fresh share of the product: the partial decryption for
    /// whoever opens, this party's share modulo 2^k in the order of the outputs, and what the opener adds all to.
    ///
    /// Panics where the product is of another layout, or the parameters of fewer parties than hold key shares.
    pub fn partial(
        self,
        key: &KeyShare,
        parameters: &Parameters,
        layout: &dyn Layout,
        prg: &mut Prg,
    ) -> (Partial, Vec<u64>, Partials) {
        assert_eq!(self.0.len(), layout.answers(), "answers of the product");
        let context = &key.0.context;
        let (mut share, mut partials, mut bodies) = (vec![0; layout.output_len()], Vec::new(), Vec::new());
        for (number, answer) in self.0.into_iter().enumerate() {
            let outputs = layout.outputs(number);
            let product = context.product(&context.points(answer.mask), &key.0.s);
            let product = context.coefficients(product);
            let words = context.primes().flat_map(|prime| {
                let words = &product.words[context.range(prime)];
                outputs.iter().map(|o| words[o.coefficient])
            });
            let kept = Coeff { words: words.collect() };
            let mut own = prg.elements(parameters.ring(), outputs.len());
            mutation::constant("partial-shares-constant", &mut own, 5);
            let faults = ["partial-not-drowned", "drowned-narrowly"];
            partials.push(drowned(context, parameters, kept, &own, faults, prg));
            bodies.push(encode::switch(context, &answer.body, parameters.output_bits()));
            outputs.iter().zip(own).for_each(|(o, r)| share[o.index] = r);
        }
        (Partial(partials), share, Partials(bodies))
    }
}

impl Partial {
    /// Bytes of a partial decryption of this layout.
    pub fn bytes(parameters: &Parameters, layout: &dyn Layout) -> usize {
        let each = |a| wire::wide_bytes(parameters.output_bits(), layout.outputs(a).len());
        (0..layout.answers()).map(each).sum()
    }

    /// The outputs of all answers.
    pub fn encode(&self, parameters: &Parameters) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.iter().for_each(|outputs| wire::put_wide(parameters.output_bits(), outputs, &mut out));
        out
    }

    /// Exactly [`Partial::bytes`] bytes.
    pub fn decode(parameters: &Parameters, layout: &dyn Layout, bytes: &[u8]) -> Result<Partial, WireError> {
        let (expected, bits) = (Partial::bytes(parameters, layout), parameters.output_bits());
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let mut rest = bytes;
        let answer = |a| {
            let n = layout.outputs(a).len();
            let (head, tail) = rest.split_at(wire::wide_bytes(bits, n));
            rest = tail;
            wire::wide(bits, n, head)
        };
        Ok(Partial((0..layout.answers()).map(answer).collect::<Result<_, _>>()?))
    }
}

impl Partials {
    /// Add all parties' partial decryptions: the product less all parties' shares, modulo 2^k in the order of the outputs.
    pub fn open(mut self, parameters: &Parameters, layout: &dyn Layout, partials: &[Partial]) -> Vec<u64> {
        assert_eq!(partials.len(), parameters.parties(), "a partial decryption of each party");
        let (bits, mut out) = (parameters.output_bits(), vec![0; layout.output_len()]);
        for (number, body) in self.0.iter_mut().enumerate() {
            for partial in partials {
                body.iter_mut().zip(&partial.0[number]).for_each(|(sum, d)| *sum = sum.wrapping_add(*d));
            }
            for (o, c) in layout.outputs(number).iter().zip(body) {
                out[o.index] = encode::decode(parameters.ring(), encode::wrap(*c, bits), bits);
            }
        }
        out
    }
}

#[cfg(test)]
#[path = "threshold_tests.rs"]
mod tests;
