//! `[tcp]`.

use tacit_proto::packet::IpVersion;
use tacit_proto::tcp::{
    self, AckPolicy, Congestion, DelayedAcks, LinuxAcks, LossDetection, Pacing, PolicerDetection, Profile,
    ReceiveAutotuning, Recovery, SlowStart, Undo,
};
use tacit_proto::units::{Bytes, Duration};

use super::{MAX_WIFI_PACKET, or_none, span};
use crate::error::InputError;
use crate::input::{Mismatch, Section, Value, byte_count, duration, flag, integer, one_of, within};

/// Smallest MTU with room for headers, options and payload.
const MIN_MTU: Bytes = Bytes(256);
/// Bounds of both buffers.
const SMALLEST_BUFFER: Bytes = Bytes(4_096);
const LARGEST_BUFFER: Bytes = Bytes(1 << 30);
/// Smallest MTU of IPv6 (RFC 8200 section 5).
const MIN_MTU_V6: Bytes = Bytes(1_280);

/// No `byte-counting-limit`: more than a window holds.
pub(in crate::scenario) const NO_COUNTING_LIMIT: u32 = u32::MAX;

/// Choices as users write them.
pub(in crate::scenario) const PROFILES: [(&str, Profile); 2] =
    [("classic", Profile::Classic), ("linux", Profile::Linux)];
pub(in crate::scenario) const VERSIONS: [(&str, IpVersion); 2] =
    [("v4", IpVersion::V4), ("v6", IpVersion::V6)];
pub(in crate::scenario) const CONTROLS: [(&str, Congestion); 5] = [
    ("cubic", Congestion::Cubic),
    ("newreno", Congestion::NewReno),
    ("bbr", Congestion::Bbr),
    ("vegas", Congestion::Vegas),
    ("copa", Congestion::Copa),
];
pub(in crate::scenario) const SLOW_STARTS: [(&str, SlowStart); 2] =
    [("hystart", SlowStart::HyStart), ("standard", SlowStart::Standard)];
pub(in crate::scenario) const POLICERS: [(&str, PolicerDetection); 2] =
    [("on", PolicerDetection::On), ("off", PolicerDetection::Off)];
pub(in crate::scenario) const DETECTIONS: [(&str, LossDetection); 2] =
    [("rfc6675", LossDetection::DupAck), ("rack-tlp", LossDetection::RackTlp)];
pub(in crate::scenario) const RECOVERIES: [(&str, Recovery); 2] =
    [("rfc6675", Recovery::Rfc6675), ("prr", Recovery::Prr)];
pub(in crate::scenario) const UNDOS: [(&str, Undo); 4] =
    [("none", Undo::Never), ("eifel", Undo::Eifel), ("f-rto", Undo::FRto), ("all", Undo::All)];

/// `receive-buffer`, a size or `"auto"`, and `receive-buffer-max`, how far the latter grows.
fn receive_buffer(
    section: &Section<'_>,
    usual: &tcp::Config,
) -> Result<(Bytes, ReceiveAutotuning), InputError> {
    let buffer = within(SMALLEST_BUFFER..=LARGEST_BUFFER, byte_count);
    let sized = |value: &Value| match value {
        Value::Text(text) if text == "auto" => Ok(None),
        other => buffer(other).map(Some).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or \"auto\"");
            mismatch
        }),
    };
    let growing = (ReceiveAutotuning::LINUX_START, ReceiveAutotuning::LINUX);
    let (start, autotuning) = match section.optional("receive-buffer", sized)? {
        None => (usual.receive_buffer, usual.receive_autotuning),
        Some(None) => growing,
        Some(Some(size)) => (size, ReceiveAutotuning::Off),
    };
    let max = section.optional("receive-buffer-max", &buffer)?;
    match (autotuning, max) {
        (ReceiveAutotuning::Off, Some(_)) => {
            Err(section.error("receive-buffer-max", "only where receive-buffer is \"auto\""))
        }
        (ReceiveAutotuning::UpTo(_), Some(max)) => {
            Ok((Bytes(start.0.min(max.0)), ReceiveAutotuning::UpTo(max)))
        }
        _ => Ok((start, autotuning)),
    }
}

