//! `[traffic]`.

use tacit_proto::tcp;
use tacit_proto::udp::ReportAfter;
use tacit_proto::units::{BitRate, Bytes};

use super::{MAX_WIFI_PACKET, host_time};
use crate::error::InputError;
use crate::input::{Mismatch, Section, Value, bit_rate, byte_count, one_of, within};
use crate::scenario::{Direction, TrafficPlan, Transport};

/// Headers of a UDP packet, and the octets that number it.
const UDP_HEADER: u64 = 8;
const MIN_UDP_PAYLOAD: Bytes = Bytes(8);
const MAX_DATAGRAMS_PER_REPORT: u32 = 1_000_000;

pub(super) fn traffic_section(
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
        udp_report: section.optional("udp-report", time_or_datagrams)?,
        udp_payload: section
            .optional("udp-payload", within(MIN_UDP_PAYLOAD..=largest - headers, byte_count))?,
    };
    section.finish()?;
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

fn saturating_or_rate(value: &Value) -> Result<Option<BitRate>, Mismatch> {
    match value {
        Value::Text(text) if text == "saturating" => Ok(None),
        other => bit_rate(other).map(Some).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or \"saturating\"");
            mismatch
        }),
    }
}
