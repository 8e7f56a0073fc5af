//! Protocol family `rep3`: three parties with an honest majority, replicated secret sharing.
//!
//! A value is the sum of three components; party i holds components i and i + 1 ([`Share`]). Component j is held
//! by parties j - 1 and j, and so is key j, from which everything that these two draw alike is expanded ([`Keys`]).
//! Whatever costs communication is made of three moves, each with masks that its receiver cannot know:
//!
//! - *reshare*: every party holds one summand of a result and sends it, masked by a zero share, to the party before it;
//! - *deal*: one party shares a value that it knows;
//! - *split*: a value known to the party that dealt, times one known to the two others.
//!
//! Protocols, sources and security arguments: `docs/rep3.md`.

// An operation that is forgotten does not compile; tests may have defaults.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod adder;
mod agree;
mod context;
mod error;
mod evaluator;
mod forecast;
mod gate;
mod gates;
mod keys;
mod limits;
mod linear;
mod local;
mod moves;
mod mutation;
mod parts;
mod party;
mod planes;
mod price;
mod proof;
mod share;
mod sharing;
mod states;
#[cfg(test)]
mod testing;
mod tree;
mod value;
mod weights;

pub use context::{Messages, Party};
pub use error::RunError;
pub use evaluator::{Evaluator, Given, Outcome};
pub use forecast::{FACTS, Rep3};
pub use keys::{Keys, dropout_coins, hidden_coins, rounding_coins, run_coins};
pub use moves::masked_block;
pub use party::PartyId;
pub use price::{Claims, Talk};
pub use privet_plan::cost::Security;
pub use proof::Wiping;
pub use share::{Planes, Share};
pub use sharing::{Component, Digests, Portion, Revealed, SharingError};
pub use states::{StateError, StateKinds, States};
pub use weights::SharedWeights;
