//! Multi-link operation: known answers of saturated links, and what is common to them.

use crate::common::{Channel, FULL, TestPacket, channel, saturate};
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::air::{AirFrame, Frame, Outcome};
use tacit_link::wifi::phy::{Coding, GuardInterval, HeOptions, Mode, PacketExtension, Standard};
use tacit_link::wifi::{
    AccessCategory, AckLinks, BlockAckScope, BothWays, BssConfig, LinkId, LinkSet, MultiLinkConfig,
    StationConfig, StationId, WindowShare,
};
use tacit_packet::units::{BitRate, Duration, Instant};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);

/// Width in MHz, streams and MCS of a link.
pub(crate) type Width = (u16, u8, u8);

const W20: Width = (20, 1, 11);
const W40: Width = (40, 2, 11);
pub(crate) const W80: Width = (80, 1, 13);
const W80X2: Width = (80, 2, 13);
pub(crate) const W160: Width = (160, 2, 13);

/// 802.11be with the durations of ns-3: binary convolutional codes and no packet extension; Block Acks at 24 Mb/s.
fn link((width, streams, mcs): Width, window: u32) -> BssConfig {
    let plain = HeOptions {
        coding: Coding::Bcc,
        extension: PacketExtension::Us0,
        ..HeOptions::usual(GuardInterval::Ns800)
    };
    let mode = Mode::eht(mcs, streams, width, GuardInterval::Ns800).unwrap().with_options(plain).unwrap();
    let client = StationConfig {
        control_mode: Mode::ofdm(BitRate::from_mbps(24)),
        downlink_queue: QueueLimit { packets: Some(4096), bytes: None }.into(),
        ..StationConfig::new(mode)
    };
    BssConfig {
        beacon_interval: None,
        block_ack_window: window,
        ..BssConfig::new(Standard::Be, vec![client])
    }
}

pub(crate) fn links(
    widths: &[Width],
    window: u32,
    share: WindowShare,
    block_acks: BlockAckScope,
) -> BssConfig {
    let mut configs = widths.iter().map(|width| link(*width, window));
    let first = configs.next().unwrap();
    let common = MultiLinkConfig { share, block_acks, ..MultiLinkConfig::new(configs.collect()) };
    BssConfig { multi_link: (widths.len() > 1).then(|| Box::new(common)), ..first }
}

/// Goodput of saturated UDP from the access point in Mb/s, and the share of time for which each link was stalled.
pub(crate) fn udp(config: BssConfig) -> (f64, Vec<f64>) {
    let span = Duration::from_secs(2);
    let mut bss = channel(config, 1, "multi-link", span);
    let [from, to] = [AP, ONE].map(StationId::first_function);
    let fill = |bss: &mut Channel, now: Instant| {
        while bss.queued(from, to) < 3000 && bss.enqueue(now, from, to, FULL) {}
    };
    let packets = saturate(&mut bss, span, fill);
    let stalled = bss
        .links()
        .map(|link| bss.stalled(from, link, Instant::ZERO + span).as_secs_f64() / span.as_secs_f64());
    let stalled = stalled.collect();
    (packets as f64 * 1472.0 * 8.0 / span.as_secs_f64() / 1e6, stalled)
}

#[test]
fn links_alone_have_their_capacities() {
    for (width, window, mbps) in [
        (W20, 1024, 130.6),
        (W40, 1024, 521.5),
        (W80, 1024, 656.0),
        (W80X2, 1024, 1312.2),
        (W160, 1024, 2594.8),
        (W80, 256, 654.0),
    ] {
        let (goodput, _) = udp(links(&[width], window, WindowShare::Greedy, BlockAckScope::OwnLink));
        assert!((goodput / mbps - 1.0).abs() < 0.005, "{width:?}: {goodput:.1} for {mbps}");
    }
}

