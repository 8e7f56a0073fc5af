//! Protocol family `heot`: a server that knows the weights in clear and a client that has an input; no dealer, semi-honest.
//!
//! Wires are additive shares modulo 2^k. Linear layers of weights are ring-LWE over the torus ([`privet_he::torus`]): hints once, a
//! mask for each run before its input, then k bits an element and no answer. All else is made of correlated OTs
//! ([`privet_ot`]): comparisons by leaves and trees, choices, conversions. `docs/heot.md` has functionality and arguments.
//!
//! *Session.* The server hints at its weights ([`Session::serve`]), and the client reads the hints ([`Announced`]).
//!
//! *Record.* For each run the client draws masks ([`Session::mask`]), and the server prepares for them ([`Session::masked`]); both
//! prepare [`transfers`]. A record is used up by its run.
//!
//! *Run.* [`run()`] walks the plan with a [`Cx`]; each side ends with a share of every output.

#![deny(clippy::wildcard_enum_match_arm)]

mod coins;
mod compare;
mod context;
mod evaluator;
mod gate;
mod gates;
mod leaf;
mod mutation;
mod mux;
mod planes;
mod product;
mod refusals;
#[cfg(test)]
mod secrecy;
mod session;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod uses;

pub use coins::Drawn;
pub use context::{Cx, RunError, Side};
pub use evaluator::{Given, Outcome, run, transfers};
pub use refusals::refusals;
pub use session::{Announced, HEADER_BYTES, Record, Session};
pub use uses::Uses;
