//! How many connections a known caller has at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections of one place to one listener, at most. A node needs one a purpose, a few clients of one place as many more;
/// each may cost the memory of its queues (`link`).
pub const CONNECTIONS: usize = 20;

/// The connections of each place.
#[derive(Debug, Default)]
pub(super) struct Seats(Mutex<HashMap<String, usize>>);

impl Seats {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more for `place`; none where it has all it may have.
    pub fn take(self: &Arc<Self>, place: &str) -> Option<Seat> {
        let mut taken = self.lock();
        let count = taken.entry(place.to_owned()).or_default();
        if *count >= CONNECTIONS {
            return None;
        }
        *count += 1;
        Some(Seat { seats: self.clone(), place: place.to_owned() })
    }
}

/// The right to one connection, given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    place: String,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(count) = self.seats.lock().get_mut(&self.place) {
            *count -= 1;
        }
    }
}
