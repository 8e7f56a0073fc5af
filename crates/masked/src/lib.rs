//! Masked wires: what a run of every family has in common whose parties hold `x + mask` of each value, and a summand of the
//! mask each.
//!
//! Who knows a mask, and what else a record holds, is the family's. Here is what parties then do together: open masked values,
//! masked bits and masked planes of bits ([`Exchange`]), open states and share them again ([`open_states`], [`unmask`]), and list
//! beforehand what will be opened ([`planned_openings`]).

mod exchange;
mod planned;
mod states;

pub use exchange::{EvalError, Exchange, Sent};
pub use planned::planned_openings;
pub use states::{open_states, unmask};
