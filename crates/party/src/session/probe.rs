//! A short call between two nodes that tests everything a job needs of the way between them: address, firewall,
//! certificates on both sides, versions, plan, deployment, clocks. Nothing secret passes.

use crate::config::Place;
use privet_net::{
    Channel, Fingerprint, Hello, NetError, Options, Pin, Protection, Step, TcpChannel, Terms, dial,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the greeting of a probe says it is for.
pub const PURPOSE: &str = "doctor";

/// For the other clock to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// The only step: both send their clock, milliseconds since 1970, eight bytes little endian.
fn clock_step() -> Step {
    Step::new(0xFFFF_FF00, "clock")
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The peer's clock minus ours, seconds; right to about the round trip.
    pub clock_skew_s: f64,
    /// Seconds of a round trip.
    pub round_trip_s: f64,
}

/// Call `peer`. Errors name what is wrong: nobody listens, another certificate, another plan, another
/// deployment, ...
pub fn call(
    address: &str,
    security: &Protection,
    peer: (&Place, Fingerprint),
    me: &Place,
    (plan_hash, terms): ([u8; 32], Terms),
    timeout: Duration,
) -> Result<Answer, NetError> {
    let pin = match security {
        Protection::Tls(_) => Pin::new(peer.0.to_string(), peer.1),
        Protection::InsecurePlain => Pin::insecure(peer.0.to_string()),
    };
    let hello = Hello::new(&me.to_string(), plan_hash, PURPOSE, terms);
    let (mut channel, _) = dial(address, security, &pin, &hello, Options::default(), timeout)?;
    channel.set_patience(Some(PATIENCE));
    let sent = now_ms();
    let theirs = channel.exchange(&clock_step(), sent.to_le_bytes().to_vec(), 8)?;
    let received = now_ms();
    let theirs = theirs.try_into().map(u64::from_le_bytes).unwrap_or_default();
    let middle = sent as f64 + received.saturating_sub(sent) as f64 / 2.0;
    Ok(Answer {
        clock_skew_s: (theirs as f64 - middle) / 1000.0,
        round_trip_s: received.saturating_sub(sent) as f64 / 1000.0,
    })
}

/// Answer a probe, on a connection whose greeting says [`PURPOSE`].
pub fn answer(mut channel: TcpChannel) -> Result<(), NetError> {
    channel.set_patience(Some(PATIENCE));
    channel.recv(&clock_step(), 8)?;
    channel.send(&clock_step(), now_ms().to_le_bytes().to_vec())
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::links::Purpose;
    use super::super::testing::{client, deployment, links};
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_node_that_answers_and_says_nothing_is_given_up() {
        let text = deployment();
        let party = links(&text, &Place::Party(0));
        let listener = party.listen().unwrap();
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| {
                let me = links(&text, &client("eve"));
                let deployment = &me.config.deployment;
                let address = deployment.address(&Place::Party(0)).unwrap().to_string();
                let pinned = *deployment.fingerprint(&Place::Party(0)).unwrap();
                let asked = Instant::now();
                let (place, plain) = (Place::Party(0), Protection::InsecurePlain);
                let said = (super::super::testing::program().hash(), deployment.terms());
                let answer = call(&address, &plain, (&place, pinned), &client("eve"), said, PATIENCE);
                (answer.unwrap_err(), asked.elapsed())
            });
            let caller = listener.accept(Duration::from_secs(20)).unwrap();
            let _silent = party.answer(caller, Purpose::Doctor).unwrap();
            let (error, waited) = calls.join().unwrap();
            assert!(matches!(error, NetError::Stuck { seconds: 10, .. }), "{error}");
            assert!(waited < 3 * PATIENCE, "{waited:?}");
        });
    }
}
