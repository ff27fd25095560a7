//! Reports to a driver about each packet that it asked for: acknowledged or given up, as soon as that is decided.

use crate::common::{Channel, Delivery, TestPacket};
use proptest::prelude::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{BssConfig, Interrupt, StationConfig, StationId};
use tacit_packet::units::{BitRate, Duration, Instant};

const AP: StationId = StationId::AP;
const CLIENT: StationId = StationId(1);

/// Sends `count` packets together with scripted losses; returns the reports (number, acknowledged, last) and the
/// packets that the client has at the end.
fn told(
    asks: bool,
    count: u32,
    data: impl IntoIterator<Item = u64>,
    link_acks: impl IntoIterator<Item = u64>,
) -> (Vec<(u32, bool, bool)>, Vec<u32>) {
    let mut client = StationConfig::new(Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap());
    client.downlink_loss = Loss::Scripted(data.into_iter().collect());
    client.link_ack_loss = Loss::Scripted(link_acks.into_iter().collect());
    let config =
        BssConfig { beacon_interval: None, retry_limit: 1, ..BssConfig::new(Standard::N, vec![client]) };
    let end = Instant::ZERO + Duration::from_secs(10);
    let mut bss = Channel::new(config, 1, "test", &["ap", "client"], (Instant::ZERO, end));
    if asks {
        bss.report_fates(AP.first_function());
    }
    for number in 0..count {
        assert!(bss.enqueue(
            Instant::ZERO,
            AP.first_function(),
            CLIENT.first_function(),
            TestPacket::full(number)
        ));
    }
    let (mut told, mut passed_up) = (Vec::new(), Vec::new());
    while let Some(at) = bss.poll_timeout().filter(|at| *at < end) {
        bss.handle_timeout(at);
        while let Some(interrupt) = bss.poll_interrupt() {
            let Interrupt::Fate { function, to, payload, acknowledged, last } = interrupt else {
                panic!("{interrupt:?} was not asked for")
            };
            let number = bss.take(payload).number;
            assert_eq!((function, to), (AP.first_function(), CLIENT.first_function()));
            told.push((number, acknowledged, last));
        }
        while let Some(Delivery { payload: TestPacket { number, .. }, .. }) = bss.poll_deliver() {
            passed_up.push(number);
        }
    }
    (told, passed_up)
}

#[test]
fn nobody_is_told_who_did_not_ask() {
    assert_eq!(told(false, 20, [], []).0, []);
}

#[test]
fn each_acknowledgment_tells_what_it_decided() {
    // An A-MPDU of five loses two; one of these is lost again, which exceeds the retry limit.
    let (told, passed_up) = told(true, 5, [1, 4, 6], []);
    // Numbers 2 and 3 are reported although number 1, before them in the window, is still missing.
    let first = [(0, true, false), (2, true, false), (3, true, true)];
    let second = [(1, true, false), (4, false, true)];
    assert_eq!(told, [&first[..], &second[..]].concat());
    assert_eq!(passed_up, [0, 1, 2, 3]);
}

proptest! {
    /// Under any losses, each packet gets one report, and every acknowledged packet reaches the client.
    #[test]
    fn each_packet_has_one_fate(
        data in prop::collection::btree_set(0_u64..150, 0..80),
        link_acks in prop::collection::btree_set(0_u64..60, 0..30),
    ) {
        let (told, passed_up) = told(true, 60, data, link_acks);
        let mut numbers: Vec<u32> = told.iter().map(|fate| fate.0).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..60).collect::<Vec<_>>());
        for (number, acknowledged, _) in &told {
            // A packet that was given up may have arrived, if its acknowledgments were lost.
            prop_assert!(!acknowledged || passed_up.contains(number), "{} did not arrive", number);
        }
        prop_assert!(told.last().unwrap().2);
    }
}
