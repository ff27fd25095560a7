//! Explains why one scheme carries more than another: splits the difference in goodput by the uses of the bottleneck's
//! time.
//!
//! The bottleneck is a channel or a link, which has one second of time per second. Each use takes a fraction `s` of it,
//! and the fractions add up to 1. With goodput `g`, a use costs `s / g` per delivered bit, and all costs add up to
//! `1 / g`. For two schemes with goodputs `a` and `b` and fractions `s` and `t`, this gives
//!
//! `a - b = a b (1/b - 1/a) = Σ a b (t/b - s/a) = Σ (a t - b s)`.
//!
//! Each term of the sum is the contribution of one use. The decomposition is exact and has no remainder. It requires no
//! model for the cost of a use per bit; the text for each use mentions related counts of the runs.

mod links;
mod rounds;
mod station;
mod text;

use std::path::Path;

use serde::Serialize;
use tacit_link::wifi::AirtimeUse;
use tacit_runs::RunsError;
use tacit_runs::aggregate::{self, Column, Gain, Group, Mean};
use tacit_runs::metric::airtime_name;
use tacit_runs::record::RunSummary;
use tacit_runs::store::{Provenance, Store};
use tacit_runs::sweep::Control;
use tacit_scenario::InputError;
use tacit_scenario::scheme::{self, Role, Scheme};

use crate::compare::{self, Options};

pub use links::{LinkUse, Links};
pub use rounds::Rounds;
use station::StationUse;

/// Minimum fraction of time in which a bottleneck has something to carry. Our choice: TCP over Wi-Fi leaves a few per
/// cent idle when it starts.
pub(crate) const BUSY: f64 = 0.9;

/// Minimum ratio of the queueing delay in the reverse direction to that of data for the reverse direction to be
/// considered the limit (our choice).
pub(crate) const LONGER_BACK: f64 = 10.0;

/// Explains per client count why one scheme has more goodput than another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// Name of the scenario.
    pub scenario: String,
    /// A description of one line.
    pub description: String,
    /// One account per client count.
    pub accounts: Vec<Account>,
}

/// The better of two schemes, the other one, and the causes of the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// Number of clients.
    pub clients: u32,
    /// Number of pairs of runs with equal seeds.
    pub seeds: usize,
    /// The better scheme.
    pub winner: Side,
    /// The scheme it is compared with.
    pub other: Side,
    /// Fraction by which the winner's mean exceeds the other's.
    pub gain: f64,
    /// Half-width of its 95 % confidence interval, from pairs of equal seeds; null with one pair.
    pub gain_ci95: Option<f64>,
    /// The gain exceeds its interval, so there is a difference to explain.
    pub differs: bool,
    /// The resource whose time is split. Goodput is that of all bytes it carried, or of the station.
    pub resource: Resource,
    /// Contributions to the difference, largest first. They add up to the difference. Empty if there is nothing to
    /// explain.
    pub parts: Vec<Part>,
    /// Deviation of the sum of the parts from the difference because of rounding, in bits per second.
    pub error_bps: f64,
}

/// One of two schemes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Name of the scheme.
    pub scheme: String,
    /// Mean goodput over the seeds.
    pub goodput_bps: f64,
    /// Half-width of its 95 % confidence interval.
    pub goodput_bps_ci95: Option<f64>,
    /// Fraction of the resource's time in which it had something to carry.
    pub busy: f64,
    /// How its ACKs were sent with TCP/HACK; null without it.
    pub hack: Option<AckWays>,
    /// Use of its multi-user PPDUs; null if there are none.
    pub rounds: Option<Rounds>,
    /// Its links of 802.11be; null with one.
    pub links: Option<Links>,
}

/// How ACKs were sent with TCP/HACK, as means over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AckWays {
    /// ACKs appended to link-layer ACKs.
    pub compressed_acks: f64,
    /// ACKs replaced by a later one before they were sent.
    pub thinned_acks: f64,
    /// ACKs sent as packets.
    pub native_acks: f64,
    /// Those of them that waited but take less airtime as packets.
    pub cheaper_acks: f64,
    /// Fraction of time used by appended ACKs.
    pub airtime_share: f64,
}

