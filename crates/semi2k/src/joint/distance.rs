//! How far parties are from each other, and the source of transfers that suits it: where a deployment leaves it open.
//!
//! Each party measures how long messages take and tells the others; all take the longest. It is public, and none of the
//! protocol's arguments depends on what is chosen.

use super::cost::{LEAST_BYTES, LEAST_WORK};
use crate::PrepareError;
use privet_net::{Channel, Step};
use privet_ot::Source;
use std::time::{Duration, Instant};

/// The round trip in seconds from which parties are distant: what is waited for costs more than work then.
const DISTANT: f64 = 10e-3;

/// Round trips that are timed, after one message that everybody waits for. The quickest counts: others waited for a processor.
const TIMED: usize = 2;

/// Rounds that it takes.
pub(super) const ROUNDS: u64 = 2 * TIMED as u64 + 2;

/// The source that suits a round trip of so many seconds.
pub(crate) fn suiting(round_trip: f64) -> Source {
    if round_trip < DISTANT { LEAST_WORK } else { LEAST_BYTES }
}

/// The source that suits the way to all peers, alike at all parties. All call it at the same step.
pub(super) fn source(step: &Step, peers: &mut [&mut dyn Channel]) -> Result<Source, PrepareError> {
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
    Ok(suiting(Duration::from_micros(longest).as_secs_f64()))
}

/// A number to every peer, and theirs.
fn all(step: &Step, peers: &mut [&mut dyn Channel], number: u64) -> Result<Vec<u64>, PrepareError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use privet_net::NetworkProfile;
    use privet_net::mem::MemOptions;
    use privet_testkit::Mesh;

    #[test]
    fn all_parties_take_what_suits_the_longest_way() {
        assert_eq!([suiting(0.3e-3), suiting(70e-3)], [LEAST_WORK, LEAST_BYTES]);
        let far = |from: usize, to: usize| {
            let network = match from.min(to) {
                0 => NetworkProfile::LAN,
                _ => NetworkProfile { rtt_ms: 80.0, ..NetworkProfile::LAN },
            };
            MemOptions { network, ..MemOptions::named(format!("party {from}")) }
        };
        let all = Mesh::with(3, far).run(|links| {
            // not all begin at once
            std::thread::sleep(Duration::from_millis(45 * links.me() as u64));
            let mut peers: Vec<&mut dyn Channel> = links.others().map(|(_, channel)| channel).collect();
            source(&Step::new(1, "distance"), &mut peers).unwrap()
        });
        assert_eq!(all, [LEAST_BYTES; 3], "party 0 is near both others, who are far from each other");
    }
}
