//! Masked wires: what a run of every family has in common whose parties hold `x + mask` of each value, and a summand of the
//! mask each.
//!
//! Who knows a mask, and what else a record holds, is the family's. Here is what parties then do together. They walk a plan
//! ([`run()`]) and open masked values, masked bits and masked planes of bits ([`Exchange`]). They open states and share them again
//! ([`open_states`], [`unmask`]), and keep for a session what follows from weights alone ([`StaticValues`]). What will be opened
//! is listed beforehand ([`planned_openings`]).

mod exchange;
mod planned;
mod run;
mod states;
mod statics;

pub use exchange::{EvalError, Exchange, Opened};
pub use planned::planned_openings;
pub use run::{Done, Given, Side, Values, run};
pub use states::{open_states, unmask};
pub use statics::StaticValues;
