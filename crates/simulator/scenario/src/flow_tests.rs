//! Tests of `[traffic]` and `[[flow]]`.

use tacit_congestion::Algorithm;
use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration, Instant};
use tacit_sim::setup::{Application, ClientDriver, FlowSetup, Traffic};
use tacit_sim::transport;
use tacit_tack_proto::{self as tack, AckClock};

use super::*;

const HOUSEHOLD: &str = include_str!("../tests/household.toml");

#[test]
fn flows_of_several_kinds_run_side_by_side() {
    let scenario = Scenario::parse("household.toml", HOUSEHOLD, &[]).unwrap();
    let setup = scenario.setup(3, 1).unwrap();
    let names: Vec<_> = setup
        .applications
        .iter()
        .map(|application| (application.name.as_str(), application.flows.iter().map(|flow| flow.0).collect()))
        .collect::<Vec<(_, Vec<u32>)>>();
    let expected = [
        ("web, client 1 down", vec![0, 1]),
        ("web, client 2 down", vec![2, 3]),
        ("streaming, client 2 down", vec![4]),
        ("web, client 3 down", vec![5, 6]),
    ];
    assert_eq!(names, expected);
    let photos = &setup.flows[7];
    assert_eq!(photos.sink, Scenario::SERVER);
    assert_eq!(photos.stop, Some(Instant::ZERO + Duration::from_secs(5)));
    assert!(matches!(photos.traffic, Traffic::Connection { size: Some(Bytes(2_000_000)), .. }));
    assert_eq!(setup.flows[4].start, Instant::ZERO + Duration::from_millis(500));
    // With fewer clients there are fewer flows. If no flow applies to any client, there is nothing to run.
    assert_eq!(scenario.setup(1, 1).unwrap().flows.len(), 2);
    let text = "[[flow]]\nclient = 2\n";
    let error = Scenario::parse("x.toml", text, &[]).unwrap().setup(1, 1).unwrap_err().to_string();
    assert!(error.contains("no [[flow]] has one of the 1 clients"), "{error}");
}

/// `wlan-11n-150` with data between clients and the given settings.
fn between_clients(set: &[&str]) -> Scenario {
    let set: Vec<String> =
        ["traffic.kind=station-to-station"].iter().chain(set).map(|&text| text.to_owned()).collect();
    Scenario::load("wlan-11n-150", &set).unwrap()
}

/// Ends of the direct links in a run with `clients` clients, for both directions of each link.
fn direct_ends(scenario: &Scenario, clients: u32) -> Vec<[u16; 2]> {
    let setup = scenario.setup(clients, 1).unwrap();
    setup.bss[0].config.direct_links.iter().map(|link| [link.from.0, link.to.0]).collect()
}

#[test]
fn direct_links_join_who_is_named_or_who_has_data() {
    assert_eq!(direct_ends(&between_clients(&[]), 3), [[0_u16; 2]; 0]);
    let all = between_clients(&["wifi.direct-links=all"]);
    assert_eq!(direct_ends(&all, 3), [[1, 2], [2, 1], [1, 3], [3, 1], [2, 3], [3, 2]]);
    let to_one = between_clients(&["wifi.direct-links=all", "traffic.peer=2"]);
    assert_eq!(direct_ends(&to_one, 3), [[1, 2], [2, 1], [2, 3], [3, 2]]);
    let named = between_clients(&["wifi.direct-links=[[3, 1], [1, 3], [1, 9]]"]);
    assert_eq!(direct_ends(&named, 4), [[1, 3], [3, 1]]);
    let downloads = Scenario::load("wlan-11n-150", &["wifi.direct-links=all".to_owned()]).unwrap();
    assert_eq!(direct_ends(&downloads, 3), [[0_u16; 2]; 0]);
    let written = |scenario: &Scenario| direct::write_pairs(&scenario.wifi.as_ref().unwrap().direct.pairs);
    assert_eq!([&all, &named].map(written), ["\"all\"", "[[1, 3], [1, 9]]"]);
}

