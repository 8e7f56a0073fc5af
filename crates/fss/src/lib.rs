//! Protocol family `fss`: two evaluators and a dealer, function secret sharing.
//!
//! Both evaluators hold the public *masked value* `xh = x + r mod 2^k` of every wire; only the dealer
//! knows the mask `r`, each evaluator an additive share of it, expanded from its own seed. The dealer
//! runs the same plan on the masks ([`Dealer`]) and writes one stream of key frames for each evaluator;
//! the evaluators run it on masked values ([`Evaluator`]) and read the frames in the same order.
//!
//! A gate is one file in [`gates`] with `deal` and `eval` side by side. Formulas, sources and security
//! arguments: `docs/fss.md`.

#![deny(clippy::wildcard_enum_match_arm)]

mod compare;
mod deal;
mod dealer;
mod entries;
mod eval;
mod evaluator;
mod forecast;
mod forms;
mod gate;
mod gates;
pub mod keys;
mod masks;
mod mutation;
mod price;
mod public;
mod seeds;
mod tables;
mod wire;

pub use deal::Deal;
pub use dealer::{Dealer, SessionMasks, mask_coins};
pub use eval::Eval;
pub use evaluator::{Evaluator, MaskedWeights};
pub use forecast::{FACTS, Fss, MAX_CHECKS, MIN_CHECKS};
pub use privet_family::{Secret, States, expand_state, share_state};
pub(crate) use privet_masked::Opened;
pub use privet_masked::{Done, EvalError, Given};
pub use public::dropout_coins;
pub use seeds::{PartySeed, RecordSeeds, SessionSeeds};
pub use wire::{PartyId, Wire};
