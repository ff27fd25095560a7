//! Access categories: how often each wins the channel, compared with an independent count of slots.

use crate::common;
use crate::common::{Channel, FULL, channel, short_queue};
use tacit_link::random::Stream;
use tacit_link::wifi::air::Frame;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{
    AccessCategory, BssConfig, Bursts, EdcaOverride, Eifs, PerCategory, StationConfig, StationId,
};
use tacit_packet::units::{BitRate, Duration, Instant};

const SPAN: Duration = Duration::from_secs(20);

/// A channel on which each sender, a station and a category, always has a frame for its peer.
fn saturate(stations: u16, senders: &[(StationId, AccessCategory)], bursts: Bursts) -> Channel {
    saturate_as(BssConfig { bursts, ..BssConfig::new(Standard::N, Vec::new()) }, stations, senders)
}

/// The same with the settings in `config`; of `config.stations`, only the contention parameters apply.
fn saturate_as(config: BssConfig, stations: u16, senders: &[(StationId, AccessCategory)]) -> Channel {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    let station = StationConfig {
        uplink_queue: short_queue(),
        downlink_queue: short_queue(),
        ..StationConfig::new(mode)
    };
    let config = BssConfig {
        categories: AccessCategory::ALL.to_vec(),
        ampdu_mpdus: Some(1),
        beacon_interval: None,
        retry_limit: u32::MAX,
        lifetime: Duration::from_secs(3600),
        eifs: Eifs::Never,
        stations: (0..usize::from(stations))
            .map(|at| StationConfig {
                edca: config.stations.get(at).map(|own| own.edca).unwrap_or_default(),
                ..station.clone()
            })
            .collect(),
        ..config
    };
    let mut bss = channel(config, 1, "edca", SPAN);
    common::saturate(&mut bss, SPAN, |bss, now| {
        for (station, category) in senders {
            let other = if *station == StationId::AP { StationId(1) } else { StationId::AP };
            let (from, to) = (bss.function(*station, *category), bss.function(other, *category));
            while bss.enqueue(now, from, to, FULL) {}
        }
    });
    bss
}

/// Frames delivered by each of `senders` in a count of backoffs without a channel. The wait restarts after each
/// transmission. A sender counts slots after its AIFS, or after its ACK timeout if it collided. The slot in which
/// another sender begins counts too, and senders that end in the same slot collide (802.11-2020 clause 10.23.2.4). The
/// winner delivers as many frames as `bursts` allows.
fn count_slots(senders: &[EdcaParams], bursts: Bursts, transmissions: u32) -> Vec<u32> {
    const SIFS_US: u32 = 16;
    const SLOT_US: u32 = 9;
    // SIFS, a slot, and 20 us to detect a PPDU.
    const TIMEOUT_US: u32 = 45;
    let mut draw = Stream::new(7, "slots");
    let mut windows: Vec<_> = senders.iter().map(|sender| sender.smallest).collect();
    let mut counters: Vec<_> = windows.iter().map(|window| draw.up_to(*window)).collect();
    let mut collided = vec![false; senders.len()];
    let mut delivered = vec![0; senders.len()];
    for _ in 0..transmissions {
        let from_us = |sender: usize, collided: &[bool]| {
            let aifs_us = SIFS_US + SLOT_US * senders[sender].aifs_slots;
            if collided[sender] { aifs_us.max(TIMEOUT_US) } else { aifs_us }
        };
        let ends_us = |sender: usize| from_us(sender, &collided) + SLOT_US * counters[sender];
        let at_us = (0..senders.len()).map(ends_us).min().unwrap();
        let due: Vec<_> = (0..senders.len()).filter(|sender| ends_us(*sender) == at_us).collect();
        for sender in (0..senders.len()).filter(|sender| !due.contains(sender)) {
            if let Some(waited_us) = at_us.checked_sub(from_us(sender, &collided)) {
                counters[sender] = counters[sender].saturating_sub(waited_us / SLOT_US + 1);
            }
        }
        collided.fill(false);
        for sender in &due {
            let EdcaParams { smallest, largest, .. } = senders[*sender];
            windows[*sender] =
                if due.len() == 1 { smallest } else { (2 * windows[*sender] + 1).min(largest) };
            counters[*sender] = draw.up_to(windows[*sender]);
            collided[*sender] = due.len() > 1;
            let frames = if bursts == Bursts::Never { 1 } else { senders[*sender].frames };
            delivered[*sender] += if due.len() == 1 { frames } else { 0 };
        }
    }
    delivered
}

/// The standard's table, written from its text and not from the code.
#[derive(Clone, Copy)]
struct EdcaParams {
    aifs_slots: u32,
    smallest: u32,
    largest: u32,
    /// Frames of [`saturate`] in a TXOP: each takes 120 us, its ACK 28 us, and the SIFS before each 16 us; VI has 3008
    /// us, VO 1504 us.
    frames: u32,
}

impl EdcaParams {
    fn of(category: AccessCategory) -> Self {
        let (aifs_slots, smallest, largest, frames) = match category {
            AccessCategory::Background => (7, 15, 1023, 1),
            AccessCategory::BestEffort => (3, 15, 1023, 1),
            AccessCategory::Video => (2, 7, 15, (3_008 + 16) / (120 + 16 + 28 + 16)),
            AccessCategory::Voice => (2, 3, 7, (1_504 + 16) / (120 + 16 + 28 + 16)),
        };
        Self { aifs_slots, smallest, largest, frames }
    }
}

