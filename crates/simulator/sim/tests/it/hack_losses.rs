//! The four recovery cases of the HACK paper, section 3.4, figures 5 to 8: each test scripts the loss of a figure and
//! checks the frames that follow.

use crate::common::*;
use tacit_between::hack;
use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_link::AirFrame;
use tacit_link::loss::Loss;
use tacit_link::wifi::StationId;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_link::wifi::phy::Standard;
use tacit_packet::Packet;
use tacit_packet::units::{Bytes, Duration};
use tacit_sim::setup::{ClientDriver, Traffic};
use tacit_sim::{Observer, Setup, run_observed};
use tacit_tcp as tcp;

/// Summary of a PPDU on the air.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// Data from the access point: number of MPDUs, number received, More Data, SYNC, and whether one is a retry.
    Data { mpdus: usize, arrived: usize, more_data: bool, sync: bool, retry: bool },
    /// Data from the client.
    Native,
    /// ACK or Block Ack from the client, with the appended bytes.
    Ack { received: bool, appended: Vec<u8> },
    /// Block Ack Request from the access point.
    Request,
}

#[derive(Default)]
struct AirTrace(Vec<Seen>, Option<AirFrame<Packet>>);

impl Observer for AirTrace {
    fn on_air(&mut self, _: usize, frame: &AirFrame<Packet>) {
        let received = frame.outcome == Outcome::Received;
        let same_ppdu = self.1.as_ref().is_some_and(|last| last.at == frame.at);
        match (&frame.frame, frame.transmitter) {
            (Frame::Data { more_data, sync, retry: again, .. }, StationId::AP) => {
                if same_ppdu && let Some(Seen::Data { mpdus, arrived, retry, .. }) = self.0.last_mut() {
                    *mpdus += 1;
                    *arrived += usize::from(received);
                    *retry |= again;
                } else {
                    self.0.push(Seen::Data {
                        mpdus: 1,
                        arrived: usize::from(received),
                        more_data: *more_data,
                        sync: *sync,
                        retry: *again,
                    });
                }
            }
            (Frame::Data { .. }, _) if !same_ppdu => self.0.push(Seen::Native),
            (Frame::Ack { appended } | Frame::BlockAck { appended, .. }, station)
                if station != StationId::AP =>
            {
                self.0.push(Seen::Ack { received, appended: appended.clone() });
            }
            (Frame::BlockAckReq { .. }, StationId::AP) => self.0.push(Seen::Request),
            _ => {}
        }
        self.1 = Some(frame.clone());
    }
}

fn hack_download(standard: Standard, mbps: u64) -> Setup {
    // A window limit and a long queue: More Data is set early, and only scripted losses occur.
    let config = tcp::Config {
        congestion: Algorithm::Cubic(cubic::Config { slow_start: SlowStart::Standard }).into(),
        receive_buffer: Bytes(1 << 20),
        ..tcp::Config::default()
    };
    let mut setup = wlan(standard, mbps, 1, &bulk(config));
    setup.bss[0].config.stations[0].downlink_queue = packets(1000).into();
    speak_hack(&mut setup, hack::Config::default());
    setup.duration = Duration::from_secs(1);
    setup.measure_from = tacit_packet::units::Instant::ZERO;
    setup
}

/// The frames of a run in which HACK must keep all its guarantees.
fn watch(setup: &Setup) -> (Vec<Seen>, tacit_sim::RunOutcome) {
    let mut trace = AirTrace::default();
    let outcome = run_observed(setup, &mut trace).unwrap();
    let sender = outcome.flows[0].sender.unwrap();
    assert_eq!(sender.timeouts, Some(0), "no held ACK ends in a retransmission timeout");
    let ap = outcome.bss[0].stations[0].driver.hack().unwrap();
    assert_eq!(ap.failed_frames, 0);
    (trace.0, outcome)
}

/// Loses the client's link-layer ACKs with these numbers, counted from 0.
fn lose_acks(setup: &mut Setup, numbers: impl IntoIterator<Item = u64>) {
    setup.bss[0].config.stations[0].link_ack_loss = Loss::Scripted(numbers.into_iter().collect());
}

fn lost_ack(trace: &[Seen]) -> usize {
    trace.iter().position(|seen| matches!(seen, Seen::Ack { received: false, .. })).unwrap()
}

fn appended(seen: &Seen) -> &[u8] {
    match seen {
        Seen::Ack { appended, .. } => appended,
        other => panic!("{other:?} is no acknowledgment"),
    }
}

#[test]
fn figure_5a_a_lost_block_ack_is_asked_for_and_its_acks_ride_again() {
    let mut setup = hack_download(Standard::N, 150);
    lose_acks(&mut setup, [60]);
    let (trace, _) = watch(&setup);
    let at = lost_ack(&trace);
    assert!(!appended(&trace[at]).is_empty());
    assert_eq!(trace[at + 1], Seen::Request);
    assert!(
        appended(&trace[at + 2]).starts_with(appended(&trace[at])),
        "the same ACKs, and perhaps newer ones"
    );
    // The next A-MPDU proves that they arrived: its Block Ack carries only new ones.
    assert!(matches!(trace[at + 3], Seen::Data { sync: false, .. }));
    assert!(!appended(&trace[at + 4]).starts_with(appended(&trace[at])));
}

