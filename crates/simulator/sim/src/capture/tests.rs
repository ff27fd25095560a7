use std::path::Path;
use std::process::Command;

use etherparse::PacketBuilder;
use tacit_link::wifi::air::{
    Acknowledged, AmpduPosition, Frame, Outcome, StationId, Trigger, TriggerKind, TriggerUser,
    TriggeredResponse,
};
use tacit_link::wifi::phy::{
    Format, GuardInterval, HeOptions, Mode, MultiUser, MultiUserPpdu, Preamble, ResourceUnit, Standard,
};
use tacit_link::wifi::{AccessCategory, AckBitmap};
use tacit_packet::units::{BitRate, Duration, Instant};

use super::*;

const STATION: StationId = StationId(258);

fn ip_packet(v6: bool) -> Vec<u8> {
    let ip = if v6 {
        PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    };
    let mut bytes = Vec::new();
    ip.tcp(80, 4000, 7, 1024).ack(9).write(&mut bytes, &[0x55; 100]).unwrap();
    bytes
}

fn mode(standard: Standard, mbps: u64) -> Mode {
    Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap()
}

/// A frame, and its position in an A-MPDU.
type Placed = (Frame<Vec<u8>>, Option<AmpduPosition>);

fn data(sequence: u16, ampdu: Option<AmpduPosition>, v6: bool) -> Placed {
    let frame = Frame::Data {
        sequence,
        retry: sequence == 2,
        more_data: true,
        sync: false,
        payload: ip_packet(v6),
        rest: Vec::new(),
    };
    (frame, ampdu)
}

/// A frame that is not in an A-MPDU.
fn single(frame: Frame<Vec<u8>>) -> Placed {
    (frame, None)
}

/// An A-MSDU of three packets; the second is IPv6.
fn amsdu(sequence: u16, ampdu: Option<AmpduPosition>) -> Placed {
    let mut placed = data(sequence, ampdu, false);
    if let (Frame::Data { rest, .. }, _) = &mut placed {
        rest.extend([ip_packet(true), ip_packet(false)]);
    }
    placed
}

