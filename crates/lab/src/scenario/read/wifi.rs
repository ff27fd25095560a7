//! `[wifi]` and what `[[client]]` may say of it.

use tacit_link::Loss;
use tacit_link::wifi;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_proto::units::Duration;

use super::queue::queue;
use super::{DEFAULT_QUEUE, or_none, positive_span};
use crate::error::InputError;
use crate::input::{
    MAX_DURATION, Mismatch, Section, Tree, Value, bit_rate, duration, flag, integer, loss, one_of, within,
};
use crate::scenario::{MpduError, Wifi, signal};

pub(super) fn data_mode(standard: Standard) -> impl Fn(&Value) -> Result<Mode, Mismatch> {
    move |value| {
        Mode::for_rate(standard, bit_rate(value)?).map_err(|unknown| {
            let rates = unknown.allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Mismatch::new(format!("{} has no rate {}", standard.name(), unknown.rate), rates)
        })
    }
}

pub(super) fn ack_mode(value: &Value) -> Result<Option<Mode>, Mismatch> {
    let allowed = "\"auto\", or a rate of 802.11a: 6, 9, 12, 18, 24, 36, 48 or 54Mbps";
    if matches!(value, Value::Text(text) if text == "auto") {
        return Ok(None);
    }
    let rate = bit_rate(value).map_err(|mismatch| Mismatch::new(mismatch.what, allowed))?;
    let mode = Mode::ofdm(rate);
    mode.map(Some).ok_or_else(|| Mismatch::new(format!("no control frame is sent at {rate}"), allowed))
}

pub(super) fn mpdu_error(section: &Section<'_>) -> Result<Option<MpduError>, InputError> {
    let Some(node) = section.node("mpdu-error") else { return Ok(None) };
    let is_each = |tree: &Tree| !tree.entries.contains_key("good");
    if matches!(&node.value, Value::Table(tree) if is_each(tree)) {
        let each = section.section("mpdu-error")?;
        let error =
            MpduError { down: each.or("down", Loss::None, loss)?, up: each.or("up", Loss::None, loss)? };
        each.finish()?;
        return Ok(Some(error));
    }
    let both = section.optional("mpdu-error", |value| {
        loss(value).map_err(|mut mismatch| {
            mismatch.allowed.push_str(", or { down = \"2 %\", up = \"1 %\" }");
            mismatch
        })
    })?;
    Ok(both.map(|both| MpduError { down: both.clone(), up: both }))
}

/// Beacons: an interval, `"none"`, or true for the usual interval.
fn beacons(value: &Value) -> Result<Option<Duration>, Mismatch> {
    match value {
        Value::Flag(true) => Ok(Some(USUAL_BEACONS)),
        Value::Flag(false) => Ok(None),
        other => or_none(within(Duration::from_millis(1)..=MAX_DURATION, duration))(other),
    }
}

/// 100 time units of 1024 us.
const USUAL_BEACONS: Duration = Duration::from_micros(102_400);

pub(super) fn wifi_section(section: Section<'_>) -> Result<Option<Wifi>, InputError> {
    if !section.is_present() {
        return Ok(None);
    }
    let standards = Standard::ALL.map(|standard| (standard.name(), standard));
    let standard = section.required("standard", one_of(&standards))?;
    let usual = wifi::BssConfig::new(standard, Vec::new());
    let parsed = Wifi {
        standard,
        mode: section.required("rate", data_mode(standard))?,
        ack_mode: section.or("ack-rate", None, ack_mode)?,
        mpdu_error: mpdu_error(&section)?.unwrap_or_default(),
        link_ack_error: section.or("link-ack-error", Loss::None, loss)?,
        signal: signal::signal(&section)?,
        propagation: signal::propagation(&section)?,
        txop_limit: section.or(
            "txop-limit",
            usual.txop_limit,
            or_none(within(Duration::from_micros(100)..=Duration::from_millis(100), duration)),
        )?,
        ampdu_mpdus: section.or("ampdu-mpdus", usual.ampdu_mpdus, or_none(integer(1..=64)))?,
        beacons: section.or("beacons", usual.beacon_interval, beacons)?,
        retry_limit: section.or("retry-limit", usual.retry_limit, integer(0..=255))?,
        lifetime: section.or("lifetime", usual.lifetime, positive_span)?,
        reorder_timeout: section.or("reorder-timeout", usual.reorder_timeout, positive_span)?,
        link_ack_delay: section.or(
            "link-ack-delay",
            usual.link_ack_delay,
            within(Duration::ZERO..=Duration::from_millis(1), duration),
        )?,
        eifs: section.or("eifs", usual.eifs, flag)?,
        capture: section.or("capture", usual.capture, flag)?,
        ap_queue: queue(&section, "ap-queue")?.unwrap_or_else(|| DEFAULT_QUEUE.into()),
        station_queue: queue(&section, "station-queue")?.unwrap_or_else(|| DEFAULT_QUEUE.into()),
    };
    section.finish()?;
    Ok(Some(parsed))
}
