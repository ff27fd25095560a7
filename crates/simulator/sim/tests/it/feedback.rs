//! Feedback of transports other than TCP is appended to link-layer ACKs by the same driver and the same NIC, which
//! treats it as opaque bytes. This test uses the reports of a UDP sink; any cumulative feedback works in the same way.

use crate::common::*;
use tacit_between::hack;
use tacit_link::AirFrame;
use tacit_link::loss::Loss;
use tacit_link::wifi::StationId;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_link::wifi::phy::Standard;
use tacit_packet::udp::ReportAfter;
use tacit_packet::units::{Bytes, Duration, Instant, Ratio};
use tacit_packet::{IpVersion, Packet};
use tacit_sim::record::Reports;
use tacit_sim::setup::Traffic;
use tacit_sim::{Observer, Setup, run, run_observed};
use tacit_tcp as tcp;

const INTERVAL: Duration = Duration::from_millis(5);

fn reporting() -> Traffic {
    Traffic::Udp {
        ip: IpVersion::V4,
        payload: Bytes(1472),
        rate: None,
        report_after: Some(ReportAfter::Time(INTERVAL)),
        send_buffer: None,
    }
}

fn hack_wlan(standard: Standard, mbps: u64, traffic: &Traffic) -> Setup {
    let mut setup = wlan(standard, mbps, 1, traffic);
    speak_hack(&mut setup, hack::Config::default());
    setup.duration = Duration::from_secs(1);
    setup.measure_from = Instant::ZERO;
    setup
}

/// The client's frames on the air.
#[derive(Default)]
struct FromClient {
    packets: u32,
    /// Bytes appended to each of its ACKs and Block Acks, and whether they arrived.
    appended: Vec<(Vec<u8>, bool)>,
}

impl Observer for FromClient {
    fn on_air(&mut self, _: usize, frame: &AirFrame<Packet>) {
        if frame.transmitter == StationId::AP {
            return;
        }
        match &frame.frame {
            Frame::Data { .. } => self.packets += 1,
            Frame::Ack { appended } | Frame::BlockAck { appended, .. } => {
                self.appended.push((appended.clone(), frame.outcome == Outcome::Received));
            }
            Frame::ActionNoAck { content } => {
                self.appended.push((content.clone(), frame.outcome == Outcome::Received));
            }
            Frame::BlockAckReq { .. }
            | Frame::Trigger(_)
            | Frame::MultiStaBlockAck(_)
            | Frame::QosNull { .. }
            | Frame::TriggeredResponse(_)
            | Frame::Rts
            | Frame::Cts
            | Frame::CfEnd
            | Frame::Beacon => {}
        }
    }
}

/// The reports of a run; checks that all arrived except those cut off by the end.
fn watch(setup: &Setup) -> (FromClient, Reports, tacit_sim::RunOutcome) {
    let mut heard = FromClient::default();
    let outcome = run_observed(setup, &mut heard).unwrap();
    let reports = outcome.flows[0].reports.unwrap();
    (heard, reports, outcome)
}

/// Counters of the drivers of access point and client.
fn drivers(outcome: &tacit_sim::RunOutcome) -> [hack::Counters; 2] {
    [0, 1].map(|station| outcome.bss[0].stations[station].driver.hack().unwrap())
}

#[test]
fn reports_arrive_though_none_is_sent_as_a_packet() {
    for (standard, mbps) in [(Standard::N, 150), (Standard::A, 54)] {
        let (heard, reports, outcome) = watch(&hack_wlan(standard, mbps, &reporting()));
        assert_eq!(heard.packets, 0, "the client never contends for the channel");
        // One per interval, which starts with the first datagram after the previous report.
        assert!((120..=200).contains(&reports.sent), "{reports:?}");
        let unknown = reports.arrived_datagrams - reports.reported_datagrams;
        // Datagrams that arrive in an interval, while the report waits for the next Block Ack, and in that A-MPDU.
        let per_ms = reports.arrived_datagrams / 1_000;
        assert!(unknown <= 5 * per_ms + 2 * 42 + per_ms, "{reports:?}");
        let [ap, client] = drivers(&outcome);
        assert_eq!((client.native_acks, client.refused_acks), (0, 0), "no context is needed to begin with");
        assert!(ap.reconstituted_acks + 1 >= client.compressed_acks);
        assert_eq!(ap.failed_frames, 0);
    }
}

