//! Turns a [`Scenario`] into the [`Setup`] of one run.

use tacit_link::wifi::ideal_rate::TcpOver;
use tacit_link::wifi::phy::Mode;
use tacit_link::wifi::{
    AccessCategory, BssConfig, ClientLinks, LinkAcks, LinkId, LinkMode, LinkSet, MultiLinkConfig,
    RateControl, StationConfig, StationId,
};
use tacit_link::wired::Service;
use tacit_packet::units::{Duration, HostId, Instant};
use tacit_sim::setup::{ApDriver, BssSetup, ClientDriver, FlowSetup, Setup, StationSetup, WiredSetup};

use super::{
    Categories, ClientOverride, ClientPair, FwpPlan, Hop, Link, LinkUse, MultiLinkPlan, RateChoice, Scenario,
    Signal, Wifi,
};
use crate::error::InputError;

/// Length of the IP packet for which ideal rates are chosen, in bytes.
pub(crate) const FULL_PACKET: u32 = 1500;

/// The hosts and links of a chain under construction, from the server towards the clients.
struct Chain {
    hosts: Vec<String>,
    wired: Vec<WiredSetup>,
}

impl Chain {
    fn host(&mut self, name: String) -> HostId {
        self.hosts.push(name);
        HostId(self.hosts.len() as u32 - 1)
    }

    /// Connects `start` and `end` by `links` in series. Creates the hosts in between; `name` returns the name for an
    /// index.
    fn lay(&mut self, start: HostId, end: HostId, links: &[Link], name: impl Fn(usize) -> String) {
        let mut at = start;
        for (link, number) in links.iter().zip(1..) {
            let next = if number == links.len() { end } else { self.host(name(number)) };
            let (forward, backward) = (link.down.clone(), link.up.clone());
            self.wired.push(WiredSetup { a: at, b: next, forward, backward });
            at = next;
        }
    }
}

/// The client end of a chain.
struct Laid {
    /// One host per client on Wi-Fi, or one host for all clients at the end of a wire.
    clients: Vec<HostId>,
    /// The access point and its stations.
    wireless: Option<(HostId, Vec<HostId>)>,
}

impl Scenario {
    /// The source of downloads.
    pub const SERVER: HostId = HostId(0);
    /// Name of the only client host when there is no Wi-Fi.
    const ONLY_CLIENT: &str = "client";

    /// The first client in the result of [`Scenario::setup`].
    pub fn first_client(setup: &Setup) -> HostId {
        let names = [Self::ONLY_CLIENT.to_owned(), client_name(0)];
        let position = setup.hosts.iter().position(|host| names.contains(host));
        HostId(position.expect("every setup has a client") as u32)
    }

    /// Returns the errors of [`Scenario::setup`], at a lower cost.
    ///
    /// # Errors
    /// If any of these holds:
    ///
    /// - A client starts after the end of the run, or, because of `clients.stagger`, after the measurement has begun.
    /// - A client has no signal, but its rate depends on the signal.
    /// - The ends of a direct link do not hear each other or have no signal.
    /// - Only some clients use a scheme that changes what all share.
    pub fn check(&self, clients: u32) -> Result<(), InputError> {
        self.check_adoption(clients)?;
        (0..clients).try_for_each(|index| self.check_signal(index))?;
        self.flows_and_applications(clients, &[Self::SERVER], 0)?;
        self.wifi.as_ref().map_or(Ok(()), |wifi| self.direct_pairs(wifi, clients).map(drop))
    }

    /// The setup of a run of this scenario with `clients` clients and the random draws of `seed`.
    ///
    /// # Errors
    /// Same as [`Scenario::check`].
    pub fn setup(&self, clients: u32, seed: u64) -> Result<Setup, InputError> {
        self.check_adoption(clients)?;
        (0..clients).try_for_each(|index| self.check_signal(index))?;
        let mut chain = Chain { hosts: vec!["server".to_owned()], wired: Vec::new() };
        let laid = self.lay_chain(&mut chain, clients);
        let (flows, applications) = self.flows_and_applications(clients, &laid.clients, seed)?;
        let wireless = self.wifi.as_ref().zip(laid.wireless);
        let bss =
            wireless.map(|(wifi, (access_point, stations))| self.bss(wifi, access_point, stations, &flows));
        Ok(Setup {
            hosts: chain.hosts,
            wired: chain.wired,
            bss: bss.transpose()?.into_iter().collect(),
            flows,
            applications,
            duration: self.run.duration,
            measure_from: Instant::ZERO + self.run.measure_from,
            seed,
            wire: false,
            sample_interval: self.run.sample_interval,
            adopters: self.adoption.as_ref().map(|adoption| adoption.adopters),
        })
    }

