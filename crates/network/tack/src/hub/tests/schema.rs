//! Required and optional fields of qlog 0.3 records: tables from draft-ietf-quic-qlog-main-schema-02 and
//! draft-ietf-quic-qlog-quic-events-02, which qvis reads. For enumerations, all values are listed.

use serde_json::Value;

/// Type of a field.
#[derive(Clone, Copy, Debug)]
enum FieldType {
    Text,
    Flag,
    /// An integer of at most this number of bits.
    Bits(u32),
    /// A number that may have a fraction.
    Fraction,
    /// One of these strings.
    Of(&'static [&'static str]),
    Fields(&'static [Field]),
    Frames,
    /// Pairs of packet numbers, or single ones.
    Ranges,
}

/// The name of a field, whether it is required, and its type.
type Field = (&'static str, bool, FieldType);

const MUST: bool = true;
const MAY: bool = false;

const STATES: FieldType = FieldType::Of(&[
    "attempted",
    "peer_validated",
    "handshake_started",
    "early_write",
    "handshake_completed",
    "handshake_confirmed",
    "closing",
    "draining",
    "closed",
]);
const OWNER: FieldType = FieldType::Of(&["local", "remote"]);
const CLOSED: FieldType = FieldType::Of(&[
    "clean",
    "handshake_timeout",
    "idle_timeout",
    "error",
    "stateless_reset",
    "version_mismatch",
    "application",
]);
const DROPPED: FieldType = FieldType::Of(&[
    "internal_error",
    "rejected",
    "unsupported",
    "invalid",
    "connection_unknown",
    "decryption_failure",
    "general",
]);
const KEY: FieldType = FieldType::Of(&[
    "server_initial_secret",
    "client_initial_secret",
    "server_handshake_secret",
    "client_handshake_secret",
    "server_0rtt_secret",
    "client_0rtt_secret",
    "server_1rtt_secret",
    "client_1rtt_secret",
]);
const PACKET: FieldType = FieldType::Of(&[
    "initial",
    "handshake",
    "0RTT",
    "1RTT",
    "retry",
    "version_negotiation",
    "stateless_reset",
    "unknown",
]);
const HEADER: FieldType = FieldType::Fields(&[
    ("packet_type", MUST, PACKET),
    ("packet_number", MUST, FieldType::Bits(64)),
    ("dcid", MAY, FieldType::Text),
]);
const RAW: FieldType =
    FieldType::Fields(&[("length", MAY, FieldType::Bits(64)), ("payload_length", MAY, FieldType::Bits(64))]);

/// The fields of `data`, by the name of the record.
const EVENTS: [(&str, &[Field]); 10] = [
    (
        "connectivity:connection_started",
        &[
            ("ip_version", MAY, FieldType::Of(&["v4", "v6"])),
            ("src_ip", MUST, FieldType::Text),
            ("dst_ip", MUST, FieldType::Text),
            ("protocol", MAY, FieldType::Text),
            ("src_port", MAY, FieldType::Bits(16)),
            ("dst_port", MAY, FieldType::Bits(16)),
            ("src_cid", MAY, FieldType::Text),
            ("dst_cid", MAY, FieldType::Text),
        ],
    ),
    ("connectivity:connection_state_updated", &[("old", MAY, STATES), ("new", MUST, STATES)]),
    (
        "connectivity:connection_closed",
        &[
            ("owner", MAY, OWNER),
            ("internal_code", MAY, FieldType::Bits(32)),
            ("reason", MAY, FieldType::Text),
            ("trigger", MAY, CLOSED),
        ],
    ),
    (
        "connectivity:mtu_updated",
        &[
            ("old", MAY, FieldType::Bits(16)),
            ("new", MUST, FieldType::Bits(16)),
            ("done", MAY, FieldType::Flag),
        ],
    ),
    (
        "transport:packet_sent",
        &[("header", MUST, HEADER), ("raw", MAY, RAW), ("frames", MAY, FieldType::Frames)],
    ),
    (
        "transport:packet_received",
        &[("header", MUST, HEADER), ("raw", MAY, RAW), ("frames", MAY, FieldType::Frames)],
    ),
    ("transport:packet_dropped", &[("header", MAY, HEADER), ("raw", MAY, RAW), ("trigger", MAY, DROPPED)]),
    (
        "security:key_updated",
        &[
            ("key_type", MUST, KEY),
            ("new", MUST, FieldType::Text),
            ("generation", MAY, FieldType::Bits(32)),
            ("trigger", MAY, FieldType::Of(&["tls", "remote_update", "local_update"])),
        ],
    ),
    (
        "recovery:metrics_updated",
        &[
            ("min_rtt", MAY, FieldType::Fraction),
            ("smoothed_rtt", MAY, FieldType::Fraction),
            ("congestion_window", MAY, FieldType::Bits(64)),
            ("bytes_in_flight", MAY, FieldType::Bits(64)),
            ("pacing_rate", MAY, FieldType::Bits(64)),
        ],
    ),
    ("recovery:packet_lost", &[("header", MAY, HEADER), ("frames", MAY, FieldType::Frames)]),
];

/// The fields of a frame by its type, in addition to `frame_type`.
const FRAMES: [(&str, &[Field]); 12] = [
    ("padding", &[("payload_length", MUST, FieldType::Bits(32))]),
    ("ping", &[]),
    ("ack", &[("ack_delay", MAY, FieldType::Fraction), ("acked_ranges", MAY, FieldType::Ranges)]),
    (
        "reset_stream",
        &[
            ("stream_id", MUST, FieldType::Bits(64)),
            ("error_code", MUST, FieldType::Bits(32)),
            ("final_size", MUST, FieldType::Bits(64)),
        ],
    ),
    ("stop_sending", &[("stream_id", MUST, FieldType::Bits(64)), ("error_code", MUST, FieldType::Bits(32))]),
    ("crypto", &[("offset", MUST, FieldType::Bits(64)), ("length", MUST, FieldType::Bits(64))]),
    (
        "stream",
        &[
            ("stream_id", MUST, FieldType::Bits(64)),
            ("offset", MUST, FieldType::Bits(64)),
            ("length", MUST, FieldType::Bits(64)),
            ("fin", MAY, FieldType::Flag),
        ],
    ),
    (
        "max_streams",
        &[
            ("stream_type", MUST, FieldType::Of(&["unidirectional", "bidirectional"])),
            ("maximum", MUST, FieldType::Bits(64)),
        ],
    ),
    ("path_challenge", &[("data", MAY, FieldType::Text)]),
    ("path_response", &[("data", MAY, FieldType::Text)]),
    (
        "connection_close",
        &[
            ("error_space", MAY, FieldType::Of(&["transport_error", "application_error"])),
            ("error_code", MAY, FieldType::Bits(32)),
            ("reason", MAY, FieldType::Text),
        ],
    ),
    ("datagram", &[("length", MAY, FieldType::Bits(64))]),
];

/// Checks a QUIC record against the tables.
pub fn check(record: &Value) {
    let wrong = |what: &str| panic!("{record}: {what}");
    let Some(name) = record["name"].as_str() else { return wrong("it has no name") };
    let Some((_, fields)) = EVENTS.iter().find(|(known, _)| *known == name) else {
        return wrong("an event that the draft has not");
    };
    let event = [("time", MUST, FieldType::Fraction), ("name", MUST, FieldType::Text)];
    fields_are(record, &event, &["data"])
        .and_then(|()| fields_are(&record["data"], fields, &[]))
        .unwrap_or_else(|what| wrong(&what));
}

/// Checks that `value` has all required fields, no unknown fields except `others`, and that each has its type.
fn fields_are(value: &Value, fields: &[Field], others: &[&str]) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Err(format!("{value} is no object")) };
    for (name, must, is) in fields {
        match object.get(*name) {
            Some(value) if holds(value, *is) => {}
            Some(value) => return Err(format!("{name} is {value}, not {is:?}")),
            None if *must => return Err(format!("{name} is missing")),
            None => {}
        }
    }
    let known = |name: &str| others.contains(&name) || fields.iter().any(|(field, ..)| *field == name);
    object.keys().find(|name| !known(name)).map_or(Ok(()), |name| Err(format!("{name} is not in the draft")))
}

fn holds(value: &Value, is: FieldType) -> bool {
    let pair = |range: &Value| {
        range.as_array().is_some_and(|range| range.len() <= 2 && range.iter().all(|number| number.is_u64()))
    };
    let frame = |frame: &Value| {
        let known = FRAMES.iter().find(|(kind, _)| frame["frame_type"] == *kind);
        known.is_some_and(|(_, fields)| fields_are(frame, fields, &["frame_type"]).is_ok())
    };
    match is {
        FieldType::Text => value.is_string(),
        FieldType::Flag => value.is_boolean(),
        FieldType::Bits(bits) => value.as_u64().is_some_and(|number| bits == 64 || number < 1 << bits),
        FieldType::Fraction => value.as_f64().is_some_and(|number| number >= 0.0),
        FieldType::Of(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        FieldType::Fields(fields) => fields_are(value, fields, &[]).is_ok(),
        FieldType::Frames => value.as_array().is_some_and(|frames| frames.iter().all(frame)),
        FieldType::Ranges => value.as_array().is_some_and(|ranges| ranges.iter().all(pair)),
    }
}
