//! Waiting for several peers at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::TcpChannel;

/// Wakes a thread that waits for several connections; rung by their I/O threads.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps until the next ring, or one since the last wait; gives whether it rang before `deadline`.
    fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            rung = match left {
                None => self.changed.wait(rung).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.changed.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        *rung = false;
        true
    }
}

/// Waits until one of `channels` has something to say: a message has begun to come, or the connection has ended. Gives its
/// place among those given, or nothing where `deadline` passes first or none are given. The next [`recv`](crate::Channel::recv) there does not
/// wait for the peer to begin; where the connection has ended, it gives the error that names the peer.
///
/// For who needs an answer from each of several peers: in whatever order they answer, the end of any connection is seen at
/// once, also while another peer takes its time. A connection that has ended with nothing unread comes before one with a
/// message. Whoever has answered is left out of the next wait. Nothing is received here, and nothing waits busily.
///
/// The end is seen as soon as this host's kernel has it, unless 64 MiB of what the peer sent before are still unread.
pub fn wait_any<'a>(
    channels: impl IntoIterator<Item = &'a mut TcpChannel>,
    deadline: Option<Instant>,
) -> Option<usize> {
    let bell = Arc::new(Bell::default());
    let watched: Vec<Watched<'a>> =
        channels.into_iter().map(|channel| Watched::new(channel, bell.clone())).collect();
    if watched.is_empty() {
        return None;
    }
    loop {
        let ended = watched.iter().position(|w| w.0.link.has_ended());
        if let Some(place) = ended.or_else(|| watched.iter().position(|w| w.0.link.has_unread())) {
            return Some(place);
        }
        if !bell.wait(deadline) {
            return None;
        }
    }
}

/// The same, where each channel has the patience that was set for it, in a wait that began at `since` for all of them. A peer
/// that lets its run out is told so and given up; its place is given, and the next [`recv`](crate::Channel::recv) there says
/// why. Nothing where `deadline` passes first, which ends no connection.
pub fn wait_patiently<'a>(
    channels: impl IntoIterator<Item = &'a mut TcpChannel>,
    since: Instant,
    deadline: Option<Instant>,
) -> Option<usize> {
    let mut channels: Vec<&mut TcpChannel> = channels.into_iter().collect();
    loop {
        let due = channels.iter().filter_map(|c| c.link.due(since)).chain(deadline).min();
        if let Some(place) = wait_any(channels.iter_mut().map(|c| &mut **c), due) {
            return Some(place);
        }
        let now = Instant::now();
        // A turn that was shown meanwhile has moved the end of its wait.
        if let Some(place) = channels.iter().position(|c| c.link.due(since).is_some_and(|due| due <= now)) {
            channels[place].lose_patience();
            return Some(place);
        }
        if channels.is_empty() || deadline.is_some_and(|at| at <= now) {
            return None;
        }
    }
}

/// A channel whose news ring a bell, as long as this lives.
struct Watched<'a>(&'a TcpChannel);

impl<'a> Watched<'a> {
    fn new(channel: &'a mut TcpChannel, bell: Arc<Bell>) -> Self {
        channel.link.set_bell(Some(bell));
        Self(channel)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.link.set_bell(None);
    }
}
