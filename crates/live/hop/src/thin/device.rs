//! The uplink's device, as the kernel has it.

use std::fs;
use std::net::IpAddr;
use std::process::Command;

use crate::error::LiveError;

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
    /// Its address of each IP version that has a default route by it.
    addresses: Vec<IpAddr>,
}

impl Device {
    /// Looks at `name`.
    ///
    /// # Errors
    /// If there is no such device, it has no address or no default route, or the kernel would drop what arrives by it.
    pub(super) fn look(name: &str) -> Result<Self, LiveError> {
        let refuse = |what: String, allowed: &str| LiveError::Argument {
            argument: "DEVICE",
            what,
            allowed: allowed.to_owned(),
        };
        let known = "a device that `ip link` lists";
        if name.is_empty() || name.contains(['/', ' ']) || name.starts_with('.') {
            return Err(refuse(format!("{name:?} is no device"), known));
        }
        let read = |file: &str| {
            let text = fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok()?;
            text.trim().parse::<u32>().ok()
        };
        let (Some(index), Some(mtu)) = (read("ifindex"), read("mtu")) else {
            return Err(refuse(format!("there is no device {name}"), known));
        };
        let of_both = [
            ip(&["-4", "-o", "addr", "show", "dev", name])?,
            // Not the addresses of the link alone.
            ip(&["-6", "-o", "addr", "show", "dev", name, "scope", "global"])?,
        ];
        let mut addresses: Vec<_> = of_both.iter().filter_map(|printed| first_address(printed)).collect();
        if addresses.is_empty() {
            return Err(refuse(format!("{name} has no IP address"), "a device with an IPv4 or IPv6 address"));
        }
        let mut routes = Vec::new();
        for address in &addresses {
            let version = if address.is_ipv4() { "-4" } else { "-6" };
            routes.push(!ip(&[version, "route", "show", "default", "dev", name])?.trim().is_empty());
        }
        let mut routes = routes.into_iter();
        addresses.retain(|_| routes.next() == Some(true));
        if addresses.is_empty() {
            return Err(refuse(format!("no default route leads to {name}"), "the device of a default route"));
        }
        let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
        let strict = ["all", name].into_iter().filter(|_| has_v4).find(|of| {
            let path = format!("/proc/sys/net/ipv4/conf/{of}/rp_filter");
            fs::read_to_string(path).is_ok_and(|value| value.trim() == "1")
        });
        if let Some(of) = strict {
            return Err(refuse(
                format!("net.ipv4.conf.{of}.rp_filter = 1 would drop all that arrives by {name}"),
                "rp_filter = 2 or 0 (sysctl)",
            ));
        }
        let is_wifi = fs::exists(format!("/sys/class/net/{name}/phy80211")).unwrap_or(false);
        Ok(Self { name: name.to_owned(), index: index as i32, is_wifi, mtu, addresses })
    }

    /// Input for `ip -batch` that sends through `tun` what goes by a default route. Two halves are more specific than it
    /// and do not change it; they vanish with their device, which has no address, so that nothing but those routes leads there.
    pub(super) fn routes_through(&self, tun: &str) -> String {
        let mut script =
            format!("link set dev {tun} addrgenmode none\nlink set dev {tun} mtu {} up\n", self.mtu);
        for address in &self.addresses {
            let halves = if address.is_ipv4() { ["0.0.0.0/1", "128.0.0.0/1"] } else { ["::/1", "8000::/1"] };
            for half in halves {
                script += &format!("route add {half} dev {tun} src {address}\n");
            }
        }
        script
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

/// What `ip` prints.
fn ip(arguments: &[&str]) -> Result<String, LiveError> {
    let failed = |said: String| LiveError::Setup { what: format!("ip {}", arguments.join(" ")), said };
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
    fn a_device_that_is_not_there_is_named() {
        for name in ["no-such-0", "", "../lo", "a b"] {
            let said = Device::look(name).unwrap_err().to_string();
            assert!(said.starts_with("DEVICE: ") && said.contains("`ip link` lists"), "{said}");
        }
        let said = Device::look("lo").unwrap_err().to_string();
        assert!(said.contains("lo"), "{said}");
    }

    #[test]
    fn two_halves_take_the_place_of_the_default_route() {
        let addresses = ["192.0.2.1", "2001:db8::7"].map(|address| address.parse().unwrap()).to_vec();
        let device = Device { name: "eth0".to_owned(), index: 2, is_wifi: false, mtu: 1_400, addresses };
        assert_eq!(
            device.routes_through("tacit0"),
            "link set dev tacit0 addrgenmode none\nlink set dev tacit0 mtu 1400 up\n\
             route add 0.0.0.0/1 dev tacit0 src 192.0.2.1\nroute add 128.0.0.0/1 dev tacit0 src 192.0.2.1\n\
             route add ::/1 dev tacit0 src 2001:db8::7\nroute add 8000::/1 dev tacit0 src 2001:db8::7\n"
        );
        assert!(device.has(true) && device.has(false));
    }
}
