//! Whom the access point serves next.

use crate::common::{Numbered, channel};
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{ApScheduler, BssConfig, StationConfig, StationId};
use tacit_proto::units::{BitRate, Duration, Instant};

/// 802.11n at 150 Mb/s.
fn config(clients: usize, ap_scheduler: ApScheduler) -> BssConfig {
    let client = StationConfig::new(Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap());
    BssConfig { beacon_interval: None, ap_scheduler, ..BssConfig::new(Standard::N, vec![client; clients]) }
}

/// In which order packets arrive of which the access point gets one for each of `clients`, a microsecond apart, before
/// the channel is free for the first time.
fn order(config: BssConfig, clients: &[u16]) -> Vec<u32> {
    let mut bss = channel::<Numbered>(config, 1, "scheduler", Duration::from_secs(1));
    for (number, client) in (0..).zip(clients) {
        let at = Instant::ZERO + Duration::from_micros(u64::from(number));
        assert!(bss.enqueue(
            at,
            StationId::AP.first_function(),
            StationId(*client).first_function(),
            Numbered(number)
        ));
    }
    let mut order = Vec::new();
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        order.extend(std::iter::from_fn(|| bss.poll_deliver()).map(|delivery| delivery.payload.0));
        while bss.poll_drained().is_some() {}
    }
    bss.check().unwrap();
    order
}

#[test]
fn the_access_point_serves_in_turn_or_by_age() {
    let served = |ap_scheduler| {
        let config = BssConfig { ampdu_mpdus: Some(2), ..config(3, ap_scheduler) };
        order(config, &[2, 2, 2, 2, 1, 3, 2, 2])
    };
    assert_eq!(served(ApScheduler::RoundRobin), [0, 1, 4, 5, 2, 3, 6, 7]);
    assert_eq!(served(ApScheduler::FirstComeFirstServed), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// What is sent again is older than what waits for others, so it goes first.
#[test]
fn what_is_sent_again_is_old() {
    let lossy = |ap_scheduler| {
        let mut config = config(2, ap_scheduler);
        config.stations[0].downlink_loss = Loss::Scripted(vec![0]);
        order(config, &[1, 1, 2, 2])
    };
    assert_eq!(
        lossy(ApScheduler::RoundRobin),
        [2, 3, 0, 1],
        "one waits in the reorder buffer until nought has come"
    );
    assert_eq!(lossy(ApScheduler::FirstComeFirstServed), [0, 1, 2, 3]);
}
