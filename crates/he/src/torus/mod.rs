//! Products of shared operands with weights that one party, the server, knows in clear: ring-LWE over the torus Z_{2^LQ}.
//!
//! The server sends hints once ([`TorusLayer::hint`]). The client prepares masks before its input is known
//! ([`ClientHint::prepare`], [`Multiplier::prepare`]); in a run it sends k bits an element ([`Mask::run`]), and nothing comes back
//! ([`Masked::run`]). Shares of the product are exact modulo 2^k but for a probability of 2^-64 an output. `docs/he.md` has
//! the functionality, the argument and the parameters' evidence.

mod client;
mod cuts;
mod digits;
mod factors;
mod filters;
mod keys;
mod layer;
mod multiplier;
mod params;
mod plan;
mod server;
mod wide;
mod work;

pub use client::{ClientHint, Mask};
pub use filters::{Filters, TooHeavy};
pub use keys::{Keys, Zeros};
pub use layer::{HintId, TorusLayer};
pub use multiplier::Multiplier;
pub use params::{DIMENSIONS, LEAST_NORM_BITS, NoTorus, SHARE_BITS, SPARE_BITS, TorusParameters};
pub use plan::{Link, Packing, PackingAim, TorusCost};
pub use server::{Hinted, Masked};
pub use work::PrepareWork;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