/// Every kind of frame, in both directions, of both standards, and one of each failure.
fn every_kind() -> Vec<AirFrame<Vec<u8>>> {
    let in_ampdu = |last| Some(AmpduPosition { reference: 5, last, single: false });
    let alone = Some(AmpduPosition { reference: 6, last: true, single: true });
    let ac = |kbps| Mode::for_rate(Standard::Ac, BitRate::from_kbps(kbps)).unwrap();
    let he = |mcs, streams, width_mhz, interval| Mode::he(mcs, streams, width_mhz, interval).unwrap();
    let eht = |mcs, streams, width_mhz, interval| Mode::eht(mcs, streams, width_mhz, interval).unwrap();
    let he_extended = Mode::he_extended_range(2, GuardInterval::Ns1600).unwrap();
    let b = |preamble| Mode::dsss(BitRate::from_mbps(11), preamble).unwrap();
    let g = Mode::erp_ofdm(BitRate::from_mbps(54)).unwrap();
    let (down, up) = ((StationId::AP, Some(STATION)), (STATION, Some(StationId::AP)));
    let n = mode(Standard::N, 150);
    let a = mode(Standard::A, 54);
    let slow = mode(Standard::A, 24);
    let kinds = [
        (mode(Standard::A, 6), (StationId::AP, None), Outcome::Received, single(Frame::Beacon)),
        (n, down, Outcome::Received, data(1, in_ampdu(false), false)),
        (n, down, Outcome::Errored, data(2, in_ampdu(false), false)),
        (n, down, Outcome::Received, data(4095, in_ampdu(true), true)),
        (
            slow,
            up,
            Outcome::Received,
            single(Frame::BlockAck { start: 1, bitmap: AckBitmap::of_64(0b101), appended: Vec::new() }),
        ),
        (slow, down, Outcome::Received, single(Frame::BlockAckReq { start: 2 })),
        (mode(Standard::N, 65), up, Outcome::Received, data(0, None, false)),
        (slow, down, Outcome::Received, single(Frame::Ack { appended: Vec::new() })),
        (a, up, Outcome::Collided, data(7, None, true)),
        (a, down, Outcome::Received, data(8, None, false)),
        (slow, up, Outcome::Received, single(Frame::Ack { appended: Vec::new() })),
        (mode(Standard::A, 6), (StationId::AP, None), Outcome::Received, single(Frame::Beacon)),
        (ac(866_700), down, Outcome::Received, data(10, in_ampdu(false), false)),
        (ac(866_700), down, Outcome::Received, data(11, in_ampdu(true), true)),
        (ac(3_466_700), up, Outcome::Received, data(12, alone, false)),
        (ac(6_500), up, Outcome::Errored, data(13, alone, false)),
        (ac(200_000), up, Outcome::Received, data(14, alone, false)),
        (he(11, 2, 160, GuardInterval::Ns800), down, Outcome::Received, data(17, in_ampdu(true), false)),
        (he(5, 1, 40, GuardInterval::Ns3200), up, Outcome::Received, data(18, alone, false)),
        (he_extended, up, Outcome::Received, data(19, alone, false)),
        (eht(13, 8, 320, GuardInterval::Ns800), down, Outcome::Received, data(23, in_ampdu(true), false)),
        (eht(0, 1, 20, GuardInterval::Ns3200), up, Outcome::Received, data(24, alone, false)),
        (ac(433_300), down, Outcome::Received, amsdu(20, alone)),
        (n, down, Outcome::Received, amsdu(21, in_ampdu(false))),
        (n, down, Outcome::Received, data(22, in_ampdu(true), false)),
        (b(Preamble::Short), down, Outcome::Received, data(15, None, false)),
        (b(Preamble::Long), up, Outcome::Received, single(Frame::Ack { appended: Vec::new() })),
        (g, down, Outcome::Received, data(16, None, true)),
        (slow, up, Outcome::Received, single(Frame::Rts)),
        (b(Preamble::Long), (STATION, Some(STATION)), Outcome::Received, single(Frame::Cts)),
    ];
    let at = |i: usize| Instant::from_nanos(5_000_000_123 + i as u64 * 1_000_000);
    let frames =
        kinds.into_iter().enumerate().map(|(i, (mode, (transmitter, receiver), outcome, (frame, ampdu)))| {
            let duration = mode.ppdu_duration(1000);
            AirFrame {
                link: tacit_link::wifi::LinkId::FIRST,
                at: at(i),
                duration,
                mode,
                // A response reserves no time after itself.
                reserves: match frame {
                    Frame::Ack { .. } | Frame::BlockAck { .. } => Duration::ZERO,
                    _ => Duration::from_micros(48),
                },
                transmitter,
                receiver,
                category: AccessCategory::BestEffort,
                outcome,
                more_ppdu: None,
                unit_index: None,
                ampdu,
                frame,
            }
        });
    frames.collect()
}

/// 6 GHz for EHT, otherwise the mode's band.
fn band(frame: &AirFrame<Vec<u8>>) -> Band {
    match frame.mode.format {
        Format::EhtMu => Band::Ghz6,
        _ if frame.mode.is_2_4_ghz() => Band::Ghz2_4,
        _ => Band::Ghz5,
    }
}

fn written(frames: &[AirFrame<Vec<u8>>]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    for frame in frames {
        writer.write(frame, band(frame), None).unwrap();
    }
    writer.finish().unwrap()
}

/// Bytes of the MPDU of `frame`, including the FCS.
fn mpdu(frame: &AirFrame<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    dot11::frame(&mut out, frame, 0);
    out
}

#[test]
fn grants_stand_in_an_ht_control_field() {
    use tacit_link::wifi::phy;
    let kinds = every_kind();
    let with = |i: usize, more: bool| AirFrame { more_ppdu: Some(more), ..kinds[i].clone() };
    let longer = |i: usize| mpdu(&with(i, true)).len() - mpdu(&kinds[i]).len();
    assert_eq!([longer(1), longer(4), longer(7)], [4, 6, 6]);
    let data = mpdu(&with(1, true));
    // +HTC; AC Constraint and RDG/More PPDU after the QoS Control field.
    assert_eq!((data[1] & 0x80, &data[26..30]), (0x80, &[0, 0, 0, 0xc0][..]));
    assert_eq!(mpdu(&with(1, false))[26..30], [0, 0, 0, 0x40]);
    // The VHT variant is marked.
    assert_eq!(mpdu(&with(12, true))[26], 1);
    // A Control Wrapper: receiver, Carried Frame Control, HT Control, and the rest of the Block Ack.
    let (plain, wrapped) = (mpdu(&kinds[4]), mpdu(&with(4, true)));
    assert_eq!((wrapped[0], &wrapped[10..12], wrapped[15]), (0x74, &[0x94, 0][..], 0xc0));
    assert_eq!(wrapped[16..34], plain[10..28]);
    let end = AirFrame { receiver: None, frame: Frame::CfEnd, ..kinds[0].clone() };
    assert_eq!((mpdu(&end)[0], mpdu(&end).len() as u32), (0xe4, phy::CF_END_LEN));
}

