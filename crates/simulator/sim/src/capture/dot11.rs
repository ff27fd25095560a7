//! Encodes 802.11 frames (802.11-2020 clause 9.3).

use tacit_link::wifi::air::{
    Acknowledged, Frame, Outcome, StationId, Trigger, TriggerKind, TriggeredResponse,
};
use tacit_link::wifi::phy::{Coding, Format, GuardInterval, ResourceUnit};
use tacit_link::wifi::{AckBitmap, AirFrame, LinkId};
use tacit_packet::units::Duration;

use super::FrameBytes;
use super::fields::{he, number_of};

// First byte of frame control: version 0, type, subtype.
const DATA: u8 = 0x08;
const QOS_DATA: u8 = 0x88;
const QOS_NULL: u8 = 0xc8;
const BEACON: u8 = 0x80;
const TRIGGER: u8 = 0x24;
const BLOCK_ACK_REQUEST: u8 = 0x84;
const BLOCK_ACK: u8 = 0x94;
/// Carries a control frame that has an HT Control field.
const CONTROL_WRAPPER: u8 = 0x74;
const CF_END: u8 = 0xe4;
const ACTION_NO_ACK: u8 = 0xe0;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;

// Flags in the second byte of frame control.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const RETRY: u8 = 0x08;
const MORE_DATA: u8 = 0x20;
/// +HTC/Order: the header ends with an HT Control field.
const HT_CONTROL_PRESENT: u8 = 0x80;

/// HT Control: AC Constraint; the RD responder sends frames of the same access category only.
const AC_CONSTRAINT: u32 = 1 << 30;
/// HT Control: RDG/More PPDU.
const MORE_PPDU: u32 = 1 << 31;
/// HT Control of the VHT variant.
const VHT_VARIANT: u32 = 1;
/// HT Control of the HE variant.
const HE_VARIANT: u32 = 3;
/// Control ID of a TRS Control subfield (802.11ax-2021 table 9-22a).
const TRS: u32 = 0;

/// Ack Policy in the QoS control field's first byte: no acknowledgment (802.11-2020 table 9-13).
const NO_ACK: u8 = 0x20;
/// Bit of the QoS control field's first byte: the second byte is the station's queue size.
const QUEUE_SIZE_FOLLOWS: u8 = 0x10;
/// Bit of the QoS control field's first byte: an A-MSDU follows (802.11-2020 clause 9.2.4.5).
const AMSDU_PRESENT: u8 = 0x80;
/// Category of an Action frame (802.11-2020 table 9-51).
const VENDOR_SPECIFIC: u8 = 127;
/// Trigger Types (802.11ax-2021 table 9-29c).
const BASIC: u64 = 0;
const MU_BAR: u64 = 2;
const BUFFER_STATUS_REPORT_POLL: u64 = 4;
const MU_RTS: u64 = 3;
/// BA Type of a Multi-STA Block Ack, in BA Control.
const MULTI_STA: u16 = 11 << 1;
/// BA and BAR control: compressed bitmap.
const COMPRESSED: u16 = 0x0004;
/// Position of the TID in it.
const TID_SHIFT: u32 = 12;
const LLC_SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
const BROADCAST: [u8; 6] = [0xff; 6];
/// In units of 1024 us: 102.4 ms.
const BEACON_INTERVAL: u16 = 100;
const CAPABILITY_ESS: u16 = 0x0001;
const SSID: &[u8] = b"tacit";
/// In units of 500 kb/s; 6, 12 and 24 Mb/s are basic rates (top bit).
const SUPPORTED_RATES: [u8; 8] = [0x8c, 0x12, 0x98, 0x24, 0xb0, 0x48, 0x60, 0x6c];

/// Which numbering a frame uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbered {
    /// The given beacon number.
    Beacon,
    /// Its own number, or none.
    Other,
}

