//! The table of schemes, and what each changes.

use std::mem::discriminant;
use std::num::NonZeroU64;

use tacit_between::hack::Coding;
use tacit_congestion::Algorithm;
use tacit_link::queue::AckFilter;
use tacit_link::wifi::{BothWays, LinkAcks, ReverseDirection, StreamQueues};
use tacit_packet::units::Duration;
use tacit_tack_proto::Lists;
use tacit_tcp::{AckPolicy, ReceiveAutotuning};

use crate::{
    AckRule, ApAcks, ApplicationKind, HackVariant, Hop, RateChoice, RepairFrom, Scenario, Transport, Wifi,
    WifiAckFilter,
};

/// A named change to a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// Name on the command line.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    /// Its role in a comparison.
    pub role: Role,
    /// Whether it is compared by default.
    pub listing: Listing,
    /// What has to change for it; `None` for reference schemes.
    pub side: Option<Side>,
    /// Whether `tacit advise` tries it.
    pub is_advised: bool,
    pub(super) apply: fn(&mut Scenario),
}

/// Role of a scheme in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The reference for gains.
    Baseline,
    /// The upper bound: no transport carries more data. Other schemes are shown as a fraction of it.
    Bound,
    /// A scheme under evaluation: TCP, or another treatment of its ACKs.
    Candidate,
    /// A scheme under evaluation that replaces TCP by another transport.
    Transport,
}

/// What has to change for a scheme, from the smallest change to the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Receivers.
    Receivers,
    /// Senders.
    Senders,
    /// Software of access points or drivers.
    Software,
    /// Both ends, to another transport.
    Transport,
    /// Wi-Fi chips, to an option of 802.11.
    ChipOption,
    /// Firmware of Wi-Fi chips.
    Firmware,
}

impl Side {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Receivers, Self::Senders, Self::Software, Self::Transport, Self::ChipOption, Self::Firmware];

    /// Whether it takes other Wi-Fi chips or their firmware.
    pub fn needs_chips(self) -> bool {
        matches!(self, Self::ChipOption | Self::Firmware)
    }

    /// Whether it requires a Wi-Fi hop.
    pub fn needs_wifi(self) -> bool {
        self == Self::Software || self.needs_chips()
    }
}

/// When a scheme is included in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// By default, unless other schemes are named.
    Default,
    /// Only if it is named, or all schemes are requested.
    ByName,
}

