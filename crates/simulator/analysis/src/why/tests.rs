use tacit_runs::metric;
use tacit_runs::record::Label;

use super::*;

/// The account for `scenario` with three seeds; two of four seconds are measured.
fn why(scenario: &str, clients: u32, schemes: [&str; 2], set: &[&str]) -> Account {
    why_of(Scope::Bottleneck, scenario, clients, schemes, set)
}

fn why_of(scope: Scope, scenario: &str, clients: u32, schemes: [&str; 2], set: &[&str]) -> Account {
    let times = ["run.duration=4s", "run.measure-from=2s"];
    let options = Options {
        scenario: scenario.into(),
        assignments: times.iter().chain(set).map(|&text| text.to_owned()).collect(),
        clients: vec![clients],
        schemes: schemes.map(String::from).to_vec(),
        seeds: Some(3),
        ..Options::default()
    };
    let why = explain_scenario(&options, scope, Control::unattended()).unwrap();
    let [account] = &why.accounts[..] else { panic!("{why:?}") };
    let text = why.to_text(None);
    assert!(text.starts_with(&account.headline()), "{text}");
    for width in [80, 120] {
        let narrow = why.to_text(Some(width));
        assert_eq!(narrow.lines().find(|line| line.chars().count() > width), None, "{narrow}");
    }
    if account.differs {
        let difference = account.winner.goodput_bps - account.other.goodput_bps;
        assert!(account.error_bps.abs() < 1e-6 * difference, "{text}");
        // Each second is attributed to some use.
        for (which, side) in [&account.winner, &account.other].into_iter().enumerate() {
            let ms: f64 = account.parts.iter().map(|part| part.ms_per_mb[which]).sum();
            assert!((ms / 1e3 * side.goodput_bps / 8e6 - 1.0).abs() < 1e-6, "{text}");
        }
        let sizes: Vec<f64> = account.parts.iter().map(|part| part.contribution_bps.abs()).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{text}");
    }
    account.clone()
}

/// A run with only these metrics.
fn record(scheme: &str, seed: u64, named: &[(&str, f64)]) -> RunSummary {
    let mut metrics = vec![None; metric::ALL.len()];
    for (name, value) in named {
        metrics[metric::position(name).unwrap()] = Some(*value);
    }
    let label = Label { scheme: scheme.into(), clients: 1, seed, ..Label::default() };
    RunSummary { label, measured_s: 1.0, metrics, ..RunSummary::default() }
}

#[test]
fn known_account() {
    let ran = |scheme, mbps: f64, data, acks| {
        let shares = [("airtime_data", data), ("airtime_tcp_ack", acks), ("airtime_idle", 0.2)];
        record(scheme, 1, &[&shares[..], &[("goodput_bps", mbps * 1e6)]].concat())
    };
    let records = [ran("stock", 50.0, 0.5, 0.3), ran("hack-batch", 80.0, 0.8, 0.0)];
    let why = explain_runs(&Provenance::default(), &records, &[], Scope::Bottleneck).unwrap();
    let parts = why.accounts[0].parts.iter().map(|part| (part.name, part.contribution_bps.round()));
    // 80 Mb/s times 0.3; 80 times 0.2 minus 50 times 0.2; 80 times 0.5 minus 50 times 0.8.
    let expected =
        [("ACKs on the air", 24e6), ("no station had data to send", 6e6), ("data on the air", 0.0)];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
    assert!(why.to_text(None).contains("no telling whether it is chance"), "{}", why.to_text(None));
}

#[test]
fn a_difference_within_its_interval_is_none() {
    let ran = |scheme, seed, mbps: f64| {
        record(scheme, seed, &[("airtime_data", 1.0), ("airtime_idle", 0.0), ("goodput_bps", mbps * 1e6)])
    };
    let records =
        [ran("stock", 1, 52.0), ran("stock", 2, 58.0), ran("tcp-l8", 1, 62.0), ran("tcp-l8", 2, 50.0)];
    let why = explain_runs(&Provenance::default(), &records, &[], Scope::Bottleneck).unwrap();
    let account = &why.accounts[0];
    assert!(account.gain > 0.0 && !account.differs && account.parts.is_empty(), "{account:?}");
    assert!(why.to_text(None).contains("there is none to explain"), "{}", why.to_text(None));
}

/// Contribution of a part as a fraction of the difference.
fn share(account: &Account, name: &str) -> f64 {
    let part = account.parts.iter().find(|part| part.name == name);
    let difference = account.winner.goodput_bps - account.other.goodput_bps;
    part.map_or(0.0, |part| part.contribution_bps / difference)
}