#[test]
fn direct_links_have_rates_and_losses_of_their_own() {
    let text = "base = \"wlan-11n-150\"\n[traffic]\nkind = \"station-to-station\"\n[wifi]\ndirect-links = \"all\"\n\
                [[client]]\nmpdu-error = { up = \"2 %\" }\n[[client]]\nrate = \"65Mbps\"\nstation-queue = \"9 packets\"\n";
    let setup = Scenario::parse("direct.toml", text, &[]).unwrap().setup(2, 1).unwrap();
    let [there, back] = &setup.bss[0].config.direct_links[..] else { panic!("two ways") };
    let rates = [there, back].map(|link| link.link.mode.rate().as_bps() / 1_000_000);
    assert_eq!(rates, [65, 65], "both ends have the slower rate");
    assert_ne!(there.link.uplink_loss, back.link.uplink_loss);
    assert_eq!(back.link.uplink_queue.limit.packets, Some(9));
    // If clients are close to each other but far from the access point, ideal rates differ. Positions determine the
    // distances.
    let text = "base = \"wlan-11n-150\"\n[traffic]\nkind = \"station-to-station\"\n[wifi]\ndirect-links = \"all\"\n\
                rate-control = \"ideal\"\n[[client]]\nposition = [\"40 m\", \"0 m\"]\n[[client]]\n\
                position = [\"40 m\", \"-3 m\"]\n";
    let placed = Scenario::parse("placed.toml", text, &[]).unwrap();
    let setup = placed.setup(2, 1).unwrap();
    let config = &setup.bss[0].config;
    assert_eq!(config.direct_links[0].link.mode.rate().as_bps(), 150_000_000);
    assert!(config.stations[0].mode.rate().as_bps() < 100_000_000);
    let snr =
        |scenario: &Scenario| scenario.setup(2, 1).unwrap().bss[0].config.direct_links[0].link.snr.unwrap();
    let with_distance = between_clients(&["wifi.direct-links=all", "wifi.direct-distance=3 m"]);
    assert_eq!(snr(&placed), snr(&with_distance));
    let loud = between_clients(&["wifi.direct-links=all", "wifi.direct-snr=7 dB", "wifi.distance=20 m"]);
    assert!((snr(&loud).as_db() - 7.0).abs() < 1e-9);
}

#[test]
fn direct_links_that_cannot_be_are_refused() {
    let refused = |set: &[&str], clients: &str| {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        let text = format!(
            "base = \"wlan-11n-150\"\n[traffic]\nkind = \"station-to-station\"\n[wifi]\ndirect-links = \"all\"\n{clients}"
        );
        let scenario = Scenario::parse("direct.toml", &text, &set).unwrap();
        let error = scenario.check(2).unwrap_err().to_string();
        assert_eq!(scenario.setup(2, 1).unwrap_err().to_string(), error);
        error
    };
    assert_eq!(
        refused(&["wifi.distance=10 m"], ""),
        "direct: wifi.direct-links: no setting says how well clients 1 and 2 hear each other; allowed: wifi.direct-distance, \
         wifi.direct-snr, or a position of each client"
    );
    assert_eq!(
        refused(
            &["wifi.direct-distance=30 m"],
            "[[client]]\ndistance = \"10 m\"\n[[client]]\ndistance = \"4 m\"\n"
        ),
        "direct: wifi.direct-links: clients 1 and 2, 10 m and 4 m from the access point, are not 30 m from each other; \
         allowed: wifi.direct-distance from 6 m to 14 m"
    );
    let hidden = refused(&[], "[[client]]\nhidden-from = [2]\n[[client]]\n");
    assert!(hidden.contains("clients 1 and 2 are hidden from each other"), "{hidden}");
    let leaves = refused(&[], "[[client]]\n[[client]]\nleave = \"3 s\"\n");
    assert!(leaves.contains("client 2 leaves"), "{leaves}");
}

/// Reports clients out of range and link-layer ACK rates too high for the signal, on direct links too.
#[test]
fn direct_links_out_of_reach_are_told() {
    let warned = |set: &[&str]| warnings::of_setup(&between_clients(set).setup(3, 1).unwrap());
    let far = warned(&["wifi.direct-links=[[1, 3]]", "wifi.direct-snr=1 dB"]);
    assert!(far.len() == 1 && far[0].starts_with("direct link 1-3 is out of reach: at 1 dB"), "{far:?}");
    assert!(far[0].contains("see wifi.direct-distance, wifi.direct-snr, wifi.rate"), "{far:?}");
    assert_eq!(warned(&["wifi.direct-links=[[1, 3]]", "wifi.direct-snr=40 dB"]), [""; 0]);
}

