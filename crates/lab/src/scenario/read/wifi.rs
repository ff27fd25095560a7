//! `[wifi]` and what `[[client]]` may say of it.

use tacit_link::Loss;
use tacit_link::wifi;
use tacit_link::wifi::phy::{BasicRates, Mode, ModeChoice, Preamble, SlotTime, Standard, Variant};
use tacit_link::wifi::{AmsduLimit, Bursts, LinkAcks, Protection, RateControl, ReverseDirection};
use tacit_proto::units::{BitRate, Bytes, Duration};

use super::queue::queue;
use super::{DEFAULT_QUEUE, or_none, positive_span};
use crate::error::InputError;
use crate::input::{
    MAX_DURATION, Mismatch, Node, Section, Tree, Value, bit_rate, byte_count, duration, flag, integer,
    level_dbm, loss, name_of, one_of, within,
};
use crate::scenario::{ApAcks, Categories, MpduError, Wifi, WifiAckFilter, signal};

/// `ack-filter`.
const ACK_FILTERS: [(&str, WifiAckFilter); 5] = [
    ("none", WifiAckFilter::Off),
    ("cake", WifiAckFilter::Cake),
    ("cake-aggressive", WifiAckFilter::CakeAggressive),
    ("driver-replace", WifiAckFilter::DriverReplace),
    ("driver-hold", WifiAckFilter::DriverHold),
];

/// `ap-acks`.
const AP_ACKS: [(&str, ApAcks); 2] = [("none", ApAcks::None), ("fastack", ApAcks::FastAck)];

/// What users call them.
pub(in crate::scenario) fn ap_acks_name(acks: ApAcks) -> &'static str {
    name_of(&AP_ACKS, &acks).expect("the table has all of them")
}

/// What users call a filter.
pub(in crate::scenario) fn ack_filter_name(filter: WifiAckFilter) -> &'static str {
    name_of(&ACK_FILTERS, &filter).expect("the table has every filter")
}

/// `rate`, and the keys that say what a rate leaves open; `None` where none of them stands.
pub(super) fn data_mode(
    section: &Section<'_>,
    standard: Standard,
    variant: Variant,
) -> Result<Option<Mode>, InputError> {
    mode_choice(section, bit_rate)?.map(|choice| choose(section, standard, variant, choice)).transpose()
}

/// The same where the rate may be `"ideal"`: the mode for lack of a signal, and what narrows the choice.
fn mode_or_ideal(
    section: &Section<'_>,
    standard: Standard,
    variant: Variant,
) -> Result<Option<(Mode, Option<ModeChoice>)>, InputError> {
    let is_ideal = |node: &Node| matches!(&node.value, Value::Text(text) if text == "ideal");
    if !section.node("rate").is_some_and(is_ideal) {
        return Ok(data_mode(section, standard, variant)?.map(|mode| (mode, None)));
    }
    let any_rate = |_: &Value| Ok(BitRate::from_bps(1));
    let said = mode_choice(section, any_rate)?.unwrap_or_default();
    // More streams are no better where each is given the SNR of all, but that costs nothing here.
    let streams = said.streams.unwrap_or(1);
    let choice = ModeChoice { rate: None, streams: Some(streams), ..said };
    let mode = choose(section, standard, variant, choice)?;
    Ok(Some((mode, Some(choice))))
}

/// Choices as users write them.
pub(in crate::scenario) const WIDTHS_MHZ: [(&str, u16); 4] =
    [("20 MHz", 20), ("40 MHz", 40), ("80 MHz", 80), ("160 MHz", 160)];
pub(in crate::scenario) const SHORT_GUARD_INTERVAL: [(&str, bool); 2] = [("short", true), ("long", false)];

fn mode_choice(
    section: &Section<'_>,
    rate: impl FnOnce(&Value) -> Result<BitRate, Mismatch>,
) -> Result<Option<ModeChoice>, InputError> {
    let choice = ModeChoice {
        rate: section.optional("rate", rate)?,
        mcs: section.optional("mcs", integer(0..=31))?.map(|mcs| mcs as u8),
        streams: section.optional("streams", integer(1..=4))?.map(|streams| streams as u8),
        width_mhz: section.optional("channel-width", one_of(&WIDTHS_MHZ))?,
        short_guard_interval: section.optional("guard-interval", one_of(&SHORT_GUARD_INTERVAL))?,
    };
    if choice.rate.is_none() && choice.mcs.is_none() {
        let open = ["streams", "channel-width", "guard-interval"];
        return match open.into_iter().find(|key| section.node(key).is_some()) {
            Some(key) => Err(section.error(key, "says nothing by itself").allowed("beside rate or mcs")),
            None => Ok(None),
        };
    }
    Ok(Some(choice))
}

