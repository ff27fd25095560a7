//! The uplink's device, as the kernel has it.

use std::fs;
use std::net::IpAddr;
use std::process::Command;

use nix::libc;

use super::system::Found;
use crate::error::LiveError;

/// Of `linux/if_arp.h`: modems that take IP packets.
const ARPHRD_RAWIP: u16 = 519;

fn refuse(what: String, allowed: &str) -> LiveError {
    LiveError::Argument { argument: "DEVICE", what, allowed: allowed.to_owned() }
}

/// A network device that can be thinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: i32,
    /// Whether it is a Wi-Fi device.
    pub is_wifi: bool,
    /// Largest IP packet, in bytes.
    mtu: u32,
    /// Its hardware, as the kernel numbers it (`linux/if_arp.h`).
    kind: u16,
    /// Its address of each IP version that has a default route by it.
    addresses: Vec<IpAddr>,
}

impl Device {
    /// Finds `name`.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn find(name: &str) -> Result<Self, LiveError> {
        let known = "a device that `ip link` lists";
        if name.is_empty() || name.contains(['/', ' ']) || name.starts_with('.') {
            return Err(refuse(format!("{name:?} is no device"), known));
        }
        let Some(Found { index, mtu, kind }) = Found::find(name) else {
            return Err(refuse(format!("there is no device {name}"), known));
        };
        let is_wifi = fs::exists(format!("/sys/class/net/{name}/phy80211")).unwrap_or(false);
        Ok(Self { name: name.to_owned(), index, is_wifi, mtu, kind, addresses: Vec::new() })
    }

    /// Checks that it is still there under its name.
    ///
    /// # Errors
    /// If it is gone, or has another name.
    pub fn check(&self) -> Result<(), LiveError> {
        if Self::find(&self.name)?.index == self.index {
            return Ok(());
        }
        Err(refuse(format!("{} is another device than before", self.name), "the same while it is thinned"))
    }

    /// Octets before the IP header of a packet that it sends; `None` if that is not known.
    pub fn link_octets(&self) -> Option<u32> {
        match self.kind {
            libc::ARPHRD_ETHER => Some(14),
            libc::ARPHRD_PPP | libc::ARPHRD_NONE | ARPHRD_RAWIP => Some(0),
            _ => None,
        }
    }

    /// Looks at `name`, which is to have its packets led elsewhere.
    ///
    /// # Errors
    /// If there is no such device, it has no address or no default route, or the kernel would drop what arrives by it.
    pub(super) fn look(name: &str) -> Result<Self, LiveError> {
        let found = Self::find(name)?;
        let of_both = [
            ip(&["-4", "-o", "addr", "show", "dev", name])?,
            // Not the addresses of the link alone.
            ip(&["-6", "-o", "addr", "show", "dev", name, "scope", "global"])?,
        ];
        let addresses: Vec<_> = of_both.iter().filter_map(|printed| first_address(printed)).collect();
        if addresses.is_empty() {
            return Err(refuse(format!("{name} has no IP address"), "a device with an IPv4 or IPv6 address"));
        }
        let mut elsewhere = None;
        let mut led = Vec::new();
        for address in addresses {
            let (version, usual_metric) = if address.is_ipv4() { ("-4", 0) } else { ("-6", 1_024) };
            match best_default(&ip(&[version, "route", "show", "default"])?, usual_metric) {
                Some(best) if best == name => led.push(address),
                Some(best) => elsewhere = Some(best),
                None => {}
            }
        }
        let addresses = led;
        if let (true, Some(best)) = (addresses.is_empty(), elsewhere) {
            return Err(refuse(
                format!("the default route leads to {best}, not to {name}"),
                "the device of the default route",
            ));
        }
        if addresses.is_empty() {
            return Err(refuse(format!("no default route leads to {name}"), "the device of a default route"));
        }
        let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
        let strict = ["all", name].into_iter().filter(|_| has_v4).find(|interface| {
            let path = format!("/proc/sys/net/ipv4/conf/{interface}/rp_filter");
            fs::read_to_string(path).is_ok_and(|value| value.trim() == "1")
        });
        if let Some(interface) = strict {
            return Err(refuse(
                format!("net.ipv4.conf.{interface}.rp_filter = 1 would drop all that arrives by {name}"),
                "rp_filter = 2 or 0 (sysctl)",
            ));
        }
        Ok(Self { addresses, ..found })
    }

    /// Input for `ip -batch` that sets up `tun`, and its routes.
    pub(super) fn setup(&self, tun: &str) -> String {
        // Without an address, nothing but its routes leads there.
        format!("link set dev {tun} addrgenmode none\nlink set dev {tun} mtu {} up\n", self.mtu)
            + &self.routes(tun)
    }

    /// Input for `ip -batch` that sends through `tun` what goes by a default route to a unicast address. Parts of the address
    /// space are more specific than that route and do not change it; they vanish with their device. By their metric, routes of
    /// the same parts that a VPN makes come before them, or beside them.
    fn routes(&self, tun: &str) -> String {
        let mut script = String::new();
        for address in &self.addresses {
            // All but multicast and broadcast: RFC 1112, 224.0.0.0/4; RFC 4291, ff00::/8; and fe80::/10 never leaves its link.
            let parts: &[&str] = if address.is_ipv4() {
                &["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"]
            } else {
                &["::/2", "4000::/2", "8000::/2", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fc00::/7"]
            };
            for part in parts {
                script += &format!("route replace {part} dev {tun} src {address} metric 1\n");
            }
        }
        script
    }

    /// Looks at the device again. Returns input for `ip -batch` where `tun` no longer has its routes or its MTU, as after a new
    /// address.
    ///
    /// # Errors
    /// As for [`look`](Self::look); [`LiveError::Argument`] too where the device is another one now.
    pub(super) fn again(&mut self, tun: &str) -> Result<Option<String>, LiveError> {
        let leads = |table: &str, field: usize| {
            let text = fs::read_to_string(table).unwrap_or_default();
            text.lines().any(|line| line.split_whitespace().nth(field) == Some(tun))
        };
        let has_routes = (!self.has(true) || leads("/proc/net/route", 0))
            && (!self.has(false) || leads("/proc/net/ipv6_route", 9));
        if has_routes
            && Found::find(&self.name).is_some_and(|found| (found.index, found.mtu) == (self.index, self.mtu))
        {
            return Ok(None);
        }
        let now = Self::look(&self.name)?;
        if (now.index, now.has(true), now.has(false)) != (self.index, self.has(true), self.has(false)) {
            return Err(LiveError::Argument {
                argument: "DEVICE",
                what: format!("{} has changed", self.name),
                allowed: "the device that it was: start again".to_owned(),
            });
        }
        *self = now;
        Ok(Some(format!("link set dev {tun} mtu {}\n", self.mtu) + &self.routes(tun)))
    }

    /// The IP versions that leave by it, in words.
    pub fn versions(&self) -> &'static str {
        match (self.has(true), self.has(false)) {
            (true, true) => "IPv4 and IPv6",
            (true, false) => "IPv4",
            _ => "IPv6",
        }
    }

    /// Whether packets of IPv4 or of IPv6 leave by it.
    pub(super) fn has(&self, is_v4: bool) -> bool {
        self.addresses.iter().any(|address| address.is_ipv4() == is_v4)
    }
}

