//! `[hack]`.

use tacit_between::hack::{self, Coding};
use tacit_packet::units::Duration;

use tacit_link::wifi::{HackCarrier, HackRoom};

use super::entry::{About, Field, Keys};
use super::kind::{Choice, OrNone, Own, Span, Whole, or};
use crate::input::{Mismatch, Value, byte_count, within};
use crate::{HackPlan, HackRule, HackVariant};
use tacit_packet::units::Bytes;

const VARIANTS: &[(&str, Option<HackVariant>)] = &[
    ("stock", None),
    ("more-data", Some(HackVariant::MoreData)),
    ("timestamp-echo", Some(HackVariant::TimestampEcho)),
    ("opportunistic", Some(HackVariant::Opportunistic)),
    ("timer", Some(HackVariant::Timer)),
];

/// The defaults.
pub(crate) fn usual() -> HackPlan {
    usual_of(HackRule::Every)
}

/// The defaults with this rule.
pub(crate) fn usual_of(rule: HackRule) -> HackPlan {
    let usual = hack::Config::default();
    HackPlan {
        variant: None,
        rule,
        // A current host needs even fewer ACKs: its own receive offload leaves less than one in eight.
        one_in: 8,
        // The paper finds no good value (section 3.2). This is the time of a few full A-MPDUs at 150 Mb/s.
        timer: Duration::from_millis(20),
        coding: rule.usual_coding(),
        turnaround: usual.turnaround,
        hold_limit: usual.hold_limit,
        overtake_limit: usual.overtake_limit,
        appended_limit: usual.appended_limit,
        mu_room: HackRoom::Forecast,
        mu_carrier: HackCarrier::BlockAck,
    }
}

/// Range of processing and waiting times of hosts.
pub(super) const HOST_TIME: Span = Span::between(Duration::from_micros(1), Duration::from_secs(1));

type Hack = About<HackPlan>;

/// The default of the coding depends on this key.
pub(crate) const RULE: Field<HackPlan, Choice<HackRule>> = Hack::named("rule")
    .means(
        "ACKs that ride: every one, as in the paper; or one in `one-in` of those that say the \
         same, and none where packets take less airtime",
    )
    .described("`\"every\"`; `\"airtime\"` for 802.11ax and 802.11be")
    .field(Choice(&[("every", HackRule::Every), ("airtime", HackRule::Airtime)]), |hack| &mut hack.rule);

pub(crate) const HACK: Keys<HackPlan> = &[
    &Hack::named("variant")
        .means(
            "ACKs wait for a link-layer ACK: never; while the last PPDU announced more data; also \
             while TCP timestamps do; never, but each is a packet too; for a fixed time",
        )
        .field(Choice(VARIANTS), |hack| &mut hack.variant),
    &Hack::named("timer")
        .means("waiting time of the `timer` variant")
        .field(HOST_TIME, |hack| &mut hack.timer),
    &RULE,
    &Hack::named("one-in")
        .means("of ACKs that say the same the first, one in this many, and the last ride")
        .field(Whole(1, 1_000), |hack| &mut hack.one_in),
    &Hack::named("coding")
        .means("each ACK coded by itself, or the ACKs of a frame together")
        .described("`\"per-ack\"`; `\"batch\"` with `rule = \"airtime\"`")
        .field(Choice(&[("per-ack", Coding::PerAck), ("batch", Coding::Batch)]), |hack| &mut hack.coding),
    &Hack::named("turnaround")
        .means("from the reception of data until its compressed ACKs are in the NIC")
        .field(HOST_TIME, |hack| &mut hack.turnaround),
    &Hack::named("hold-limit")
        .means("longest wait, with every variant")
        .field(HOST_TIME, |hack| &mut hack.hold_limit),
    &Hack::named("overtake-limit")
        .means("longest time in which ACKs overtake packets of a station that sends nothing")
        .field(HOST_TIME, |hack| &mut hack.overtake_limit),
    &Hack::named("appended-limit")
        .means("most bytes on one link-layer ACK; the rest goes to the next")
        .field(
            OrNone(Own { read: bytes, write: |bytes| format!("\"{bytes} B\""), allowed: "16 B to 65535 B" }),
            |hack| &mut hack.appended_limit,
        ),
    &Hack::named("mu-room")
        .means("with `wifi.ofdma`: bytes for compressed ACKs in each user's Block Ack")
        .field(
            Own {
                read: mu_room,
                write: |room| match room {
                    HackRoom::Forecast => "\"forecast\"".to_owned(),
                    HackRoom::Fixed(bytes) => format!("\"{bytes} B\""),
                },
                allowed: "\"forecast\", or 0 B to 65535 B",
            },
            |hack| &mut hack.mu_room,
        ),
    &Hack::named("mu-carrier")
        .means(
            "with `wifi.ofdma`: inside the Block Ack, or behind it in an Action No Ack frame, 38 \
             bytes longer",
        )
        .field(Choice(&[("block-ack", HackCarrier::BlockAck), ("own-mpdu", HackCarrier::OwnMpdu)]), |hack| {
            &mut hack.mu_carrier
        }),
];

/// A prediction, or a number of bytes.
fn mu_room(value: &Value) -> Result<HackRoom, Mismatch> {
    match value {
        Value::Text(text) if text == "forecast" => Ok(HackRoom::Forecast),
        other => {
            let bytes = within(Bytes(0)..=Bytes(65_535), byte_count)(other);
            bytes
                .map(|bytes| HackRoom::Fixed(bytes.0 as u32))
                .map_err(|mismatch| or(mismatch, "\"forecast\""))
        }
    }
}

/// A small number of bytes.
fn bytes(value: &Value) -> Result<u32, Mismatch> {
    within(Bytes(16)..=Bytes(65_535), byte_count)(value).map(|bytes| bytes.0 as u32)
}
