use std::path::PathBuf;

use etherparse::{PacketBuilder, TcpOptionElement};
use proptest::prelude::*;
use tacit_link::wifi::phy::{Band, Mode, Standard};
use tacit_packet::units::{BitRate, Duration};

use super::*;

#[path = "cases.rs"]
mod cases;

use tacit_theory::Hop;

/// A TCP packet over Ethernet and IPv4. The server uses port 80.
fn ethernet(from_server: bool, seq: u32, ack: u32, window: u16, sack: bool, payload: usize) -> Vec<u8> {
    let (source, destination) = if from_server { (80, 4000) } else { (4000, 80) };
    let (from, to) =
        if from_server { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
    let mut options =
        vec![TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(seq, ack)];
    if sack {
        let block = TcpOptionElement::SelectiveAcknowledgement((ack + 10, ack + 20), [None; 3]);
        options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop, block]);
    }
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(from, to, 64)
        .tcp(source, destination, seq, window)
        .ack(ack)
        .options(&options)
        .unwrap();
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &vec![0; payload]).unwrap();
    bytes
}

/// Ten data packets of 1448 bytes, four ACKs (one a duplicate with SACK), and a window update.
fn conversation() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for i in 0..10 {
        packets.push(ethernet(true, 1 + i * 1448, 1, 500, false, 1448));
        match i {
            1 => packets.push(ethernet(false, 1, 1 + 2 * 1448, 500, false, 0)),
            3 => packets.push(ethernet(false, 1, 1 + 4 * 1448, 500, false, 0)),
            5 => packets.push(ethernet(false, 1, 1 + 4 * 1448, 500, true, 0)),
            7 => packets.push(ethernet(false, 1, 1 + 8 * 1448, 500, false, 0)),
            9 => packets.push(ethernet(false, 1, 1 + 8 * 1448, 900, false, 0)),
            _ => {}
        }
    }
    packets
}

fn u32_in(big: bool, value: u32) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn u16_in(big: bool, value: u16) -> [u8; 2] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

/// A capture with one packet per millisecond.
fn pcap(big: bool, nanoseconds: bool, link_type: u32, snap: usize, packets: &[Vec<u8>]) -> Vec<u8> {
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    file.extend(u32_in(big, magic));
    file.extend(u16_in(big, 2));
    file.extend(u16_in(big, 4));
    for field in [0, 0, snap as u32, link_type] {
        file.extend(u32_in(big, field));
    }
    for (i, packet) in packets.iter().enumerate() {
        let captured = packet.len().min(snap);
        let fraction = (i as u32 + 1) * if nanoseconds { 1_000_000 } else { 1_000 };
        for field in [1_700_000_000, fraction, captured as u32, packet.len() as u32] {
            file.extend(u32_in(big, field));
        }
        file.extend(&packet[..captured]);
    }
    file
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let total = u32_in(big, padded as u32 + 12);
    let mut block = [&u32_in(big, kind)[..], &total, body].concat();
    block.resize(8 + padded, 0);
    block.extend(total);
    block
}

/// A capture with two interfaces, to which packets are assigned alternately. The second one has a clock of 2^-20 s.
fn pcapng(big: bool, packets: &[Vec<u8>]) -> Vec<u8> {
    let section = [&u32_in(big, 0x1a2b_3c4d)[..], &u16_in(big, 1), &u16_in(big, 0), &[0xff; 8]].concat();
    let interface = |options: &[u8]| [&u16_in(big, 1)[..], &[0; 2], &u32_in(big, 0), options].concat();
    let resolution = [&u16_in(big, 9)[..], &u16_in(big, 1), &[0x94, 0, 0, 0], &[0; 4]].concat();
    let mut file = block(big, 0x0a0d_0d0a, &section);
    file.extend(block(big, 1, &interface(&[])));
    file.extend(block(big, 1, &interface(&resolution)));
    for (i, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        let at = (i as u32 + 1) * 1_000;
        let fields = [u32::from(is_from_client(packet)), 0, at, length, length];
        let body = [&fields.map(|field| u32_in(big, field)).concat()[..], packet].concat();
        file.extend(block(big, 6, &body));
    }
    // An unknown block is skipped.
    file.extend(block(big, 0x0bad, &[1, 2, 3, 4, 5]));
    file
}

fn is_from_client(packet: &[u8]) -> bool {
    packet[29] == 2
}