impl AckWays {
    /// The values of a group; `None` if no station uses TCP/HACK.
    fn from_group(group: &Group<'_>) -> Option<Self> {
        Some(Self {
            compressed_acks: group.mean_of("compressed_acks")?,
            thinned_acks: group.mean_of("thinned_acks")?,
            native_acks: group.mean_of("native_acks")?,
            cheaper_acks: group.mean_of("cheaper_acks")?,
            airtime_share: group.mean_of(&airtime_name(AirtimeUse::CompressedAck))?,
        })
    }
}

/// A resource that has one second of time per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// The first Wi-Fi channel.
    Channel,
    /// The wired or cellular link with the highest utilisation on the path of the first flow.
    Link,
    /// The first flow's client of an access point. A single station also has one second of time per second.
    Station,
}

/// The resource to account for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The bottleneck, which is a channel or a link.
    #[default]
    Bottleneck,
    /// The station of the first flow.
    FirstStation,
}

impl Scope {
    fn resource(self, groups: &[&Group<'_>]) -> Option<Resource> {
        match self {
            Self::Bottleneck => fullest(groups),
            Self::FirstStation => groups
                .iter()
                .all(|group| group.mean_of(self.goodput()).is_some())
                .then_some(Resource::Station),
        }
    }

    /// The goodput metric that its accounts explain.
    const fn goodput(self) -> &'static str {
        match self {
            Self::Bottleneck => "goodput_bps",
            Self::FirstStation => "first_host_goodput_bps",
        }
    }
}

/// Contribution of one use of the resource's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The use.
    pub name: &'static str,
    /// Its contribution to the difference in goodput, in bits per second.
    pub contribution_bps: f64,
    /// Half-width of the 95 % confidence interval of this contribution, from pairs of equal seeds; null with one pair.
    pub contribution_bps_ci95: Option<f64>,
    /// The contribution only shows that data took more or less time, not why.
    pub unexplained: bool,
    /// Milliseconds of the resource's time per megabyte delivered: winner, then other.
    pub ms_per_mb: [f64; 2],
    /// Related counts of the runs.
    pub evidence: Vec<Evidence>,
}

/// A metric of both schemes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its name in results.
    pub metric: &'static str,
    /// Means over the seeds: winner, then other.
    pub values: [f64; 2],
}

/// Runs `options.scenario` with two schemes and explains the difference. Nothing is stored.
///
/// # Errors
/// Same as [`compare::compare`].
pub fn explain_scenario(options: &Options, scope: Scope, control: Control<'_>) -> Result<Why, RunsError> {
    // Checked before anything runs.
    two(&options.schemes)?;
    let (provenance, records) = compare::records(options, control)?;
    explain_runs(&provenance, &records, &options.schemes, scope)
}

/// Explains the comparison stored in `directory`: for `schemes`, or for the best scheme and the baseline.
///
/// # Errors
/// If there is no comparison, or it does not include these schemes.
pub fn explain_directory(directory: &Path, schemes: &[String], scope: Scope) -> Result<Why, RunsError> {
    let (provenance, records) = Store::existing(directory).read()?;
    if records.iter().any(|record| record.label.x.is_some()) {
        let what = format!("{} has a sweep along an axis", directory.display());
        return Err(InputError::new("tacit why", what).allowed("results of tacit compare").into());
    }
    explain_runs(&provenance, &records, schemes, scope)
}

fn explain_runs(
    provenance: &Provenance,
    records: &[RunSummary],
    schemes: &[String],
    scope: Scope,
) -> Result<Why, RunsError> {
    let named = two(schemes)?;
    let of_scenario =
        |group: &Group<'_>| group.label().is_some_and(|label| label.scenario == provenance.scenario);
    let groups: Vec<Group<'_>> = aggregate::groups(records).into_iter().filter(of_scenario).collect();
    let mut clients: Vec<u32> = groups.iter().filter_map(|group| Some(group.label()?.clients)).collect();
    clients.sort_unstable();
    clients.dedup();
    let account = |count: &u32| {
        let here = groups.iter().filter(|group| group.label().is_some_and(|label| label.clients == *count));
        let (winner, other) = contest(here.collect(), &named, scope)?;
        account(&winner, &other, scope)
    };
    let accounts: Option<Vec<Account>> = clients.iter().map(account).collect();
    let Some(accounts) = accounts.filter(|accounts| !accounts.is_empty()) else {
        let mut known: Vec<&str> = records.iter().map(|record| record.label.scheme.as_str()).collect();
        known.sort_by_key(|name| Scheme::position(name));
        known.dedup();
        let what = match scope {
            Scope::Bottleneck => "results lack two schemes to tell apart, or the uses of their time",
            Scope::FirstStation => {
                "results lack two schemes to tell apart, or the first flow has no end at a client of Wi-Fi"
            }
        };
        return Err(InputError::new("--schemes", what)
            .allowed(format!("two of {}", known.join(", ")))
            .into());
    };
    Ok(Why { scenario: provenance.scenario.clone(), description: provenance.description.clone(), accounts })
}

