//! Targets of connections.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Most bytes of a name (RFC 1035, §2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// Most bytes of a target as text: a name, a colon and a port.
pub const TARGET_BYTES_MAX: usize = NAME_BYTES_MAX + 6;

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name in lower case, without a trailing dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_name) {
            return Err("not the name of a host".into());
        }
        // Resolvers read 127.1 and 2130706433 as addresses, so text that looks like an address but is not in standard
        // form is refused.
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("neither a name nor an address".into());
        }
        Ok(Self::Name(name))
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > TARGET_BYTES_MAX {
            return Err("the target is too long".into());
        }
        let (host, port) = text.rsplit_once(':').ok_or("a target is HOST:PORT")?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or("a port is 1 to 65535")?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => Host::Address(
                address
                    .parse::<std::net::Ipv6Addr>()
                    .map(IpAddr::from)
                    .map_err(|_| "not an IPv6 address")?
                    .to_canonical(),
            ),
            None => host.parse()?,
        };
        Ok(Self { host, port })
    }
}