    fn lay_chain(&self, chain: &mut Chain, clients: u32) -> Laid {
        let links = |hops: &[Hop]| -> Vec<Link> {
            hops.iter()
                .filter_map(|hop| if let Hop::Pipe(link) = hop { Some((**link).clone()) } else { None })
                .collect()
        };
        let router = |number: usize| format!("router-{number}");
        let Some(at) = self.hops.iter().position(|hop| *hop == Hop::Wifi) else {
            let client = chain.host(Self::ONLY_CLIENT.to_owned());
            chain.lay(Self::SERVER, client, &links(&self.hops), router);
            return Laid { clients: vec![client], wireless: None };
        };
        let (before, behind) = (links(&self.hops[..at]), links(&self.hops[at..]));
        let access_point = if before.is_empty() { Self::SERVER } else { chain.host("ap".to_owned()) };
        let names = (0..clients).map(client_name);
        let hosts: Vec<_> = names.map(|name| chain.host(name)).collect();
        chain.lay(Self::SERVER, access_point, &before, router);
        let stations = if behind.is_empty() {
            hosts.clone()
        } else {
            let stations: Vec<_> =
                (1..=clients).map(|number| chain.host(format!("station-{number}"))).collect();
            for ((station, client), number) in stations.iter().zip(&hosts).zip(1..) {
                chain.lay(*station, *client, &behind, |hop| format!("router-{hop}-of-client-{number}"));
            }
            stations
        };
        Laid { clients: hosts, wireless: Some((access_point, stations)) }
    }

    pub(super) fn client_override(&self, index: u32) -> ClientOverride {
        self.overrides.get(index as usize).cloned().unwrap_or_default()
    }

    /// Round-trip time of the wired hops without queueing delay.
    pub fn round_trip(&self) -> Duration {
        let of_hop = |hop: &Hop| match hop {
            Hop::Pipe(link) => link.down.delay + link.up.delay,
            Hop::Wifi => Duration::ZERO,
        };
        self.hops.iter().map(of_hop).fold(Duration::ZERO, |sum, delay| sum + delay)
    }

    /// The time after which the longest trace of its links repeats; `None` without traces.
    pub fn longest_trace(&self) -> Option<Duration> {
        let services = self.hops.iter().flat_map(|hop| match hop {
            Hop::Pipe(link) => vec![&link.down.service, &link.up.service],
            Hop::Wifi => Vec::new(),
        });
        let period = |service: &Service| match service {
            Service::Trace(trace) => Some(Duration::from_millis(trace.period_millis().into())),
            Service::Rate(_) | Service::Script(_) => None,
        };
        services.filter_map(period).max()
    }

    /// Refuses a client without a signal if its rate depends on the signal.
    fn check_signal(&self, index: u32) -> Result<(), InputError> {
        let Some(wifi) = self.wifi.as_ref().filter(|wifi| wifi.follows_signal()) else { return Ok(()) };
        let client = self.client_override(index);
        let is_said = client.mode.is_some() && wifi.rate_control != RateChoice::Ideal;
        if is_said || client.signal.or(wifi.signal).is_some() {
            return Ok(());
        }
        let place = format!("{}: client {}", self.name, index + 1);
        Err(InputError::new(place, "its rate is ideal, but its signal is not given")
            .allowed("snr or distance beside rate = \"ideal\" or rate-control = \"ideal\""))
    }

    fn bss(
        &self,
        wifi: &Wifi,
        access_point: HostId,
        stations: Vec<HostId>,
        flows: &[FlowSetup],
    ) -> Result<BssSetup, InputError> {
        let config = self.bss_config(wifi, stations.len() as u32, flows)?;
        let clients = stations.into_iter().zip(0..);
        let clients = clients.map(|(host, index)| StationSetup {
            host,
            driver: self.of_client(index).client_driver(wifi, index),
        });
        let access_point = StationSetup { host: access_point, driver: self.ap_driver(wifi) };
        Ok(BssSetup { access_point, clients: clients.collect(), config })
    }

