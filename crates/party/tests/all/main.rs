//! All tests of sessions, of the command line and of configuration, in one binary: linked once, run side by side.

mod nodes;

mod bench_stream;
mod checkpoints;
mod checks;
mod cli;
mod dealer_patience;
mod events;
mod preparations;
mod refusals;
mod replacing;
mod sessions;
mod sessions_access;
mod sessions_all;
mod sessions_cheats;
mod sessions_heot;
mod sessions_semi2k;
mod sessions_serve;
mod sessions_training;
mod streams;
mod training_kills;