/// Appends the MPDU with its FCS.
pub(super) fn frame<P: FrameBytes>(out: &mut Vec<u8>, air: &AirFrame<P>, beacon: u16) -> Numbered {
    let start = out.len();
    let receiver = air.receiver.map_or(BROADCAST, |station| link_address(station, air.link));
    let transmitter = link_address(air.transmitter, air.link);
    let control = |out: &mut Vec<u8>, kind: u8, duration: u16| {
        out.extend([if air.more_ppdu.is_some() { CONTROL_WRAPPER } else { kind }, 0]);
        out.extend(duration.to_le_bytes());
        out.extend(receiver);
        if let Some(field) = ht_control(air) {
            // Carried Frame Control, then HT Control.
            out.extend([kind, 0]);
            out.extend(field);
        }
    };
    let block_ack_control = COMPRESSED | u16::from(air.category.tid()) << TID_SHIFT;
    match &air.frame {
        Frame::Data { .. } => data(out, air),
        Frame::Ack { appended } => {
            control(out, ACK, duration_field(air));
            out.extend_from_slice(appended);
        }
        Frame::BlockAck { start, bitmap, appended } => {
            control(out, BLOCK_ACK, duration_field(air));
            out.extend(transmitter);
            out.extend(block_ack_control.to_le_bytes());
            out.extend((start << 4 | bitmap_code(bitmap)).to_le_bytes());
            out.extend(bitmap.bytes());
            out.extend_from_slice(appended);
        }
        Frame::BlockAckReq { start } => {
            control(out, BLOCK_ACK_REQUEST, duration_field(air));
            out.extend(transmitter);
            out.extend(block_ack_control.to_le_bytes());
            out.extend((start << 4).to_le_bytes());
        }
        Frame::Trigger(trigger) => {
            control(out, TRIGGER, duration_field(air));
            out.extend(transmitter);
            trigger_fields(out, trigger, block_ack_control);
        }
        Frame::MultiStaBlockAck(acknowledged) => {
            control(out, BLOCK_ACK, duration_field(air));
            out.extend(transmitter);
            multi_sta_block_ack(out, acknowledged, air.category.tid());
        }
        Frame::QosNull { queue_size } => {
            out.extend([QOS_NULL, TO_DS]);
            out.extend(duration_field(air).to_le_bytes());
            out.extend(receiver);
            out.extend(transmitter);
            out.extend(receiver);
            // Sequence control; then the TID, and the flag for a queue size.
            out.extend([0, 0, air.category.tid() | NO_ACK | QUEUE_SIZE_FOLLOWS, *queue_size]);
        }
        Frame::TriggeredResponse(response) => {
            out.extend([QOS_NULL, FROM_DS | HT_CONTROL_PRESENT]);
            out.extend(duration_field(air).to_le_bytes());
            out.extend(receiver);
            out.extend(transmitter);
            out.extend(transmitter);
            // Sequence control, QoS control.
            out.extend([0, 0, air.category.tid() | NO_ACK, 0]);
            out.extend(triggered_response(response).to_le_bytes());
        }
        Frame::ActionNoAck { content } => {
            out.extend([ACTION_NO_ACK, 0]);
            out.extend(duration_field(air).to_le_bytes());
            out.extend(receiver);
            out.extend(transmitter);
            out.extend(receiver);
            // Sequence control; the category, an OUI without an owner (locally administered), a type.
            out.extend([0, 0, VENDOR_SPECIFIC, 0x02, 0, 0, 0, 0]);
            out.extend_from_slice(content);
        }
        Frame::Rts => {
            control(out, RTS, duration_field(air));
            out.extend(transmitter);
        }
        Frame::Cts => control(out, CTS, duration_field(air)),
        Frame::CfEnd => {
            control(out, CF_END, 0);
            out.extend(transmitter);
        }
        Frame::Beacon => beacon_frame(out, air, beacon),
    }
    let mut fcs = crc32fast::hash(&out[start..]);
    if air.outcome != Outcome::Received {
        fcs = !fcs;
    }
    out.extend(fcs.to_le_bytes());
    if matches!(air.frame, Frame::Beacon) { Numbered::Beacon } else { Numbered::Other }
}

