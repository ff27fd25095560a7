//! Multi-user PPDUs of clients whose rates adapt.

use std::collections::BTreeMap;

use super::*;
use tacit_link::wifi::{Decibels, RateControl};

/// `config`, whose clients have these SNRs and find their rates.
fn adapting(snr_db: &[f64], config: BssConfig) -> BssConfig {
    let mut config = BssConfig { rate_control: RateControl::Minstrel, ..config };
    for (station, db) in config.stations.iter_mut().zip(snr_db) {
        station.snr = Some(Decibels::from_db(*db));
    }
    config
}

/// MPDUs by client and MCS.
type Used = BTreeMap<(u16, u8), usize>;

/// Packets of the second second to clients whose queues are never empty, and the MCS of their MPDUs: those of PPDUs for
/// several, and those of PPDUs for one.
fn second_second(config: BssConfig) -> (u64, [Used; 2]) {
    let clients = config.stations.len() as u16;
    let span = Duration::from_secs(2);
    let mut bss = channel(config, 1, "rates", span);
    bss.record_air();
    let (mut used, mut before) = ([Used::new(), Used::new()], 0);
    let of_ap =
        |bss: &Channel| (1..=clients).map(|id| bss.turns(AP, StationId(id), Instant::ZERO).arrived).sum();
    saturate(&mut bss, span, |bss, now| {
        for id in (1..=clients).map(|id| StationId(id).first_function()) {
            while bss.has_room(AP.first_function(), id, FULL.len()) {
                bss.enqueue(now, AP.first_function(), id, FULL);
            }
        }
        let is_late = now >= Instant::ZERO + Duration::from_secs(1);
        if !is_late {
            before = of_ap(bss);
        }
        for frame in std::iter::from_fn(|| bss.poll_air()).filter(|frame| frame.transmitter == AP && is_late)
        {
            let (Frame::Data { .. }, Some(to), Some(mcs)) = (&frame.frame, frame.receiver, frame.mode.mcs)
            else {
                continue;
            };
            let alone = usize::from(frame.mode.format != Format::HeMu);
            *used[alone].entry((to.0, mcs)).or_default() += 1;
        }
    });
    let all: u64 = of_ap(&bss);
    (all - before, used)
}

/// The MCS of most MPDUs to each client.
fn usual(used: &Used) -> BTreeMap<u16, u8> {
    let mut most: BTreeMap<u16, (usize, u8)> = BTreeMap::new();
    for ((client, mcs), count) in used {
        let entry = most.entry(*client).or_default();
        *entry = (*entry).max((*count, *mcs));
    }
    most.into_iter().map(|(client, (_, mcs))| (client, mcs)).collect()
}

/// Clients at the same distance share PPDUs at the fixed rate that carries most, except for tries.
#[test]
fn shared_ppdus_carry_what_the_best_rate_does() {
    for db in [12.0, 20.0, 30.0] {
        let snr = [db; 4];
        let adapted = second_second(adapting(&snr, config(4, MuAcknowledgment::MuBar))).0;
        let fixed = (0..=11).map(|mcs| {
            let mut config = adapting(&snr, config(4, MuAcknowledgment::MuBar));
            config.rate_control = RateControl::Fixed;
            for station in &mut config.stations {
                station.mode = Mode::he(mcs, 1, 80, GuardInterval::Ns800).unwrap();
            }
            second_second(config).0
        });
        let best = fixed.max().unwrap();
        println!("{db} dB: {adapted} of {best} packets");
        assert!(adapted as f64 > 0.9 * best as f64, "{db} dB: {adapted} of {best} packets");
    }
}