    /// The configuration of the channel of `wifi`, with those of its further links.
    fn bss_config(&self, wifi: &Wifi, clients: u32, flows: &[FlowSetup]) -> Result<BssConfig, InputError> {
        let station = |index| {
            let client = self.client_override(index);
            let error = client.mpdu_error.unwrap_or_else(|| wifi.mpdu_error.clone());
            let signal = client.signal.or(wifi.signal);
            let mode = wifi.mode_at(client.mode, signal, self.round_trip());
            StationConfig {
                control_mode: client.ack_mode.or(wifi.ack_mode),
                downlink_loss: error.down,
                uplink_loss: error.up,
                link_ack_loss: client.link_ack_error.unwrap_or_else(|| wifi.link_ack_error.clone()),
                link_acks: client.link_acks.unwrap_or(wifi.link_acks),
                edca: client.edca.or(wifi.edca.clients()).overrides(),
                away: client.leave.map(|leave| {
                    let back = client.back.unwrap_or(self.run.duration);
                    (Instant::ZERO + leave, Instant::ZERO + back)
                }),
                downlink_queue: client.ap_queue.unwrap_or(wifi.ap_queue),
                uplink_queue: client.station_queue.unwrap_or(wifi.station_queue),
                ..wifi.link_at(mode, signal)
            }
        };
        let direct = self.direct_pairs(wifi, clients)?.into_iter();
        let [ap_ack_filter, station_ack_filter] = wifi.ack_filter.in_queues();
        Ok(BssConfig {
            stations: (0..clients).map(station).collect(),
            categories: access_categories(wifi, flows),
            direct_links: direct.flat_map(|(pair, signal)| self.direct_link(wifi, pair, signal)).collect(),
            hidden: self.hidden_pairs(wifi, clients),
            ofdma: wifi.ofdma.config(self.hack.mu_room, self.hack.mu_carrier),
            ap_ack_filter,
            station_ack_filter,
            rate_control: match wifi.rate_control {
                RateChoice::Fixed | RateChoice::Ideal => RateControl::Fixed,
                RateChoice::Minstrel => RateControl::Minstrel,
            },
            multi_link: self.multi_link(wifi, clients, flows)?,
            ..wifi.bss.clone()
        })
    }

    fn multi_link(
        &self,
        wifi: &Wifi,
        clients: u32,
        flows: &[FlowSetup],
    ) -> Result<Option<Box<MultiLinkConfig>>, InputError> {
        let Some(plan) = &wifi.multi_link else { return Ok(None) };
        let MultiLinkPlan { share, block_acks, acks, map, mode, emlsr, ref further } = **plan;
        let links = |index| {
            let client = self.client_override(index);
            let links = client.links.unwrap_or(LinkSet::ALL);
            let rate = |wifi: &Wifi| {
                let signal = client.signal.or(wifi.signal);
                wifi.mode_at(client.mode, signal, self.round_trip()).rate()
            };
            let rates =
                [wifi].into_iter().chain(further).zip(0..).map(|(wifi, link)| (LinkId(link), rate(wifi)));
            let usable = rates.filter(|(link, _)| links.contains(*link));
            let one =
                |(link, _)| ClientLinks { links: LinkSet::NONE.with(link), mode: LinkMode::Simultaneous };
            match client.link_use.unwrap_or(mode) {
                LinkUse::Simultaneous => ClientLinks { links, mode: LinkMode::Simultaneous },
                LinkUse::SendOrReceive => {
                    ClientLinks { links, mode: LinkMode::SendOrReceive { medium_sync: emlsr.medium_sync } }
                }
                LinkUse::SingleRadio => ClientLinks { links, mode: LinkMode::SingleRadio(emlsr) },
                LinkUse::Fastest => usable.max_by_key(|(_, rate)| *rate).map_or(ClientLinks::ALL, one),
            }
        };
        let clients_on = (0..clients).map(links).collect();
        let further = further.iter().map(|link| self.bss_config(link, clients, flows));
        Ok(Some(Box::new(MultiLinkConfig {
            further: further.collect::<Result<_, _>>()?,
            share,
            block_acks,
            acks,
            map,
            clients: clients_on,
        })))
    }

    /// The driver between the access point's MAC and its host. Reading the scenario has ensured that it configures at
    /// most one.
    fn ap_driver(&self, wifi: &Wifi) -> ApDriver {
        let agent = wifi.ap_acks.agent().map_or(ApDriver::Stock, ApDriver::FastAck);
        let hack = self.adopted().and_then(|adopted| adopted.hack.config()).or_else(|| self.hack.config());
        hack.map_or(agent, ApDriver::Hack)
    }

    /// The driver between the MAC and the host of the client with this index.
    fn client_driver(&self, wifi: &Wifi, index: u32) -> ClientDriver {
        let hold = wifi.ack_filter.hold().map_or(ClientDriver::Stock, ClientDriver::AckHold);
        let client = self.client_override(index);
        let is_answered = client.link_acks.unwrap_or(wifi.link_acks).are(LinkAcks::Normal);
        let speaks = client.hack.unwrap_or(true) && is_answered;
        let other = self.fwp_of(index).shim().map_or(hold, ClientDriver::Fwp);
        self.hack.config().filter(|_| speaks).map_or(other, ClientDriver::Hack)
    }

