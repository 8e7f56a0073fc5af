//! A channel that misbehaves on purpose, for tests of every error path of what uses it.
//!
//! Faults here act on whole messages, as a buggy or dishonest party would cause them: frames around them are sound.
//! Damage of frames in transit is injected with a [`privet_net::FrameFilter`].

use crate::hook::{Hook, Hooked};
use privet_net::{Channel, NetError, Step};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Which outgoing message a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The n-th message sent under this script, counted from 0.
    Message(u64),
    /// The first message sent at the step with this id.
    Step(u32),
}

/// What happens to the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is not sent.
    Drop,
    /// It is sent this much later.
    Delay(Duration),
    /// Only its first bytes are sent.
    Truncate(usize),
    /// The bit with this number is inverted (taken modulo the length; an empty message gets one byte).
    FlipBit(usize),
    /// This difference is made to its bits.
    Xor(Vec<u8>),
    /// These bytes are sent in its place.
    Replace(Vec<u8>),
    /// It is sent twice, as a network would: the sender knows nothing of the second, not even that the peer had ended before it.
    Duplicate,
    /// It is sent after the next message on its link.
    Reorder,
    /// Its payload and that of the next message on its link change places, the steps stay.
    Swap,
    /// It is sent under the step whose number is larger by this, modulo 2^32.
    OtherStep(u32),
    /// The connection is severed in its place, as if the process were killed.
    Kill,
}

/// Planned faults and how many messages have passed. Clones share both, so that the links of one party count together.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    faults: Vec<(When, Action)>,
    count: u64,
}

impl Script {
    /// Each fault happens once; where several hit one message, the first in the list happens.
    pub fn new(faults: impl IntoIterator<Item = (When, Action)>) -> Script {
        let plan = Plan { faults: faults.into_iter().collect(), count: 0 };
        Script(Arc::new(Mutex::new(plan)))
    }

    /// Faults that have not happened yet: empty at the end of a test that reached them all.
    pub fn pending(&self) -> Vec<(When, Action)> {
        self.lock().faults.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, step: &Step) -> Option<Action> {
        let mut plan = self.lock();
        let number = plan.count;
        plan.count += 1;
        let hit = plan.faults.iter().position(|(when, _)| match *when {
            When::Message(n) => n == number,
            When::Step(id) => id == step.id,
        })?;
        Some(plan.faults.remove(hit).1)
    }
}

/// The hook of a faulty link: its script, and the message that it holds back.
#[derive(Debug)]
pub struct Faults {
    script: Script,
    held: Option<(Action, Step, Vec<u8>)>,
}

/// A [`Channel`] with planned faults on what it sends; what it receives is untouched.
pub type Faulty<C> = Hooked<C, Faults>;

impl<C: Channel> Faulty<C> {
    /// `link` with faults of its own.
    pub fn new(link: C, faults: impl IntoIterator<Item = (When, Action)>) -> Self {
        Faulty::under(link, &Script::new(faults))
    }

    /// `link` under a script that other links may share.
    pub fn under(link: C, script: &Script) -> Self {
        Hooked::on(link, Faults { script: script.clone(), held: None })
    }

    /// Faults that have not happened yet.
    pub fn pending(&self) -> Vec<(When, Action)> {
        self.hook.script.pending()
    }
}

impl Faults {
    /// Sends a message together with the one that was held back for it.
    fn pass(&mut self, link: &mut dyn Channel, step: &Step, mut payload: Vec<u8>) -> Result<(), NetError> {
        match self.held.take() {
            None => link.send(step, payload),
            Some((Action::Swap, earlier, mut first)) => {
                std::mem::swap(&mut first, &mut payload);
                link.send(&earlier, first)?;
                link.send(step, payload)
            }
            Some((_, earlier, first)) => {
                link.send(step, payload)?;
                link.send(&earlier, first)
            }
        }
    }
}

impl Hook for Faults {
    fn send(&mut self, link: &mut dyn Channel, step: &Step, mut payload: Vec<u8>) -> Result<(), NetError> {
        match self.script.next(step) {
            None => {}
            Some(Action::Drop) => return Ok(()),
            Some(Action::Delay(time)) => thread::sleep(time),
            Some(Action::Truncate(len)) => payload.truncate(len),
            Some(Action::FlipBit(_)) if payload.is_empty() => payload.push(1),
            Some(Action::FlipBit(bit)) => {
                let bit = bit % (8 * payload.len());
                payload[bit / 8] ^= 1 << (bit % 8);
            }
            Some(Action::Xor(bits)) => payload.iter_mut().zip(bits).for_each(|(byte, bits)| *byte ^= bits),
            Some(Action::Replace(bytes)) => payload = bytes,
            Some(Action::Duplicate) => {
                self.pass(link, step, payload.clone())?;
                let _ = link.send(step, payload);
                return Ok(());
            }
            Some(action @ (Action::Reorder | Action::Swap)) => {
                // At most one message is held: one already waiting goes first, unharmed.
                if let Some((_, earlier, first)) = self.held.replace((action, step.clone(), payload)) {
                    link.send(&earlier, first)?;
                }
                return Ok(());
            }
            Some(Action::OtherStep(by)) => {
                return self.pass(link, &Step::new(step.id.wrapping_add(by), step.name.clone()), payload);
            }
            Some(Action::Kill) => link.sever(),
        }
        self.pass(link, step, payload)
    }
}

/// The hook of every link of a party that dies: see [`crate::Mesh::dies`].
#[derive(Clone, Debug)]
pub(crate) struct Dying {
    /// The first step at which it no longer sends.
    pub at: u32,
    pub dead: Arc<AtomicBool>,
}

impl Hook for Dying {
    fn send(&mut self, link: &mut dyn Channel, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        if step.id >= self.at {
            self.dead.store(true, Ordering::Relaxed);
        }
        self.leaves(link);
        link.send(step, payload)
    }

    fn aborts(&mut self, link: &mut dyn Channel, reason: &str) {
        self.leaves(link);
        link.abort(reason);
    }

    fn leaves(&mut self, link: &mut dyn Channel) {
        if self.dead.load(Ordering::Relaxed) {
            link.sever();
        }
    }
}
