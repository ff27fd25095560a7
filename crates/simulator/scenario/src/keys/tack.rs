//! `[tack]`.

use tacit_congestion::Algorithm;
use tacit_packet::units::Duration;
use tacit_tack_proto::{Config, Lists, LossReports, RateFrom, StartUp, Timing};

use super::entry::{About, Keys};
use super::kind::{Choice, Flag, Given, Span, Whole};
use super::tcp::{ACK_DELAY_LIMIT, BUFFER, CONTROLS as TCP_CONTROLS};
use crate::tack::{AckRule, TackPlan};

/// TACK's own controller, and those of TCP except TCP-RRE, which needs TCP's timestamps.
const CONTROLS: [(&str, Algorithm); 7] = {
    let [cubic, newreno, bbr, bbr3, vegas, copa, ..] = TCP_CONTROLS;
    [("tack-bbr", Algorithm::TACK_BBR), cubic, newreno, bbr, bbr3, vegas, copa]
};

pub(crate) const RECEIVE_BUFFER: &str = "receive-buffer";
pub(crate) const RECEIVE_BUFFER_MAX: &str = "receive-buffer-max";

/// The defaults.
pub(crate) fn usual() -> TackPlan {
    TackPlan::from(Config::default())
}

type Tack = About<TackPlan>;

pub(crate) const TACK: Keys<TackPlan> = &[
    &Tack::named("ack-clock")
        .means(
            "interval between ACKs: [TACK's law](../design/tack.md#when-the-receiver-speaks); \
             the paper's; `every` packets or `ack-delay`, as TCP. Schemes change it",
        )
        .field(
            Choice(&[("tack", AckRule::Tack), ("paper", AckRule::Paper), ("delayed", AckRule::Delayed)]),
            |tack| &mut tack.rule,
        ),
    &Tack::named("beta")
        .means("ACKs per round-trip time at high rates; not with `\"delayed\"`")
        .field(Whole(2, 64), |tack| &mut tack.beta),
    &Tack::named("every")
        .means("full-sized packets per ACK; by the laws at low rates. Schemes change it")
        .described("16; 2 with `\"paper\"` and `\"delayed\"`")
        .field(Given(Whole(1, 255)), |tack| &mut tack.every),
    &Tack::named("min-interval")
        .means("with `\"tack\"`: least time between ACKs to a sender with `tack-bbr`")
        .field(Span::up_to(Duration::from_millis(255)), |tack| &mut tack.min_interval),
    &Tack::named("ack-delay")
        .means("with `\"delayed\"`: longest delay of an ACK")
        .field(ACK_DELAY_LIMIT, |tack| &mut tack.ack_delay),
    &Tack::named("start-up")
        .means(
            "ACKs until the sender has found the rate: sixteen per round trip, one per packet, or as \
             `ack-clock`",
        )
        .field(
            Choice(&[
                ("often", StartUp::Often),
                ("per-packet", StartUp::PerPacket),
                ("as-always", StartUp::AsAlways),
            ]),
            |tack| &mut tack.config.start_up,
        ),
    &Tack::named("lists")
        .means(
            "blocks of received and missing packets in a TACK: by the losses, or one of each. \
             Schemes change it",
        )
        .field(Choice(&[("rich", Lists::Rich), ("poor", Lists::Poor)]), |tack| &mut tack.config.lists),
    &Tack::named("loss-reports")
        .means(
            "losses are found by the receiver, which sends an IACK at once, or by the sender with \
             the next TACK",
        )
        .field(Choice(&[("instant", LossReports::Instant), ("with-tack", LossReports::WithTack)]), |tack| {
            &mut tack.config.loss_reports
        }),
    &Tack::named("timing")
        .means("packet that measures the round-trip time")
        .field(Choice(&[("least-delay", Timing::LeastDelay), ("newest", Timing::Newest)]), |tack| {
            &mut tack.config.timing
        }),
    &Tack::named("rate")
        .means("who measures the delivery rate")
        .field(Choice(&[("receiver", RateFrom::Receiver), ("sender", RateFrom::Sender)]), |tack| {
            &mut tack.config.rate_from
        }),
    &Tack::named("congestion")
        .means("always paced. Schemes change it")
        .field(Choice(&CONTROLS), |tack| &mut tack.config.congestion.algorithm),
    &Tack::named("ecn")
        .means("explicit congestion notification (RFC 3168); needs a queue that marks")
        .field(Flag, |tack| &mut tack.config.ecn),
    &Tack::named(RECEIVE_BUFFER).means("initial size").field(BUFFER, |tack| &mut tack.config.receive_buffer),
    &Tack::named(RECEIVE_BUFFER_MAX)
        .means("upper bound of the receive buffer")
        .field(BUFFER, |tack| &mut tack.config.max_receive_buffer),
    &Tack::named("send-buffer")
        .means("most bytes in flight")
        .field(BUFFER, |tack| &mut tack.config.send_buffer),
    &Tack::named("initial-window")
        .means("packets sent before the first ACK (RFC 6928)")
        .field(Whole(1, 1_000), |tack| &mut tack.config.congestion.initial_window),
];
