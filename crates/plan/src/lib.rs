//! From a captured model to the integer plan that every protocol runs.
//!
//! [`graph::Graph`] is what the front end captured: real-number semantics, source lines, calibrated ranges.
//! [`ir::Plan`] is the typed integer program whose meaning [`mod@interpret`] fixes; [`real`] evaluates it without
//! rounding; [`lower()`] goes from the first to the second, for a family that is given to it as a [`Target`]. No family is
//! named here. [`local`] and [`tournament`] are shared with the protocols, so that they cannot disagree.

// what dispatches on operations forgets none
#[deny(clippy::wildcard_enum_match_arm)]
pub mod check;
pub mod codec;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod cost;
pub mod cut;
pub mod element;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod encode;
mod float;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod form;
pub mod functions;
pub mod graph;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod interpret;
pub mod ir;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod local;
pub mod lower;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod program;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod real;
pub mod shown;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod slack;
#[deny(clippy::wildcard_enum_match_arm)]
pub mod spread;
pub(crate) mod strided;
#[cfg(feature = "suite")]
pub mod suite;
pub mod tables;
pub mod target;
pub mod tournament;
pub mod waves;

pub use check::PlanError;
pub use cost::{Aim, Estimate, Network, Prices, Rates, estimate};
pub use cut::Cut;
pub use encode::{EncodeError, decode_outputs, encode_inputs, encode_publics, encode_states, encode_weights};
pub use float::FloatTensor;
pub use form::Form;
pub use graph::Graph;
pub use interpret::{
    Coins, InterpretError, NoCoins, Promises, interpret, interpret_all, interpret_beyond, interpret_step,
};
pub use ir::Plan;
pub use local::{Affine, apply_local, apply_local_in_place, is_static};
pub use lower::{CheckReport, LowerError, Lowered, Precision, lower, lower_for};
pub use program::Program;
pub use real::{interpret_real, interpret_real_all, interpret_real_step};
pub use slack::{slack, slack_within};
pub use spread::Spread;
pub use target::{Refusal, Refused, Target, admit, admit_all};
