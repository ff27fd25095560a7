//! `[traffic]` and `[[flow]]`.

use tacit_link::wifi::AccessCategory;
use tacit_proto::tcp;
use tacit_proto::udp::ReportAfter;
use tacit_proto::units::{BitRate, Bytes};
use tacit_sim::setup::{Law, MAX_CONNECTIONS, MAX_OBJECTS};

use super::{MAX_CLIENTS, MAX_WIFI_PACKET, host_time, positive_span, span};
use crate::error::InputError;
use crate::input::{Mismatch, Section, Value, bit_rate, byte_count, integer, one_of, title, within};
use crate::scenario::Wifi;
use crate::scenario::traffic::{
    ApplicationKind, ApplicationKnobs, Direction, FlowPlan, ObjectsPlan, TrafficPlan, Transport,
};

/// Headers of a UDP packet, and the octets that number it.
const UDP_HEADER: u64 = 8;
const MIN_UDP_PAYLOAD: Bytes = Bytes(8);
const MAX_DATAGRAMS_PER_REPORT: u32 = 1_000_000;
/// Largest amount of data in one piece.
const MAX_SIZE: Bytes = Bytes(1 << 40);
/// Most `[[flow]]` tables.
const MAX_FLOW_TABLES: usize = 1_000;

/// Where traffic is read: what the rest of the scenario says about it.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub tcp: &'a tcp::Config,
    pub wifi: Option<&'a Wifi>,
}

pub(super) fn traffic_section(
    section: Section<'_>,
    around: Surroundings<'_>,
) -> Result<TrafficPlan, InputError> {
    let usual = TrafficPlan {
        direction: Direction::Download,
        transport: Transport::Tcp,
        size: None,
        udp_rate: None,
        udp_report: None,
        udp_payload: None,
        access_category: None,
        application: ApplicationKind::Bulk,
        knobs: ApplicationKnobs::default(),
    };
    let plan = traffic_keys(&section, &usual, around)?;
    section.finish()?;
    Ok(plan)
}

/// `[[flow]]`, on top of what `[traffic]` says.
pub(super) fn flow_sections(
    root: &Section<'_>,
    traffic: &TrafficPlan,
    around: Surroundings<'_>,
) -> Result<Vec<FlowPlan>, InputError> {
    let sections = root.sections("flow")?;
    if sections.len() > MAX_FLOW_TABLES {
        return Err(root
            .error("flow", format!("{} flows", sections.len()))
            .allowed(format!("at most {MAX_FLOW_TABLES}")));
    }
    let one = |section: Section<'_>| {
        let plan = FlowPlan {
            name: section.optional("name", title)?,
            clients: section.or("client", None, client_numbers)?,
            start: section.optional("start", span)?,
            stop: section.optional("stop", span)?,
            own_transport: section.optional("transport", transport)?,
            traffic: traffic_keys(&section, traffic, around)?,
        };
        section.finish()?;
        Ok(plan)
    };
    sections.into_iter().map(one).collect()
}

fn traffic_keys(
    section: &Section<'_>,
    usual: &TrafficPlan,
    around: Surroundings<'_>,
) -> Result<TrafficPlan, InputError> {
    let largest = if around.wifi.is_some() { MAX_WIFI_PACKET } else { Bytes(65_535) };
    let headers = Bytes(u64::from(around.tcp.ip.header_len()) + UDP_HEADER);
    let directions =
        [("download", Direction::Download), ("upload", Direction::Upload), ("both", Direction::Both)];
    let plan = TrafficPlan {
        direction: section.or("kind", usual.direction, one_of(&directions))?,
        transport: section.or("transport", usual.transport, transport)?,
        size: section.optional("size", within(Bytes(1)..=MAX_SIZE, byte_count))?.or(usual.size),
        udp_rate: section.or("udp-rate", usual.udp_rate, saturating_or_rate)?,
        udp_report: section.optional("udp-report", time_or_datagrams)?.or(usual.udp_report),
        udp_payload: section
            .optional("udp-payload", within(MIN_UDP_PAYLOAD..=largest - headers, byte_count))?
            .or(usual.udp_payload),
        access_category: access_category(section, around.wifi)?,
        application: section.or("application", usual.application, one_of(&ApplicationKind::NAMES))?,
        knobs: knobs(section, &usual.knobs)?,
    };
    check(section, &plan)?;
    Ok(plan)
}

/// A time, or a number of datagrams.
fn time_or_datagrams(value: &Value) -> Result<ReportAfter, Mismatch> {
    let most = MAX_DATAGRAMS_PER_REPORT;
    if let Value::Text(text) = value
        && let Some(count) = text.trim().strip_suffix("datagrams").or(text.trim().strip_suffix("datagram"))
    {
        let count = count.trim().parse().ok().filter(|count| (1..=most).contains(count));
        return count.map(ReportAfter::Datagrams).ok_or_else(|| {
            Mismatch::new(format!("{value} is out of range"), format!("1 to {most} datagrams"))
        });
    }
    host_time()(value).map(ReportAfter::Time).map_err(|mut mismatch| {
        mismatch.allowed.push_str(", or a number of datagrams such as \"4 datagrams\"");
        mismatch
    })
}

