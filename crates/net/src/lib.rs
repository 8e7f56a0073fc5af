//! Channels between parties: framed, metered, checked step by step.
//!
//! A protocol talks to each peer through a [`Channel`]: it names the [`Step`] it is at, sends a payload and
//! states exactly how many bytes it expects back. Underneath, a message becomes frames ([`frame`]) that carry
//! the step, a sequence number and a checksum, so that parties that drift apart, a lost or repeated frame and a
//! flipped bit are reported at the step where they happen and never reach a gate.
//!
//! | module | what it is |
//! |---|---|
//! | [`mem`] | both parties in one process, for tests and simulation |
//! | [`tcp`] | mutual TLS 1.3 (or explicitly insecure plain TCP) with one I/O thread a connection |
//! | [`throttle`] | delay and rate of an emulated network, applied where frames are sent |
//! | [`certs`], [`fingerprint`] | identities without a certificate authority, pinned by fingerprint |
//! | [`round_trip`] | how far peers are from each other |
//! | [`hello`], [`terms`] | what peers compare before the first step |
//! | [`meter`] | bytes and rounds by phase |

pub mod certs;
mod channel;
mod distance;
mod error;
pub mod fingerprint;
pub mod frame;
mod framed;
pub mod hello;
pub mod mem;
pub mod meter;
pub mod tcp;
pub mod terms;
pub mod throttle;

pub use certs::Identity;
pub use channel::{Channel, Step};
pub use distance::{DISTANCE_ROUNDS, DISTANT, round_trip};
pub use error::{Fault, NetError};
pub use fingerprint::Fingerprint;
pub use framed::{FrameFilter, Framed};
pub use hello::Hello;
pub use meter::{Meter, PhaseCount};
pub use tcp::{
    Listener, Liveness, Options, Pin, Pins, Protection, TcpChannel, TlsChannel, dial, wait_any,
    wait_patiently,
};
pub use terms::Terms;
pub use throttle::NetworkProfile;