/// Each user has the rate that it has in PPDUs of its own, and tries of other rates go in such.
#[test]
fn each_user_has_its_own_rate() {
    let snr = [10.0, 16.0, 24.0, 34.0];
    let [shared, alone] = second_second(adapting(&snr, config(4, MuAcknowledgment::MuBar))).1;
    let mut of_one = adapting(&snr, config(4, MuAcknowledgment::MuBar));
    of_one.ofdma = None;
    let [_, single] = second_second(of_one).1;
    let [shared_mcs, single_mcs] = [&shared, &single].map(usual);
    println!("{shared_mcs:?} shared, {single_mcs:?} alone");
    assert_eq!(shared_mcs.keys().collect::<Vec<_>>(), [&1, &2, &3, &4]);
    for (client, mcs) in &shared_mcs {
        assert!(mcs.abs_diff(single_mcs[client]) <= 1, "client {client}: {shared_mcs:?} and {single_mcs:?}");
    }
    assert!(shared_mcs[&1] < shared_mcs[&4]);
    let [in_shared, in_alone] = [&shared, &alone].map(|used| used.values().sum::<usize>());
    assert!(in_shared > 3 * in_alone && in_alone > 0, "{in_shared} MPDUs shared, {in_alone} alone");
}

/// Packets of the second second from clients that are triggered and do not contend, and the MCS of their HE TB PPDUs. Their queues are
/// never empty.
fn triggered_second(snr: &[f64], mcs: Option<u8>) -> (u64, Used) {
    let clients = snr.len();
    let mut config = adapting(snr, asking(clients, Triggers::Always, MuEdca::Silent, false));
    if let Some(mcs) = mcs {
        config.rate_control = RateControl::Fixed;
        for station in &mut config.stations {
            station.mode = Mode::he(mcs, 1, 80, GuardInterval::Ns1600).unwrap();
        }
    } else {
        for station in &mut config.stations {
            station.mode = Mode::he(11, 1, 80, GuardInterval::Ns1600).unwrap();
        }
    }
    let span = Duration::from_secs(2);
    let mut bss = channel(config, 1, "triggered rates", span);
    bss.record_air();
    let (mut used, mut before) = (Used::new(), 0);
    let arrived = |bss: &Channel| (1..=clients as u16).map(|id| bss.counters(StationId(id)).arrived).sum();
    saturate(&mut bss, span, |bss, now| {
        for id in (1..=clients as u16).map(|id| StationId(id).first_function()) {
            while bss.queued(id, AP.first_function()) < 400 {
                bss.enqueue(now, id, AP.first_function(), FULL);
            }
        }
        let is_late = now >= Instant::ZERO + Duration::from_secs(1);
        if !is_late {
            before = arrived(bss);
        }
        for frame in std::iter::from_fn(|| bss.poll_air()).filter(|_| is_late) {
            if let (Frame::Data { .. }, Format::HeTb, Some(mcs)) =
                (&frame.frame, frame.mode.format, frame.mode.mcs)
            {
                *used.entry((frame.transmitter.0, mcs)).or_default() += 1;
            }
        }
    });
    let all: u64 = arrived(&bss);
    (all - before, used)
}

/// Clients that MU EDCA silences send at the rates that the access point finds: nearly as much as at the best fixed one.
#[test]
fn the_access_point_finds_the_rates_of_silent_clients() {
    for db in [8.0, 16.0, 30.0] {
        let snr = [db; 4];
        let (adapted, used) = triggered_second(&snr, None);
        let best = (0..=11).map(|mcs| triggered_second(&snr, Some(mcs)).0).max().unwrap();
        println!("{db} dB: {adapted} of {best} packets, {used:?}");
        assert!(adapted as f64 > 0.85 * best as f64, "{db} dB: {adapted} of {best} packets");
    }
}

/// Each silent client has its own rate.
#[test]
fn a_silent_client_further_away_is_triggered_at_a_lower_rate() {
    let (_, used) = triggered_second(&[4.0, 10.0, 18.0, 30.0], None);
    let mcs: Vec<u8> = usual(&used).into_values().collect();
    println!("{mcs:?}");
    assert!(mcs.len() == 4 && mcs.is_sorted() && mcs[0] < mcs[3], "{used:?}");
}