#[test]
fn hack_wins_by_what_acks_cost_on_the_air() {
    for clients in [1, 20] {
        let account = why("wlan-11n-150", clients, ["hack-batch", "stock"], &["clients.stagger=10ms"]);
        assert_eq!((account.winner.scheme.as_str(), account.resource), ("hack-batch", Resource::Channel));
        let of_acks = [
            "ACKs on the air",
            "winning the channel for ACKs",
            "link-layer ACKs that answer ACKs",
            "ACKs on the air again",
            "collisions",
        ];
        let explained: f64 = of_acks.iter().map(|name| share(&account, name)).sum();
        assert!((0.6..1.3).contains(&explained), "{clients} clients: {explained}: {account:?}");
        assert!(share(&account, "compressed ACKs on link-layer ACKs") < 0.0, "they cost time: {account:?}");
        assert!(share(&account, "data on the air").abs() < 0.3, "data costs as much: {account:?}");
    }
}

/// Its data has no link-layer ACKs, so its aggregates are full, while those of the other nine stations stall.
#[test]
fn a_station_alone_wins_by_full_aggregates() {
    let set = [
        "wifi.mpdu-error={ down = \"10 %\" }",
        "client=[{},{count=9,link-acks=\"normal\"}]",
        "run.duration=14 s",
        "run.measure-from=4 s",
    ];
    let account = why_of(Scope::FirstStation, "fwp-11n-600", 10, ["fwp", "stock"], &set);
    assert_eq!((account.winner.scheme.as_str(), account.resource), ("fwp", Resource::Station));
    assert!(share(&account, "waiting for its turn on the channel") > 0.5, "{account:?}");
    let part = |name: &str| account.parts.iter().find(|part| part.name == name).unwrap();
    let packets = &part("waiting for its turn on the channel").evidence[0];
    assert_eq!(packets.metric, "first_host_packets_per_ppdu");
    assert!(packets.values[0] > 1.3 * packets.values[1], "{account:?}");
    // Both lose one packet in ten.
    for ms in part("packets that did not arrive").ms_per_mb.iter().zip([account.winner, account.other]) {
        let (lost_ms, side) = ms;
        let lost = lost_ms / 1e3 * side.goodput_bps / 8e6 / side.busy;
        assert!((lost - 0.1).abs() < 0.01, "{lost}");
    }
}

#[test]
fn a_wire_has_no_station() {
    let options = Options {
        scenario: "wired-10".into(),
        schemes: vec!["tcp-l8".into(), "stock".into()],
        clients: vec![1],
        seeds: Some(1),
        quick: true,
        ..Options::default()
    };
    let error =
        explain_scenario(&options, Scope::FirstStation, Control::unattended()).unwrap_err().to_string();
    assert!(error.contains("no end at a client of Wi-Fi"), "{error}");
}

#[test]
fn evidence_is_of_metrics_that_exist() {
    for resource in [Resource::Channel, Resource::Link, Resource::Station] {
        for wanted in uses(resource) {
            for name in wanted.evidence {
                assert!(metric::position(name).is_some(), "{}: {name}", wanted.name);
            }
        }
    }
}

#[test]
fn rounds_are_told_where_an_access_point_sends_to_several() {
    let set = ["clients.stagger=10ms", "wifi.ofdma=mu-bar", "wifi.triggers=ack-aware", "wifi.mu-edca=silent"];
    let account = why("wlan-11ax-1200", 4, ["hack-batch", "stock"], &set);
    let rounds = |scheme: &str| {
        let sides = [&account.winner, &account.other];
        sides.into_iter().find(|side| side.scheme == scheme).unwrap().rounds.unwrap()
    };
    let (hack, stock) = (rounds("hack-batch"), rounds("stock"));
    for rounds in [hack, stock] {
        assert!(rounds.shared_ppdu_share > 0.9 && rounds.shared_ppdu_share <= 1.0, "{rounds:?}");
        assert!((3.5..=4.0).contains(&rounds.users_per_ppdu), "{rounds:?}");
        assert!(rounds.unit_fill > 0.9 && rounds.unit_fill <= 1.0, "{rounds:?}");
        assert!(rounds.trigger_time_share > 0.0 && rounds.answer_time_share > 0.0, "{rounds:?}");
    }
    // If ACKs are appended to Block Acks, there is nothing to trigger.
    assert!(stock.triggers_per_s > 10.0 * hack.triggers_per_s, "{stock:?} {hack:?}");
    assert!(stock.empty_answer_share.is_some_and(|empty| empty < 0.2), "{stock:?}");
    assert_eq!((stock.room_fill, stock.room_short_share), (None, None));
    assert!(hack.room_fill.is_some_and(|fill| fill > 0.0 && fill < 1.0), "{hack:?}");
    assert!(hack.room_short_share.is_some_and(|share| share < 0.1), "{hack:?}");
    let why = Why { scenario: "s".into(), description: "d".into(), accounts: vec![account] };
    let text = why.to_text(None);
    assert!(text.contains("PPDUs of stock: ") && text.contains("Room for compressed ACKs"), "{text}");
}