    /// The FWP plan of the client with this index. FWP applies only to data sent to the client without link-layer ACKs.
    pub(super) fn fwp_of(&self, index: u32) -> FwpPlan {
        let client_acks = self.client_override(index).link_acks;
        let sent_once = self
            .wifi
            .as_ref()
            .is_some_and(|wifi| client_acks.unwrap_or(wifi.link_acks).down != LinkAcks::Normal);
        FwpPlan { repair: self.fwp.repair.filter(|_| sent_once), ..self.fwp }
    }

    /// Pairs among the first `clients` clients that do not hear each other.
    fn hidden_pairs(&self, wifi: &Wifi, clients: u32) -> Vec<(StationId, StationId)> {
        let placed = clients.min(self.overrides.len() as u32);
        let mut pairs = Vec::new();
        for one in 0..placed {
            for other in one + 1..placed {
                if self.is_hidden(wifi, [one, other]) {
                    // The access point is station 0.
                    pairs.push((StationId(one as u16 + 1), StationId(other as u16 + 1)));
                }
            }
        }
        pairs
    }

    /// Whether two clients are hidden from each other, either because the scenario says so or because the received
    /// power over their distance is too low.
    pub(crate) fn is_hidden(&self, wifi: &Wifi, [one, other]: ClientPair) -> bool {
        let overrides = |index: u32| self.overrides.get(index as usize);
        let (Some(a), Some(b)) = (overrides(one), overrides(other)) else { return false };
        let too_far = a.position.zip(b.position).is_some_and(|(a, b)| {
            let loss_db = wifi.propagation.path_loss_db(a.distance_m(&b));
            wifi.propagation.tx_power_dbm - loss_db < wifi.carrier_sense_dbm
        });
        a.hidden_from.contains(&other) || b.hidden_from.contains(&one) || too_far
    }