#[test]
fn figure_5b_a_lost_ack_comes_again_with_the_retransmission() {
    let mut setup = hack_download(Standard::A, 54);
    lose_acks(&mut setup, [600]);
    let (trace, _) = watch(&setup);
    let at = lost_ack(&trace);
    assert!(matches!(trace[at + 1], Seen::Data { retry: true, .. }));
    assert!(appended(&trace[at + 2]).starts_with(appended(&trace[at])));
    assert!(matches!(trace[at + 3], Seen::Data { retry: false, .. }));
    let before = appended(&trace[at]);
    assert!(before.is_empty() || !appended(&trace[at + 4]).starts_with(before));
}

#[test]
fn figure_6_a_request_after_a_lost_retransmission_brings_duplicates_that_are_dropped() {
    let mut setup = hack_download(Standard::N, 150);
    // One MPDU of a batch is lost, and then the whole next batch: the access point has the Block Ack of the first but
    // requests it again.
    let first = 6000;
    setup.bss[0].config.stations[0].downlink_loss = Loss::Scripted((first..first + 100).collect());
    let (trace, outcome) = watch(&setup);
    let all_lost = |pair: &[Seen]| {
        matches!(&pair[0], Seen::Ack { appended, .. } if !appended.is_empty())
            && matches!(pair[1], Seen::Data { arrived: 0, .. })
    };
    let at = 1 + trace.windows(2).position(all_lost).unwrap();
    assert_eq!(trace[at + 1], Seen::Request);
    assert!(appended(&trace[at + 2]).starts_with(appended(&trace[at - 1])), "nothing proved that it arrived");
    assert!(outcome.bss[0].stations[0].driver.hack().unwrap().duplicate_frames > 0);
}

#[test]
fn figure_7_without_more_data_the_next_ack_goes_natively() {
    let mut setup = hack_download(Standard::N, 150);
    // The last batch of a file has no More Data bit; its Block Ack carries the ACKs of the previous batch.
    let size = Bytes(5_000_000);
    let Traffic::Connection { size: bulk, .. } = &mut setup.flows[0].traffic else { panic!("a TCP flow") };
    *bulk = Some(size);
    let (quiet, outcome) = watch(&setup);
    let finished = outcome.flows[0].completed_at.unwrap();
    let last =
        quiet.iter().rposition(|seen| matches!(seen, Seen::Ack { appended, .. } if !appended.is_empty()));
    let last = last.unwrap();
    assert!(matches!(quiet[last - 1], Seen::Data { more_data: false, .. }), "{:?}", quiet[last - 1]);
    let number = quiet[..last].iter().filter(|seen| matches!(seen, Seen::Ack { .. })).count() as u64;
    lose_acks(&mut setup, [number]);
    let (trace, outcome) = watch(&setup);
    let at = lost_ack(&trace);
    assert_eq!(appended(&trace[at]), appended(&quiet[last]));
    // The ACK of the last batch is sent as a packet and covers the lost ones; the retained ones are cleared.
    assert!(trace[at + 1..].contains(&Seen::Native), "{:?}", &trace[at + 1..]);
    assert_eq!(outcome.flows[0].delivered_total, size);
    let late = outcome.flows[0].completed_at.unwrap().saturating_since(finished);
    assert!(late < Duration::from_millis(20), "{late}");
}

#[test]
fn figure_8_sync_makes_the_client_keep_what_it_retained() {
    let mut setup = hack_download(Standard::N, 150);
    // The Block Ack and the answers to all requests.
    lose_acks(&mut setup, 60..69);
    let (trace, _) = watch(&setup);
    let at = lost_ack(&trace);
    let requests = trace[at..].iter().take_while(|seen| !matches!(seen, Seen::Data { .. }));
    assert_eq!(requests.filter(|seen| **seen == Seen::Request).count(), 8, "one and seven retries");
    let data = at + trace[at..].iter().position(|seen| matches!(seen, Seen::Data { .. })).unwrap();
    assert!(matches!(trace[data], Seen::Data { sync: true, .. }));
    assert!(appended(&trace[data + 1]).starts_with(appended(&trace[at])), "kept and appended again");
    assert!(matches!(trace[data + 2], Seen::Data { sync: false, .. }), "an acknowledged SYNC is over");
}

#[test]
fn stock_and_hack_stations_share_a_channel() {
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    setup.duration = Duration::from_secs(3);
    speak_hack(&mut setup, hack::Config::default());
    setup.bss[0].clients[1].driver = ClientDriver::Stock;
    let mut trace = AirTrace::default();
    let outcome = run_observed(&setup, &mut trace).unwrap();
    let [_, speaks, stock] = &outcome.bss[0].stations[..] else { panic!("three stations") };
    assert!(speaks.counters.augmented_link_acks > 100);
    assert_eq!(stock.counters.augmented_link_acks, 0);
    assert_eq!(stock.driver.hack(), None);
    assert!(outcome.flows.iter().all(|flow| flow.goodput_bps(outcome.measured) > 40e6));
}

#[test]
fn uploads_gain_as_downloads_do() {
    let goodput = |hack: bool, upload: bool| {
        let mut setup = wlan(Standard::N, 150, 1, &bulk(tcp::Config::default()));
        if hack {
            speak_hack(&mut setup, hack::Config::default());
        }
        if upload {
            let flow = &mut setup.flows[0];
            std::mem::swap(&mut flow.source, &mut flow.sink);
        }
        tacit_sim::run(&setup).unwrap().goodput_bps()
    };
    let gain = |upload| goodput(true, upload) / goodput(false, upload) - 1.0;
    let (down, up) = (gain(false), gain(true));
    assert!((up - down).abs() < 0.05, "{down} down, {up} up");
}