fn choose(
    section: &Section<'_>,
    standard: Standard,
    variant: Variant,
    choice: ModeChoice,
) -> Result<Mode, InputError> {
    let key = if choice.mcs.is_some() && choice.rate.is_none() { "mcs" } else { "rate" };
    Mode::choose(standard, variant, choice).map_err(|unknown| {
        let rates = unknown.allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        section.error(key, unknown.what()).allowed(rates)
    })
}

/// Which access categories there are, where the standard has EDCA.
fn categories(section: &Section<'_>, standard: Standard) -> Result<Categories, InputError> {
    let all = [("used", Categories::Used), ("all", Categories::All)];
    let categories = section.or("access-categories", Categories::Used, one_of(&all))?;
    if categories == Categories::All && standard.phy().aggregation.is_none() {
        return Err(section
            .error("access-categories", format!("{} has no EDCA here", standard.name()))
            .allowed("\"used\", or a standard with EDCA"));
    }
    Ok(categories)
}

/// How packets share MPDUs, where the standard aggregates.
fn amsdu(section: &Section<'_>, standard: Standard) -> Result<Option<AmsduLimit>, InputError> {
    let limits = [AmsduLimit::Octets3839, AmsduLimit::Octets7935];
    let octets = |value: &Value| {
        let bytes = byte_count(value)?;
        let limit = limits.into_iter().find(|limit| u64::from(limit.octets()) == bytes.0);
        limit.ok_or_else(|| Mismatch::new(format!("{value} is no limit"), "\"3839 B\", \"7935 B\""))
    };
    let amsdu = section.or("amsdu", None, or_none(octets))?;
    if amsdu.is_some() && standard.phy().aggregation.is_none() {
        return Err(section
            .error("amsdu", format!("{} does not aggregate", standard.name()))
            .allowed("802.11n, 802.11ac"));
    }
    Ok(amsdu)
}

/// `link-acks`.
const LINK_ACKS: [(&str, LinkAcks); 2] = [("normal", LinkAcks::Normal), ("none", LinkAcks::None)];

/// What users call a choice of `link-acks`.
pub(in crate::scenario) fn link_acks_name(acks: LinkAcks) -> &'static str {
    name_of(&LINK_ACKS, &acks).expect("the table has every choice")
}

/// Whether data is acknowledged. Nothing that builds on link-layer ACKs goes without them.
fn link_acks(section: &Section<'_>, wifi: &Wifi) -> Result<LinkAcks, InputError> {
    let acks = section.or("link-acks", LinkAcks::Normal, one_of(&LINK_ACKS))?;
    if acks == LinkAcks::Normal {
        return Ok(acks);
    }
    let building_on_them = [
        (wifi.standard.phy().aggregation.is_none(), wifi.standard.name()),
        (wifi.rate_control != RateControl::Fixed, "rate-control"),
        (wifi.reverse_direction != ReverseDirection::Off, "reverse-direction"),
        (wifi.ap_acks != ApAcks::None, "ap-acks"),
    ];
    match building_on_them.into_iter().find(|(needed, _)| *needed) {
        Some((_, what)) => Err(section
            .error("link-acks", format!("{what} needs link-layer ACKs"))
            .allowed("\"normal\"; or \"none\" with 802.11n or ac, a fixed rate, no grants and no FastACK")),
        None => Ok(acks),
    }
}

/// What users call a choice of `reverse-direction`.
pub(in crate::scenario) fn reverse_direction_name(reverse: ReverseDirection) -> &'static str {
    match reverse {
        ReverseDirection::Off => "off",
        ReverseDirection::Granted { .. } => "granted",
    }
}

/// What a TXOP holds for those who answer, where the standard knows grants; and what is granted, if anything is.
fn reverse_direction(
    section: &Section<'_>,
    standard: Standard,
) -> Result<(ReverseDirection, ReverseDirection), InputError> {
    let granted = ReverseDirection::Granted {
        turnaround: section.or(
            "reverse-turnaround",
            Duration::ZERO,
            within(Duration::ZERO..=Duration::from_millis(10), duration),
        )?,
        limit: section.or(
            "reverse-limit",
            ReverseDirection::USUAL_LIMIT,
            within(Duration::from_micros(100)..=Duration::from_millis(30), duration),
        )?,
    };
    let choices = [ReverseDirection::Off, granted].map(|choice| (reverse_direction_name(choice), choice));
    let reverse = section.or("reverse-direction", ReverseDirection::Off, one_of(&choices))?;
    if reverse != ReverseDirection::Off && standard.phy().aggregation.is_none() {
        return Err(section
            .error("reverse-direction", format!("{} has no HT Control field to grant with", standard.name()))
            .allowed("802.11n, 802.11ac"));
    }
    Ok((reverse, granted))
}

