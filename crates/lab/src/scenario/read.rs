//! From sections of TOML to a [`Scenario`], with every limit there is.

use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wired::PipeConfig;
use tacit_link::{Loss, QueueLimit, wifi};
use tacit_proto::hack;
use tacit_proto::packet::IpVersion;
use tacit_proto::tcp::{self, AckPolicy, Congestion, SlowStart};
use tacit_proto::units::{BitRate, Bytes, Duration};

use super::{
    ClientOverride, ComparePlan, Direction, HackPlan, HackVariant, MAX_CLIENTS, MAX_SEEDS, MpduError,
    RunPlan, Scenario, TrafficPlan, Transport, Wifi, default_wire, signal,
};
use crate::error::InputError;
use crate::input::{
    MAX_DURATION, Mismatch, Section, Tree, Value, bit_rate, byte_count, duration, flag, integer, loss,
    one_of, queue_limit, text, within,
};

/// Largest IP packet an 802.11 MSDU without A-MSDU takes: 2304 octets less LLC/SNAP
/// (802.11-2020 clause 9.2.4.7).
const MAX_WIFI_PACKET: Bytes = Bytes(2_296);
/// Smallest MTU with room for headers, options and payload.
const MIN_MTU: Bytes = Bytes(256);
/// Smallest MTU of IPv6 (RFC 8200 section 5).
const MIN_MTU_V6: Bytes = Bytes(1_280);
/// Headers of a UDP packet, and the octets that number it.
const UDP_HEADER: u64 = 8;
const MIN_UDP_PAYLOAD: Bytes = Bytes(8);

/// Parsers shared by sections.
fn span(value: &Value) -> Result<Duration, Mismatch> {
    within(Duration::ZERO..=MAX_DURATION, duration)(value)
}

fn positive_span(value: &Value) -> Result<Duration, Mismatch> {
    within(Duration::from_nanos(1)..=MAX_DURATION, duration)(value)
}

/// `"none"`, or what `parse` takes.
fn or_none<T>(
    parse: impl Fn(&Value) -> Result<T, Mismatch>,
) -> impl Fn(&Value) -> Result<Option<T>, Mismatch> {
    move |value| match value {
        Value::Text(text) if text == "none" => Ok(None),
        other => parse(other).map(Some).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or \"none\"");
            mismatch
        }),
    }
}

pub(super) fn scenario(name: String, source: &str, tree: &Tree) -> Result<Scenario, InputError> {
    let root = Section::root(source, tree);
    let wifi = wifi_section(root.section("wifi")?)?;
    let overrides = client_overrides(&root, wifi.as_ref())?;
    let tcp = tcp_section(root.section("tcp")?, wifi.is_some())?;
    let clients = root.section("clients")?;
    let default_count = u32::try_from(overrides.len()).unwrap_or(MAX_CLIENTS).max(1);
    let scenario = Scenario {
        name: root.or("name", name, text)?,
        description: root.or("description", String::new(), text)?,
        text: tree.to_toml(),
        run: run_section(root.section("run")?)?,
        hack: hack_section(root.section("hack")?, wifi.is_some())?,
        wired: wired_section(root.section("wired")?)?,
        clients: clients.or("count", default_count, integer(1..=MAX_CLIENTS))?,
        stagger: clients.or("stagger", Duration::ZERO, span)?,
        overrides,
        traffic: traffic_section(root.section("traffic")?, &tcp, wifi.is_some())?,
        tcp,
        wifi,
        compare: compare_section(root.section("compare")?)?,
    };
    clients.finish()?;
    // `base` was resolved before; asking for it keeps it among the known keys.
    root.node("base");
    root.finish()?;
    Ok(scenario)
}

