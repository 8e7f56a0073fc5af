//! One party: configuration, jobs, preprocessing store, reports, and the `privet` command.

pub mod cli;
pub mod config;
pub mod events;
pub mod machine;
pub mod registry;
pub mod report;
pub mod session;
pub mod sys;
pub mod tensors;

pub use privet_store as store;
