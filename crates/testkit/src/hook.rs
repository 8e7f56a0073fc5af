//! A channel with a hand on it.

use privet_net::{Channel, Meter, NetError, Step};
use std::sync::Arc;

/// What happens on one end of a link: to what it sends, and around what it receives. Everything is passed on unchanged
/// where a hook does not say otherwise.
pub trait Hook: Send {
    /// In place of sending `payload` over `link`.
    fn send(&mut self, link: &mut dyn Channel, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        link.send(step, payload)
    }

    /// Before a receive that may block.
    fn waits(&mut self, _step: &Step) {}

    /// After it; what this gives back is what the receiver gets.
    fn received(&mut self, _step: &Step, result: Result<Vec<u8>, NetError>) -> Result<Vec<u8>, NetError> {
        result
    }

    /// In place of telling the peer why this end gives up.
    fn aborts(&mut self, link: &mut dyn Channel, reason: &str) {
        link.abort(reason);
    }

    /// Before the end is dropped.
    fn leaves(&mut self, _link: &mut dyn Channel) {}
}

/// A channel that goes through a hook.
pub struct Hooked<C: Channel, H: Hook> {
    pub(crate) link: C,
    pub(crate) hook: H,
}

impl<C: Channel, H: Hook> Hooked<C, H> {
    /// Puts `hook` on `link`.
    pub fn on(link: C, hook: H) -> Self {
        Self { link, hook }
    }
}

impl<C: Channel, H: Hook> Channel for Hooked<C, H> {
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        self.hook.send(&mut self.link, step, payload)
    }

    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        self.hook.waits(step);
        let result = self.link.recv(step, len);
        self.hook.received(step, result)
    }

    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        self.hook.waits(step);
        let result = self.link.recv_up_to(step, max);
        self.hook.received(step, result)
    }

    fn peer(&self) -> &str {
        self.link.peer()
    }

    fn meter(&self) -> Arc<Meter> {
        self.link.meter()
    }

    fn abort(&mut self, reason: &str) {
        self.hook.aborts(&mut self.link, reason);
    }

    fn sever(&mut self) {
        self.link.sever();
    }
}

impl<C: Channel, H: Hook> Drop for Hooked<C, H> {
    fn drop(&mut self) {
        self.hook.leaves(&mut self.link);
    }
}
