//! Where the parties' connections for one preparation find each other: the door brings them, the preparation takes them.
//!
//! A connection names its preparation by the digest of the order, so two parties that were given different orders never
//! meet. It may come before this party has heard party 0's last word, and waits for that.

use super::control::Talk;
use super::door::Seat;
use privet_net::{Channel, NetError, TcpChannel};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A preparation: the digest of its order.
pub(super) type Name = [u8; 32];

/// A connection with its share of what its party may have.
pub(super) type Arrived = (TcpChannel, Seat);

/// Connections that wait for their preparation.
#[derive(Clone, Default)]
pub(super) struct Meetings(Arc<Room>);

#[derive(Default)]
struct Room {
    waiting: Mutex<BTreeMap<(Name, u8), Arrived>>,
    changed: Condvar,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Name, u8), Arrived>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for `found`, until `deadline`.
    fn wait<T>(
        &self,
        deadline: Instant,
        mut found: impl FnMut(&mut BTreeMap<(Name, u8), Arrived>) -> Option<T>,
    ) -> Option<T> {
        let mut waiting = self.lock();
        loop {
            if let Some(found) = found(&mut waiting) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            waiting = self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Meetings {
    /// Hear which preparation a connection is for, and hold it until that takes it, no longer than `patience`.
    pub fn bring(
        &self,
        party: u8,
        mut channel: TcpChannel,
        seat: Seat,
        patience: Duration,
    ) -> Result<(), NetError> {
        channel.set_patience(Some(patience));
        let name: Name = channel.recv(&Talk::Order.step(), 32)?.try_into().unwrap_or_default();
        let key = (name, party);
        match self.0.lock().entry(key) {
            Entry::Occupied(_) => {
                channel.abort("this party has a connection for that preparation already");
                return Ok(());
            }
            Entry::Vacant(place) => drop(place.insert((channel, seat))),
        }
        self.0.changed.notify_all();
        let taken =
            self.0.wait(Instant::now() + patience, |waiting| (!waiting.contains_key(&key)).then_some(()));
        if taken.is_none()
            && let Some((mut channel, _seat)) = self.0.lock().remove(&key)
        {
            channel.abort("this party knows of no such preparation");
        }
        Ok(())
    }

    /// The connection of a party for a preparation, once it is there.
    pub fn take(&self, name: &Name, party: u8, deadline: Instant) -> Option<Arrived> {
        let taken = self.0.wait(deadline, |waiting| waiting.remove(&(*name, party)));
        self.0.changed.notify_all();
        taken
    }
}
