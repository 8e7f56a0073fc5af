//! The source of transfers that suits the way between parties: where a deployment leaves it open.

use super::cost::{LEAST_BYTES, LEAST_WORK};
use crate::PrepareError;
use privet_net::{Channel, DISTANT, Step, round_trip};
use privet_ot::Source;

/// The source that suits a round trip of so many seconds.
pub(crate) fn suiting(round_trip: f64) -> Source {
    if round_trip < DISTANT { LEAST_WORK } else { LEAST_BYTES }
}

/// The source that suits the way to all peers, alike at all parties. All call it at the same step.
pub(super) fn source(step: &Step, peers: &mut [&mut dyn Channel]) -> Result<Source, PrepareError> {
    Ok(suiting(round_trip(step, peers)?.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_net::NetworkProfile;
    use privet_net::mem::MemOptions;
    use privet_testkit::Mesh;
    use std::time::Duration;

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
