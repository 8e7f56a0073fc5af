//! What tests of protocols need, whatever the family and the number of parties.
//!
//! A [`Mesh`] joins n parties by in-memory channels, each pair by one. A test puts hands on its links, then runs one
//! program at every party, each in a thread.
//!
//! ```
//! use privet_net::{Channel, Step};
//! use privet_testkit::Mesh;
//!
//! let mut mesh = Mesh::new(2);
//! let log = mesh.record();
//! let step = Step::new(1, "input / open");
//! let sums = mesh.run(|links| {
//!     let mine = 20 + links.me() as u8;
//!     mine + links.to(1 - links.me()).exchange(&step, vec![mine], 1).unwrap()[0]
//! });
//! assert_eq!(sums, [41, 41]);
//! assert_eq!(log.of(1)[0].bytes, [21]);
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`mesh`] | n parties: their links, the threads, the names of those that panic or wait for ever |
//! | [`hook`] | a channel with a hand on it: the one wrapper that everything here is made of |
//! | [`record`] | what every party sent; bytes, rounds and digests of it; vectors in files |
//! | [`fault`] | messages lost, late, changed, repeated or sent elsewhere; parties that die |
//! | [`attack`] | a corrupt party's changes of an honest run, message by message and kind by kind |
//! | [`freed`] | whether what is freed was wiped |
//! | [`tally`] | how attempts ended, counted from many threads; work spread over threads |
//!
//! Statistics of what is sent (uniformity, chi-square) are with the shared plans, in `privet_plan::suite`.

pub mod attack;
pub mod fault;
pub mod freed;
pub mod hook;
pub mod mesh;
pub mod record;
pub mod tally;
mod watch;

pub use attack::{Attack, Kind, Target};
pub use fault::{Action, Faulty, When};
pub use freed::Freed;
pub use hook::{Hook, Hooked};
pub use mesh::{Links, Mesh};
pub use record::{Log, Sent};
pub use tally::{Tally, spread};
