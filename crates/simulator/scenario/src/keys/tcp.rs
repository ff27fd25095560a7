//! `[tcp]`.

use std::mem::discriminant;
use std::num::NonZeroU64;

use tacit_congestion::bbr::PolicerDetection;
use tacit_congestion::cubic::SlowStart;
use tacit_congestion::rre::Memory;
use tacit_congestion::{Algorithm, Pacing};
use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration};
use tacit_tcp::{AckPolicy, Config, LossDetection, Profile, Recovery, Undo, WindowGrowth};

use super::entry::{About, Key, Keys, named};
use super::kind::{ANY_TIME, Choice, Flag, Kind as _, NONE, OrNone, Own, Size, Span, Whole, or, quoted};
use crate::input::{Mismatch, Value};

pub(crate) const PROFILE: Key<Choice<Profile>> = named("profile")
    .means("defaults of the keys below: as listed, or those of a current Linux, see below")
    .is("\"classic\"")
    .key(Choice(&[("classic", Profile::Classic), ("linux", Profile::Linux)]));

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
pub(crate) const CONGESTION: Key<Choice<Algorithm>> = named("congestion")
    .means("`bbr` is version 1, `prague` that of L4S, `rre` TCP-RRE, `allegro` and `vivace` PCC's")
    .is("\"cubic\"")
    .key(Choice(&CONTROLS));

/// The name of `algorithm` in `tcp.congestion` as TOML, regardless of its options.
pub(crate) fn control_text(algorithm: Algorithm) -> String {
    let is_it = |(_, known): &&(&str, Algorithm)| discriminant(known) == discriminant(&algorithm);
    CONGESTION.kind.0.iter().find(is_it).map_or_else(|| NONE.to_owned(), |(name, _)| quoted(name))
}

pub(crate) const SLOW_START: Key<Choice<SlowStart>> = named("slow-start")
    .means(
        "end of CUBIC's slow start; `linux` is HyStart with growth of 5 % per round trip until the first \
         loss",
    )
    .is("\"hystart\"")
    .key(Choice(&[
        ("hystart", SlowStart::HyStart),
        ("linux", SlowStart::Linux),
        ("standard", SlowStart::Standard),
    ]));

pub(crate) const BBR_POLICER: Key<Choice<PolicerDetection>> = named("bbr-policer")
    .means("version 1 of BBR keeps to the rate of token-bucket policers, as Linux does")
    .is("\"on\"")
    .key(Choice(&[("on", PolicerDetection::On), ("off", PolicerDetection::Off)]));

/// `None` is `"auto"`.
pub(crate) const RRE_TARGET: Key<Own<Option<Duration>>> = named("rre-target")
    .means(
        "buffer delay of TCP-RRE up to 250 kb/s; above, it falls with the square root of the rate; \
         `auto`: 80 ms",
    )
    .is("\"auto\"")
    .key(Own {
        read: |value| match value {
            Value::Text(text) if text == "auto" => Ok(None),
            other => TARGET.read(other).map(Some).map_err(|mismatch| or(mismatch, "\"auto\"")),
        },
        write: |target| target.as_ref().map_or_else(|| "\"auto\"".to_owned(), |target| TARGET.write(target)),
        allowed: "1 ms to 5 s, or `\"auto\"`",
    });

pub(crate) const RRE_MEMORY: Key<Choice<Memory>> = named("rre-memory")
    .means(
        "connections that share what TCP-RRE knows of the uplink: all, as behind one address; \
         those to a client; none",
    )
    .is("\"address\"")
    .key(Choice(&[("address", Memory::Address), ("client", Memory::Client), ("none", Memory::None)]));

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

pub(crate) const RECEIVE_BUFFER: Key<Own<ReceiveBuffer>> = named("receive-buffer")
    .means(
        "`auto` starts with 128 KiB and grows to twice the data of a round trip; `rsfc` is \
         receive-side flow control (needs timestamps). Scheme `rsfc` changes it",
    )
    .is("\"4 MiB\"")
    .key(Own {
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
    });

pub(crate) const RECEIVE_BUFFER_MAX: Key<Size> = named("receive-buffer-max")
    .means("upper bound of `auto`")
    .described("`\"6 MiB\"` with `\"auto\"`")
    .key(BUFFER);

/// RFC 9293 section 3.8.6.3: less than half a second.
pub(super) const ACK_DELAY_LIMIT: Span = Span::up_to(Duration::from_millis(500));

pub(crate) const ACK_EVERY: Key<Whole> = named("ack-every")
    .means("full-sized segments per ACK, with `\"delayed\"`; schemes change it")
    .is("2")
    .key(Whole(1, 1_000));

pub(crate) const ACK_DELAY: Key<Span> = named("ack-delay")
    .means("longest delay of an ACK, with `\"delayed\"`")
    .is("\"40 ms\"")
    .key(ACK_DELAY_LIMIT);

