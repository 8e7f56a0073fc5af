//! Ring-LWE encryption with plaintext modulus 2^k: products of encrypted operands with weights, as additive shares.
//!
//! All parties share operand and weights, or one party knows the weights. Each sends what its weights make of public
//! polynomials once ([`Product::weights`], [`Hint`]). In a call each encrypts its operand under fresh keys ([`Keys`]), multiplies
//! the sum of all operands and takes its key and a fresh share off ([`Factor::partial`]). One adds up ([`Opening`]). Products
//! are exact modulo 2^k: no noise reaches a message. Elements are multiplied one by one as residues ([`Slots`]).
//! `docs/he.md` has the formulas, the arguments and the evidence for the parameters.
//!
//! This form has q a product of primes and one polynomial a ciphertext. [`torus`] has modules over a power of two, for
//! weights that one party knows in clear; samplers, layouts and transforms are common to both.
#![warn(clippy::integer_division_remainder_used)]

mod block;
mod context;
mod encode;
mod factor;
mod field;
pub mod galois;
mod key;
mod lane;
pub mod layout;
mod modulus;
mod mutation;
pub mod noise;
pub mod ntt;
mod opening;
mod panel;
mod params;
mod plain;
mod pointwise;
mod product;
mod sample;
mod slots;
pub mod torus;
mod wire;
mod word;

pub use context::Context;
pub use factor::{Factor, Weights};
pub use key::Keys;
pub use lane::HePath;
pub use modulus::PRIME_BITS;
pub use opening::{Encrypted, Opening, Partial};
pub use params::{DISTANCE_BITS, NoSet, Parameters, SECURITY_BITS, SETS, Set};
pub use plain::Plain;
pub use product::{Hint, Kind, Message, Operand, Product, Zero};
pub use sample::{CBD, ERROR_VARIANCE, TERNARY_VARIANCE};
pub use slots::{Residues, SPARE, Slots};
pub use wire::WireError;
