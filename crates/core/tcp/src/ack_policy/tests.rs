use core::num::NonZeroU64;

use super::*;

/// 594.6 Mb/s in packets of 1500 bytes: 49,554 per second.
const PACKET_TIME: Duration = Duration::from_nanos(20_180);
const BYTES: u64 = 1448;

/// Seconds in which ACKs are counted.
const SECONDS: u64 = 10;

/// ACKs per second in the steady state, for evenly spaced packets over a path of `rtt`.
fn ack_rate(ack_policy: AckPolicy, rtt: Duration) -> u64 {
    acks_of(ack_policy, rtt, PACKET_TIME) / SECONDS
}

/// ACKs in [`SECONDS`] of the steady state with a packet each `packet_time` over a path of `rtt`.
fn acks_of(ack_policy: AckPolicy, rtt: Duration, packet_time: Duration) -> u64 {
    let mut acks = AckScheduler::new(&Config { ack_policy, ..Config::default() });
    acks.on_handshake(rtt);
    let settled = Instant::ZERO + Duration::from_secs(2);
    let end = settled + Duration::from_secs(SECONDS);
    let (mut now, mut timer, mut sent) = (Instant::ZERO, None, 0);
    while now < end {
        let (at, mut decision) = match timer.take_if(|at: &mut Instant| *at <= now) {
            Some(at) => (at, acks.on_timer(at)),
            None => {
                let arrival = now;
                now += packet_time;
                (arrival, acks.on_in_order(BYTES, arrival))
            }
        };
        if let AckDecision::At(later) = decision {
            timer = Some(later);
            decision = AckDecision::Wait;
        }
        if decision == AckDecision::Now {
            acks.on_ack_sent();
            timer = None;
            sent += u64::from(at >= settled);
        }
    }
    sent
}

#[track_caller]
fn assert_rates(policy: AckPolicy, expected: [u64; 3]) {
    let measured = [10, 80, 200].map(|rtt_ms| ack_rate(policy, Duration::from_millis(rtt_ms)));
    for (measured, expected) in measured.into_iter().zip(expected) {
        // Half a percent, or one ACK per second.
        let tolerance = (expected / 200).max(1);
        assert!(measured.abs_diff(expected) <= tolerance, "{policy:?}: {measured} for {expected}");
    }
}

/// ACK rate of each policy at the data rate of 802.11ac, at 10, 80 and 200 ms.
#[test]
fn ack_rates_are_those_published() {
    assert_rates(AckPolicy::every(2), [24_777; 3]);
    assert_rates(AckPolicy::linux(), [24_777; 3]);
    assert_rates(AckPolicy::quic_ack2(), [24_777; 3]);
    assert_rates(AckPolicy::chrome(), [4_955; 3]);
    assert_rates(AckPolicy::neqo(), [400, 194, 194]);
    assert_rates(AckPolicy::picoquic(), [1_549, 774, 774]);
    assert_rates(AckPolicy::tack_lite(), [400, 50, 20]);
    let (packets, delay, reordering) = AckPolicy::ACK_FREQUENCY;
    assert_rates(AckPolicy::quic_ackfreq(packets, delay, reordering, Reading::ALL), [4_955; 3]);
}

/// 45 segments of 1448 bytes fill 64 KiB; the rest of a burst waits for the timer.
#[test]
fn aggregates_are_answered_once() {
    let mut acks = AckScheduler::new(&Config { ack_policy: AckPolicy::linux(), ..Config::default() });
    for burst in 0..200 {
        let now = Instant::ZERO + Duration::from_millis(burst);
        for segment in 1..=84 {
            let decision = acks.on_in_order(BYTES, now);
            match segment {
                1 | 46 => assert_eq!(decision, AckDecision::At(now)),
                45 => {
                    assert_eq!(decision, AckDecision::Now);
                    acks.on_ack_sent();
                }
                _ => assert_eq!(decision, AckDecision::Wait),
            }
        }
        assert_eq!(acks.on_timer(now), AckDecision::Now);
        acks.on_ack_sent();
    }
}

