//! From a [`Scenario`] to the [`Setup`] of one run.

use tacit_link::wifi::{AccessCategory, BssConfig, StationConfig, StationId};
use tacit_proto::units::{Duration, HostId, Instant};
use tacit_sim::setup::{BssSetup, FlowSetup, Setup, WiredSetup};

use super::{ClientOverride, Scenario, Wifi};
use crate::error::InputError;

/// The access point, or the only client where there is no Wi-Fi.
const FAR_END: HostId = HostId(1);

impl Scenario {
    /// Where downloads come from.
    pub const SERVER: HostId = HostId(0);

    /// The first client of a run that [`Scenario::setup`] made.
    pub fn first_client(setup: &Setup) -> HostId {
        setup.bss.first().map_or(FAR_END, |bss| bss.clients[0])
    }

    /// The run of this scenario with `clients` clients and the draws of `seed`.
    ///
    /// # Errors
    /// Where a client starts after the end of the run.
    pub fn setup(&self, clients: u32, seed: u64) -> Result<Setup, InputError> {
        let mut hosts = vec!["server".to_owned()];
        let (flows, applications) = self.flows_and_applications(clients)?;
        let mut bss = Vec::new();
        if let Some(wifi) = &self.wifi {
            hosts.push("ap".to_owned());
            hosts.extend((1..=clients).map(|number| format!("client-{number}")));
            bss.push(self.bss(wifi, clients, &flows));
        } else {
            hosts.push("client".to_owned());
        }
        let wired = WiredSetup {
            a: Self::SERVER,
            b: FAR_END,
            forward: self.wired.clone(),
            backward: self.wired.clone(),
        };
        Ok(Setup {
            hosts,
            wired: vec![wired],
            bss,
            flows,
            applications,
            duration: self.run.duration,
            measure_from: Instant::ZERO + self.run.measure_from,
            seed,
            wire: false,
            sample_interval: self.run.sample_interval,
        })
    }

    /// The host of client `index`: its own behind Wi-Fi, one for all at the end of a wire.
    pub(super) fn client_host(&self, index: u32) -> HostId {
        if self.wifi.is_some() { HostId(2 + index) } else { FAR_END }
    }

    pub(super) fn client_override(&self, index: u32) -> ClientOverride {
        self.overrides.get(index as usize).cloned().unwrap_or_default()
    }

    fn bss(&self, wifi: &Wifi, clients: u32, flows: &[FlowSetup]) -> BssSetup {
        let station = |index| {
            let client = self.client_override(index);
            let error = client.mpdu_error.unwrap_or_else(|| wifi.mpdu_error.clone());
            let mode = client.mode.unwrap_or(wifi.mode);
            let signal = client.signal.or(wifi.signal);
            StationConfig {
                mode,
                control_mode: client.ack_mode.or(wifi.ack_mode),
                downlink_loss: error.down,
                uplink_loss: error.up,
                link_ack_loss: client.link_ack_error.unwrap_or_else(|| wifi.link_ack_error.clone()),
                snr: signal.map(|signal| signal.snr(&wifi.propagation, &mode)),
                away: client.leave.map(|leave| {
                    let back = client.back.unwrap_or(self.run.duration);
                    (Instant::ZERO + leave, Instant::ZERO + back)
                }),
                downlink_queue: client.ap_queue.unwrap_or(wifi.ap_queue),
                uplink_queue: client.station_queue.unwrap_or(wifi.station_queue),
            }
        };
        let config = BssConfig {
            variant: wifi.variant,
            categories: access_categories(flows),
            hidden: self.hidden_pairs(wifi, clients),
            txop_limit: wifi.txop_limit,
            ampdu_mpdus: wifi.ampdu_mpdus,
            beacon_interval: wifi.beacons,
            retry_limit: wifi.retry_limit,
            protection: wifi.protection,
            short_retry_limit: wifi.short_retry_limit,
            lifetime: wifi.lifetime,
            reorder_timeout: wifi.reorder_timeout,
            link_ack_delay: wifi.link_ack_delay,
            eifs: wifi.eifs,
            capture: wifi.capture,
            ..BssConfig::new(wifi.standard, (0..clients).map(station).collect())
        };
        let hack = self.hack.config().map_or_else(Vec::new, |config| {
            let speaks = |index| self.client_override(index).hack.unwrap_or(true);
            std::iter::once(Some(config))
                .chain((0..clients).map(|index| speaks(index).then_some(config)))
                .collect()
        });
        let clients = (0..clients).map(|index| self.client_host(index)).collect();
        BssSetup { access_point: FAR_END, clients, config, hack }
    }

