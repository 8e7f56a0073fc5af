//! Oblivious transfer between two parties, semi-honest: base OTs, two extensions, pools of correlations.
//!
//! The cores are free of I/O: each message is bytes that one side gives and the other takes, and one test a file reads as
//! the protocol. No consistency check is made; a party that deviates is not found. docs/ot.md has the formulas, the
//! security arguments and the sizes.
//!
//! | module | what it is |
//! |---|---|
//! | [`base`] | 128 base OTs: Masny and Rindal, over ristretto255 |
//! | [`softspoken`] | SoftSpokenOT with k = 2, 4, 8: 63, 31, 15 bits a transfer |
//! | [`params`] | Ferret's sets of parameters |
//! | `spcot`, `lpn`, [`ferret`] | half-trees, the code, and the rounds made of them |
//! | [`pool`] | request, make, take, in one direction |
//! | [`channel`] | both directions over a channel |
//! | [`cot`] | runs of correlated OTs, used once; random OTs made of them; masked choices |
//! | [`seeds`] | seeds of which the receiver has all but one |
//! | [`pack`] | strings cut to bits and ring elements |

pub mod base;
pub mod channel;
pub mod cot;
mod cpu;
mod delta;
mod error;
pub mod ferret;
mod ggm;
mod hash;
#[cfg(any(test, feature = "ideal"))]
pub mod ideal;
mod lpn;
mod mutation;
pub mod pack;
pub mod params;
pub mod pool;
pub mod seeds;
pub mod softspoken;
mod spcot;
mod stock;
mod transpose;
#[cfg(test)]
mod vectors;

pub use channel::{Begun, Pair};
pub use cot::{ChosenCots, MaskedBits, ReceiverCots, ReceiverPads, SenderCots, SenderPads};
pub use delta::Delta;
pub use error::{Malformed, OtError};
pub use pack::Strings;
pub use params::Parameters;
pub use pool::{ReceiverPool, SenderPool, Short, Source};
pub use seeds::ReceiverSeeds;
pub use softspoken::Width;
