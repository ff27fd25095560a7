//! tacit-quinn beside plain quinn: no transfer may be slower. Both run over a simulated link under a simulated clock, so
//! that times are exact, and the same on every machine.

mod two_ends;

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{AckFrequencyConfig, TransportConfig, VarInt};
use two_ends::{Link, Took, Trust, transfer};

/// Round-trip time in microseconds, and Mb/s.
const PATHS: [(u64, u64); 5] = [(100, 1_000), (2_000, 1_000), (20_000, 100), (80_000, 100), (200_000, 100)];
const LOST_PER_MILLE: [u64; 2] = [0, 10];
const KB: usize = 1_000;
const MB: usize = 1_000_000;
/// A thousand full-sized packets, as Linux's default device queue.
const QUEUE_BYTES: u64 = 1_500_000;

fn plain() -> Arc<TransportConfig> {
    Arc::new(TransportConfig::default())
}

fn law() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    tacit_quinn::configure(&mut transport);
    Arc::new(transport)
}

/// The law, and the ACKs that it asks for on a path that is known.
fn asking(rtt: Duration, window_bytes: u64) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let known = tacit_quinn::Path { rtt, window_bytes, packet_bytes: 1_452 };
    tacit_quinn::configure_for(&mut transport, &known);
    Arc::new(transport)
}

fn link((rtt_micros, mbps): (u64, u64), lost_per_mille: u64, queue_bytes: u64) -> Link {
    let rtt = Duration::from_micros(rtt_micros);
    let bits_per_s = mbps * 1_000_000;
    Link { rtt, bits_per_s, up_bits_per_s: bits_per_s, queue_bytes, lost_per_mille, losses: 0 }
}

fn ratio(took: &Took, plain: &Took) -> f64 {
    took.time.as_secs_f64() / plain.time.as_secs_f64()
}

/// Compares with the snapshot, and shows the table that differs.
fn check(table: &str, snapshot: &str, name: &str) {
    eprintln!("{table}");
    assert!(table == snapshot, "tests/snapshots/{name} differs from the table above");
}

/// Ten kilobytes to ten megabytes, with the law at both ends, the sending server or the receiving client.
#[test]
fn no_transfer_is_slower_than_quinns() {
    let (trust, plain, law) = (Trust::new().unwrap(), plain(), law());
    let mut table = format!(
        "{:>6} {:>6} {:>8} {:>12} {:>7} {:>7} {:>7} {:>5}\n",
        "rtt,ms", "lost,%", "kB", "plain,ms", "both", "server", "client", "asks"
    );
    for path in PATHS {
        for lost_per_mille in LOST_PER_MILLE {
            for bytes in [10 * KB, 100 * KB, MB, 10 * MB] {
                let link = link(path, lost_per_mille, QUEUE_BYTES);
                let took = |ends| transfer(&trust, link.way(), ends, bytes).unwrap();
                let base = took((&plain, &plain));
                let arms = [took((&law, &law)), took((&plain, &law)), took((&law, &plain))];
                let [both, server, client] = [0, 1, 2].map(|at| ratio(&arms[at], &base));
                table += &format!(
                    "{:>6} {:>6} {:>8} {:>12.3} {both:>7.3} {server:>7.3} {client:>7.3} {:>5}\n",
                    path.0 as f64 / 1e3,
                    lost_per_mille as f64 / 10.0,
                    bytes / KB,
                    base.time.as_secs_f64() * 1e3,
                    arms.iter().map(|took| took.requests).sum::<u64>(),
                );
                for ratio in [both, server, client] {
                    assert!(ratio <= 1.02, "{table}");
                }
                if path.0 < 1_000 {
                    assert_eq!(arms[0], base, "a short path is quinn's: {table}");
                }
            }
        }
    }
    check(&table, include_str!("snapshots/no_harm.txt"), "no_harm.txt");
}

/// A hundred megabytes, by the law and with the ACKs that it asks for on a path that is known.
#[test]
fn a_long_transfer_is_not_slower_with_the_acks_of_a_known_path() {
    let (trust, plain, law) = (Trust::new().unwrap(), plain(), law());
    let mut table = format!(
        "{:>6} {:>6} {:>8} {:>12} {:>7} {:>9} {:>12} {:>9}\n",
        "rtt,ms", "lost,%", "kB", "plain,ms", "law", "and ACKs", "ACKs/100, of", "law's"
    );
    for path in PATHS {
        let asking = asking(Duration::from_micros(path.0), path.0 * path.1 / 8);
        for lost_per_mille in LOST_PER_MILLE {
            let took = |server| {
                let link = link(path, lost_per_mille, QUEUE_BYTES);
                transfer(&trust, link.way(), (&plain, server), 100 * MB).unwrap()
            };
            let [base, law, asks] = [took(&plain), took(&law), took(&asking)];
            let per_100 = |took: &Took| 100.0 * took.acks as f64 / took.packets as f64;
            table += &format!(
                "{:>6} {:>6} {:>8} {:>12.3} {:>7.3} {:>9.3} {:>12.2} {:>9.2}\n",
                path.0 as f64 / 1e3,
                lost_per_mille as f64 / 10.0,
                100 * MB / KB,
                base.time.as_secs_f64() * 1e3,
                ratio(&law, &base),
                ratio(&asks, &base),
                per_100(&base),
                per_100(&asks),
            );
            assert!(ratio(&law, &base) <= 1.02 && ratio(&asks, &base) <= 1.02, "{table}");
            assert_eq!(asks.requests, u64::from(path.0 >= 4_000), "{table}");
        }
    }
    check(&table, include_str!("snapshots/long.txt"), "long.txt");
}