/// Packets that arrive at one instant are read at once, except by Chrome, which answers each tenth.
#[test]
fn a_batch_is_answered_once() {
    let answers_to = |packets: u32, ack_policy| {
        let mut acks = AckScheduler::new(&Config { ack_policy, ..Config::default() });
        acks.on_handshake(Duration::from_millis(20));
        (0..200_u64)
            .map(|batch| {
                let now = Instant::ZERO + Duration::from_millis(batch);
                let (mut timer, mut sent) = (None, 0);
                for _ in 0..packets {
                    match acks.on_in_order(BYTES, now) {
                        AckDecision::Now => {
                            acks.on_ack_sent();
                            (timer, sent) = (None, sent + 1);
                        }
                        AckDecision::At(at) => timer = Some(at),
                        AckDecision::Wait => {}
                    }
                }
                if timer.is_some_and(|at| at <= now) {
                    acks.on_ack_sent();
                    sent += 1;
                }
                sent
            })
            .skip(100)
            .sum::<u32>()
    };
    let answers = |ack_policy| answers_to(42, ack_policy);
    let (packets, delay, reordering) = AckPolicy::ACK_FREQUENCY;
    let ackfreq = AckPolicy::quic_ackfreq(packets, delay, reordering, Reading::ALL);
    let all =
        [AckPolicy::quic_ack2(), AckPolicy::quinn(), AckPolicy::quiche(), AckPolicy::s2n_quic(), ackfreq];
    for policy in all {
        assert_eq!(answers(policy), 100, "{policy:?}");
    }
    // quinn takes 128 in one go, quic-go 32, and msquic all.
    assert_eq!(answers_to(250, AckPolicy::quinn()), 200);
    assert_eq!(answers_to(250, AckPolicy::quic_go()), 800);
    assert_eq!(answers_to(250, AckPolicy::msquic()), 100);
    assert_eq!(answers_to(250, AckPolicy::mvfst()), 2_500);
    // 45 are more than such an A-MPDU.
    assert_eq!(answers(AckPolicy::msquic()), 50);
    // 42 packets leave two for the next batch.
    assert_eq!(answers(AckPolicy::chrome()), 420);
    // After 32, once it has read another ten: five in four batches.
    assert_eq!(answers(AckPolicy::picoquic()), 125);
    // Its timer ends between batches.
    assert_eq!(answers(AckPolicy::aioquic()), 0);
}

#[test]
fn the_receivers_round_trip_is_that_of_the_first_echo() {
    const MS: fn(u64) -> Duration = Duration::from_millis;
    let mut acks = AckScheduler::new(&Config { ack_policy: AckPolicy::tack_lite(), ..Config::default() });
    // No estimate yet, so every second packet, once all that arrives with it has been read.
    assert_eq!(acks.on_in_order(BYTES, Instant::ZERO), AckDecision::At(Instant::ZERO + MS(25)));
    assert_eq!(acks.on_in_order(BYTES, Instant::ZERO), AckDecision::At(Instant::ZERO));
    acks.on_ack_sent();
    acks.on_echo(BYTES, 7, MS(20));
    // A timestamp that was already echoed does not count, and a small segment may have waited for its application.
    acks.on_echo(BYTES, 7, MS(8));
    acks.on_echo(100, 8, MS(4));
    assert_eq!(acks.on_in_order(BYTES, Instant::ZERO), AckDecision::At(Instant::ZERO + MS(5)));
    assert_eq!(acks.on_in_order(BYTES, Instant::ZERO + MS(1)), AckDecision::Wait);
}

/// quinn's own ACKs over a simulated link, written by a test of tacit-quinn. The policies have no more than 15 % more or less.
#[test]
fn acks_per_packet_are_those_of_quinn() {
    let table = include_str!("../../../../network/quinn/tests/snapshots/acks.txt");
    let places: Vec<Vec<f64>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().map(|cell| cell.parse().expect("a number")).collect())
        .collect();
    assert_eq!(places.len(), 4);
    // A full-sized datagram of quinn: 1,452 bytes, and 28 of IPv4 and UDP.
    const PACKET_BITS: f64 = 8.0 * 1_480.0;
    for place in places {
        let &[kbps, rtt_ms, plain, asked] = place.as_slice() else { panic!("{place:?}") };
        let packet_time = Duration::from_nanos((PACKET_BITS * 1e6 / kbps) as u64);
        let packets = SECONDS as f64 * 1e3 * kbps / PACKET_BITS;
        let policies =
            [AckPolicy::quinn(), AckPolicy::quic_ackfreq(11, Duration::from_millis(25), 2, Reading::ALL)];
        for (policy, live) in policies.into_iter().zip([plain, asked]) {
            let acks = acks_of(policy, Duration::from_millis(rtt_ms as u64), packet_time);
            let per_100 = 100.0 * acks as f64 / packets;
            let off = per_100 / live - 1.0;
            assert!(off.abs() <= 0.15, "{kbps} kb/s, {rtt_ms} ms, {policy:?}: {per_100:.1} for {live}");
        }
    }
}

