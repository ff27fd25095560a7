//! `[hack]`.

use tacit_proto::hack::{self, Coding};
use tacit_proto::units::Duration;

use tacit_link::wifi::{HackCarrier, HackRoom};

use super::kind::{Choice, OrNone, Own, Span, Whole, or};
use super::{Field, Keys, Usual};
use crate::input::{Mismatch, Value, byte_count, within};
use crate::{HackPlan, HackRule, HackVariant};
use tacit_proto::units::Bytes;

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
        appended_limit: usual.appended_limit,
        mu_room: HackRoom::Forecast,
        mu_carrier: HackCarrier::BlockAck,
    }
}

/// Range of processing and waiting times of hosts.
pub(super) const HOST_TIME: Span = Span::between(Duration::from_micros(1), Duration::from_secs(1));

type Hack<K> = Field<HackPlan, K>;

/// The default of the coding depends on this key.
pub(crate) const RULE: Hack<Choice<HackRule>> = Hack {
    name: "rule",
    kind: Choice(&[("every", HackRule::Every), ("airtime", HackRule::Airtime)]),
    usual: Usual::Described("`\"every\"`; `\"airtime\"` for 802.11ax and 802.11be"),
    meaning: "which of the waiting ACKs ride: every one, as in the paper; or of those that say the same one in `one-in`, and \
              none where packets take less airtime. ACKs of `variant = \"opportunistic\"` are packets too: of those every \
              one rides",
    of: |hack| &mut hack.rule,
};

pub(crate) const HACK: Keys<HackPlan> = &[
    &Hack {
        name: "variant",
        kind: Choice(VARIANTS),
        usual: Usual::Field,
        meaning: "when ACKs wait for a link-layer ACK: never; while the last PPDU announced more data; then, and \
                  while TCP timestamps say that data is about to come; never, but each is queued as a packet too, and \
                  the first opportunity counts; or for a fixed time",
        of: |hack| &mut hack.variant,
    },
    &Hack {
        name: "timer",
        kind: HOST_TIME,
        usual: Usual::Field,
        meaning: "waiting time of the `timer` variant",
        of: |hack| &mut hack.timer,
    },
    &RULE,
    &Hack {
        name: "one-in",
        kind: Whole(1, 1_000),
        usual: Usual::Field,
        meaning: "with `rule = \"airtime\"`: of ACKs that come together and differ in their number alone, one in so many \
                  rides after the first, and the last; 1 thins nothing. A sender with `tcp.byte-counting-limit` grows by less per ACK",
        of: |hack| &mut hack.one_in,
    },
    &Hack {
        name: "coding",
        kind: Choice(&[("per-ack", Coding::PerAck), ("batch", Coding::Batch)]),
        usual: Usual::Described("`\"per-ack\"`; `\"batch\"` with `rule = \"airtime\"`"),
        meaning: "each ACK coded by itself, or the ACKs of a frame together",
        of: |hack| &mut hack.coding,
    },
    &Hack {
        name: "turnaround",
        kind: HOST_TIME,
        usual: Usual::Field,
        meaning: "time from the reception of data until its compressed ACKs are in the NIC",
        of: |hack| &mut hack.turnaround,
    },
    &Hack {
        name: "hold-limit",
        kind: HOST_TIME,
        usual: Usual::Field,
        meaning: "longest wait, with every variant",
        of: |hack| &mut hack.hold_limit,
    },
    &Hack {
        name: "appended-limit",
        kind: OrNone(Own {
            read: bytes,
            write: |bytes| format!("\"{bytes} B\""),
            allowed: "16 B to 65535 B",
        }),
        usual: Usual::Field,
        meaning: "most bytes appended to one link-layer ACK; the rest goes to the next. Where it is given, no ACK goes as a \
                  packet to save airtime",
        of: |hack| &mut hack.appended_limit,
    },
    &Hack {
        name: "mu-room",
        kind: Own {
            read: mu_room,
            write: |room| match room {
                HackRoom::Forecast => "\"forecast\"".to_owned(),
                HackRoom::Fixed(bytes) => format!("\"{bytes} B\""),
            },
            allowed: "\"forecast\", or 0 B to 65535 B",
        },
        usual: Usual::Field,
        meaning: "with `wifi.ofdma`: bytes for compressed ACKs in each user's Block Ack, whose length the access point fixes with its \
                  trigger: by the bytes that each appended lately per MPDU, or always so many; ACKs that do not fit wait for the \
                  next",
        of: |hack| &mut hack.mu_room,
    },
    &Hack {
        name: "mu-carrier",
        kind: Choice(&[("block-ack", HackCarrier::BlockAck), ("own-mpdu", HackCarrier::OwnMpdu)]),
        usual: Usual::Field,
        meaning: "with `wifi.ofdma`: where compressed ACKs are in an answer to a trigger: inside the Block Ack, or behind it in an MPDU of \
                  their own, 38 bytes longer (an Action No Ack frame), which leaves the control frame as it is in the standard",
        of: |hack| &mut hack.mu_carrier,
    },
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