#[test]
fn clients_send_to_clients() {
    let load = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        Scenario::load("wlan-11n-150", &set).unwrap()
    };
    let ends = |scenario: &Scenario, clients| {
        let setup = scenario.setup(clients, 1).unwrap();
        let host = |id: tacit_packet::units::HostId| setup.hosts[id.0 as usize].clone();
        setup.flows.iter().map(|flow| (host(flow.source), host(flow.sink))).collect::<Vec<_>>()
    };
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let ring = load(&["traffic.kind=station-to-station"]);
    assert_eq!(
        ends(&ring, 3),
        [pair("client-1", "client-2"), pair("client-2", "client-3"), pair("client-3", "client-1")]
    );
    let to_one = load(&["traffic.kind=station-to-station", "traffic.peer=2"]);
    assert_eq!(ends(&to_one, 3), [pair("client-1", "client-2"), pair("client-3", "client-2")]);
    let pages = load(&["traffic.kind=station-to-station", "traffic.application=request-response"]);
    assert_eq!(pages.setup(2, 1).unwrap().applications[0].name, "request-response, client 1 to client 2");
    let error = |scenario: &Scenario, clients| scenario.check(clients).unwrap_err().to_string();
    assert!(error(&ring, 1).contains("there is no client 2 for the data of client 1"), "{}", error(&ring, 1));
    assert!(error(&to_one, 1).contains("there is no client 2"));
    let fwp = scheme::find("", "fwp").unwrap().applied_to(&ring);
    let refused = error(&fwp, 2);
    assert!(
        refused.contains("client 2 has no server that could repair the data that client 1 sends it"),
        "{refused}"
    );
    for scheme in scheme::ALL.iter().filter(|scheme| !scheme.name.starts_with("fwp")) {
        scheme.applied_to(&ring).check(2).unwrap();
    }
}

#[test]
fn pages_and_videos_are_repaired_where_fwp_is() {
    let programs = |scheme: &str, set: &[&str]| {
        let set: Vec<String> =
            set.iter().chain(&["client=[{}]", "fwp.connections=4"]).map(|&text| text.to_owned()).collect();
        let scenario = Scenario::load("fwp-11n-600", &set).unwrap();
        scheme::find("", scheme).unwrap().applied_to(&scenario).setup(1, 1).unwrap().applications
    };
    let repairers = |program: &Application| match program {
        Application::RequestResponse(pages) => pages.repair,
        Application::Streaming(video) => video.repair,
        _ => None,
    };
    for (application, connections) in [("request-response", 6), ("streaming", 1)] {
        let kind = format!("traffic.application={application}");
        let (with, without) = (programs("fwp", &[&kind]), programs("stock", &[&kind]));
        assert_eq!(with[0].flows.len(), 5 * connections, "four repairers for each");
        assert_eq!(repairers(&with[0].application).map(|found| found.connections), Some(4));
        assert_eq!((without[0].flows.len(), repairers(&without[0].application)), (connections, None));
    }
    let uploads = programs("fwp", &["traffic.application=request-response", "traffic.kind=upload"]);
    assert_eq!((uploads[0].flows.len(), repairers(&uploads[0].application)), (6, None));
}

#[test]
fn clients_with_link_layer_acks_have_hack_beside_others_with_fwp() {
    let set = [
        "client=[{link-acks=\"uplink-only\"},{link-acks=\"normal\"}]",
        "fwp.repair=server",
        "hack.variant=more-data",
    ];
    let setup = Scenario::load("fwp-11n-600", &set.map(str::to_owned)).unwrap().setup(2, 1).unwrap();
    let drivers: Vec<_> = setup.bss[0].clients.iter().map(|client| &client.driver).collect();
    assert!(matches!(drivers[..], [ClientDriver::Fwp(_), ClientDriver::Hack(_)]), "{drivers:?}");
}

#[test]
fn flows_start_at_moments_of_their_own_where_starts_are_spread() {
    let starts = |seed: u64| -> Vec<Duration> {
        let set = ["run.start-spread=1 s".to_owned(), "clients.stagger=0 s".to_owned()];
        let setup = Scenario::load("wlan-11n-150", &set).unwrap().setup(2, seed).unwrap();
        setup.flows.iter().map(|flow| flow.start.saturating_since(Instant::ZERO)).collect()
    };
    let (first, second) = (starts(1), starts(2));
    assert_eq!(first, starts(1));
    assert!(first[0] != first[1] && first[0] != second[0], "{first:?} {second:?}");
    assert!(first.iter().chain(&second).all(|start| *start < Duration::from_secs(1)), "{first:?} {second:?}");
    let late = ["run.duration=5 s", "clients.count=1", "run.start-spread=5 s"].map(str::to_owned);
    let error = Scenario::load("wlan-11n-150", &late).unwrap().setup(1, 1).unwrap_err().to_string();
    assert!(error.contains("after the end of the run"), "{error}");
}

#[test]
fn schemes_change_what_names_no_transport_of_its_own() {
    let scenario = Scenario::parse("household.toml", HOUSEHOLD, &[]).unwrap();
    let over_udp = |scheme: &str| {
        let changed = scheme::find("", scheme).unwrap().applied_to(&scenario);
        let setup = changed.setup(3, 1).unwrap();
        let udp = |flow: &FlowSetup| matches!(flow.traffic, Traffic::Udp { .. });
        (setup.flows.iter().filter(|flow| udp(flow)).count(), setup.applications.len())
    };
    assert_eq!(over_udp("stock"), (1, 4), "the video stays unchanged");
    assert_eq!(over_udp("udp"), (5, 1), "the bound is bulk data for each flow, and the video");
}

