//! Formats events as qlog records.

use std::net::SocketAddr;
use std::time::{Duration as WallDuration, SystemTime};

use serde_json::{Value, json};
use tacit_packet::Stats;
use tacit_packet::tack::packet::{Block, Cause, CloseCode, ConnectionId, Control, Sync, Tack};
use tacit_packet::tack::{self, Body};
use tacit_packet::units::{BitRate, Duration, Instant, SeqNumber};

use crate::error::ConnectionError;
use crate::seal::Sealed;

/// The connection that a file describes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub began: SystemTime,
    pub id: u32,
    pub is_client: bool,
    pub local: Option<SocketAddr>,
    pub remote: SocketAddr,
    pub peer: Option<ConnectionId>,
}

impl Header {
    fn role(&self) -> &'static str {
        if self.is_client { "client" } else { "server" }
    }

    /// Reference time in milliseconds since 1970.
    fn reference_ms(&self) -> f64 {
        self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(WallDuration::ZERO).as_millis() as f64
    }

    /// Stem of the file's name, without the suffix that makes it unique.
    pub fn file_name(&self) -> String {
        format!("{:.0}-{:08x}-{}", self.reference_ms(), self.id, self.role())
    }

    /// The first record.
    pub fn to_record(self) -> Value {
        json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": format!("tacit {}", self.role()),
            "trace": {
                "vantage_point": { "name": "tacit", "type": self.role() },
                "title": format!("connection {:08x} with {}", self.id, self.remote),
                "common_fields": {
                    "group_id": format!("{:08x}", self.id),
                    "protocol_type": ["TACK"],
                    "reference_time": self.reference_ms(),
                    "time_format": "relative",
                },
            },
        })
    }

    fn started(&self) -> Value {
        let local = self.local.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let (source, destination) = if self.is_client { (local, self.remote) } else { (self.remote, local) };
        let local_id = format!("{:08x}", self.id);
        let peer = self.peer.map(|peer| format!("{:08x}", peer.0));
        let (source_id, destination_id) =
            if self.is_client { (Some(local_id), peer) } else { (peer, Some(local_id)) };
        let mut data = json!({
            "ip_version": if self.remote.is_ipv4() { "v4" } else { "v6" },
            "src_ip": source.ip().to_string(),
            "dst_ip": destination.ip().to_string(),
            "protocol": "TACK",
            "src_port": source.port(),
            "dst_port": destination.port(),
        });
        for (key, id) in [("src_cid", source_id), ("dst_cid", destination_id)] {
            if let Some(id) = id {
                data[key] = id.into();
            }
        }
        data
    }
}

/// The sender's recovery metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Readings {
    rtt_min: Option<Duration>,
    srtt: Option<Duration>,
    cwnd: Option<u64>,
    in_flight: u64,
    pacing: Option<BitRate>,
}

impl Readings {
    pub fn new(stats: &Stats) -> Self {
        Self {
            rtt_min: stats.rtt_min,
            srtt: stats.srtt,
            cwnd: stats.cwnd,
            in_flight: stats.bytes_in_flight,
            pacing: stats.pacing_rate,
        }
    }

    /// The readings that differ from `before`.
    fn to_data(self, before: &Self) -> Value {
        let mut data = json!({});
        let mut put = |key: &str, value: Option<Value>, changed: bool| {
            if let Some(value) = value.filter(|_| changed) {
                data[key] = value;
            }
        };
        put("min_rtt", self.rtt_min.map(|rtt| millis(rtt).into()), self.rtt_min != before.rtt_min);
        put("smoothed_rtt", self.srtt.map(|rtt| millis(rtt).into()), self.srtt != before.srtt);
        put("congestion_window", self.cwnd.map(Value::from), self.cwnd != before.cwnd);
        put("bytes_in_flight", Some(self.in_flight.into()), self.in_flight != before.in_flight);
        put("pacing_rate", self.pacing.map(|rate| rate.as_bps().into()), self.pacing != before.pacing);
        data
    }
}

/// Low end of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    /// A packet number near all numbers in it.
    pub near: u64,
    /// Numbers from `from` up to, but not including, `below` are acknowledged cumulatively for the first time.
    pub from: u64,
    pub below: u64,
}

