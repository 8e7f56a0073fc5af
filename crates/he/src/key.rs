//! Keys of one holder, and what it encrypts.

use crate::context::{Coeff, Context, Points};
use crate::encode;
use crate::layout::Layout;
use crate::params::Parameters;
use crate::sample;
use crate::wire::{self, WireError};
use crate::{mutation, pointwise};
use privet_prg::{Prg, Seed};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The number of the public key's public polynomial under its seed.
const KEY: u64 = u64::MAX;

/// A ternary key; wiped on drop, never printed.
pub struct SecretKey {
    pub(crate) context: Arc<Context>,
    pub(crate) s: Points,
}

/// An encryption of 0 under a [`SecretKey`], from which others make fresh ones: `(b, a)` with `b + a s` small.
pub struct PublicKey {
    pub(crate) seed: Seed,
    pub(crate) b: Points,
    pub(crate) a: Points,
}

/// An encrypted operand: bodies, and the public seed of what they hide under. Each polynomial has a number of its own.
pub struct Query {
    pub(crate) seed: Seed,
    pub(crate) bodies: Vec<Points>,
}

impl SecretKey {
    /// A fresh key. `prg` is the holder's own.
    pub fn generate(context: &Arc<Context>, prg: &mut Prg) -> SecretKey {
        let s = context.points(context.small(&sample::ternary(prg, context.degree())));
        SecretKey { context: Arc::clone(context), s }
    }

    /// A public key, for whoever answers to draw fresh encryptions of 0 with. `prg` is the holder's own.
    pub fn public(&self, prg: &mut Prg) -> PublicKey {
        self.public_under(public_seed(prg), prg)
    }

    pub(crate) fn public_under(&self, seed: Seed, prg: &mut Prg) -> PublicKey {
        let a = self.context.uniform(&seed, KEY);
        let mut errors = sample::errors(prg, self.context.degree());
        mutation::constant("key-without-error", &mut errors, sample::OFFSET);
        let b = self.hide(&a, self.context.small(&errors));
        PublicKey { seed, b, a }
    }

    /// `message - a s` as values; the message has its error.
    pub(crate) fn hide(&self, a: &Points, message: Coeff) -> Points {
        let mut body = self.context.points(message);
        let product = self.context.product(a, &self.s);
        self.context.add(&mut body.words, &product.words, true);
        body
    }

    /// Encrypt an operand, packed as `layout` says: values modulo 2^k, as many as it takes. `prg` is the holder's own;
    /// the public seed is drawn from it, so no two operands share one.
    ///
    /// Panics where the parameters are of another set, or where the number of values is another.
    pub fn encrypt(&self, parameters: &Parameters, layout: &dyn Layout, x: &[u64], prg: &mut Prg) -> Query {
        self.encrypt_under(public_seed(prg), parameters, layout, x, prg)
    }

    /// [`SecretKey::encrypt`] under a public seed that this key has encrypted nothing with.
    pub(crate) fn encrypt_under(
        &self,
        seed: Seed,
        parameters: &Parameters,
        layout: &dyn Layout,
        x: &[u64],
        prg: &mut Prg,
    ) -> Query {
        assert_eq!(parameters.set(), self.context.set(), "parameters of the key's set");
        assert_eq!(x.len(), layout.input_len(), "number of values");
        let bodies = (0..layout.queries()).map(|number| {
            let a = self.context.uniform(&seed, number as u64);
            let mut packed = Zeroizing::new(vec![0; self.context.degree()]);
            layout.pack_input(number, x, &mut packed);
            self.hide(&a, encode::message(&self.context, parameters.ring(), &packed, prg))
        });
        Query { bodies: bodies.collect(), seed }
    }

    /// `c s` for c in [0, 2^bits), modulo 2^bits. Panics where the product could exceed half the first two primes'.
    pub(crate) fn times_key(&self, c: &[u128], bits: u32) -> Vec<u128> {
        let context = &self.context;
        assert!(bits + context.degree().trailing_zeros() + 2 < 2 * crate::PRIME_BITS);
        const LOW: u128 = (1 << crate::lane::LIMB) - 1;
        let low: Vec<u64> = c.iter().map(|c| (c & LOW) as u64).collect();
        let high: Vec<u64> = c.iter().map(|c| (c >> crate::lane::LIMB) as u64).collect();
        let lifted = context.combine(c.len(), |m| {
            let [one, limb, _] = pointwise::limb_factors(m);
            (vec![(&low[..], one), (&high[..], limb)], 0)
        });
        let product = context.product(&context.points(lifted), &self.s);
        encode::lift(context, &context.coefficients(product), bits)
    }
}

/// A fresh public seed, drawn from a secret stream of which it tells nothing else.
fn public_seed(prg: &mut Prg) -> Seed {
    let seed = prg.seed();
    if mutation::active("publics-repeat") { Seed::from_bytes([0; 16]) } else { seed }
}

impl PublicKey {
    /// Bytes of a public key of this set.
    pub fn bytes(context: &Context) -> usize {
        Seed::BYTES + context.set().poly_bytes()
    }

    /// The seed and the body.
    pub fn encode(&self) -> Vec<u8> {
        wire::seeded(&self.seed, std::slice::from_ref(&self.b))
    }

    /// Exactly [`PublicKey::bytes`] bytes, each word below its prime.
    pub fn decode(context: &Context, bytes: &[u8]) -> Result<PublicKey, WireError> {
        let (seed, mut bodies) = wire::read_seeded(context, 1, bytes)?;
        let a = context.uniform(&seed, KEY);
        Ok(PublicKey { seed, b: bodies.remove(0), a })
    }
}

impl Query {
    /// Bytes of a query of so many polynomials.
    pub fn bytes(context: &Context, polynomials: usize) -> usize {
        Seed::BYTES + polynomials * context.set().poly_bytes()
    }

    /// The seed and the bodies.
    pub fn encode(&self) -> Vec<u8> {
        wire::seeded(&self.seed, &self.bodies)
    }

    /// Exactly [`Query::bytes`] bytes, each word below its prime.
    pub fn decode(context: &Context, polynomials: usize, bytes: &[u8]) -> Result<Query, WireError> {
        let (seed, bodies) = wire::read_seeded(context, polynomials, bytes)?;
        Ok(Query { seed, bodies })
    }

    /// Number of polynomials.
    pub fn polynomials(&self) -> usize {
        self.bodies.len()
    }

    /// Polynomial `number`: its body and its public part.
    pub(crate) fn ciphertext(&self, context: &Context, number: usize) -> (&Points, Points) {
        (&self.bodies[number], context.uniform(&self.seed, number as u64))
    }
}
