//! How the channel served one station: the wireless end of the first flow.

use tacit_link::wifi::Turns;
use tacit_sim::record::FlowOutcome;

use super::view::View;

/// The station at the wireless end of the first flow, and the traffic in the direction of that flow's data.
pub(super) struct FirstHost {
    turns: Turns,
    measured_s: f64,
    goodput_bytes: f64,
}

impl View<'_> {
    /// `None` if neither end of the first flow is a client of an access point.
    pub fn first_host(&self) -> Option<FirstHost> {
        let flows = &self.outcome.flows;
        let first = flows.first()?;
        let client = |host| {
            let mut clients = self.outcome.bss.iter().flat_map(|bss| bss.stations.iter().skip(1));
            clients.find(|station| station.host == host)
        };
        let downloads = |flow: &&FlowOutcome| flow.sink == first.sink;
        let uploads = |flow: &&FlowOutcome| flow.source == first.source;
        let (turns, delivered): (_, u64) = match (client(first.sink), client(first.source)) {
            (Some(sink), _) => (sink.down, flows.iter().filter(downloads).map(|flow| flow.delivered.0).sum()),
            (None, Some(source)) => {
                (source.up, flows.iter().filter(uploads).map(|flow| flow.delivered.0).sum())
            }
            (None, None) => return None,
        };
        Some(FirstHost { turns, measured_s: self.seconds, goodput_bytes: delivered as f64 })
    }
}

impl FirstHost {
    pub fn goodput_bps(&self) -> f64 {
        self.goodput_bytes * 8.0 / self.measured_s
    }

    /// An exchange that the end of the run cuts off counts as idle.
    pub fn idle_share(&self) -> f64 {
        (1.0 - self.waiting_share() - self.served_share()).max(0.0)
    }

    pub fn waiting_share(&self) -> f64 {
        self.turns.waited.as_secs_f64() / self.measured_s
    }

    pub fn served_share(&self) -> f64 {
        self.turns.served.as_secs_f64() / self.measured_s
    }

    pub fn lost_share(&self) -> f64 {
        // A packet that was sent before the window and arrived within it counts as arrived.
        1.0 - (self.turns.arrived as f64 / self.turns.sent as f64).min(1.0)
    }

    pub fn useful_share(&self) -> f64 {
        self.goodput_bytes / self.turns.arrived_bytes as f64
    }

    pub fn packets_per_ppdu(&self) -> f64 {
        self.turns.sent as f64 / self.turns.ppdus as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_close, outcome, outcome_of, value_of};

    fn wlan(kind: &str, more: &str) -> String {
        format!(
            "[run]\nduration = \"3 s\"\nmeasure-from = \"1 s\"\n[traffic]\nkind = \"{kind}\"\n{more}\
             [wifi]\nstandard = \"802.11n\"\nrate = \"150Mbps\"\n"
        )
    }

    /// One of two stations receives 20 of about 135 Mb/s: it is idle most of the time and loses nothing.
    #[test]
    fn a_station_that_gets_little_is_idle() {
        let text = wlan("download", "transport = \"udp\"\nudp-rate = \"20Mbps\"\n");
        let outcome = outcome(&text);
        is_close(value_of("first_host_goodput_bps", &outcome), 20e6, 0.2e6);
        let share = |name: &str| value_of(name, &outcome).unwrap();
        assert!((0.5..0.9).contains(&share("first_host_idle_share")), "{}", share("first_host_idle_share"));
        is_close(value_of("first_host_lost_share", &outcome), 0.0, 1e-9);
        // Headers take 28 of 1500 bytes.
        is_close(value_of("first_host_useful_share", &outcome), 1472.0 / 1500.0, 0.002);
        let all: f64 =
            ["idle", "waiting", "served"].map(|use_| share(&format!("first_host_{use_}_share"))).iter().sum();
        assert!((all - 1.0).abs() < 1e-9);
    }

    /// Two saturated stations: each has half of the time, and waits during the other's half.
    #[test]
    fn stations_wait_for_one_another() {
        for kind in ["download", "upload"] {
            let text = wlan(kind, "transport = \"udp\"\nudp-rate = \"200Mbps\"\n");
            let outcome = outcome_of(2, &text);
            is_close(value_of("first_host_idle_share", &outcome), 0.0, 0.02);
            let share = |name: &str| value_of(name, &outcome).unwrap();
            let (waiting, served) = (share("first_host_waiting_share"), share("first_host_served_share"));
            assert!(
                (0.4..0.65).contains(&waiting) && (0.35..0.6).contains(&served),
                "{kind}: {waiting} {served}"
            );
        }
    }

    #[test]
    fn retransmissions_are_of_what_was_lost() {
        let lossy = wlan("download", "transport = \"udp\"\nudp-rate = \"100Mbps\"\n")
            + "mpdu-error = { down = \"20 %\" }\n";
        is_close(value_of("first_host_lost_share", &outcome(&lossy)), 0.2, 0.01);
        let silent = lossy + "link-acks = \"uplink-only\"\n";
        is_close(value_of("first_host_lost_share", &outcome(&silent)), 0.2, 0.01);
    }

    #[test]
    fn wires_have_no_stations() {
        let wired = outcome("[run]\nduration = \"1 s\"\n[wired]\nrate = \"10Mbps\"\n");
        assert_eq!(value_of("first_host_idle_share", &wired), None);
        assert_eq!(value_of("first_host_goodput_bps", &wired), None);
    }
}
