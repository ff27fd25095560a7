//! The ways in which TCP/HACK can send ACKs, and their airtime in a scenario.

use tacit_between::hack::{AckAirtime, Rule};
use tacit_link::wifi::{AccessCategory, Bss, StationId};
use tacit_packet::units::{Duration, Instant};

use crate::Scenario;

/// Length of an ACK over IPv4 with timestamps, in bytes.
const ACK_BYTES: u32 = 52;
/// Number of ACKs in the example with many.
const MANY: u32 = 64;

/// One line per criterion. None if the clients do not use TCP/HACK.
pub(super) fn criteria(scenario: &Scenario) -> Vec<String> {
    let Some(config) = scenario.hack.config() else { return Vec::new() };
    let Some(times) = times(scenario) else { return Vec::new() };
    let mut lines = Vec::new();
    lines.push(match config.rule {
        Rule::Every => "rule \"every\": each ACK that waits rides, at any cost".to_owned(),
        Rule::Airtime { one_in } => format!(
            "rule \"airtime\": of ACKs that say the same one in {one_in} rides, and the last; all go as packets where that \
             takes less airtime"
        ),
    });
    lines.push(format!(
        "behind a link-layer ACK 100 bytes take {}, 500 bytes {}",
        us(times.appended(100)),
        us(times.appended(500))
    ));
    lines.push(format!(
        "as packets one ACK takes {}, {MANY} take {}, access and link-layer ACK included: as much as {} bytes that ride",
        us(times.packets(1, ACK_BYTES)),
        us(times.packets(MANY, ACK_BYTES)),
        bytes_within(&times, times.packets(MANY, ACK_BYTES))
    ));
    lines
}

/// Airtimes of ACKs from the first client to the access point.
fn times(scenario: &Scenario) -> Option<impl AckAirtime> {
    let setup = scenario.setup(1, 1).ok()?;
    let set = setup.bss.first()?;
    set.hack_config(StationId(1))?;
    let names = vec![""; set.config.stations.len() + 1];
    let nothing_measured = (Instant::ZERO, Instant::ZERO);
    let channel = Bss::new(set.config.clone(), setup.seed, "", &names, nothing_measured);
    let function = |station| channel.function(station, AccessCategory::BestEffort);
    Some(channel.ack_times(function(StationId(1)), function(StationId::AP)))
}

/// The most bytes that can be appended within an airtime of `limit`.
fn bytes_within(times: &impl AckAirtime, limit: Duration) -> u32 {
    let (mut fits, mut too_long) = (0, 1 << 16);
    while too_long - fits > 1 {
        let middle = fits + (too_long - fits) / 2;
        if times.appended(middle) <= limit { fits = middle } else { too_long = middle }
    }
    fits
}

fn us(time: Duration) -> String {
    format!("{:.1} us", time.as_nanos() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(scenario: &str, set: &[&str]) -> Vec<String> {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        criteria(&Scenario::load(scenario, &set).unwrap())
    }

    /// Appended to the 56 bytes of a Block Ack with a bitmap of 256 bits.
    #[test]
    fn the_costs_of_both_ways_are_told() {
        let lines = lines_of("wlan-11ax-2402", &["hack.variant=more-data"]);
        assert!(lines[0].starts_with("rule \"airtime\""), "{lines:?}");
        assert!(lines[1].contains("100 bytes take 36.0 us"), "{lines:?}");
    }

    #[test]
    fn the_papers_rule_compares_nothing() {
        let lines = lines_of("wlan-11n-150", &["hack.variant=more-data"]);
        assert!(lines[0].starts_with("rule \"every\""), "{lines:?}");
        assert!(lines_of("wlan-11ax-2402", &[]).is_empty());
        assert!(lines_of("wired-10", &[]).is_empty());
    }
}