/// The device of the default route that counts, of those that `ip route show default` prints: the one with the least metric,
/// which is `usual` where it is not printed.
fn best_default(printed: &str, usual: u32) -> Option<String> {
    let after = |line: &str, word: &str| {
        let mut words = line.split_whitespace().skip_while(|next| *next != word);
        words.nth(1).map(str::to_owned)
    };
    let routes = printed.lines().filter_map(|line| {
        let metric = after(line, "metric").and_then(|metric| metric.parse().ok()).unwrap_or(usual);
        Some((metric, after(line, "dev")?))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, device)| device)
}

/// What `ip` prints.
fn ip(arguments: &[&str]) -> Result<String, LiveError> {
    let failed = |reason: String| LiveError::Setup { what: format!("ip {}", arguments.join(" ")), reason };
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| failed(format!("{error}; install iproute2")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The first address of `ip -o addr`: `2: eth0    inet 192.0.2.1/24 brd …`.
fn first_address(printed: &str) -> Option<IpAddr> {
    let after = printed.split_once(" inet ").or_else(|| printed.split_once(" inet6 "))?.1;
    after.split(['/', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_ip_prints_them() {
        let printed =
            "2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever\n";
        assert_eq!(first_address(printed), Some(IpAddr::from([192, 0, 2, 1])));
        assert_eq!(
            first_address("3: wwan0    inet 10.7.0.9 peer 10.7.0.10/32\n"),
            Some(IpAddr::from([10, 7, 0, 9]))
        );
        let printed =
            "2: eth0    inet6 2001:db8::7/64 scope global dynamic mngtmpaddr \\       valid_lft 86sec\n";
        assert_eq!(first_address(printed).unwrap().to_string(), "2001:db8::7");
        assert_eq!(first_address(""), None);
    }

    #[test]
    fn the_default_route_with_the_least_metric_counts() {
        let printed = "default via 10.0.0.1 dev wwan0 proto dhcp metric 600 \ndefault via 192.0.2.9 dev eth0 metric 100 \n";
        assert_eq!(best_default(printed, 0).as_deref(), Some("eth0"));
        assert_eq!(
            best_default(&format!("{printed}default dev tun7 scope link\n"), 0).as_deref(),
            Some("tun7")
        );
        assert_eq!(best_default("", 0), None);
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        for name in ["no-such-0", "", "../lo", "a b"] {
            let error = Device::look(name).unwrap_err().to_string();
            assert!(error.starts_with("DEVICE: ") && error.contains("`ip link` lists"), "{error}");
        }
        let error = Device::look("lo").unwrap_err().to_string();
        assert!(error.contains("lo"), "{error}");
    }

    #[test]
    fn parts_take_the_place_of_the_default_route_but_for_multicast() {
        let addresses = ["192.0.2.1", "2001:db8::7"].map(|address| address.parse().unwrap()).to_vec();
        let device =
            Device { name: "eth0".to_owned(), index: 2, is_wifi: false, mtu: 1_400, kind: 1, addresses };
        let script = device.setup("tacit0");
        assert!(
            script.starts_with("link set dev tacit0 addrgenmode none\nlink set dev tacit0 mtu 1400 up\n"),
            "{script}"
        );
        assert!(script.contains("route replace 0.0.0.0/1 dev tacit0 src 192.0.2.1 metric 1\n"), "{script}");
        assert!(script.contains("route replace fc00::/7 dev tacit0 src 2001:db8::7 metric 1\n"), "{script}");
        // Each unicast address is in one part, and no multicast address in any.
        let covers = |address: IpAddr| {
            let parts =
                script.lines().filter_map(|line| line.strip_prefix("route replace ")?.split(' ').next());
            let holds = |part: &&str| {
                let (net, len) = part.split_once('/').unwrap();
                let len: u32 = len.parse().unwrap();
                match (net.parse().unwrap(), address) {
                    (IpAddr::V4(net), IpAddr::V4(member)) => {
                        (net.to_bits() ^ member.to_bits()) >> (32 - len) == 0
                    }
                    (IpAddr::V6(net), IpAddr::V6(member)) => {
                        (net.to_bits() ^ member.to_bits()) >> (128 - len) == 0
                    }
                    _ => false,
                }
            };
            parts.filter(holds).count()
        };
        for unicast in [
            "1.1.1.1",
            "127.255.0.1",
            "128.0.0.1",
            "191.1.1.1",
            "192.0.2.9",
            "223.255.255.1",
            "2001:db8::1",
            "64:ff9b::1",
            "fd00::1",
        ] {
            assert_eq!(covers(unicast.parse().unwrap()), 1, "{unicast}");
        }
        for other in ["224.0.0.251", "239.255.255.250", "255.255.255.255", "fe80::1", "ff02::fb"] {
            assert_eq!(covers(other.parse().unwrap()), 0, "{other}");
        }
        assert!(device.has(true) && device.has(false));
    }
}
