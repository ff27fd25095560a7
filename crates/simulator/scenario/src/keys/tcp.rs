//! `[tcp]`.

use std::mem::discriminant;

use tacit_proto::congestion::bbr::PolicerDetection;
use tacit_proto::congestion::cubic::SlowStart;
use tacit_proto::congestion::{Algorithm, Pacing};
use tacit_proto::packet::IpVersion;
use tacit_proto::tcp::{AckPolicy, Config, LossDetection, Profile, Recovery, Undo, WindowGrowth};
use tacit_proto::units::{Bytes, Duration};

use super::kind::{ANY_TIME, Choice, Flag, Kind as _, NONE, OrNone, Own, Size, Span, Whole, or, quoted};
use super::{Field, Key, Keys, Usual};
use crate::input::{Mismatch, Value};

pub(crate) const PROFILE: Key<Choice<Profile>> = Key {
    name: "profile",
    kind: Choice(&[("classic", Profile::Classic), ("linux", Profile::Linux)]),
    usual: Usual::Is("\"classic\""),
    meaning: "defaults of the keys below: as listed, or those of a current Linux, see below",
};

pub(crate) const MTU: &str = "mtu";

/// Each controller with its default options.
pub(super) const CONTROLS: [(&str, Algorithm); 10] = [
    ("cubic", Algorithm::CUBIC),
    ("newreno", Algorithm::NewReno),
    ("bbr", Algorithm::BBR),
    ("bbr3", Algorithm::Bbr3),
    ("vegas", Algorithm::Vegas),
    ("copa", Algorithm::Copa),
    ("rre", Algorithm::RRE),
    ("allegro", Algorithm::Allegro),
    ("vivace", Algorithm::Vivace),
    ("prague", Algorithm::Prague),
];

/// The options of a controller have separate keys.
pub(crate) const CONGESTION: Key<Choice<Algorithm>> = Key {
    name: "congestion",
    kind: Choice(&CONTROLS),
    usual: Usual::Is("\"cubic\""),
    meaning: "congestion control; `bbr` is version 1 of BBR and `bbr3` version 3, `prague` is that of L4S and uses ECN without being told, `rre` is TCP-RRE, `allegro` and `vivace` are PCC's",
};

/// The name of `algorithm` in `tcp.congestion` as TOML, regardless of its options.
pub(crate) fn control_text(algorithm: Algorithm) -> String {
    let is_it = |(_, known): &&(&str, Algorithm)| discriminant(known) == discriminant(&algorithm);
    CONGESTION.kind.0.iter().find(is_it).map_or_else(|| NONE.to_owned(), |(name, _)| quoted(name))
}

pub(crate) const SLOW_START: Key<Choice<SlowStart>> = Key {
    name: "slow-start",
    kind: Choice(&[
        ("hystart", SlowStart::HyStart),
        ("linux", SlowStart::Linux),
        ("standard", SlowStart::Standard),
    ]),
    usual: Usual::Is("\"hystart\""),
    meaning: "end of CUBIC's slow start; `linux` is HyStart with growth of 5 % per round trip until the first loss",
};

pub(crate) const BBR_POLICER: Key<Choice<PolicerDetection>> = Key {
    name: "bbr-policer",
    kind: Choice(&[("on", PolicerDetection::On), ("off", PolicerDetection::Off)]),
    usual: Usual::Is("\"on\""),
    meaning: "version 1 of BBR detects token-bucket policers and keeps to their rate, as Linux does",
};

/// `None` is `"auto"`.
pub(crate) const RRE_TARGET: Key<Own<Option<Duration>>> = Key {
    name: "rre-target",
    kind: Own {
        read: |value| match value {
            Value::Text(text) if text == "auto" => Ok(None),
            other => TARGET.read(other).map(Some).map_err(|mismatch| or(mismatch, "\"auto\"")),
        },
        write: |target| target.as_ref().map_or_else(|| "\"auto\"".to_owned(), |target| TARGET.write(target)),
        allowed: "1 ms to 5 s, or `\"auto\"`",
    },
    usual: Usual::Is("\"auto\""),
    meaning: "buffer delay that TCP-RRE keeps at rates up to 250 kb/s; above, it falls with the square root of the \
              rate; `auto`: 80 ms",
};

const TARGET: Span = Span::between(Duration::from_millis(1), Duration::from_secs(5));

/// Limits of both buffers.
pub(crate) const BUFFER: Size = Size(4_096, 1 << 30);

/// `receive-buffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveBuffer {
    Size(Bytes),
    Auto,
    Rsfc,
}