fn check_conversation(audit: &Audit) {
    let total = &audit.total;
    assert_eq!(audit.warnings, Vec::<String>::new());
    assert_eq!((audit.packets, audit.tcp_packets, audit.flows.len()), (15, 15, 1));
    assert_eq!((total.data_packets, total.data_segments, total.ack_packets), (10, 10, 4));
    assert_eq!((total.payload_bytes, total.ack_bytes), (14_480, 3 * 52 + 64));
    assert_eq!((total.ack_ratio, total.ack_ratio_per_segment), (Some(0.4), Some(0.4)));
    assert_eq!((total.sack_share, total.duplicate_ack_share), (Some(0.25), Some(0.25)));
    assert_eq!((total.window_updates, total.timestamps_share), (1, Some(1.0)));
    // The advance of the first ACK is unknown, because the capture contains no earlier one.
    assert_eq!(total.mean_ack_stride_bytes, Some(6.0 * 1448.0 / 4.0));
    assert_eq!(audit.flows[0].source, "10.0.0.1:80");
    assert_eq!(audit.flows[0].summary, *total);
}

#[test]
fn every_container_says_the_same() {
    let packets = conversation();
    for big in [false, true] {
        for nanoseconds in [false, true] {
            let audit = audit_reader(&pcap(big, nanoseconds, 1, 262_144, &packets)[..], "test").unwrap();
            check_conversation(&audit);
            assert_eq!(audit.total.duration_s, Some(0.014));
        }
        let audit = audit_reader(&pcapng(big, &packets)[..], "test").unwrap();
        check_conversation(&audit);
        assert_eq!(audit.format, "pcapng");
    }
}

#[test]
fn a_short_snap_length_changes_nothing() {
    let audit = audit_reader(&pcap(false, false, 1, 80, &conversation())[..], "test").unwrap();
    check_conversation(&audit);
}

#[test]
fn one_direction_has_no_ratio_but_a_stride() {
    let acks: Vec<_> = conversation().into_iter().filter(|packet| is_from_client(packet)).collect();
    let audit = audit_reader(&pcap(false, false, 1, 100, &acks)[..], "test").unwrap();
    assert_eq!((audit.total.ack_packets, audit.total.ack_ratio), (4, None));
    let prediction = audit.predict(&[n150()], Duration::from_millis(20)).unwrap();
    assert_eq!(prediction.acks_per_segment_source, RatioSource::AckStride);
    assert!(to_text(&audit, Some(&prediction), None).contains("one direction only"));
}

#[test]
fn a_super_segment_is_as_many_segments_as_were_sent() {
    let packets = [ethernet(true, 1, 1, 500, false, 14_480), ethernet(false, 1, 14_481, 500, false, 0)];
    let audit = audit_reader(&pcap(false, false, 1, 80, &packets)[..], "test").unwrap();
    assert_eq!((audit.total.data_packets, audit.total.data_segments), (1, 10));
    assert_eq!((audit.total.ack_ratio, audit.total.ack_ratio_per_segment), (Some(1.0), Some(0.1)));
    assert!(audit.warnings[0].starts_with("1 data packets stand for 10 segments"), "{:?}", audit.warnings);
    let prediction = audit.predict(&[n150()], Duration::from_millis(20)).unwrap();
    assert_eq!((prediction.packet_bytes, prediction.payload_bytes), (1500, 1448));
}

#[test]
fn copies_on_a_second_interface_count_once() {
    let packets = conversation();
    let doubled: Vec<_> = packets.iter().flat_map(|packet| [packet.clone(), packet.clone()]).collect();
    let mut file = pcapng(false, &doubled);
    // Flips the interface number in every second packet block.
    let mut at = 0;
    let mut nth = 0;
    while at + 12 <= file.len() {
        let kind = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let total = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap());
        if kind == 6 {
            if nth % 2 == 1 {
                file[at + 8] ^= 1;
            }
            nth += 1;
        }
        at += total as usize;
    }
    let audit = audit_reader(&file[..], "test").unwrap();
    assert_eq!((audit.tcp_packets, audit.skipped.copies), (15, 15));
    assert_eq!(audit.total.ack_ratio, Some(0.4));
}

#[test]
fn a_truncated_file_keeps_what_came_before() {
    let file = pcap(false, false, 1, 262_144, &conversation());
    let audit = audit_reader(&file[..file.len() - 1], "test").unwrap();
    assert_eq!(audit.packets, 14);
    let offset = file.len() - 66 - 16;
    assert_eq!(
        audit.warnings,
        [format!(
            "reading stopped at packet 15 (byte {offset}): the file ends inside it; the 14 packets before it \
             are counted"
        )]
    );
}