#[test]
fn frames_have_the_lengths_of_the_phy_tables() {
    use tacit_link::wifi::phy;
    let lens: Vec<usize> = every_kind().iter().map(|frame| mpdu(frame).len()).collect();
    let ip = ip_packet(false).len() as u32;
    assert_eq!(lens[1] as u32, phy::mpdu_len(phy::QOS_MAC_HEADER_LEN, ip));
    assert_eq!(lens[9] as u32, phy::mpdu_len(phy::MAC_HEADER_LEN, ip));
    assert_eq!(lens[4] as u32, phy::BLOCK_ACK_LEN);
    assert_eq!(lens[5] as u32, phy::BLOCK_ACK_REQUEST_LEN);
    assert_eq!(lens[7] as u32, phy::ACK_LEN);
}

/// The words according to the Linux kernel's definitions of these fields: U-SIG is TLV 33 and EHT TLV 34.
#[test]
fn eht_stands_in_tlvs() {
    let frames = every_kind();
    let words_of_frame = |sequence: u16| {
        let is_it =
            |air: &&AirFrame<Vec<u8>>| matches!(air.frame, Frame::Data { sequence: s, .. } if s == sequence);
        let mut out = Vec::new();
        radiotap::header(&mut out, frames.iter().find(is_it).unwrap(), Band::Ghz6, None);
        let words: Vec<u32> =
            out.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[1] & 1 << 28, 1 << 28);
        words[words.len() - (4 + 12)..].to_vec()
    };
    // From the access point, 320 MHz, MCS 13, 8 streams, GI 0.8 and 2x.
    let (down, user) = (words_of_frame(23), 0x0008_0096 | 13 << 20 | 7 << 24);
    assert_eq!(down[..4], [33 | 12 << 16, 0b111 | 4 << 15, 1 << 6, 0b11 << 6]);
    assert_eq!(down[4..7], [34 | 44 << 16, 4, 2 << 9]);
    assert_eq!((&down[7..15], down[15]), (&[0; 8][..], user));
    // From a client, 20 MHz, MCS 0, one stream, GI 3.2 and 4x.
    let up = words_of_frame(24);
    assert_eq!(up[1], 0b111 | 1 << 18);
    assert_eq!((up[6], up[15]), (2 << 7 | 3 << 9, 0x0008_0096));
}

#[test]
fn blocks_are_aligned_and_say_their_length_twice() {
    let file = written(&every_kind());
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut blocks) = (0, 0);
    while at < file.len() {
        let total = word(at + 4) as usize;
        assert_eq!((total % 4, word(at + total - 4) as usize), (0, total));
        at += total;
        blocks += 1;
    }
    assert_eq!((at, blocks), (file.len(), 2 + every_kind().len()));
}

#[test]
fn frames_that_overlap_stand_in_the_order_in_which_they_began() {
    // Frames are reported when they end: a long frame of a hidden station after short ones that began later.
    let began_us = [7_000, 7_400, 5_000, 60_000, 200_000, 190_000];
    let frames = every_kind();
    let frames = began_us.map(|us| AirFrame { at: Instant::from_nanos(us * 1_000), ..frames[1].clone() });
    let file = written(&frames);
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut stamps) = (0, Vec::new());
    while at < file.len() {
        if word(at) == 6 {
            // After type, length and interface: high and low half of the time.
            stamps.push(u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)));
        }
        at += word(at + 4) as usize;
    }
    assert_eq!(stamps.len(), began_us.len());
    assert!(stamps.is_sorted(), "{stamps:?}");
}