pub(crate) const RECEIVE_BUFFER: Key<Own<ReceiveBuffer>> = Key {
    name: "receive-buffer",
    kind: Own {
        read: |value| match value {
            Value::Text(text) if text == "auto" => Ok(ReceiveBuffer::Auto),
            Value::Text(text) if text == "rsfc" => Ok(ReceiveBuffer::Rsfc),
            other => BUFFER
                .read(other)
                .map(ReceiveBuffer::Size)
                .map_err(|mismatch| or(mismatch, "`\"auto\"` or `\"rsfc\"`")),
        },
        write: |size| match size {
            ReceiveBuffer::Size(size) => BUFFER.write(size),
            ReceiveBuffer::Auto => quoted("auto"),
            ReceiveBuffer::Rsfc => quoted("rsfc"),
        },
        allowed: "4 KiB to 1 GiB, `\"auto\"` or `\"rsfc\"`",
    },
    usual: Usual::Is("\"4 MiB\""),
    meaning: "`auto` starts with 128 KiB and grows to twice the data of a round trip; `rsfc` keeps the queue on the way of \
              data short by the window that it offers: receive-side flow control, which needs timestamps. Scheme `rsfc` \
              changes it",
};

pub(crate) const RECEIVE_BUFFER_MAX: Key<Size> = Key {
    name: "receive-buffer-max",
    kind: BUFFER,
    usual: Usual::Described("`\"6 MiB\"` with `\"auto\"`"),
    meaning: "upper bound of `auto`",
};

/// RFC 9293 section 3.8.6.3: less than half a second.
pub(super) const ACK_DELAY_LIMIT: Span = Span::up_to(Duration::from_millis(500));

pub(crate) const ACK_EVERY: Key<Whole> = Key {
    name: "ack-every",
    kind: Whole(1, 1_000),
    usual: Usual::Is("2"),
    meaning: "full-sized segments per ACK, with `\"delayed\"`; schemes change it",
};

pub(crate) const ACK_DELAY: Key<Span> = Key {
    name: "ack-delay",
    kind: ACK_DELAY_LIMIT,
    usual: Usual::Is("\"40 ms\""),
    meaning: "longest delay of an ACK, with `\"delayed\"`",
};

pub(crate) const QUICK_ACKS: Key<Whole> = Key {
    name: "quick-acks",
    kind: Whole(0, 1_000_000),
    usual: Usual::Is("16"),
    meaning: "segments at the start of a connection that get an ACK each, with `\"delayed\"`",
};

pub(crate) const GRO_FLUSH: Key<Span> = Key {
    name: "gro-flush",
    kind: Span::up_to(Duration::from_millis(10)),
    usual: Usual::Is("\"0 s\""),
    meaning: "with `\"linux\"`: in-order segments that arrive within this time of the first are merged, up to 64 \
              KiB; 0 merges simultaneous arrivals, such as the packets of a PPDU",
};

pub(crate) const ACKFREQ_PACKETS: Key<Whole> = Key {
    name: "ackfreq-packets",
    kind: Whole(1, 1_000_000),
    usual: Usual::Is("10"),
    meaning: "with `\"quic-ackfreq\"`: packets per ACK that the sender requests",
};

pub(crate) const ACKFREQ_DELAY: Key<Span> = Key {
    name: "ackfreq-delay",
    kind: ACK_DELAY_LIMIT,
    usual: Usual::Is("\"25 ms\""),
    meaning: "with `\"quic-ackfreq\"`: longest delay of an ACK",
};

pub(crate) const ACKFREQ_REORDERING: Key<Whole> = Key {
    name: "ackfreq-reordering",
    kind: Whole(0, 1_000),
    usual: Usual::Is("3"),
    meaning: "with `\"quic-ackfreq\"`: a gap is acknowledged at once when a packet this far above it has arrived; 0: \
              never",
};

/// The name given in `ack-policy`. The options of a policy have separate keys.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Policy {
    Delayed,
    Linux,
    AckFrequency,
    Fixed(AckPolicy),
}

pub(crate) const ACK_POLICY: Key<Choice<Policy>> = Key {
    name: "ack-policy",
    kind: Choice(&[
        ("delayed", Policy::Delayed),
        ("linux", Policy::Linux),
        ("quic-ack2", Policy::Fixed(AckPolicy::quic_ack2())),
        ("quic-ackfreq", Policy::AckFrequency),
        ("chrome", Policy::Fixed(AckPolicy::chrome())),
        ("neqo", Policy::Fixed(AckPolicy::neqo())),
        ("picoquic", Policy::Fixed(AckPolicy::picoquic())),
        ("quiche", Policy::Fixed(AckPolicy::quiche())),
        ("mvfst", Policy::Fixed(AckPolicy::mvfst())),
        ("tack-lite", Policy::Fixed(AckPolicy::tack_lite())),
    ]),
    usual: Usual::Is("\"delayed\""),
    meaning: "rule by which receivers acknowledge; see [schemes.md](schemes.md). Schemes change it",
};