pub(crate) const QUICK_ACKS: Key<Whole> = named("quick-acks")
    .means("segments at the start of a connection that get an ACK each, with `\"delayed\"`")
    .is("16")
    .key(Whole(0, 1_000_000));

pub(crate) const GRO_FLUSH: Key<Span> = named("gro-flush")
    .means(
        "with `\"linux\"`: in-order segments within this time are merged, up to 64 KiB; 0: those \
         of a PPDU",
    )
    .is("\"0 s\"")
    .key(Span::up_to(Duration::from_millis(10)));

pub(crate) const ACKFREQ_PACKETS: Key<Whole> = named("ackfreq-packets")
    .means("with `\"quic-ackfreq\"`: packets per ACK that the sender requests")
    .is("10")
    .key(Whole(1, 1_000_000));

pub(crate) const ACKFREQ_DELAY: Key<Span> = named("ackfreq-delay")
    .means("with `\"quic-ackfreq\"`: longest delay of an ACK")
    .is("\"25 ms\"")
    .key(ACK_DELAY_LIMIT);

pub(crate) const ACKFREQ_REORDERING: Key<Whole> = named("ackfreq-reordering")
    .means(
        "with `\"quic-ackfreq\"`: a gap is acknowledged when a packet this far above it has \
         arrived; 0: never",
    )
    .is("3")
    .key(Whole(0, 1_000));

pub(crate) const ACKFREQ_READING: Key<OrNone<Whole>> = named("ackfreq-reading")
    .means("with `\"quic-ackfreq\"`: most packets read before it acknowledges")
    .is("\"none\"")
    .key(OrNone(Whole(1, 1_000_000)));

/// The name given in `ack-policy`. The options of a policy have separate keys.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Policy {
    Delayed,
    Linux,
    AckFrequency,
    Fixed(AckPolicy),
}

pub(crate) const ACK_POLICY: Key<Choice<Policy>> = named("ack-policy")
    .means("rule by which receivers acknowledge; see [schemes.md](schemes.md). Schemes change it")
    .is("\"delayed\"")
    .key(Choice(&[
        ("delayed", Policy::Delayed),
        ("linux", Policy::Linux),
        ("quic-ack2", Policy::Fixed(AckPolicy::quic_ack2())),
        ("quic-ackfreq", Policy::AckFrequency),
        ("quinn", Policy::Fixed(AckPolicy::quinn())),
        ("quic-go", Policy::Fixed(AckPolicy::quic_go())),
        ("aioquic", Policy::Fixed(AckPolicy::aioquic())),
        ("chrome", Policy::Fixed(AckPolicy::chrome())),
        ("neqo", Policy::Fixed(AckPolicy::neqo())),
        ("picoquic", Policy::Fixed(AckPolicy::picoquic())),
        ("quiche", Policy::Fixed(AckPolicy::quiche())),
        ("mvfst", Policy::Fixed(AckPolicy::mvfst())),
        ("s2n-quic", Policy::Fixed(AckPolicy::s2n_quic())),
        ("msquic", Policy::Fixed(AckPolicy::msquic())),
        ("tack-lite", Policy::Fixed(AckPolicy::tack_lite())),
    ]));

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

type Tcp = About<Config>;