#[test]
fn only_received_frames_have_a_good_fcs() {
    for frame in every_kind() {
        let bytes = mpdu(&frame);
        let (body, fcs) = bytes.split_at(bytes.len() - 4);
        let good = crc32fast::hash(body).to_le_bytes() == fcs;
        assert_eq!(good, frame.outcome == Outcome::Received);
    }
}

/// A directory below the build's, removed when dropped.
pub(super) struct Scratch(pub std::path::PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tacit-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs tshark; prints the reason and returns `None` if it is not available.
fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("tshark").arg("-r").arg(file).args(arguments).output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            eprintln!("SKIPPED: tshark: {error}");
            None
        }
    }
}

#[test]
fn tshark_finds_nothing_wrong() {
    let scratch = Scratch::new("tshark");
    let file = scratch.0.join("all.pcapng");
    std::fs::write(&file, written(&every_kind())).unwrap();
    let check_fcs = ["-o", "wlan.check_fcs:TRUE", "-o", "wlan.check_checksum:TRUE"];
    let with = |more: &[&str]| tshark(&file, &[&check_fcs[..], more].concat());
    // Frames that were not received have a wrong FCS on purpose, which tshark reports as an error.
    let wrong = "(_ws.malformed || _ws.expert.severity >= error) && radiotap.flags.badfcs == 0";
    let Some(malformed) = with(&["-Y", wrong]) else { return };
    assert_eq!(malformed, "");
    let fields = ["frame.time_epoch", "wlan.fc.type_subtype", "wlan.fcs.status", "tcp.len", "wlan.seq"];
    let flags: Vec<&str> = fields.iter().flat_map(|field| ["-e", *field]).collect();
    let table = with(&[&["-T", "fields"], &flags[..]].concat()).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), every_kind().len());
    for (row, frame) in rows.iter().zip(every_kind()) {
        let good = frame.outcome == Outcome::Received;
        assert_eq!(row[2] == "1" || row[2] == "Good", good, "{row:?}");
        if let Frame::Data { rest, .. } = &frame.frame
            && good
        {
            let lengths = vec!["100"; 1 + rest.len()].join(",");
            assert_eq!(row[3], lengths, "{row:?}");
        }
    }
    assert!(rows[1][0].ends_with("5.001000123"), "{:?}", rows[1]);
    let ampdu = with(&["-Y", "radiotap.ampdu.reference == 5 && radiotap.mcs.index == 7"]).unwrap();
    assert_eq!(ampdu.lines().count(), 3 + 2);
    // Radiotap's bandwidth 4 is 80 MHz, 11 is 160, 1 is 40.
    for (vht, frames) in [
        (
            "radiotap.vht.bw == 4 && radiotap.vht.mcs.0 == 9 && radiotap.vht.nss.0 == 2 && radiotap.vht.gi == 1",
            2,
        ),
        ("radiotap.vht.bw == 11 && radiotap.vht.nss.0 == 4 && radiotap.ampdu.flags.eof == 1", 1),
        ("radiotap.vht.bw == 0 && radiotap.vht.mcs.0 == 0 && radiotap.vht.gi == 0", 1),
        (
            "radiotap.he.data_1.ppdu_format == 0 && radiotap.he.data_3.data_mcs == 11 && radiotap.he.data_6.nsts == 2 && \
             radiotap.he.data_5.data_bw_ru_allocation == 3",
            1,
        ),
        ("radiotap.he.data_5.gi == 2 && radiotap.he.data_5.data_bw_ru_allocation == 1", 1),
        ("radiotap.he.data_1.ppdu_format == 1 && radiotap.he.data_5.gi == 1", 1),
        // The 2x HE-LTF is 2, the 4x one 3.
        ("radiotap.he.data_5.ltf_symbol_size == 2", 2),
        ("radiotap.he.data_5.ltf_symbol_size == 3", 1),
        // tshark before 4.2 does not know U-SIG and EHT, and skips them.
        ("radiotap.channel.freq == 6135 && radiotap.channel.flags.5ghz == 1 && radiotap.present.tlv == 1", 2),
        ("radiotap.vht.bw == 1 && wlan_radio.phy == 8 && wlan_radio.data_rate == 200", 1),
        ("radiotap.channel.flags.cck == 1 && radiotap.datarate == 11 && radiotap.flags.preamble == 1", 1),
        ("radiotap.channel.freq == 2437 && radiotap.datarate == 54 && wlan_radio.phy == 6", 1),
        ("wlan.duration == 48", 14 + 2 + 3 + 3 + 2),
        ("wlan.qos.amsdupresent == 1 && wlan_aggregate.a_mdsu.length == 148", 2),
        ("wlan.fc.type_subtype == 0x1b && wlan.ta == 02:00:00:00:01:02", 1),
        ("wlan.fc.type_subtype == 0x1c && wlan.ra == 02:00:00:00:01:02", 1),
    ] {
        assert_eq!(with(&["-Y", vht]).unwrap().lines().count(), frames, "{vht}");
    }
    let block_ack = with(&["-Y", "wlan.fixed.ssc.sequence == 1 && wlan.ba.bm"]).unwrap();
    assert_eq!(block_ack.lines().count(), 1, "{block_ack}");
    let beacons = with(&["-Y", "wlan.ssid == \"tacit\" || wlan.ssid == 74:61:63:69:74"]).unwrap();
    assert_eq!(beacons.lines().count(), 2);
}