fn run_section(section: Section<'_>) -> Result<RunPlan, InputError> {
    let duration = section.or("duration", Duration::from_secs(14), positive_span)?;
    let measure_from = section.or("measure-from", (duration / 4).min(Duration::from_secs(4)), span)?;
    if measure_from >= duration {
        return Err(section
            .error("measure-from", format!("{measure_from} leaves nothing to measure"))
            .allowed(format!("less than run.duration, {duration}")));
    }
    let plan = RunPlan {
        duration,
        measure_from,
        seeds: section.or("seeds", 10, integer(1..=MAX_SEEDS))?,
        sample_interval: section.or(
            "sample-interval",
            Some(Duration::from_millis(500)),
            or_none(within(Duration::from_millis(1)..=MAX_DURATION, duration_of)),
        )?,
    };
    section.finish()?;
    Ok(plan)
}

/// `duration` under a name that does not clash with the key of the same name.
fn duration_of(value: &Value) -> Result<Duration, Mismatch> {
    duration(value)
}

fn data_mode(standard: Standard) -> impl Fn(&Value) -> Result<Mode, Mismatch> {
    move |value| {
        Mode::for_rate(standard, bit_rate(value)?).map_err(|unknown| {
            let rates = unknown.allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Mismatch::new(format!("{} has no rate {}", standard.name(), unknown.rate), rates)
        })
    }
}

fn ack_mode(value: &Value) -> Result<Option<Mode>, Mismatch> {
    let allowed = "\"auto\", or a rate of 802.11a: 6, 9, 12, 18, 24, 36, 48 or 54Mbps";
    if matches!(value, Value::Text(text) if text == "auto") {
        return Ok(None);
    }
    let rate = bit_rate(value).map_err(|mismatch| Mismatch::new(mismatch.what, allowed))?;
    let mode = Mode::ofdm(rate);
    mode.map(Some).ok_or_else(|| Mismatch::new(format!("no control frame is sent at {rate}"), allowed))
}

fn mpdu_error(section: &Section<'_>) -> Result<Option<MpduError>, InputError> {
    let Some(node) = section.node("mpdu-error") else { return Ok(None) };
    if matches!(node.value, Value::Table(_)) {
        let each = section.section("mpdu-error")?;
        let error =
            MpduError { down: each.or("down", Loss::None, loss)?, up: each.or("up", Loss::None, loss)? };
        each.finish()?;
        return Ok(Some(error));
    }
    let both = section.optional("mpdu-error", |value| {
        loss(value).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or { down = \"2 %\", up = \"1 %\" }");
            mismatch
        })
    })?;
    Ok(both.map(|both| MpduError { down: both.clone(), up: both }))
}

/// Beacons: an interval, `"none"`, or true for the usual interval.
fn beacons(value: &Value) -> Result<Option<Duration>, Mismatch> {
    match value {
        Value::Flag(true) => Ok(Some(USUAL_BEACONS)),
        Value::Flag(false) => Ok(None),
        other => or_none(within(Duration::from_millis(1)..=MAX_DURATION, duration))(other),
    }
}

/// 100 time units of 1024 us.
const USUAL_BEACONS: Duration = Duration::from_micros(102_400);