/// Closed forms of two links, most with a window that binds.
#[test]
fn several_links_share_one_window() {
    use BlockAckScope::{OwnLink, Shared};
    use WindowShare::{Greedy, Proportional};
    let mut wrong = Vec::new();
    for (widths, window, share, scope, mbps) in [
        ([W80, W80], 1024, Greedy, OwnLink, 1310.0),
        ([W80, W80], 1024, Greedy, Shared, 1310.0),
        ([W80, W80], 512, Greedy, OwnLink, 1086.0),
        ([W80, W80], 512, Proportional, OwnLink, 1305.0),
        ([W80, W80], 256, Greedy, OwnLink, 669.0),
        ([W80, W80], 256, Greedy, Shared, 669.0),
        ([W80, W80], 256, Proportional, OwnLink, 1247.0),
        ([W40, W160], 1024, Greedy, OwnLink, 2388.0),
        ([W40, W160], 1024, Greedy, Shared, 2640.0),
        ([W40, W160], 1024, Proportional, OwnLink, 3069.0),
        ([W20, W160], 1024, Greedy, OwnLink, 2406.0),
        ([W20, W160], 1024, Greedy, Shared, 2393.0),
        ([W20, W160], 1024, Proportional, OwnLink, 2712.0),
        ([W160, W160], 1024, Greedy, OwnLink, 2653.0),
        ([W160, W160], 1024, Greedy, Shared, 2653.0),
        ([W160, W160], 1024, Proportional, OwnLink, 4905.0),
    ] {
        let (goodput, stalled) = udp(links(&widths, window, share, scope));
        if (goodput / mbps - 1.0).abs() >= 0.005 {
            wrong.push(format!(
                "{widths:?}, {window}, {share:?}, {scope:?}: {goodput:.1} for {mbps}; {stalled:.2?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "goodput in Mb/s, and shares of time stalled: {wrong:#?}");
}

/// Two links of 80 MHz with a script of frames.
pub(crate) struct Script {
    pub bss: Channel,
    pub now: Instant,
    pub frames: Vec<AirFrame<TestPacket>>,
    pub delivered: Vec<(StationId, u32)>,
}

impl Script {
    pub(crate) fn new(config: BssConfig) -> Self {
        let mut bss = channel(config, 1, "multi-link", Duration::from_secs(1));
        bss.record_air();
        let now = Instant::ZERO + Duration::from_millis(1);
        Self { bss, now, frames: Vec::new(), delivered: Vec::new() }
    }

    pub(crate) fn send(
        &mut self,
        from: StationId,
        to: StationId,
        packets: impl IntoIterator<Item = TestPacket>,
    ) {
        for packet in packets {
            assert!(self.bss.enqueue(self.now, from.first_function(), to.first_function(), packet));
        }
    }

    /// Processes the next event; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(at) = self.bss.poll_timeout() else { return false };
        self.now = at;
        self.bss.handle_timeout(at);
        while let Some(interrupt) = self.bss.poll_interrupt() {
            if let Some(packet) = interrupt.packet() {
                self.bss.take(*packet);
            }
        }
        while let Some(delivery) = self.bss.poll_deliver() {
            self.delivered.push((self.bss.station(delivery.to), delivery.payload.number));
        }
        while self.bss.poll_drained().is_some() {}
        while let Some(frame) = self.bss.poll_air() {
            self.frames.push(frame);
        }
        self.bss.check().unwrap();
        true
    }

    pub(crate) fn run(&mut self) {
        while self.step() {}
        self.frames.sort_by_key(|frame| frame.at);
    }

    /// Link and kind of each frame but repeated MPDUs, in order: `1:D` data, `1:B` Block Ack, `1:A` ACK, `1:R` request,
    /// `1:I` initial control frame, `1:r` RTS, `1:C` CTS, `!` if it did not arrive.
    pub(crate) fn story(&self) -> String {
        let mut story: Vec<String> = Vec::new();
        let mut last = None;
        for frame in &self.frames {
            let kind = match &frame.frame {
                Frame::Data { .. } => 'D',
                Frame::BlockAck { .. } => 'B',
                Frame::Ack { .. } => 'A',
                Frame::BlockAckReq { .. } => 'R',
                Frame::Trigger(_) => 'I',
                Frame::Rts => 'r',
                Frame::Cts => 'C',
                _ => '?',
            };
            let lost = if kind != 'D' && frame.outcome != Outcome::Received { "!" } else { "" };
            if last.replace((frame.link, frame.at, frame.transmitter))
                != Some((frame.link, frame.at, frame.transmitter))
            {
                story.push(format!("{}:{kind}{lost}", frame.link.0 + 1));
            }
        }
        story.join(" ")
    }
}

pub(crate) fn full(numbers: core::ops::Range<u32>) -> impl Iterator<Item = TestPacket> {
    numbers.map(TestPacket::full)
}

/// A Block Ack is lost on the second link: its request goes there, and a Block Ack of the first link, whose bits for those MPDUs
/// are 0, fails none of them.
#[test]
fn a_missing_block_ack_is_requested_on_its_own_link() {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    config.multi_link.as_mut().unwrap().further[0].stations[0].link_ack_loss = Loss::Scripted([0].into());
    let mut script = Script::new(config);
    script.send(AP, ONE, full(0..1000));
    script.run();
    let requests: Vec<_> =
        script.frames.iter().filter(|frame| matches!(frame.frame, Frame::BlockAckReq { .. })).collect();
    assert_eq!(
        requests.iter().map(|frame| frame.link).collect::<Vec<_>>(),
        [LinkId(1)],
        "{}",
        script.story()
    );
    assert_eq!(script.bss.counters(AP).retries, 0, "nothing was sent twice: {}", script.story());
    let delivered: Vec<u32> = script.delivered.iter().map(|(_, number)| *number).collect();
    assert_eq!(delivered, (0..1000).collect::<Vec<_>>(), "in order");
}

/// With shared Block Acks a 1 settles an MPDU wherever it flew: the request on the second link finds nothing left to settle.
#[test]
fn a_shared_block_ack_settles_what_another_link_carried() {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::Shared);
    config.multi_link.as_mut().unwrap().further[0].stations[0].link_ack_loss =
        Loss::Scripted((0..20).collect());
    let mut script = Script::new(config);
    script.send(AP, ONE, full(0..1000));
    script.run();
    let counters = script.bss.counters(AP);
    assert_eq!((counters.retries, counters.mpdus_dropped), (0, 0), "{}", script.story());
    assert_eq!(script.delivered.len(), 1000);
}

/// `acks` and `map`: data down on the second link, data up and ACKs on the first.
#[test]
fn packets_go_on_the_links_that_are_chosen_for_them() {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    let common = config.multi_link.as_mut().unwrap();
    let [first, second] = [0, 1].map(|link| LinkSet::NONE.with(LinkId(link)));
    (common.map, common.acks) = (BothWays { down: second, up: first }.into(), AckLinks::Among(first));
    let mut script = Script::new(config);
    script.send(AP, ONE, full(0..20).chain([TestPacket::ack(20)]));
    script.send(ONE, AP, full(0..20).chain([TestPacket::ack(20)]));
    script.run();
    for frame in &script.frames {
        let Frame::Data { payload, .. } = &frame.frame else { continue };
        let is_ack = *payload == TestPacket::ack(20);
        let expected = if is_ack || frame.transmitter == ONE { LinkId(0) } else { LinkId(1) };
        assert_eq!(frame.link, expected, "{:?} of {:?}", payload, frame.transmitter);
    }
    assert_eq!(script.delivered.len(), 42, "{}", script.story());
}

/// `acks = "idlest"`: pure ACKs leave the first link, which has data for half of the time, once a beacon interval has shown that.
#[test]
fn acks_move_to_the_link_that_is_idle() {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    let common = config.multi_link.as_mut().unwrap();
    let data = LinkSet::NONE.with(LinkId(0));
    (common.map, common.acks) = (BothWays::same(data).into(), AckLinks::Idlest);
    let mut script = Script::new(config);
    for number in 0..600 {
        // Half a millisecond with data, and half of one with an ACK while both links are idle.
        if number % 2 == 0 {
            script.send(AP, ONE, full(0..10));
        } else {
            script.send(ONE, AP, [TestPacket::ack(number)]);
        }
        let until = script.now + Duration::from_micros(500);
        while script.bss.poll_timeout().is_some_and(|at| at < until) {
            script.step();
        }
        script.now = until;
    }
    let is_ack =
        |frame: &&AirFrame<TestPacket>| frame.transmitter == ONE && matches!(frame.frame, Frame::Data { .. });
    let known = Instant::ZERO + AckLinks::INTERVAL;
    let (later, earlier): (Vec<_>, Vec<_>) =
        script.frames.iter().filter(is_ack).partition(|ack| ack.at > known);
    assert!(earlier.len() > 90 && earlier.iter().all(|ack| ack.link == LinkId(0)), "the first that is free");
    assert!(later.len() > 190 && later.iter().all(|ack| ack.link == LinkId(1)), "the idlest");
}

/// `map = { vo = [1], be = [2] }`.
#[test]
fn each_category_has_its_links() {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    let categories = [AccessCategory::BestEffort, AccessCategory::Voice];
    let mut common = config.multi_link.take().unwrap();
    for (category, link) in categories.into_iter().zip([1, 0]) {
        *common.map.get_mut(category) = BothWays::same(LinkSet::NONE.with(LinkId(link)));
    }
    common.further.iter_mut().for_each(|link| link.categories = categories.to_vec());
    let config = BssConfig { categories: categories.to_vec(), multi_link: Some(common), ..config };
    let mut script = Script::new(config);
    for (category, number) in categories.into_iter().zip([0, 50]) {
        let [ap, client] = [AP, ONE].map(|station| script.bss.function(station, category));
        for packet in full(number..number + 20) {
            assert!(script.bss.enqueue(script.now, ap, client, packet));
        }
    }
    script.run();
    for frame in &script.frames {
        let Frame::Data { payload, .. } = &frame.frame else { continue };
        assert_eq!(frame.link, LinkId(u8::from(payload.number < 50)), "{payload:?}");
    }
    assert_eq!(script.delivered.len(), 40, "{}", script.story());
}

/// The window's part of the slower link: 1024 times 144.1 of 3026 Mb/s.
#[test]
fn proportional_shares_follow_the_rates() {
    let config = links(&[W160, (160, 2, 0)], 1024, WindowShare::Proportional, BlockAckScope::OwnLink);
    let mut script = Script::new(config);
    script.send(AP, ONE, full(0..4000));
    script.run();
    let most = |link: u8| {
        let mut sizes = std::collections::BTreeMap::new();
        for frame in script.frames.iter().filter(|frame| frame.link == LinkId(link)) {
            if matches!(frame.frame, Frame::Data { .. }) {
                *sizes.entry(frame.at).or_insert(0) += 1;
            }
        }
        sizes.values().copied().max().unwrap_or(0)
    };
    assert_eq!([most(0), most(1)], [975, 48]);
}

/// A packet of a client does not overtake, on another link, a Block Ack with compressed ACKs: the recipient would decompress
/// them against a later packet.
#[test]
fn no_packet_overtakes_a_block_ack_with_compressed_acks() {
    let mut config = links(&[W80, W80], 1024, WindowShare::Greedy, BlockAckScope::OwnLink);
    config.multi_link.as_mut().unwrap().map =
        BothWays { down: LinkSet::NONE.with(LinkId(0)), up: LinkSet::ALL }.into();
    let mut script = Script::new(config);
    let client = ONE.first_function();
    script.bss.enable_hack(client, None);
    let (nic, peer) = script.bss.nic(client, AP.first_function()).unwrap();
    nic.add(peer, &[7; 200]);
    script.send(AP, ONE, full(0..10));
    // Until the data ends and the Block Ack is due.
    while script.delivered.is_empty() {
        assert!(script.step());
    }
    script.send(ONE, AP, [TestPacket::ack(0)]);
    script.run();
    let block_ack = script
        .frames
        .iter()
        .find(|frame| matches!(&frame.frame, Frame::BlockAck { appended, .. } if appended.len() == 200));
    let ends = block_ack.map(|frame| frame.at + frame.duration).unwrap();
    let ack = script
        .frames
        .iter()
        .find(|frame| frame.transmitter == ONE && matches!(frame.frame, Frame::Data { .. }));
    let ack = ack.unwrap();
    assert_eq!(ack.link, LinkId(1), "the idle link");
    assert!(ack.at >= ends, "the packet begins at {} and the Block Ack ends at {ends}", ack.at);
}
