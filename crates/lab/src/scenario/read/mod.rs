//! From sections of TOML to a [`Scenario`], with every limit there is: a file for each large section.

mod clients;
pub(super) mod hack;
pub(super) mod hops;
mod queue;
pub(super) mod tcp;
mod traffic;
pub(super) mod wifi;

use tacit_link::QueueLimit;
use tacit_link::wifi::LinkAcks;
use tacit_proto::units::{Bytes, Duration};

use self::clients::client_overrides;
use self::hack::hack_section;
use self::hops::chain;
use self::tcp::tcp_section;
use self::traffic::{Surroundings, flow_sections, traffic_section};
use self::wifi::wifi_section;
use super::{ApAcks, ComparePlan, MAX_CLIENTS, MAX_SEEDS, RunPlan, Scenario, WifiAckFilter};
use crate::error::InputError;
use crate::input::{
    Log, MAX_DURATION, Mismatch, Section, Tree, Value, duration, integer, line, title, within,
};

/// Largest IP packet an 802.11 MSDU without A-MSDU takes: 2304 octets less LLC/SNAP
/// (802.11-2020 clause 9.2.4.7).
const MAX_WIFI_PACKET: Bytes = Bytes(2_296);
/// Linux's default interface queue length.
const DEFAULT_QUEUE: QueueLimit = QueueLimit { packets: Some(1_000), bytes: None };

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
    from_root(name, Section::root(source, tree), tree)
}

/// The same, with `log` for the keys that were asked for.
pub(super) fn logged_scenario(
    name: String,
    source: &str,
    tree: &Tree,
    log: Log,
) -> Result<Scenario, InputError> {
    from_root(name, Section::logged(source, tree, log), tree)
}

fn from_root(name: String, root: Section<'_>, tree: &Tree) -> Result<Scenario, InputError> {
    let wifi = wifi_section(root.section("wifi")?)?;
    let overrides = client_overrides(&root, wifi.as_ref())?;
    let tcp = tcp_section(root.section("tcp")?, wifi.is_some())?;
    let around = Surroundings { tcp: &tcp, wifi: wifi.as_ref() };
    let traffic = traffic_section(root.section("traffic")?, around)?;
    let flows = flow_sections(&root, &traffic, around)?;
    let clients = root.section("clients")?;
    let default_count = u32::try_from(overrides.len()).unwrap_or(MAX_CLIENTS).max(1);
    let scenario = Scenario {
        name: root.or("name", name, title)?,
        description: root.or("description", String::new(), line)?,
        text: tree.to_toml(),
        invocation: String::new(),
        run: run_section(root.section("run")?)?,
        hack: hack_section(root.section("hack")?, wifi.is_some())?,
        hops: chain(&root, wifi.is_some())?,
        clients: clients.or("count", default_count, integer(1..=MAX_CLIENTS))?,
        stagger: clients.or("stagger", Duration::ZERO, span)?,
        overrides,
        traffic,
        flows,
        tcp,
        wifi,
        compare: compare_section(root.section("compare")?)?,
    };
    clients.finish()?;
    if let (Some(wifi), Some(_)) = (&scenario.wifi, scenario.hack.variant) {
        let in_the_way = [
            (
                wifi.ack_filter != WifiAckFilter::Off,
                "filters the ACKs that are to ride",
                "hack or wifi.ack-filter",
            ),
            (
                wifi.ap_acks != ApAcks::None,
                "has the access point give the ACKs that are to ride",
                "hack or wifi.ap-acks",
            ),
            (
                wifi.link_acks == LinkAcks::None,
                "has no link-layer ACKs to ride on",
                "hack or wifi.link-acks = \"none\"",
            ),
        ];
        if let Some((_, what, allowed)) = in_the_way.into_iter().find(|(is_set, ..)| *is_set) {
            return Err(root.error("hack", format!("[wifi] {what}")).allowed(allowed));
        }
    }
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
/// How long hosts may take or wait.
fn host_time() -> impl Fn(&Value) -> Result<Duration, Mismatch> {
    within(Duration::from_micros(1)..=Duration::from_secs(1), duration)
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
