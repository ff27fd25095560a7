//! `[tack]`.

use tacit_proto::congestion::Algorithm;
use tacit_proto::tack::{Config, Lists, LossReports, RateFrom, StartUp, Timing};
use tacit_proto::units::Duration;

use super::kind::{Choice, Flag, Given, Span, Whole};
use super::tcp::{ACK_DELAY_LIMIT, BUFFER, CONTROLS as TCP_CONTROLS};
use super::{Field, Keys, Usual};
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

type Tack<K> = Field<TackPlan, K>;

pub(crate) const TACK: Keys<TackPlan> = &[
    &Tack {
        name: "ack-clock",
        kind: Choice(&[("tack", AckRule::Tack), ("paper", AckRule::Paper), ("delayed", AckRule::Delayed)]),
        usual: Usual::Field,
        meaning: "interval between ACKs. `\"tack\"`: the longest of the time of `every` packets or two bursts, a \
                  `beta`-th of the current round trip, and `min-interval`. `\"paper\"`: the longer of the time of \
                  `every` packets and a `beta`-th of the smallest round trip. `\"delayed\"`: `every` packets or \
                  `ack-delay`, as TCP's delayed ACK. Schemes change it",
        of: |tack| &mut tack.rule,
    },
    &Tack {
        name: "beta",
        kind: Whole(2, 64),
        usual: Usual::Field,
        meaning: "ACKs per round-trip time at high rates; not with `\"delayed\"`",
        of: |tack| &mut tack.beta,
    },
    &Tack {
        name: "every",
        kind: Given(Whole(1, 255)),
        usual: Usual::Described("16; 2 with `\"paper\"` and `\"delayed\"`"),
        meaning: "full-sized packets per ACK at low rates; with `\"delayed\"` always. Schemes change it",
        of: |tack| &mut tack.every,
    },
    &Tack {
        name: "min-interval",
        kind: Span::up_to(Duration::from_millis(255)),
        usual: Usual::Field,
        meaning: "with `\"tack\"`: least time between ACKs to a sender that paces by reported rates (`tack-bbr`)",
        of: |tack| &mut tack.min_interval,
    },
    &Tack {
        name: "ack-delay",
        kind: ACK_DELAY_LIMIT,
        usual: Usual::Field,
        meaning: "with `\"delayed\"`: longest delay of an ACK",
        of: |tack| &mut tack.ack_delay,
    },
    &Tack {
        name: "start-up",
        kind: Choice(&[
            ("often", StartUp::Often),
            ("per-packet", StartUp::PerPacket),
            ("as-always", StartUp::AsAlways),
        ]),
        usual: Usual::Field,
        meaning: "ACKs until the sender has found the rate: sixteen per round trip, one per packet, or as \
                  `ack-clock`",
        of: |tack| &mut tack.config.start_up,
    },
    &Tack {
        name: "lists",
        kind: Choice(&[("rich", Lists::Rich), ("poor", Lists::Poor)]),
        usual: Usual::Field,
        meaning: "blocks of received and missing packets in a TACK: as many as the losses in both directions \
                  require, or one of each. Schemes change it",
        of: |tack| &mut tack.config.lists,
    },
    &Tack {
        name: "loss-reports",
        kind: Choice(&[("instant", LossReports::Instant), ("with-tack", LossReports::WithTack)]),
        usual: Usual::Field,
        meaning: "detection of losses: by the receiver, which sends an IACK at once, or by the sender with the next \
                  TACK",
        of: |tack| &mut tack.config.loss_reports,
    },
    &Tack {
        name: "timing",
        kind: Choice(&[("least-delay", Timing::LeastDelay), ("newest", Timing::Newest)]),
        usual: Usual::Field,
        meaning: "packet that measures the round-trip time of a TACK: the one with the least delay, or the last",
        of: |tack| &mut tack.config.timing,
    },
    &Tack {
        name: "rate",
        kind: Choice(&[("receiver", RateFrom::Receiver), ("sender", RateFrom::Sender)]),
        usual: Usual::Field,
        meaning: "measurement of the delivery rate: by the receiver from arrivals, or by the sender from ACKs",
        of: |tack| &mut tack.config.rate_from,
    },
    &Tack {
        name: "congestion",
        kind: Choice(&CONTROLS),
        usual: Usual::Field,
        meaning: "congestion control, always paced; `tack-bbr` was designed with TACK, the others are those of \
                  `tcp.congestion`. Schemes change it",
        of: |tack| &mut tack.config.congestion.algorithm,
    },
    &Tack {
        name: "ecn",
        kind: Flag,
        usual: Usual::Field,
        meaning: "explicit congestion notification (RFC 3168); needs a queue that marks",
        of: |tack| &mut tack.config.ecn,
    },
    &Tack {
        name: RECEIVE_BUFFER,
        kind: BUFFER,
        usual: Usual::Field,
        meaning: "initial size; it grows to twice the data of a round trip",
        of: |tack| &mut tack.config.receive_buffer,
    },
    &Tack {
        name: RECEIVE_BUFFER_MAX,
        kind: BUFFER,
        usual: Usual::Field,
        meaning: "upper bound of the receive buffer",
        of: |tack| &mut tack.config.max_receive_buffer,
    },
    &Tack {
        name: "send-buffer",
        kind: BUFFER,
        usual: Usual::Field,
        meaning: "most bytes in flight",
        of: |tack| &mut tack.config.send_buffer,
    },
    &Tack {
        name: "initial-window",
        kind: Whole(1, 1_000),
        usual: Usual::Field,
        meaning: "packets sent before the first ACK (RFC 6928)",
        of: |tack| &mut tack.config.congestion.initial_window,
    },
];