    /// Pairs of the first `clients` clients that do not hear each other: as they say, or because too little
    /// power arrives over the distance between them.
    fn hidden_pairs(&self, wifi: &Wifi, clients: u32) -> Vec<(StationId, StationId)> {
        let placed = clients.min(self.overrides.len() as u32);
        let too_far = |a: &ClientOverride, b: &ClientOverride| match (a.position, b.position) {
            (Some(a), Some(b)) => {
                let loss_db = wifi.propagation.path_loss_db(a.distance_m(&b));
                wifi.propagation.tx_power_dbm - loss_db < wifi.carrier_sense_dbm
            }
            _ => false,
        };
        let mut pairs = Vec::new();
        for one in 0..placed {
            for other in one + 1..placed {
                let (a, b) = (&self.overrides[one as usize], &self.overrides[other as usize]);
                if a.hidden_from.contains(&other) || b.hidden_from.contains(&one) || too_far(a, b) {
                    // The access point is station 0.
                    pairs.push((StationId(one as u16 + 1), StationId(other as u16 + 1)));
                }
            }
        }
        pairs
    }

    pub(super) fn check_start(
        &self,
        index: u32,
        start: Duration,
        stop: Option<Duration>,
    ) -> Result<(), InputError> {
        let place = format!("{}: client {}", self.name, index + 1);
        if start >= self.run.duration {
            return Err(InputError::new(place, format!("starts at {start}, after the end of the run"))
                .allowed(format!("starts before run.duration, {}", self.run.duration)));
        }
        match stop {
            Some(stop) if stop <= start => {
                Err(InputError::new(place, format!("stops at {stop}, not after its start at {start}"))
                    .allowed("stop later than start"))
            }
            _ => Ok(()),
        }
    }
}

/// The access categories that `flows` use, the least urgent first; best effort where there are none.
fn access_categories(flows: &[FlowSetup]) -> Vec<AccessCategory> {
    let used = |category: &AccessCategory| flows.iter().any(|flow| flow.access_category == *category);
    let categories: Vec<_> = AccessCategory::ALL.into_iter().filter(used).collect();
    if categories.is_empty() { vec![AccessCategory::BestEffort] } else { categories }
}

#[cfg(test)]
mod tests {
    use tacit_link::Loss;
    use tacit_proto::units::{BitRate, Ratio};

    use super::*;

    #[test]
    fn the_topology_is_server_wire_access_point_clients() {
        let scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
        let setup = scenario.setup(3, 7).unwrap();
        assert_eq!(setup.hosts, ["server", "ap", "client-1", "client-2", "client-3"]);
        assert_eq!((setup.wired[0].a, setup.wired[0].b), (HostId(0), HostId(1)));
        assert_eq!(setup.bss[0].clients, [HostId(2), HostId(3), HostId(4)]);
        assert_eq!(setup.flows[2].sink, HostId(4));
        assert_eq!(setup.flows[2].start, Instant::ZERO + Duration::from_millis(200));
        assert_eq!(setup.bss[0].config.stations[0].mode.rate(), BitRate::from_mbps(150));
        assert_eq!(setup.seed, 7);
    }

    #[test]
    fn without_wifi_the_clients_share_a_host() {
        let setup = Scenario::load("wired-10", &[]).unwrap().setup(2, 1).unwrap();
        assert_eq!(setup.hosts, ["server", "client"]);
        assert!(setup.bss.is_empty());
        assert_eq!(setup.flows.len(), 2);
    }

