//! Products of matrices of which one side has each, with few bytes: operands without gaps, and answers that automorphisms gather.
//!
//! The *encryptor* has a matrix X and sends it in full polynomials, and once some [`SwitchKeys`]. The *multiplier* has W and answers with
//! shares of `X W`: for each of a group of automorphisms it turns X, multiplies by what stands for W there, and adds up. What is no
//! output cancels, so every coefficient of an answer is one. No key is encrypted under itself. Shares are exact modulo 2^k.
//!
//! `docs/he.md`, section 7, has the formulas and the argument for both sides.

mod kernels;
mod keys;
mod layout;
mod multiply;
mod noise;
mod operand;
mod turn;

pub use keys::{Secret, SwitchKeys};
pub use layout::{GaloisCost, GaloisLayout};
pub use multiply::Answer;

use crate::context::Context;
use crate::params::{SETS, Set};
use crate::plain::Plain;
use privet_kernels::CpuCapError;
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use std::sync::Arc;

/// N.
const DEGREE: usize = 8192;
/// Automorphisms, at most, as many as are summed in a polynomial.
const WIDTH: usize = 64;
/// Automorphisms that a hop has keys for: two hops make all of them.
const HOP: usize = 8;

/// Of ciphertexts: q.
fn set() -> &'static Set {
    &SETS[1]
}

/// Of keys that switch: q, and the prime P that their noise is divided by, which is the last one.
fn wide_set() -> &'static Set {
    &SETS[2]
}

/// What both sides hold alike: transforms, and public polynomials under coins that both tossed.
pub struct Galois {
    /// Modulo q.
    context: Arc<Context>,
    /// Modulo q P.
    wide: Arc<Context>,
    public: Seed,
}

/// What numbers of public polynomials are for.
#[derive(Clone, Copy)]
enum Public {
    /// Of switching keys.
    Keys,
    /// Of what re-randomises answers.
    Zero,
    /// Of operands.
    Operands,
}

impl Galois {
    /// Under a public seed that both sides tossed for these keys alone; in so many threads.
    pub fn new(public: Seed, threads: usize) -> Result<Galois, CpuCapError> {
        Ok(Galois {
            context: Context::new(set(), threads)?,
            wide: Context::new(wide_set(), threads)?,
            public,
        })
    }

    /// The seed of public polynomials of a kind, which the encryptor's number tells from the other side's.
    fn publics(&self, of: Public, encryptor: u64) -> Seed {
        self.public.derive(Domain::Common, 3 * encryptor + of as u64)
    }
}

/// Messages of an operand: multiples of `q / 2^(k + log2 K)`, as a sum over K automorphisms multiplies by K.
fn operand_plain(ring: Ring, width: usize) -> Plain {
    Plain::Power(Ring::new(ring.bits() + width.trailing_zeros()))
}

#[cfg(test)]
mod tests;
