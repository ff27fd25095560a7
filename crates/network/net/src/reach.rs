//! Which servers may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::error::NetError;

/// Which addresses may be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All: the user names the server.
    All,
    /// Public addresses, and hosts listed in `also`: the URL comes from a server or from a client of the proxy.
    Public {
        /// Names and addresses, in lower case.
        also: Vec<String>,
        /// The remedy that the error message names.
        hint: &'static str,
        /// The proxy's own address, which it must not connect to.
        proxy: Option<SocketAddr>,
    },
}

impl Reach {
    /// Checks the `address` that `host` resolved to.
    ///
    /// # Errors
    /// If it may not be connected to.
    pub fn permit(&self, host: &str, address: SocketAddr) -> Result<(), NetError> {
        let Self::Public { also, hint, proxy } = self else { return Ok(()) };
        let ip = address.ip().to_canonical();
        let refused = |hint| NetError::Private { host: host.to_owned(), address: ip, hint };
        let is_own = proxy.is_some_and(|proxy| {
            proxy.port() == address.port()
                && (proxy.ip() == ip || proxy.ip().is_unspecified() && ip.is_loopback())
        });
        if is_own {
            return Err(refused(": it is this proxy's own"));
        }
        let named = |entry: &String| entry == host || entry.parse() == Ok(ip);
        if is_public(ip) || also.iter().any(named) { Ok(()) } else { Err(refused(hint)) }
    }
}

/// True for addresses of the public internet (the IANA registries of special-purpose addresses, RFC 6890).
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 224
        // Shared address space (RFC 6598), IETF protocols (RFC 6890), 6to4 relays (RFC 7526), benchmarks (RFC 2544).
        || (a, b & 0xc0) == (100, 64)
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a, b & 0xfe) == (198, 18);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |at: usize| {
        let [a, b] = segments[at].to_be_bytes();
        let [c, d] = segments[at + 1].to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Embedded IPv4 addresses: NAT64 (RFC 6052), 6to4 (RFC 3056).
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(6),
        [0x2002, ..] => embedded(1),
        // Teredo and other IETF protocols, documentation (RFC 3849, 9637).
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast is 2000::/3 (RFC 4291); all other addresses are special or unassigned.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_told_from_public_ones() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "100.128.0.1",
            "198.20.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b:1::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }

    #[test]
    fn named_hosts_are_reached_and_the_proxy_itself_never() {
        let proxy = Some("127.0.0.1:3128".parse().unwrap());
        let reach = Reach::Public { also: vec!["127.0.0.1".into(), "box".into()], hint: "", proxy };
        let permits = |host: &str, address: &str| reach.permit(host, address.parse().unwrap()).is_ok();
        assert!(permits("localhost", "127.0.0.1:80"));
        assert!(permits("localhost", "[::ffff:127.0.0.1]:80"));
        assert!(!permits("localhost", "127.0.0.1:3128"));
        assert!(!permits("localhost", "[::1]:80"));
        assert!(permits("box", "192.168.0.9:80"));
        assert!(!permits("evil.example", "192.168.0.9:80"), "another name for the same address");
    }
}