    #[test]
    fn single_clients_differ_where_they_say_so() {
        let text = "base = \"wlan-11n-150\"\n[[client]]\nrate = \"15Mbps\"\n[[client]]\nstart = \"3 s\"\n\
                    mpdu-error = { down = \"2 %\" }\n";
        let scenario = Scenario::parse("two.toml", text, &[]).unwrap();
        assert_eq!(scenario.clients, 1);
        let setup = scenario.setup(2, 1).unwrap();
        let stations = &setup.bss[0].config.stations;
        assert_eq!(stations[0].mode.rate(), BitRate::from_mbps(15));
        assert_eq!(stations[1].mode.rate(), BitRate::from_mbps(150));
        assert_eq!(stations[1].downlink_loss, Loss::Bernoulli(Ratio::from_fraction(0.02).unwrap()));
        assert_eq!(stations[1].uplink_loss, Loss::None);
        assert_eq!(setup.flows[1].start, Instant::ZERO + Duration::from_secs(3));
    }

    #[test]
    fn clients_walk_away_and_some_come_back() {
        let text = "base = \"wlan-11n-150\"\nrun = { duration = \"9 s\" }\n[[client]]\nleave = \"3 s\"\nback = \"4 s\"\n\
                    [[client]]\nleave = \"5 s\"\n[[client]]\n";
        let setup = Scenario::parse("three.toml", text, &[]).unwrap().setup(3, 1).unwrap();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let away = setup.bss[0].config.stations.iter().map(|station| station.away);
        assert_eq!(away.collect::<Vec<_>>(), [Some((at(3), at(4))), Some((at(5), at(9))), None]);
        let text = "base = \"wlan-11n-150\"\n[[client]]\nback = \"4 s\"\n";
        let error = Scenario::parse("one.toml", text, &[]).unwrap_err().to_string();
        assert!(error.contains("without having left"), "{error}");
    }

    #[test]
    fn stations_of_802_11b_force_slots_rates_and_protection() {
        use tacit_link::wifi::Protection;
        let config = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
            Scenario::load("wlan-11g-54", &set).unwrap().setup(1, 1).unwrap().bss[0].config.clone()
        };
        let alone = config(&[]);
        assert_eq!((alone.phy().slot, alone.protection), (Duration::from_micros(9), Protection::None));
        let mixed = config(&["wifi.b-stations=true"]);
        assert_eq!(mixed.phy().slot, Duration::from_micros(20));
        assert_eq!(mixed.phy().beacon_mode().rate(), BitRate::from_mbps(1));
        assert_eq!(mixed.protection, Protection::CtsToSelf { above: 0 });
        let short = config(&["wifi.b-stations=true", "wifi.slot=short", "wifi.protection=none"]);
        assert_eq!((short.phy().slot, short.protection), (Duration::from_micros(9), Protection::None));
        let by_length = config(&["wifi.rts-threshold=500 B"]);
        assert_eq!(by_length.protection, Protection::RtsCts { above: 500 });
    }

    #[test]
    fn distances_become_snr_over_each_clients_channel() {
        let text = "base = \"wlan-11n-150\"\n[wifi]\ndistance = \"20 m\"\npath-loss-exponent = 3.5\n\
                    [[client]]\n[[client]]\nrate = \"65Mbps\"\n[[client]]\nsnr = \"-1.5 dB\"\n";
        let setup = Scenario::parse("three.toml", text, &[]).unwrap().setup(3, 1).unwrap();
        let snr_db: Vec<f64> =
            setup.bss[0].config.stations.iter().map(|station| station.snr.unwrap().as_db()).collect();
        // 16 dBm, less 46.73 dB for the first metre and 45.54 for the next nineteen; -90.95 dBm of noise.
        assert!((snr_db[0] - 14.69).abs() < 0.05, "{snr_db:?}");
        // 65 Mb/s is sent in 20 MHz: half the noise.
        assert!((snr_db[1] - snr_db[0] - 3.01).abs() < 0.01, "{snr_db:?}");
        assert!((snr_db[2] + 1.5).abs() < 1e-9, "{snr_db:?}");
    }
}
