//! `[traffic]` and `[[flow]]`.

use tacit_link::wifi::AccessCategory;
use tacit_packet::units::Bytes;
use tacit_tcp as tcp;

use crate::Wifi;
use crate::error::InputError;
use crate::input::Section;
use crate::keys::kind::Kind as _;
use crate::keys::wifi::MAX_WIFI_PACKET;
use crate::keys::{fill, traffic as keys};
use crate::traffic::{ApplicationKind, Direction, FlowPlan, TrafficPlan, Transport};

/// Length of a UDP header in bytes.
const UDP_HEADER: u64 = 8;
/// Maximum number of `[[flow]]` tables.
const MAX_FLOW_TABLES: usize = 1_000;

/// The parts of the scenario that traffic depends on.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub tcp: &'a tcp::Config,
    pub wifi: Option<&'a Wifi>,
}

pub(super) fn traffic_section(section: Section<'_>, around: Context<'_>) -> Result<TrafficPlan, InputError> {
    let plan = traffic_keys(&section, &keys::usual(), around)?;
    section.finish()?;
    Ok(plan)
}

/// `[[flow]]`, on top of `[traffic]`.
pub(super) fn flow_sections(
    root: &Section<'_>,
    traffic: &TrafficPlan,
    around: Context<'_>,
) -> Result<Vec<FlowPlan>, InputError> {
    let sections = root.sections("flow")?;
    if sections.len() > MAX_FLOW_TABLES {
        return Err(root
            .error("flow", format!("{} flows", sections.len()))
            .allowed(format!("at most {MAX_FLOW_TABLES}")));
    }
    let one = |section: Section<'_>| {
        let congestion = keys::CONGESTION.given(&section)?;
        let plan = FlowPlan {
            name: keys::NAME.given(&section)?,
            clients: keys::CLIENT.or(&section, None)?,
            start: keys::START.given(&section)?,
            stop: keys::STOP.given(&section)?,
            own_transport: section.optional(keys::TRANSPORT, |value| keys::TRANSPORTS.read(value))?,
            traffic: TrafficPlan { congestion, ..traffic_keys(&section, traffic, around)? },
        };
        section.finish()?;
        Ok(plan)
    };
    sections.into_iter().map(one).collect()
}

fn traffic_keys(
    section: &Section<'_>,
    usual: &TrafficPlan,
    around: Context<'_>,
) -> Result<TrafficPlan, InputError> {
    let mut plan = usual.clone();
    fill(keys::TRAFFIC, section, &mut plan)?;
    plan.access_category = access_category(section, around.wifi)?;
    let largest = if around.wifi.is_some() { MAX_WIFI_PACKET } else { Bytes(65_535) };
    let room = largest - Bytes(u64::from(around.tcp.ip.header_len()) + UDP_HEADER);
    if let Some(payload) = plan.udp_payload.filter(|payload| *payload > room) {
        return Err(section
            .error(keys::UDP_PAYLOAD, format!("{payload} do not fit one packet"))
            .allowed(format!("at most {room}")));
    }
    check(section, &plan)?;
    check_peer(section, &plan, around)?;
    Ok(plan)
}

/// `access-category`, for standards with EDCA.
pub(super) fn access_category(
    section: &Section<'_>,
    wifi: Option<&Wifi>,
) -> Result<Option<AccessCategory>, InputError> {
    let Some(wifi) = wifi else { return Ok(None) };
    let category = keys::ACCESS_CATEGORY.given(section)?;
    if category.is_some_and(|category| category != AccessCategory::BestEffort)
        && wifi.bss.standard.phy().aggregation.is_none()
    {
        return Err(section
            .error("access-category", format!("{} has no EDCA here", wifi.bss.standard.name()))
            .allowed("\"be\", or a standard with EDCA"));
    }
    Ok(category)
}

/// Refuses traffic between clients if no access point can forward it, and a receiving client for any other traffic.
fn check_peer(section: &Section<'_>, plan: &TrafficPlan, around: Context<'_>) -> Result<(), InputError> {
    let between_stations = plan.direction == Direction::StationToStation;
    if between_stations && around.wifi.is_none() {
        return Err(section
            .error(keys::KIND, "there is no [wifi]")
            .allowed("\"station-to-station\" with [wifi]"));
    }
    if !between_stations && section.has(keys::PEER) {
        let what = "only data from client to client has one";
        return Err(section.error(keys::PEER, what).allowed("kind = \"station-to-station\""));
    }
    Ok(())
}

/// Refuses settings that an application does not support.
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
            .error("rate", "less than a byte per frame")
            .allowed(format!("from {frame_bits}bps at this frame-rate")));
    }
    if kind != ApplicationKind::Bulk && section.has("size") {
        return Err(section.error("size", "only bulk data has one").allowed("application = \"bulk\""));
    }
    Ok(())
}
