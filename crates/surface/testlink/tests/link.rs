//! Datagrams over links: whole, in time, and the same each time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::time::Duration;

use tacit_testlink::{Builder, End, MOST_BYTES, Testlink, TestlinkError};

/// What arrives within `until` of datagrams that both ends send at once: when, where, which.
fn burst(builder: &Builder, count: u32, until: Duration) -> Vec<(Duration, End, u32)> {
    let mut link = builder.build().unwrap();
    for number in 0..count {
        for from in [End::Client, End::Server] {
            let mut bytes = vec![7; 1000];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            link.send(Duration::ZERO, from, bytes).unwrap();
        }
    }
    let mut arrived = Vec::new();
    while let Some(now) = link.next_event().filter(|now| *now <= until) {
        link.advance(now).unwrap();
        while let Some((end, bytes)) = link.receive() {
            assert!(bytes.len() == 1000 && bytes[4..].iter().all(|byte| *byte == 7), "its content changed");
            arrived.push((now, end, u32::from_be_bytes(bytes[..4].try_into().unwrap())));
        }
    }
    arrived
}

#[test]
fn a_datagram_takes_the_time_of_its_links() {
    let wifi = burst(&Testlink::over("wlan-11n-150").set("wired.delay=20 ms"), 1, Duration::from_secs(1));
    let ends: BTreeSet<End> = wifi.iter().map(|(_, end, _)| *end).collect();
    assert_eq!((wifi.len(), ends.len()), (2, 2));
    for (at, _, _) in wifi {
        assert!((20..25).contains(&at.as_millis()), "{at:?}");
    }
    // 1,028 bytes at 10 Mb/s and 20 ms.
    let wire = Testlink::over("wired-10").set("wired.rate=10Mbps").set("wired.delay=20 ms");
    for (at, _, _) in burst(&wire, 1, Duration::from_secs(1)) {
        assert!((20_822..20_900).contains(&at.as_micros()), "{at:?}");
    }
}

#[test]
fn equal_seeds_have_equal_arrivals_and_others_have_not() {
    let link = Testlink::over("lossy-11n-150").background(2);
    let run = |seed| burst(&link.clone().seed(seed), 60, Duration::from_millis(300));
    let first = run(1);
    assert!(!first.is_empty());
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
}

#[test]
fn each_arrives_at_most_once_and_a_short_queue_loses_some() {
    let link = Testlink::over("wlan-11n-150").set("wifi.ap-queue=20 packets");
    let arrived = burst(&link, 200, Duration::from_secs(1));
    let numbers: BTreeSet<_> = arrived.iter().map(|(_, end, number)| (*end, *number)).collect();
    assert_eq!(numbers.len(), arrived.len(), "one arrived twice");
    let at_client = arrived.iter().filter(|(_, end, _)| *end == End::Client).count();
    assert!((20..200).contains(&at_client), "{at_client} of 200 through a queue of 20");
}

#[test]
fn other_clients_take_their_time() {
    let last = |background| {
        let link = Testlink::over("wlan-11n-150").background(background);
        burst(&link, 60, Duration::from_secs(2)).last().unwrap().0
    };
    assert!(last(5) > last(0), "{:?} beside five, {:?} alone", last(5), last(0));
}

#[test]
fn time_does_not_go_back() {
    let mut link = Testlink::over("wlan-11n-150").build().unwrap();
    link.advance(Duration::from_secs(1)).unwrap();
    link.send(Duration::ZERO, End::Client, *b"late").unwrap();
    while let Some(now) = link.next_event() {
        link.advance(now).unwrap();
        if link.receive().is_some() {
            assert!(now > Duration::from_secs(1));
            return;
        }
    }
}

#[test]
fn bad_input_is_named() {
    let build_error = |builder: Builder| builder.build().err().unwrap().to_string();
    assert!(build_error(Testlink::over("wlan-11n-151")).contains("wlan-11n-150"), "no hint");
    assert!(build_error(Testlink::over("wlan-11n-150").set("wifi.rat=1")).contains("wifi.rat"));
    assert!(build_error(Testlink::over("wlan-11n-150").scheme("hack-bach")).contains("hack-batch"));
    assert!(build_error(Testlink::over("wlan-11n-150").background(u32::MAX)).contains("background"));
    let mut link = Testlink::over("wlan-11n-150").build().unwrap();
    link.send(Duration::ZERO, End::Client, vec![0; MOST_BYTES]).unwrap();
    let error = link.send(Duration::ZERO, End::Client, vec![0; MOST_BYTES + 1]).unwrap_err();
    assert!(matches!(error, TestlinkError::TooLong(1473)) && error.to_string().contains("up to 1472"));
}