#[test]
fn errors_name_the_file_and_what_is_wrong() {
    let message = |bytes: &[u8]| audit_reader(bytes, "x.pcap").unwrap_err().to_string();
    assert_eq!(message(b""), "x.pcap: is empty; a pcap or pcapng file is needed");
    assert_eq!(message(b"PK\x03\x04rest"), "x.pcap: is neither pcap nor pcapng: it starts with 50 4b 03 04");
    assert_eq!(
        message(b"BZh91AY&SY"),
        "x.pcap: is neither pcap nor pcapng: it is compressed with bzip2; decompress it first"
    );
    let usb = pcap(false, false, 220, 100, &conversation());
    assert!(message(&usb).starts_with("x.pcap: link type 220 is not understood; these are: Ethernet (1),"));
    let cut = &pcap(false, false, 1, 100, &conversation())[..50];
    assert_eq!(message(cut), "x.pcap: no packet can be read: at byte 50 the file ends");
    let mut huge = pcap(false, false, 1, 100, &conversation());
    huge[32..36].fill(0xff);
    assert!(message(&huge).contains("4294967295 bytes of it were captured; at most 262144 can be"));
    let missing = audit_file(Path::new("no/such.pcap")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such.pcap: cannot open: "), "{missing}");
}

#[test]
fn a_capture_without_packets_is_not_an_error() {
    let audit = audit_reader(&pcap(false, false, 1, 100, &[])[..], "test").unwrap();
    assert_eq!(audit.warnings, ["there is no readable TCP packet"]);
    assert_eq!(audit.total.ack_ratio, None);
    assert_eq!(audit.predict(&[n150()], Duration::from_millis(20)), None);
}

#[test]
fn flows_are_bounded() {
    let mut table = FlowTable::default();
    let mut packet = ethernet(true, 1, 1, 1, false, 10)[14..].to_vec();
    for i in 0..flow::MOST_FLOWS as u32 + 10 {
        packet[12..16].copy_from_slice(&i.to_be_bytes());
        let ip = IpBytes {
            bytes: &packet,
            on_link: packet.len() as u32,
            interface: None,
            tunnel: None,
            mode: None,
        };
        table.count(&Tcp::parse(&ip).unwrap(), (0, None), None);
    }
    let finished = table.finish();
    assert_eq!(finished.flows.len(), flow::MOST_FLOWS);
    assert_eq!(finished.untracked.unwrap().data_packets, 10);
    assert_eq!(finished.total.data_packets, flow::MOST_FLOWS as u64 + 10);
}

#[test]
fn the_report_is_json_with_stable_names() {
    let audit = audit_reader(&pcap(false, false, 1, 100, &conversation())[..], "test").unwrap();
    let prediction = audit.predict(&[n150()], Duration::from_millis(20));
    let report = Report { audit, prediction };
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["total"]["ack_ratio"], 0.4);
    assert_eq!(json["flows"][0]["ack_packets"], 4);
    assert_eq!(json["prediction"]["phy"], "802.11n");
    assert_eq!(json["prediction"]["schemes"][0]["scheme"], "as captured");
    let text = report.to_text(None);
    let result = text.lines().next().unwrap_or_default();
    assert!(
        result.starts_with("The capture's ACKs take ") && result.contains(" of the airtime of 802.11"),
        "{text}"
    );
    assert_eq!(report.to_text(Some(80)).lines().find(|line| line.chars().count() > 80), None, "{text}");
    assert!(text.contains("ACK ratio                     0.400"), "{text}");
}

#[test]
fn schemes_come_out_in_the_known_order() {
    let audit = audit_reader(&pcap(false, false, 1, 100, &conversation())[..], "test").unwrap();
    let prediction = audit.predict(&[n150()], Duration::from_millis(20)).unwrap();
    let goodput =
        |name: &str| prediction.schemes.iter().find(|row| row.scheme.starts_with(name)).unwrap().goodput_mbps;
    let order =
        ["as captured", "thinned to 1 ACK per 4", "thinned to 1 ACK per 16", "TACK", "HACK", "no ACKs"];
    assert!(order.windows(2).all(|pair| goodput(pair[0]) < goodput(pair[1])), "{prediction:?}");
    assert!((goodput("as captured") / 123.0 - 1.0).abs() < 0.02);
}

