//! The status of a flow.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Serialize, Serializer};

/// `sizeof(struct flow_record)` in `bpf/flow.h`.
pub(crate) const RECORD_BYTES: usize = 104;

/// Address families (include/linux/socket.h).
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// A flow that uses the congestion control.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Flow {
    /// The kernel's name of the congestion control. Several may be loaded.
    pub control: String,
    /// Inode of its network namespace, as in `/proc/PID/ns/net`.
    pub namespace: u32,
    /// Address of this side.
    #[serde(serialize_with = "as_text")]
    pub local: SocketAddr,
    /// Address of the other side.
    #[serde(serialize_with = "as_text")]
    pub peer: SocketAddr,
    /// State of the congestion control.
    pub state: &'static str,
    /// Whether the receiver's clock, as visible in its timestamps, is `trusted`; initially `unknown`. If it is
    /// `refused`, or there are no timestamps, the arrival rate of ACKs is used as the receive rate.
    pub clock: &'static str,
    /// Length of a tick of this clock; 0 if it is not trusted.
    pub tick_us: u32,
    /// The sending rate.
    pub sending_rate_bps: u64,
    /// The rate at which the receiver receives data.
    pub receive_rate_bps: u64,
    /// Queueing delay on the path to the receiver.
    pub buffer_delay_us: u64,
    /// Maximum number of unacknowledged bytes.
    pub window_bytes: u64,
}

fn as_text<S: Serializer>(address: &SocketAddr, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(address)
}

/// Names of the states in `bpf/rre_core.h` and of the clock verdicts in `bpf/rre_clock.h`, by number.
const STATES: [&str; 6] = ["start", "fill", "drain", "refresh", "monitor", "compete"];
const CLOCKS: [&str; 3] = ["unknown", "trusted", "refused"];

impl Flow {
    /// Parses a `struct flow_record` of `bpf/flow.h`.
    pub(crate) fn read(record: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let short = |at: usize| Some(u16::from_ne_bytes(record.get(at..at + 2)?.try_into().ok()?));
        let family = short(44)?;
        let address = |at: usize, port: u16| {
            let bytes: [u8; 16] = record.get(at..at + 16)?.try_into().ok()?;
            let address = match family {
                AF_INET => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
                AF_INET6 => IpAddr::V6(Ipv6Addr::from(bytes)),
                _ => return None,
            };
            // IPv6 sockets may carry IPv4.
            Some(SocketAddr::new(address.to_canonical(), port))
        };
        let name = record.get(88..104)?.split(|byte| *byte == 0).next()?;
        Some(Self {
            sending_rate_bps: word(0)?.saturating_mul(8),
            receive_rate_bps: word(8)?.saturating_mul(8),
            buffer_delay_us: word(16)?,
            window_bytes: word(24)?,
            state: STATES.get(half(32)? as usize).copied().unwrap_or("unknown"),
            clock: CLOCKS.get(half(36)? as usize).copied().unwrap_or("unknown"),
            tick_us: half(52)?,
            namespace: half(40)?,
            local: address(56, short(46)?)?,
            peer: address(72, short(48)?)?,
            control: String::from_utf8_lossy(name).into_owned(),
        })
    }
}

/// The flows as a table.
pub fn to_text(flows: &[Flow]) -> String {
    if flows.is_empty() {
        return "no flow uses TCP-RRE\n".to_owned();
    }
    let mut ordered: Vec<_> = flows.iter().collect();
    ordered.sort_by_key(|flow| Reverse(flow.sending_rate_bps));
    let addresses = ordered.iter().map(|flow| format!("{} > {}", flow.local, flow.peer));
    let addresses: Vec<_> = addresses.collect();
    let width = addresses.iter().map(String::len).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:<width$}  {:<9}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n",
        "flow", "state", "sends", "received", "buffer", "window", "receiver's clock"
    );
    let _ =
        writeln!(text, "{:<width$}  {:<9}  {:>9}  {:>9}  {:>9}  {:>9}", "", "", "Mb/s", "Mb/s", "ms", "kB");
    for (flow, address) in ordered.into_iter().zip(addresses) {
        let _ = writeln!(
            text,
            "{address:<width$}  {:<9}  {:>9}  {:>9}  {:>9}  {:>9}  {}",
            flow.state,
            thousandths(flow.sending_rate_bps / 1_000),
            thousandths(flow.receive_rate_bps / 1_000),
            thousandths(flow.buffer_delay_us),
            flow.window_bytes / 1_000,
            match flow.clock {
                "trusted" => format!("ticks of {} ms", flow.tick_us / 1_000),
                "refused" => "none: by arriving ACKs".to_owned(),
                other => other.to_owned(),
            },
        );
    }
    text
}

