//! The gates, of three moves each (docs/rep3.md, section 3); each takes and gives replicated shares.

pub mod relu;
pub mod sign;
