//! The papers' figures that only need formulas, as series of points.

use core::fmt;

use serde::Serialize;
use tacit_ack::AckClock;
use tacit_link::wifi::phy::{Format, GuardInterval, Mode, ResourceUnit, Standard};
use tacit_packet::units::{BitRate, Duration};

use super::rounds::RoundWay;
use super::{
    AckPolicy, Feedback, Hop, Rounds, Traffic, ack_frequency_hz, capacity, single_frame_utilization,
};

/// IDs of the figures that [`figure`] can compute.
pub const IDS: [&str; 6] = [
    "hack/fig1a",
    "hack/fig1b",
    "hack/slides-utilization",
    "tack/fig8",
    "validation/11ac",
    "validation/11ax-mu",
];

/// Length of the papers' full-sized IP packet.
const PACKET: u32 = 1500;

/// A figure or table of a paper, as series over a common x axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// One of [`IDS`].
    pub id: &'static str,
    /// Label and unit of x.
    pub x: &'static str,
    /// Label and unit of y.
    pub y: &'static str,
    /// Its curves, or columns.
    pub series: Vec<Series>,
}

/// One curve or column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its name in a legend.
    pub name: String,
    /// Points (x, y) in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

/// The error for a figure that cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFigure {
    /// The requested ID.
    pub id: String,
}

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "theory has no figure {:?}; it has {}", self.id, IDS.join(", "))
    }
}

impl std::error::Error for UnknownFigure {}

/// Computes the figure `id`.
///
/// # Errors
/// [`UnknownFigure`], which lists the available ones.
pub fn figure(id: &str) -> Result<Figure, UnknownFigure> {
    match id {
        "hack/fig1a" => Ok(goodput_by_rate("hack/fig1a", Standard::A, Feedback::HACK_PAPER)),
        "hack/fig1b" => Ok(goodput_by_rate("hack/fig1b", Standard::N, Feedback::HACK_PAPER)),
        "validation/11ac" => Ok(goodput_by_rate("validation/11ac", Standard::Ac, Feedback::HACK)),
        "hack/slides-utilization" => Ok(slides_utilization()),
        "tack/fig8" => Ok(ack_frequencies()),
        "validation/11ax-mu" => Ok(goodput_by_users()),
        _ => Err(UnknownFigure { id: id.to_owned() }),
    }
}

/// The modes on a figure's x axis: all legacy modes, and those with 40 MHz in 802.11n and 80 MHz in 802.11ac with a
/// short guard interval. If several modes have the same rate, the one with the fewest streams is used.
fn modes_by_rate(standard: Standard) -> Vec<Mode> {
    let usual = |mode: &Mode| match mode.format {
        Format::HtMixed => mode.width_mhz == 40 && mode.guard_interval == GuardInterval::Ns400,
        Format::Vht => mode.width_mhz == 80 && mode.guard_interval == GuardInterval::Ns400,
        Format::HeSu | Format::HeErSu | Format::EhtMu => {
            mode.width_mhz == 80 && mode.guard_interval == GuardInterval::Ns800
        }
        // Multi-user formats do not have rates of their own.
        Format::HeMu | Format::HeTb => false,
        Format::Dsss | Format::Ofdm | Format::ErpOfdm => true,
    };
    let mut modes: Vec<Mode> = Mode::all(standard).into_iter().filter(usual).collect();
    // The sort is stable, so among equal rates the first mode, with the fewest streams, stays first.
    modes.sort_by_key(Mode::rate);
    modes.dedup_by_key(|mode| mode.rate());
    modes
}

fn goodput_by_rate(id: &'static str, standard: Standard, hack: Feedback) -> Figure {
    let curves = [
        ("TCP", Traffic::TCP, Feedback::every(2)),
        ("TCP/HACK", Traffic::TCP, hack),
        ("UDP", Traffic::UDP, Feedback::None),
    ];
    let series = curves.map(|(name, traffic, feedback)| {
        let point = |mode: &Mode| {
            let goodput = capacity(&Hop::hack_paper(standard, *mode), &traffic, feedback).goodput;
            // Rounded as in printed tables and in the names of scenarios.
            let printed = (mode.rate().as_mbps_f64() * 10.0).round() / 10.0;
            (printed, goodput.as_mbps_f64())
        };
        Series { name: name.to_owned(), points: modes_by_rate(standard).iter().map(point).collect() }
    });
    Figure { id, x: "PHY rate (Mb/s)", y: "goodput (Mb/s)", series: series.into() }
}

