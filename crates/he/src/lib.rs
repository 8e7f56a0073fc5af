//! Ring-LWE encryption with plaintext modulus 2^k: products of encrypted operands with weights, as additive shares.
//!
//! The holder of a key encrypts an operand ([`SecretKey::encrypt`]), the owner of weights multiplies ([`Weights::answer`])
//! and keeps a fresh share, the holder decrypts the other one ([`SecretKey::decrypt`]). With three and more parties the
//! key is a sum that nobody has ([`threshold`]). Products are exact modulo 2^k: no noise reaches a message.
//! `docs/he.md` has the formulas, the arguments and the evidence for the parameters.
//!
//! This form has q a product of primes and one polynomial a ciphertext. Another (module rank above 1, q a power of two)
//! would stand beside [`Context`] and `key`; samplers, layouts, noise and wire are common to both.
#![warn(clippy::integer_division_remainder_used)]

mod answer;
mod context;
mod encode;
mod field;
mod key;
mod lane;
pub mod layout;
mod modulus;
mod mutation;
pub mod noise;
pub mod ntt;
mod params;
mod pointwise;
mod sample;
pub mod threshold;
mod wire;
mod word;

pub use answer::{Answer, Weights};
pub use context::Context;
pub use key::{PublicKey, Query, SecretKey};
pub use lane::HePath;
pub use modulus::PRIME_BITS;
#[cfg(feature = "mutations")]
pub use mutation::MUTATIONS;
pub use params::{DISTANCE_BITS, NoSet, Parameters, SECURITY_BITS, SETS, Set};
pub use sample::{CBD, ERROR_VARIANCE, TERNARY_VARIANCE};
pub use wire::WireError;