#[test]
fn a_report_on_a_lost_block_ack_rides_again_and_counts_once() {
    let mut setup = hack_wlan(Standard::N, 150, &reporting());
    let (quiet, ..) = watch(&setup);
    let number = quiet.appended.iter().position(|(bytes, _)| !bytes.is_empty()).unwrap();
    setup.bss[0].config.stations[0].link_ack_loss = Loss::Scripted([number as u64].into());
    let (heard, reports, outcome) = watch(&setup);
    let (lost, received) = &heard.appended[number];
    assert!(!lost.is_empty() && !received);
    // Figure 5a: the response to the request contains it again, and later reports.
    assert!(heard.appended[number + 1].0.starts_with(lost));
    assert_eq!(heard.packets, 0);
    assert!(reports.reported_datagrams > 0);
    assert_eq!(
        outcome.bss[0].stations[0].driver.hack().unwrap().duplicate_frames,
        0,
        "the first copy never arrived"
    );
}

/// Figure 6: a request proves nothing, so reports that did arrive are repeated, and dropped because of their number.
#[test]
fn repeated_reports_are_dropped() {
    let mut setup = hack_wlan(Standard::N, 150, &reporting());
    // Whole A-MPDUs are lost occasionally.
    setup.bss[0].config.stations[0].downlink_loss =
        Loss::Scripted((2_000..9_000).filter(|number| number % 1_000 < 100).collect());
    let (heard, reports, outcome) = watch(&setup);
    let [ap, client] = drivers(&outcome);
    assert!(ap.duplicate_frames > 0);
    assert!(ap.reconstituted_acks <= client.compressed_acks, "each once: {ap:?} {client:?}");
    assert_eq!(heard.packets, 0);
    assert!(reports.reported_datagrams > 0);
}

#[test]
fn reports_and_tcp_acks_share_link_layer_acks() {
    let mut setup = hack_wlan(Standard::N, 150, &reporting());
    let mut tcp = setup.flows[0].clone();
    tcp.traffic = bulk(tcp::Config::default());
    setup.flows.push(tcp);
    // Datagrams at a rate that leaves TCP its share, with enough losses for every rule of section 3.4.
    let Traffic::Udp { rate, .. } = &mut setup.flows[0].traffic else { panic!("UDP") };
    *rate = Some(tacit_packet::units::BitRate::from_mbps(30));
    let some = |percent: f64| Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap());
    let station = &mut setup.bss[0].config.stations[0];
    (station.downlink_loss, station.link_ack_loss) = (some(3.0), some(2.0));
    setup.duration = Duration::from_secs(5);
    let outcome = run(&setup).unwrap();
    let reports = outcome.flows[0].reports.unwrap();
    assert!(reports.arrived_datagrams - reports.reported_datagrams < 200, "{reports:?}");
    assert!(outcome.flows[1].goodput_bps(outcome.measured) > 30e6);
    let [ap, client] = drivers(&outcome);
    assert_eq!(ap.failed_frames, 0);
    assert!(client.compressed_acks > 10 * client.native_acks, "{client:?}");
}

#[test]
fn stock_stations_send_reports_as_packets() {
    let setup = Setup { wire: true, ..hack_wlan(Standard::N, 150, &reporting()) };
    let mut stock = setup;
    be_stock(&mut stock);
    let (heard, reports, _) = watch(&stock);
    assert!(u64::from(heard.packets) >= reports.sent - 1);
    assert!(reports.reported_datagrams > 0);
}
