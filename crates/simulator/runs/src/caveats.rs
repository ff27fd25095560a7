//! Caveats about the goodput of a run that the number itself does not reveal.

use tacit_scenario::table::{count, percent};

/// Fraction of the packets in Wi-Fi queues below which there is no caveat.
const TOLD_SHARE: f64 = 0.001;

/// One line for each effect that excludes bytes from the goodput. `value_of` returns the metrics of a run, or the means
/// over several runs, by name.
pub fn from_metrics(value_of: impl Fn(&str) -> Option<f64>) -> Vec<String> {
    let flows = |name: &str| value_of(name).filter(|flows| *flows > 0.0).map(|flows| flows.ceil() as u64);
    let silent = flows("silent_flows")
        .map(|silent| format!("{} delivered nothing while results counted", count(silent, "flow")));
    let early = flows("early_flows").map(|early| {
        format!(
            "{} had delivered everything before results counted, without goodput in them: see run.measure-from, and \
             the time that each flow took",
            count(early, "flow")
        )
    });
    let expired = value_of("lifetime_drop_share").filter(|share| *share >= TOLD_SHARE).map(|share| {
        format!(
            "{} of the packets in Wi-Fi queues were dropped unsent because they got older than wifi.lifetime: with \
             so many clients queues are too long for it (wifi.ap-queue, wifi.station-queue)",
            percent(Some(share), 1)
        )
    });
    [silent, early, expired].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_a_line_and_nothing_is_none() {
        let sentences = |known: &[(&str, f64)]| {
            from_metrics(|name| known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
        };
        assert_eq!(sentences(&[]), [] as [&str; 0]);
        assert_eq!(sentences(&[("silent_flows", 0.0), ("lifetime_drop_share", 0.0004)]), [] as [&str; 0]);
        let all = sentences(&[("silent_flows", 1.0), ("early_flows", 2.5), ("lifetime_drop_share", 0.051)]);
        assert!(all[0].starts_with("1 flow delivered nothing"), "{all:?}");
        assert!(all[1].starts_with("3 flows had delivered everything"), "{all:?}");
        assert!(all[2].starts_with("5.1 % of the packets"), "{all:?}");
    }
}