/// Policies that are fed with the arrivals of captures acknowledge as often as the stacks did: their laws are apart from their senders'.
#[test]
fn policies_fed_with_the_arrivals_of_captures_acknowledge_as_their_stacks_did() {
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for line in include_str!("captures.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a word");
        let (row, place, live, socket) = (word(), word(), word(), word());
        let config = Config {
            ack_policy: policy_of(row),
            socket_packets: socket.parse().ok(),
            window_update_bytes: updates_of(row).and_then(NonZeroU64::new),
            ..Config::default()
        };
        // The round trip of a download over Wi-Fi, whose least is that of an empty queue; and of a wire.
        let rtt = if place.starts_with("wlan") { [3, 10] } else { [45, 90] }.map(Duration::from_millis);
        let (packets, bursts, acks) = answers_to_arrivals(&config, rtt, words);
        let [live, acks] =
            [live.parse().expect("a number"), f64::from(acks)].map(|up| 100.0 * up / f64::from(packets));
        let per_burst = f64::from(packets) / f64::from(bursts);
        table += &format!("{row} {place} {per_burst:.1} {live:.1} {acks:.1}\n");
        let is_near = (acks / live - 1.0).abs() <= 0.15;
        if is_near == BUSY.contains(&(row, place)) {
            wrong.push(format!("{row} at {place}: {live:.2}, and the policy {acks:.2}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ack_policy/captures-acks.txt");
    if std::env::var_os("TACIT_WRITE_DOCS").is_some() {
        std::fs::write(stored, &table).unwrap();
    }
    assert_eq!(std::fs::read_to_string(stored).unwrap(), table, "TACIT_WRITE_DOCS=1 writes it");
}

/// Where a program handles what came more slowly than more comes: its timer is late, or an ACK is for two A-MPDUs.
const BUSY: [(&str, &str); 2] = [("aioquic", "wlan-11n-300"), ("tquic", "wlan-11ax-1200")];

fn policy_of(row: &str) -> AckPolicy {
    match row {
        "quinn" | "quinn-large" | "noq" => AckPolicy::quinn(),
        "s2n" => AckPolicy::s2n_quic(),
        "quic-go" => AckPolicy::quic_go(),
        "picoquic" => AckPolicy::picoquic(),
        "aioquic" => AckPolicy::aioquic(),
        "tquic" | "tquic-cubic" => AckPolicy::quic_ack2(),
        "tquic-ack-packets" => AckPolicy::quic_ackfreq(10, Duration::from_millis(25), 1, Reading::ALL),
        _ => panic!("{row}"),
    }
}

/// After how many bytes of segments that have as many packets as the stack's part of its window.
fn updates_of(row: &str) -> Option<u64> {
    match row {
        "quinn" | "noq" => Some(156_250),
        "quinn-large" => Some(8 << 20),
        "s2n" => Some(375_000),
        "quic-go" => Some(512 << 10),
        _ => None,
    }
}

/// Packets and instants of a capture, and the ACKs of a receiver.
fn answers_to_arrivals<'a>(
    config: &Config,
    [least, usual]: [Duration; 2],
    words: impl Iterator<Item = &'a str>,
) -> (u32, u32, u32) {
    let mut acks = AckScheduler::new(config);
    acks.on_handshake(least);
    for stamp in 0..50 {
        acks.on_echo(BYTES, stamp, usual);
    }
    let (mut now, mut timer) = (Instant::ZERO, None);
    let (mut packets, mut bursts, mut sent) = (0, 0, 0);
    let mut send = |acks: &mut AckScheduler, timer: &mut Option<Instant>| {
        sent += 1;
        *timer = match acks.on_ack_sent() {
            AckDecision::At(at) => Some(at),
            _ => None,
        };
    };
    for word in words {
        let (gap, count) = word.split_once(':').unwrap_or((word, "1"));
        let next = now + Duration::from_micros(gap.parse().expect("microseconds"));
        while timer.take_if(|at: &mut Instant| *at < next).is_some() {
            send(&mut acks, &mut timer);
        }
        now = next;
        let came: u32 = count.parse().expect("a number");
        (packets, bursts) = (packets + came, bursts + 1);
        for _ in 0..config.socket_packets.map_or(came, |holds| came.min(holds)) {
            match acks.on_in_order(BYTES, now) {
                AckDecision::Now => send(&mut acks, &mut timer),
                AckDecision::At(at) => timer = Some(at),
                AckDecision::Wait => {}
            }
        }
    }
    (packets, bursts, sent)
}
