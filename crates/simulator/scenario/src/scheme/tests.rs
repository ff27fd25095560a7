use tacit_between::ack_hold::{AckHoldConfig, HoldLaw};
use tacit_between::fastack;
use tacit_link::queue::AckFilter;
use tacit_link::wifi::ReverseDirection;
use tacit_sim::Setup;
use tacit_sim::setup::{ApDriver, ClientDriver};
use tacit_tack_proto::Lists;
use tacit_tcp::{AckPolicy, Config};

use tacit_congestion::Algorithm;
use tacit_packet::units::Duration;

use super::table::ALSO;
use super::*;
use crate::{AckRule, Transport};

#[test]
fn a_scheme_changes_only_its_own_knob() {
    let scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
    assert_eq!(Scheme::with_role(Role::Baseline).applied_to(&scenario), scenario);
    let thinned = find("", "tcp-l8").unwrap().applied_to(&scenario);
    assert_eq!(thinned.tcp, Config { ack_policy: AckPolicy::every(8), ..scenario.tcp });
    assert_eq!(thinned.wifi, scenario.wifi);
}

#[test]
fn a_policy_the_scenario_names_is_its_baseline() {
    let scenario = Scenario::load("wlan-11n-150", &["tcp.ack-policy=chrome".into()]).unwrap();
    assert_eq!(Scheme::with_role(Role::Baseline).applied_to(&scenario).tcp.ack_policy, AckPolicy::chrome());
    let counted = find("", "tcp-l4").unwrap().applied_to(&scenario);
    assert_eq!(counted.tcp.ack_policy, AckPolicy::every(4));
}

#[test]
fn stock_is_tcp_as_the_scenario_has_it_and_hack_acknowledges_as_stock_does() {
    for assignment in ["tcp.ack-every=4", "tcp.profile=classic", "tcp.ack-policy=neqo", "tcp.gro-flush=1 ms"]
    {
        let assignments = ["traffic.transport=udp", "hack.variant=timer", assignment].map(str::to_owned);
        let scenario = Scenario::load("hack-2014-11n-150", &assignments).unwrap();
        let stock = Scheme::with_role(Role::Baseline).applied_to(&scenario);
        assert_eq!(stock.tcp, scenario.tcp, "{assignments:?}");
        assert_eq!((stock.traffic.transport, stock.hack.variant), (Transport::Tcp, None));
        for name in ["hack-more-data", "hack-batch", "cake-ack-filter", "driver-hold", "rdg", "fastack"] {
            assert_eq!(
                find("", name).unwrap().applied_to(&scenario).tcp,
                scenario.tcp,
                "{name} {assignments:?}"
            );
        }
    }
}

#[test]
fn schemes_that_count_segments_keep_the_other_knobs_of_delayed_acks() {
    let assignments = ["tcp.ack-delay=7 ms".to_owned(), "tcp.quick-acks=3".to_owned()];
    let scenario = Scenario::load("wlan-11n-150", &assignments).unwrap();
    assert!(matches!(scenario.tcp.ack_policy, AckPolicy::Linux(_)));
    let AckPolicy::Delayed(acks) = find("", "tcp-l4").unwrap().applied_to(&scenario).tcp.ack_policy else {
        panic!("delayed ACKs")
    };
    assert_eq!((acks.every, acks.delay.as_millis(), acks.quick_ack_segments), (4, 7, 3));
}

#[test]
fn schemes_of_other_transports_are_the_policies_of_their_names() {
    for name in [
        "tcp-linux",
        "quic-ack2",
        "quic-ackfreq",
        "aioquic",
        "chrome",
        "neqo",
        "picoquic",
        "quiche",
        "mvfst",
        "msquic",
        "tack-lite",
    ] {
        let (scheme, key) = (find("", name).unwrap(), name.trim_start_matches("tcp-"));
        let named = Scenario::load("wlan-11n-150", &[format!("tcp.ack-policy={key}")]).unwrap();
        let scenario = Scenario::load("wlan-11n-150", &[]).unwrap();
        assert_eq!(scheme.applied_to(&scenario).tcp, named.tcp, "{key}");
    }
}

#[test]
fn stacks_that_announce_room_by_themselves_do_so_after_their_part_of_a_window() {
    for (name, bytes) in [("quinn", "156250 B"), ("quic-go", "512 KiB"), ("s2n-quic", "375 kB")] {
        let load = |keys: &[String]| Scenario::load("wlan-11n-150", keys).unwrap();
        let [policy, updates] = [format!("tcp.ack-policy={name}"), format!("tcp.window-updates={bytes}")];
        let applied = find("", name).unwrap().applied_to(&load(&[])).tcp;
        assert_eq!(applied, load(&[policy, updates]).tcp, "{name}");
        // A scenario may have another window.
        let other = load(&["tcp.window-updates=8 MiB".to_owned()]);
        assert_eq!(
            find("", name).unwrap().applied_to(&other).tcp,
            Config { ack_policy: applied.ack_policy, ..other.tcp }
        );
    }
}