/// The two schemes with these names, or none if `names` is empty.
fn two(names: &[String]) -> Result<Vec<&'static Scheme>, InputError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let schemes = scheme::select("--schemes", names)?;
    if schemes.len() != 2 {
        let what = format!("{} is not two schemes", names.join(","));
        return Err(InputError::new("--schemes", what).allowed("two names, such as hack-batch,stock"));
    }
    Ok(schemes)
}

/// The better of the two selected schemes and the other one. Without a selection, the best scheme and the baseline, or,
/// if the baseline is the best, the second best.
fn contest<'a>(groups: Vec<&Group<'a>>, named: &[&Scheme], scope: Scope) -> Option<(Group<'a>, Group<'a>)> {
    let goodput = Column::named(scope.goodput())?;
    let name = |group: &Group<'_>| group.label().map_or("", |label| label.scheme.as_str()).to_owned();
    let mut ranked: Vec<(f64, Group<'a>)> = groups
        .into_iter()
        .filter(|group| match named {
            [] => name(group) != Scheme::with_role(Role::Bound).name,
            asked => asked.iter().any(|scheme| scheme.name == name(group)),
        })
        .filter_map(|group| Some((group.mean(goodput)?.mean, group.clone())))
        .collect();
    // If several are equal, the first in the scheme table counts. The baseline is the first of all.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut ranked = ranked.into_iter().map(|(_, group)| group);
    let best = ranked.next()?;
    let others: Vec<Group<'a>> = ranked.collect();
    let baseline = others.iter().find(|group| name(group) == Scheme::with_role(Role::Baseline).name);
    let other = baseline.or(others.first())?.clone();
    Some((best, other))
}

/// A use of the resource's time.
struct Use {
    name: &'static str,
    share: Share,
    /// Metrics with further information about it.
    evidence: &'static [&'static str],
}

/// How the fraction of a use is computed from the metrics of a run.
#[derive(Clone, Copy, PartialEq)]
enum Share {
    /// The airtime of a use, for data and ACKs together.
    Whole(AirtimeUse),
    /// The part of an airtime use caused by PPDUs with only ACKs.
    OfAcks(AirtimeUse),
    /// The rest of an airtime use.
    OfData(AirtimeUse),
    /// Data outside collisions, including retransmissions. If the first transmission is lost in a collision, the next
    /// one delivers the data, so both together are the cost of delivered data.
    Data,
    /// The traffic of a link.
    Carried,
    /// The rest of a link's time.
    Unused,
    /// A use of one station's time.
    Station(StationUse),
}

impl Share {
    /// The fraction in a run; zero for a use that does not apply.
    fn in_run(self, run: &RunSummary) -> f64 {
        let airtime = |what| run.metric(&airtime_name(what)).unwrap_or(0.0);
        match self {
            Self::Whole(what) => airtime(what),
            Self::OfAcks(what) => airtime(what).min(for_acks(run, what)),
            Self::OfData(what) => airtime(what) - Self::OfAcks(what).in_run(run),
            Self::Data => airtime(AirtimeUse::Data) + Self::OfData(AirtimeUse::Retransmission).in_run(run),
            // A packet in transmission at the start of the window is counted completely.
            Self::Carried => run.metric("first_way_utilisation").unwrap_or(0.0).min(1.0),
            Self::Unused => 1.0 - Self::Carried.in_run(run),
            Self::Station(part) => part.share(run),
        }
    }