/// A recorded event.
pub(super) enum Event {
    Started(Header),
    Connected,
    Packet {
        is_sent: bool,
        number: u64,
        start: u64,
        packet: tack::Packet,
        acked: Option<Acked>,
    },
    Metrics {
        readings: Readings,
        before: Readings,
    },
    Lost {
        number: u64,
    },
    /// A datagram for this connection was rejected; its length is in bytes.
    NotTaken {
        number: u64,
        bytes: u64,
        why: Sealed,
    },
    /// The UDP payload in bytes that the path supports.
    Mtu {
        before: Option<u32>,
        now: u32,
    },
    Key {
        generation: u64,
        is_clients: bool,
        is_ours: bool,
    },
    Path {
        from: SocketAddr,
        to: SocketAddr,
    },
    Ended(ConnectionError),
    /// Number of dropped records.
    Dropped(u64),
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// Expands `low` to the number with these low 32 bits that is nearest to `near`.
pub(super) fn whole(near: u64, low: SeqNumber) -> u64 {
    let ahead = low.0.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(ahead.into())
}

/// The number below which an acknowledgment says that all packets have arrived.
pub(super) fn cumulative(packet: &tack::Packet) -> Option<SeqNumber> {
    match &packet.body {
        Body::Tack(tack) => Some(tack.cumulative),
        Body::Instant(instant) => Some(instant.cumulative),
        _ => None,
    }
}

/// Stream offset of a packet's bytes, truncated as in the packet.
pub(super) fn low_offset(packet: &tack::Packet) -> u64 {
    match &packet.body {
        Body::Data(data) => data.offset.0.into(),
        _ => 0,
    }
}

impl Event {
    /// The records of this event at time `now`.
    pub fn to_records(&self, now: Instant) -> Vec<Value> {
        let time = now.as_nanos() as f64 / 1e6;
        let record = |name: &str, data: Value| json!({ "time": time, "name": name, "data": data });
        match self {
            Self::Started(header) => vec![record("connectivity:connection_started", header.started())],
            Self::Connected => {
                let data = json!({ "old": "handshake_started", "new": "handshake_completed" });
                vec![record("connectivity:connection_state_updated", data)]
            }
            Self::Packet { is_sent, number, start, packet, acked } => {
                let name = if *is_sent { "transport:packet_sent" } else { "transport:packet_received" };
                let mut records = vec![record(name, packet_data(*number, *start, packet, *acked))];
                if let Some((name, mut data)) = tack_record(packet) {
                    data["direction"] = if *is_sent { "sent" } else { "received" }.into();
                    data["packet_number"] = (*number).into();
                    records.push(record(name, data));
                }
                records
            }
            Self::Metrics { readings, before } => {
                vec![record("recovery:metrics_updated", readings.to_data(before))]
            }
            Self::Lost { number } => {
                let header = json!({ "packet_type": "1RTT", "packet_number": number });
                vec![record("recovery:packet_lost", json!({ "header": header }))]
            }
            Self::NotTaken { number, bytes, why } => {
                let data = json!({
                    "header": { "packet_type": "1RTT", "packet_number": number },
                    "raw": { "length": bytes },
                    "trigger": match why {
                        Sealed::Taken | Sealed::Strange => "invalid",
                        Sealed::Misplaced => "rejected",
                        // The draft has no value for a duplicate.
                        Sealed::Repeated => "general",
                        Sealed::Forged => "decryption_failure",
                    },
                });
                vec![record("transport:packet_dropped", data)]
            }
            Self::Mtu { before, now } => {
                let mut data = json!({ "new": now });
                if let Some(before) = before {
                    data["old"] = (*before).into();
                }
                vec![record("connectivity:mtu_updated", data)]
            }
            Self::Key { generation, is_clients, is_ours } => {
                // The schema wants the key itself, which must remain secret.
                let data = json!({
                    "key_type": if *is_clients { "client_1rtt_secret" } else { "server_1rtt_secret" },
                    "new": "",
                    "generation": generation,
                    "trigger": if *is_ours { "local_update" } else { "remote_update" },
                });
                vec![record("security:key_updated", data)]
            }
            Self::Path { from, to } => {
                vec![record("tacit:path_updated", json!({ "old": from.to_string(), "new": to.to_string() }))]
            }
            Self::Dropped(count) => vec![record("tacit:records_dropped", json!({ "count": count }))],
            Self::Ended(why) => vec![record("connectivity:connection_closed", ended(why))],
        }
    }
}

fn ended(why: &ConnectionError) -> Value {
    let (owner, trigger) = match why {
        ConnectionError::TimedOut => ("local", "idle_timeout"),
        ConnectionError::ApplicationClosed { .. } => ("remote", "application"),
        ConnectionError::Reset => ("remote", "error"),
        ConnectionError::ServerRestarted => ("remote", "stateless_reset"),
        ConnectionError::LocallyClosed => ("local", "application"),
        ConnectionError::Busy(_) | ConnectionError::OtherVersion => ("remote", "error"),
        ConnectionError::WrongPeer { .. }
        | ConnectionError::NoAddress(_)
        | ConnectionError::Unreachable
        | ConnectionError::PathTooNarrow
        | ConnectionError::Endpoint(_) => ("local", "error"),
    };
    let mut data = json!({ "owner": owner, "reason": why.to_string(), "trigger": trigger });
    if let ConnectionError::ApplicationClosed { code, .. } = why {
        data["internal_code"] = (*code).into();
    }
    data
}

/// The header and the frames of a packet, in QUIC's terms.
fn packet_data(number: u64, start: u64, packet: &tack::Packet, acked: Option<Acked>) -> Value {
    let packet_type = match packet.body {
        Body::Open(_) => "initial",
        Body::Answer(_) => "handshake",
        _ => "1RTT",
    };
    // Short data may omit the connection number.
    let implied = packet.is_short() && packet.connection.0 == 0;
    let connection = if implied { String::new() } else { format!("{:08x}", packet.connection.0) };
    json!({
        "header": {
            "packet_type": packet_type,
            "packet_number": number,
            "dcid": connection,
        },
        "raw": { "length": packet.len(), "payload_length": packet.payload_len() },
        "frames": frames(start, packet, acked),
    })
}

/// Frames of a packet. TACKs and IACKs are also written as QUIC ACK frames, so that tools see the acknowledged numbers.
fn frames(start: u64, packet: &tack::Packet, acked: Option<Acked>) -> Value {
    match &packet.body {
        Body::Open(_) | Body::Answer(_) => {
            json!([{ "frame_type": "crypto", "offset": 0, "length": packet.len() }])
        }
        Body::Data(data) => json!([{
            "frame_type": "stream",
            "stream_id": data.stream.0,
            "offset": start,
            "length": data.payload_len,
            "fin": data.fin,
        }]),
        Body::Datagram(datagram) => json!([{ "frame_type": "datagram", "length": datagram.payload_len }]),
        Body::Tack(tack) => ack(acked, &tack_ranges(tack, acked)),
        Body::Instant(instant) => {
            let mut ranges = Vec::new();
            if let (Some(acked), Cause::Loss) = (acked, instant.cause) {
                let number = |low| whole(acked.near, low);
                ranges.push([number(instant.since), number(instant.second)]);
                ranges.push([number(instant.largest), number(instant.largest)]);
            }
            ack(acked, &ranges)
        }
        Body::Probe { padding } => {
            json!([{ "frame_type": "ping" }, { "frame_type": "padding", "payload_length": padding }])
        }
        Body::Control(Control::Reset { stream, code, end }) => json!([{
            "frame_type": "reset_stream", "stream_id": stream.0, "error_code": code, "final_size": end.0,
        }]),
        Body::Control(Control::Stop { stream, code }) => {
            json!([{ "frame_type": "stop_sending", "stream_id": stream.0, "error_code": code }])
        }
        Body::Control(Control::Streams { limit }) => {
            json!([{ "frame_type": "max_streams", "stream_type": "bidirectional", "maximum": limit }])
        }
        Body::PathChallenge(_) => json!([{ "frame_type": "path_challenge" }]),
        Body::PathResponse(_) => json!([{ "frame_type": "path_response" }]),
        Body::Close(code) => json!([{
            "frame_type": "connection_close",
            "error_space": "transport_error",
            "error_code": match code {
                CloseCode::Done => 0,
                CloseCode::Aborted => 1,
                CloseCode::Refused => 2,
                CloseCode::Violation => 3,
                CloseCode::PathTooNarrow => 4,
            },
        }]),
        Body::CloseWith(reason) => json!([{
            "frame_type": "connection_close",
            "error_space": "application_error",
            "error_code": reason.code,
            "reason": reason.text,
        }]),
        // QUIC has no such frame; it gets a separate record.
        Body::Sync(_) | Body::Control(Control::Held { .. }) => json!([]),
    }
}

fn ack(acked: Option<Acked>, ranges: &[[u64; 2]]) -> Value {
    let new = acked.filter(|acked| acked.from < acked.below).map(|acked| [acked.from, acked.below - 1]);
    let mut ranges: Vec<_> = new.into_iter().chain(ranges.iter().copied().filter(|[a, b]| a <= b)).collect();
    ranges.sort_unstable();
    json!([{ "frame_type": "ack", "acked_ranges": ranges }])
}

/// Ranges that a TACK acknowledges above its cumulative number: its acked list, and the gaps between the blocks of its
/// unacked list.
fn tack_ranges(tack: &Tack, acked: Option<Acked>) -> Vec<[u64; 2]> {
    let Some(acked) = acked else { return Vec::new() };
    let number = |low| whole(acked.near, low);
    let mut ranges: Vec<_> =
        tack.acked.iter().map(|block| [number(block.first), number(block.last)]).collect();
    for (place, pair) in tack.unacked.windows(2).enumerate() {
        let (before, after) = (number(pair[0].last), number(pair[1].first));
        if place + 1 != usize::from(tack.repeated) && before + 1 < after {
            ranges.push([before + 1, after - 1]);
        }
    }
    ranges
}

fn blocks(blocks: &[Block]) -> Vec<[u32; 2]> {
    blocks.iter().map(|block| [block.first.0, block.last.0]).collect()
}

fn sync_data(sync: &Sync) -> Value {
    json!({
        "rtt_min_us": sync.rtt_min_us,
        "floor": sync.floor.0,
        "blocks": sync.blocks,
        "startup": sync.startup,
        "ack_interval_ms": sync.ack_interval_ms,
    })
}

/// Fields of TACK that QUIC does not have, as in the packet: numbers have 32 bits.
fn tack_record(packet: &tack::Packet) -> Option<(&'static str, Value)> {
    match &packet.body {
        Body::Tack(tack) => Some((
            "tacit:tack",
            json!({
                "delay_us": Some(tack.delay_us).filter(|delay| *delay != u32::MAX),
                "rate_kbps": tack.rate_kbps,
                "loss_65536ths": tack.loss,
                "received_bytes": tack.received.0,
                "window_bytes": tack.window.0,
                "ce_packets": tack.ce,
                "cumulative": tack.cumulative.0,
                "acked": blocks(&tack.acked),
                "unacked": blocks(&tack.unacked),
                "repeated": tack.repeated,
                "streams": tack.streams.iter().map(|(stream, limit)| [stream.0, limit.0]).collect::<Vec<_>>(),
            }),
        )),
        Body::Instant(instant) => Some((
            "tacit:iack",
            json!({
                "cause": match instant.cause { Cause::Loss => "loss", Cause::Window => "window" },
                "largest": instant.largest.0,
                "second": instant.second.0,
                "since": instant.since.0,
                "cumulative": instant.cumulative.0,
                "window_bytes": instant.window.0,
            }),
        )),
        Body::Sync(sync) => Some(("tacit:sync", sync_data(sync))),
        Body::Data(data) => data.sync.as_ref().map(|sync| ("tacit:sync", sync_data(sync))),
        Body::Datagram(datagram) => datagram.sync.as_ref().map(|sync| ("tacit:sync", sync_data(sync))),
        Body::Control(Control::Held { stream }) => Some(("tacit:held", json!({ "stream_id": stream.0 }))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::units::SeqNumber;

    /// Between missing blocks everything arrived, except between the oldest of them and those behind.
    #[test]
    fn a_tack_acknowledges_what_lies_between_the_missing_blocks_that_are_neighbours() {
        let block = |first, last| Block { first: SeqNumber(first), last: SeqNumber(last) };
        let tack = Tack {
            acked: vec![block(40, 50)],
            unacked: vec![block(2, 3), block(6, 6), block(7, 8), block(12, 12), block(15, 15)],
            repeated: 4,
            ..Tack::default()
        };
        let acked = Some(Acked { near: 0, from: 0, below: 2 });
        assert_eq!(tack_ranges(&tack, acked), [[40, 50], [4, 5], [9, 11]]);
        assert_eq!(tack_ranges(&tack, None), Vec::<[u64; 2]>::new());
    }
}
