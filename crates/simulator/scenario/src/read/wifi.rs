//! `[wifi]`, and those of its keys that `[[client]]` may override.

use tacit_link::Loss;
use tacit_link::wifi::phy::{
    Band, BasicRates, GuardInterval, HeChoice, Mode, ModeChoice, PacketExtension, Part, SlotTime, Standard,
    TrainingField, Variant,
};
use tacit_link::wifi::{
    AccessCategory, BssConfig, LinkAcks, Protection, ReverseDirection, StreamQueues, Triggers, TxopLimits,
};
use tacit_packet::units::{BitRate, Duration};

use super::queue::{QueueHop, queue};
use super::signal::{direct_signal, propagation, signal};
use crate::edca::{EdcaPlan, Numbers};
use crate::error::InputError;
use crate::input::{Mismatch, Node, Section, Tree, Value, bit_rate, loss};
use crate::keys::kind::or;
use crate::keys::{fill, wifi as keys};
use crate::{ApAcks, Categories, ClientOverride, MpduError, RateChoice, Wifi};

/// The mode of a client, in its own standard if it sets one; `None` if it sets neither.
pub(super) fn client_mode(section: &Section<'_>, wifi: &Wifi) -> Result<Option<Mode>, InputError> {
    let (serving, variant) = (wifi.bss.standard, wifi.bss.variant);
    let client_standard = crate::keys::clients::STANDARD.given(section)?;
    let standard = client_standard.unwrap_or(serving);
    if !serving.serves(standard) || !standard.has_band(variant.band) {
        let served = |other: &Standard| serving.serves(*other) && other.has_band(variant.band);
        let allowed: Vec<&str> = Standard::ALL.into_iter().filter(served).map(Standard::name).collect();
        let (serving, band) = (serving.name(), variant.band.name());
        let what = format!("an access point of {serving} at {band} does not serve {}", standard.name());
        return Err(section.error(keys::STANDARD.name, what).allowed(allowed.join(", ")));
    }
    let mode = data_mode(section, standard, variant)?;
    if mode.is_none() && standard != serving {
        let what = format!("the rate of [wifi] is one of {}", serving.name());
        return Err(section.error(keys::STANDARD.name, what).allowed("with rate or mcs"));
    }
    Ok(mode)
}

/// `rate`, and the keys for what a rate does not determine; `None` if none of them is set.
fn data_mode(
    section: &Section<'_>,
    standard: Standard,
    variant: Variant,
) -> Result<Option<Mode>, InputError> {
    mode_choice(section, bit_rate)?.map(|choice| choose(section, standard, variant, choice)).transpose()
}

/// `rate`, which may be `"ideal"`, and the keys for what a rate does not determine. Returns the mode to use without a
/// signal, and the limits of the choice.
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
    let given = mode_choice(section, any_rate)?.unwrap_or_default();
    // More streams are no better, because the SNR applies to each of them. Accepting them costs nothing here.
    let streams = given.streams.unwrap_or(1);
    let choice = ModeChoice { rate: None, streams: Some(streams), ..given };
    let mode = choose(section, standard, variant, choice)?;
    Ok(Some((mode, Some(choice))))
}