/// Each key of an ACK policy's options, a value that is not its default, and the schemes that read it.
const OPTIONS: [(&str, &[&str]); 6] = [
    ("tcp.ackfreq-packets=50", &["quic-ackfreq"]),
    ("tcp.ackfreq-delay=7 ms", &["quic-ackfreq"]),
    ("tcp.ackfreq-reordering=9", &["quic-ackfreq"]),
    ("tcp.gro-flush=1 ms", &["stock", "tcp-linux"]),
    ("tcp.ack-delay=7 ms", &["tcp-l1", "tcp-l2", "tcp-l4", "tcp-l8", "tcp-l16"]),
    ("tcp.quick-acks=3", &["tcp-l1", "tcp-l2", "tcp-l4", "tcp-l8", "tcp-l16"]),
];

#[test]
fn a_scheme_that_chooses_a_policy_has_the_options_of_the_scenario() {
    let usual = Scenario::load("wlan-11n-150", &[]).unwrap();
    let policies = ALL.iter().filter(|scheme| {
        let name = scheme.name;
        name == "stock" || name.starts_with("tcp-") || name.starts_with("quic-") || name == "tack-lite"
    });
    for scheme in policies {
        for (set, readers) in OPTIONS {
            let scenario = Scenario::load("wlan-11n-150", &[set.to_owned()]).unwrap();
            let is_read = scheme.applied_to(&scenario).tcp != scheme.applied_to(&usual).tcp;
            assert_eq!(is_read, readers.contains(&scheme.name), "{}: {set}", scheme.name);
        }
    }
}

#[test]
fn schemes_of_controllers_change_the_controller_alone() {
    type Usual = fn(&Scenario) -> Algorithm;
    // CUBIC uses the slow start of the scenario, whose controller may be another one.
    let controllers: [(&str, Usual); 4] = [
        ("cubic", |scenario| Algorithm::Cubic(scenario.cubic)),
        ("newreno", |_| Algorithm::NewReno),
        ("bbr", |_| Algorithm::BBR),
        ("bbr3", |_| Algorithm::Bbr3),
    ];
    for (name, usual) in controllers {
        let assignments =
            ["tcp.slow-start=standard", "tcp.bbr-policer=off", "tcp.ack-every=4", "traffic.transport=udp"];
        let mut assignments = assignments.map(str::to_owned).to_vec();
        // Vegas has no options that could interfere.
        for given in ["vegas", name] {
            assignments.push(format!("tcp.congestion={given}"));
            let scenario = Scenario::load("lte-slow-uplink", &assignments).unwrap();
            let changed = find("", name).unwrap().applied_to(&scenario);
            let mut expected = scenario.tcp;
            if given != name {
                expected.congestion.algorithm = usual(&scenario);
            }
            assert_eq!(changed.tcp, expected, "{name} {given}");
            assert_eq!(changed.traffic.transport, Transport::Tcp);
        }
    }
}

#[test]
fn schemes_of_tack_change_tack_alone() {
    let assignments = ["tack.beta=8", "tack.lists=poor", "hack.variant=timer"].map(str::to_owned);
    let scenario = Scenario::load("wlan-11n-150", &assignments).unwrap();
    for scheme in ALL.iter().filter(|scheme| scheme.name.starts_with("tack") && scheme.name != "tack-lite") {
        let changed = scheme.applied_to(&scenario);
        assert_eq!((changed.traffic.transport, changed.tcp), (Transport::Tack, scenario.tcp));
        assert_eq!(
            (changed.tack.beta, changed.tack.config.lists),
            (8, Lists::Poor),
            "as the scenario has it"
        );
        assert_eq!(changed.hack.variant.is_some(), scheme.name == "tack-hack");
    }
    let changed = |name: &str| find("", name).unwrap().applied_to(&scenario).tack;
    assert_eq!(changed("tack"), scenario.tack);
    assert_eq!(changed("tack-hack"), scenario.tack);
    assert_eq!((changed("tack-l1").every, changed("tack-l1").rule), (Some(1), AckRule::Paper));
    assert_eq!(changed("tack-paper").rule, AckRule::Paper);
    assert_eq!(changed("tack-cubic").config.congestion.algorithm, Algorithm::CUBIC);
}

#[test]
fn baselines_of_other_transports_are_compared_only_when_asked_for() {
    let names = |names: &[&str]| -> Vec<_> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        select("", &names).unwrap().iter().map(|scheme| scheme.name).collect()
    };
    assert!(!names(&[]).contains(&"chrome"));
    assert_eq!(names(&["chrome", "stock"]), ["chrome", "stock"]);
    assert_eq!(names(&["all"]).len(), ALL.len());
}