/// All sentences about multi-user PPDUs.
#[test]
fn rounds_in_words() {
    let asked = [
        ("airtime_idle", 0.0),
        ("airtime_data", 1.0),
        ("goodput_bps", 50e6),
        ("shared_ppdu_share", 0.963),
        ("users_per_shared_ppdu", 7.84),
        ("shared_unit_fill", 0.951),
        ("trigger_time_share", 0.0123),
        ("answer_time_share", 0.0347),
        ("triggers_per_s", 171.3),
        ("empty_answer_share", 0.042),
    ];
    let cascade = asked.map(|(name, value)| match name {
        "goodput_bps" => (name, 60e6),
        "triggers_per_s" => (name, 0.0),
        _ => (name, value),
    });
    let room = [("hack_room_fill", 0.41), ("hack_room_short_share", 0.003)];
    let records = [record("stock", 1, &asked), record("hack-batch", 1, &[&cascade[..], &room[..]].concat())];
    let text = explain_runs(&Provenance::default(), &records, &[], Scope::Bottleneck).unwrap().to_text(None);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("PPDUs of ")).collect();
    assert_eq!(
        lines,
        [
            "PPDUs of hack-batch: 96.3 % of the access point's were of several users, 7.8 users each. Data took 95.1 % of their \
             units' time; the rest was padding, or units without a user. Triggers took 1.2 % of the time, and the answers to them \
             3.5 %. Triggers inside PPDUs of data asked for packets: 4.2 % of the answers had none. Room for compressed ACKs in \
             Block Acks: 41.0 % of it was filled, 0.3 % of these Block Acks had too little.",
            "PPDUs of stock: 96.3 % of the access point's were of several users, 7.8 users each. Data took 95.1 % of their \
             units' time; the rest was padding, or units without a user. Triggers took 1.2 % of the time, and the answers to them \
             3.5 %. 171.3 triggers a second asked for packets: 4.2 % of the answers had none.",
        ]
    );
}

#[test]
fn more_stations_lose_more_to_collisions() {
    let account = |clients| why("wlan-11n-150", clients, ["hack-batch", "stock"], &["clients.stagger=10ms"]);
    let saved = |account: &Account| {
        let part = account.parts.iter().find(|part| part.name == "collisions");
        part.map_or(0.0, |part| part.ms_per_mb[1] - part.ms_per_mb[0])
    };
    assert!(saved(&account(20)) > saved(&account(1)));
}

#[test]
fn a_slow_wire_before_the_channel_is_what_limits() {
    let account = why("wlan-11n-150", 1, ["hack-batch", "stock"], &["wired.rate=20Mbps"]);
    assert_eq!(account.resource, Resource::Link);
    assert!(!account.differs || account.gain < 0.02, "{account:?}");
    assert!(account.winner.busy > 0.9 && account.other.busy > 0.9, "{account:?}");
}

#[test]
fn a_mobile_network_is_a_link() {
    let account = why("lte-synthetic", 1, ["tcp-l8", "stock"], &[]);
    assert_eq!(account.resource, Resource::Link);
    // Its uplink is fast enough for the ACKs of both schemes.
    assert!(account.gain < 0.1, "{account:?}");
}

#[test]
fn an_uplink_too_slow_for_acks_leaves_the_downlink_unused() {
    let account = why("lte-slow-uplink", 1, ["tcp-l8", "stock"], &[]);
    assert_eq!((account.winner.scheme.as_str(), account.resource), ("tcp-l8", Resource::Link));
    assert!(account.winner.busy > 0.9 && account.other.busy < 0.6, "{account:?}");
    assert!((share(&account, "link without anything to carry") - 1.0).abs() < 0.01, "{account:?}");
    let why = Why { scenario: "s".into(), description: "d".into(), accounts: vec![account] };
    assert!(why.to_text(None).contains("wait on the way back"), "{}", why.to_text(None));
}

#[test]
fn equal_schemes_have_nothing_to_explain() {
    // Without Wi-Fi there are no link-layer ACKs to append to.
    let account = why("wired-10", 1, ["hack-batch", "stock"], &[]);
    assert!(!account.differs && account.parts.is_empty() && account.gain == 0.0, "{account:?}");
}

#[test]
fn results_that_are_kept_say_what_new_ones_say() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        scenario: "wlan-11n-150".into(),
        assignments: vec!["run.duration=1s".into(), "run.measure-from=500ms".into()],
        clients: vec![1],
        schemes: vec!["hack-batch".into(), "stock".into()],
        seeds: Some(2),
        directory: Some(directory.path().to_owned()),
        ..Options::default()
    };
    compare::compare(&options, Control::unattended()).unwrap();
    let kept = explain_directory(directory.path(), &[], Scope::Bottleneck).unwrap();
    assert_eq!(kept, explain_scenario(&options, Scope::Bottleneck, Control::unattended()).unwrap());
    let error = explain_directory(directory.path(), &["fastack".into(), "stock".into()], Scope::Bottleneck)
        .unwrap_err()
        .to_string();
    assert!(error.contains("two of stock, hack-batch"), "{error}");
    let error =
        explain_directory(directory.path(), &["stock".into()], Scope::Bottleneck).unwrap_err().to_string();
    assert!(error.contains("is not two schemes"), "{error}");
}
