//! Which targets the server end connects to: only those of its list.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::str::FromStr;

use tacit_net::reach::is_public;

use super::target::{Host, Target};

/// One line of the list: `HOST:PORTS`. HOST is a name, `*.example.org`, `*`, an address or a network such as `10.0.0.0/8` or
/// `[fd00::]/8`; PORTS a port, `8000-8999` or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    Name(String),
    /// All names below this domain.
    Below(String),
    Network {
        address: IpAddr,
        bits: u8,
    },
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, ports) = text.rsplit_once(':').ok_or("a rule is HOST:PORTS")?;
        let port =
            |text: &str| text.parse().map(NonZeroU16::get).map_err(|_| format!("{text:?} is not a port"));
        let ports = match ports.split_once('-') {
            _ if ports == "*" => 1..=u16::MAX,
            Some((first, last)) => port(first)?..=port(last)?,
            None => port(ports)?..=port(ports)?,
        };
        if ports.is_empty() {
            return Err("the first port is above the last".into());
        }
        Ok(Self { hosts: host.parse()?, ports })
    }
}

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::All);
        }
        let name = |text: &str| match text.parse()? {
            Host::Name(name) => Ok(name),
            Host::Address(_) => Err("an address stands where a name should".to_owned()),
        };
        if let Some(below) = text.strip_prefix("*.") {
            return Ok(Self::Below(format!(".{}", name(below)?)));
        }
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
        let Ok(address) = address.parse::<IpAddr>() else { return Ok(Self::Name(name(text)?)) };
        let all_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => {
                bits.parse().ok().filter(|bits| *bits <= all_bits).ok_or("not the length of a network")?
            }
            None => all_bits,
        };
        Ok(Self::Network { address, bits })
    }
}

fn in_network(ip: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (ip.to_bits() ^ network.to_bits()).checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            (ip.to_bits() ^ network.to_bits()).checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The list of rules. An empty list allows nothing.
#[derive(Clone, Debug, Default)]
pub struct AllowList(pub Vec<Rule>);

impl AllowList {
    /// True if some rule could allow `target`. A name that no rule allows is not even resolved.
    pub fn may_allow(&self, target: &Target) -> bool {
        self.0.iter().filter(|rule| rule.ports.contains(&target.port)).any(|rule| match &rule.hosts {
            Hosts::Network { .. } => true,
            _ => rule.names(&target.host),
        })
    }

    /// Checks the address that `target` resolved to. An address that is not public needs a rule for the address itself,
    /// because the owner of a name decides which addresses it has.
    pub fn allows(&self, target: &Target, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().filter(|rule| rule.ports.contains(&target.port)).any(|rule| match &rule.hosts {
            Hosts::Network { address, bits } => in_network(ip, *address, *bits),
            _ => rule.names(&target.host) && is_public(ip),
        })
    }
}

impl Rule {
    fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::All, _) => true,
            (Hosts::Name(name), Host::Name(host)) => name == host,
            (Hosts::Below(end), Host::Name(host)) => host.ends_with(end),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rules: &[&str], target: &str, ip: &str) -> bool {
        let list = AllowList(rules.iter().map(|rule| rule.parse().unwrap()).collect());
        let target = target.parse().unwrap();
        let allowed = list.allows(&target, ip.parse().unwrap());
        assert!(!allowed || list.may_allow(&target), "an allowed target is resolved");
        allowed
    }

    #[test]
    fn nothing_is_allowed_that_no_rule_names() {
        assert!(!allows(&[], "example.org:80", "1.1.1.1"));
        assert!(allows(&["example.org:80"], "Example.ORG.:80", "1.1.1.1"));
        assert!(!allows(&["example.org:80"], "example.org:81", "1.1.1.1"));
        assert!(!allows(&["example.org:80"], "1.1.1.1:80", "1.1.1.1"));
        assert!(allows(&["*.example.org:1-100"], "a.b.example.org:80", "1.1.1.1"));
        assert!(!allows(&["*.example.org:*"], "example.org:80", "1.1.1.1"));
        assert!(!allows(&["*.example.org:*"], "evilexample.org:80", "1.1.1.1"));
        assert!(allows(&["*:443"], "1.1.1.1:443", "1.1.1.1"));
    }

    #[test]
    fn a_name_that_resolves_to_a_private_address_needs_a_rule_for_the_address() {
        for ip in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!allows(&["*:*", "example.org:*"], "example.org:80", ip), "{ip}");
        }
        assert!(allows(&["10.0.0.0/8:80"], "example.org:80", "10.1.2.3"));
        assert!(allows(&["10.0.0.0/8:80"], "10.1.2.3:80", "::ffff:10.1.2.3"));
        assert!(!allows(&["10.0.0.0/8:80"], "11.1.2.3:80", "11.1.2.3"));
        assert!(allows(&["[fd00::]/8:*"], "[fd12::1]:80", "fd12::1"));
        assert!(allows(&["0.0.0.0/0:*"], "127.0.0.1:80", "127.0.0.1"));
        assert!(allows(&["[::1]:22"], "localhost:22", "::1"));
    }

    #[test]
    fn invalid_rules_are_refused() {
        for text in [
            "",
            "a",
            "a:",
            "a:0",
            "a:0x1",
            "a:5-1",
            "1.2.3.4/33:1",
            "*x:1",
            "a b:1",
            "127.1:1",
            "*.1.2.3.4:1",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