/// A simulated channel on which everything is sent in `mode` and the first copy of each frame is lost.
fn on_the_air(mode: Mode) -> Vec<u8> {
    use tacit_link::wifi::air::{Frame, Outcome, StationId};
    use tacit_packet::units::{Duration, Instant};

    let mut writer = tacit_sim::capture::CaptureWriter::new(Vec::new()).unwrap();
    let mut write = |i: usize, transmitter, receiver, outcome, frame| {
        let at = Instant::from_nanos(i as u64 * 1_000_000);
        let duration = mode.ppdu_duration(1_500);
        let reserves = Duration::ZERO;
        let frame = tacit_link::wifi::AirFrame {
            link: tacit_link::wifi::LinkId::FIRST,
            at,
            duration,
            mode,
            reserves,
            transmitter,
            receiver,
            category: tacit_link::wifi::AccessCategory::BestEffort,
            outcome,
            more_ppdu: None,
            unit_index: None,
            ampdu: None,
            frame,
        };
        let band = if mode.is_2_4_ghz() { Band::Ghz2_4 } else { Band::Ghz5 };
        writer.write(&frame, band, None).unwrap();
    };
    for (i, packet) in conversation().into_iter().enumerate() {
        let (from, to) = if is_from_client(&packet) {
            (StationId(1), StationId::AP)
        } else {
            (StationId::AP, StationId(1))
        };
        let frame = |retry| Frame::Data {
            sequence: i as u16,
            retry,
            more_data: false,
            sync: false,
            payload: packet[14..].to_vec(),
            rest: Vec::new(),
        };
        write(i, from, Some(to), Outcome::Errored, frame(false));
        // Its ACK is lost, so the receiver gets it twice.
        write(i, from, Some(to), Outcome::Received, frame(true));
        write(i, from, Some(to), Outcome::Received, frame(true));
        write(i, to, Some(from), Outcome::Received, Frame::Ack { appended: Vec::new() });
    }
    writer.finish().unwrap()
}

/// The audit can read the simulator's captures. Packets that did not arrive count as not captured.
#[test]
fn a_simulated_channel_reads_back() {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    let audit = audit_reader(&on_the_air(mode)[..], "air").unwrap();
    assert_eq!((audit.tcp_packets, audit.skipped.bad_fcs, audit.skipped.not_ip), (15, 15, 15));
    assert_eq!(audit.skipped.wifi_copies, 15);
    assert_eq!((audit.total.ack_ratio, audit.total.duration_s), (Some(0.4), Some(0.014)));
}

/// For every generation, the audit reports the mode in which frames were sent, and the prediction uses it.
#[test]
fn every_mode_that_is_written_is_read() {
    use tacit_link::wifi::phy::{Format, GuardInterval::*, Preamble};
    let modes = [
        Mode::dsss(BitRate::from_mbps(11), Preamble::Short),
        Mode::ofdm(BitRate::from_mbps(54)),
        Mode::erp_ofdm(BitRate::from_mbps(6)),
        Mode::ht(7, 4, true, Ns400),
        Mode::ht(0, 1, false, Ns800),
        Mode::vht(9, 3, 160, Ns400).or_else(|| Mode::vht(8, 3, 160, Ns400)),
        Mode::vht(0, 1, 20, Ns800),
        Mode::he(11, 8, 160, Ns800),
        Mode::he(0, 1, 40, Ns3200),
        Mode::he_extended_range(1, Ns1600),
        Mode::eht(13, 8, 320, Ns800),
        Mode::eht(5, 2, 80, Ns1600),
        Mode::eht(0, 1, 20, Ns3200),
    ];
    for mode in modes {
        let mode = mode.unwrap();
        let audit = audit_reader(&on_the_air(mode)[..], "air").unwrap();
        let [sent] = &audit.sent_as[..] else { panic!("{:?}", audit.sent_as) };
        assert_eq!((sent.data_packets, sent.packets), (10, 15), "{mode:?}");
        assert_eq!((sent.format, sent.mcs, sent.streams), (mode.format.name(), mode.mcs, mode.streams));
        assert_eq!(
            (sent.width_mhz, sent.guard_interval_ns),
            (mode.width_mhz, mode.guard_interval.nanos()),
            "{mode:?}"
        );
        let prediction = audit.predict(&audit.hops(), Duration::from_millis(20)).unwrap();
        let text = to_text(&audit, Some(&prediction), None);
        assert!(text.contains(&format!(
            "on {} at {} Mb/s",
            mode.format.standard().name(),
            mode.rate().as_mbps_f64()
        )));
        if mode.format == Format::EhtMu && mode.streams == 8 {
            assert!(
                text.contains("EHT MU      13       8  320    0.8  23058.8           10          5"),
                "{text}"
            );
        }
    }
}

