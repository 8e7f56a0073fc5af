//! Connections that wait for their next use: only the first one takes a handshake.

use privet_net::TcpChannel;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections to one peer that nobody uses, at most so many. Heartbeats go on, so that a peer that is gone is noticed.
pub(super) struct Idle {
    most: usize,
    channels: Mutex<Vec<TcpChannel>>,
}

impl Idle {
    /// None so far.
    pub fn new(most: usize) -> Idle {
        Idle { most, channels: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TcpChannel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that its peer has not ended, as far as this side knows.
    pub fn take(&self) -> Option<TcpChannel> {
        loop {
            let channel = self.lock().pop()?;
            if channel.is_open() {
                return Some(channel);
            }
        }
    }

    /// Keep one on which both sides have said all they had to say. One too many is ended.
    pub fn keep(&self, mut channel: TcpChannel) {
        // Whoever takes it says how long its peer may be silent.
        channel.set_patience(None);
        let mut channels = self.lock();
        if channels.len() < self.most {
            return channels.push(channel);
        }
        // Its end waits for the peer, and nobody is to wait for that here.
        drop(channels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Place;
    use crate::session::links::Purpose;
    use crate::session::testing::{deployment, links};
    use privet_net::Channel;
    use std::time::{Duration, Instant};

    #[test]
    fn what_is_kept_comes_back_unless_its_peer_ended_it_and_too_many_are_ended() {
        let text = deployment();
        let (here, there) = (links(&text, &Place::Party(0)), links(&text, &Place::Party(1)));
        let listener = here.listen().unwrap();
        let connect = || {
            std::thread::scope(|scope| {
                let dialled = scope.spawn(|| there.dial(&Place::Party(0), Purpose::Preparation).unwrap());
                let caller = listener.accept(Duration::from_secs(20)).unwrap();
                (here.answer(caller, Purpose::Preparation).unwrap(), dialled.join().unwrap())
            })
        };
        let idle = Idle::new(2);
        assert!(idle.take().is_none());
        let (lines, mut peers): (Vec<_>, Vec<_>) = (0..3).map(|_| connect()).unzip();
        lines.into_iter().for_each(|line| idle.keep(line));
        // The third was one too many, and the second is ended by its peer.
        let deadline = Instant::now() + Duration::from_secs(20);
        let until_ended = |ended: &dyn Fn() -> bool| {
            while !ended() {
                assert!(Instant::now() < deadline);
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        until_ended(&|| !peers[2].is_open());
        drop(peers.swap_remove(1));
        until_ended(&|| idle.lock().iter().filter(|line| line.is_open()).count() == 1);
        let mut first = idle.take().unwrap();
        let step = privet_net::Step::new(1, "word");
        peers[0].send(&step, vec![7]).unwrap();
        assert_eq!(first.recv(&step, 1).unwrap(), [7]);
        assert!(idle.take().is_none());
    }
}
