//! Builds the stations of a basic service set from its configuration.

use tacit_packet::units::Duration;

use super::stations::Stations;
use super::txop::GRANTED_PART;
use crate::loss::{Loss, LossProcess};
use crate::queue::QueueConfig;
use crate::random::Stream;
use crate::wifi::air::StationId;
use crate::wifi::category::AccessCategory;
use crate::wifi::category::BothWays;
use crate::wifi::config::{
    ApScheduler, BssConfig, DirectLink, LinkAcks, RateControl, ReverseDirection, StationConfig, StreamQueues,
};
use crate::wifi::functions::{FunctionId, Functions, Peers};
use crate::wifi::mac::SEQUENCE_MODULUS;
use crate::wifi::mac::access::Contention;
use crate::wifi::mac::aggregation::AggregationLimits;
use crate::wifi::mac::block_ack::{BlockAckRecipient, Recipient};
use crate::wifi::mac::noise::Noise;
use crate::wifi::mac::originator::Originator;
use crate::wifi::mac::peer::Peer;
use crate::wifi::mac::random_access::RandomAccess;
use crate::wifi::mac::rate_control::{Minstrel, Rate};
use crate::wifi::mac::repair::RepairRecipient;
use crate::wifi::mac::rules::Rules;
use crate::wifi::mac::sent_buffer::MOST_REPAIRABLE;
use crate::wifi::mac::station::Station;
use crate::wifi::mac::triggered_rates::TriggeredRates;
use crate::wifi::mu_scheduler::SchedulerHandle;
use crate::wifi::multi_link::Emlsr;
use crate::wifi::ofdma::MuAcknowledgment;
use crate::wifi::phy::{
    HT_CONTROL_LEN, HeOptions, Mode, MultiUser, MultiUserPpdu, Phy, ResourceUnit, block_ack_len,
};
use crate::wifi::propagation::Decibels;

/// The stations of `config`, the access point first in `names`, with one function per access category.
pub(crate) fn build_stations(rules: &Rules, seed: u64, bss: &str, names: &[&str]) -> Stations {
    let categories = &rules.config.categories;
    let numbers = Functions::new(names.len() as u16, categories.len() as u16);
    Stations::new(numbers, |function| {
        let place = numbers.place(function);
        let category = categories[place];
        // The first category uses the stream names of a basic service set without categories.
        let suffix = if place == 0 { String::new() } else { format!(" {}", category.name()) };
        let stream = |what| Stream::new(seed, &format!("{bss} {what}{suffix}"));
        build_function(rules, category, &stream, (function, numbers), names)
    })
}

/// The function of a station for one category.
fn build_function(
    rules: &Rules,
    category: AccessCategory,
    stream: &dyn Fn(String) -> Stream,
    (function, numbers): (FunctionId, Functions),
    names: &[&str],
) -> Station {
    let Rules { phy, config, .. } = rules;
    let name_of = |function| names[numbers.station(function).index()];
    let reach = numbers.peers(function, &config.direct_links);
    let mut peers: Vec<Peer> = match &reach {
        Peers::Clients { .. } => (config.stations.iter().zip(reach.iter()))
            .zip(0..)
            .map(|((client, id), number)| {
                let link = format!("to {}", name_of(id));
                let way = Way { radio: rules.radio_of(number), ..Way::down(client) };
                peer(rules, (StationId::AP, category), stream, id, client, way, &link)
            })
            .collect(),
        Peers::AccessPoint(_) | Peers::Linked(_) => {
            let station = numbers.station(function);
            let client = &config.stations[station.index() - 1];
            let from = format!("from {}", name_of(function));
            let up = (client, Way::up(client), from.clone());
            let direct = DirectLink::from_station(&config.direct_links, station).map(|direct| {
                let mut back = DirectLink::from_station(&config.direct_links, direct.to);
                let back = back.find(|back| back.to == station).map(|back| &back.link);
                let way = Way { back, ..Way::up(&direct.link) };
                (&direct.link, way, format!("{from} to {}", names[direct.to.index()]))
            });
            [up].into_iter()
                .chain(direct)
                .zip(reach.iter())
                .map(|((link, way, name), id)| peer(rules, (station, category), stream, id, link, way, &name))
                .collect()
        }
    };
    if let Some(link) = &rules.multi_link {
        let station = numbers.station(function);
        for peer in &mut peers {
            let client = if station == StationId::AP { numbers.station(peer.id) } else { station };
            let client = client.index() - 1;
            let role = link.role(client, station == StationId::AP, category, link.common.acks.possible());
            peer.originator.work_on(role, link.shares[client]);
        }
    }
    let backoff = stream(format!("backoff {}", name_of(function)));
    let contention = Contention::new(phy, &config.edca(numbers.station(function), category), backoff);
    let mut station = Station::new(function, reach, category, contention, peers, rules.phy.max_mpdus());
    station.hold_limits = rules.hold_limits(category);
    if config.ofdma.is_some_and(|ofdma| ofdma.random_access_units > 0) {
        let random = stream(format!("random access {}", name_of(function)));
        station.random_access = Some(Box::new(RandomAccess::new(random)));
    }
    if station.is_access_point() {
        station.mu_scheduler = config.ofdma.and_then(|ofdma| ofdma.scheduler).map(SchedulerHandle::new);
        // An external scheduler serves its choices first.
        let own_order = station.mu_scheduler.is_none();
        station.scheduler = if own_order { config.ap_scheduler } else { ApScheduler::RoundRobin };
    }
    station
}

