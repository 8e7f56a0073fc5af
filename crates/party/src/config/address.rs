use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A host (name or IP address) and a TCP port: `hospital.example:7701`, `10.0.0.5:7701`, `[::1]:7701`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    /// Name or IP address, without brackets.
    pub host: String,
    /// TCP port, not 0.
    pub port: u16,
}

impl Address {
    /// Whether only this machine can reach it, by the address alone: names other than `localhost` may lead anywhere.
    pub fn is_loopback(&self) -> bool {
        let ip = self.host.split('%').next().unwrap_or_default().parse::<IpAddr>();
        ip.map_or(self.host.eq_ignore_ascii_case("localhost"), |ip| ip.to_canonical().is_loopback())
    }

    /// Look the host up. An empty list is an error as well.
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        match found.is_empty() {
            true => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address")),
            false => Ok(found),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(s: &str) -> Result<Address, String> {
        let wrong = || {
            let shown: String = s.chars().take(80).flat_map(char::escape_debug).collect();
            format!("`{shown}` is not an address; write \"host:port\", for example \"hospital.example:7701\"")
        };
        let (host, port) = s.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().ok().filter(|&p| p != 0).ok_or_else(wrong)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').filter(|h| h.contains(':')).ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || host.len() > 253 || !host.chars().all(plain) {
            return Err(wrong());
        }
        Ok(Address { host: host.into(), port })
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(s: String) -> Result<Address, String> {
        s.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}