    /// Refuses a client that starts after the measurement has begun, because the goodput would lack that of the last
    /// clients. A start that the scenario sets explicitly is allowed, and so is a measurement of the whole run.
    pub(super) fn check_stagger(&self, index: u32, start: Duration) -> Result<(), InputError> {
        let from = self.run.measure_from;
        if start <= from || from == Duration::ZERO {
            return Ok(());
        }
        // The first client starts at time 0.
        let most = Duration::from_micros(from.as_micros() / u64::from(index.max(1)));
        let place = format!("{}: client {}", self.name, index + 1);
        let what = format!("starts at {start}, when results count since {from}: run.measure-from");
        let allowed = format!(
            "clients.stagger of {most} at most, or run.measure-from of {start} and later with a run.duration beyond it"
        );
        Err(InputError::new(place, what).allowed(allowed))
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

fn client_name(index: u32) -> String {
    format!("client-{}", index + 1)
}

/// The access categories that `flows` use, least urgent first, or best effort if there are no flows. All of them if the
/// scenario says so.
fn access_categories(wifi: &Wifi, flows: &[FlowSetup]) -> Vec<AccessCategory> {
    if wifi.categories == Categories::All {
        return AccessCategory::ALL.to_vec();
    }
    let used = |category: &AccessCategory| flows.iter().any(|flow| flow.access_category == *category);
    let categories: Vec<_> = AccessCategory::ALL.into_iter().filter(used).collect();
    if categories.is_empty() { vec![AccessCategory::BestEffort] } else { categories }
}

impl Wifi {
    /// The data mode of a client with this `signal`: `client_mode` or otherwise the configured mode. If rates are ideal, the
    /// mode with the highest TCP throughput at this signal over a path of `round_trip`.
    pub(crate) fn mode_at(
        &self,
        client_mode: Option<Mode>,
        signal: Option<Signal>,
        round_trip: Duration,
    ) -> Mode {
        let configured = client_mode.unwrap_or(self.mode);
        let Some(signal) = signal else { return configured };
        let modes = match (self.ideal, client_mode) {
            (Some(choice), None) => Mode::fitting(self.bss.standard, self.bss.variant, choice),
            _ if self.rate_control == RateChoice::Ideal => {
                configured.and_lesser(self.bss.standard_at(&configured), self.bss.variant)
            }
            _ => return configured,
        };
        let over = TcpOver { config: &self.bss, packet: FULL_PACKET, round_trip };
        over.ideal_mode(modes, |mode| signal.snr(&self.propagation, mode)).unwrap_or(configured)
    }

    /// A link that uses `mode` and whose ends hear each other at `signal`; all other settings are the defaults.
    pub(crate) fn link_at(&self, mode: Mode, signal: Option<Signal>) -> StationConfig {
        StationConfig {
            snr: signal.map(|signal| signal.snr(&self.propagation, &mode)),
            narrow_is_clearer: matches!(signal, Some(Signal::Distance(_))),
            signal_dbm: signal.map(|signal| signal.received_dbm(&self.propagation, &mode)),
            ..StationConfig::new(mode)
        }
    }

    /// Whether the rate of each client is chosen for its signal.
    pub(crate) fn follows_signal(&self) -> bool {
        self.ideal.is_some() || self.rate_control == RateChoice::Ideal
    }
}

#[cfg(test)]
mod tests {
    use tacit_link::Loss;
    use tacit_link::wifi::phy::{Band, PacketExtension, Standard};
    use tacit_link::wired::{Order, PipeConfig, Service};
    use tacit_packet::units::{BitRate, Ratio};

    use super::*;

    #[test]
    fn the_topology_is_server_wire_access_point_clients() {
        let scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
        let setup = scenario.setup(3, 7).unwrap();
        assert_eq!(setup.hosts, ["server", "ap", "client-1", "client-2", "client-3"]);
        assert_eq!((setup.wired[0].a, setup.wired[0].b), (HostId(0), HostId(1)));
        assert_eq!(setup.bss[0].clients, [HostId(2), HostId(3), HostId(4)].map(StationSetup::from));
        assert_eq!(setup.flows[2].sink, HostId(4));
        assert_eq!(setup.flows[2].start, Instant::ZERO + Duration::from_millis(200));
        assert_eq!(setup.bss[0].config.stations[0].mode.rate(), BitRate::from_mbps(150));
        assert_eq!(setup.seed, 7);
    }

    #[test]
    fn clients_differ_in_what_is_acknowledged() {
        let text = "base = \"wlan-11n-150\"\n[wifi]\nlink-acks = \"none\"\n[[client]]\nlink-acks = \"normal\"\n\
                    [[client]]\ncount = 3\nlink-acks = \"uplink-only\"\n[[client]]\n";
        let scenario = Scenario::parse("acks.toml", text, &[]).unwrap();
        assert_eq!(scenario.clients, 5);
        let setup = scenario.setup(6, 1).unwrap();
        let [normal, none] = [LinkAcks::Normal, LinkAcks::None];
        let acks: Vec<_> = setup.bss[0]
            .config
            .stations
            .iter()
            .map(|station| [station.link_acks.down, station.link_acks.up])
            .collect();
        let uplink = [none, normal];
        assert_eq!(acks, [[normal; 2], uplink, uplink, uplink, [none; 2], [none; 2]]);
    }

    #[test]
    fn clients_may_be_of_an_older_standard() {
        let text = "base = \"wlan-11be-5765\"\n[wifi]\nband = \"5 GHz\"\nrate = \"2882.4Mbps\"\n\
                    packet-extension = \"20 us\"\n[[client]]\nstandard = \"802.11ac\"\n\
                    rate = \"866.7Mbps\"\n[[client]]\nstandard = \"802.11ax\"\nmcs = 11\nstreams = 1\n[[client]]\n";
        let setup = Scenario::parse("mixed.toml", text, &[]).unwrap().setup(3, 1).unwrap();
        let config = &setup.bss[0].config;
        let modes: Vec<Mode> = config.stations.iter().map(|station| station.mode).collect();
        let describe = |mode: &Mode| {
            (config.standard_at(mode), config.window_at(mode), mode.rate().as_bps() / 1_000_000)
        };
        assert_eq!(describe(&modes[0]), (Standard::Ac, 64, 866));
        assert_eq!(describe(&modes[1]), (Standard::Ax, 256, 600));
        assert_eq!(describe(&modes[2]), (Standard::Be, 1_024, 2_882));
        // 802.11ax does not have the longer one.
        let extension = |mode: &Mode| mode.he_options().map(|options| options.extension);
        assert_eq!(extension(&modes[1]), Some(PacketExtension::Us16));
        assert_eq!(extension(&modes[2]), Some(PacketExtension::Us20));
    }

    #[test]
    fn clients_without_link_layer_acks_speak_no_hack() {
        let text = "base = \"wlan-11n-150\"\n[hack]\nvariant = \"timer\"\n[[client]]\n[[client]]\n\
                    link-acks = \"uplink-only\"\n";
        let setup = Scenario::parse("acks.toml", text, &[]).unwrap().setup(2, 1).unwrap();
        let speaks = |station| setup.bss[0].hack_config(StationId(station)).is_some();
        assert_eq!([0, 1, 2].map(speaks), [true, true, false]);
    }

    #[test]
    fn without_wifi_the_clients_share_a_host() {
        let setup = Scenario::load("wired-10", &[]).unwrap().setup(2, 1).unwrap();
        assert_eq!(setup.hosts, ["server", "client"]);
        assert!(setup.bss.is_empty());
        assert_eq!(setup.flows.len(), 2);
    }

    /// Pairs of connected hosts by name, wired links first.
    fn joints(setup: &Setup) -> Vec<String> {
        let name = |host: HostId| setup.hosts[host.0 as usize].as_str();
        let wires = setup.wired.iter().map(|wire| (wire.a, wire.b));
        let air = setup
            .bss
            .iter()
            .flat_map(|bss| bss.hosts().skip(1).map(|client| (bss.access_point.host, client)));
        wires
            .map(|(a, b)| format!("{} - {}", name(a), name(b)))
            .chain(air.map(|(a, b)| format!("{} ~ {}", name(a), name(b))))
            .collect()
    }

    fn chain(hops: &[&str], clients: u32) -> Setup {
        let mut text = "base = \"wlan-11n-150\"\n".to_owned();
        for kind in hops {
            text.push_str(&format!("[[hop]]\nkind = \"{kind}\"\n"));
            if *kind == "cellular" {
                text.push_str("down-trace = \"lte-synthetic.down\"\nup-trace = \"lte-synthetic.up\"\n");
            }
        }
        Scenario::parse("chain.toml", &text, &[]).unwrap().setup(clients, 1).unwrap()
    }

    #[test]
    fn hops_are_laid_from_the_server_to_the_clients() {
        let setup = chain(&["wired", "cellular", "wifi"], 2);
        assert_eq!(joints(&setup), ["server - router-1", "router-1 - ap", "ap ~ client-1", "ap ~ client-2"]);
        assert_eq!(
            joints(&chain(&["wired", "cellular"], 2)),
            joints(&setup),
            "Wi-Fi comes last if not named"
        );
        assert_eq!(Scenario::first_client(&setup), setup.flows[0].sink);
        assert_eq!(chain(&["wired"], 1).hosts, ["server", "ap", "client-1"]);
    }

    #[test]
    fn behind_wifi_each_client_has_its_own_links() {
        let setup = chain(&["wifi", "wired", "wired"], 2);
        assert_eq!(
            joints(&setup),
            [
                "station-1 - router-1-of-client-1",
                "router-1-of-client-1 - client-1",
                "station-2 - router-1-of-client-2",
                "router-1-of-client-2 - client-2",
                "server ~ station-1",
                "server ~ station-2",
            ]
        );
        assert_eq!(setup.hosts[setup.flows[1].sink.0 as usize], "client-2");
        assert_eq!(setup.hosts[Scenario::first_client(&setup).0 as usize], "client-1");
    }

    #[test]
    fn each_direction_has_its_own_link() {
        let text = "[wired]\nrate = \"10Mbps\"\njitter = \"2 ms\"\n[wired.up]\nrate = \"1Mbps\"\n\
                    jitter = { spread = \"1 ms\", distribution = \"normal\", order = \"free\" }\n\
                    [[hop]]\nkind = \"wired\"\n[[hop]]\nkind = \"wired\"\ndown = { delay = \"7 ms\" }\n";
        let setup = Scenario::parse("ways.toml", text, &[]).unwrap().setup(1, 1).unwrap();
        let [first, second] = &setup.wired[..] else { panic!("two wires") };
        assert_eq!(first.forward.service, Service::Rate(BitRate::from_mbps(10)));
        assert_eq!(first.backward.service, Service::Rate(BitRate::from_mbps(1)));
        let order = |pipe: &PipeConfig| pipe.impairments.jitter.unwrap().order;
        assert_eq!((order(&first.forward), order(&first.backward)), (Order::Kept, Order::Free));
        assert_eq!(
            (second.forward.delay, second.backward.delay),
            (Duration::from_millis(7), Duration::from_millis(1))
        );
        assert_eq!(second.backward.service, first.backward.service);
    }

    #[test]
    fn traces_lie_beside_the_scenario() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        std::fs::write(&path, "[cellular]\ndown-trace = \"a.down\"\nup-trace = \"lte-synthetic.up\"\n")
            .unwrap();
        let load = || Scenario::load(path.to_str().unwrap(), &[]);
        let missing = load().unwrap_err().to_string();
        assert!(
            missing.contains("mine.toml:2: cellular.down-trace: ") && missing.contains("a.down"),
            "{missing}"
        );
        std::fs::write(directory.path().join("a.down"), "1\n2\n1\n").unwrap();
        let broken = load().unwrap_err().to_string();
        assert!(
            broken.contains("a.down:3: 1 ms comes after 2 ms; allowed: times that never fall"),
            "{broken}"
        );
        std::fs::write(directory.path().join("a.down"), "1\n2\n9\n").unwrap();
        let setup = load().unwrap().setup(1, 1).unwrap();
        let Service::Trace(trace) = &setup.wired[0].forward.service else { panic!("a trace") };
        assert_eq!(trace.period_millis(), 9);
    }

    /// The text of a result means the same on every machine, and reading it opens no file except the trace with the
    /// recorded hash.
    #[test]
    fn a_stored_scenario_knows_its_traces_and_looks_at_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let text = "[cellular]\ndown-trace = \"a.down\"\nup-trace = \"lte-synthetic.up\"\n";
        std::fs::write(at("mine.toml"), text).unwrap();
        std::fs::write(at("a.down"), "1\n2\n9\n").unwrap();
        let stored = Scenario::load(at("mine.toml").to_str().unwrap(), &[]).unwrap().text;
        assert!(stored.contains(&format!("{} blake3:", at("a.down").display())), "{stored}");
        let again = |text: &str| Scenario::parse_stored("result.json", text);
        assert_eq!(again(&stored).unwrap().text, stored);
        std::fs::write(at("a.down"), "root:x:0:0\n").unwrap();
        let changed = again(&stored).unwrap_err().to_string();
        assert!(changed.contains("a.down: not the trace that is meant: its hash is "), "{changed}");
        assert!(!changed.contains("root"), "{changed}");
        let foreign = again(&text.replace("a.down", at("a.down").to_str().unwrap())).unwrap_err().to_string();
        assert!(foreign.contains("has no hash") && !foreign.contains("root"), "{foreign}");
        let based = format!("base = {:?}\n", at("a.down"));
        let based = again(&based).unwrap_err().to_string();
        assert!(based.contains("the scenario of a result has a base"), "{based}");
    }

