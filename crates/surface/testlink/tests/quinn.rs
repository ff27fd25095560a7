//! tacit-quinn beside plain quinn over Wi-Fi: no transfer may be slower. Simulated, so that times are the same on every
//! machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../network/quinn/tests/two_ends/mod.rs"]
#[expect(dead_code, reason = "the link of its own is another test's")]
mod two_ends;

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::TransportConfig;
use tacit_testlink::{End, Testlink};
use two_ends::{Trust, Way, transfer};

/// A link, and the client's socket behind it.
struct Wifi {
    link: Testlink,
    /// Datagrams that the socket holds of those that arrive at one instant; others are lost.
    holds: usize,
    last_arrival: Duration,
    waiting: usize,
}

impl Way for Wifi {
    fn send(&mut self, now: Duration, to_server: bool, datagram: Vec<u8>) {
        let from = if to_server { End::Client } else { End::Server };
        self.link.send(now, from, datagram).unwrap();
    }

    fn next(&mut self) -> Option<Duration> {
        self.link.next_event()
    }

    fn receive(&mut self, now: Duration) -> Option<(bool, Vec<u8>)> {
        self.link.advance(now).unwrap();
        if self.last_arrival != now {
            (self.last_arrival, self.waiting) = (now, 0);
        }
        loop {
            let (end, datagram) = self.link.receive()?;
            self.waiting += usize::from(end == End::Client);
            if end == End::Server || self.waiting <= self.holds {
                return Some((end == End::Server, datagram));
            }
        }
    }
}

/// Linux's default of 212,992 bytes, at 2,304 for each full-sized packet.
const DEFAULT: usize = 92;
/// What versions before 6.17 allow (`net.core.rmem_max`): twice that.
const ALLOWED: usize = 184;
/// More than any A-MPDU has.
const AMPLE: usize = 1_820;

/// Places of the bench of live stacks (`tacit-peers stacks`), one with another queue, and one with losses on the wire; and what
/// the client's socket holds, which only A-MPDUs of 802.11ax exceed.
const PLACES: [(&str, &str, usize); 8] = [
    ("wlan-11n-300", "wifi.ap-queue=64 packets", DEFAULT),
    ("wlan-11n-300", "wifi.ap-queue=128 packets", DEFAULT),
    ("wlan-11n-300", "wifi.ap-queue=256 packets", DEFAULT),
    ("wlan-11n-300", "wifi.ap-queue=2000 packets", DEFAULT),
    ("wlan-11ax-1200", "wifi.ap-queue=1024 packets", DEFAULT),
    ("wlan-11ax-1200", "wifi.ap-queue=1024 packets", ALLOWED),
    ("wlan-11ax-1200", "wifi.ap-queue=1024 packets", AMPLE),
    ("wlan-11n-300", "wired.loss=1%", DEFAULT),
];
const BYTES: [usize; 4] = [100_000, 1_000_000, 10_000_000, 50_000_000];
const SEEDS: u64 = 3;

/// A queue of 64 packets holds an A-MPDU and a half, one of 128 less than the law's room, one of 2000 all that CUBIC has in flight.
#[test]
fn over_wifi_no_transfer_is_slower_than_quinns() {
    let trust = Trust::new().unwrap();
    let plain = Arc::new(TransportConfig::default());
    let mut law = TransportConfig::default();
    tacit_quinn::configure(&mut law);
    let law = Arc::new(law);
    let mut table = String::from("times over plain quinn's, its Mb/s, and packets that both took for lost\n");
    for (scenario, set, holds) in PLACES {
        for bytes in BYTES {
            let took = |config: &Arc<TransportConfig>, seed| {
                let link = Testlink::over(scenario).set(set).seed(seed).build().unwrap();
                let way = Wifi { link, holds, last_arrival: Duration::ZERO, waiting: 0 };
                transfer(&trust, way, (config, config), bytes).unwrap()
            };
            let sums = (1..=SEEDS).map(|seed| (took(&plain, seed), took(&law, seed))).fold(
                [Duration::ZERO; 2].map(|time| (time, 0)),
                |[(plain_time, plain_lost), (law_time, law_lost)], (plain, law)| {
                    [
                        (plain_time + plain.time, plain_lost + plain.lost),
                        (law_time + law.time, law_lost + law.lost),
                    ]
                },
            );
            let [(plain_time, plain_lost), (law_time, law_lost)] = sums;
            let ratio = law_time.as_secs_f64() / plain_time.as_secs_f64();
            let mbps = (bytes as u64 * SEEDS) as f64 * 8e-6 / plain_time.as_secs_f64();
            table += &format!(
                "{scenario:>14} {set:>26} {holds:>5} {:>6} kB {ratio:>6.3} {mbps:>6.1} {plain_lost:>5} {law_lost:>5}\n",
                bytes / 1_000
            );
            assert!(ratio <= 1.02, "{table}");
        }
    }
    eprintln!("{table}");
    assert!(
        table == include_str!("snapshots/quinn.txt"),
        "tests/snapshots/quinn.txt differs from the table above"
    );
}