/// Common Info, User Info of each user, and padding (802.11ax-2021 clause 9.3.1.22).
fn trigger_fields(out: &mut Vec<u8>, trigger: &Trigger, block_ack_control: u16) {
    let kind = match trigger.kind {
        TriggerKind::Basic => BASIC,
        TriggerKind::MuBar => MU_BAR,
        TriggerKind::BufferStatusReport => BUFFER_STATUS_REPORT_POLL,
        TriggerKind::MuRts => MU_RTS,
    };
    let width = number_of(&he::BANDWIDTHS, &trigger.width_mhz).unwrap_or_default();
    let of_first = trigger.users.first().map(|user| user.mode);
    // 2x HE-LTF with 1.6 us, or 4x with 3.2 us.
    let intervals = match of_first.map(|mode| mode.guard_interval) {
        Some(GuardInterval::Ns3200) => 2,
        _ => 1,
    };
    let common = kind
        | u64::from(trigger.l_sig_length) << 4
        // Carrier sense is required.
        | 1 << 17
        | u64::from(width) << 18
        | intervals << 20;
    out.extend(common.to_le_bytes());
    for user in &trigger.users {
        let mode = &user.mode;
        let of_channel = || ResourceUnit::of_channel(mode.width_mhz).unwrap_or(ResourceUnit::Tones242);
        let unit = match trigger.kind {
            // The channel of the CTS.
            TriggerKind::MuRts => of_channel(),
            _ => mode.resource_unit.unwrap_or(ResourceUnit::Tones242),
        };
        let (number, is_upper) = unit_number(unit, user.unit_index);
        if trigger.kind == TriggerKind::MuRts {
            // All other bits are reserved.
            let info = u64::from(user.station.0) | u64::from(is_upper) << 12 | u64::from(number) << 13;
            out.extend_from_slice(&info.to_le_bytes()[..5]);
            continue;
        }
        let is_ldpc = mode.he_options().is_some_and(|options| options.coding == Coding::Ldpc);
        let info = u64::from(user.station.0)
            | u64::from(is_upper) << 12
            | u64::from(number) << 13
            | u64::from(is_ldpc) << 20
            | u64::from(mode.mcs.unwrap_or_default()) << 21
            | match user.station {
                // RA-RU Information: the number of further units.
                StationId::AP => u64::from(user.units - 1) << 26,
                // SS Allocation: the first stream, and the number of further streams.
                _ => u64::from(mode.streams - 1) << 29,
            };
        out.extend_from_slice(&info.to_le_bytes()[..5]);
        match trigger.kind {
            TriggerKind::MuBar => {
                out.extend(block_ack_control.to_le_bytes());
                out.extend((user.start << 4).to_le_bytes());
            }
            // MPDUs with any TID and of any access category.
            TriggerKind::Basic => out.push(0),
            TriggerKind::BufferStatusReport | TriggerKind::MuRts => {}
        }
    }
    // The first 12 bits are the AID of no station.
    out.resize(out.len() + trigger.padding_bytes as usize, 0xff);
}

/// HT Control of the HE variant with a TRS Control subfield (802.11ax-2021 clauses 9.2.4.6a and 9.2.4.6a.1); transmit
/// powers are omitted.
fn triggered_response(response: &TriggeredResponse) -> u32 {
    let mode = &response.mode;
    let (number, is_upper) =
        unit_number(mode.resource_unit.unwrap_or(ResourceUnit::Tones242), response.unit_index);
    let information = (response.symbols.saturating_sub(1) as u32 & 0x1f)
        | u32::from(is_upper) << 5
        | u32::from(number) << 6
        | u32::from(mode.mcs.unwrap_or_default() & 0x3) << 23;
    HE_VARIANT | TRS << 2 | information << 6
}

/// BA Control, and Per AID TID Info of each station (802.11ax-2021 clause 9.3.1.8.6); after that, per station with
/// appended bytes, their length and the bytes.
fn multi_sta_block_ack(out: &mut Vec<u8>, acknowledged: &[Acknowledged], tid: u8) {
    out.extend(MULTI_STA.to_le_bytes());
    for one in acknowledged {
        out.extend((one.station.0 | u16::from(tid) << TID_SHIFT).to_le_bytes());
        out.extend((one.start << 4 | bitmap_code(&one.bitmap)).to_le_bytes());
        out.extend(one.bitmap.bytes());
    }
    for one in acknowledged.iter().filter(|one| !one.appended.is_empty()) {
        out.extend((one.appended.len() as u16).to_le_bytes());
        out.extend_from_slice(&one.appended);
    }
}

/// The number of a unit in the RU Allocation subfield, and whether it is in the upper 80 of 160 MHz (802.11ax-2021
/// table 9-29g).
fn unit_number(unit: ResourceUnit, index: u16) -> (u16, bool) {
    let first = match unit {
        ResourceUnit::Tones26 => 0,
        ResourceUnit::Tones52 => 37,
        ResourceUnit::Tones106 => 53,
        ResourceUnit::Tones242 => 61,
        ResourceUnit::Tones484 => 65,
        ResourceUnit::Tones996 => 67,
        ResourceUnit::Tones2x996 | ResourceUnit::Tones4x996 => return (68, true),
    };
    let of_80_mhz = unit.count_in(80) as u16;
    (first + index % of_80_mhz, index >= of_80_mhz)
}

