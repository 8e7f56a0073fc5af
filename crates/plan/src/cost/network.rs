use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A link between parties.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Round-trip time in seconds.
    pub rtt: f64,
    /// Bytes a second in each direction.
    pub bandwidth: f64,
}

/// A network that was not understood.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a network; say lan, wan, local, or rtt=70ms,bandwidth=40MB/s (units: s, ms, us; B/s, kB/s, MB/s, GB/s, Mbit/s, Gbit/s)"
)]
pub struct NetworkError(String);

impl Network {
    /// 0.3 ms, 1.25 GB/s (10 Gbit/s).
    pub const LAN: Network = Network { rtt: 0.3e-3, bandwidth: 1.25e9 };
    /// Loopback: what sending takes there is counted as computing ([`super::Rates`]).
    pub const LOCAL: Network = Network { rtt: 0.0, bandwidth: f64::INFINITY };
    /// 70 ms, 40 MB/s.
    pub const WAN: Network = Network { rtt: 70e-3, bandwidth: 40e6 };

    /// Time of `rounds` rounds in which each side sends `bytes` in all. In a round both send at once, so it takes
    /// half a round trip.
    pub fn seconds(&self, rounds: u64, bytes: u64) -> f64 {
        rounds as f64 * self.rtt / 2.0 + bytes as f64 / self.bandwidth
    }
}

/// `lan`, `wan`, `local`, or as it is read: `rtt=60ms,bandwidth=36.6MB/s`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Network::LAN => f.write_str("lan"),
            Network::WAN => f.write_str("wan"),
            Network::LOCAL => f.write_str("local"),
            Network { rtt, bandwidth } => {
                // to a millionth of the unit: products with powers of ten are not exact
                let round = |x: f64| (x * 1e6).round() / 1e6;
                write!(f, "rtt={}ms,bandwidth={}MB/s", round(rtt * 1e3), round(bandwidth / 1e6))
            }
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        match text {
            "lan" => return Ok(Network::LAN),
            "wan" => return Ok(Network::WAN),
            "local" => return Ok(Network::LOCAL),
            _ => {}
        }
        let error = || NetworkError(text.chars().take(64).collect());
        let (mut rtt, mut bandwidth) = (None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(error)?;
            let slot = match key.trim() {
                "rtt" => (&mut rtt, TIMES),
                "bandwidth" => (&mut bandwidth, SPEEDS),
                _ => return Err(error()),
            };
            if slot.0.replace(quantity(value.trim(), slot.1).ok_or_else(error)?).is_some() {
                return Err(error());
            }
        }
        match (rtt, bandwidth) {
            (Some(rtt), Some(bandwidth)) if bandwidth > 0.0 => Ok(Network { rtt, bandwidth }),
            _ => Err(error()),
        }
    }
}

const TIMES: &[(&str, f64)] = &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const SPEEDS: &[(&str, f64)] =
    &[("Gbit/s", 125e6), ("Mbit/s", 125e3), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];

/// A non-negative number with one of `units`, or in the base unit.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let unit = units.iter().find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let (number, scale) = unit.unwrap_or((text, 1.0));
    let value = number.trim().parse::<f64>().ok()? * scale;
    (value.is_finite() && value >= 0.0).then_some(value)
}