fn wifi_section(section: Section<'_>) -> Result<Option<Wifi>, InputError> {
    if !section.is_present() {
        return Ok(None);
    }
    let standards = Standard::ALL.map(|standard| (standard.name(), standard));
    let standard = section.required("standard", one_of(&standards))?;
    let usual = wifi::BssConfig::new(standard, Vec::new());
    let parsed = Wifi {
        standard,
        mode: section.required("rate", data_mode(standard))?,
        ack_mode: section.or("ack-rate", None, ack_mode)?,
        mpdu_error: mpdu_error(&section)?.unwrap_or_default(),
        link_ack_error: section.or("link-ack-error", Loss::None, loss)?,
        signal: signal::signal(&section)?,
        propagation: signal::propagation(&section)?,
        txop_limit: section.or(
            "txop-limit",
            usual.txop_limit,
            or_none(within(Duration::from_micros(100)..=Duration::from_millis(100), duration)),
        )?,
        ampdu_mpdus: section.or("ampdu-mpdus", usual.ampdu_mpdus, or_none(integer(1..=64)))?,
        beacons: section.or("beacons", usual.beacon_interval, beacons)?,
        retry_limit: section.or("retry-limit", usual.retry_limit, integer(0..=255))?,
        lifetime: section.or("lifetime", usual.lifetime, positive_span)?,
        reorder_timeout: section.or("reorder-timeout", usual.reorder_timeout, positive_span)?,
        link_ack_delay: section.or(
            "link-ack-delay",
            usual.link_ack_delay,
            within(Duration::ZERO..=Duration::from_millis(1), duration),
        )?,
        eifs: section.or("eifs", usual.eifs, flag)?,
        capture: section.or("capture", usual.capture, flag)?,
        ap_queue: section.or("ap-queue", DEFAULT_QUEUE, queue_limit)?,
        station_queue: section.or("station-queue", DEFAULT_QUEUE, queue_limit)?,
    };
    section.finish()?;
    Ok(Some(parsed))
}

/// How long hosts may take or wait.
fn host_time() -> impl Fn(&Value) -> Result<Duration, Mismatch> {
    within(Duration::from_micros(1)..=Duration::from_secs(1), duration)
}

fn hack_section(section: Section<'_>, has_wifi: bool) -> Result<HackPlan, InputError> {
    if section.is_present() && !has_wifi {
        return Err(section.error("variant", "there is no [wifi]").allowed("[hack] beside [wifi]"));
    }
    let variants = [
        ("stock", None),
        ("more-data", Some(HackVariant::MoreData)),
        ("opportunistic", Some(HackVariant::Opportunistic)),
        ("timer", Some(HackVariant::Timer)),
    ];
    let codings = [("per-ack", hack::Coding::PerAck), ("batch", hack::Coding::Batch)];
    let usual = hack::Config::default();
    let plan = HackPlan {
        variant: section.or("variant", None, one_of(&variants))?,
        timer: section.or("timer", DEFAULT_HACK_TIMER, host_time())?,
        coding: section.or("coding", usual.coding, one_of(&codings))?,
        turnaround: section.or("turnaround", usual.turnaround, host_time())?,
        hold_limit: section.or("hold-limit", usual.hold_limit, host_time())?,
        appended_limit: section.or("appended-limit", usual.appended_limit, or_none(octets))?,
    };
    section.finish()?;
    Ok(plan)
}

/// A small number of octets.
fn octets(value: &Value) -> Result<u32, Mismatch> {
    within(Bytes(16)..=Bytes(65_535), byte_count)(value).map(|bytes| bytes.0 as u32)
}

/// The paper finds no good value (section 3.2); this is a few full A-MPDUs at 150 Mb/s.
const DEFAULT_HACK_TIMER: Duration = Duration::from_millis(20);

/// Linux's default interface queue length.
const DEFAULT_QUEUE: QueueLimit = QueueLimit { packets: Some(1_000), bytes: None };

fn wired_section(section: Section<'_>) -> Result<PipeConfig, InputError> {
    let usual = default_wire();
    let pipe = PipeConfig {
        rate: section.or("rate", usual.rate, bit_rate)?,
        delay: section.or("delay", usual.delay, span)?,
        queue: section.or("queue", usual.queue, queue_limit)?,
        loss: section.or("loss", usual.loss, loss)?,
    };
    section.finish()?;
    Ok(pipe)
}

