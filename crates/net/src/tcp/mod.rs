//! Channels between processes: mutual TLS 1.3 over TCP, or plain TCP by explicit choice.
//!
//! `connect` makes connections and compares greetings, `listen` takes calls, `tls` authenticates peers by their pinned certificates, `handshake` and
//! `records` are both halves of a TLS connection, `driver` sends and receives, `drive` says which thread does, `seats` counts a place's connections, `wire` encrypts or
//! not into what waits for the socket (`out`), `link` is the protocol's side, with `queues` between it and the I/O thread, `liveness` shows that a service gets on,
//! `watch` waits for several peers, `poll` waits for a socket or a wake-up, `loopback` takes
//! the pacing off connections within a machine.

mod connect;
mod drive;
mod driver;
mod handshake;
mod link;
mod listen;
mod liveness;
mod loopback;
mod out;
mod poll;
mod pulse;
mod queues;
mod records;
mod seats;
mod tls;
mod watch;
mod wire;

use std::fmt;
use std::time::Duration;

pub use connect::dial;
pub use link::SocketLink;
pub use listen::{Incoming, Listener};
pub use liveness::Liveness;
pub use seats::CONNECTIONS;
pub(crate) use tls::provider;
pub use watch::{wait_any, wait_patiently};

use crate::{Fingerprint, FrameFilter, Framed, Identity, NetworkProfile};

/// A channel over TCP, encrypted or not; see [`TcpChannel::is_encrypted`].
pub type TcpChannel = Framed<SocketLink>;
/// The usual case of a [`TcpChannel`].
pub type TlsChannel = TcpChannel;

impl TcpChannel {
    /// Whether the connection is mutual TLS; reports stamp it where it is not.
    pub fn is_encrypted(&self) -> bool {
        self.link.is_encrypted()
    }

    /// Gives up on a peer that is alive but sends nothing (or takes nothing in) for this long where this side
    /// waits for it; without a limit at first. The error is final and is told to the peer.
    pub fn set_patience(&mut self, patience: Option<Duration>) {
        self.link.set_patience(patience);
    }

    /// The same for a peer that serves others as well. Each turn of it that its heartbeats show ([`TcpChannel::show`] there)
    /// begins the wait anew. So a busy peer is waited for, and one whose service hangs is given up.
    pub fn set_patience_for_turns(&mut self, patience: Duration) {
        self.link.set_patience_for_turns(patience);
    }

    /// From now on heartbeats tell the peer how far `liveness` is, which is that of whoever the peer waits for here.
    pub fn show(&self, liveness: &Liveness) {
        self.link.show(liveness);
    }

    /// From now on each frame that this side takes or gets rid of is a turn of `liveness`; of nobody where it is none.
    pub fn count_for(&mut self, liveness: Option<&Liveness>) {
        self.link.count_for(liveness);
    }

    /// Ends the connection, since its peer let this side wait for too long.
    fn lose_patience(&mut self) {
        let error = self.link.stuck();
        self.give_up(error);
    }

    /// Whether the connection still stands. Its I/O thread notices the end as soon as this host's kernel does, whether or not
    /// anybody receives (unless 64 MiB are unread); to be woken by it, see [`wait_any`].
    pub fn is_open(&self) -> bool {
        self.link.is_open()
    }

    /// The peer's address.
    pub fn peer_address(&self) -> &str {
        &self.names.address
    }
}

/// How connections are protected.
#[derive(Clone, Debug)]
pub enum Protection {
    /// Mutual TLS 1.3 as this identity.
    Tls(Identity),
    /// No protection at all: anyone on the network can read, alter and impersonate. Only by explicit
    /// request, and stamped in every report.
    InsecurePlain,
}

impl Protection {
    /// Whether it is TLS.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

/// A peer that may connect: its role and the fingerprint of its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The role in its greeting, for example `party 1`.
    pub name: String,
    /// Its certificate. Without one only a plain connection is possible: over TLS it matches nothing.
    pub fingerprint: Option<Fingerprint>,
}

impl Pin {
    /// A peer known by its certificate.
    pub fn new(name: impl Into<String>, fingerprint: Fingerprint) -> Self {
        Self { name: name.into(), fingerprint: Some(fingerprint) }
    }

    /// A peer known by nothing, for [`Protection::InsecurePlain`].
    pub fn insecure(name: impl Into<String>) -> Self {
        Self { name: name.into(), fingerprint: None }
    }
}

/// All peers that may connect.
pub type Pins = Vec<Pin>;

/// Settings of one connection.
pub struct Options {
    /// Delay and rate of what this side sends.
    pub network: NetworkProfile,
    /// A sign of life is sent when nothing else was for this long.
    pub heartbeat: Duration,
    /// A peer that sends nothing for this long is given up.
    pub silence: Duration,
    /// Alters the frames this side sends, for tests.
    pub filter: Option<FrameFilter>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            network: NetworkProfile::LAN,
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(30),
            filter: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, heartbeat, silence, filter } = self;
        f.debug_struct("Options")
            .field("network", network)
            .field("heartbeat", heartbeat)
            .field("silence", silence)
            .field("filter", &filter.is_some())
            .finish()
    }
}