pub(crate) const TCP: Keys<Config> = &[
    &PROFILE,
    &Tcp::named("ip")
        .means("IP version, also for UDP and TACK")
        .field(Choice(&[("v4", IpVersion::V4), ("v6", IpVersion::V6)]), |tcp| &mut tcp.ip),
    &Tcp::named(MTU)
        .means("largest IP packet, also for UDP and TACK; IPv6: 1280 B and more, Wi-Fi: 2296 B and less")
        .field(Size(256, 65_535), |tcp| &mut tcp.mtu),
    &CONGESTION,
    &SLOW_START,
    &Tcp::named("pacing")
        .means(
            "as the congestion control does; or at 200 % of a window per round trip in slow start \
             and 120 % later",
        )
        .field(Own { read: pacing, write: write_pacing, allowed: "`\"auto\"`, `true`, `false`" }, |tcp| {
            &mut tcp.congestion.pacing
        }),
    &BBR_POLICER,
    &RRE_TARGET,
    &RRE_MEMORY,
    &Tcp::named("byte-counting-limit")
        .means("most segments that the window grows by per ACK in slow start (RFC 3465's L)")
        .field(
            Own { read: counting_limit, write: write_counting_limit, allowed: "1 to 1000000, or `\"none\"`" },
            |tcp| &mut tcp.congestion.byte_counting_limit,
        ),
    &Tcp::named("timestamps")
        .means("timestamps on every segment (RFC 7323)")
        .field(Flag, |tcp| &mut tcp.timestamps),
    &Tcp::named("timestamp-tick")
        .means(
            "of receivers, with a phase per receiver; `\"none\"`: 1 ms, in step with the sender's. \
             See [simulator.md](../design/simulator.md#clocks-for-timestamps)",
        )
        .field(OrNone(Span::between(Duration::from_millis(1), Duration::from_secs(1))), |tcp| {
            &mut tcp.timestamp_tick
        }),
    &Tcp::named("socket-packets")
        .means("packets that arrive at once and are not lost (UDP on Linux: 92)")
        .field(OrNone(Whole(1, 1_000_000)), |tcp| &mut tcp.socket_packets),
    &Tcp::named("window-updates")
        .means(
            "bytes after which a packet announces room, as QUIC's MAX_STREAM_DATA (quinn: 156,250 \
             B); `\"none\"`: ACKs do",
        )
        .field(
            Own { read: window_updates, write: write_window_updates, allowed: "1 B to 1 GiB, or `\"none\"`" },
            |tcp| &mut tcp.window_update_bytes,
        ),
    &Tcp::named("sack").means("selective acknowledgments (RFC 2018)").field(Flag, |tcp| &mut tcp.sack),
    &ACK_POLICY,
    &ACK_EVERY,
    &ACK_DELAY,
    &QUICK_ACKS,
    &GRO_FLUSH,
    &ACKFREQ_PACKETS,
    &ACKFREQ_DELAY,
    &ACKFREQ_REORDERING,
    &ACKFREQ_READING,
    &Tcp::named("ecn")
        .means("explicit congestion notification (RFC 3168); needs a queue that marks")
        .field(Flag, |tcp| &mut tcp.ecn),
    &Tcp::named("dsack").means("report duplicate data (RFC 2883)").field(Flag, |tcp| &mut tcp.dsack),
    &Tcp::named("loss-detection")
        .means("by SACKed segments above; or by time, with a probe for the tail (RFC 8985, needs SACK)")
        .field(Choice(&[("rfc6675", LossDetection::DupAck), ("rack-tlp", LossDetection::RackTlp)]), |tcp| {
            &mut tcp.loss_detection
        }),
    &Tcp::named("recovery")
        .means(
            "wait until data in flight has fallen to the reduced window; or reduce with each ACK \
             (RFC 6937)",
        )
        .field(Choice(&[("rfc6675", Recovery::Rfc6675), ("prr", Recovery::Prr)]), |tcp| &mut tcp.recovery),
    &Tcp::named("undo")
        .means(
            "of spurious timeouts and fast recoveries: by timestamps (RFC 3522), by the ACKs after \
             a timeout (RFC 5682), or by both and DSACKs",
        )
        .field(
            Choice(&[
                ("none", Undo::Never),
                ("eifel", Undo::Eifel),
                ("f-rto", Undo::FRto),
                ("all", Undo::All),
            ]),
            |tcp| &mut tcp.undo,
        ),
    &RECEIVE_BUFFER,
    &RECEIVE_BUFFER_MAX,
    &Tcp::named("window-growth")
        .means(
            "of the offered window: at once, or by twice the data of each segment, which \
             `ack-policy = \"linux\"` then acknowledges",
        )
        .field(
            Choice(&[("at-once", WindowGrowth::AtOnce), ("by-segment", WindowGrowth::BySegment)]),
            |tcp| &mut tcp.window_growth,
        ),
    &Tcp::named("send-buffer").means("most bytes in flight").field(BUFFER, |tcp| &mut tcp.send_buffer),
    &Tcp::named("small-queues")
        .means(
            "most bytes of a connection in its wireless station's queue, as time at its rate. See \
             [tcp.md](../design/tcp.md#small-queues)",
        )
        .field(OrNone(Span::between(Duration::from_micros(100), Duration::from_secs(1))), |tcp| {
            &mut tcp.small_queues
        }),
    &Tcp::named("initial-window")
        .means("segments sent before the first ACK (RFC 6928)")
        .field(Whole(1, 1_000), |tcp| &mut tcp.congestion.initial_window),
    &Tcp::named("rto-min")
        .means("lower bound of the RTO's variance term")
        .field(Span::between(Duration::from_millis(1), Duration::from_secs(60)), |tcp| &mut tcp.rto_min),
    &Tcp::named("time-wait")
        .means("how long the end that closed first answers")
        .field(ANY_TIME, |tcp| &mut tcp.time_wait),
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

const WINDOW_UPDATES: OrNone<Size> = OrNone(Size(1, 1 << 30));

fn window_updates(value: &Value) -> Result<Option<NonZeroU64>, Mismatch> {
    Ok(WINDOW_UPDATES.read(value)?.and_then(|bytes| NonZeroU64::new(bytes.0)))
}

fn write_window_updates(bytes: &Option<NonZeroU64>) -> String {
    WINDOW_UPDATES.write(&bytes.map(|bytes| Bytes(bytes.get())))
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