fn client_overrides(root: &Section<'_>, wifi: Option<&Wifi>) -> Result<Vec<ClientOverride>, InputError> {
    let sections = root.sections("client")?;
    if sections.len() > MAX_CLIENTS as usize {
        return Err(root
            .error("client", format!("{} clients", sections.len()))
            .allowed(format!("at most {MAX_CLIENTS}")));
    }
    sections
        .into_iter()
        .map(|section| {
            let mut client = ClientOverride {
                start: section.optional("start", span)?,
                stop: section.optional("stop", span)?,
                ..ClientOverride::default()
            };
            if let Some(wifi) = wifi {
                client.mode = section.optional("rate", data_mode(wifi.standard))?;
                client.ack_mode = section.or("ack-rate", None, ack_mode)?;
                client.mpdu_error = mpdu_error(&section)?;
                client.link_ack_error = section.optional("link-ack-error", loss)?;
                client.signal = signal::signal(&section)?;
                client.hack = section.optional("hack", flag)?;
                client.leave = section.optional("leave", span)?;
                client.back = section.optional("back", span)?;
                if client.back.is_some() && client.leave.is_none_or(|leave| client.back <= Some(leave)) {
                    return Err(section
                        .error("back", "comes back without having left")
                        .allowed("leave before back"));
                }
                client.ap_queue = section.optional("ap-queue", queue_limit)?;
                client.station_queue = section.optional("station-queue", queue_limit)?;
            }
            section.finish()?;
            Ok(client)
        })
        .collect()
}

fn traffic_section(
    section: Section<'_>,
    tcp: &tcp::Config,
    has_wifi: bool,
) -> Result<TrafficPlan, InputError> {
    let largest = if has_wifi { MAX_WIFI_PACKET } else { Bytes(65_535) };
    let headers = Bytes(u64::from(tcp.ip.header_len()) + UDP_HEADER);
    let directions =
        [("download", Direction::Download), ("upload", Direction::Upload), ("both", Direction::Both)];
    let plan = TrafficPlan {
        direction: section.or("kind", Direction::Download, one_of(&directions))?,
        transport: section.or(
            "transport",
            Transport::Tcp,
            one_of(&[("tcp", Transport::Tcp), ("udp", Transport::Udp)]),
        )?,
        size: section.optional("size", within(Bytes(1)..=Bytes(1 << 40), byte_count))?,
        udp_rate: section.or("udp-rate", None, saturating_or_rate)?,
        udp_report: section.optional("udp-report", host_time())?,
        udp_payload: section
            .optional("udp-payload", within(MIN_UDP_PAYLOAD..=largest - headers, byte_count))?,
    };
    section.finish()?;
    Ok(plan)
}

fn saturating_or_rate(value: &Value) -> Result<Option<BitRate>, Mismatch> {
    match value {
        Value::Text(text) if text == "saturating" => Ok(None),
        other => bit_rate(other).map(Some).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or \"saturating\"");
            mismatch
        }),
    }
}

fn tcp_section(section: Section<'_>, has_wifi: bool) -> Result<tcp::Config, InputError> {
    let usual = tcp::Config::default();
    let ip = section.or("ip", usual.ip, one_of(&[("v4", IpVersion::V4), ("v6", IpVersion::V6)]))?;
    let smallest = if ip == IpVersion::V6 { MIN_MTU_V6 } else { MIN_MTU };
    let largest = if has_wifi { MAX_WIFI_PACKET } else { Bytes(65_535) };
    let controls = [("cubic", Congestion::Cubic), ("newreno", Congestion::NewReno)];
    let slow_starts = [("hystart", SlowStart::HyStart), ("standard", SlowStart::Standard)];
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

/// Client counts, in a list or as one number.
fn client_counts(value: &Value) -> Result<Vec<u32>, Mismatch> {
    let one = integer(1..=MAX_CLIENTS);
    match value {
        Value::List(items) if !items.is_empty() => items.iter().map(|item| one(&item.value)).collect(),
        other => one(other).map(|count| vec![count]).map_err(|_| {
            Mismatch::new(
                format!("{other} is no list of client counts"),
                format!("whole numbers from 1 to {MAX_CLIENTS}, such as [1, 10]"),
            )
        }),
    }
}

fn compare_section(section: Section<'_>) -> Result<ComparePlan, InputError> {
    let plan = ComparePlan { clients: section.or("clients", vec![1, 10], client_counts)? };
    section.finish()?;
    Ok(plan)
}