    /// The use shows how long data took, but not why.
    fn is_unexplained(self) -> bool {
        matches!(self, Self::Data | Self::Carried)
    }
}

/// The fraction of time spent on `what` by PPDUs with only ACKs.
fn for_acks(run: &RunSummary, what: AirtimeUse) -> f64 {
    let share = |name| run.metric(name).unwrap_or(0.0) / 1e3 / run.measured_s.max(f64::MIN_POSITIVE);
    let share = match what {
        AirtimeUse::Acquisition => share("tcp_ack_acquisition_ms"),
        AirtimeUse::LinkAck => share("tcp_ack_link_ack_ms"),
        // First transmissions are a separate use.
        AirtimeUse::Retransmission => {
            share("tcp_ack_ppdu_time_ms") - Share::Whole(AirtimeUse::TcpAck).in_run(run)
        }
        _ => 0.0,
    };
    share.max(0.0)
}

fn account(winner: &Group<'_>, other: &Group<'_>, scope: Scope) -> Option<Account> {
    let resource = scope.resource(&[winner, other])?;
    let goodput = Column::named(scope.goodput())?;
    let (winner_mean, other_mean) = (winner.mean(goodput)?, other.mean(goodput)?);
    let Gain { of_means: gain, ci95 } = winner.gain_over(other, goodput)?;
    let uses = uses(resource);
    let busy = |group: &Group<'_>| Some(1.0 - shares(group, &uses)?.last()?.clamp(0.0, 1.0));
    let side = |group: &Group<'_>, mean: Mean| {
        Some(Side {
            scheme: group.label()?.scheme.clone(),
            goodput_bps: mean.mean,
            goodput_bps_ci95: mean.ci95,
            busy: busy(group)?,
            hack: AckWays::from_group(group),
            rounds: Rounds::from_group(group),
            links: Links::from_group(group),
        })
    };
    let differs = gain > ci95.unwrap_or(0.0);
    let parts = if differs { parts(winner, other, scope, &uses)? } else { Vec::new() };
    let sum: f64 = parts.iter().map(|part| part.contribution_bps).sum();
    Some(Account {
        clients: winner.label()?.clients,
        seeds: winner_mean.count.min(other_mean.count),
        winner: side(winner, winner_mean)?,
        other: side(other, other_mean)?,
        gain,
        gain_ci95: ci95,
        differs,
        resource,
        error_bps: if differs { winner_mean.mean - other_mean.mean - sum } else { 0.0 },
        parts,
    })
}

/// The mean fraction of each use over the runs of a group.
fn shares(group: &Group<'_>, uses: &[Use]) -> Option<Vec<f64>> {
    let mean = |wanted: &Use| Some(Mean::from_values(group.runs().map(|run| wanted.share.in_run(run)))?.mean);
    uses.iter().map(mean).collect()
}