fn data<P: FrameBytes>(out: &mut Vec<u8>, air: &AirFrame<P>) {
    let Frame::Data { sequence, retry, more_data, payload, rest, .. } = &air.frame else { return };
    let is_qos = air.mode.format.aggregates();
    let mut flags = match (air.transmitter, air.receiver) {
        (StationId::AP, _) => FROM_DS,
        (_, Some(StationId::AP)) => TO_DS,
        // Over a direct link.
        _ => 0,
    };
    if *retry {
        flags |= RETRY;
    }
    if *more_data {
        flags |= MORE_DATA;
    }
    if air.more_ppdu.is_some() {
        flags |= HT_CONTROL_PRESENT;
    }
    out.extend([if is_qos { QOS_DATA } else { DATA }, flags]);
    out.extend(duration_field(air).to_le_bytes());
    out.extend(air.receiver.map_or(BROADCAST, |station| link_address(station, air.link)));
    out.extend(link_address(air.transmitter, air.link));
    // The destination behind the access point is the wired side, represented by the access point's own address.
    out.extend(mac_address(StationId::AP));
    out.extend((sequence << 4).to_le_bytes());
    if is_qos {
        // The TID, and the Ack Policy: normal ACK or implicit Block Ack Request within an A-MPDU, unless no time is
        // reserved for either.
        let amsdu = if rest.is_empty() { 0 } else { AMSDU_PRESENT };
        let policy = if air.reserves == Duration::ZERO { NO_ACK } else { 0 };
        out.extend([air.category.tid() | policy | amsdu, 0]);
        out.extend(ht_control(air).into_iter().flatten());
    }
    if rest.is_empty() {
        msdu(out, payload);
        return;
    }
    let addresses = [air.receiver.map_or(BROADCAST, mac_address), mac_address(air.transmitter)];
    let body = out.len();
    for payload in std::iter::once(payload).chain(rest) {
        // Each subframe except the last is padded to a multiple of 4.
        out.resize(body + (out.len() - body).next_multiple_of(4), 0);
        out.extend(addresses.as_flattened());
        let length = out.len();
        out.extend([0; 2]);
        msdu(out, payload);
        let bytes = (out.len() - length - 2) as u16;
        out[length..length + 2].copy_from_slice(&bytes.to_be_bytes());
    }
}

/// The Fragment Number of a compressed Block Ack, which encodes the length of its bitmap (802.11ax-2021 and 802.11be
/// clause 9.3.1.8.2).
const fn bitmap_code(bitmap: &AckBitmap) -> u16 {
    match bitmap.len() {
        0..=64 => 0,
        65..=256 => 4,
        257..=512 => 8,
        _ => 10,
    }
}

/// The HT Control field, if the frame has one (802.11-2020 clause 9.2.4.6).
fn ht_control<P>(air: &AirFrame<P>) -> Option<[u8; 4]> {
    let more = if air.more_ppdu? { MORE_PPDU } else { 0 };
    // The data rate of a control response does not show the standard; receivers understand both variants.
    let variant = if air.mode.format == Format::Vht { VHT_VARIANT } else { 0 };
    Some((variant | AC_CONSTRAINT | more).to_le_bytes())
}

/// LLC/SNAP and the packet.
fn msdu<P: FrameBytes>(out: &mut Vec<u8>, payload: &P) {
    out.extend(LLC_SNAP);
    let ether_type = out.len();
    out.extend(0x0800u16.to_be_bytes());
    payload.write_to(out);
    if out.get(ether_type + 2).is_some_and(|version| version >> 4 == 6) {
        out[ether_type..ether_type + 2].copy_from_slice(&0x86ddu16.to_be_bytes());
    }
}

fn beacon_frame<P>(out: &mut Vec<u8>, air: &AirFrame<P>, number: u16) {
    let bssid = link_address(air.transmitter, air.link);
    out.extend([BEACON, 0, 0, 0]);
    out.extend(BROADCAST);
    out.extend(bssid);
    out.extend(bssid);
    out.extend((number << 4).to_le_bytes());
    out.extend((air.at.as_nanos() / 1_000).to_le_bytes());
    out.extend(BEACON_INTERVAL.to_le_bytes());
    out.extend(CAPABILITY_ESS.to_le_bytes());
    for (element, value) in [(0, SSID), (1, &SUPPORTED_RATES[..])] {
        out.extend([element, value.len() as u8]);
        out.extend_from_slice(value);
    }
}

/// The Duration field, in us (802.11-2020 clause 9.2.5).
fn duration_field<P>(air: &AirFrame<P>) -> u16 {
    u16::try_from(air.reserves.as_micros()).unwrap_or(0x7fff).min(0x7fff)
}

/// A locally administered address: that of the station, or of the multi-link device.
fn mac_address(station: StationId) -> [u8; 6] {
    link_address(station, LinkId::FIRST)
}

/// The address of a station on a link, with the number of the link from 0 in the fourth octet; that of the access point is
/// the BSSID there. The first link has the address of the device, as 802.11be allows.
fn link_address(station: StationId, link: LinkId) -> [u8; 6] {
    let [high, low] = station.0.to_be_bytes();
    [0x02, 0, 0, link.0, high, low]
}
