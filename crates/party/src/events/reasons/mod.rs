//! Errors of this program, as far as events may say them: exhaustive, so that a new error decides here what is public of it.
//! Reasons of a protocol family are in its room.

mod files;
mod job;
mod net;
mod store;