/// The path to a peer.
#[derive(Clone, Copy)]
struct Way<'a> {
    loss: &'a Loss,
    queue: QueueConfig,
    /// Whether data on it is acknowledged, and whether data in the opposite direction is.
    acks: [LinkAcks; 2],
    /// The peer's settings for sending, if they are different.
    back: Option<&'a StationConfig>,
    /// The one radio that the peer has for several links.
    radio: Option<Emlsr>,
}

impl<'a> Way<'a> {
    /// From the access point to `client`.
    fn down(client: &'a StationConfig) -> Self {
        let BothWays { down, up } = client.link_acks;
        Self {
            loss: &client.downlink_loss,
            queue: client.downlink_queue,
            acks: [down, up],
            back: None,
            radio: None,
        }
    }

    /// From `client` to its access point, or to the other end of a direct link.
    fn up(client: &'a StationConfig) -> Self {
        let BothWays { down, up } = client.link_acks;
        Self {
            loss: &client.uplink_loss,
            queue: client.uplink_queue,
            acks: [up, down],
            back: None,
            radio: None,
        }
    }
}

/// The peer `id` of `station`, on a `link` of `client` in this direction.
fn peer(
    rules: &Rules,
    (station, category): (StationId, AccessCategory),
    stream: &dyn Fn(String) -> Stream,
    id: FunctionId,
    client: &StationConfig,
    way: Way<'_>,
    link: &str,
) -> Peer {
    let config = &rules.config;
    let (phy, window) = (config.phy_at(&client.mode), config.window_at(&client.mode));
    let control = control_mode(config, client);
    let guard = match way.radio {
        None => config.protection.longest(phy, &client.mode, &control),
        Some(radio) => phy.calling_time(&control, radio.padding)[1],
    };
    let txop_limit = rules.hold_limits(category).exchange.map(|limit| limit.saturating_sub(guard));
    let Way { loss, queue, acks: [acks, acks_of_peer], back, .. } = way;
    let streams = streams_of(config, &client.mode);
    let aql_limit = config.aql_limit.filter(|_| station == StationId::AP);
    let limits = limits(phy, config, [&client.mode, &control], (txop_limit, streams), aql_limit);
    // The peer of a direct link sends in a mode of its own.
    let peer_mode = &back.unwrap_or(client).mode;
    let (peer_streams, peer_window) = (streams_of(config, peer_mode), config.window_at(peer_mode));
    let peer_phy = config.phy_at(peer_mode);
    let is_block =
        self::limits(peer_phy, config, [peer_mode, &control], (None, peer_streams), None).window > 1;
    let limits = match acks {
        LinkAcks::Normal => limits,
        // MPDUs that are sent again have numbers far behind.
        LinkAcks::None => limits.with_window(SEQUENCE_MODULUS / 2),
        LinkAcks::Deferred => limits.at_most(MOST_REPAIRABLE).with_window(SEQUENCE_MODULUS / 2),
    };
    let recipient = || match acks_of_peer {
        LinkAcks::None => Recipient::Unanswered { next: 0 },
        LinkAcks::Deferred => Recipient::Deferred(RepairRecipient::new(config.repair)),
        LinkAcks::Normal if is_block => Recipient::Block(BlockAckRecipient::new(peer_window)),
        LinkAcks::Normal => Recipient::Immediate { last: None },
    };
    let rates_of = |client: &StationConfig| match config.rate_control {
        RateControl::Fixed => Vec::new(),
        RateControl::Minstrel => rates(config.phy_at(&client.mode), config, client, (txop_limit, aql_limit)),
    };
    let rates = rates_of(client);
    let noise = client.snr.map(|snr| {
        let over = |mode: &Mode| client.snr_over(mode).unwrap_or(snr);
        let alone = |client: &StationConfig, rates: &[Rate]| match rates {
            [] => vec![(client.mode, control_mode(config, client), over(&client.mode))],
            rates => rates.iter().map(|rate| (rate.mode, rate.control_mode, over(&rate.mode))).collect(),
        };
        let mut known = alone(client, &rates);
        let way = if station == StationId::AP { MultiUser::Down } else { MultiUser::Up };
        let shared: Vec<_> = known.iter().flat_map(|alone| shared_rates(config, *alone, way)).collect();
        known.extend(shared);
        let noise = Noise::of_rates(&known, stream(format!("noise {link}")));
        match back {
            Some(back) => noise.answering(&alone(back, &rates_of(back))),
            None => noise,
        }
    });
    let mut originator = Originator::new(client.mode, control, limits, acks, queue);
    // SIFS and the response; with AIFS and the mean backoff, the overhead of a PPDU.
    let response = phy.sifs + control.ppdu_duration(block_ack_len(window));
    let minstrel = |rates: Vec<Rate>, before: Duration, name: String| {
        Minstrel::new(rates, before + response, config.retry_limit, stream(name))
    };
    let mut triggered_rates = None;
    if config.ofdma.is_some_and(|ofdma| ofdma.adapts_triggered_rates())
        && station == StationId::AP
        && let RateControl::Minstrel = config.rate_control
    {
        let all = self::rates(phy, config, client, (txop_limit, None));
        let narrower = all.partition_point(|rate| rate.mode.width_mhz < client.mode.width_mhz);
        // Before the PPDU comes the trigger, about as long as a Block Ack, and SIFS.
        let control = minstrel(all[narrower..].to_vec(), response, format!("triggered rates {link}"));
        triggered_rates = Some(Box::new(TriggeredRates::new(control, narrower)));
    }
    if !rates.is_empty() {
        let edca = config.edca(station, category);
        let access = phy.aifs() + phy.slot * u64::from(edca.cw_min / 2);
        originator.adapt_rate(minstrel(rates, access, format!("rates {link}")));
    }
    let losses = [("data", loss), ("link ack", &client.link_ack_loss)]
        .map(|(what, loss)| LossProcess::new(loss.clone(), stream(format!("{what} loss {link}"))));
    if acks == LinkAcks::Deferred {
        originator.keep_sent(config.repair);
    }
    let further = 2..=streams;
    further.clone().for_each(|_| {
        originator.add_stream(Originator::new(client.mode, control, limits, acks, QueueConfig::default()));
    });
    let recipient = match peer_streams {
        1 => recipient(),
        _ => Recipient::Streams((0..peer_streams).map(|_| recipient()).collect()),
    };
    let mut peer = Peer::new(id, originator, recipient, losses, noise);
    peer.stream_losses = further
        .map(|number| LossProcess::new(loss.clone(), stream(format!("data loss {link} on stream {number}"))))
        .collect();
    peer.answered = acks_of_peer == LinkAcks::Normal;
    peer.away = client.away;
    peer.triggered_rates = triggered_rates;
    peer
}

