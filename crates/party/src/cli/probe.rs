//! A short call between two nodes that tests everything a job needs of the way between them: address, firewall,
//! certificates on both sides, versions, plan, clocks. Nothing secret passes.

use crate::config::Place;
use privet_net::tcp::Incoming;
use privet_net::{Channel, Fingerprint, Hello, NetError, Options, Pin, Protection, Step, dial};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the greeting of a probe says it is for.
pub const PURPOSE: &str = "doctor";

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

/// Call `peer`. Errors name what is wrong: nobody listens, another certificate, another plan, ...
pub fn call(
    address: &str,
    security: &Protection,
    peer: (&Place, Fingerprint),
    me: &Place,
    plan_hash: [u8; 32],
    timeout: Duration,
) -> Result<Answer, NetError> {
    let pin = match security {
        Protection::Tls(_) => Pin::new(peer.0.to_string(), peer.1),
        Protection::InsecurePlain => Pin::insecure(peer.0.to_string()),
    };
    let hello = Hello::new(&me.to_string(), [0; 16], plan_hash, PURPOSE);
    let (mut channel, _) = dial(address, security, &pin, &hello, Options::default(), timeout)?;
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

/// Answer a probe: for a listener that took a call whose greeting says [`PURPOSE`].
pub fn answer(incoming: Incoming, me: &Place, plan_hash: [u8; 32]) -> Result<(), NetError> {
    // The caller knows no session; its own is repeated.
    let hello = Hello::new(&me.to_string(), incoming.hello().session, plan_hash, PURPOSE);
    let mut channel = incoming.answer(&hello, Options::default())?;
    channel.recv(&clock_step(), 8)?;
    channel.send(&clock_step(), now_ms().to_le_bytes().to_vec())
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
