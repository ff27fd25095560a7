//! `[tcp]`.

use tacit_proto::packet::IpVersion;
use tacit_proto::tcp::{self, AckPolicy, Congestion, LossDetection, Recovery, SlowStart, Undo};
use tacit_proto::units::{Bytes, Duration};

use super::{MAX_WIFI_PACKET, span};
use crate::error::InputError;
use crate::input::{Section, byte_count, duration, flag, integer, one_of, within};

/// Smallest MTU with room for headers, options and payload.
const MIN_MTU: Bytes = Bytes(256);
/// Smallest MTU of IPv6 (RFC 8200 section 5).
const MIN_MTU_V6: Bytes = Bytes(1_280);

pub(super) fn tcp_section(section: Section<'_>, has_wifi: bool) -> Result<tcp::Config, InputError> {
    let usual = tcp::Config::default();
    let ip = section.or("ip", usual.ip, one_of(&[("v4", IpVersion::V4), ("v6", IpVersion::V6)]))?;
    let smallest = if ip == IpVersion::V6 { MIN_MTU_V6 } else { MIN_MTU };
    let largest = if has_wifi { MAX_WIFI_PACKET } else { Bytes(65_535) };
    let controls = [("cubic", Congestion::Cubic), ("newreno", Congestion::NewReno)];
    let slow_starts = [("hystart", SlowStart::HyStart), ("standard", SlowStart::Standard)];
    let detections = [("rfc6675", LossDetection::DupAck), ("rack-tlp", LossDetection::RackTlp)];
    let recoveries = [("rfc6675", Recovery::Rfc6675), ("prr", Recovery::Prr)];
    let undos = [("none", Undo::Never), ("eifel", Undo::Eifel), ("f-rto", Undo::FRto), ("all", Undo::All)];
    let buffer = within(Bytes(4_096)..=Bytes(1 << 30), byte_count);
    let config = tcp::Config {
        ip,
        mtu: section.or("mtu", usual.mtu, within(smallest..=largest, byte_count))?,
        congestion: section.or("congestion", usual.congestion, one_of(&controls))?,
        slow_start: section.or("slow-start", usual.slow_start, one_of(&slow_starts))?,
        byte_counting_limit: section.or(
            "byte-counting-limit",
            usual.byte_counting_limit,
            integer(1..=1_000_000),
        )?,
        ack_policy: AckPolicy {
            every: section.or("ack-every", usual.ack_policy.every, integer(1..=1_000))?,
            delay: section.or(
                "ack-delay",
                usual.ack_policy.delay,
                // RFC 9293 section 3.8.6.3: below half a second.
                within(Duration::ZERO..=Duration::from_millis(500), duration),
            )?,
            quick_ack_segments: section.or(
                "quick-acks",
                usual.ack_policy.quick_ack_segments,
                integer(0..=1_000_000),
            )?,
        },
        timestamps: section.or("timestamps", usual.timestamps, flag)?,
        sack: section.or("sack", usual.sack, flag)?,
        dsack: section.or("dsack", usual.dsack, flag)?,
        loss_detection: section.or("loss-detection", usual.loss_detection, one_of(&detections))?,
        recovery: section.or("recovery", usual.recovery, one_of(&recoveries))?,
        undo: section.or("undo", usual.undo, one_of(&undos))?,
        receive_buffer: section.or("receive-buffer", usual.receive_buffer, &buffer)?,
        send_buffer: section.or("send-buffer", usual.send_buffer, &buffer)?,
        initial_window: section.or("initial-window", usual.initial_window, integer(1..=1_000))?,
        rto_min: section.or(
            "rto-min",
            usual.rto_min,
            within(Duration::from_millis(1)..=Duration::from_secs(60), duration),
        )?,
        time_wait: section.or("time-wait", usual.time_wait, span)?,
    };
    section.finish()?;
    Ok(config)
}
