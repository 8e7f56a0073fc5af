//! Sessions between processes: the parties' and the dealer's services, and the client's side.

pub mod access;
pub mod checkpoint;
pub mod client;
pub mod clients;
pub mod control;
mod door;
mod engine;
pub mod family;
mod follow;
mod idle;
pub(crate) mod job;
pub mod kept;
mod lead;
pub mod links;
mod meetings;
pub mod order;
pub mod outcome;
pub mod owner;
pub mod party;
mod peers;
mod preparing;
pub mod probe;
mod states;
#[cfg(test)]
pub(crate) mod testing;
mod threads;
mod work;