#[test]
fn filters_stand_where_acks_wait() {
    let applied = |scenario: &str, scheme: &str| {
        let scenario = Scenario::load(scenario, &[]).unwrap();
        find("", scheme).unwrap().applied_to(&scenario).setup(1, 1).unwrap()
    };
    let wired = applied("lte-slow-uplink", "cake-ack-filter");
    assert_eq!(wired.wired[0].backward.ack_filter, AckFilter::Cake);
    let wlan = applied("wlan-11n-150", "driver-replace");
    let config = &wlan.bss[0].config;
    assert_eq!((config.ap_ack_filter, config.station_ack_filter), (AckFilter::Off, AckFilter::Replace));
    assert_eq!(wlan.wired[0].backward.ack_filter, AckFilter::Off);
    let hold = applied("wlan-11n-150", "driver-hold").bss[0].clients[0].driver;
    assert_eq!(hold, ClientDriver::AckHold(HoldLaw::Fixed(AckHoldConfig::USUAL)));
    let scenario = Scenario::load("wlan-11n-150", &["wifi.ack-filter=cake".to_owned()]).unwrap();
    let hack = find("", "hack-more-data").unwrap().applied_to(&scenario).setup(1, 1).unwrap();
    assert_eq!(hack.bss[0].config.station_ack_filter, AckFilter::Off, "an ACK rides or is filtered");
}

#[test]
fn grants_are_made_where_the_standard_has_them() {
    let granted = |scenario: &str| {
        let scenario = Scenario::load(scenario, &["wifi.reverse-turnaround=50us".to_owned()]).unwrap();
        find("", "rdg").unwrap().applied_to(&scenario).setup(1, 1).unwrap().bss[0].config.reverse_direction
    };
    let turnaround = Duration::from_micros(50);
    let limit = ReverseDirection::USUAL_LIMIT;
    assert_eq!(granted("wlan-11ac-866"), ReverseDirection::Granted { turnaround, limit });
    assert_eq!(granted("wlan-11a-54"), ReverseDirection::Off);
}

#[test]
fn an_ack_rides_or_was_given_by_the_access_point() {
    let scenario = Scenario::load("wlan-11n-150", &["wifi.ap-acks=fastack".to_owned()]).unwrap();
    let applied = |scheme: &str| find("", scheme).unwrap().applied_to(&scenario).setup(1, 1).unwrap();
    let drivers = |setup: &Setup| {
        let set = &setup.bss[0];
        (set.access_point.driver, set.clients[0].driver)
    };
    let fastack = (ApDriver::FastAck(fastack::Config::USUAL), ClientDriver::Stock);
    let stock = applied("stock");
    assert_eq!(drivers(&stock), fastack, "as the scenario has it");
    let hack = applied("hack-more-data");
    let (ApDriver::Hack(access_point), ClientDriver::Hack(client)) = drivers(&hack) else {
        panic!("{:?}", drivers(&hack))
    };
    assert_eq!(access_point, client);
    let plain = Scenario::load("wlan-11n-150", &["hack.variant=timer".to_owned()]).unwrap();
    let fast = find("", "fastack").unwrap().applied_to(&plain).setup(1, 1).unwrap();
    assert_eq!(drivers(&fast), fastack);
}

#[test]
fn the_documentation_has_an_item_for_each_scheme() {
    let page = include_str!("../../../../../docs/use/schemes.md");
    let items = page.lines().filter_map(|line| line.strip_prefix("* `")?.split('`').next());
    let names = ALL.iter().map(|scheme| scheme.name);
    assert_eq!(items.collect::<Vec<_>>(), names.collect::<Vec<_>>());
}

#[test]
fn unknown_schemes_get_a_suggestion() {
    let error = |name: &str| select("--schemes", &[name.to_owned()]).unwrap_err().to_string();
    let slip = error("tcp-14");
    let begins = "--schemes: unknown scheme \"tcp-14\", did you mean \"tcp-l4\"?; allowed: tcp-l4, ";
    assert!(slip.starts_with(begins), "{slip}");
    assert!(slip.ends_with(" more: `tacit scenarios` lists all"), "{slip}");
    assert!(error("hack").contains("did you mean \"hack-more-data\"?"), "{}", error("hack"));
    assert!(error("reno").contains("did you mean \"newreno\"?"), "{}", error("reno"));
    let beside_all = select("--schemes", &["all", "tcp-14"].map(str::to_owned)).unwrap_err().to_string();
    assert_eq!(beside_all, slip);
}

#[test]
fn stacks_of_one_policy_are_its_names() {
    let names = ["noq", "lsquic", "tquic", "stock"].map(str::to_owned);
    let chosen: Vec<_> = select("--schemes", &names).unwrap().iter().map(|scheme| scheme.name).collect();
    assert_eq!(chosen, ["quinn", "quic-ack2", "stock"]);
    assert!(ALSO.iter().all(|(stack, scheme)| Scheme::known(stack).unwrap().name == *scheme));
}