/// The resource to account for: the channel, unless a link has a higher utilisation over all of `groups` together.
pub(crate) fn fullest(groups: &[&Group<'_>]) -> Option<Resource> {
    let all = |name: &str| groups.iter().map(|group| group.mean_of(name)).sum::<Option<f64>>();
    let channel = all(&airtime_name(AirtimeUse::Idle)).map(|idle| groups.len() as f64 - idle);
    let link = all("first_way_utilisation");
    match (channel, link) {
        (Some(channel), Some(link)) if link > channel => Some(Resource::Link),
        (Some(_), _) => Some(Resource::Channel),
        (None, Some(_)) => Some(Resource::Link),
        (None, None) => None,
    }
}

/// The contributions, largest first.
fn parts(winner: &Group<'_>, other: &Group<'_>, scope: Scope, uses: &[Use]) -> Option<Vec<Part>> {
    let goodput = Column::named(scope.goodput())?;
    let (a, b) = (winner.mean(goodput)?.mean, other.mean(goodput)?.mean);
    let (winner_shares, other_shares) = (shares(winner, uses)?, shares(other, uses)?);
    let mut parts = Vec::new();
    for ((wanted, winner_share), other_share) in uses.iter().zip(winner_shares).zip(other_shares) {
        if winner_share == 0.0 && other_share == 0.0 {
            continue;
        }
        // Each pair of runs has its own account. The spread of these is the uncertainty of the contribution.
        let of_pairs = winner.pairs(other).filter_map(|(run, twin)| {
            let goodput = |run: &RunSummary| run.metric(scope.goodput());
            Some(goodput(run)? * wanted.share.in_run(twin) - goodput(twin)? * wanted.share.in_run(run))
        });
        let evidence = wanted.evidence.iter().filter_map(|metric| {
            Some(Evidence { metric, values: [winner.mean_of(metric)?, other.mean_of(metric)?] })
        });
        parts.push(Part {
            name: wanted.name,
            contribution_bps: a * other_share - b * winner_share,
            contribution_bps_ci95: Mean::from_values(of_pairs).and_then(|mean| mean.ci95),
            unexplained: wanted.share.is_unexplained(),
            ms_per_mb: [winner_share / a, other_share / b].map(|seconds_per_bit| seconds_per_bit * 8e6 * 1e3),
            evidence: evidence.collect(),
        });
    }
    parts.sort_by(|a, b| b.contribution_bps.abs().total_cmp(&a.contribution_bps.abs()));
    Some(parts)
}

/// The uses of a resource's time, ending with idle time. Their fractions add up to 1.
fn uses(resource: Resource) -> Vec<Use> {
    match resource {
        Resource::Channel => channel_uses(),
        Resource::Link => link_uses(),
        Resource::Station => station::uses(),
    }
}

/// A link either carries traffic or is idle. Packets dropped by its queue take no time.
fn link_uses() -> Vec<Use> {
    vec![
        Use {
            name: "packets that the link carried",
            share: Share::Carried,
            evidence: &["tcp_retransmitted_share"],
        },
        Use {
            name: "link without anything to carry",
            share: Share::Unused,
            evidence: &[
                "first_way_queue_delay_p95_us",
                "first_way_drops",
                "wired_queue_delay_p95_us",
                "acks_per_data_packet",
                "tcp_fast_recoveries",
                "tcp_rtos",
            ],
        },
    ]
}

/// All uses of airtime, split between data and ACKs where PPDUs with only ACKs contribute. Collisions are not split,
/// because mostly an ACK collides with data.
fn channel_uses() -> Vec<Use> {
    let part = |name, share, evidence| Use { name, share, evidence };
    let for_acks = |name, what| part(name, Share::OfAcks(what), &["tcp_ack_ppdus_per_s"]);
    vec![
        part(
            "data on the air",
            Share::Data,
            &[
                "ampdu_mean",
                "users_per_shared_ppdu",
                "shared_unit_fill",
                "retry_share",
                "tcp_retransmitted_share",
            ],
        ),
        part(
            "ACKs on the air",
            Share::Whole(AirtimeUse::TcpAck),
            &["tcp_acks_on_air_per_s", "tcp_ack_ppdus_per_s", "ack_ampdu_mean"],
        ),
        for_acks("winning the channel for ACKs", AirtimeUse::Acquisition),
        for_acks("link-layer ACKs that answer ACKs", AirtimeUse::LinkAck),
        for_acks("ACKs on the air again", AirtimeUse::Retransmission),
        part(
            "winning the channel for data",
            Share::OfData(AirtimeUse::Acquisition),
            &["accesses_per_s", "ampdu_mean", "triggers_per_s", "empty_answer_share"],
        ),
        part(
            "link-layer ACKs that answer data",
            Share::OfData(AirtimeUse::LinkAck),
            &["ampdu_mean", "answer_time_share", "missed_link_acks_per_s"],
        ),
        part(
            "compressed ACKs on link-layer ACKs",
            Share::Whole(AirtimeUse::CompressedAck),
            &["augmented_link_acks_per_s", "appended_bytes_per_s", "hack_room_fill"],
        ),
        part("collisions", Share::Whole(AirtimeUse::Collision), &["collisions_per_s", "tcp_ack_ppdus_per_s"]),
        part("RTS and CTS", Share::Whole(AirtimeUse::Protection), &["accesses_per_s"]),
        part("beacons", Share::Whole(AirtimeUse::Beacon), &[]),
        part(
            "no station had data to send",
            Share::Whole(AirtimeUse::Idle),
            &["queue_delay_p50_us", "tcp_fast_recoveries", "tcp_rtos"],
        ),
    ]
}

#[cfg(test)]
mod tests;
