//! `[tack]`.

use tacit_proto::congestion::Algorithm;
use tacit_proto::tack::{Config, Lists, LossReports, RateFrom, StartUp, Timing};
use tacit_proto::units::Duration;

use super::kind::{Choice, Flag, Given, Span, Whole};
use super::tcp::{ACK_DELAY_LIMIT, BUFFER, CONTROLS as TCP_CONTROLS};
use super::{Field, Keys, Usual};
use crate::tack::{AckRule, TackPlan};

/// The one that TACK was designed with, and what TCP has but TCP-RRE, which reads TCP's timestamps.
const CONTROLS: [(&str, Algorithm); 6] = {
    let [cubic, newreno, bbr, vegas, copa, ..] = TCP_CONTROLS;
    [("tack-bbr", Algorithm::TACK_BBR), cubic, newreno, bbr, vegas, copa]
};

pub(crate) const RECEIVE_BUFFER: &str = "receive-buffer";
pub(crate) const RECEIVE_BUFFER_MAX: &str = "receive-buffer-max";

/// Of a scenario that says nothing.
pub(crate) fn usual() -> TackPlan {
    TackPlan::from(Config::default())
}

type Tack<K> = Field<TackPlan, K>;

pub(crate) const TACK: Keys<TackPlan> = &[
    &Tack {
        name: "ack-clock",
        kind: Choice(&[("tack", AckRule::Tack), ("paper", AckRule::Paper), ("delayed", AckRule::Delayed)]),
        usual: Usual::Field,
        meaning: "when receivers acknowledge: at the longest of the times in which `every` packets or two bursts arrive, of \
                  `beta`-th of a round trip as it is, and of `min-interval`; by the paper's letter, at the longer of \
                  `every` packets and `beta`-th of the smallest round-trip time; or every so many packets or after \
                  `ack-delay`, as TCP's delayed ACK. Schemes change it",
        of: |tack| &mut tack.rule,
    },
    &Tack {
        name: "beta",
        kind: Whole(2, 64),
        usual: Usual::Field,
        meaning: "ACKs per round-trip time, where packets are many; not with `\"delayed\"`",
        of: |tack| &mut tack.beta,
    },
    &Tack {
        name: "every",
        kind: Given(Whole(1, 255)),
        usual: Usual::Said("16; 2 with `\"paper\"` and `\"delayed\"`"),
        meaning: "full-sized packets per ACK, where they are few; with `\"delayed\"` always. Schemes change it",
        of: |tack| &mut tack.every,
    },
    &Tack {
        name: "min-interval",
        kind: Span::up_to(Duration::from_millis(255)),
        usual: Usual::Field,
        meaning: "with `\"tack\"`: least time between ACKs of a sender that paces by the rates they report (`tack-bbr`)",
        of: |tack| &mut tack.min_interval,
    },
    &Tack {
        name: "ack-delay",
        kind: ACK_DELAY_LIMIT,
        usual: Usual::Field,
        meaning: "with `\"delayed\"`: longest an ACK is held",
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
        meaning: "until the sender has found the rate: sixteen ACKs per round trip, an ACK per packet, or as `ack-clock` says",
        of: |tack| &mut tack.config.start_up,
    },
    &Tack {
        name: "lists",
        kind: Choice(&[("rich", Lists::Rich), ("poor", Lists::Poor)]),
        usual: Usual::Field,
        meaning: "blocks of received and of missing packets in a TACK: as many as the losses on both ways ask for; or \
                  one of each. Schemes change it",
        of: |tack| &mut tack.config.lists,
    },
    &Tack {
        name: "loss-reports",
        kind: Choice(&[("instant", LossReports::Instant), ("with-tack", LossReports::WithTack)]),
        usual: Usual::Field,
        meaning: "who finds a loss first: the receiver, which says so at once in an IACK; or whoever reads the next TACK",
        of: |tack| &mut tack.config.loss_reports,
    },
    &Tack {
        name: "timing",
        kind: Choice(&[("least-delay", Timing::LeastDelay), ("newest", Timing::Newest)]),
        usual: Usual::Field,
        meaning: "which packet of those that a TACK acknowledges measures the round-trip time: the one that was \
                  fastest on its way, or the last, as elsewhere",
        of: |tack| &mut tack.config.timing,
    },
    &Tack {
        name: "rate",
        kind: Choice(&[("receiver", RateFrom::Receiver), ("sender", RateFrom::Sender)]),
        usual: Usual::Field,
        meaning: "who measures the rate of delivery: the receiver by what arrives, or the sender by what ACKs say",
        of: |tack| &mut tack.config.rate_from,
    },
    &Tack {
        name: "congestion",
        kind: Choice(&CONTROLS),
        usual: Usual::Field,
        meaning: "congestion control, all of them paced; `tack-bbr` is the one that TACK was designed with, the others \
                  are those of `tcp.congestion`. Schemes change it",
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
        meaning: "at first; it grows to twice what a round trip brings",
        of: |tack| &mut tack.config.receive_buffer,
    },
    &Tack {
        name: RECEIVE_BUFFER_MAX,
        kind: BUFFER,
        usual: Usual::Field,
        meaning: "how far it grows",
        of: |tack| &mut tack.config.max_receive_buffer,
    },
    &Tack {
        name: "send-buffer",
        kind: BUFFER,
        usual: Usual::Field,
        meaning: "most octets in flight",
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
