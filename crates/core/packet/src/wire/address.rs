//! Identifiers on the wire: hosts as addresses, flows as ports.
//!
//! * Host `n` is `10.x.y.z` with `n = x.y.z` as a 24-bit number, and `fd74:6163:6974::n`.
//! * Flow `f` is port `15536 + f` at the end with the lower host number, no matter which end opened it, and
//!   [`SERVICE_PORT`] or [`TACK_PORT`] at the other end. There can be 50,000 flows, between two hosts or in total. A
//!   host that talks to itself sends from the flow's port.

use super::{DecodeError, EncodeError};
use crate::units::{FlowId, HostId};
use crate::{Packet, Transport};

/// The port at the end with the higher host number, for TCP and for datagrams.
pub const SERVICE_PORT: u16 = 5001;

/// The port at that end for TACK, which distinguishes its packets from other datagrams: "TACK" on a telephone keypad.
pub const TACK_PORT: u16 = 8225;

/// Flow numbers are below this.
pub const MAX_FLOWS: u32 = 50_000;

/// The port of flow 0.
const FIRST_FLOW_PORT: u16 = 15_536;

/// A unique local prefix (RFC 4193).
const IPV6_PREFIX: [u8; 12] = [0xfd, b't', b'a', b'c', b'i', b't', 0, 0, 0, 0, 0, 0];

/// The IPv4 address of `host`.
///
/// # Errors
///
/// [`EncodeError::Host`] at 2^24 and above.
pub fn ipv4(host: HostId) -> Result<[u8; 4], EncodeError> {
    match host.0.to_be_bytes() {
        [0, x, y, z] => Ok([10, x, y, z]),
        _ => Err(EncodeError::Host(host)),
    }
}

/// The host at an IPv4 address.
///
/// # Errors
///
/// [`DecodeError::Address`] outside 10/8.
pub fn host_of_ipv4(address: [u8; 4]) -> Result<HostId, DecodeError> {
    match address {
        [10, x, y, z] => Ok(HostId(u32::from_be_bytes([0, x, y, z]))),
        _ => Err(DecodeError::Address),
    }
}

/// The IPv6 address of `host`.
pub fn ipv6(host: HostId) -> [u8; 16] {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&IPV6_PREFIX);
    address[12..].copy_from_slice(&host.0.to_be_bytes());
    address
}

/// The host at an IPv6 address.
///
/// # Errors
///
/// [`DecodeError::Address`] outside our prefix.
pub fn host_of_ipv6(address: [u8; 16]) -> Result<HostId, DecodeError> {
    match address.last_chunk() {
        Some(host) if address.starts_with(&IPV6_PREFIX) => Ok(HostId(u32::from_be_bytes(*host))),
        _ => Err(DecodeError::Address),
    }
}

/// Source and destination port of `packet`.
///
/// # Errors
///
/// [`EncodeError::Flow`] for flows numbered [`MAX_FLOWS`] and above.
pub fn ports(packet: &Packet) -> Result<(u16, u16), EncodeError> {
    if packet.flow.0 >= MAX_FLOWS {
        return Err(EncodeError::Flow(packet.flow));
    }
    let port = FIRST_FLOW_PORT + packet.flow.0 as u16;
    let service = service_port(&packet.transport);
    Ok(if packet.source <= packet.destination { (port, service) } else { (service, port) })
}

/// The flow of `ports` between two hosts, for packets that carry `transport`.
///
/// # Errors
///
/// [`DecodeError::Ports`] if there is no such flow in this direction.
pub fn flow(
    source: HostId,
    destination: HostId,
    ports: (u16, u16),
    transport: &Transport,
) -> Result<FlowId, DecodeError> {
    let (port, service) = if source <= destination { ports } else { (ports.1, ports.0) };
    match port.checked_sub(FIRST_FLOW_PORT) {
        Some(flow) if service == service_port(transport) => Ok(FlowId(u32::from(flow))),
        _ => Err(DecodeError::Ports(ports.0, ports.1)),
    }
}

/// True if a datagram between `ports` is a TACK packet.
pub(super) fn is_tack(ports: (u16, u16)) -> bool {
    // The ports of flows are never service ports.
    ports.0 == TACK_PORT || ports.1 == TACK_PORT
}

fn service_port(transport: &Transport) -> u16 {
    match transport {
        Transport::Tcp(_) | Transport::Udp(_) => SERVICE_PORT,
        Transport::Tack(_) => TACK_PORT,
    }
}