/// `access-category`, where the standard has EDCA.
pub(super) fn access_category(
    section: &Section<'_>,
    wifi: Option<&Wifi>,
) -> Result<Option<AccessCategory>, InputError> {
    let Some(wifi) = wifi else { return Ok(None) };
    let categories = AccessCategory::ALL.map(|category| (category.name(), category));
    let category = section.optional("access-category", one_of(&categories))?;
    if category.is_some_and(|category| category != AccessCategory::BestEffort)
        && wifi.standard.phy().aggregation.is_none()
    {
        return Err(section
            .error("access-category", format!("{} has no EDCA here", wifi.standard.name()))
            .allowed("\"be\", or a standard with EDCA"));
    }
    Ok(category)
}

fn knobs(section: &Section<'_>, usual: &ApplicationKnobs) -> Result<ApplicationKnobs, InputError> {
    let laws = [("fixed", Law::Fixed), ("exponential", Law::Exponential)];
    let size = within(Bytes(1)..=MAX_SIZE, byte_count);
    Ok(ApplicationKnobs {
        objects: section.or("objects", usual.objects.clone(), objects)?,
        object_size: section.or("object-size", usual.object_size, &size)?,
        sizes: section.or("sizes", usual.sizes, one_of(&laws))?,
        request_size: section.or("request-size", usual.request_size, &size)?,
        connections: section.or("connections", usual.connections, integer(1..=MAX_CONNECTIONS as u32))?,
        think_time: section.or("think-time", usual.think_time, span)?,
        times: section.or("times", usual.times, one_of(&laws))?,
        on_time: section.or("on-time", usual.on_time, positive_span)?,
        off_time: section.or("off-time", usual.off_time, positive_span)?,
        rate: section.optional("rate", bit_rate)?.or(usual.rate),
        frame_rate: section.or("frame-rate", usual.frame_rate, integer(1..=1_000))?,
        play_out_buffer: section.or("play-out-buffer", usual.play_out_buffer, span)?,
    })
}

/// What an application cannot do.
fn check(section: &Section<'_>, plan: &TrafficPlan) -> Result<(), InputError> {
    let (kind, over_udp) = (plan.application, plan.transport == Transport::Udp);
    if kind == ApplicationKind::RequestResponse && over_udp {
        return Err(section.error("application", "request-response over UDP").allowed("over TCP"));
    }
    if kind == ApplicationKind::OnOff && over_udp && plan.knobs.rate.or(plan.udp_rate).is_none() {
        return Err(section
            .error("application", "on-off over UDP without a rate")
            .allowed("rate = \"1Mbps\", or udp-rate"));
    }
    let frame_bits = u64::from(plan.knobs.frame_rate) * 8;
    if kind == ApplicationKind::Streaming && plan.knobs.rate.is_some_and(|rate| rate.as_bps() < frame_bits) {
        return Err(section
            .error("rate", "frames of less than an octet")
            .allowed(format!("from {frame_bits}bps at this frame-rate")));
    }
    if kind != ApplicationKind::Bulk && section.has("size") {
        return Err(section.error("size", "only bulk data has one").allowed("application = \"bulk\""));
    }
    Ok(())
}

fn transport(value: &Value) -> Result<Transport, Mismatch> {
    one_of(&[("tcp", Transport::Tcp), ("udp", Transport::Udp)])(value)
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

/// How many objects, or their sizes in a list.
fn objects(value: &Value) -> Result<ObjectsPlan, Mismatch> {
    let Value::List(items) = value else {
        return integer(1..=MAX_OBJECTS)(value).map(ObjectsPlan::Count).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or a list of sizes");
            mismatch
        });
    };
    if items.is_empty() || items.len() > MAX_OBJECTS as usize {
        return Err(Mismatch::new(
            format!("{} sizes", items.len()),
            format!("1 to {MAX_OBJECTS} sizes, such as [\"10 kB\", \"50 kB\"]"),
        ));
    }
    let size = within(Bytes(1)..=MAX_SIZE, byte_count);
    items.iter().map(|item| size(&item.value)).collect::<Result<_, _>>().map(ObjectsPlan::Sizes)
}

/// `"all"`, the number of a client or a list of them, from 1.
fn client_numbers(value: &Value) -> Result<Option<Vec<u32>>, Mismatch> {
    let number = |value: &Value| integer(1..=MAX_CLIENTS)(value).map(|number| number - 1);
    let wrong = |mut mismatch: Mismatch| {
        mismatch.allowed.push_str(", a list of such, or \"all\"");
        mismatch
    };
    match value {
        Value::Text(text) if text == "all" => Ok(None),
        Value::List(items) if !items.is_empty() => {
            items.iter().map(|item| number(&item.value)).collect::<Result<_, _>>().map(Some).map_err(wrong)
        }
        other => number(other).map(|number| Some(vec![number])).map_err(wrong),
    }
}