/// How many aggregates a PPDU in `mode` carries in parallel.
fn streams_of(config: &BssConfig, mode: &Mode) -> u32 {
    match config.stream_queues {
        StreamQueues::Independent if config.phy_at(mode).aggregation.is_some() => u32::from(mode.streams),
        StreamQueues::Joint | StreamQueues::Independent => 1,
    }
}

/// Control mode of `client` and its peer, for data in the client's fastest mode.
fn control_mode(config: &BssConfig, client: &StationConfig) -> Mode {
    client.control_mode.unwrap_or_else(|| config.phy_at(&client.mode).control_mode(&client.mode))
}

/// Limits of a PPDU with data in the first of `modes` and the response in the second, in each of `streams` parallel
/// aggregates, and with a duration of at most `aql_limit`.
fn limits(
    phy: &Phy,
    config: &BssConfig,
    modes: [&Mode; 2],
    (txop_limit, streams): (Option<Duration>, u32),
    aql_limit: Option<Duration>,
) -> AggregationLimits {
    let (header, time) = match config.reverse_direction {
        ReverseDirection::Off => (phy.mac_header_len(), txop_limit),
        ReverseDirection::Granted { .. } => {
            (phy.mac_header_len() + HT_CONTROL_LEN, txop_limit.map(|limit| limit - limit / GRANTED_PART))
        }
    };
    let limits = AggregationLimits::new(
        phy,
        header,
        modes,
        (config.ampdu_mpdus, config.window_at(modes[0])),
        config.amsdu,
        time,
    )
    .of_stream(streams)
    .spaced(modes[0], config.mpdu_start_spacing);
    match aql_limit {
        Some(limit) => limits.aggregating_within(modes[0].bytes_within(limit) / streams),
        None => limits,
    }
}

