//! Metrics of a run: one table that defines columns, JSON keys and the names in figures.

mod fwp;
mod links;
mod shares;
mod table;
mod turns;
mod users;
mod view;

use serde::{Serialize, Serializer};
use tacit_link::wifi::AirtimeUse;
use tacit_sim::RunOutcome;

pub use shares::jain;
pub use table::ALL;
use view::View;

/// One number per run; `None` if it does not apply, such as airtime on a wire.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Column name, which ends in the unit.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    measure: fn(&View<'_>) -> Option<f64>,
}

impl Metric {
    /// Its value in a run.
    pub fn value(&self, outcome: &RunOutcome) -> Option<f64> {
        self.in_view(&View::new(outcome))
    }

    fn in_view(&self, view: &View<'_>) -> Option<f64> {
        (self.measure)(view).filter(|value| value.is_finite())
    }
}

const fn metric(name: &'static str, summary: &'static str, measure: fn(&View<'_>) -> Option<f64>) -> Metric {
    Metric { name, summary, measure }
}

/// Name of the metric with the airtime share of the use `what`.
pub fn airtime_name(what: AirtimeUse) -> String {
    format!("airtime_{}", what.name())
}

/// Where users find all metrics, for messages.
pub const PAGE: &str = "docs/use/results.md has all";

/// The index of the metric `name` in [`ALL`].
pub fn position(name: &str) -> Option<usize> {
    ALL.iter().position(|metric| metric.name == name)
}

/// Units in which columns may show metrics: the end of the column's name, that of the metric's, and the factor.
const CONVERSIONS: [(&str, &str, f64); 2] = [("_mbps", "_bps", 1e-6), ("_ms", "_us", 1e-3)];

/// The index of the metric for a column name, and a factor for its values: `_mbps` means a `_bps` metric in millions,
/// `_ms` a `_us` metric in thousands.
pub fn resolve_column(name: &str) -> Option<(usize, f64)> {
    let converted = |(shown, suffix, factor): (&str, &str, f64)| {
        let metric = position(&format!("{}{suffix}", name.strip_suffix(shown)?))?;
        Some((metric, factor))
    };
    position(name).map(|metric| (metric, 1.0)).or_else(|| CONVERSIONS.into_iter().find_map(converted))
}

/// The name of the column that shows the metric `name` in a unit for readers: Mb/s, ms.
pub fn column_for_readers(name: &str) -> String {
    let converted =
        |(shown, suffix, _): (&str, &str, f64)| Some(format!("{}{shown}", name.strip_suffix(suffix)?));
    CONVERSIONS.into_iter().find_map(converted).unwrap_or_else(|| name.to_owned())
}

/// Every metric of a run, in the order of [`ALL`].
pub fn all_of(outcome: &RunOutcome) -> Vec<Option<f64>> {
    let view = View::new(outcome);
    ALL.iter().map(|metric| metric.in_view(&view)).collect()
}

/// Serialises metrics by name, so that versions with another table can read them.
pub(crate) mod by_name {
    use std::collections::BTreeMap;

    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    use super::ALL;

    pub fn serialize<S: Serializer>(values: &[Option<f64>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(ALL.iter().map(|metric| metric.name).zip(values))
    }

    /// Without those that do not apply.
    pub fn serialize_present<S: Serializer>(
        values: &[Option<f64>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names = ALL.iter().map(|metric| metric.name);
        serializer.collect_map(names.zip(values).filter(|(_, value)| value.is_some()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<f64>>, D::Error> {
        // Metrics unknown to this version are ignored.
        let named = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        Ok(ALL.iter().map(|metric| named.get(metric.name).copied().flatten()).collect())
    }
}

/// Fractions of the channel's time by use. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirtimeShares(pub [f64; AirtimeUse::ALL.len()]);

impl AirtimeShares {
    /// Reads the metric of each use with `value_of`; `None` if one of them does not apply.
    pub fn from_metrics(value_of: impl Fn(&str) -> Option<f64>) -> Option<Self> {
        let mut shares = [0.0; AirtimeUse::ALL.len()];
        for (share, what) in shares.iter_mut().zip(AirtimeUse::ALL) {
            *share = value_of(&airtime_name(what))?;
        }
        Some(Self(shares))
    }

    /// The share of `what`.
    pub fn get(&self, what: AirtimeUse) -> f64 {
        self.0
            .iter()
            .zip(AirtimeUse::ALL)
            .find_map(|(share, known)| (known == what).then_some(*share))
            .unwrap_or(0.0)
    }
}

impl Serialize for AirtimeShares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(AirtimeUse::ALL.map(AirtimeUse::name).into_iter().zip(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_of_airtime_is_a_metric() {
        for what in AirtimeUse::ALL {
            assert!(position(&airtime_name(what)).is_some(), "{}", what.name());
        }
    }

    pub fn outcome(text: &str) -> RunOutcome {
        outcome_of(1, text)
    }

    pub fn outcome_of(clients: u32, text: &str) -> RunOutcome {
        let scenario = tacit_scenario::Scenario::parse("metric.toml", text, &[]).unwrap();
        tacit_sim::run(&scenario.setup(clients, 1).unwrap()).unwrap()
    }

    pub fn value_of(name: &str, outcome: &RunOutcome) -> Option<f64> {
        ALL[position(name).unwrap()].value(outcome)
    }

    #[track_caller]
    pub fn is_close(value: Option<f64>, to: f64, within: f64) {
        assert!(value.is_some_and(|value| (value - to).abs() <= within), "{value:?}, not {to}");
    }

    /// A one-way delay of 20 ms on the first wire and 30 ms in the reverse direction, then 5 ms; packets of 1500 bytes
    /// take 1.2 ms at 10 Mb/s.
    fn two_wires(kind: &str, udp_rate: &str) -> RunOutcome {
        outcome(&format!(
            "[run]\nduration = \"4 s\"\nmeasure-from = \"1 s\"\n\
             [traffic]\nkind = \"{kind}\"\ntransport = \"udp\"\nudp-rate = \"{udp_rate}\"\n\
             [[hop]]\nkind = \"wired\"\nrate = \"1Gbps\"\ndown = {{ delay = \"20 ms\" }}\nup = {{ delay = \"30 ms\" }}\n\
             [[hop]]\nkind = \"wired\"\nrate = \"10Mbps\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n"
        ))
    }

    #[test]
    fn the_one_way_delay_is_that_of_the_way_that_data_goes() {
        let idle = two_wires("download", "4Mbps");
        is_close(value_of("one_way_delay_p95_us", &idle), 25_000.0, 100.0);
        let idle_up = two_wires("upload", "4Mbps");
        is_close(value_of("one_way_delay_p95_us", &idle_up), 35_000.0, 100.0);
        // A full queue of 50 packets, and the packet in transmission.
        let full = two_wires("download", "20Mbps");
        is_close(value_of("one_way_delay_p95_us", &full), 25_000.0 + 50.0 * 1_200.0, 1_300.0);
    }

    /// With losses and a round trip as long as the window, the data after a gap is released in bursts, but it arrives
    /// smoothly.
    #[test]
    fn no_window_has_more_goodput_than_its_link_carries() {
        for measure_from_ms in (1_000..3_000).step_by(200) {
            let outcome = outcome(&format!(
                "[run]\nduration = \"{} ms\"\nmeasure-from = \"{measure_from_ms} ms\"\n\
                 [wired]\nrate = \"10Mbps\"\ndelay = \"100 ms\"\nqueue = \"200 packets\"\nloss = \"1 %\"\n",
                measure_from_ms + 200
            ));
            let goodput_bps = value_of("goodput_bps", &outcome).unwrap();
            assert!(goodput_bps <= 10e6, "from {measure_from_ms} ms: {goodput_bps}");
        }
    }

    #[test]
    fn log_power_is_the_logarithm_of_rate_over_delay() {
        is_close(value_of("log_power", &two_wires("download", "4Mbps")), (4.0_f64 / 25.0).ln(), 0.01);
        is_close(value_of("log_power", &two_wires("upload", "4Mbps")), (4.0_f64 / 35.0).ln(), 0.01);
        // Only the bytes of the ranked flow count, not the traffic of others.
        let beside = outcome_of(
            2,
            "[run]\nduration = \"4 s\"\nmeasure-from = \"1 s\"\n\
             [traffic]\ntransport = \"udp\"\nudp-rate = \"4Mbps\"\n\
             [wired]\nrate = \"10Mbps\"\ndelay = \"25 ms\"\nqueue = \"50 packets\"\n",
        );
        is_close(value_of("log_power", &beside), (4.0_f64 / 26.0).ln(), 0.06);
    }

    #[test]
    fn the_delay_of_a_wire_is_not_given_where_there_is_wifi() {
        let wifi = "[wifi]\nstandard = \"802.11n\"\nrate = \"150Mbps\"\n";
        let outcome = outcome(&format!("[run]\nduration = \"1 s\"\n{wifi}"));
        assert_eq!(value_of("one_way_delay_p95_us", &outcome), None);
        assert_eq!(value_of("log_power", &outcome), None);
    }

    /// 50 kb/s carry the ACKs of about 2.9 of 8 Mb/s. There is no queue behind them in the direction of the data.
    #[test]
    fn the_first_way_is_that_of_the_first_flows_data() {
        let measured = |assignments: &[&str], names: &[&str]| -> Vec<f64> {
            let all = ["run.duration=10 s", "run.measure-from=2 s"];
            let assignments: Vec<String> =
                all.iter().chain(assignments).map(|&text| text.to_owned()).collect();
            let scenario = tacit_scenario::Scenario::load("lte-slow-uplink", &assignments).unwrap();
            let outcome = tacit_sim::run(&scenario.setup(1, 1).unwrap()).unwrap();
            names.iter().map(|name| ALL[position(name).unwrap()].value(&outcome).unwrap()).collect()
        };
        let names = ["first_way_utilisation", "first_way_queue_delay_p95_us", "first_way_drops"];
        let down = measured(&[], &names);
        // Slightly more than two segments per ACK, because they arrive in bursts.
        assert!((0.3..0.5).contains(&down[0]) && down[1] < 5_000.0 && down[2] < 1.0, "{down:?}");
        let up = measured(&["traffic.kind=upload", "wired.queue=20 packets"], &names);
        assert!(up[0] > 0.99 && up[1] > 1e6 && up[2] > 1.0, "{up:?}");
        let both = measured(
            &["traffic.kind=both"],
            &["goodput_bps", "first_flow_goodput_bps", "first_flow_transfer_goodput_bps"],
        );
        assert!(both[0] > both[1] + 10_000.0 && both[2] > 0.0, "{both:?}");
    }

    #[test]
    fn names_are_unique() {
        for (i, metric) in ALL.iter().enumerate() {
            assert_eq!(position(metric.name), Some(i));
        }
    }
}