    #[test]
    fn single_clients_differ_where_they_say_so() {
        let text = "base = \"wlan-11n-150\"\n[[client]]\nrate = \"15Mbps\"\n[[client]]\nstart = \"3 s\"\n\
                    mpdu-error = { down = \"2 %\" }\n";
        let scenario = Scenario::parse("two.toml", text, &[]).unwrap();
        assert_eq!(scenario.clients, 2);
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
    fn access_point_clients_and_categories_contend_with_their_own_numbers() {
        let text = "base = \"wlan-11n-150\"\n[wifi]\ncw-min = { ap = 7, clients = { be = 31, vo = 3 } }\ncw-max = 63\n\
                    aifsn = { ap = 1 }\n[[client]]\n[[client]]\ncw-min = 1\naifsn = { be = 15 }\n";
        let setup = Scenario::parse("edca.toml", text, &[]).unwrap().setup(2, 1).unwrap();
        let config = &setup.bss[0].config;
        let numbers = |station, category| {
            let edca = config.edca(StationId(station), category);
            (edca.aifs_slots, edca.cw_min, edca.cw_max)
        };
        let (best_effort, video, voice) =
            (AccessCategory::BestEffort, AccessCategory::Video, AccessCategory::Voice);
        assert_eq!([best_effort, video].map(|category| numbers(0, category)), [(1, 7, 63); 2]);
        assert_eq!(numbers(1, best_effort), (3, 31, 63));
        assert_eq!(numbers(1, video), (2, 7, 63), "the standard's where nothing is said");
        assert_eq!(numbers(1, voice), (2, 3, 63));
        let wide =
            Scenario::load("wlan-11n-150", &["wifi.cw-min=63".to_owned()]).unwrap().setup(1, 1).unwrap();
        let windows = |category| {
            let edca = wide.bss[0].config.edca(StationId(1), category);
            (edca.cw_min, edca.cw_max)
        };
        assert_eq!([best_effort, voice].map(windows), [(63, 1023), (63, 63)], "a default makes way");
        assert_eq!(numbers(2, best_effort), (15, 1, 63), "it does not obey");
        let explained = |key: &str, set: &str| {
            crate::explain::explain("wlan-11n-150", &[set.to_owned()], None, &[key.to_owned()])
                .unwrap()
                .settings[0]
                .value
                .clone()
        };
        assert_eq!(
            explained("wifi.cw-min", "wifi.cw-min={ ap = 7, clients = 15 }"),
            "{ ap = 7, clients = 15 }"
        );
        assert_eq!(explained("wifi.aifsn", "wifi.cw-min=7"), "none");
    }

    #[test]
    fn high_throughput_may_be_at_2_4_ghz() {
        let config = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
            Scenario::load("wlan-11n-150", &set).unwrap().setup(1, 1).unwrap().bss[0].config.clone()
        };
        let (five, low) = (config(&[]), config(&["wifi.band=2.4 GHz"]));
        assert_eq!([&five, &low].map(|config| config.phy().sifs.as_micros()), [16, 10]);
        assert_eq!(low.phy().slot.as_micros(), 9);
        let extension = |config: &BssConfig| config.stations[0].mode.ppdu_duration(1_500).as_nanos();
        assert_eq!(extension(&low), extension(&five) + 6_000);
        assert!(low.stations[0].mode.is_2_4_ghz());
        let mixed = config(&["wifi.band=2.4 GHz", "wifi.b-stations=true"]);
        assert_eq!(
            (mixed.phy().slot.as_micros(), mixed.phy().beacon_mode().rate()),
            (20, BitRate::from_mbps(1))
        );
        let snr = |band: &str| config(&[band, "wifi.distance=20 m"]).stations[0].snr.unwrap().as_db();
        let nearer = snr("wifi.band=2.4 GHz") - snr("wifi.band=5 GHz");
        // 20 log (5180 / 2437).
        assert!((nearer - 6.55).abs() < 0.01, "{nearer}");
    }