/// Where TXOPs hold several exchanges, where there are TXOPs.
fn bursts(section: &Section<'_>, standard: Standard) -> Result<Bursts, InputError> {
    let bursts = section.optional("txop-bursts", one_of(&BURSTS))?;
    if bursts.is_some() && standard.phy().aggregation.is_none() {
        return Err(section
            .error("txop-bursts", format!("{} sends one frame at each access", standard.name()))
            .allowed("802.11n, 802.11ac"));
    }
    Ok(bursts.unwrap_or_default())
}

/// Choices as users write them.
pub(in crate::scenario) const SLOTS: [(&str, SlotTime); 2] =
    [("short", SlotTime::Short), ("long", SlotTime::Long)];
pub(in crate::scenario) const PREAMBLES: [(&str, Preamble); 2] =
    [("long", Preamble::Long), ("short", Preamble::Short)];
pub(in crate::scenario) const BURSTS: [(&str, Bursts); 3] =
    [("none", Bursts::Never), ("categories", Bursts::ByCategory), ("all", Bursts::WithinLimit)];

/// What is chosen at 2.4 GHz.
fn variant(section: &Section<'_>, standard: Standard) -> Result<Variant, InputError> {
    let usual = Variant::of(standard);
    let slot = section.optional("slot", one_of(&SLOTS))?;
    let preamble = section.optional("preamble", one_of(&PREAMBLES))?;
    if slot.is_some() && standard != Standard::G {
        return Err(section
            .error("slot", format!("{} has one slot time", standard.name()))
            .allowed("802.11g"));
    }
    if preamble.is_some() && !standard.is_2_4_ghz() {
        return Err(section
            .error("preamble", format!("{} has no DSSS frames", standard.name()))
            .allowed("802.11b, 802.11g"));
    }
    let b_stations = section.or("b-stations", false, flag)?;
    if b_stations && standard != Standard::G {
        return Err(section
            .error("b-stations", format!("{} and 802.11b do not share channels", standard.name()))
            .allowed("802.11g"));
    }
    // Stations of 802.11b know neither the short slot nor OFDM.
    let usual = if b_stations {
        Variant { slot: SlotTime::Long, basic_rates: BasicRates::Dsss, ..usual }
    } else {
        usual
    };
    Ok(Variant { slot: slot.unwrap_or(usual.slot), preamble: preamble.unwrap_or(usual.preamble), ..usual })
}

/// What users call what goes before data.
pub(in crate::scenario) fn protection_name(protection: Protection) -> &'static str {
    match protection {
        Protection::None => "none",
        Protection::CtsToSelf { .. } => "cts-to-self",
        Protection::RtsCts { .. } => "rts-cts",
    }
}

/// What goes before data: where nothing is said, what stations of 802.11b need.
fn protection(section: &Section<'_>, variant: Variant, standard: Standard) -> Result<Protection, InputError> {
    let mixed = standard == Standard::G && variant.basic_rates == BasicRates::Dsss;
    let above = section.optional("rts-threshold", or_none(within(Bytes(0)..=Bytes(1 << 20), byte_count)))?;
    let octets = above.flatten().map_or(0, |bytes| bytes.0 as u32);
    let kinds =
        [Protection::None, Protection::CtsToSelf { above: octets }, Protection::RtsCts { above: octets }]
            .map(|kind| (protection_name(kind), kind));
    let said = section.optional("protection", one_of(&kinds))?;
    if above.flatten().is_some() && said == Some(Protection::None) {
        return Err(section
            .error("rts-threshold", "there is no protection")
            .allowed("protection = \"rts-cts\" or \"cts-to-self\""));
    }
    Ok(match (said, above.flatten()) {
        (Some(protection), _) => protection,
        (None, Some(_)) => Protection::RtsCts { above: octets },
        (None, None) if mixed => Protection::CtsToSelf { above: 0 },
        (None, None) => Protection::None,
    })
}

