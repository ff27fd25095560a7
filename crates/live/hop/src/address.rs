//! Addresses of a hop's two sides.
//!
//! IPv4 addresses are from 198.18.0.0/15, which is reserved for testing network devices (RFC 2544 appendix C.2.2), and
//! IPv6 addresses from 2001:2::/48 (RFC 5180 section 8). A hop inside a hop uses the next numbers, so that hops can be
//! nested and hosts behind both are reachable through both.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::clock::wall;
use crate::error::LiveError;

/// Environment variable with the number of hops around a program.
pub const DEPTH_VARIABLE: &str = "TACIT_DEPTH";

/// Maximum number of nested hops plus hops in parallel in one network.
const BLOCKS: u16 = 256;

/// Maximum time that another hop may take to set up its addresses.
const CLAIM_PATIENCE: Duration = Duration::from_secs(10);
/// Interval between attempts.
const CLAIM_LOOK: Duration = Duration::from_millis(5);

/// The exclusive right to choose numbers in the network of this process, until this value is dropped or the process
/// dies. It is a lock on the file that represents the network namespace.
pub struct Claim(Flock<File>);

impl Claim {
    /// Waits until no other hop holds the claim.
    ///
    /// # Errors
    /// If another hop holds it for longer than the setup can take.
    pub fn wait() -> Result<Self, LiveError> {
        const NETWORK: &str = "/proc/self/ns/net";
        let mut file = File::open(NETWORK).map_err(LiveError::io(NETWORK))?;
        let start = wall();
        // Not a blocking call, because Ctrl-C has already been redirected and could not interrupt it.
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(lock)),
                Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) if start.elapsed() < CLAIM_PATIENCE => file,
                Err((_, error)) => {
                    return Err(LiveError::Setup {
                        what: "addresses".to_owned(),
                        reason: format!("another hop does not get done with choosing its own: {error}"),
                    });
                }
            };
            std::thread::park_timeout(CLAIM_LOOK);
        }
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Route attributes for the connections of a hop. They do not affect other traffic.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// Send an ACK for each packet.
    pub quickack: bool,
    /// Congestion control of traffic sent over these routes. The sysctl of a namespace accepts only those that the host
    /// allows for all users; a route accepts all that exist.
    pub congestion: Option<String>,
}

impl Routes {
    /// Attributes to append to each route for `ip`.
    fn attributes(&self) -> String {
        let quickack = if self.quickack { " quickack 1" } else { "" };
        let congestion = self.congestion.as_ref().map_or_else(String::new, |name| format!(" congctl {name}"));
        format!("{quickack}{congestion}")
    }
}

/// The address block of one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Selects 198.18.`number`.0/30 and 2001:2:0:`number`::/64.
    number: u8,
    depth: u16,
    ipv6: bool,
}

impl Block {
    /// The block of a hop whose two sides are separate networks.
    pub fn first() -> Self {
        Self { number: 0, depth: depth_here() + 1, ipv6: kernel_has_ipv6() }
    }

    /// The block of a hop that starts in the network of this process. Its number is unused there, and no other hop can
    /// choose it while the claim is held.
    ///
    /// # Errors
    /// If no number is free.
    pub fn free(_claim: &Claim) -> Result<Self, LiveError> {
        let depth = depth_here();
        let routes = fs::read_to_string("/proc/self/net/route").unwrap_or_default();
        let used = |number: u8| {
            routes.lines().any(|line| {
                let destination = line.split_ascii_whitespace().nth(1);
                destination.and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    == Some(u32::from_le_bytes([198, 18, number, 0]))
            })
        };
        // Hops further out have lower numbers.
        let number =
            (depth..BLOCKS).filter_map(|number| u8::try_from(number).ok()).find(|number| !used(*number));
        let number = number.ok_or_else(|| LiveError::Setup {
            what: "addresses".to_owned(),
            reason: "198.18.0.0 to 198.18.255.0 are all in use here".to_owned(),
        })?;
        Ok(Self { number, depth: depth + 1, ipv6: kernel_has_ipv6() })
    }

    /// Address of the other side.
    pub fn far(self) -> String {
        format!("198.18.{}.1", self.number)
    }

    /// Address of the command's side.
    pub fn near(self) -> String {
        format!("198.18.{}.2", self.number)
    }

    fn far6(self) -> String {
        format!("2001:2:0:{:x}::1", self.number)
    }

    fn near6(self) -> String {
        format!("2001:2:0:{:x}::2", self.number)
    }

    /// Commands for `ip` on the command's side, which routes everything through the hop.
    pub fn near_script(self, device: &str, routes: &Routes) -> String {
        let how = routes.attributes();
        let (near, far, near6, far6) = (self.near(), self.far(), self.near6(), self.far6());
        let mut script = format!(
            "address add {near}/30 dev {device} noprefixroute\n\
             link set dev {device} up\n\
             route add {far} dev {device} src {near}{how}\n\
             route add default via {far} dev {device} src {near}{how}\n"
        );
        if self.ipv6 {
            script.push_str(&format!(
                "address add {near6}/64 dev {device} nodad noprefixroute\n\
                 route add {far6} dev {device} src {near6}{how}\n\
                 route add ::/0 via {far6} dev {device} src {near6}{how}\n"
            ));
        }
        script
    }