/// A way back that is too slow for the ACKs: rates of the uplink in kb/s, and of the downlink in Mb/s.
const SLOW_KBPS: [u64; 5] = [20, 50, 100, 200, 400];
const FAST_MBPS: [u64; 2] = [8, 10];

/// The law is as fast as quinn there; with the ACKs of a path that an earlier connection has measured it is faster.
#[test]
fn behind_a_slow_uplink_no_transfer_is_slower_and_a_known_path_is_faster() {
    let (trust, plain, law) = (Trust::new().unwrap(), plain(), law());
    let sizes = [10 * KB, 100 * KB, MB, 3 * MB, 10 * MB];
    let mut table = String::from(" up,kb/s down,Mb/s rtt,ms queue,kB: ratios of");
    table += &sizes.map(|bytes| format!("{:>6}", bytes / KB)).concat();
    table += " kB | and on a known path\n";
    for up_kbps in SLOW_KBPS {
        for (mbps, rtt_ms, queue_kb) in FAST_MBPS
            .into_iter()
            .flat_map(|mbps| [20, 50, 100].map(|rtt_ms| (mbps, rtt_ms)))
            .flat_map(|(mbps, rtt_ms)| [100, 1_500].map(|queue_kb| (mbps, rtt_ms, queue_kb)))
        {
            let mut link = link((rtt_ms * 1_000, mbps), 0, queue_kb * 1_000);
            link.up_bits_per_s = up_kbps * 1_000;
            let took = |server, bytes| transfer(&trust, link.way(), (&plain, server), bytes).unwrap();
            let earlier = took(&plain, MB);
            let asking = asking(earlier.rtt, earlier.window_bytes);
            let ratios = sizes.map(|bytes| {
                let base = took(&plain, bytes);
                [took(&law, bytes), took(&asking, bytes)].map(|took| ratio(&took, &base))
            });
            let columns = |arm: usize| ratios.map(|by_arm| format!("{:>6.3}", by_arm[arm])).concat();
            table += &format!(
                "{up_kbps:>8} {mbps:>9} {rtt_ms:>6} {queue_kb:>8}:          {}    | {}\n",
                columns(0),
                columns(1)
            );
            assert!(ratios.iter().all(|by_arm| by_arm[0] <= 1.02), "{table}");
        }
    }
    check(&table, include_str!("snapshots/slow_uplinks.txt"), "slow_uplinks.txt");
}

/// ACKs that quinn sends, by itself and asked for one per eleven packets: the simulator's policies `quic-ack2` and
/// `quic-ackfreq` are compared with this table, by a test of tacit-tcp.
#[test]
fn acks_of_quinn_are_those_that_the_policies_are_compared_with() {
    let trust = Trust::new().unwrap();
    let mut asked = AckFrequencyConfig::default();
    asked.ack_eliciting_threshold(VarInt::from_u32(10));
    let mut asking = TransportConfig::default();
    asking.ack_frequency_config(Some(asked));
    let (plain, asking) = (plain(), Arc::new(asking));
    let mut table =
        format!("{:>8} {:>6} {:>15} {:>15}\n", "kb/s", "rtt,ms", "plain,ACKs/100", "asked,ACKs/100");
    for (kbps, rtt_ms, bytes) in
        [(300_000, 10, 30 * MB), (100_000, 20, 30 * MB), (10_000, 40, 10 * MB), (300, 80, MB)]
    {
        let link = Link {
            rtt: Duration::from_millis(rtt_ms),
            bits_per_s: kbps * 1_000,
            up_bits_per_s: kbps * 1_000,
            queue_bytes: QUEUE_BYTES,
            lost_per_mille: 0,
            losses: 0,
        };
        let per_100 = |server| {
            let took = transfer(&trust, link.way(), (&plain, server), bytes).unwrap();
            100.0 * took.acks as f64 / took.packets as f64
        };
        let [by_itself, asked] = [&plain, &asking].map(per_100);
        table += &format!("{kbps:>8} {rtt_ms:>6} {by_itself:>15.1} {asked:>15.1}\n");
    }
    check(&table, include_str!("snapshots/acks.txt"), "acks.txt");
}

/// A queue shorter than the law's own standing queue costs time. The table says how much.
#[test]
fn short_queues_are_known_to_cost() {
    let (trust, plain, law) = (Trust::new().unwrap(), plain(), law());
    let mut table =
        format!("{:>6} {:>8} {:>8} {:>12} {:>7}\n", "rtt,ms", "queue,kB", "kB", "plain,ms", "law");
    for path in PATHS {
        for queue_bytes in [200_000, 60_000, 20_000] {
            for bytes in [MB, 10 * MB] {
                let took = |server| {
                    transfer(&trust, link(path, 0, queue_bytes).way(), (&plain, server), bytes).unwrap()
                };
                let (base, law) = (took(&plain), took(&law));
                table += &format!(
                    "{:>6} {:>8} {:>8} {:>12.3} {:>7.3}\n",
                    path.0 as f64 / 1e3,
                    queue_bytes / 1_000,
                    bytes / KB,
                    base.time.as_secs_f64() * 1e3,
                    ratio(&law, &base),
                );
            }
        }
    }
    check(&table, include_str!("snapshots/short_queues.txt"), "short_queues.txt");
}
