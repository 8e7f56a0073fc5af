//! One file a gate: its evaluation, and what it uses.

pub(crate) mod argmax;
pub(crate) mod choose;
pub(crate) mod compare;
pub(crate) mod exponential;
pub(crate) mod linear;
pub(crate) mod local;
pub(crate) mod max;
pub(crate) mod mul;
pub(crate) mod relu;
pub(crate) mod table;
pub(crate) mod truncate;