    /// Times equal those of 5 GHz. Channels are wider, and the power is lower by 20 log (6135 / 5180).
    #[test]
    fn extremely_high_throughput_is_at_6_ghz_where_channels_are_wide() {
        let config = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
            Scenario::load("wlan-11be-5765", &set)
                .map(|scenario| scenario.setup(1, 1).unwrap().bss[0].config.clone())
        };
        let six = config(&["wifi.distance=20 m"]).unwrap();
        assert_eq!((six.variant.band, six.stations[0].mode.width_mhz), (Band::Ghz6, 320));
        assert!(config(&["wifi.band=5 GHz", "wifi.channel-width=320 MHz"]).is_err(), "no room");
        let narrow = ["wifi.distance=20 m", "wifi.rate=2882.4Mbps"];
        let at = |band: &str| config(&[narrow[0], narrow[1], band]).unwrap();
        let (six, five) = (at("wifi.band=6 GHz"), at("wifi.band=5 GHz"));
        assert_eq!(six.phy(), five.phy());
        let snr = |config: &BssConfig| config.stations[0].snr.unwrap().as_db();
        assert!((snr(&five) - snr(&six) - 1.47).abs() < 0.01, "{}", snr(&five) - snr(&six));
    }

    #[test]
    fn ideal_rates_follow_the_distance() {
        let text = "base = \"wlan-11n-150\"\n[wifi]\nrate = \"ideal\"\ndistance = \"3 m\"\n\
                    [[client]]\n[[client]]\ndistance = \"40 m\"\n[[client]]\nrate = \"30Mbps\"\n";
        let setup = Scenario::parse("three.toml", text, &[]).unwrap().setup(3, 1).unwrap();
        let modes: Vec<_> = setup.bss[0].config.stations.iter().map(|station| station.mode).collect();
        assert_eq!([modes[0].rate(), modes[2].rate()], [150, 30].map(BitRate::from_mbps));
        assert!(modes[1].rate() < BitRate::from_mbps(60) && modes[1].streams == 1, "{:?}", modes[1]);
        let text = "base = \"wlan-11n-150\"\n[wifi]\nrate = \"ideal\"\n";
        let error = Scenario::parse("one.toml", text, &[]).unwrap().setup(1, 1).unwrap_err().to_string();
        assert!(error.contains("snr or distance"), "{error}");
    }

    #[test]
    fn distances_become_snr_over_each_clients_channel() {
        let text = "base = \"wlan-11n-150\"\n[wifi]\ndistance = \"20 m\"\npath-loss-exponent = 3.5\n\
                    [[client]]\n[[client]]\nrate = \"65Mbps\"\n[[client]]\nsnr = \"-1.5 dB\"\n";
        let setup = Scenario::parse("three.toml", text, &[]).unwrap().setup(3, 1).unwrap();
        let snr_db: Vec<f64> =
            setup.bss[0].config.stations.iter().map(|station| station.snr.unwrap().as_db()).collect();
        // 16 dBm minus 46.73 dB for the first metre and 45.54 dB for the next nineteen; the noise is -90.95 dBm.
        assert!((snr_db[0] - 14.69).abs() < 0.05, "{snr_db:?}");
        // A rate of 65 Mb/s uses 20 MHz, which halves the noise.
        assert!((snr_db[1] - snr_db[0] - 3.01).abs() < 0.01, "{snr_db:?}");
        assert!((snr_db[2] + 1.5).abs() < 1e-9, "{snr_db:?}");
    }
}