/// Rounds with one stream at 80 MHz, as configured in the simulator, by number of clients. As many of them share a PPDU
/// as fill the channel's units. All ways at MCS 11; those that a run reaches at slower rates too.
fn goodput_by_users() -> Figure {
    let of_mcs = |mcs: u8| {
        let mode =
            Mode::he(mcs, 1, USERS_WIDTH_MHZ, GuardInterval::Ns800).expect("802.11ax has it at 80 MHz");
        let ways = RoundWay::ALL.iter().filter(move |way| mcs == FASTEST_MCS || way.is_reached());
        ways.map(move |way| by_users(way, mode, mcs))
    };
    let series = [FASTEST_MCS, 7, 4].into_iter().flat_map(of_mcs).collect();
    Figure { id: "validation/11ax-mu", x: "clients", y: "goodput (Mb/s)", series }
}

/// Channel and highest MCS of [`goodput_by_users`].
const USERS_WIDTH_MHZ: u16 = 80;
const FASTEST_MCS: u8 = 11;

fn by_users(way: &RoundWay, mode: Mode, mcs: u8) -> Series {
    let hop = Hop::new(Standard::Ax, mode);
    let point = |clients: u32| {
        let users = ResourceUnit::users_that_fill(clients as usize, USERS_WIDTH_MHZ);
        let capacity = way.capacity(&Rounds::new(hop, users as u32, way.ofdma))?;
        Some((f64::from(clients), capacity.goodput.as_mbps_f64()))
    };
    let name = match mcs {
        FASTEST_MCS => way.name.to_owned(),
        _ => format!("{} at MCS {mcs}", way.name),
    };
    Series { name, points: [2, 4, 6, 8, 12, 16].into_iter().filter_map(point).collect() }
}

fn slides_utilization() -> Figure {
    let hops: Vec<Hop> = [15, 60, 150, 600]
        .into_iter()
        .filter_map(|mbps| Mode::for_rate(Standard::N, BitRate::from_mbps(mbps)).ok())
        .map(|mode| Hop::hack_paper(Standard::N, mode))
        .collect();
    let of_rate = |hop: &Hop, traffic: Traffic, feedback| {
        capacity(hop, &traffic, feedback).goodput.as_mbps_f64() / hop.data.rate().as_mbps_f64()
    };
    let whole_packets = Traffic { packet: PACKET, payload: PACKET, ack: 0 };
    let column = |name: &str, share: &dyn Fn(&Hop) -> f64| Series {
        name: name.to_owned(),
        points: hops.iter().map(|hop| (hop.data.rate().as_mbps_f64(), share(hop) * 100.0)).collect(),
    };
    Figure {
        id: "hack/slides-utilization",
        x: "PHY rate (Mb/s)",
        y: "utilisation (%)",
        series: vec![
            column("single frames", &|hop| single_frame_utilization(hop, PACKET)),
            column("aggregated", &|hop| of_rate(hop, whole_packets, Feedback::None)),
            column("aggregated, TCP", &|hop| of_rate(hop, Traffic::TCP, Feedback::every(2))),
        ],
    }
}

fn ack_frequencies() -> Figure {
    // The paper's UDP baselines are 7 and 590 Mb/s. These are the unrounded rates that match its ACK frequencies.
    let baselines = [("802.11b", BitRate::from_kbps(7_056)), ("802.11ac", BitRate::from_kbps(594_650))];
    let policies = [("TCP (L=2)", AckPolicy::Every(2)), ("TACK", AckPolicy::Tack(AckClock::PAPER))];
    let mut series = Vec::new();
    for (link, rate) in baselines {
        for (name, policy) in policies {
            let point =
                |rtt_ms: u64| (rtt_ms as f64, ack_frequency_hz(policy, rate, Duration::from_millis(rtt_ms)));
            let points = [10, 80, 200].map(point).into();
            series.push(Series { name: format!("{link} {name}"), points });
        }
    }
    Figure { id: "tack/fig8", x: "minimum RTT (ms)", y: "ACK frequency (Hz)", series }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_ascending_points() {
        for id in IDS {
            let figure = figure(id).unwrap();
            assert_eq!(figure.id, id);
            for series in &figure.series {
                assert!(!series.points.is_empty());
                assert!(series.points.windows(2).all(|pair| pair[0].0 < pair[1].0), "{id} {series:?}");
            }
        }
    }

    #[test]
    fn figure_1b_spans_15_to_600() {
        let figure = figure("hack/fig1b").unwrap();
        let rates: Vec<f64> = figure.series[0].points.iter().map(|(x, _)| *x).collect();
        assert_eq!((rates[0], rates[rates.len() - 1]), (15.0, 600.0));
    }

    #[test]
    fn an_unknown_figure_names_the_known_ones() {
        assert_eq!(
            figure("hack/fig9").unwrap_err().to_string(),
            "theory has no figure \"hack/fig9\"; it has hack/fig1a, hack/fig1b, hack/slides-utilization, tack/fig8, \
             validation/11ac, validation/11ax-mu"
        );
    }
}
