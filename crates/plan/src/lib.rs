//! From a captured model to the integer plan that every protocol runs.
//!
//! [`graph::Graph`] is what the front end captured: real-number semantics, source lines, calibrated ranges.
//! [`lower`] rewrites it into an [`ir::Plan`]: typed integer operations whose meaning [`interpret`] fixes.

pub mod graph;
pub mod ir;

pub use graph::Graph;
pub use ir::Plan;
