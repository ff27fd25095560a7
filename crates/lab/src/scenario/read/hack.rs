//! `[hack]`.

use tacit_proto::hack;
use tacit_proto::units::{Bytes, Duration};

use super::{host_time, or_none};
use crate::error::InputError;
use crate::input::{Mismatch, Section, Value, byte_count, name_of, one_of, within};
use crate::scenario::{HackPlan, HackVariant};

const VARIANTS: [(&str, Option<HackVariant>); 4] = [
    ("stock", None),
    ("more-data", Some(HackVariant::MoreData)),
    ("opportunistic", Some(HackVariant::Opportunistic)),
    ("timer", Some(HackVariant::Timer)),
];
const CODINGS: [(&str, hack::Coding); 2] =
    [("per-ack", hack::Coding::PerAck), ("batch", hack::Coding::Batch)];

/// A variant as users write it.
pub(in crate::scenario) fn variant_name(variant: Option<HackVariant>) -> &'static str {
    name_of(&VARIANTS, &variant).unwrap_or_default()
}

/// A coding as users write it.
pub(in crate::scenario) fn coding_name(coding: hack::Coding) -> &'static str {
    name_of(&CODINGS, &coding).unwrap_or_default()
}

pub(super) fn hack_section(section: Section<'_>, has_wifi: bool) -> Result<HackPlan, InputError> {
    if section.is_present() && !has_wifi {
        return Err(section.error("variant", "there is no [wifi]").allowed("[hack] beside [wifi]"));
    }
    let usual = hack::Config::default();
    let plan = HackPlan {
        variant: section.or("variant", None, one_of(&VARIANTS))?,
        timer: section.or("timer", DEFAULT_HACK_TIMER, host_time())?,
        coding: section.or("coding", usual.coding, one_of(&CODINGS))?,
        turnaround: section.or("turnaround", usual.turnaround, host_time())?,
        hold_limit: section.or("hold-limit", usual.hold_limit, host_time())?,
        appended_limit: section.or("appended-limit", usual.appended_limit, or_none(octets))?,
    };
    section.finish()?;
    Ok(plan)
}

/// A small number of octets.
fn octets(value: &Value) -> Result<u32, Mismatch> {
    within(Bytes(16)..=Bytes(65_535), byte_count)(value).map(|bytes| bytes.0 as u32)
}

/// The paper finds no good value (section 3.2); this is a few full A-MPDUs at 150 Mb/s.
const DEFAULT_HACK_TIMER: Duration = Duration::from_millis(20);
