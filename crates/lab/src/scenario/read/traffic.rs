//! `[traffic]`.

use tacit_link::wifi::AccessCategory;
use tacit_proto::tcp;
use tacit_proto::units::{BitRate, Bytes};

use super::{MAX_WIFI_PACKET, host_time};
use crate::error::InputError;
use crate::input::{Mismatch, Section, Value, bit_rate, byte_count, one_of, within};
use crate::scenario::{Direction, TrafficPlan, Transport, Wifi};

/// Headers of a UDP packet, and the octets that number it.
const UDP_HEADER: u64 = 8;
const MIN_UDP_PAYLOAD: Bytes = Bytes(8);

pub(super) fn traffic_section(
    section: Section<'_>,
    tcp: &tcp::Config,
    wifi: Option<&Wifi>,
) -> Result<TrafficPlan, InputError> {
    let largest = if wifi.is_some() { MAX_WIFI_PACKET } else { Bytes(65_535) };
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
        access_category: match wifi {
            Some(wifi) => access_category(&section, wifi)?.unwrap_or_default(),
            None => AccessCategory::default(),
        },
        size: section.optional("size", within(Bytes(1)..=Bytes(1 << 40), byte_count))?,
        udp_rate: section.or("udp-rate", None, saturating_or_rate)?,
        udp_report: section.optional("udp-report", host_time())?,
        udp_payload: section
            .optional("udp-payload", within(MIN_UDP_PAYLOAD..=largest - headers, byte_count))?,
    };
    section.finish()?;
    Ok(plan)
}

/// `access-category`, where the standard has EDCA.
pub(super) fn access_category(
    section: &Section<'_>,
    wifi: &Wifi,
) -> Result<Option<AccessCategory>, InputError> {
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

fn saturating_or_rate(value: &Value) -> Result<Option<BitRate>, Mismatch> {
    match value {
        Value::Text(text) if text == "saturating" => Ok(None),
        other => bit_rate(other).map(Some).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or \"saturating\"");
            mismatch
        }),
    }
}