#[test]
fn categories_share_as_slots_do() {
    use AccessCategory::{Background, BestEffort, Video, Voice};
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    assert_eq!(mode.ppdu_duration(1538), Duration::from_micros(120));
    let senders = [
        vec![Voice, BestEffort],
        vec![Video, BestEffort],
        vec![BestEffort, Background],
        vec![Video, BestEffort, BestEffort, Background],
    ];
    let both = [Bursts::Never, Bursts::ByCategory];
    for (senders, bursts) in
        senders.into_iter().flat_map(|senders| both.map(|bursts| (senders.clone(), bursts)))
    {
        let named: Vec<_> = (1..).map(StationId).zip(senders.iter().copied()).collect();
        let bss = saturate(senders.len() as u16, &named, bursts);
        let simulated: Vec<_> =
            named.iter().map(|(station, _)| bss.counters(*station).delivered_bytes as f64).collect();
        let parameters: Vec<_> = senders.iter().map(|category| EdcaParams::of(*category)).collect();
        let counted = count_slots(&parameters, bursts, 200_000);
        let share = |parts: &[f64], sender: usize| parts[sender] / parts.iter().sum::<f64>();
        let counted: Vec<_> = counted.into_iter().map(f64::from).collect();
        for (sender, category) in senders.iter().enumerate() {
            let (simulated, counted) = (share(&simulated, sender), share(&counted, sender));
            println!("{senders:?}, {bursts:?}: {category:?} has {simulated:.4}, slots say {counted:.4}");
            assert!((simulated - counted).abs() < 0.01, "{category:?} of {senders:?}");
        }
        assert!(simulated[0] > simulated[1], "the more urgent has more");
    }
}

/// An access point and clients, each with its own contention parameters, given in slots.
#[test]
fn stations_share_as_their_own_numbers_say() {
    let of = |aifs_slots, smallest, largest| EdcaParams { aifs_slots, smallest, largest, frames: 1 };
    let usual = of(3, 15, 1023);
    for own in [
        // The access point with PIFS; a client with half the window; one whose parameters make it wait longer.
        [of(1, 15, 1023), usual],
        [of(3, 7, 1023), usual],
        [of(3, 7, 7), of(2, 31, 63)],
        [usual, of(9, 15, 1023)],
        [of(2, 3, 7), of(7, 127, 255)],
    ] {
        let [ap_edca, edca] = own.map(|own| {
            PerCategory::same(EdcaOverride {
                aifs_slots: Some(own.aifs_slots),
                cw_min: Some(own.smallest),
                cw_max: Some(own.largest),
            })
        });
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
        let station = StationConfig { edca, ..StationConfig::new(mode) };
        let config =
            BssConfig { ap_edca, bursts: Bursts::Never, ..BssConfig::new(Standard::N, vec![station]) };
        let senders = [StationId::AP, StationId(1)];
        let bss = saturate_as(config, 1, &senders.map(|id| (id, AccessCategory::BestEffort)));
        let [ap, client] = senders.map(|id| bss.counters(id).delivered_bytes as f64);
        let counted = count_slots(&own, Bursts::Never, 200_000);
        let (simulated, counted) =
            (ap / (ap + client), f64::from(counted[0]) / f64::from(counted[0] + counted[1]));
        println!("the access point has {simulated:.4}, slots say {counted:.4}");
        assert!((simulated - counted).abs() < 0.01);
    }
}

#[test]
fn within_a_station_nothing_collides() {
    use AccessCategory::{BestEffort, Voice};
    let bss = saturate(1, &[(StationId::AP, Voice), (StationId::AP, BestEffort)], Bursts::Never);
    assert_eq!(bss.collisions(), 0);
    let [voice, best_effort] = [Voice, BestEffort].map(|category| bss.counters_in(StationId::AP, category));
    assert_eq!(voice.internal_collisions, 0, "the more urgent goes first");
    assert!(best_effort.internal_collisions > 100);
    assert_eq!(voice.collided_ppdus + best_effort.collided_ppdus, 0);
    assert!(voice.delivered_first_try > 3 * best_effort.delivered_first_try);
    let both = bss.counters(StationId::AP);
    assert_eq!(both, voice.plus(&best_effort));
}

#[test]
fn frames_on_the_air_name_stations_and_category() {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    let config = BssConfig {
        categories: vec![AccessCategory::BestEffort, AccessCategory::Voice],
        beacon_interval: None,
        ..BssConfig::new(Standard::N, vec![StationConfig::new(mode); 2])
    };
    let end = Instant::ZERO + SPAN;
    let mut bss = Channel::new(config, 1, "edca", &["ap", "one", "two"], (Instant::ZERO, end));
    bss.record_air();
    let [from, to] = [StationId(2), StationId::AP].map(|id| bss.function(id, AccessCategory::Voice));
    let now = Instant::ZERO + Duration::from_millis(1);
    assert!(bss.enqueue(now, from, to, FULL));
    while let Some(at) = bss.poll_timeout() {
        bss.handle_timeout(at);
    }
    let arrived = bss.poll_deliver().unwrap();
    assert_eq!((bss.station(arrived.to), bss.station(arrived.from)), (StationId::AP, StationId(2)));
    let data = bss.poll_air().unwrap();
    assert_eq!((data.transmitter, data.receiver), (StationId(2), Some(StationId::AP)));
    assert_eq!(data.category, AccessCategory::Voice);
    assert!(matches!(bss.poll_air().unwrap().frame, Frame::Ack { .. }));
}
