//! The setups whose simulation cost is published, and the clock that measures it. The caller does the measurement.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::error::RunsError;
use crate::single::{self, Options, Prepared};
use tacit_scenario::InputError;

/// A setup whose simulation cost is measured.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in tables.
    pub name: &'static str,
    scenario: &'static str,
    clients: u32,
    assignments: &'static [&'static str],
}

/// Of every row.
const TEN_SECONDS: [&str; 2] = ["run.duration=10 s", "run.sample-interval=none"];
/// One ACK per two segments in every scenario. Each ACK costs time, and rows are compared with earlier versions.
const CLASSIC: &[&str] = &["tcp.profile=classic"];

const fn row(
    name: &'static str,
    scenario: &'static str,
    clients: u32,
    assignments: &'static [&'static str],
) -> Row {
    Row { name, scenario, clients, assignments }
}

/// All setups.
pub const ROWS: &[Row] = &[
    row("11n-150-tcp-1", "hack-2014-11n-150", 1, &[]),
    row("11n-300-tcp-1", "wlan-11n-300", 1, CLASSIC),
    row("11n-300-tack-1", "wlan-11n-300", 1, &["traffic.transport=tack"]),
    row("11n-150-tcp-10", "hack-2014-11n-150", 10, &[]),
    row("11a-54-tcp-2", "wlan-11a-54", 2, CLASSIC),
    row("11ac-866-tcp-1", "wlan-11ac-866", 1, CLASSIC),
    row("11ax-1200-tcp-1", "wlan-11ax-1200", 1, CLASSIC),
    row("11ax-2402-tcp-1", "wlan-11ax-2402", 1, CLASSIC),
    row("11ax-2402-tcp-10", "wlan-11ax-2402", 10, CLASSIC),
    // Twenty saturated stations.
    row(
        "11n-150-udp-20",
        "wlan-11n-150",
        20,
        &["traffic.transport=udp", "traffic.kind=upload", "clients.stagger=0 ms"],
    ),
    // 88 % of the 135 Mb/s that the channel carries. A source that saturates the wire would offer three times as much,
    // and the row would measure dropped packets.
    row("11n-150-udp-down-1", "wlan-11n-150", 1, &["traffic.transport=udp", "traffic.udp-rate=120Mbps"]),
    row(
        "11n-600-no-ack-10",
        "wlan-11n-600",
        10,
        &[
            "traffic.transport=udp",
            // The channel carries 420 Mb/s.
            "traffic.udp-rate=40Mbps",
            "wifi.link-acks=uplink-only",
            "wifi.ampdu-mpdus=32",
            "wifi.mpdu-error=10 %",
        ],
    ),
];

/// The run of the row with this name, and its simulated seconds.
///
/// # Errors
/// If there is no such row.
pub fn prepare(name: &str) -> Result<(Prepared, f64), RunsError> {
    let row = ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names = ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        InputError::new("bench", format!("unknown row {name:?}")).allowed(names)
    })?;
    let prepared = single::prepare(&Options {
        scenario: row.scenario.to_owned(),
        assignments: TEN_SECONDS.iter().chain(row.assignments).map(|&text| text.to_owned()).collect(),
        clients: Some(row.clients),
        seed: 1,
        ..Options::default()
    })?;
    let seconds = prepared.setup.duration.as_secs_f64();
    Ok((prepared, seconds))
}

/// Processor time that this process has used, user and system.
///
/// # Panics
/// If the system has no such clock. Linux has it (POSIX.1-2008, option CPT).
pub fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock of POSIX's").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_prepared() {
        for row in ROWS {
            let (prepared, seconds) = prepare(row.name).unwrap();
            assert_eq!(prepared.setup.flows.len(), row.clients as usize);
            assert!((seconds - 10.0).abs() < 1e-9);
        }
        assert!(prepare("11b").is_err());
    }
}
