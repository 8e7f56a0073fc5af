//! The interface that protocols are written against.

use std::fmt;
use std::sync::Arc;

use crate::{Meter, NetError};

/// A point in the protocol where parties talk: its number in the plan's order and a name for people.
///
/// Both parties must be at the same step when a message passes; the number is compared, the name appears in
/// errors only. Names are public: they come from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Position in the plan, equal on all parties.
    pub id: u32,
    /// For example `conv2 / open`.
    pub name: Arc<str>,
}

impl Step {
    /// A step from its number and name.
    pub fn new(id: u32, name: impl Into<Arc<str>>) -> Self {
        Self { id, name: name.into() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

/// An ordered, reliable, two-way connection to one peer.
///
/// Messages arrive in the order they were sent. An error is final: every later call returns it again, because
/// after a disagreement about one message nothing that follows can be trusted.
pub trait Channel: Send {
    /// Queues `payload` for the peer and returns as soon as it is queued. A small one may leave before that; a peer that takes nothing in is not waited for.
    ///
    /// Blocks only while earlier messages beyond the queue's bound are unsent; incoming messages are
    /// still taken in meanwhile, so two parties that both send first cannot lock each other up.
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError>;

    /// Waits for the peer's next message, which must belong to `step` and have exactly `len` bytes.
    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError>;

    /// Waits for the peer's next message, which must belong to `step` and have at most `max` bytes.
    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError>;

    /// [`Channel::recv`] without putting the message together: `each` gets its pieces, in order, as they arrive. Large messages
    /// are so read while they are near, and the last piece alone is waited for. After an error some were handed over.
    fn recv_pieces(&mut self, step: &Step, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), NetError> {
        each(&self.recv(step, len)?);
        Ok(())
    }

    /// Sends `payload` and receives `len` bytes at the same step: one round. Both peers may call it at once
    /// with payloads of any size.
    fn exchange(&mut self, step: &Step, payload: Vec<u8>, len: usize) -> Result<Vec<u8>, NetError> {
        self.send(step, payload)?;
        self.recv(step, len)
    }

    /// A buffer for a message to come, with any contents: that of one that was sent, or an empty one. Memory that is new each
    /// time costs as much as encrypting what is put there.
    fn spare(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// The peer's name, for example `party 1`.
    fn peer(&self) -> &str;

    /// The counters of this channel.
    fn meter(&self) -> Arc<Meter>;

    /// Tells the peer why this side gives up, and closes. `reason` must be public: it appears in the peer's log.
    fn abort(&mut self, reason: &str);

    /// Closes without a word, as a process that is killed does. For tests of the peer's error path.
    fn sever(&mut self);
}

impl<C: Channel + ?Sized> Channel for Box<C> {
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        (**self).send(step, payload)
    }
    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        (**self).recv(step, len)
    }
    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        (**self).recv_up_to(step, max)
    }
    fn recv_pieces(&mut self, step: &Step, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), NetError> {
        (**self).recv_pieces(step, len, each)
    }
    fn exchange(&mut self, step: &Step, payload: Vec<u8>, len: usize) -> Result<Vec<u8>, NetError> {
        (**self).exchange(step, payload, len)
    }
    fn spare(&mut self) -> Vec<u8> {
        (**self).spare()
    }
    fn peer(&self) -> &str {
        (**self).peer()
    }
    fn meter(&self) -> Arc<Meter> {
        (**self).meter()
    }
    fn abort(&mut self, reason: &str) {
        (**self).abort(reason);
    }
    fn sever(&mut self) {
        (**self).sever();
    }
}