/// All schemes, in the order of the tables.
pub const ALL: &[Scheme] = &[
    Scheme { name: "stock", summary: "TCP as the scenario has it", role: Role::Baseline, ..AS_IT_IS }
        .listed()
        .doing(stock_acks),
    firmware("hack-more-data", "TCP/HACK: ACKs ride on link-layer ACKs while more data is announced")
        .listed()
        .advised()
        .doing(|scenario| tcp_hack(scenario, HackVariant::MoreData, Some(Coding::PerAck))),
    firmware("hack-batch", "TCP/HACK while more data is announced, the ACKs of a frame coded together")
        .listed()
        .advised()
        .doing(|scenario| tcp_hack(scenario, HackVariant::MoreData, Some(Coding::Batch))),
    firmware("hack-echo", "TCP/HACK while more data is announced, or due by the echoes of TCP timestamps")
        .doing(|scenario| tcp_hack(scenario, HackVariant::TimestampEcho, None)),
    firmware("hack-opportunistic", "TCP/HACK: ACKs are queued as packets too, whichever goes first")
        .listed()
        .doing(|scenario| tcp_hack(scenario, HackVariant::Opportunistic, None)),
    firmware("hack-timer", "TCP/HACK: ACKs wait for a fixed time")
        .listed()
        .doing(|scenario| tcp_hack(scenario, HackVariant::Timer, None)),
    receivers("tcp-l1", "stock with an ACK for each segment")
        .listed()
        .doing(|scenario| acknowledge_every(scenario, 1)),
    receivers("tcp-l2", "stock with one ACK per 2 segments").doing(|scenario| acknowledge_every(scenario, 2)),
    receivers("tcp-l4", "stock with one ACK per 4 segments")
        .listed()
        .advised()
        .doing(|scenario| acknowledge_every(scenario, 4)),
    receivers("tcp-l8", "stock with one ACK per 8 segments")
        .listed()
        .advised()
        .doing(|scenario| acknowledge_every(scenario, 8)),
    receivers("tcp-l16", "stock with one ACK per 16 segments")
        .listed()
        .advised()
        .doing(|scenario| acknowledge_every(scenario, 16)),
    receivers("tcp-linux", "Linux's receiver: GRO, an adaptive delay, quick ACKs, compressed SACKs")
        .doing(|scenario| acknowledge(scenario, AckPolicy::Linux(scenario.acks.linux))),
    receivers(
        "quic-ack2",
        "QUIC's receiver: every 2 packets or 25 ms (RFC 9000), as tquic and lsquic have it",
    )
    .doing(|scenario| acknowledge(scenario, AckPolicy::quic_ack2())),
    receivers(
        "quic-ackfreq",
        "QUIC with ACK_FREQUENCY, by default every 10 packets or 25 ms, reordering threshold 3",
    )
    .advised()
    .doing(|scenario| acknowledge(scenario, scenario.acks.ack_frequency)),
    receivers(
        "quinn",
        "quinn's: every 2 packets of up to 128 that it takes at once, and the room it has after each eighth",
    )
    .doing(|scenario| {
        acknowledge(scenario, AckPolicy::quinn());
        scenario.tcp.window_update_bytes = scenario.tcp.window_update_bytes.or(QUINN_UPDATE_BYTES);
    }),
    receivers(
        "quic-go",
        "quic-go's: every 2 packets of up to 32 that it handles before it sends, and its room",
    )
    .doing(|scenario| {
        acknowledge(scenario, AckPolicy::quic_go());
        scenario.tcp.window_update_bytes = scenario.tcp.window_update_bytes.or(QUIC_GO_UPDATE_BYTES);
    }),
    receivers("aioquic", "aioquic's: 1.4 ms after the first packet, however many follow")
        .doing(|scenario| acknowledge(scenario, AckPolicy::aioquic())),
    receivers("chrome", "Chrome's: every 10 packets after the first 100, or RTT_min/4")
        .advised()
        .doing(|scenario| acknowledge(scenario, AckPolicy::chrome())),
    receivers("neqo", "Firefox's: 4 ACKs a round trip, 2 to 256 packets each")
        .advised()
        .doing(|scenario| acknowledge(scenario, AckPolicy::neqo())),
    receivers(
        "picoquic",
        "picoquic's: a quarter of the packets of a round trip, up to 32 or 64, or RTT_min/4 up to 10 ms",
    )
    .advised()
    .doing(|scenario| acknowledge(scenario, AckPolicy::picoquic())),
    receivers("quiche", "Cloudflare's quiche: every packet, without a delay")
        .doing(|scenario| acknowledge(scenario, AckPolicy::quiche())),
    receivers("mvfst", "mvfst's: every 10 packets, or RTT/4 up to 25 ms, 5 read at once")
        .doing(|scenario| acknowledge(scenario, AckPolicy::mvfst())),
    receivers("s2n-quic", "s2n-quic's: every 10 packets or 25 ms, and the room it has after each tenth")
        .doing(|scenario| {
            acknowledge(scenario, AckPolicy::s2n_quic());
            scenario.tcp.window_update_bytes = scenario.tcp.window_update_bytes.or(S2N_UPDATE_BYTES);
        }),
    receivers(
        "msquic",
        "msquic's: every 2 packets, and every 45 once its sender asks, all that was read at once",
    )
    .doing(|scenario| acknowledge(scenario, AckPolicy::msquic())),
    receivers("tack-lite", "TACK's rate through QUIC's extension: only RTT_min/4 counts")
        .advised()
        .doing(|scenario| acknowledge(scenario, AckPolicy::tack_lite())),
    software("cake-ack-filter", "stock with CAKE's ACK filter in every queue")
        .advised()
        .doing(|scenario| filter_acks(scenario, WifiAckFilter::Cake, AckFilter::Cake)),
    software("driver-replace", "stock with Wi-Fi drivers that put an ACK in the place of the one before")
        .advised()
        .doing(|scenario| filter_acks(scenario, WifiAckFilter::DriverReplace, AckFilter::Off)),
    software("driver-hold", "stock with Wi-Fi drivers that hold ACKs back: one in 8, or after 5 ms")
        .advised()
        .doing(|scenario| filter_acks(scenario, WifiAckFilter::DriverHold, AckFilter::Off)),
    receivers("thin", "stock where ACKs are held back while the link they leave by is busy (tacit thin)")
        .advised()
        .doing(|scenario| filter_acks(scenario, WifiAckFilter::Thin, AckFilter::Thin)),
    candidate("rdg", "stock where a TXOP's holder grants its peer the rest of it for ACKs", Side::ChipOption)
        .advised()
        .doing(|scenario| {
            stock_acks(scenario);
            // For standards without grants, this equals the stock scheme.
            for hop in scenario.wifi.iter_mut().filter(|hop| hop.bss.standard.phy().aggregation.is_some()) {
                (hop.bss.reverse_direction, hop.link_acks) = (hop.grant, BothWays::default());
            }
        }),
    software("fastack", "stock with an access point that acknowledges once the Block Ack has come")
        .advised()
        .doing(|scenario| {
            stock_acks(scenario);
            if let Some(hop) = &mut scenario.wifi {
                (hop.ap_acks, hop.link_acks) = (ApAcks::FastAck, BothWays::default());
                hop.bss.stream_queues = StreamQueues::Joint;
            }
            // The access point's agent requires link-layer ACKs from all clients.
            scenario.overrides.iter_mut().for_each(|client| client.link_acks = None);
        }),
    software("fwp", "a link without retransmissions, placeholders in TCP, and repair over HTTP")
        .doing(|scenario| fwp(scenario, LinkAcks::None)),
    software(
        "fwp-ap-repair",
        "FWP where clients ask the access point for lost MPDUs, before they ask the server",
    )
    .doing(|scenario| {
        fwp(scenario, LinkAcks::Deferred);
        let Some(hop) = scenario.wifi.as_mut().filter(|hop| hop.link_acks.down == LinkAcks::Deferred) else {
            return;
        };
        // A client has one queue, and one sequence of frame numbers, for all streams together.
        hop.bss.stream_queues = StreamQueues::Joint;
        // A hole may be detected just after a request. It then waits for the next request, and another period for
        // its response.
        let usual = hop.bss.repair.period + hop.bss.repair.period;
        if scenario.fwp.shim.settle == Duration::ZERO {
            scenario.fwp.shim.settle = usual;
        }
    }),
    senders("cubic", "stock with CUBIC, regardless of tcp.congestion")
        .doing(|scenario| control(scenario, Algorithm::Cubic(scenario.cubic))),
    senders("newreno", "stock with NewReno").doing(|scenario| control(scenario, Algorithm::NewReno)),
    senders("bbr", "stock with BBR, version 1").advised().doing(|scenario| control(scenario, Algorithm::BBR)),
    senders("bbr3", "stock with BBR, version 3").doing(|scenario| control(scenario, Algorithm::Bbr3)),
    senders("prague", "stock with Prague, the congestion control of L4S, and ECN")
        .doing(|scenario| control(scenario, Algorithm::Prague)),
    senders(
        "rre",
        "TCP-RRE: a sender that paces by the receive rate read off timestamps, not by the arrival of ACKs",
    )
    .advised()
    .doing(|scenario| {
        stock_acks(scenario);
        scenario.tcp.congestion.algorithm = Algorithm::Rre(scenario.rre);
    }),
    receivers(
        "rsfc",
        "stock whose receivers keep the queue on the way of data short by the window they offer: \
         receive-side flow control",
    )
    .doing(|scenario| {
        stock_acks(scenario);
        scenario.tcp.receive_buffer = ReceiveAutotuning::LINUX_START;
        scenario.tcp.receive_autotuning = ReceiveAutotuning::RSFC;
    }),
    transport(
        "tack",
        "TACK, a transport that replaces TCP: at most 4 ACKs per round trip and 40 per second, paced by its \
         own BBR",
    )
    .listed()
    .advised()
    .doing(tack),
    transport(
        "tack-paper",
        "TACK whose ACKs follow the paper's equation: 4 in a smallest round-trip time, or one per 2 \
         packets",
    )
    .doing(tack_paper),
    transport("tack-poor", "TACK by the paper whose ACKs have room for one block of each list").doing(
        |scenario| {
            tack_paper(scenario);
            scenario.tack.config.lists = Lists::Poor;
        },
    ),
    transport(
        "tack-l1",
        "TACK by the paper with an ACK for each packet where those are rarer than 4 a round trip",
    )
    .doing(|scenario| {
        tack_paper(scenario);
        scenario.tack.every = Some(1);
    }),
    transport("tack-cubic", "TACK with CUBIC").doing(|scenario| {
        tack(scenario);
        scenario.tack.config.congestion.algorithm = Algorithm::CUBIC;
    }),
    Scheme {
        role: Role::Transport,
        ..firmware(
            "tack-hack",
            "TACK whose ACKs ride on link-layer ACKs, as they are, while more data is announced",
        )
    }
    .doing(|scenario| {
        tack(scenario);
        hack(scenario, HackVariant::MoreData, None);
    }),
    Scheme {
        name: "udp",
        summary: "saturating UDP: no ACKs at all, the upper bound",
        role: Role::Bound,
        ..AS_IT_IS
    }
    .listed()
    .doing(|scenario| {
        for traffic in scenario.shared_traffic_mut() {
            traffic.transport = Transport::Udp;
            traffic.udp_rate = None;
            traffic.udp_report = None;
            traffic.application = ApplicationKind::Bulk;
        }
        scenario.hack.variant = None;
    }),
];

