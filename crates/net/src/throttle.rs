//! Emulation of a slower network inside the channel, since shaping in the kernel is often not allowed.

use std::fmt;
use std::time::{Duration, Instant};

use crate::NetError;

/// Delay and rate of a link; `lan` leaves the real network as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetworkProfile {
    /// Round-trip time in milliseconds; each direction delays by half of it.
    pub rtt_ms: f64,
    /// Rate of each direction in bytes a second; `None` is unlimited.
    pub bandwidth_bytes_per_s: Option<f64>,
}

const EXPECTED: &str = "write `lan`, `wan` (70 ms, 40 MB/s), or for example `rtt=60ms,bandwidth=293Mbit/s` \
                        (rates in kB/s, MB/s, GB/s, kbit/s, Mbit/s, Gbit/s; times in us, ms, s)";

impl NetworkProfile {
    /// Nothing added.
    pub const LAN: Self = Self { rtt_ms: 0.0, bandwidth_bytes_per_s: None };
    /// 70 ms round trip and 40 MB/s each way.
    pub const WAN: Self = Self { rtt_ms: 70.0, bandwidth_bytes_per_s: Some(40e6) };

    /// Reads a profile from the command line or a configuration file.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let refuse = || {
            let value = crate::frame::cut(text, 80).to_owned();
            NetError::Setting { what: "the network", value, expected: EXPECTED }
        };
        match text.trim() {
            "lan" => return Ok(Self::LAN),
            "wan" => return Ok(Self::WAN),
            _ => {}
        }
        let mut profile = Self::LAN;
        let (mut saw_rtt, mut saw_rate) = (false, false);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(refuse)?;
            match key.trim() {
                "rtt" if !saw_rtt => {
                    saw_rtt = true;
                    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
                    profile.rtt_ms = quantity(value, &units, 0.0, 60e3).ok_or_else(refuse)?;
                }
                "bandwidth" if !saw_rate => {
                    saw_rate = true;
                    let units = [
                        ("kB/s", 1e3),
                        ("MB/s", 1e6),
                        ("GB/s", 1e9),
                        ("kbit/s", 1e3 / 8.0),
                        ("Mbit/s", 1e6 / 8.0),
                        ("Gbit/s", 1e9 / 8.0),
                    ];
                    // Below 1 kB/s a single chunk would take minutes.
                    profile.bandwidth_bytes_per_s =
                        Some(quantity(value, &units, 1e3, 1e15).ok_or_else(refuse)?);
                }
                _ => return Err(refuse()),
            }
        }
        Ok(profile)
    }

    /// Whether frames pass unhindered.
    pub fn is_unlimited(&self) -> bool {
        self.rtt_ms <= 0.0 && self.bandwidth_bytes_per_s.is_none()
    }
}

/// A number with one of the units, scaled, within `min..=max`.
fn quantity(text: &str, units: &[(&str, f64)], min: f64, max: f64) -> Option<f64> {
    let text = text.trim();
    // Longest unit first, so that `ms` is not read as `s`.
    let (unit, scale) = units.iter().filter(|(u, _)| text.ends_with(u)).max_by_key(|(u, _)| u.len())?;
    let number: f64 = text[..text.len() - unit.len()].trim().parse().ok()?;
    let value = number * scale;
    (value.is_finite() && value >= min && value <= max).then_some(value)
}

impl fmt::Display for NetworkProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bandwidth_bytes_per_s {
            _ if self.is_unlimited() => write!(f, "lan"),
            None => write!(f, "rtt={}ms", self.rtt_ms),
            Some(rate) => write!(f, "rtt={}ms,bandwidth={}MB/s", self.rtt_ms, rate / 1e6),
        }
    }
}

/// When frames of one direction may leave: each occupies the link for `bytes / bandwidth`, one after the other, and
/// arrives half a round trip later; the delay is pipelined.
#[derive(Debug)]
pub(crate) struct Throttle {
    half_rtt: Duration,
    bandwidth: Option<f64>,
    link_free: Option<Instant>,
}

impl Throttle {
    /// `None` for a profile that changes nothing.
    pub fn new(profile: &NetworkProfile) -> Option<Self> {
        let half_rtt = Duration::from_secs_f64((profile.rtt_ms / 2e3).max(0.0));
        let bandwidth = profile.bandwidth_bytes_per_s.filter(|b| *b > 0.0);
        (!profile.is_unlimited()).then_some(Self { half_rtt, bandwidth, link_free: None })
    }

    /// When a frame of `bytes`, ready to leave at `ready`, is to be released. Call once a frame, in order.
    pub fn release(&mut self, ready: Instant, bytes: usize) -> Instant {
        let start = self.link_free.map_or(ready, |free| free.max(ready));
        let busy = self.bandwidth.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 / rate));
        let free = start + busy;
        self.link_free = Some(free);
        free + self.half_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_and_printed() {
        assert_eq!(NetworkProfile::parse("lan").unwrap(), NetworkProfile::LAN);
        assert_eq!(NetworkProfile::parse("wan").unwrap(), NetworkProfile::WAN);
        let orca = NetworkProfile::parse("rtt=60ms,bandwidth=293Mbit/s").unwrap();
        assert_eq!((orca.rtt_ms, orca.bandwidth_bytes_per_s), (60.0, Some(36.625e6)));
        let fast = NetworkProfile::parse(" bandwidth = 1.5 GB/s , rtt = 250us ").unwrap();
        assert_eq!((fast.rtt_ms, fast.bandwidth_bytes_per_s), (0.25, Some(1.5e9)));
        for profile in [NetworkProfile::LAN, NetworkProfile::WAN, orca, fast] {
            assert_eq!(NetworkProfile::parse(&profile.to_string()).unwrap(), profile);
        }
    }

    #[test]
    fn bad_profiles_are_refused() {
        for text in [
            "",
            "w",
            "rtt",
            "rtt=",
            "rtt=ms",
            "rtt=5",
            "rtt=-1ms",
            "rtt=nanms",
            "rtt=infms",
            "rtt=1ms,rtt=2ms",
            "bandwidth=0MB/s",
            "bandwidth=1MB",
            "bandwidth=1e400GB/s",
            "rtt=1ms,",
            "speed=1MB/s",
            "rtt=61s",
        ] {
            let error = NetworkProfile::parse(text).unwrap_err();
            assert!(matches!(error, NetError::Setting { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn frames_queue_for_the_link_and_overlap_in_flight() {
        let mut throttle =
            Throttle::new(&NetworkProfile { rtt_ms: 100.0, bandwidth_bytes_per_s: Some(1e6) }).unwrap();
        let t0 = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(throttle.release(t0, 10_000), t0 + ms(60));
        assert_eq!(throttle.release(t0, 10_000), t0 + ms(70));
        assert_eq!(throttle.release(t0 + ms(500), 0), t0 + ms(550));
    }
}