/// Without radio headers there are no modes, and the prediction uses the default hop.
#[test]
fn captures_of_wires_have_no_modes() {
    let audit = audit_reader(&pcap(false, false, 1, 100, &conversation())[..], "test").unwrap();
    assert!(audit.sent_as.is_empty());
    assert_eq!(audit.hops(), [n150()]);
    assert!(!to_text(&audit, None, None).contains("sent as"));
}

fn n150() -> Hop {
    Hop::new(Standard::N, Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap())
}

/// A real capture; `None`, with a message, if it is not available.
fn real(name: &str) -> Option<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data/captures").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("SKIPPED: {}: {error}", path.display());
            None
        }
    }
}

/// The counts of a widely used protocol analyser for the same files.
#[test]
fn real_captures_count_as_elsewhere() {
    let cases = [
        ("bidir_l2_v4.pcap", 8752, 8752, 12_583_766, 555, Some(0.063)),
        ("bidir_gro_v4.pcap", 894, 36_136, 52_229_806, 500, Some(0.559)),
        ("bidir_4flows_v6.pcap", 5522, 5522, 7_852_151, 1305, Some(0.236)),
        ("tun_11a_25MB_v4.acks.pcap", 0, 0, 0, 9126, None),
        ("veth_loss1_v4.acks.pcap", 0, 0, 0, 19_115, None),
    ];
    for (name, data, segments, payload, acks, ratio) in cases {
        let Some(bytes) = real(name) else { continue };
        let total = audit_reader(&bytes[..], name).unwrap().total;
        assert_eq!((total.data_packets, total.data_segments), (data, segments), "{name}");
        let pure_acks = total.ack_packets + total.window_updates + total.keep_alives + total.keep_alive_acks;
        assert_eq!((total.payload_bytes, pure_acks), (payload, acks), "{name}");
        let ratio_of_all = total.ack_ratio.map(|ratio| ratio * pure_acks as f64 / total.ack_packets as f64);
        assert_eq!(ratio_of_all.map(|ratio| (ratio * 1000.0).round() / 1000.0), ratio, "{name}");
    }
}

fn mutated(mut bytes: Vec<u8>, edits: &[(prop::sample::Index, u8)], cut: prop::sample::Index) -> Vec<u8> {
    for (index, value) in edits {
        let at = index.index(bytes.len());
        bytes[at] = *value;
    }
    bytes.truncate(cut.index(bytes.len()) + 1);
    bytes
}

proptest! {
    /// For any damage to a capture, the audit terminates with consistent numbers.
    #[test]
    fn damaged_captures_do_no_harm(
        kind in 0..5,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let packets = conversation();
        let bytes = match kind {
            0 => pcap(false, false, 1, 100, &packets),
            1 => pcap(true, true, 1, 262_144, &packets),
            2 => pcapng(false, &packets),
            3 => on_the_air(Mode::eht(13, 2, 160, tacit_link::wifi::phy::GuardInterval::Ns800).unwrap()),
            _ => match real("bidir_gro_v4.pcap") {
                Some(bytes) => bytes[..20_000].to_vec(),
                None => pcapng(true, &packets),
            },
        };
        if let Ok(audit) = audit_reader(&mutated(bytes, &edits, cut)[..], "damaged") {
            let prediction = audit.predict(&[n150()], Duration::from_millis(20));
            let mut rows = prediction.iter().flat_map(|prediction| &prediction.schemes);
            prop_assert!(rows.all(|row| row.goodput_mbps.is_finite()));
            prop_assert!(audit.total.ack_packets + audit.total.data_packets <= audit.tcp_packets);
            to_text(&audit, prediction.as_ref(), None);
        }
    }

    /// Frames of each link type with arbitrary bytes.
    #[test]
    fn arbitrary_frames_do_no_harm(
        link_type in prop::sample::select(vec![0, 1, 12, 14, 101, 105, 108, 113, 127, 228, 229, 276]),
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..8),
    ) {
        audit_reader(&pcap(false, false, link_type, 100, &frames)[..], "arbitrary").unwrap();
    }
}