/// An eighth of the window of a stream: "12500 kB/s" times "100 ms", `STREAM_RWND` of quinn and noq.
const QUINN_UPDATE_BYTES: Option<NonZeroU64> = NonZeroU64::new(1_250_000 / 8);

/// A quarter (`WindowUpdateThreshold` of quic-go) of the 2 MiB to which the window of a stream grows from 512 KiB here: it doubles until it
/// is four times what is under way. Captures have an announcement per 550 to 600 kB.
const QUIC_GO_UPDATE_BYTES: Option<NonZeroU64> = NonZeroU64::new((2 << 20) / 4);

/// A tenth of the window of a stream: that of "150" Mb/s and "100" ms, twice, `InitialMaxData::RECOMMENDED` of s2n-quic.
const S2N_UPDATE_BYTES: Option<NonZeroU64> = NonZeroU64::new(3_750_000 / 10);

/// Stacks whose receivers have the policy of a scheme, with the names of their constants: `MAX_RETR_PACKETS_SINCE_LAST_ACK`
/// and `ACK_TIMEOUT` of lsquic, and `ack_eliciting_threshold` of tquic are 2 packets and 25 ms. noq is a fork of quinn.
pub(super) const ALSO: [(&str, &str); 3] =
    [("noq", "quinn"), ("lsquic", "quic-ack2"), ("tquic", "quic-ack2")];

