//! The uplink's device, as the kernel has it.

use std::fs;
use std::net::Ipv4Addr;
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
    address: Ipv4Addr,
}

impl Device {
    /// Looks at `name`.
    ///
    /// # Errors
    /// If there is no such device, it has no IPv4 address or no default route, or the kernel would drop what arrives
    /// by it.
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
        let address = first_address(&ip(&["-4", "-o", "addr", "show", "dev", name])?);
        let Some(address) = address else {
            return Err(refuse(format!("{name} has no IPv4 address"), "a device with an IPv4 address"));
        };
        if ip(&["-4", "route", "show", "default", "dev", name])?.trim().is_empty() {
            return Err(refuse(format!("no default route leads to {name}"), "the device of a default route"));
        }
        let strict = ["all", name].into_iter().find(|of| {
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
        Ok(Self { name: name.to_owned(), index: index as i32, is_wifi, mtu, address })
    }

    /// Input for `ip -batch` that sends through `tun` what goes by a default route. Two halves are more specific than it
    /// and do not change it; they vanish with their device.
    pub(super) fn routes_through(&self, tun: &str) -> String {
        let Self { mtu, address, .. } = self;
        let mut script = format!("link set dev {tun} mtu {mtu} up\n");
        for half in ["0.0.0.0/1", "128.0.0.0/1"] {
            script += &format!("route add {half} dev {tun} src {address}\n");
        }
        script
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
fn first_address(printed: &str) -> Option<Ipv4Addr> {
    let after = printed.split_once(" inet ")?.1;
    after.split(['/', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_ip_prints_them() {
        let printed =
            "2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever\n";
        assert_eq!(first_address(printed), Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(
            first_address("3: wwan0    inet 10.7.0.9 peer 10.7.0.10/32\n"),
            Some(Ipv4Addr::new(10, 7, 0, 9))
        );
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
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let device = Device { name: "eth0".to_owned(), index: 2, is_wifi: false, mtu: 1_400, address };
        assert_eq!(
            device.routes_through("tacit0"),
            "link set dev tacit0 mtu 1400 up\nroute add 0.0.0.0/1 dev tacit0 src 192.0.2.1\n\
             route add 128.0.0.0/1 dev tacit0 src 192.0.2.1\n"
        );
    }
}