/// Multi-user frames at 80 and 160 MHz: a unit of a PPDU, triggers of each kind, responses, and a Multi-STA Block Ack.
fn of_several_users() -> Vec<AirFrame<Vec<u8>>> {
    let part = |kind: MultiUser, unit, width_mhz, mcs| {
        let guard_interval = kind.guard_interval(GuardInterval::Ns800);
        let ppdu = MultiUserPpdu {
            kind,
            users: 4,
            unit,
            training_streams: 1,
            lowest_mcs: mcs,
            guard_interval,
            options: HeOptions::usual(guard_interval),
        };
        Mode::he(mcs, 1, width_mhz, GuardInterval::Ns800).unwrap().among_users(&ppdu).unwrap()
    };
    let user = |station, unit, width_mhz, unit_index| TriggerUser {
        units: 1,
        station: StationId(station),
        mode: part(MultiUser::Up, unit, width_mhz, 5),
        unit_index,
        start: 7,
    };
    let trigger = |kind, users: Vec<TriggerUser>| {
        let width_mhz = users[0].mode.width_mhz;
        single(Frame::Trigger(Trigger { kind, width_mhz, padding_bytes: 48, l_sig_length: 199, users }))
    };
    let acknowledged = |station, bitmap| Acknowledged {
        station: StationId(station),
        start: 9,
        bitmap,
        appended: Vec::new(),
    };
    let slow = mode(Standard::A, 24);
    let (down, up, all) =
        ((StationId::AP, Some(STATION)), (STATION, Some(StationId::AP)), (StationId::AP, None));
    let in_ampdu = Some(AmpduPosition { reference: 5, last: true, single: false });
    let kinds = [
        (part(MultiUser::Down, ResourceUnit::Tones106, 80, 11), down, Some(5), data(1, in_ampdu, false)),
        (
            slow,
            all,
            None,
            trigger(
                TriggerKind::MuBar,
                vec![user(1, ResourceUnit::Tones106, 80, 0), user(2, ResourceUnit::Tones106, 80, 5)],
            ),
        ),
        (slow, all, None, trigger(TriggerKind::Basic, vec![user(3, ResourceUnit::Tones242, 160, 6)])),
        (
            slow,
            all,
            None,
            trigger(TriggerKind::BufferStatusReport, vec![user(4, ResourceUnit::Tones26, 80, 36)]),
        ),
        (slow, down, None, trigger(TriggerKind::MuRts, vec![user(7, ResourceUnit::Tones26, 80, 0)])),
        (
            part(MultiUser::Up, ResourceUnit::Tones52, 80, 5),
            up,
            Some(3),
            single(Frame::QosNull { queue_size: 77 }),
        ),
        (
            part(MultiUser::Up, ResourceUnit::Tones52, 80, 5),
            up,
            Some(3),
            single(Frame::ActionNoAck { content: vec![1, 2, 3, 4] }),
        ),
        (
            slow,
            all,
            None,
            single(Frame::MultiStaBlockAck(vec![
                acknowledged(258, AckBitmap::of_64(0b101)),
                acknowledged(3, AckBitmap::new(256)),
            ])),
        ),
        // After data in the same A-MPDU: a trigger, or the same as a TRS Control field.
        (
            part(MultiUser::Down, ResourceUnit::Tones106, 80, 11),
            down,
            Some(2),
            (trigger(TriggerKind::MuBar, vec![user(1, ResourceUnit::Tones106, 80, 2)]).0, in_ampdu),
        ),
        (
            part(MultiUser::Down, ResourceUnit::Tones242, 160, 11),
            down,
            Some(6),
            (
                Frame::TriggeredResponse(TriggeredResponse {
                    symbols: 9,
                    mode: part(MultiUser::Up, ResourceUnit::Tones242, 160, 3),
                    unit_index: 6,
                }),
                in_ampdu,
            ),
        ),
    ];
    let frames =
        kinds.into_iter().zip(0..).map(|((mode, (transmitter, receiver), unit_index, (frame, ampdu)), i)| {
            AirFrame {
                link: tacit_link::wifi::LinkId::FIRST,
                at: Instant::from_nanos(i * 1_000_000),
                duration: mode.ppdu_duration(100),
                mode,
                reserves: Duration::from_micros(48),
                transmitter,
                receiver,
                category: AccessCategory::BestEffort,
                outcome: Outcome::Received,
                more_ppdu: None,
                unit_index,
                ampdu,
                frame,
            }
        });
    frames.collect()
}