/// A candidate that is compared only if it is named. `side` has to change for it.
const fn candidate(name: &'static str, summary: &'static str, side: Side) -> Scheme {
    Scheme { name, summary, side: Some(side), ..AS_IT_IS }
}

/// A candidate of receivers.
const fn receivers(name: &'static str, summary: &'static str) -> Scheme {
    candidate(name, summary, Side::Receivers)
}

/// A candidate of senders.
const fn senders(name: &'static str, summary: &'static str) -> Scheme {
    candidate(name, summary, Side::Senders)
}

/// A candidate of access points or drivers.
const fn software(name: &'static str, summary: &'static str) -> Scheme {
    candidate(name, summary, Side::Software)
}

/// A candidate of the firmware of Wi-Fi chips.
const fn firmware(name: &'static str, summary: &'static str) -> Scheme {
    candidate(name, summary, Side::Firmware)
}

/// Like [`candidate`], with another transport than TCP.
const fn transport(name: &'static str, summary: &'static str) -> Scheme {
    Scheme { role: Role::Transport, ..candidate(name, summary, Side::Transport) }
}

impl Scheme {
    /// It is compared by default.
    const fn listed(self) -> Self {
        Self { listing: Listing::Default, ..self }
    }

    /// `tacit advise` tries it.
    const fn advised(self) -> Self {
        Self { is_advised: true, ..self }
    }

    /// What it changes.
    const fn doing(self, apply: fn(&mut Scenario)) -> Self {
        Self { apply, ..self }
    }
}

/// The scenario as written, for figures to which no scheme applies.
pub static AS_WRITTEN: Scheme = AS_IT_IS;

const AS_IT_IS: Scheme = Scheme {
    name: "as-written",
    summary: "the transport and acknowledgments of the scenario itself",
    role: Role::Candidate,
    listing: Listing::ByName,
    side: None,
    is_advised: false,
    apply: |_| {},
};

/// Appends pure ACKs of any transport to link-layer ACKs, according to `variant` and the scenario's rule. `None`
/// selects the default coding of the rule.
fn hack(scenario: &mut Scenario, variant: HackVariant, coding: Option<Coding>) {
    // An ACK can be handled in only one way, so settings that exclude the driver are reset.
    if let Some(hop) = &mut scenario.wifi {
        (hop.ack_filter, hop.ap_acks) = (WifiAckFilter::Off, ApAcks::None);
        (hop.link_acks, hop.bss.stream_queues) = (BothWays::default(), StreamQueues::Joint);
    }
    scenario.hack.variant = Some(variant);
    scenario.hack.coding = coding.unwrap_or(scenario.hack.rule.usual_coding());
    scenario.fwp.repair = None;
}