pub(super) fn ack_mode(
    standard: Standard,
    variant: Variant,
) -> impl Fn(&Value) -> Result<Option<Mode>, Mismatch> {
    let ofdm = "6, 9, 12, 18, 24, 36, 48 or 54Mbps";
    let allowed = match standard {
        Standard::A | Standard::N | Standard::Ac => format!("\"auto\", or a rate of 802.11a: {ofdm}"),
        Standard::B => "\"auto\", 1, 2, 5.5 or 11Mbps".to_owned(),
        Standard::G => format!("\"auto\", 1, 2, 5.5, 11, {ofdm}"),
    };
    move |value| {
        if matches!(value, Value::Text(text) if text == "auto") {
            return Ok(None);
        }
        let rate = bit_rate(value).map_err(|mismatch| Mismatch::new(mismatch.what, allowed.clone()))?;
        let mode = standard.phy_as(variant).legacy_mode(rate);
        mode.map(Some)
            .ok_or_else(|| Mismatch::new(format!("no control frame is sent at {rate}"), allowed.clone()))
    }
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

/// Least power at which a receiver must notice the preamble of a 20 MHz PPDU (802.11-2020 clause 17.3.10.6).
const CARRIER_SENSE_DBM: f64 = -82.0;

/// 100 time units of 1024 us.
const USUAL_BEACONS: Duration = Duration::from_micros(102_400);

pub(super) fn wifi_section(section: Section<'_>) -> Result<Option<Wifi>, InputError> {
    if !section.is_present() {
        return Ok(None);
    }
    let standards = Standard::ALL.map(|standard| (standard.name(), standard));
    let standard = section.required("standard", one_of(&standards))?;
    let usual = wifi::BssConfig::new(standard, Vec::new());
    let variant = variant(&section, standard)?;
    let (mode, ideal) = mode_or_ideal(&section, standard, variant)?.ok_or_else(|| section.missing("rate"))?;
    let (reverse_direction, grant) = reverse_direction(&section, standard)?;
    let mut parsed = Wifi {
        standard,
        variant,
        mode,
        ideal,
        ack_mode: section.or("ack-rate", None, ack_mode(standard, variant))?,
        mpdu_error: mpdu_error(&section)?.unwrap_or_default(),
        link_ack_error: section.or("link-ack-error", Loss::None, loss)?,
        signal: signal::signal(&section)?,
        rate_control: section.or(
            "rate-control",
            RateControl::Fixed,
            one_of(&[("fixed", RateControl::Fixed), ("minstrel", RateControl::Minstrel)]),
        )?,
        propagation: signal::propagation(&section, standard)?,
        carrier_sense_dbm: section.or("carrier-sense", CARRIER_SENSE_DBM, within(-120.0..=0.0, level_dbm))?,
        txop_limit: section.or(
            "txop-limit",
            usual.txop_limit,
            or_none(within(Duration::from_micros(100)..=Duration::from_millis(100), duration)),
        )?,
        bursts: bursts(&section, standard)?,
        ampdu_mpdus: section.or("ampdu-mpdus", usual.ampdu_mpdus, or_none(integer(1..=64)))?,
        amsdu: amsdu(&section, standard)?,
        categories: categories(&section, standard)?,
        link_acks: LinkAcks::Normal,
        reverse_direction,
        grant,
        beacons: section.or("beacons", usual.beacon_interval, beacons)?,
        protection: protection(&section, variant, standard)?,
        short_retry_limit: section.or("short-retry-limit", usual.short_retry_limit, integer(0..=255))?,
        retry_limit: section.or("retry-limit", usual.retry_limit, integer(0..=255))?,
        lifetime: section.or("lifetime", usual.lifetime, positive_span)?,
        reorder_timeout: section.or("reorder-timeout", usual.reorder_timeout, positive_span)?,
        link_ack_delay: section.or(
            "link-ack-delay",
            usual.link_ack_delay,
            within(Duration::ZERO..=Duration::from_millis(1), duration),
        )?,
        ack_filter: section.or("ack-filter", WifiAckFilter::Off, one_of(&ACK_FILTERS))?,
        ap_acks: section.or("ap-acks", ApAcks::None, one_of(&AP_ACKS))?,
        eifs: section.or("eifs", usual.eifs, flag)?,
        capture: section.or("capture", usual.capture, flag)?,
        ap_queue: queue(&section, "ap-queue")?.unwrap_or_else(|| DEFAULT_QUEUE.into()),
        station_queue: queue(&section, "station-queue")?.unwrap_or_else(|| DEFAULT_QUEUE.into()),
    };
    parsed.link_acks = link_acks(&section, &parsed)?;
    section.finish()?;
    Ok(Some(parsed))
}