/// Rates of data and responses in multi-user PPDUs of a client whose PPDUs of its own have the modes `data` and `control`,
/// given its noise, by the size of the units, if it shares PPDUs: one for each size. Responses to triggers concentrate the
/// power of the whole channel in their unit.
fn shared_rates(
    config: &BssConfig,
    (mode, control, snr): (Mode, Mode, Decibels),
    way: MultiUser,
) -> Vec<(Mode, Mode, Decibels)> {
    let (Some(ofdma), Some(whole)) = (config.ofdma, ResourceUnit::of_channel(mode.width_mhz)) else {
        return Vec::new();
    };
    let of_unit = |unit: ResourceUnit| {
        let among = |mode: Mode, kind: MultiUser| {
            let guard_interval = kind.guard_interval(mode.guard_interval);
            mode.among_users(&MultiUserPpdu {
                kind,
                users: 1,
                unit,
                training_streams: mode.streams,
                lowest_mcs: 0,
                guard_interval,
                options: HeOptions::usual(guard_interval),
            })
        };
        let gain_db = 10.0 * libm::log10(f64::from(whole.tones()) / f64::from(unit.tones()));
        let in_unit = Decibels::from_db(snr.as_db() + gain_db);
        let data = among(mode, way)?;
        Some(match (way, ofdma.acknowledgment) {
            (MultiUser::Down, _) => (data, control, snr),
            // Sequential Block Acks use the whole channel, and nothing else is sent uplink.
            (MultiUser::Up, MuAcknowledgment::BlockAckRequests) => (data, control, snr),
            (MultiUser::Up, _) => {
                let answer = among(mode.at_most_mcs(ofdma.response_mcs()), way)?;
                (data, answer, in_unit)
            }
        })
    };
    // A unit that the channel does not have is not used.
    ResourceUnit::ALL.into_iter().map(|unit| of_unit(unit).unwrap_or((mode, control, snr))).collect()
}

/// The rates among which a client's link adapts.
fn rates(
    phy: &Phy,
    config: &BssConfig,
    client: &StationConfig,
    (txop_limit, aql_limit): (Option<Duration>, Option<Duration>),
) -> Vec<Rate> {
    let rate = |mode: Mode| {
        let control_mode = client.control_mode.unwrap_or_else(|| phy.control_mode(&mode));
        let limits = limits(phy, config, [&mode, &control_mode], (txop_limit, 1), aql_limit);
        Rate { mode, control_mode, limits }
    };
    let mut rates: Vec<Rate> =
        client.mode.and_slower(phy.standard, config.variant).into_iter().map(rate).collect();
    rates.sort_by_key(Rate::order);
    rates
}