/// TCP whose ACKs are appended to link-layer ACKs.
fn tcp_hack(scenario: &mut Scenario, variant: HackVariant, coding: Option<Coding>) {
    stock_acks(scenario);
    hack(scenario, variant, coding);
}

/// Data to the clients is sent with policy `down`, without immediate ACKs. The clients' shims insert placeholders for
/// lost data, and programs repair them.
fn fwp(scenario: &mut Scenario, down: LinkAcks) {
    stock_acks(scenario);
    let has_edca = |hop: &&mut Wifi| hop.bss.standard.phy().aggregation.is_some();
    // The policy No Ack requires aggregation.
    let Some(hop) = scenario.wifi.as_mut().filter(has_edca) else { return };
    // ACKs and requests use the usual uplink. Settings of individual clients are kept.
    hop.link_acks = BothWays { down, up: LinkAcks::Normal };
    hop.ap_acks = ApAcks::None;
    if hop.rate_control == RateChoice::Minstrel {
        hop.rate_control = RateChoice::Fixed;
    }
    hop.bss.reverse_direction = ReverseDirection::Off;
    if hop.ack_filter.hold().is_some() {
        hop.ack_filter = WifiAckFilter::Off;
    }
    scenario.fwp.repair = Some(RepairFrom::Server);
}

/// Receivers use the scenario's ACK policy.
fn stock_acks(scenario: &mut Scenario) {
    acknowledge(scenario, scenario.tcp.ack_policy);
}

/// TCP with `algorithm`. If the scenario has the same kind of controller, its options are kept.
fn control(scenario: &mut Scenario, algorithm: Algorithm) {
    stock_acks(scenario);
    let current = &mut scenario.tcp.congestion.algorithm;
    if discriminant(current) != discriminant(&algorithm) {
        *current = algorithm;
    }
}

fn filter_acks(scenario: &mut Scenario, wifi: WifiAckFilter, pipes: AckFilter) {
    stock_acks(scenario);
    scenario.wifi.iter_mut().for_each(|hop| hop.ack_filter = wifi);
    for hop in &mut scenario.hops {
        if let Hop::Pipe(link) = hop {
            (link.down.ack_filter, link.up.ack_filter) = (pipes, pipes);
        }
    }
}

fn acknowledge_every(scenario: &mut Scenario, segments: u32) {
    scenario.acks.delayed.every = segments;
    acknowledge(scenario, AckPolicy::Delayed(scenario.acks.delayed));
}

fn acknowledge(scenario: &mut Scenario, policy: AckPolicy) {
    carry_over(scenario, Transport::Tcp);
    scenario.tcp.ack_policy = policy;
}

/// TACK with the scenario's settings.
fn tack(scenario: &mut Scenario) {
    carry_over(scenario, Transport::Tack);
}

/// TACK with the paper's equation for the ACK rate.
fn tack_paper(scenario: &mut Scenario) {
    tack(scenario);
    scenario.tack.rule = AckRule::Paper;
}

fn carry_over(scenario: &mut Scenario, transport: Transport) {
    scenario.shared_traffic_mut().for_each(|traffic| traffic.transport = transport);
    scenario.hack.variant = None;
}

impl Scheme {
    /// Its name on the command line; `None` for the scenario as written.
    pub fn argument(&self) -> Option<&'static str> {
        Some(self.name).filter(|name| *name != AS_WRITTEN.name)
    }

    /// The scheme with `role`, which must be the baseline or the bound, since there is exactly one of each.
    pub fn with_role(role: Role) -> &'static Self {
        ALL.iter().find(|scheme| scheme.role == role).expect("the table has every role")
    }

    /// A candidate that changes scenarios as this scheme does.
    pub(crate) fn under_another_name(&self, name: &'static str, summary: &'static str) -> Self {
        Self { name, summary, role: Role::Candidate, listing: Listing::ByName, ..*self }
    }

    /// Whether it takes other Wi-Fi chips or their firmware.
    pub fn needs_chips(&self) -> bool {
        self.side.is_some_and(Side::needs_chips)
    }

    /// The index of the scheme `name` in the table, which may be that of a stack with its policy; after the last one if it
    /// does not exist.
    pub fn position(name: &str) -> usize {
        let name = ALSO.iter().find(|(stack, _)| *stack == name).map_or(name, |(_, scheme)| scheme);
        ALL.iter().position(|scheme| scheme.name == name).unwrap_or(ALL.len())
    }
}

/// The schemes compared by default.
pub fn by_default() -> impl Iterator<Item = &'static Scheme> {
    ALL.iter().filter(|scheme| scheme.listing == Listing::Default)
}
