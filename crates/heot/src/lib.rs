//! Protocol family `heot`: a server that knows the weights in clear and a client that has an input; no dealer, semi-honest.
//!
//! Wires are additive shares modulo 2^k. Linear layers of weights are ring-LWE over the torus ([`privet_he::torus`]): hints once, a
//! mask for each run before its input, then k bits an element and no answer. All else is made of correlated OTs
//! ([`privet_ot`]): comparisons by leaves and trees, choices, conversions. `docs/heot.md` has functionality and arguments.
//!
//! *Session.* The server makes hints of its weights once ([`Hints::new`]), shares them with its clients ([`Session::serve`]), and each
//! client reads them ([`Session::join`]).
//!
//! *Record.* For each run both sides make material of transfers ([`make_material`]), at any time, and masks ([`Session::make_masks`]), once
//! the session has begun. Both are kept, and used up by their run.
//!
//! *Run.* [`run()`] walks the plan with a [`Cx`]; each side ends with a share of every output.

#![deny(clippy::wildcard_enum_match_arm)]

#[cfg(test)]
mod coins;
mod compare;
mod context;
mod encryption;
mod evaluator;
mod forecast;
mod gate;
mod gates;
mod gathered;
mod hints;
mod keys;
mod leaf;
mod material;
mod matrices;
mod multiples;
mod mutation;
mod mux;
mod packing;
mod planes;
mod price;
mod product;
mod refusals;
mod rows;
#[cfg(test)]
mod secrecy;
mod session;
mod spool;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod uses;
mod weights;
mod wire;

pub use context::{Cx, RunError, Side};
pub use evaluator::{Given, Outcome, run};
pub use forecast::{FACTS, Heot, PACKED_FOR, PACKING, link, packed_for, suiting};
pub use hints::{Hints, most_runs};
pub use material::{Keep, MaterialMaker};
pub use privet_he::torus::{Link, PackingAim};
pub use refusals::refusals;
pub use session::Session;
pub use spool::Spool;
pub use uses::Uses;
pub use weights::Weights;
