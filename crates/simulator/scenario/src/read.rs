//! Reads TOML sections into a [`Scenario`] and checks all limits. Each large section has its own file.

mod clients;
mod fwp;
pub(super) mod hack;
pub(super) mod hops;
mod multi_link;
mod queue;
mod signal;
mod tack;
pub(super) mod tcp;
mod traffic;
pub(super) mod wifi;

use tacit_link::wifi::{LinkAcks, StreamQueues};
use tacit_packet::units::Duration;

use self::clients::client_overrides;
use self::fwp::fwp_section;
use self::hack::hack_section;
use self::hops::chain;
use self::tack::tack_section;
use self::tcp::{ForSchemes, tcp_section};
use self::traffic::{Context, flow_sections, traffic_section};
use super::{Adoption, ApAcks, ComparePlan, MAX_CLIENTS, RunPlan, Scenario, WifiAckFilter};
use crate::error::InputError;
use crate::input::{Log, Section, Tree};
use crate::keys::{fill, run};

/// The scenario in `tree`.
pub(super) fn scenario(name: String, source: &str, tree: &Tree) -> Result<Scenario, InputError> {
    from_root(name, Section::root(source, tree), tree)
}

/// The scenario in `tree`. `log` records the keys that were requested.
pub(super) fn logged_scenario(
    name: String,
    source: &str,
    tree: &Tree,
    log: Log,
) -> Result<Scenario, InputError> {
    from_root(name, Section::logged(source, tree, log), tree)
}

fn from_root(name: String, root: Section<'_>, tree: &Tree) -> Result<Scenario, InputError> {
    let wifi = multi_link::wifi(&root)?;
    let overrides = client_overrides(&root, wifi.as_ref())?;
    let (tcp, ForSchemes { acks, cubic, rre }) = tcp_section(root.section("tcp")?, wifi.is_some())?;
    let around = Context { tcp: &tcp, wifi: wifi.as_ref() };
    let traffic = traffic_section(root.section("traffic")?, around)?;
    let flows = flow_sections(&root, &traffic, around)?;
    let clients = root.section("clients")?;
    let default_count = u32::try_from(overrides.len()).unwrap_or(MAX_CLIENTS).max(1);
    let count = run::COUNT.or(&clients, default_count)?;
    let own_clients = (!overrides.is_empty() || clients.has(run::COUNT.name)).then_some(count);
    let scenario = Scenario {
        name: run::NAME.or(&root, name)?,
        description: run::DESCRIPTION.or(&root, String::new())?,
        text: tree.to_toml().into(),
        invocation: String::new(),
        run: run_section(root.section("run")?)?,
        hack: hack_section(root.section("hack")?, wifi.as_ref().map(|wifi| wifi.bss.standard))?,
        fwp: fwp_section(root.section("fwp")?, wifi.as_ref())?,
        hops: chain(&root, wifi.is_some())?,
        clients: count,
        adoption: run::ADOPTERS.given(&clients)?.map(Adoption::by),
        stagger: run::STAGGER.or(&clients, Duration::ZERO)?,
        overrides,
        traffic,
        flows,
        tcp,
        acks,
        cubic,
        rre,
        tack: tack_section(root.section("tack")?)?,
        wifi,
        compare: compare_section(root.section("compare")?, own_clients)?,
    };
    clients.finish()?;
    if let (Some(wifi), Some(_)) = (&scenario.wifi, scenario.hack.variant) {
        let in_the_way = [
            (
                wifi.ack_filter != WifiAckFilter::Off,
                "has an ACK filter, which TCP/HACK excludes",
                "hack or wifi.ack-filter",
            ),
            (
                wifi.ap_acks != ApAcks::None,
                "has an access point that acknowledges, which TCP/HACK excludes",
                "hack or wifi.ap-acks",
            ),
            (
                !wifi.link_acks.are(LinkAcks::Normal),
                "lacks the link-layer ACKs that TCP/HACK needs",
                "hack or wifi.link-acks other than \"normal\"",
            ),
            (
                wifi.bss.stream_queues != StreamQueues::Joint,
                "has a queue for each spatial stream",
                "hack or wifi.stream-queues = \"independent\"",
            ),
        ];
        if let Some((_, what, allowed)) = in_the_way.into_iter().find(|(is_set, ..)| *is_set) {
            return Err(root.error("hack", format!("[wifi] {what}")).allowed(allowed));
        }
    }
    if let (Some(wifi), Some(_)) = (&scenario.wifi, scenario.fwp.repair)
        && wifi.ack_filter.hold().is_some()
    {
        let what = "the drivers of [wifi] stand where the shims of [fwp] would";
        return Err(root.error("fwp", what).allowed("fwp or wifi.ack-filter"));
    }
    // `base` has already been resolved. Requesting it marks it as a known key.
    root.node("base");
    root.finish()?;
    Ok(scenario)
}

fn run_section(section: Section<'_>) -> Result<RunPlan, InputError> {
    let mut plan = run::usual();
    fill(run::RUN, &section, &mut plan)?;
    if !section.has(run::MEASURE_FROM) {
        plan.measure_from = (plan.duration / 4).min(Duration::from_secs(4));
    }
    let RunPlan { duration, measure_from, .. } = plan;
    if measure_from >= duration {
        return Err(section
            .error(run::MEASURE_FROM, format!("{measure_from} leaves nothing to measure"))
            .allowed(format!("less than run.duration, {duration}")));
    }
    section.finish()?;
    Ok(plan)
}

/// `[compare]`. A scenario that lists its clients is compared with that number of clients.
fn compare_section(section: Section<'_>, own_clients: Option<u32>) -> Result<ComparePlan, InputError> {
    let usual = own_clients.map_or(vec![1, 10], |count| vec![count]);
    let plan = ComparePlan { clients: run::COMPARED_CLIENTS.or(&section, usual)? };
    section.finish()?;
    Ok(plan)
}
