//! A channel that misbehaves on purpose: for tests of every error path above the channel.
//!
//! Faults here act on whole messages, as a buggy or dishonest peer would cause them: frames around them are sound.
//! Damage below, on frames in transit, is injected with a [`crate::FrameFilter`].

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::{Channel, Meter, NetError, Step};

/// Which outgoing message a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The n-th message sent over this channel, counted from 0.
    Message(u64),
    /// The first message sent at the step with this id.
    Step(u32),
}

/// What happens to the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is not sent.
    Drop,
    /// It is sent this much later.
    Delay(Duration),
    /// Only its first bytes are sent.
    Truncate(usize),
    /// The bit with this number is inverted (taken modulo the length; an empty message gets one byte).
    FlipBit(usize),
    /// It is sent twice, as a network would: the sender knows nothing of the second, not even that the peer had ended before it.
    Duplicate,
    /// It is sent after the next message.
    Reorder,
    /// Its payload and that of the next message change places, the steps stay.
    Swap,
    /// The connection is severed in its place, as if the process were killed.
    Kill,
}

/// A [`Channel`] with planned faults on what it sends; what it receives is untouched. Each fault happens once.
pub struct Faulty<C> {
    inner: C,
    faults: Vec<(When, Action)>,
    count: u64,
    held: Option<(Action, Step, Vec<u8>)>,
}

impl<C: Channel> Faulty<C> {
    /// Wraps `inner`; where several faults hit one message, the first in the list happens.
    pub fn new(inner: C, faults: impl IntoIterator<Item = (When, Action)>) -> Self {
        Self { inner, faults: faults.into_iter().collect(), count: 0, held: None }
    }

    /// Faults that have not happened yet: empty at the end of a test that reached them all.
    pub fn pending(&self) -> &[(When, Action)] {
        &self.faults
    }

    /// The channel inside.
    pub fn into_inner(self) -> C {
        self.inner
    }

    fn take_fault(&mut self, step: &Step) -> Option<Action> {
        let number = self.count;
        self.count += 1;
        let hit = self.faults.iter().position(|(when, _)| match *when {
            When::Message(n) => n == number,
            When::Step(id) => id == step.id,
        })?;
        Some(self.faults.remove(hit).1)
    }

    /// Sends a message together with the one that was held back for it.
    fn pass(&mut self, step: &Step, mut payload: Vec<u8>) -> Result<(), NetError> {
        match self.held.take() {
            None => self.inner.send(step, payload),
            Some((Action::Swap, earlier, mut first)) => {
                std::mem::swap(&mut first, &mut payload);
                self.inner.send(&earlier, first)?;
                self.inner.send(step, payload)
            }
            Some((_, earlier, first)) => {
                self.inner.send(step, payload)?;
                self.inner.send(&earlier, first)
            }
        }
    }
}

impl<C: Channel> Channel for Faulty<C> {
    fn send(&mut self, step: &Step, mut payload: Vec<u8>) -> Result<(), NetError> {
        match self.take_fault(step) {
            None => {}
            Some(Action::Drop) => return Ok(()),
            Some(Action::Delay(time)) => thread::sleep(time),
            Some(Action::Truncate(len)) => payload.truncate(len),
            Some(Action::FlipBit(_)) if payload.is_empty() => payload.push(1),
            Some(Action::FlipBit(bit)) => {
                let bit = bit % (8 * payload.len());
                payload[bit / 8] ^= 1 << (bit % 8);
            }
            Some(Action::Duplicate) => {
                self.pass(step, payload.clone())?;
                let _ = self.inner.send(step, payload);
                return Ok(());
            }
            Some(action @ (Action::Reorder | Action::Swap)) => {
                // At most one message is held: one already waiting goes first, unharmed.
                if let Some((_, earlier, first)) = self.held.replace((action, step.clone(), payload)) {
                    self.inner.send(&earlier, first)?;
                }
                return Ok(());
            }
            Some(Action::Kill) => self.inner.sever(),
        }
        self.pass(step, payload)
    }

    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        self.inner.recv(step, len)
    }

    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        self.inner.recv_up_to(step, max)
    }

    fn peer(&self) -> &str {
        self.inner.peer()
    }

    fn meter(&self) -> Arc<Meter> {
        self.inner.meter()
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }

    fn sever(&mut self) {
        self.inner.sever();
    }
}