#[test]
fn tshark_reads_what_several_users_get_and_send() {
    let scratch = Scratch::new("tshark-users");
    let file = scratch.0.join("users.pcapng");
    std::fs::write(&file, written(&of_several_users())).unwrap();
    let with = |more: &[&str]| tshark(&file, more);
    let Some(malformed) = with(&["-Y", "_ws.malformed || _ws.expert.severity >= error"]) else { return };
    assert_eq!(malformed, "");
    for found in [
        // HE MU, unit 5 of the 106-tone units, and the division of 20 MHz.
        "radiotap.he.data_1.ppdu_format == 2 && radiotap.he.data_5.data_bw_ru_allocation == 6 && \
         radiotap.he.data_2.ru_allocation_offset == 5 && radiotap.present.he_mu == 1",
        // MU-BAR: 106-tone units are 53 to 60.
        "wlan.trigger.he.trigger_type == 2 && wlan.trigger.he.ru_allocation == 53 && \
         wlan.trigger.he.ru_allocation == 58 && wlan.trigger.he.user_info.aid12 == 2 && wlan.trigger.he.ul_bw == 2",
        // Basic: the third 242-tone unit in the upper 80 of 160 MHz.
        "wlan.trigger.he.trigger_type == 0 && wlan.trigger.he.ru_allocation == 63 && wlan.trigger.he.ul_bw == 3 && \
         wlan.trigger.he.ru_allocation_region == 1 && wlan.trigger.he.mcs == 5",
        "wlan.trigger.he.trigger_type == 4 && wlan.trigger.he.ru_allocation == 36 && wlan.trigger.he.ul_length == 199",
        // MU-RTS: the CTS fills the channel.
        "wlan.trigger.he.trigger_type == 3 && wlan.trigger.he.ru_allocation == 67 && wlan.trigger.he.ul_bw == 2 && \
         wlan.trigger.he.user_info.aid12 == 7 && wlan.trigger.he.mcs == 0",
        // A QoS Null as the response.
        "wlan.fc.type_subtype == 0x2c && radiotap.he.data_1.ppdu_format == 3 && wlan.qos.queue_size == 77",
        "wlan.ba.multi_sta.aid11 == 258 && wlan.ba.multi_sta.aid11 == 3",
        // A trigger within an A-MPDU.
        "wlan.trigger.he.trigger_type == 2 && wlan.trigger.he.ru_allocation == 55 && radiotap.ampdu.reference == 5",
        // A TRS Control field, for which tshark uses a draft's name: 9 symbols, the third 242-tone unit in the upper 80
        // MHz.
        "wlan.htc.he.a_control.ctrl_id == 0 && wlan.htc.he.a_control.umrs.he_tb_ppdu_len == 8 && \
         wlan.htc.he.a_control.umrs.ru_allocation == 127 && wlan.htc.he.a_control.umrs.ul_mcs == 3 && \
         wlan.fc.type_subtype == 0x2c && radiotap.ampdu.reference == 5",
    ] {
        assert_eq!(with(&["-Y", found]).unwrap().lines().count(), 1, "{found}");
    }
}
