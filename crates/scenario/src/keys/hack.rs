//! `[hack]`.

use tacit_proto::hack::{self, Coding};
use tacit_proto::units::Duration;

use super::kind::{Choice, OrNone, Own, Span};
use super::{Field, Keys, Usual};
use crate::input::{Mismatch, Value, byte_count, within};
use crate::{HackPlan, HackVariant};
use tacit_proto::units::Bytes;

const VARIANTS: &[(&str, Option<HackVariant>)] = &[
    ("stock", None),
    ("more-data", Some(HackVariant::MoreData)),
    ("timestamp-echo", Some(HackVariant::TimestampEcho)),
    ("opportunistic", Some(HackVariant::Opportunistic)),
    ("timer", Some(HackVariant::Timer)),
];

/// Of a scenario that says nothing.
pub(crate) fn usual() -> HackPlan {
    let usual = hack::Config::default();
    HackPlan {
        variant: None,
        // The paper finds no good value (section 3.2); this is a few full A-MPDUs at 150 Mb/s.
        timer: Duration::from_millis(20),
        coding: usual.coding,
        turnaround: usual.turnaround,
        hold_limit: usual.hold_limit,
        appended_limit: usual.appended_limit,
    }
}

/// How long hosts may take or wait.
pub(super) const HOST_TIME: Span = Span::between(Duration::from_micros(1), Duration::from_secs(1));

type Hack<K> = Field<HackPlan, K>;

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
    &Hack {
        name: "coding",
        kind: Choice(&[("per-ack", Coding::PerAck), ("batch", Coding::Batch)]),
        usual: Usual::Field,
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
        meaning: "most bytes appended to one link-layer ACK; the rest goes to the next",
        of: |hack| &mut hack.appended_limit,
    },
];

/// A small number of bytes.
fn bytes(value: &Value) -> Result<u32, Mismatch> {
    within(Bytes(16)..=Bytes(65_535), byte_count)(value).map(|bytes| bytes.0 as u32)
}
