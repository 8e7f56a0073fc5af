//! Protocol family `semi2k`: n parties compute modulo powers of two, and all but one of them may collude.
//!
//! All parties hold the *masked value* `xh = x + lambda mod 2^k` of every wire, and party i knows `lambda_i`, where lambda is the
//! sum of all `lambda_i`. Nobody knows lambda, even n - 1 parties together. What gates need beside (shares of products of masks,
//! shares of masks' bits) is prepared before the run, without knowing any value.
//!
//! A gate is one file in `gates`: its preprocessing, one program over shares ([`Preprocess`]), and its online side. Formulas,
//! sources and security arguments: `docs/semi2k.md`.
//!
//! # What a party does
//!
//! *Session.* Every party draws a seed of its own, from which its summands of the weights' masks follow ([`PartySeed`]), and
//! all agree on a public seed that none chooses alone ([`Public`]). The owner of weights gets every party's
//! [`PartySeed::operand_mask`], and sends the masked weights to all ([`MaskedWeights`]).
//!
//! *Record.* Every party draws a fresh seed for it. [`prepare()`] walks the plan with a runner, which is any [`Preprocess`]: a
//! party together with its peers, or the [`Helper`], who knows all seeds ([`all_seeds`]) and writes the records of all
//! parties at once ([`RecordSink`]). A party's record is its seed and its frames. It serves one run.
//!
//! *Run.* Owners of inputs get masks and send masked values as for weights, from the record's seeds. Then [`Evaluator::run`] with
//! an [`Eval`], which reads the frames from a [`privet_family::keys::KeySource`] and has a channel to every peer; it gives shares of outputs
//! ([`Done`]), which each party sends to the receiver, who adds them up.

#![deny(clippy::wildcard_enum_match_arm)]

mod compare;
mod eval;
mod evaluator;
mod forecast;
mod forms;
mod gate;
mod gates;
mod helper;
mod joint;
mod masks;
mod mutation;
mod planes;
mod prepare;
mod preprocess;
mod price;
mod record;
mod seeds;
mod shares;
mod tables;
mod words;

pub use eval::{Eval, EvalError};
pub use evaluator::{Evaluator, MaskedWeights};
pub use forecast::{FACTS, HELPER, Semi2k, TRANSFERS, source};
pub use helper::{Helper, HelperSession};
pub use joint::cost;
pub use joint::{
    Begun, Encryption, Joint, JointSession, Layer, Layers, Linear, Own, Peer, Task, Transfers, elements_cost,
    prepare_together,
};
pub use prepare::{mask_coins, prepare, static_masks};
pub use preprocess::{
    BitUse, BitsAt, BitwiseMask, Factor, Kept, MaskOf, PrepareError, Preprocess, static_operand,
};
pub(crate) use privet_masked::Opened;
pub use privet_masked::{Done, Given};
pub use record::{RecordSink, frame};
pub use seeds::{PartySeed, Public, all_seeds};
pub use shares::{Bits, Seats, Words};