#[test]
fn connections_are_of_tack_where_the_traffic_is() {
    let config = |settings: &[&str]| {
        let mut assignments = vec!["traffic.transport=tack".to_owned()];
        assignments.extend(settings.iter().map(|&text| text.to_owned()));
        let setup = Scenario::load("wlan-11n-150", &assignments).unwrap().setup(1, 1).unwrap();
        let Traffic::Connection { config: transport::Config::Tack(config), .. } = setup.flows[0].traffic
        else {
            panic!("TACK")
        };
        config
    };
    assert_eq!(config(&[]), tack::Config::default());
    let delayed = AckClock::Delayed { every: 8, delay: Duration::from_millis(40) };
    assert_eq!(
        config(&["tack.ack-clock=delayed", "tack.every=8", "tack.ack-delay=40 ms"]).ack_clock,
        delayed
    );
    let min_interval = Duration::from_millis(25);
    assert_eq!(config(&["tack.beta=8"]).ack_clock, AckClock::Tack { beta: 8, every: 16, min_interval });
    assert_eq!(config(&["tack.ack-clock=paper"]).ack_clock, AckClock::PAPER);
    assert_eq!(
        config(&["tack.min-interval=0 s", "tack.every=2"]).ack_clock,
        AckClock::Tack { beta: 4, every: 2, min_interval: Duration::ZERO }
    );
    let wide = config(&["tcp.ip=v6", "tcp.mtu=1280 B", "tack.receive-buffer-max=1 MiB"]);
    assert_eq!((wide.ip, wide.mtu, wide.max_mtu), (IpVersion::V6, Bytes(1_280), Bytes(1_280)));
    assert_eq!((wide.max_receive_buffer, wide.stream_buffer), (Bytes(1 << 20), Bytes(1 << 20)));
}

#[test]
fn a_flow_may_have_a_controller_of_its_own_over_any_transport() {
    let flows = "[wired]\nrate = \"10Mbps\"\ndelay = \"1 ms\"\n[[flow]]\n\
                 [[flow]]\ntransport = \"tcp\"\ncongestion = \"bbr\"\n[[flow]]\ncongestion = \"copa\"\n";
    let scenario = Scenario::parse("flows.toml", flows, &["tcp.congestion=newreno".to_owned()]).unwrap();
    let controls = |scheme: &str| {
        let setup = scheme::find("", scheme).unwrap().applied_to(&scenario).setup(1, 1).unwrap();
        let control = |flow: &FlowSetup| match flow.traffic {
            Traffic::Connection { config: transport::Config::Tcp(tcp), .. } => {
                ("tcp", tcp.congestion.algorithm)
            }
            Traffic::Connection { config: transport::Config::Tack(tack), .. } => {
                ("tack", tack.congestion.algorithm)
            }
            Traffic::Udp { .. } => panic!("a connection"),
        };
        setup.flows.iter().map(control).collect::<Vec<_>>()
    };
    let beside = ("tcp", Algorithm::BBR);
    assert_eq!(controls("stock"), [("tcp", Algorithm::NewReno), beside, ("tcp", Algorithm::Copa)]);
    assert_eq!(controls("tack"), [("tack", Algorithm::TACK_BBR), beside, ("tack", Algorithm::Copa)]);
}

/// The result of the only application in `scenario`, with two clients and eight seconds, and the goodput of its bulk
/// flow.
fn served(scenario: &str) -> (tacit_sim::record::ApplicationResult, f64) {
    let short = ["run.duration=8 s".to_owned(), "run.measure-from=2 s".to_owned()];
    let setup = Scenario::load(scenario, &short).unwrap().setup(2, 1).unwrap();
    let outcome = tacit_sim::run(&setup).unwrap();
    let bulk = outcome.flows.last().unwrap().goodput_bps(outcome.measured);
    let [application] = &outcome.applications[..] else { panic!("one application") };
    (application.result.clone(), bulk)
}

#[test]
fn pages_load_beside_an_upload() {
    let (web, upload_bps) = served("wlan-web");
    let tacit_sim::record::ApplicationResult::Pages(pages) = web else { panic!("pages") };
    // Each page takes about a second of think time.
    assert!(pages.load_times.len() >= 2, "{pages:?}");
    assert!(upload_bps > 50e6, "{upload_bps}");
}

#[test]
fn a_video_plays_beside_a_download() {
    let (video, download_bps) = served("wlan-video");
    let tacit_sim::record::ApplicationResult::Stream(played) = video else { panic!("a video") };
    assert!(played.frames_played >= 5 * 30 && played.start_up.is_some(), "{played:?}");
    assert!(download_bps > 50e6, "{download_bps}");
}
