//! The gates, of three moves each (docs/rep3.md, section 3); each takes and gives replicated shares.

pub mod argmax;
pub mod bits;
mod carries;
pub mod equal;
pub mod extend;
pub mod max;
pub mod relu;
pub mod sign;
pub mod truncate;
