//! Required and optional fields of qlog 0.3 records: tables from draft-ietf-quic-qlog-main-schema-02 and
//! draft-ietf-quic-qlog-quic-events-02, which qvis reads. For enumerations, all values are listed.

use serde_json::Value;

/// Type of a field.
#[derive(Clone, Copy, Debug)]
enum Is {
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
type Field = (&'static str, bool, Is);

const MUST: bool = true;
const MAY: bool = false;

const STATES: Is = Is::Of(&[
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
const OWNER: Is = Is::Of(&["local", "remote"]);
const CLOSED: Is = Is::Of(&[
    "clean",
    "handshake_timeout",
    "idle_timeout",
    "error",
    "stateless_reset",
    "version_mismatch",
    "application",
]);
const DROPPED: Is = Is::Of(&[
    "internal_error",
    "rejected",
    "unsupported",
    "invalid",
    "connection_unknown",
    "decryption_failure",
    "general",
]);
const KEY: Is = Is::Of(&[
    "server_initial_secret",
    "client_initial_secret",
    "server_handshake_secret",
    "client_handshake_secret",
    "server_0rtt_secret",
    "client_0rtt_secret",
    "server_1rtt_secret",
    "client_1rtt_secret",
]);
const PACKET: Is = Is::Of(&[
    "initial",
    "handshake",
    "0RTT",
    "1RTT",
    "retry",
    "version_negotiation",
    "stateless_reset",
    "unknown",
]);
const HEADER: Is = Is::Fields(&[
    ("packet_type", MUST, PACKET),
    ("packet_number", MUST, Is::Bits(64)),
    ("dcid", MAY, Is::Text),
]);
const RAW: Is = Is::Fields(&[("length", MAY, Is::Bits(64)), ("payload_length", MAY, Is::Bits(64))]);

/// The fields of `data`, by the name of the record.
const EVENTS: [(&str, &[Field]); 10] = [
    (
        "connectivity:connection_started",
        &[
            ("ip_version", MAY, Is::Of(&["v4", "v6"])),
            ("src_ip", MUST, Is::Text),
            ("dst_ip", MUST, Is::Text),
            ("protocol", MAY, Is::Text),
            ("src_port", MAY, Is::Bits(16)),
            ("dst_port", MAY, Is::Bits(16)),
            ("src_cid", MAY, Is::Text),
            ("dst_cid", MAY, Is::Text),
        ],
    ),
    ("connectivity:connection_state_updated", &[("old", MAY, STATES), ("new", MUST, STATES)]),
    (
        "connectivity:connection_closed",
        &[
            ("owner", MAY, OWNER),
            ("internal_code", MAY, Is::Bits(32)),
            ("reason", MAY, Is::Text),
            ("trigger", MAY, CLOSED),
        ],
    ),
    (
        "connectivity:mtu_updated",
        &[("old", MAY, Is::Bits(16)), ("new", MUST, Is::Bits(16)), ("done", MAY, Is::Flag)],
    ),
    ("transport:packet_sent", &[("header", MUST, HEADER), ("raw", MAY, RAW), ("frames", MAY, Is::Frames)]),
    (
        "transport:packet_received",
        &[("header", MUST, HEADER), ("raw", MAY, RAW), ("frames", MAY, Is::Frames)],
    ),
    ("transport:packet_dropped", &[("header", MAY, HEADER), ("raw", MAY, RAW), ("trigger", MAY, DROPPED)]),
    (
        "security:key_updated",
        &[
            ("key_type", MUST, KEY),
            ("new", MUST, Is::Text),
            ("generation", MAY, Is::Bits(32)),
            ("trigger", MAY, Is::Of(&["tls", "remote_update", "local_update"])),
        ],
    ),
    (
        "recovery:metrics_updated",
        &[
            ("min_rtt", MAY, Is::Fraction),
            ("smoothed_rtt", MAY, Is::Fraction),
            ("congestion_window", MAY, Is::Bits(64)),
            ("bytes_in_flight", MAY, Is::Bits(64)),
            ("pacing_rate", MAY, Is::Bits(64)),
        ],
    ),
    ("recovery:packet_lost", &[("header", MAY, HEADER), ("frames", MAY, Is::Frames)]),
];

/// The fields of a frame by its type, in addition to `frame_type`.
const FRAMES: [(&str, &[Field]); 12] = [
    ("padding", &[("payload_length", MUST, Is::Bits(32))]),
    ("ping", &[]),
    ("ack", &[("ack_delay", MAY, Is::Fraction), ("acked_ranges", MAY, Is::Ranges)]),
    (
        "reset_stream",
        &[
            ("stream_id", MUST, Is::Bits(64)),
            ("error_code", MUST, Is::Bits(32)),
            ("final_size", MUST, Is::Bits(64)),
        ],
    ),
    ("stop_sending", &[("stream_id", MUST, Is::Bits(64)), ("error_code", MUST, Is::Bits(32))]),
    ("crypto", &[("offset", MUST, Is::Bits(64)), ("length", MUST, Is::Bits(64))]),
    (
        "stream",
        &[
            ("stream_id", MUST, Is::Bits(64)),
            ("offset", MUST, Is::Bits(64)),
            ("length", MUST, Is::Bits(64)),
            ("fin", MAY, Is::Flag),
        ],
    ),
    (
        "max_streams",
        &[
            ("stream_type", MUST, Is::Of(&["unidirectional", "bidirectional"])),
            ("maximum", MUST, Is::Bits(64)),
        ],
    ),
    ("path_challenge", &[("data", MAY, Is::Text)]),
    ("path_response", &[("data", MAY, Is::Text)]),
    (
        "connection_close",
        &[
            ("error_space", MAY, Is::Of(&["transport_error", "application_error"])),
            ("error_code", MAY, Is::Bits(32)),
            ("reason", MAY, Is::Text),
        ],
    ),
    ("datagram", &[("length", MAY, Is::Bits(64))]),
];

/// Checks a QUIC record against the tables.
pub fn check(record: &Value) {
    let wrong = |what: &str| panic!("{record}: {what}");
    let Some(name) = record["name"].as_str() else { return wrong("it has no name") };
    let Some((_, fields)) = EVENTS.iter().find(|(known, _)| *known == name) else {
        return wrong("an event that the draft has not");
    };
    let event = [("time", MUST, Is::Fraction), ("name", MUST, Is::Text)];
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

fn holds(value: &Value, is: Is) -> bool {
    let pair = |range: &Value| {
        range.as_array().is_some_and(|range| range.len() <= 2 && range.iter().all(|number| number.is_u64()))
    };
    let frame = |frame: &Value| {
        let known = FRAMES.iter().find(|(kind, _)| frame["frame_type"] == *kind);
        known.is_some_and(|(_, fields)| fields_are(frame, fields, &["frame_type"]).is_ok())
    };
    match is {
        Is::Text => value.is_string(),
        Is::Flag => value.is_boolean(),
        Is::Bits(bits) => value.as_u64().is_some_and(|number| bits == 64 || number < 1 << bits),
        Is::Fraction => value.as_f64().is_some_and(|number| number >= 0.0),
        Is::Of(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Is::Fields(fields) => fields_are(value, fields, &[]).is_ok(),
        Is::Frames => value.as_array().is_some_and(|frames| frames.iter().all(frame)),
        Is::Ranges => value.as_array().is_some_and(|ranges| ranges.iter().all(pair)),
    }
}
