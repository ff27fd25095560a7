//! What a TXOP contains after its first exchange: scripts of packets and losses, and the resulting frames.

mod protection;

use crate::common::{Channel, TestPacket, channel};
use tacit_link::loss::Loss;
use tacit_link::wifi::air::{AirFrame, Frame, Outcome};
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{
    AccessCategory, AirtimeUse, BssConfig, Bursts, ReverseDirection, StationConfig, StationId,
};
use tacit_packet::units::{BitRate, Duration, Instant};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);
const TWO: StationId = StationId(2);
const GRANTED: ReverseDirection = granted(Duration::ZERO);

const fn granted(turnaround: Duration) -> ReverseDirection {
    ReverseDirection::Granted { turnaround, limit: ReverseDirection::USUAL_LIMIT }
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn scripted(losses: impl IntoIterator<Item = u64>) -> Loss {
    Loss::Scripted(losses.into_iter().collect())
}

/// 802.11n at 150 Mb/s, with responses at 24 Mb/s.
fn config(clients: usize) -> BssConfig {
    let client = StationConfig::new(Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap());
    BssConfig {
        beacon_interval: None,
        reverse_direction: GRANTED,
        ..BssConfig::new(Standard::N, vec![client; clients])
    }
}

struct Harness {
    bss: Channel,
    now: Instant,
    frames: Vec<AirFrame<TestPacket>>,
    delivered: Vec<(StationId, u32)>,
}

impl Harness {
    /// Starts after 1 ms without traffic.
    fn new(config: BssConfig) -> Self {
        Self::seeded(config, 1)
    }

    fn seeded(config: BssConfig, seed: u64) -> Self {
        let mut bss = channel(config, seed, "txop", Duration::from_secs(10));
        bss.record_air();
        let now = Instant::ZERO + Duration::from_millis(1);
        Self { bss, now, frames: Vec::new(), delivered: Vec::new() }
    }

    /// Queues `count` packets of `bytes` bytes at `from` for `to`, with consecutive numbers.
    fn send(&mut self, from: StationId, to: StationId, count: u32, bytes: u64) {
        let first = self.bss.counters(from).accepted as u32;
        for number in first..first + count {
            assert!(self.bss.enqueue(
                self.now,
                from.first_function(),
                to.first_function(),
                TestPacket::of_len(number, bytes)
            ));
        }
    }

    /// Processes the next event; false if there is none.
    fn step(&mut self) -> bool {
        let Some(at) = self.bss.poll_timeout() else { return false };
        assert!(at >= self.now, "time runs forward");
        self.now = at;
        self.bss.handle_timeout(at);
        while let Some(delivery) = self.bss.poll_deliver() {
            self.delivered.push((self.bss.station(delivery.to), delivery.payload.number));
        }
        while self.bss.poll_drained().is_some() {}
        while let Some(frame) = self.bss.poll_air() {
            self.frames.push(frame);
        }
        true
    }

    /// Runs until no event is left, and checks the accounts.
    fn run(&mut self) {
        while self.step() {}
        self.bss.check().unwrap();
        assert_eq!(self.bss.airtime(self.now).total(), self.now - Instant::ZERO);
        let alone: Vec<_> = self.frames.iter().filter(|frame| frame.outcome != Outcome::Collided).collect();
        for pair in alone.windows(2) {
            let after = pair[0].at == pair[1].at || end(pair[0]) <= pair[1].at;
            assert!(after, "the medium is never double-booked: {pair:?}");
        }
    }

    /// The access point starts to send `count` packets to the first client, which gets `acks` packets to send while it
    /// receives them.
    fn exchange(&mut self, count: u32, acks: u32) {
        self.send(AP, ONE, count, 1500);
        assert!(self.step(), "the access");
        self.send(ONE, AP, acks, 52);
    }

    /// Senders and frames: `D3` is data of three MPDUs, `D3!` data of three that did not arrive, `A` ACK, `B` Block
    /// Ack, `R` Block Ack Request, `end` CF-End; `+` means RDG/More PPDU, `x` lost.
    fn story(&self) -> String {
        let mut story = Vec::new();
        let mut frames = self.frames.iter().peekable();
        while let Some(frame) = frames.next() {
            let what = match &frame.frame {
                Frame::Data { .. } => {
                    let mut mpdus = vec![frame];
                    while let Some(next) = frames.next_if(|next| next.at == frame.at) {
                        mpdus.push(next);
                    }
                    let heard = mpdus.iter().any(|mpdu| mpdu.outcome == Outcome::Received);
                    format!("D{}{}", mpdus.len(), if heard { "" } else { "!" })
                }
                Frame::Ack { .. } => "A".into(),
                Frame::BlockAck { .. } => "B".into(),
                Frame::BlockAckReq { .. } => "R".into(),
                Frame::CfEnd => "end".into(),
                Frame::Rts => "rts".into(),
                Frame::Cts => "cts".into(),
                Frame::Beacon => "beacon".into(),
                Frame::Trigger(_) => "trigger".into(),
                Frame::MultiStaBlockAck(_) => "multi-STA block ack".into(),
                Frame::QosNull { .. } | Frame::TriggeredResponse(_) => "null".into(),
                Frame::ActionNoAck { .. } => "action".into(),
            };
            let data = matches!(frame.frame, Frame::Data { .. });
            let lost = if data || frame.outcome == Outcome::Received { "" } else { "x" };
            let more = if frame.more_ppdu == Some(true) { "+" } else { "" };
            let who = if frame.transmitter == AP { "ap".into() } else { frame.transmitter.0.to_string() };
            story.push(format!("{who}:{what}{more}{lost}"));
        }
        story.join(" ")
    }

    /// The first frame of a kind from `transmitter`.
    fn first(
        &self,
        transmitter: StationId,
        kind: impl Fn(&Frame<TestPacket>) -> bool,
    ) -> &AirFrame<TestPacket> {
        self.frames.iter().find(|frame| frame.transmitter == transmitter && kind(&frame.frame)).unwrap()
    }
}

fn end<P>(frame: &AirFrame<P>) -> Instant {
    frame.at + frame.duration
}

fn is_data<P>(frame: &Frame<P>) -> bool {
    matches!(frame, Frame::Data { .. })
}

#[test]
fn a_reverse_direction_responder_sends_one_sifs_after_its_block_ack() {
    let mut h = Harness::new(config(1));
    h.exchange(3, 2);
    h.run();
    assert_eq!(h.story(), "ap:D3+ 1:B+ 1:D2 ap:B ap:end");
    assert_eq!(h.delivered, [(ONE, 0), (ONE, 1), (ONE, 2), (AP, 0), (AP, 1)]);
    let ppdus: Vec<_> = [0, 3, 4, 6, 7].map(|i| &h.frames[i]).into();
    for pair in ppdus.windows(2) {
        assert_eq!(pair[1].at - end(pair[0]), us(16), "{pair:?}");
    }
    // Each MPDU has an HT Control field: 3 subframes of 1548 bytes, the last 1546; and 2 of 4 + 94 padded to 100, the
    // last 98.
    let mode = h.frames[0].mode;
    assert_eq!(ppdus[0].duration, mode.ppdu_duration(2 * 1548 + 1546));
    assert_eq!(ppdus[2].duration, mode.ppdu_duration(100 + 98));
    // 32 bytes of Block Ack at 24 Mb/s take 32 us, the 38 bytes in a Control Wrapper 36 us, a CF-End of 20 bytes 28 us.
    assert_eq!(
        ppdus.iter().skip(1).step_by(2).map(|frame| frame.duration).collect::<Vec<_>>(),
        [us(36), us(32)]
    );
    assert_eq!(ppdus[4].duration, us(28));
    let [ap, client] = [AP, ONE].map(|station| h.bss.counters(station));
    assert_eq!((ap.reverse_grants, ap.cf_ends, ap.reverse_ppdus), (1, 1, 0));
    assert_eq!((client.reverse_ppdus, client.reverse_mpdus, client.data_ppdus), (1, 2, 1));
    // The client spent only a SIFS to get the channel.
    assert_eq!(client.tcp_ack_backoff, Duration::ZERO);
    let airtime = h.bss.station_airtime(ONE);
    assert_eq!(airtime.get(AirtimeUse::Acquisition), us(16));
    assert_eq!(airtime.get(AirtimeUse::TcpAck), ppdus[2].duration);
    assert_eq!(airtime.get(AirtimeUse::LinkAck), us(16 + 32));
    assert_eq!(h.bss.accesses(), 1);
}

#[test]
fn a_grant_reserves_what_it_allows_and_a_cf_end_gives_back_the_rest() {
    let mut h = Harness::new(config(2));
    h.send(AP, ONE, 3, 1500);
    assert!(h.step());
    h.send(TWO, AP, 1, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D3+ 1:B ap:end 2:D1+ ap:A 2:end");
    let reserved_until = end(&h.frames[0]) + us(16 + 36 + 3_008);
    for frame in &h.frames[..4] {
        assert_eq!(end(frame) + frame.reserves, reserved_until, "{frame:?}");
    }
    // AIFS and at most 15 slots.
    let waited = h.first(TWO, is_data).at - end(h.first(AP, |frame| *frame == Frame::CfEnd));
    assert!((us(43)..=us(43 + 15 * 9)).contains(&waited), "{waited}");
}

#[test]
fn a_bystander_keeps_off_when_the_holder_hears_nothing() {
    for seed in 0..20 {
        let mut c = config(2);
        c.stations[0].downlink_loss = scripted(0..3);
        let mut h = Harness::seeded(c, seed);
        h.send(AP, ONE, 3, 1500);
        assert!(h.step());
        h.send(TWO, AP, 1, 1500);
        h.run();
        // The access point is not bound by its own reservation and sends the request within it.
        let story = h.story();
        assert_eq!(story, "ap:D3!+ ap:R 1:B ap:D3+ 1:B ap:end 2:D1+ ap:A 2:end", "seed {seed}");
    }
}

#[test]
fn where_the_request_is_lost_too_the_reservation_ends_by_itself() {
    let mut c = config(2);
    c.stations[0].downlink_loss = scripted(0..3);
    c.stations[0].away = Some((Instant::ZERO, Instant::ZERO + Duration::from_millis(20)));
    c.retry_limit = 0;
    let mut h = Harness::new(c);
    h.send(AP, ONE, 3, 1500);
    assert!(h.step());
    h.send(TWO, AP, 1, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D3!+ ap:Rx 2:D1+ ap:A 2:end");
    let reserved_until = end(&h.frames[0]) + h.frames[0].reserves;
    assert!(h.first(TWO, is_data).at >= reserved_until + us(43));
}

#[test]
fn a_lost_reverse_ppdu_is_the_holders_to_recover_from_and_no_failed_access() {
    for seed in 0..20 {
        let mut c = config(1);
        c.stations[0].uplink_loss = scripted(0..2);
        let mut h = Harness::seeded(c, seed);
        h.exchange(3, 2);
        h.run();
        assert_eq!(h.story(), "ap:D3+ 1:B+ 1:D2! ap:end 1:R ap:B 1:D2+ ap:B 1:end");
        let (lost, cf_end) = (&h.frames[4], &h.frames[6]);
        assert_eq!(cf_end.at - end(lost), us(25), "PIFS");
        // The client still has the smallest window.
        let waited = h.frames[7].at - end(cf_end);
        assert!((us(43)..=us(43 + 15 * 9)).contains(&waited), "seed {seed}: {waited}");
        let client = h.bss.counters(ONE);
        assert_eq!((client.missed_link_acks, client.delivered_after_retry), (1, 2));
        assert_eq!(h.delivered[3..], [(AP, 0), (AP, 1)]);
    }
}

#[test]
fn a_lost_block_ack_for_a_reverse_ppdu_is_asked_for() {
    let mut c = config(1);
    // The access point's second acknowledgment is lost.
    c.stations[0].link_ack_loss = scripted([1]);
    let mut h = Harness::new(c);
    h.send(ONE, AP, 2, 52);
    h.run();
    assert_eq!(h.story(), "1:D2+ ap:B 1:end");
    h.frames.clear();
    h.exchange(3, 2);
    h.run();
    assert_eq!(h.story(), "ap:D3+ 1:B+ 1:D2 ap:Bx ap:end 1:R ap:B");
    assert_eq!(h.bss.counters(ONE).delivered_first_try, 4);
    assert_eq!(h.delivered.iter().filter(|(to, _)| *to == AP).count(), 4, "each once");
}

#[test]
fn the_reverse_ppdu_follows_a_block_ack_that_was_lost() {
    let mut c = config(1);
    // The client's second acknowledgment is lost.
    c.stations[0].link_ack_loss = scripted([1]);
    let mut h = Harness::new(c);
    h.send(AP, ONE, 2, 1500);
    h.run();
    h.frames.clear();
    h.exchange(3, 2);
    h.run();
    assert_eq!(h.story(), "ap:D3+ 1:B+x 1:D2 ap:B ap:end ap:R 1:B");
    let ap = h.bss.counters(AP);
    assert_eq!((ap.missed_link_acks, ap.delivered_first_try), (1, 5));
}

#[test]
fn with_both_lost_the_holder_backs_off_and_only_bystanders_wait() {
    let mut c = config(2);
    c.stations[0].link_ack_loss = scripted([0]);
    c.stations[0].uplink_loss = scripted(0..2);
    let mut h = Harness::new(c);
    h.exchange(3, 2);
    h.send(TWO, AP, 1, 1500);
    h.run();
    let story = h.story();
    assert!(story.starts_with("ap:D3+ 1:B+x 1:D2! "), "{story}");
    let reserved_until = end(&h.frames[0]) + h.frames[0].reserves;
    let next = &h.frames[6];
    assert!(matches!(next.frame, Frame::BlockAckReq { .. }) && next.at < reserved_until, "{story}");
    assert!(story.contains("2:D1+ ap:A"), "{story}");
}

#[test]
fn a_ppdu_too_long_for_the_rest_of_the_txop_waits_for_an_access() {
    let mut c = config(1);
    c.txop_limit = Some(us(500));
    let mut h = Harness::new(c);
    // 2 packets of 1500 bytes leave 500 - 36 - 172 - 16 - 36 us: enough for one of 1500 bytes, not for one of 6000.
    h.send(AP, ONE, 2, 1500);
    assert!(h.step());
    h.send(ONE, AP, 1, 6000);
    h.run();
    assert!(h.story().starts_with("ap:D2+ 1:B ap:end 1:D1"), "{}", h.story());
    h.frames.clear();
    h.send(AP, ONE, 2, 1500);
    assert!(h.step());
    h.send(ONE, AP, 1, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D2+ 1:B+ 1:D1 ap:A ap:end");
    assert!(end(h.frames.last().unwrap()) - h.frames[0].at <= us(500));
}

#[test]
fn a_limit_holds_for_both_ways_together() {
    for limit in [1_504, 3_008, 4_000] {
        let mut c = config(1);
        c.txop_limit = Some(us(limit));
        let mut h = Harness::new(c);
        h.send(AP, ONE, 400, 1500);
        assert!(h.step());
        h.send(ONE, AP, 400, 1500);
        h.run();
        assert!(h.bss.counters(ONE).reverse_mpdus > 0);
        let grants = h.frames.iter().filter(|frame| is_data(&frame.frame) && frame.more_ppdu == Some(true));
        for grant in grants {
            let until = end(grant) + grant.reserves;
            assert!(until - grant.at <= us(limit), "{}", until - grant.at);
        }
    }
}

#[test]
fn packets_that_came_a_moment_ago_are_not_in_the_reverse_ppdu() {
    let mut c = config(1);
    c.reverse_direction = granted(us(200));
    let mut h = Harness::new(c);
    // The PPDU takes 283 us, and the Block Ack ends 52 us later.
    h.exchange(3, 1);
    let begins = h.now;
    while h.now < begins + us(200) {
        assert!(h.step());
    }
    h.send(ONE, AP, 2, 52);
    h.run();
    assert_eq!(h.story(), "ap:D3+ 1:B+ 1:D1 ap:A ap:end 1:D2+ ap:B 1:end");
}

#[test]
fn the_peer_sends_for_the_holder_only_and_in_its_category() {
    let mut c = config(2);
    c.categories = vec![AccessCategory::BestEffort, AccessCategory::Video];
    let mut h = Harness::new(c);
    // A client grants. The access point has packets for both clients, and some in another category.
    h.send(ONE, AP, 3, 1500);
    assert!(h.step());
    let [ap, one] = [AP, ONE].map(|station| h.bss.function(station, AccessCategory::Video));
    h.send(AP, TWO, 1, 1500);
    assert!(h.bss.enqueue(h.now, ap, one, TestPacket::full(7)));
    assert!(h.bss.enqueue(h.now, AP.first_function(), ONE.first_function(), TestPacket::full(8)));
    h.run();
    let reverse = h.first(AP, is_data);
    assert_eq!((reverse.receiver, reverse.category), (Some(ONE), AccessCategory::BestEffort));
    assert!(matches!(reverse.frame, Frame::Data { payload: TestPacket { number: 8, .. }, .. }));
    assert_eq!(h.bss.counters_in(AP, AccessCategory::BestEffort).reverse_mpdus, 1);
}

#[test]
fn the_medium_of_hidden_stations_tells_the_same_story() {
    let hidden = |reverse: bool| {
        let mut c = config(3);
        c.hidden = vec![(TWO, StationId(3))];
        c.stations[0].uplink_loss = if reverse { Loss::None } else { scripted(0..2) };
        let mut h = Harness::new(c);
        h.exchange(3, 2);
        h.send(TWO, AP, 1, 1500);
        h.run();
        h
    };
    let h = hidden(true);
    assert_eq!(h.story(), "ap:D3+ 1:B+ 1:D2 ap:B ap:end 2:D1+ ap:A 2:end");
    let h = hidden(false);
    assert!(h.story().starts_with("ap:D3+ 1:B+ 1:D2! ap:end "), "{}", h.story());
    // The CF-End reset the NAV that the grant had set.
    assert!(h.first(TWO, is_data).at < end(&h.frames[0]) + h.frames[0].reserves);
}

#[test]
fn a_cts_keeps_the_hidden_off_the_whole_grant() {
    let mut c = config(2);
    c.hidden = vec![(ONE, TWO)];
    c.protection = tacit_link::wifi::Protection::RtsCts { above: 0 };
    let mut h = Harness::new(c);
    // The second client hears neither the RTS nor the data of the first.
    h.send(ONE, AP, 3, 1500);
    assert!(h.step());
    h.send(AP, ONE, 2, 1500);
    let begins = h.now;
    while h.now < begins + us(100) {
        assert!(h.step());
    }
    h.send(TWO, AP, 1, 1500);
    h.run();
    let story = h.story();
    assert!(story.starts_with("1:rts ap:cts 1:D3+ ap:B+ ap:D2 1:B 1:end "), "{story}");
    assert!(h.frames.iter().all(|frame| frame.outcome == Outcome::Received), "{story}");
    // It does not hear the CF-End either.
    let cts = &h.frames[1];
    assert!(h.first(TWO, |frame| *frame == Frame::Rts).at >= end(cts) + cts.reserves);
}

/// One client, 802.11n at 150 Mb/s without aggregation and grants; `category` in addition to best effort.
fn bursting(category: AccessCategory) -> BssConfig {
    BssConfig {
        reverse_direction: ReverseDirection::Off,
        ampdu_mpdus: Some(1),
        categories: vec![AccessCategory::BestEffort, category],
        ..config(1)
    }
}

impl Harness {
    /// Queues `count` packets of `bytes` bytes for `to` in `category` at the access point.
    fn send_in(&mut self, category: AccessCategory, to: StationId, count: u32, bytes: u64) {
        let [ap, to] = [AP, to].map(|station| self.bss.function(station, category));
        for number in 0..count {
            assert!(self.bss.enqueue(self.now, ap, to, TestPacket::of_len(number, bytes)));
        }
    }

    /// From the end of each PPDU to the start of the next.
    fn gaps_us(&self) -> Vec<u64> {
        let mut ppdus: Vec<_> = self.frames.iter().collect();
        ppdus.dedup_by_key(|frame| frame.at);
        ppdus.windows(2).map(|pair| (pair[1].at - end(pair[0])).as_micros()).collect()
    }
}

#[test]
fn voice_sends_two_exchanges_a_sifs_apart() {
    let mut h = Harness::new(bursting(AccessCategory::Voice));
    h.send_in(AccessCategory::Voice, ONE, 2, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D1 1:A ap:D1 1:A");
    assert_eq!(h.gaps_us(), [16, 16, 16]);
    let counters = h.bss.counters(AP);
    assert_eq!((counters.burst_ppdus, counters.data_ppdus, h.bss.accesses()), (1, 2, 1));
    // Each reserves only its own acknowledgment.
    assert_eq!(h.frames[0].reserves, us(16 + 28));
    assert_eq!(h.bss.station_airtime(AP).get(AirtimeUse::Acquisition), us(16));
}

#[test]
fn best_effort_sends_one_and_backs_off() {
    let mut h = Harness::new(bursting(AccessCategory::Voice));
    h.send_in(AccessCategory::BestEffort, ONE, 2, 1500);
    h.run();
    assert_eq!((h.bss.counters(AP).burst_ppdus, h.bss.accesses()), (0, 2));
    assert!(h.gaps_us()[1] >= 43);
}

#[test]
fn a_burst_ends_where_the_next_exchange_does_not_fit() {
    let mut h = Harness::new(bursting(AccessCategory::Voice));
    // Each takes 120 + 16 + 28 us, and 16 to the next: 8 take 1424 us, 9 would take 1604 of 1504 us.
    h.send_in(AccessCategory::Voice, ONE, 10, 1500);
    h.run();
    let gaps = h.gaps_us();
    assert_eq!(gaps.iter().position(|gap| *gap != 16), Some(15), "{gaps:?}");
    assert!(gaps[15] >= 34, "AIFS of voice: {gaps:?}");
    assert_eq!((h.bss.counters(AP).burst_ppdus, h.bss.accesses()), (7 + 1, 2));
    // A short frame still fits: 80 us are left, and a small frame takes 36 + 7.2 + 16 + 28 us, rounded up.
    let mut h = Harness::new(bursting(AccessCategory::Voice));
    h.send_in(AccessCategory::Voice, ONE, 8, 1430);
    h.send_in(AccessCategory::Voice, ONE, 1, 52);
    h.run();
    assert_eq!((h.bss.counters(AP).burst_ppdus, h.bss.accesses()), (8, 1));
    assert!(end(h.frames.last().unwrap()) - h.frames[0].at <= us(1_504));
}

/// The limit includes the last acknowledgment, for any lengths of the frames before it. Room is reserved for a Block
/// Ack, which takes a symbol more than the actual ACK; without that symbol, one more exchange could have fitted.
#[test]
fn no_burst_is_longer_than_its_limit() {
    for (first, others) in
        (100..=1_500).step_by(100).flat_map(|a| (100..=1_500).step_by(70).map(move |b| (a, b)))
    {
        let mut h = Harness::new(bursting(AccessCategory::Voice));
        h.send_in(AccessCategory::Voice, ONE, 1, first);
        h.send_in(AccessCategory::Voice, ONE, 30, others);
        h.run();
        let frames = h.gaps_us().iter().position(|gap| *gap != 16).unwrap() + 1;
        let lasted = end(&h.frames[frames - 1]) - h.frames[0].at;
        let one_more = us(16 + 4) + (end(&h.frames[3]) - h.frames[2].at);
        let whole = us(1_504);
        assert!(lasted <= whole && lasted + one_more > whole, "{lasted} of {first} and {others} bytes");
    }
}

#[test]
fn an_a_mpdu_is_cut_to_what_is_left() {
    let mut c = bursting(AccessCategory::Video);
    c.ampdu_mpdus = None;
    let mut h = Harness::new(c);
    // 3008 us carry 35 MPDUs and their Block Ack; another A-MPDU would not fit.
    h.send_in(AccessCategory::Video, ONE, 100, 1500);
    h.run();
    let exchange_ends = |i: usize| end(&h.frames[i]);
    assert!(h.story().starts_with("ap:D35 1:B ap:D"), "{}", h.story());
    assert!(exchange_ends(35) - h.frames[0].at <= us(3_008));
    // If the first A-MPDU is cut short, there is room for another.
    let mut c = bursting(AccessCategory::Video);
    c.ampdu_mpdus = Some(20);
    let mut h = Harness::new(c);
    h.send_in(AccessCategory::Video, ONE, 60, 1500);
    h.run();
    assert!(h.story().starts_with("ap:D20 1:B ap:D14 1:B ap:D"), "{}", h.story());
    assert_eq!(h.gaps_us()[..3], [16, 16, 16]);
}

#[test]
fn a_failure_in_the_middle_ends_the_burst_with_a_backoff() {
    let mut c = bursting(AccessCategory::Voice);
    c.stations[0].downlink_loss = scripted([1]);
    let mut h = Harness::new(c);
    h.send_in(AccessCategory::Voice, ONE, 4, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D1 1:A ap:D1! ap:D1 1:A ap:D1 1:A ap:D1 1:A");
    let gaps = h.gaps_us();
    // SIFS, a slot and 20 us to detect a PPDU; by then AIFS has passed, and slots may follow.
    assert!(gaps[2] >= 45 && (gaps[2] - 45).is_multiple_of(9), "{gaps:?}");
    assert_eq!((gaps[4], gaps[6]), (16, 16), "the burst after it is a new TXOP: {gaps:?}");
    assert_eq!(h.bss.accesses(), 2);
    // A lost ACK is a failure too.
    let mut c = bursting(AccessCategory::Voice);
    c.stations[0].link_ack_loss = scripted([1]);
    let mut h = Harness::new(c);
    h.send_in(AccessCategory::Voice, ONE, 3, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D1 1:A ap:D1 1:Ax ap:D1 1:A ap:D1 1:A");
    assert_eq!(h.bss.accesses(), 2);
}

#[test]
fn a_collision_on_the_first_frame_leaves_no_txop() {
    let mut h = Harness::new(bursting(AccessCategory::Voice));
    h.send_in(AccessCategory::Voice, ONE, 3, 1500);
    let [one, ap] = [ONE, AP].map(|station| h.bss.function(station, AccessCategory::Voice));
    assert!(h.bss.enqueue(h.now, one, ap, TestPacket::full(9)));
    h.run();
    assert_eq!(h.bss.collisions(), 1);
    let first = h.frames[0].at;
    let collided = h.frames.iter().filter(|frame| frame.at == first).count();
    let after = h.frames.iter().find(|frame| frame.at > first).unwrap();
    assert_eq!(collided, 2);
    assert!(after.at - end(&h.frames[0]) >= us(34), "no SIFS after a collision");
    assert_eq!(h.bss.counters(AP).delivered_after_retry + h.bss.counters(AP).delivered_first_try, 3);
}

#[test]
fn a_burst_is_one_turn_and_others_get_what_is_left() {
    let mut c = bursting(AccessCategory::Voice);
    c.stations.push(c.stations[0].clone());
    let mut h = Harness::new(c);
    h.send_in(AccessCategory::Voice, ONE, 2, 1500);
    h.send_in(AccessCategory::Voice, TWO, 2, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D1 1:A ap:D1 1:A ap:D1 2:A ap:D1 2:A");
    assert_eq!(h.bss.accesses(), 1);
}

/// After an A-MPDU of 42 MPDUs, a TXOP of 4 ms has room for a few MPDUs more. The client that gets this room keeps its
/// own turn.
#[test]
fn clients_share_whatever_is_left_of_each_others_txops() {
    for (clients, reverse_direction) in [1, 2, 3, 4, 10]
        .into_iter()
        .flat_map(|clients| [(clients, ReverseDirection::Off), (clients, GRANTED)])
    {
        let limit = Some(us(4_000));
        let mut h = Harness::new(BssConfig {
            txop_limit: limit,
            bursts: Bursts::WithinLimit,
            reverse_direction,
            lifetime: us(10_000_000),
            ..config(clients)
        });
        // Enough packets that each client has 20 turns before the packets run out.
        (1..=clients as u16).for_each(|client| h.send(AP, StationId(client), 1_500, 1500));
        while h.bss.accesses() < 20 * clients as u64 && h.step() {}
        let received: Vec<_> = (1..=clients as u16)
            .map(|client| h.delivered.iter().filter(|(station, _)| station.0 == client).count())
            .collect();
        let (least, most) = (received.iter().min().unwrap(), received.iter().max().unwrap());
        assert!(least * 100 >= most * 94, "{clients} clients, {reverse_direction:?}: {received:?} packets");
    }
}

/// A request is the sender's next PPDU even if packets wait for other clients; their turns follow.
#[test]
fn a_block_ack_request_goes_before_other_destinations() {
    let mut c = BssConfig { reverse_direction: ReverseDirection::Off, ..config(3) };
    c.stations[0].link_ack_loss = scripted([0]);
    let mut h = Harness::new(c);
    for client in [ONE, TWO, StationId(3)] {
        h.send(AP, client, 3, 1500);
    }
    h.run();
    assert_eq!(h.story(), "ap:D3 1:Bx ap:R 1:B ap:D3 2:B ap:D3 3:B");
}

#[test]
fn bursts_are_where_they_are_asked_for() {
    let accesses = |bursts, txop_limit| {
        let mut c = bursting(AccessCategory::Voice);
        (c.bursts, c.txop_limit) = (bursts, txop_limit);
        let mut h = Harness::new(c);
        h.send_in(AccessCategory::BestEffort, ONE, 2, 1500);
        h.run();
        h.send_in(AccessCategory::Voice, ONE, 2, 1500);
        h.run();
        h.bss.accesses()
    };
    let limit = Some(us(4_000));
    assert_eq!(accesses(Bursts::Never, limit), 4);
    assert_eq!(accesses(Bursts::ByCategory, limit), 3);
    assert_eq!(accesses(Bursts::WithinLimit, limit), 2);
    assert_eq!(accesses(Bursts::WithinLimit, None), 3);
}

#[test]
fn a_holder_grants_and_goes_on() {
    let mut c = config(1);
    c.categories = vec![AccessCategory::BestEffort, AccessCategory::Video];
    c.ampdu_mpdus = Some(2);
    let mut h = Harness::new(c);
    h.send_in(AccessCategory::Video, ONE, 4, 1500);
    assert!(h.step());
    let [one, ap] = [ONE, AP].map(|station| h.bss.function(station, AccessCategory::Video));
    assert!(h.bss.enqueue(h.now, one, ap, TestPacket::ack(9)));
    h.run();
    assert_eq!(h.story(), "ap:D2+ 1:B+ 1:D1 ap:A ap:D2+ 1:B ap:end");
    assert!(h.gaps_us().iter().all(|gap| *gap == 16), "{:?}", h.gaps_us());
    let until = h.frames[0].at + us(3_008);
    for frame in h.frames.iter().filter(|frame| frame.frame != Frame::CfEnd) {
        let own = frame.transmitter == AP && matches!(frame.frame, Frame::Ack { .. });
        assert!(own || end(frame) + frame.reserves == until, "{frame:?}");
    }
}

#[test]
fn hidden_stations_burst_too() {
    let mut c = bursting(AccessCategory::Voice);
    c.stations = vec![c.stations[0].clone(); 3];
    c.hidden = vec![(TWO, StationId(3))];
    c.stations[0].downlink_loss = scripted([2]);
    let mut h = Harness::new(c);
    h.send_in(AccessCategory::Voice, ONE, 4, 1500);
    h.run();
    assert_eq!(h.story(), "ap:D1 1:A ap:D1 1:A ap:D1! ap:D1 1:A ap:D1 1:A");
    assert_eq!((h.bss.accesses(), h.bss.counters(AP).burst_ppdus), (2, 3));
}

proptest::proptest! {
    /// Under any losses, packets are passed up in order and without duplicates in both directions; with enough retries,
    /// none is missing.
    #[test]
    fn every_packet_arrives_once_and_in_order(
        data in proptest::collection::btree_set(0_u64..150, 0..60),
        acks in proptest::collection::btree_set(0_u64..30, 0..10),
        counts in (1_u32..100, 1_u32..100),
        limit in proptest::sample::select(vec![None, Some(us(1_504)), Some(us(4_000))]),
        hidden in proptest::bool::ANY,
        bursts in proptest::sample::select(
            vec![Bursts::Never, Bursts::WithinLimit, Bursts::MultipleProtection]
        ),
        reverse in proptest::sample::select(vec![ReverseDirection::Off, GRANTED]),
    ) {
        let mut c = config(3);
        c.retry_limit = 100;
        c.txop_limit = limit;
        (c.bursts, c.reverse_direction) = (bursts, reverse);
        if hidden {
            c.hidden = vec![(TWO, StationId(3))];
        }
        c.stations[0].downlink_loss = scripted(data.clone());
        c.stations[0].uplink_loss = scripted(data);
        c.stations[0].link_ack_loss = scripted(acks);
        let mut h = Harness::new(c);
        h.send(AP, ONE, counts.0, 1500);
        proptest::prop_assert!(h.step());
        h.send(ONE, AP, counts.1, 600);
        h.run();
        for (station, count) in [(ONE, counts.0), (AP, counts.1)] {
            let got: Vec<_> = h.delivered.iter().filter(|(to, _)| *to == station).map(|(_, n)| *n).collect();
            proptest::prop_assert_eq!(got, (0..count).collect::<Vec<_>>(), "{}", h.story());
        }
    }
}
