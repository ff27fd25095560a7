//! Addresses at which other machines reach a server.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// The addresses of a server that is bound to `bound`: for 0.0.0.0 and `[::]`, those of all interfaces that other machines
/// can use; loopback, if there are none. IPv6 addresses of one link are left out, because each machine names the link
/// differently.
pub fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let interfaces = getifaddrs().into_iter().flatten();
    let up = interfaces.filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP));
    let addresses: Vec<IpAddr> = up
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })
        .collect();
    usable(bound, &addresses)
}

/// Those of `addresses` that reach `bound`, an unspecified address.
fn usable(bound: SocketAddr, addresses: &[IpAddr]) -> Vec<SocketAddr> {
    let is_usable = |address: &&IpAddr| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => bound.is_ipv6() && !v6.is_loopback() && !v6.is_unicast_link_local(),
    };
    let mut usable: Vec<_> = addresses.iter().filter(is_usable).copied().collect();
    usable.sort();
    usable.dedup();
    if usable.is_empty() {
        let (v4, v6) = (std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into());
        usable.push(if bound.is_ipv6() { v6 } else { v4 });
    }
    usable.into_iter().map(|address| SocketAddr::new(address, bound.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_friend_gets_addresses_that_lead_here() {
        let addresses: Vec<IpAddr> =
            ["127.0.0.1", "192.168.1.5", "169.254.3.4", "::1", "fe80::1", "2001:db8::7", "192.168.1.5"]
                .map(|address| address.parse().unwrap())
                .to_vec();
        let shown = |bound: &str| {
            let usable = usable(bound.parse().unwrap(), &addresses);
            usable.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown("0.0.0.0:4433"), ["192.168.1.5:4433"]);
        assert_eq!(shown("[::]:4433"), ["192.168.1.5:4433", "[2001:db8::7]:4433"]);
        let bound = "127.0.0.1:4433".parse().unwrap();
        assert_eq!(reachable(bound), [bound]);
        assert_eq!(usable("0.0.0.0:1".parse().unwrap(), &[]), ["127.0.0.1:1".parse().unwrap()]);
    }
}
