//! Sessions between processes: the parties' and the dealer's services, and the client's side.

pub mod checks;
pub mod client;
pub mod control;
pub mod deal;
pub mod dealer;
mod engine;
mod family;
mod fetch;
mod follow;
mod job;
mod lead;
pub mod links;
pub mod order;
pub mod owner;
pub mod party;
mod peers;