    /// Commands for `ip` on the other side, which routes to the command's side and to the hops inside it.
    pub fn far_script(self, device: &str, routes: &Routes) -> String {
        let how = routes.attributes();
        let (near, far, near6, far6) = (self.near(), self.far(), self.near6(), self.far6());
        let mut script = format!(
            "address add {far}/30 dev {device} noprefixroute\n\
             link set dev {device} up\n\
             route add 198.18.{}.0/30 dev {device} src {far}{how}\n",
            self.number
        );
        if self.ipv6 {
            script.push_str(&format!(
                "address add {far6}/64 dev {device} nodad noprefixroute\n\
                 route add {near6} dev {device} src {far6}{how}\n"
            ));
        }
        for inner in (u16::from(self.number) + 1..BLOCKS).take(INNER) {
            // Another hop in this network may have taken these numbers, and its routes must take precedence.
            let metric = 1_000 + u16::from(self.number);
            script.push_str(&format!(
                "route append 198.18.{inner}.0/30 via {near} dev {device} src {far} metric {metric}{how}\n"
            ));
            if self.ipv6 {
                script.push_str(&format!(
                    "route append 2001:2:0:{inner:x}::/64 via {near6} dev {device} src {far6} metric \
                     {metric}{how}\n"
                ));
            }
        }
        script
    }

    /// Whether `address` belongs to the command's side: its own, or that of an inner hop that the far side knows.
    pub fn is_near(self, address: IpAddr) -> bool {
        let (block, host) = match address {
            IpAddr::V4(address) => match address.octets() {
                [198, 18, block, host] => (u16::from(block), u16::from(host)),
                _ => return false,
            },
            IpAddr::V6(address) => match address.segments() {
                [0x2001, 2, 0, block, 0, 0, 0, host] => (block, host),
                _ => return false,
            },
        };
        let number = u16::from(self.number);
        block == number && host == 2 || (number + 1..=number + INNER as u16).contains(&block)
    }

    /// Environment variables of the command.
    pub fn near_environment(self) -> Vec<(String, String)> {
        self.environment(self.near(), self.far(), self.far6())
    }

    /// Environment variables of the other side's command.
    pub fn far_environment(self) -> Vec<(String, String)> {
        self.environment(self.far(), self.near(), self.near6())
    }

    fn environment(self, address: String, peer: String, peer6: String) -> Vec<(String, String)> {
        vec![
            ("TACIT_ADDRESS".to_owned(), address),
            ("TACIT_PEER".to_owned(), peer),
            ("TACIT_PEER6".to_owned(), peer6),
            (DEPTH_VARIABLE.to_owned(), self.depth.to_string()),
        ]
    }
}

/// Number of nested hops inside a command's side to which the other side has routes.
const INNER: usize = 4;

/// Whether the kernel supports IPv6. It may be built or started without.
pub fn kernel_has_ipv6() -> bool {
    fs::exists("/proc/sys/net/ipv6").unwrap_or(false)
}

/// Number of hops around this process.
fn depth_here() -> u16 {
    let depth = std::env::var(DEPTH_VARIABLE).ok().and_then(|depth| depth.parse().ok());
    depth.unwrap_or(0).min(BLOCKS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sides_of_a_hop_name_each_other() {
        let block = Block { number: 3, depth: 4, ipv6: true };
        assert_eq!((block.near().as_str(), block.far().as_str()), ("198.18.3.2", "198.18.3.1"));
        let quick = Routes { quickack: true, congestion: None };
        let script = block.near_script("tacit0", &quick);
        assert!(
            script.contains("route add default via 198.18.3.1 dev tacit0 src 198.18.3.2 quickack 1"),
            "{script}"
        );
        assert!(!block.near_script("tacit0", &Routes::default()).contains("quickack"));
        let environment = block.near_environment();
        assert!(environment.contains(&("TACIT_PEER".to_owned(), "198.18.3.1".to_owned())));
        assert!(environment.contains(&("TACIT_PEER6".to_owned(), "2001:2:0:3::1".to_owned())));
    }

    #[test]
    fn addresses_of_the_commands_side_are_known_before_anything_was_sent_from_them() {
        let block = Block { number: 3, depth: 4, ipv6: true };
        let is_near = |address: String| block.is_near(address.parse().unwrap());
        assert!(is_near(block.near()) && is_near(block.near6()));
        assert!(!is_near(block.far()) && !is_near(block.far6()));
        let inner = Block { number: 4, depth: 5, ipv6: true };
        assert!([inner.near(), inner.far(), inner.near6()].into_iter().all(is_near));
        let others = ["198.18.2.2", "198.18.8.2", "192.0.2.3", "2001:2:0:2::2", "fd00::2"];
        assert!(!others.into_iter().any(|address| is_near(address.to_owned())));
    }

    #[test]
    fn the_far_side_knows_where_inner_hops_are() {
        let script = Block { number: 0, depth: 1, ipv6: true }.far_script("tacit1", &Routes::default());
        assert!(script.contains("route append 198.18.1.0/30 via 198.18.0.2 dev tacit1"), "{script}");
        // The last block has no room for nested hops.
        let script = Block { number: 255, depth: 1, ipv6: true }.far_script("tacit1", &Routes::default());
        assert!(!script.contains("append"), "{script}");
    }
}
