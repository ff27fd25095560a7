//! Clients with different standards at one access point.

use std::collections::BTreeMap;

use crate::common::*;
use tacit_link::AirFrame;
use tacit_link::wifi::StationId;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_link::wifi::phy::{Band, Format, GuardInterval, Mode, Standard, Variant};
use tacit_packet::Packet;
use tacit_packet::units::{Duration, Instant};
use tacit_sim::{Observer, Setup, run, run_observed};
use tacit_tcp as tcp;

/// One download each by clients of 802.11n, ac, ax and be, at an access point of 802.11be.
fn one_of_each() -> Setup {
    let modes = [
        Mode::ht(7, 1, true, GuardInterval::Ns400),
        Mode::vht(9, 2, 80, GuardInterval::Ns400),
        Mode::he(11, 2, 80, GuardInterval::Ns800),
        Mode::eht(13, 2, 160, GuardInterval::Ns800),
    ];
    let mut setup = wlan(Standard::Be, 86, 4, &bulk(tcp::Config::default()));
    setup.bss[0].config.variant.band = Band::Ghz5;
    for (station, mode) in setup.bss[0].config.stations.iter_mut().zip(modes) {
        station.mode = mode.unwrap();
    }
    setup.duration = Duration::from_secs(2);
    setup.measure_from = Instant::ZERO;
    setup
}

/// Frames between each client and the access point.
#[derive(Default)]
struct Links(BTreeMap<StationId, Link>);

#[derive(Default)]
struct Link {
    /// Number of data frames in each format.
    formats: Vec<(Format, u32)>,
    /// Number of MPDUs in the longest A-MPDU.
    most_mpdus: usize,
    current: (Option<u32>, usize),
    /// Lengths of Block Ack bitmaps in bits.
    bitmaps: Vec<usize>,
}

impl Observer for Links {
    fn on_air(&mut self, _: usize, frame: &AirFrame<Packet>) {
        let Some(receiver) = frame.receiver else { return };
        let client = if frame.transmitter == StationId::AP { receiver } else { frame.transmitter };
        let link = self.0.entry(client).or_default();
        match &frame.frame {
            Frame::Data { .. } => {
                match link.formats.iter_mut().find(|(format, _)| *format == frame.mode.format) {
                    Some((_, count)) => *count += 1,
                    None => link.formats.push((frame.mode.format, 1)),
                }
                let reference = frame.ampdu.map(|position| position.reference);
                link.current = match link.current {
                    (last, mpdus) if last == reference && last.is_some() => (last, mpdus + 1),
                    _ => (reference, 1),
                };
                link.most_mpdus = link.most_mpdus.max(link.current.1);
            }
            Frame::BlockAck { bitmap, .. } if frame.outcome == Outcome::Received => {
                link.bitmaps.push(bitmap.bytes().count() * 8);
            }
            _ => {}
        }
    }
}

/// Each client uses its own standard in both directions: its format, its window, its bitmap. The access point has the
/// latest standard.
#[test]
fn every_client_speaks_its_own_standard() {
    let mut links = Links::default();
    let outcome = run_observed(&one_of_each(), &mut links).unwrap();
    let expected = [
        (Format::HtMixed, 64, 64),
        (Format::Vht, 64, 64),
        (Format::HeSu, 256, 256),
        (Format::EhtMu, 1_024, 1_024),
    ];
    for (number, (format, window, bitmap)) in (1..).zip(expected) {
        let link = &links.0[&StationId(number)];
        assert_eq!(link.formats.len(), 1, "{:?}", link.formats);
        assert_eq!(link.formats[0].0, format);
        assert!(link.most_mpdus > 1 && link.most_mpdus <= window, "{format:?}: {}", link.most_mpdus);
        assert!(link.bitmaps.len() > 20, "{format:?}");
        assert!(link.bitmaps.iter().all(|bits| *bits == bitmap), "{format:?}");
        let delivered = outcome.flows[usize::from(number) - 1].delivered_total.0;
        assert!(delivered > 1_000_000, "{format:?}: {delivered}");
    }
}

/// Other clients do not change how a client of 802.11ac is served: alone at an access point of 802.11be it is as fast
/// as at one of 802.11ac, to the byte.
#[test]
fn an_older_client_alone_is_served_as_ever() {
    let outcome_with = |standard: Standard| {
        let mut setup = wlan(Standard::Ac, 390, 1, &bulk(tcp::Config::default()));
        let config = &mut setup.bss[0].config;
        config.standard = standard;
        config.variant = Variant { band: Band::Ghz5, ..Variant::for_standard(standard) };
        config.block_ack_window = standard.phy().max_mpdus();
        setup.duration = Duration::from_secs(1);
        setup.measure_from = Instant::ZERO;
        run(&setup).unwrap().flows[0].delivered_total
    };
    assert_eq!(outcome_with(Standard::Ac), outcome_with(Standard::Ax));
    assert_eq!(outcome_with(Standard::Ac), outcome_with(Standard::Be));
}

#[test]
fn a_newer_client_is_refused() {
    let mut setup = one_of_each();
    let config = &mut setup.bss[0].config;
    (config.standard, config.block_ack_window) = (Standard::Ax, 256);
    let refused = run(&setup).unwrap_err().to_string();
    assert!(refused.contains("client 4 of basic service set 0 is of 802.11be"), "{refused}");
    let config = &mut setup.bss[0].config;
    (config.standard, config.block_ack_window) = (Standard::A, 64);
    assert!(run(&setup).is_err(), "no QoS");
    let mut setup = one_of_each();
    setup.bss[0].config.variant.band = Band::Ghz6;
    let refused = run(&setup).unwrap_err().to_string();
    assert!(refused.contains("client 1 of basic service set 0 is of 802.11n"), "{refused}");
}