/// The name of `policy` in `tcp.ack-policy` as TOML. A policy supplied by a program has no name.
pub(crate) fn policy_text(policy: AckPolicy) -> String {
    let fixed = Policy::Fixed(policy);
    ACK_POLICY.kind.write(&match policy {
        AckPolicy::Delayed(_) => Policy::Delayed,
        AckPolicy::Linux(_) => Policy::Linux,
        AckPolicy::Packets(_) if ACK_POLICY.kind.0.iter().any(|(_, known)| *known == fixed) => fixed,
        AckPolicy::Packets(_) => Policy::AckFrequency,
        AckPolicy::External(_) => return NONE.to_owned(),
    })
}

/// Value for no `byte-counting-limit`: larger than any window.
const NO_COUNTING_LIMIT: u32 = u32::MAX;
const COUNTING_LIMIT: Whole = Whole(1, 1_000_000);

type Tcp<K> = Field<Config, K>;

pub(crate) const TCP: Keys<Config> = &[
    &PROFILE,
    &Tcp {
        name: "ip",
        kind: Choice(&[("v4", IpVersion::V4), ("v6", IpVersion::V6)]),
        usual: Usual::Field,
        meaning: "IP version, also for UDP and TACK",
        of: |tcp| &mut tcp.ip,
    },
    &Tcp {
        name: MTU,
        kind: Size(256, 65_535),
        usual: Usual::Field,
        meaning: "largest IP packet, also for UDP and TACK; over IPv6 at least 1280 B, over Wi-Fi at most 2296 B",
        of: |tcp| &mut tcp.mtu,
    },
    &CONGESTION,
    &SLOW_START,
    &Tcp {
        name: "pacing",
        kind: Own { read: pacing, write: write_pacing, allowed: "`\"auto\"`, `true`, `false`" },
        usual: Usual::Field,
        meaning: "spacing of segments in time: `\"auto\"` leaves it to the congestion control (BBR, Copa and RRE \
                  pace); `true` also paces the others, at 200 % of a window per round trip in slow start and 120 % \
                  later",
        of: |tcp| &mut tcp.congestion.pacing,
    },
    &BBR_POLICER,
    &RRE_TARGET,
    &Tcp {
        name: "byte-counting-limit",
        kind: Own {
            read: counting_limit,
            write: write_counting_limit,
            allowed: "1 to 1000000, or `\"none\"`",
        },
        usual: Usual::Field,
        meaning: "most segments that the window grows by per ACK in slow start (RFC 3465's L)",
        of: |tcp| &mut tcp.congestion.byte_counting_limit,
    },
    &Tcp {
        name: "timestamps",
        kind: Flag,
        usual: Usual::Field,
        meaning: "timestamps on every segment (RFC 7323)",
        of: |tcp| &mut tcp.timestamps,
    },
    &Tcp {
        name: "timestamp-tick",
        kind: OrNone(Span::between(Duration::from_millis(1), Duration::from_secs(1))),
        usual: Usual::Field,
        meaning: "tick of receivers' timestamp clocks, with a phase per receiver: many hosts have 1, 4, 10 or 100 \
                  ms; with `\"none\"` 1 ms, in step with the sender's clock, which always ticks so. See \
                  [simulator.md](../design/simulator.md#clocks-for-timestamps)",
        of: |tcp| &mut tcp.timestamp_tick,
    },
    &Tcp {
        name: "sack",
        kind: Flag,
        usual: Usual::Field,
        meaning: "selective acknowledgments (RFC 2018)",
        of: |tcp| &mut tcp.sack,
    },
    &ACK_POLICY,
    &ACK_EVERY,
    &ACK_DELAY,
    &QUICK_ACKS,
    &GRO_FLUSH,
    &ACKFREQ_PACKETS,
    &ACKFREQ_DELAY,
    &ACKFREQ_REORDERING,
    &Tcp {
        name: "ecn",
        kind: Flag,
        usual: Usual::Field,
        meaning: "explicit congestion notification (RFC 3168); needs a queue that marks",
        of: |tcp| &mut tcp.ecn,
    },
    &Tcp {
        name: "dsack",
        kind: Flag,
        usual: Usual::Field,
        meaning: "report duplicate data (RFC 2883)",
        of: |tcp| &mut tcp.dsack,
    },
    &Tcp {
        name: "loss-detection",
        kind: Choice(&[("rfc6675", LossDetection::DupAck), ("rack-tlp", LossDetection::RackTlp)]),
        usual: Usual::Field,
        meaning: "a segment is lost when enough segments above it are SACKed; or (RFC 8985, needs SACK) when a later \
                  one has arrived, with a probe for the tail of a flight",
        of: |tcp| &mut tcp.loss_detection,
    },
    &Tcp {
        name: "recovery",
        kind: Choice(&[("rfc6675", Recovery::Rfc6675), ("prr", Recovery::Prr)]),
        usual: Usual::Field,
        meaning: "in fast recovery, wait until the data in flight has fallen to the reduced window; or reduce with \
                  each ACK (RFC 6937)",
        of: |tcp| &mut tcp.recovery,
    },
    &Tcp {
        name: "undo",
        kind: Choice(&[
            ("none", Undo::Never),
            ("eifel", Undo::Eifel),
            ("f-rto", Undo::FRto),
            ("all", Undo::All),
        ]),
        usual: Usual::Field,
        meaning: "detection and undo of spurious timeouts and fast recoveries: by timestamps (RFC 3522), by the ACKs \
                  after a timeout (RFC 5682), or by both and DSACKs",
        of: |tcp| &mut tcp.undo,
    },
    &RECEIVE_BUFFER,
    &RECEIVE_BUFFER_MAX,
    &Tcp {
        name: "window-growth",
        kind: Choice(&[("at-once", WindowGrowth::AtOnce), ("by-segment", WindowGrowth::BySegment)]),
        usual: Usual::Field,
        meaning: "how the offered window follows a receive buffer that grows (`auto`): at once, or by twice the data \
                  of each segment, which `ack-policy = \"linux\"` then acknowledges at once, as Linux does",
        of: |tcp| &mut tcp.window_growth,
    },
    &Tcp {
        name: "send-buffer",
        kind: BUFFER,
        usual: Usual::Field,
        meaning: "most bytes in flight",
        of: |tcp| &mut tcp.send_buffer,
    },
    &Tcp {
        name: "small-queues",
        kind: OrNone(Span::between(Duration::from_micros(100), Duration::from_secs(1))),
        usual: Usual::Field,
        meaning: "TCP small queues: most bytes of a connection in its wireless station's queue, as time at the \
                  connection's rate; two bursts are always allowed. Linux: 1 ms, 8 ms below mac80211. For connections \
                  that send from a wireless station; see [tcp.md](../design/tcp.md#small-queues)",
        of: |tcp| &mut tcp.small_queues,
    },
    &Tcp {
        name: "initial-window",
        kind: Whole(1, 1_000),
        usual: Usual::Field,
        meaning: "segments sent before the first ACK (RFC 6928)",
        of: |tcp| &mut tcp.congestion.initial_window,
    },
    &Tcp {
        name: "rto-min",
        kind: Span::between(Duration::from_millis(1), Duration::from_secs(60)),
        usual: Usual::Field,
        meaning: "lower bound of the RTO's variance term",
        of: |tcp| &mut tcp.rto_min,
    },
    &Tcp {
        name: "time-wait",
        kind: ANY_TIME,
        usual: Usual::Field,
        meaning: "time for which the end that closed first answers late segments",
        of: |tcp| &mut tcp.time_wait,
    },
];

fn pacing(value: &Value) -> Result<Pacing, Mismatch> {
    match value {
        Value::Text(text) if text == "auto" => Ok(Pacing::Auto),
        Value::Flag(true) => Ok(Pacing::On),
        Value::Flag(false) => Ok(Pacing::Off),
        other => Err(Mismatch::new(format!("{other} is not a pacing"), "\"auto\", true, false")),
    }
}

fn write_pacing(pacing: &Pacing) -> String {
    match pacing {
        Pacing::Auto => "\"auto\"".to_owned(),
        Pacing::On => true.to_string(),
        Pacing::Off => false.to_string(),
    }
}

fn counting_limit(value: &Value) -> Result<u32, Mismatch> {
    match value {
        Value::Text(text) if text == NONE => Ok(NO_COUNTING_LIMIT),
        other => COUNTING_LIMIT.read(other).map_err(|mismatch| or(mismatch, "\"none\"")),
    }
}

fn write_counting_limit(limit: &u32) -> String {
    if *limit == NO_COUNTING_LIMIT { quoted(NONE) } else { limit.to_string() }
}
