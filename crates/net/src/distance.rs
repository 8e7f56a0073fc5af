//! How far parties are from each other, where a deployment leaves open what depends on it.
//!
//! Each party measures how long messages take and tells the others; all take the longest. It is public, and no argument of a protocol
//! depends on what is chosen by it.

use crate::{Channel, NetError, Step};
use std::time::{Duration, Instant};

/// The round trip in seconds from which parties are distant: what is waited for costs more than work then.
pub const DISTANT: f64 = 10e-3;

/// Round trips that are timed, after one message that everybody waits for. The quickest counts: others waited for a processor.
const TIMED: usize = 2;

/// Rounds that measuring takes.
pub const DISTANCE_ROUNDS: u64 = 2 * TIMED as u64 + 2;

/// The round trip to the peer that is furthest, of those that any party has, alike at all parties. All call it at the same step.
pub fn round_trip(step: &Step, peers: &mut [&mut dyn Channel]) -> Result<Duration, NetError> {
    let mut quickest = Duration::MAX;
    all(step, peers, 0)?;
    for _ in 0..TIMED {
        // the second message is sent when the peer's first is there: a round trip, whoever began earlier
        let start = Instant::now();
        all(step, peers, 0)?;
        all(step, peers, 0)?;
        quickest = quickest.min(start.elapsed());
    }
    let mine = u64::try_from(quickest.as_micros()).unwrap_or(u64::MAX);
    let longest = all(step, peers, mine)?.into_iter().fold(mine, u64::max);
    Ok(Duration::from_micros(longest))
}

/// A number to every peer, and theirs.
fn all(step: &Step, peers: &mut [&mut dyn Channel], number: u64) -> Result<Vec<u64>, NetError> {
    for peer in peers.iter_mut() {
        peer.send(step, number.to_le_bytes().to_vec())?;
    }
    let mut heard = Vec::with_capacity(peers.len());
    for peer in peers.iter_mut() {
        let bytes = peer.recv(step, size_of::<u64>())?;
        heard.push(u64::from_le_bytes(bytes.try_into().expect("as many bytes as were asked for")));
    }
    Ok(heard)
}