fn mode_choice(
    section: &Section<'_>,
    rate: impl FnOnce(&Value) -> Result<BitRate, Mismatch>,
) -> Result<Option<ModeChoice>, InputError> {
    let choice = ModeChoice {
        rate: section.optional(keys::RATE.name, rate)?,
        mcs: keys::MCS.given(section)?.map(|mcs| mcs as u8),
        streams: keys::STREAMS.given(section)?.map(|streams| streams as u8),
        width_mhz: keys::CHANNEL_WIDTH.given(section)?,
        guard_interval: keys::GUARD_INTERVAL.given(section)?,
    };
    if choice.rate.is_none() && choice.mcs.is_none() {
        let open = [keys::STREAMS.name, keys::CHANNEL_WIDTH.name, keys::GUARD_INTERVAL.name];
        return match open.into_iter().find(|key| section.node(key).is_some()) {
            Some(key) => Err(section.error(key, "has no effect alone").allowed("with rate or mcs")),
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
    Mode::choose(standard, variant, choice).map_err(|unknown| {
        if let Some(error) = training_apart(section, standard, variant, choice) {
            return error;
        }
        let instead: Vec<(&str, String)> =
            unknown.instead.iter().map(|(part, values)| (key_of(*part), listed(*part, values))).collect();
        let rates = unknown.rates();
        match instead.split_first() {
            Some(((key, values), others)) => {
                let mut allowed = format!("{values} with the other keys");
                for (other, values) in others {
                    allowed.push_str(&format!("; or {other} {values}"));
                }
                if choice.rate.is_some() {
                    allowed.push_str(&format!("; or rate {rates}"));
                }
                section.error(key, unknown.what()).allowed(allowed)
            }
            None => {
                let key = if choice.rate.is_some() { keys::RATE.name } else { keys::MCS.name };
                section.error(key, unknown.what()).allowed(rates)
            }
        }
    })
}

/// The error for a `choice` for which only the requested training field prevents a mode.
fn training_apart(
    section: &Section<'_>,
    standard: Standard,
    variant: Variant,
    choice: ModeChoice,
) -> Option<InputError> {
    let training = variant.he.training?;
    let usual = Variant { he: HeChoice { training: None, ..variant.he }, ..variant };
    let mode = Mode::choose(standard, usual, choice).ok()?;
    let what = format!(
        "{} us do not go with wifi.{} = \"{}\"",
        f64::from(mode.guard_interval.nanos()) / 1e3,
        keys::LTF.name,
        training.name()
    );
    let fitting = GuardInterval::OF_HE.into_iter().filter(|interval| training.goes_with(*interval));
    let allowed: Vec<String> = fitting.map(|interval| format!("{:?}", interval.name())).collect();
    Some(section.error(keys::GUARD_INTERVAL.name, what).allowed(allowed.join(", ")))
}

const fn key_of(part: Part) -> &'static str {
    match part {
        Part::Mcs => keys::MCS.name,
        Part::Streams => keys::STREAMS.name,
        Part::WidthMhz => keys::CHANNEL_WIDTH.name,
        Part::GuardInterval => keys::GUARD_INTERVAL.name,
    }
}

/// Values of `part` in the notation of its key.
fn listed(part: Part, values: &[u16]) -> String {
    let text = |value: &u16| match (part, value) {
        (Part::Mcs | Part::Streams, value) => value.to_string(),
        (Part::WidthMhz, value) => format!("\"{value} MHz\""),
        (Part::GuardInterval, nanos) => {
            let interval = GuardInterval::ALL.into_iter().find(|interval| interval.nanos() == *nanos);
            format!("{:?}", interval.expect("intervals come from modes").name())
        }
    };
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The standards with EDCA and A-MPDUs.
const AGGREGATING: &str = "802.11n, 802.11ac, 802.11ax, 802.11be";

/// Refuses settings that the standard does not have, and settings that exclude each other.
fn check(section: &Section<'_>, wifi: &Wifi) -> Result<(), InputError> {
    let (name, aggregates) = (wifi.bss.standard.name(), wifi.bss.standard.phy().aggregation.is_some());
    let refused = |key, what: String, allowed: &str| Err(section.error(key, what).allowed(allowed));
    if !aggregates && wifi.categories == Categories::All {
        let allowed = "\"used\", or a standard with EDCA";
        return refused(keys::ACCESS_CATEGORIES, format!("{name} has no EDCA here"), allowed);
    }
    if let Some(limits) = wifi.bss.standard.phy().aggregation {
        for (key, value) in [
            (keys::BLOCK_ACK_WINDOW, Some(wifi.bss.block_ack_window)),
            (keys::AMPDU_MPDUS, wifi.bss.ampdu_mpdus),
        ] {
            if let Some(value) = value.filter(|value| *value > limits.mpdus) {
                return refused(key, format!("{name} has no {value}"), &format!("up to {}", limits.mpdus));
            }
        }
    }
    if !aggregates && wifi.bss.txop_limits != TxopLimits::default() {
        return refused(keys::TXOP_LIMITS, format!("{name} has no EDCA here"), AGGREGATING);
    }
    if !aggregates && wifi.bss.mpdu_start_spacing != Duration::ZERO {
        let what = format!("{name} does not aggregate");
        return refused(keys::MPDU_START_SPACING, what, AGGREGATING);
    }
    if !aggregates && wifi.bss.amsdu.is_some() {
        return refused(keys::AMSDU, format!("{name} does not aggregate"), AGGREGATING);
    }
    if !aggregates && section.has(keys::TXOP_BURSTS) {
        return refused(keys::TXOP_BURSTS, format!("{name} sends one frame at each access"), AGGREGATING);
    }
    if !aggregates && wifi.bss.reverse_direction != ReverseDirection::Off {
        let what = format!("{name} has no HT Control field to grant with");
        return refused(keys::REVERSE_DIRECTION.name, what, AGGREGATING);
    }
    if let (StreamQueues::Independent, Some(what)) = (wifi.bss.stream_queues, needs_link_acks(wifi)) {
        let allowed = "\"joint\"; or \"independent\" with 802.11n or later, a fixed rate and no FastACK";
        return refused(keys::STREAM_QUEUES, format!("{what} needs one queue for all streams"), allowed);
    }
    if wifi.bss.stream_queues == StreamQueues::Independent && wifi.link_acks.down == LinkAcks::Deferred {
        let what = "repair needs one queue for all streams".to_owned();
        return refused(keys::STREAM_QUEUES, what, "\"joint\"");
    }
    if wifi.ofdma.acknowledgment.is_none() && wifi.ofdma.config.triggers != Triggers::Off {
        let what = "an access point without resource units has no triggers".to_owned();
        return refused(keys::TRIGGERS, what, "\"off\"; or others with ofdma");
    }
    let has_random_units = wifi.ofdma.config.random_access_units > 0;
    if has_random_units && wifi.ofdma.config.triggers == Triggers::Off {
        let what = "an access point without triggers offers no units".to_owned();
        return refused(keys::RANDOM_ACCESS_UNITS, what, "0; or others with triggers");
    }
    if !has_random_units && wifi.ofdma.config.triggers == Triggers::RandomAccess {
        let what = "\"random\" asks no client by name, and offers no units".to_owned();
        return refused(keys::TRIGGERS, what, "\"random\" with random-access-units of 1 or more");
    }
    if let (Some(_), Some(what)) = (wifi.ofdma.acknowledgment, refuses_ofdma(wifi)) {
        let allowed = "\"off\"; or others with 802.11ax, joint streams, no grants, and a fixed or ideal rate with random \
                       triggers";
        return refused(keys::OFDMA, what, allowed);
    }
    if !wifi.link_acks.are(LinkAcks::Normal) {
        let has_grants = wifi.bss.reverse_direction != ReverseDirection::Off;
        let granting = has_grants.then_some(keys::REVERSE_DIRECTION.name);
        return check_link_acks(section, granting.or(needs_link_acks(wifi)));
    }
    Ok(())
}

/// The setting that excludes multi-user PPDUs, if there is one.
fn refuses_ofdma(wifi: &Wifi) -> Option<String> {
    let standard = wifi.bss.standard;
    let reasons = [
        (standard == Standard::Be, "OFDMA of 802.11be is not modelled here".to_owned()),
        (!matches!(standard, Standard::Ax | Standard::Be), format!("{} has no OFDMA", standard.name())),
        (
            wifi.rate_control == RateChoice::Minstrel && wifi.ofdma.config.triggers == Triggers::RandomAccess,
            "a random-access unit has one rate for all clients, which no client's losses show".to_owned(),
        ),
        (
            wifi.bss.stream_queues == StreamQueues::Independent,
            "a user has one queue for all streams".to_owned(),
        ),
        (
            wifi.bss.reverse_direction != ReverseDirection::Off,
            "PPDUs of several users grant nothing".to_owned(),
        ),
    ];
    reasons.into_iter().find(|(applies, _)| *applies).map(|(_, what)| what)
}

/// The setting that needs link-layer ACKs for all data of all clients, if there is one. Reverse direction grants are
/// not used with clients without link-layer ACKs, but a grant that no client could use is an error.
fn needs_link_acks(wifi: &Wifi) -> Option<&'static str> {
    let building_on_them = [
        (wifi.bss.standard.phy().aggregation.is_none(), wifi.bss.standard.name()),
        (wifi.rate_control == RateChoice::Minstrel, "rate-control"),
        (wifi.ap_acks != ApAcks::None, "ap-acks"),
    ];
    building_on_them.into_iter().find(|(is_there, _)| *is_there).map(|(_, what)| what)
}

/// Refuses data without link-layer ACKs if the setting `needing` requires them. `section` is about all clients or about
/// one.
fn check_link_acks(section: &Section<'_>, needing: Option<&str>) -> Result<(), InputError> {
    let Some(what) = needing else { return Ok(()) };
    let allowed = "\"normal\"; or others with 802.11n or later, a fixed rate, no grants and no FastACK";
    Err(section.error(keys::LINK_ACKS, format!("{what} needs link-layer ACKs")).allowed(allowed))
}

/// Refuses data to or from a client without link-layer ACKs if a setting requires them.
pub(super) fn check_client_acks(
    section: &Section<'_>,
    wifi: &Wifi,
    client: &ClientOverride,
) -> Result<(), InputError> {
    if client.link_acks.is_none_or(|acks| acks.are(LinkAcks::Normal)) {
        return Ok(());
    }
    if wifi.bss.stream_queues == StreamQueues::Independent
        && client.link_acks.is_some_and(|acks| acks.down == LinkAcks::Deferred)
    {
        let what = "repair needs one queue for all streams";
        return Err(section.error(keys::LINK_ACKS, what).allowed("\"normal\", \"uplink-only\", \"none\""));
    }
    let speaking = (client.hack == Some(true)).then_some("TCP/HACK");
    check_link_acks(section, speaking.or(needs_link_acks(wifi)))
}

/// Refuses EDCA parameters that `standard` does not have. `section` contains at least one of them.
pub(super) fn check_edca(
    section: &Section<'_>,
    standard: Standard,
    edca: &EdcaPlan<Numbers>,
) -> Result<(), InputError> {
    let phy = standard.phy();
    if phy.aggregation.is_none() {
        let what = format!("{} has no EDCA here", standard.name());
        if edca.aifsn != Numbers::default() {
            let error = section.error(keys::AIFSN, format!("{what}, and waits for DIFS"));
            return Err(error.allowed(AGGREGATING));
        }
        let by_category = [(keys::CW_MIN, edca.cw_min), (keys::CW_MAX, edca.cw_max)]
            .into_iter()
            .find(|(_, numbers)| *numbers != Numbers::same(numbers.get(AccessCategory::BestEffort)));
        if let Some((key, _)) = by_category {
            return Err(section
                .error(key, what)
                .allowed(format!("a number; access categories with {AGGREGATING}")));
        }
    }
    let Some((category, least, most)) = edca.crossed(phy) else { return Ok(()) };
    let key = if section.has(keys::CW_MIN) { keys::CW_MIN } else { keys::CW_MAX };
    let what =
        format!("for {:?} the smallest window, {least}, is larger than the largest, {most}", category.name());
    Err(section.error(key, what).allowed("cw-min up to cw-max"))
}

/// The reverse direction grant, if enabled.
fn grant(section: &Section<'_>) -> Result<ReverseDirection, InputError> {
    Ok(ReverseDirection::Granted {
        turnaround: keys::REVERSE_TURNAROUND.or(section, Duration::ZERO)?,
        limit: keys::REVERSE_LIMIT.or(section, ReverseDirection::USUAL_LIMIT)?,
    })
}

/// The band, and the options for 2.4 GHz.
fn variant(section: &Section<'_>, standard: Standard) -> Result<Variant, InputError> {
    let usual = Variant::for_standard(standard);
    let (name, band) = (standard.name(), keys::BAND.or(section, usual.band)?);
    if !standard.has_band(band) {
        let bands = Band::ALL.into_iter().filter(|band| standard.has_band(*band));
        let allowed: Vec<String> = bands.map(|band| format!("{:?}", band.name())).collect();
        let what = format!("{name} is not at {}", band.name());
        return Err(section.error(keys::BAND.name, what).allowed(allowed.join(", ")));
    }
    let usual = Variant { band, ..usual };
    let slot = keys::SLOT.given(section)?;
    let preamble = keys::PREAMBLE.given(section)?;
    let has_erp = usual.is_2_4_ghz() && standard != Standard::B;
    let with_erp = "802.11g, or 802.11n with band = \"2.4 GHz\"";
    if slot.is_some() && !has_erp {
        return Err(section.error("slot", format!("{name} has one slot time here")).allowed(with_erp));
    }
    if preamble.is_some() && !usual.is_2_4_ghz() {
        return Err(section
            .error("preamble", format!("{name} has no DSSS frames here"))
            .allowed(format!("802.11b, {with_erp}")));
    }
    let b_stations = keys::B_STATIONS.or(section, false)?;
    if b_stations && !has_erp {
        return Err(section
            .error("b-stations", format!("{name} and 802.11b do not share channels here"))
            .allowed(with_erp));
    }
    // Stations of 802.11b support neither the short slot nor OFDM.
    let usual = if b_stations {
        Variant { slot: SlotTime::Long, basic_rates: BasicRates::Dsss, ..usual }
    } else {
        usual
    };
    Ok(Variant {
        slot: slot.unwrap_or(usual.slot),
        preamble: preamble.unwrap_or(usual.preamble),
        he: he_choice(section, standard)?,
        ..usual
    })
}

/// Preamble and packet extension of HE and EHT PPDUs.
fn he_choice(section: &Section<'_>, standard: Standard) -> Result<HeChoice, InputError> {
    let name = standard.name();
    let refused =
        |key, what: &str, allowed| Err(section.error(key, format!("{name} {what}")).allowed(allowed));
    let keys = [keys::LTF.name, keys::PACKET_EXTENSION.name, keys::CODING.name];
    if let Some(key) = keys.into_iter().find(|key| section.has(key))
        && !matches!(standard, Standard::Ax | Standard::Be)
    {
        return refused(key, "has neither HE nor EHT PPDUs", "802.11ax, 802.11be");
    }
    let HeChoice { coding, extension, .. } = HeChoice::USUAL;
    let choice = HeChoice {
        training: keys::LTF.given(section)?,
        coding: keys::CODING.or(section, coding)?,
        extension: keys::PACKET_EXTENSION.or(section, extension)?,
    };
    if standard == Standard::Be && choice.training == Some(TrainingField::Quarter) {
        return refused(keys::LTF.name, "has no such EHT-LTF", "\"2x\", \"4x\"");
    }
    if standard == Standard::Ax && choice.extension == PacketExtension::Us20 {
        let allowed = "\"0 us\", \"8 us\", \"16 us\"; \"20 us\" with 802.11be";
        return refused(keys::PACKET_EXTENSION.name, "has no such packet extension", allowed);
    }
    Ok(choice)
}

/// Protection of data. By default, what the presence of 802.11b stations requires.
fn protection(section: &Section<'_>, variant: Variant, standard: Standard) -> Result<Protection, InputError> {
    let mixed = standard != Standard::B && variant.basic_rates == BasicRates::Dsss;
    let above = keys::RTS_THRESHOLD.given(section)?;
    let bytes = above.flatten().map_or(0, |bytes| bytes.0 as u32);
    let given = keys::PROTECTION.given(section)?.map(|kind| match kind {
        Protection::None => Protection::None,
        Protection::CtsToSelf { .. } => Protection::CtsToSelf { above: bytes },
        Protection::RtsCts { .. } => Protection::RtsCts { above: bytes },
    });
    if above.flatten().is_some() && given == Some(Protection::None) {
        return Err(section
            .error("rts-threshold", "there is no protection")
            .allowed("protection = \"rts-cts\" or \"cts-to-self\""));
    }
    Ok(match (given, above.flatten()) {
        (Some(protection), _) => protection,
        (None, Some(_)) => Protection::RtsCts { above: bytes },
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
        Standard::B => "\"auto\", 1, 2, 5.5 or 11Mbps".to_owned(),
        _ if !variant.is_2_4_ghz() => format!("\"auto\", or a rate of 802.11a: {ofdm}"),
        _ => format!("\"auto\", 1, 2, 5.5, 11, {ofdm}"),
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
    let Some(node) = section.node(keys::MPDU_ERROR.name) else { return Ok(None) };
    let is_each = |tree: &Tree| !tree.entries.contains_key("good");
    if matches!(&node.value, Value::Table(tree) if is_each(tree)) {
        let each = section.section(keys::MPDU_ERROR.name)?;
        let error =
            MpduError { down: each.or("down", Loss::None, loss)?, up: each.or("up", Loss::None, loss)? };
        each.finish()?;
        return Ok(Some(error));
    }
    let both = section.optional(keys::MPDU_ERROR.name, |value| {
        loss(value).map_err(|mismatch| or(mismatch, "{ down = \"2 %\", up = \"1 %\" }"))
    })?;
    Ok(both.map(|both| MpduError { down: both.clone(), up: both }))
}

pub(super) fn wifi_section(section: Section<'_>) -> Result<Option<Wifi>, InputError> {
    if !section.is_present() {
        return Ok(None);
    }
    let standard = keys::STANDARD.required(&section)?;
    let variant = variant(&section, standard)?;
    let (mode, ideal) =
        mode_or_ideal(&section, standard, variant)?.ok_or_else(|| section.missing(keys::RATE.name))?;
    let mut wifi = Wifi::new(BssConfig { variant, ..BssConfig::new(standard, Vec::new()) }, mode);
    wifi.ideal = ideal;
    fill(keys::WIFI, &section, &mut wifi)?;
    check_edca(&section, standard, &wifi.edca.ap())?;
    check_edca(&section, standard, &wifi.edca.clients())?;
    wifi.bss.ap_edca = wifi.edca.ap().overrides();
    wifi.ack_mode = section.or(keys::ACK_RATE.name, None, ack_mode(standard, variant))?;
    wifi.mpdu_error = mpdu_error(&section)?.unwrap_or_default();
    wifi.link_ack_error = keys::LINK_ACK_ERROR.or(&section, Loss::None)?;
    wifi.signal = signal(&section)?;
    wifi.direct.signal = direct_signal(&section)?;
    wifi.propagation = propagation(&section, wifi.propagation)?;
    wifi.bss.protection = protection(&section, variant, standard)?;
    wifi.grant = grant(&section)?;
    if keys::REVERSE_DIRECTION.or(&section, false)? {
        wifi.bss.reverse_direction = wifi.grant;
    }
    wifi.ap_queue = queue(&section, keys::AP_QUEUE.name, QueueHop::Wifi)?.unwrap_or(wifi.ap_queue);
    wifi.station_queue =
        queue(&section, keys::STATION_QUEUE.name, QueueHop::Wifi)?.unwrap_or(wifi.station_queue);
    check(&section, &wifi)?;
    section.finish()?;
    Ok(Some(wifi))
}