/// A number of thousandths with three decimals.
fn thousandths(number: u64) -> String {
    format!("{}.{:03}", number / 1_000, number % 1_000)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The memory representation of a `struct flow_record`.
    pub(crate) fn record(family: u16, local: &[u8], peer: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [1_250_000_u64, 1_000_000, 12_345, 65_536] {
            bytes.extend(word.to_ne_bytes());
        }
        for half in [0_u32, 1, 4_026_531_840] {
            bytes.extend(half.to_ne_bytes());
        }
        for short in [family, 443, 50_000] {
            bytes.extend(short.to_ne_bytes());
        }
        bytes.extend([1, 0]);
        bytes.extend(4_000_u32.to_ne_bytes());
        assert_eq!(bytes.len(), 56);
        bytes.extend(local);
        bytes.resize(72, 0);
        bytes.extend(peer);
        bytes.resize(88, 0);
        bytes.extend(b"tacit_rre2");
        bytes.resize(RECORD_BYTES, 0);
        bytes
    }

    #[test]
    fn a_record_becomes_a_flow() {
        let flow = Flow::read(&record(AF_INET, &[192, 0, 2, 1], &[198, 51, 100, 7])).unwrap();
        assert_eq!(flow.local.to_string(), "192.0.2.1:443");
        assert_eq!(flow.peer.to_string(), "198.51.100.7:50000");
        assert_eq!((flow.sending_rate_bps, flow.receive_rate_bps), (10_000_000, 8_000_000));
        assert_eq!((flow.buffer_delay_us, flow.window_bytes), (12_345, 65_536));
        assert_eq!((flow.state, flow.clock, flow.tick_us), ("start", "trusted", 4_000));
        assert_eq!((flow.control.as_str(), flow.namespace), ("tacit_rre2", 4_026_531_840));
    }

    #[test]
    fn a_socket_of_ipv6_that_speaks_ipv4_shows_ipv4() {
        let mapped = Ipv4Addr::new(192, 0, 2, 9).to_ipv6_mapped().octets();
        let flow = Flow::read(&record(AF_INET6, &mapped, &[0x20; 16])).unwrap();
        assert_eq!(flow.local.to_string(), "192.0.2.9:443");
        assert_eq!(flow.peer.to_string(), "[2020:2020:2020:2020:2020:2020:2020:2020]:50000");
    }

    #[test]
    fn a_short_record_and_one_of_another_family_are_none() {
        let whole = record(AF_INET, &[0; 4], &[0; 4]);
        assert_eq!(Flow::read(&whole[..RECORD_BYTES - 1]), None);
        assert_eq!(Flow::read(&record(1, &[0; 4], &[0; 4])), None);
    }

    #[test]
    fn the_table_says_what_has_no_timestamps() {
        let mut flow = Flow::read(&record(AF_INET, &[192, 0, 2, 1], &[198, 51, 100, 7])).unwrap();
        let with = to_text(std::slice::from_ref(&flow));
        assert!(
            with.contains("10.000") && with.contains("12.345") && with.ends_with("ticks of 4 ms\n"),
            "{with}"
        );
        flow.clock = "refused";
        assert!(to_text(&[flow]).ends_with("none: by arriving ACKs\n"));
        assert_eq!(to_text(&[]), "no flow uses TCP-RRE\n");
    }
}