pub(super) fn tcp_section(section: Section<'_>, has_wifi: bool) -> Result<tcp::Config, InputError> {
    let usual = section.or("profile", Profile::default(), one_of(&PROFILES))?.config();
    let ip = section.or("ip", usual.ip, one_of(&VERSIONS))?;
    let smallest = if ip == IpVersion::V6 { MIN_MTU_V6 } else { MIN_MTU };
    let largest = if has_wifi { MAX_WIFI_PACKET } else { Bytes(65_535) };
    let (receive_buffer, receive_autotuning) = receive_buffer(&section, &usual)?;
    let config = tcp::Config {
        ip,
        mtu: section.or("mtu", usual.mtu, within(smallest..=largest, byte_count))?,
        congestion: section.or("congestion", usual.congestion, one_of(&CONTROLS))?,
        slow_start: section.or("slow-start", usual.slow_start, one_of(&SLOW_STARTS))?,
        pacing: section.or("pacing", usual.pacing, pacing)?,
        bbr_policer: section.or("bbr-policer", usual.bbr_policer, one_of(&POLICERS))?,
        byte_counting_limit: section
            .optional("byte-counting-limit", or_none(integer(1..=1_000_000)))?
            .map_or(usual.byte_counting_limit, |limit| limit.unwrap_or(NO_COUNTING_LIMIT)),
        ack_policy: ack_policy(&section, usual.ack_policy)?,
        timestamps: section.or("timestamps", usual.timestamps, flag)?,
        sack: section.or("sack", usual.sack, flag)?,
        ecn: section.or("ecn", usual.ecn, flag)?,
        dsack: section.or("dsack", usual.dsack, flag)?,
        loss_detection: section.or("loss-detection", usual.loss_detection, one_of(&DETECTIONS))?,
        recovery: section.or("recovery", usual.recovery, one_of(&RECOVERIES))?,
        undo: section.or("undo", usual.undo, one_of(&UNDOS))?,
        receive_buffer,
        receive_autotuning,
        send_buffer: section.or(
            "send-buffer",
            usual.send_buffer,
            within(SMALLEST_BUFFER..=LARGEST_BUFFER, byte_count),
        )?,
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

/// `usual` is the profile's; the knobs of each policy are those of the policy.
fn ack_policy(section: &Section<'_>, usual: AckPolicy) -> Result<AckPolicy, InputError> {
    // RFC 9293 section 3.8.6.3: below half a second.
    let delay = || within(Duration::ZERO..=Duration::from_millis(500), duration);
    let classic = DelayedAcks::default();
    let delayed = DelayedAcks {
        every: section.or("ack-every", classic.every, integer(1..=1_000))?,
        delay: section.or("ack-delay", classic.delay, delay())?,
        quick_ack_segments: section.or("quick-acks", classic.quick_ack_segments, integer(0..=1_000_000))?,
    };
    let gro_flush = within(Duration::ZERO..=Duration::from_millis(10), duration);
    let linux = LinuxAcks { gro_flush: section.or("gro-flush", Duration::ZERO, gro_flush)? };
    let (packets, max_delay, threshold) = AckPolicy::ACK_FREQUENCY;
    let ack_frequency = AckPolicy::quic_ackfreq(
        section.or("ackfreq-packets", packets, integer(1..=1_000_000))?,
        section.or("ackfreq-delay", max_delay, delay())?,
        section.or("ackfreq-reordering", threshold, integer(0..=1_000))?,
    );
    let chosen = [
        (DELAYED, AckPolicy::Delayed(delayed)),
        (LINUX, AckPolicy::Linux(linux)),
        (ACK_FREQUENCY, ack_frequency),
    ];
    let policies: Vec<_> = chosen.into_iter().chain(FIXED_POLICIES).collect();
    let usual = match usual {
        AckPolicy::Linux(_) => AckPolicy::Linux(linux),
        _ => AckPolicy::Delayed(delayed),
    };
    section.or("ack-policy", usual, one_of(&policies))
}

const DELAYED: &str = "delayed";
const LINUX: &str = "linux";
const ACK_FREQUENCY: &str = "quic-ackfreq";

/// Policies without anything to choose.
const FIXED_POLICIES: [(&str, AckPolicy); 5] = [
    ("quic-ack2", AckPolicy::quic_ack2()),
    ("chrome", AckPolicy::chrome()),
    ("neqo", AckPolicy::neqo()),
    ("picoquic", AckPolicy::picoquic()),
    ("tack-lite", AckPolicy::tack_lite()),
];

/// What `tcp.ack-policy` calls `policy`.
pub(in crate::scenario) fn policy_name(policy: AckPolicy) -> &'static str {
    match policy {
        AckPolicy::Delayed(_) => DELAYED,
        AckPolicy::Linux(_) => LINUX,
        AckPolicy::Packets(_) => {
            FIXED_POLICIES.iter().find(|(_, fixed)| *fixed == policy).map_or(ACK_FREQUENCY, |(name, _)| *name)
        }
    }
}

/// `"auto"`, or a flag.
fn pacing(value: &Value) -> Result<Pacing, Mismatch> {
    match value {
        Value::Text(text) if text == "auto" => Ok(Pacing::Auto),
        Value::Flag(true) => Ok(Pacing::On),
        Value::Flag(false) => Ok(Pacing::Off),
        other => Err(Mismatch::new(format!("{other} is no pacing"), "\"auto\", true, false")),
    }
}
