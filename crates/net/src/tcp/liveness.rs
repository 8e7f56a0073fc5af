//! A sign that a peer's own work goes on, beside the heartbeats that only show that its process stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the turns of whoever is waited for: a service, a deal, a stream.
///
/// Connections that [`show`](super::TcpChannel::show) it tell the peer in their heartbeats how far it is. A peer may then wait
/// for as long as it moves ([`set_patience_for_turns`](super::TcpChannel::set_patience_for_turns)). So a turn must be counted by
/// the thread that is waited for, and only where its next wait has a bound. A thread that hangs counts none.
#[derive(Clone, Debug, Default)]
pub struct Liveness(Arc<AtomicU64>);

impl Liveness {
    /// No turn so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// It got further, or looked around and found nothing to do.
    pub fn turn(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
