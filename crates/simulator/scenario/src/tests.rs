//! Error messages of wrong scenarios: one snapshot of every kind of mistake.

use std::fmt::Write as _;
use std::fs;

use tacit_link::QueueLimit;
use tacit_link::wifi::{RateControl, StationId};
use tacit_packet::units::BitRate;

use super::*;

/// A mistake: its description, the file, and `--set` assignments.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("unknown key", "base = \"wlan-11n-150\"\n\n[wifi]\nrat = \"65Mbps\"\n", &[]),
    ("unknown section", "base = \"wlan-11n-150\"\n[wfi]\n", &[]),
    ("nothing like it", "base = \"wlan-11n-150\"\n[tcp]\nfrobnicate = 1\n", &[]),
    ("wrong unit", "base = \"wlan-11n-150\"\n[wired]\ndelay = \"1 Mbps\"\n", &[]),
    ("no unit", "base = \"wlan-11n-150\"\n[wired]\ndelay = 1\n", &[]),
    ("wrong type", "base = \"wlan-11n-150\"\n[tcp]\nsack = \"yes\"\n", &[]),
    ("section is a value", "wifi = 3\n", &[]),
    ("out of range", "base = \"wlan-11n-150\"\n[clients]\ncount = 1001\n", &[]),
    ("too long", "[run]\nduration = \"61 min\"\n", &[]),
    ("nothing measured", "[run]\nduration = \"1 s\"\nmeasure-from = \"1 s\"\n", &[]),
    ("zero rate", "[wired]\nrate = \"0Mbps\"\n", &[]),
    ("no such rate", "[wifi]\nstandard = \"802.11a\"\nrate = \"55Mbps\"\n", &[]),
    ("rate not of these streams", "base = \"wlan-11ac-866\"\n[wifi]\nstreams = 4\n", &[]),
    (
        "combination left out",
        "[wifi]\nstandard = \"802.11ac\"\nmcs = 6\nstreams = 3\nchannel-width = \"80 MHz\"\n",
        &[],
    ),
    ("streams of no rate", "[wifi]\nstandard = \"802.11ac\"\nstreams = 2\n", &[]),
    ("no such width", "base = \"wlan-11ac-866\"\n[wifi]\nchannel-width = \"60 MHz\"\n", &[]),
    ("slot time of 802.11n", "base = \"wlan-11n-150\"\n[wifi]\nslot = \"long\"\n", &[]),
    ("preamble of 802.11a", "base = \"wlan-11a-54\"\n[wifi]\npreamble = \"short\"\n", &[]),
    ("802.11b at 5 GHz", "base = \"wlan-11n-150\"\n[wifi]\nb-stations = true\n", &[]),
    ("no such protection", "base = \"wlan-11n-150\"\n[wifi]\nprotection = \"rts\"\n", &[]),
    (
        "threshold of nothing",
        "base = \"wlan-11n-150\"\n[wifi]\nprotection = \"none\"\nrts-threshold = \"500 B\"\n",
        &[],
    ),
    ("no contention window", "base = \"wlan-11n-150\"\n[wifi]\ncw-min = 16\n", &[]),
    (
        "windows the wrong way round",
        "base = \"wlan-11n-150\"\n[wifi]\ncw-min = 15\ncw-max = { vo = 7 }\n",
        &[],
    ),
    (
        "a client's window against that of [wifi]",
        "base = \"wlan-11n-150\"\n[wifi]\ncw-max = 63\n[[client]]\ncw-min = 127\n",
        &[],
    ),
    ("AIFSN of clients in PIFS", "base = \"wlan-11n-150\"\n[wifi]\naifsn = 1\n", &[]),
    ("AIFSN of no category", "base = \"wlan-11n-150\"\n[wifi]\naifsn = { ap = { v0 = 1 } }\n", &[]),
    ("AIFSN under DCF", "base = \"wlan-11a-54\"\n", &["wifi.aifsn=2"]),
    ("categories under DCF", "base = \"wlan-11a-54\"\n", &["wifi.cw-min.vo=3"]),
    (
        "client to client without an access point",
        "base = \"wired-10\"\n[traffic]\nkind = \"station-to-station\"\n",
        &[],
    ),
    ("a receiver of a download", "base = \"wlan-11n-150\"\n[traffic]\npeer = 2\n", &[]),
    ("direct links of a kind", "base = \"wlan-11n-150\"\n", &["wifi.direct-links=some"]),
    ("a direct link with one end", "base = \"wlan-11n-150\"\n[wifi]\ndirect-links = [[1, 2], [3]]\n", &[]),
    ("a direct link to itself", "base = \"wlan-11n-150\"\n[wifi]\ndirect-links = [[2, 2]]\n", &[]),
    (
        "a direct link's signal twice over",
        "base = \"wlan-11n-150\"\n[wifi]\ndirect-snr = \"20 dB\"\ndirect-distance = \"3 m\"\n",
        &[],
    ),
    ("802.11ac at 2.4 GHz", "base = \"wlan-11ac-866\"\n[wifi]\nband = \"2.4 GHz\"\n", &[]),
    ("802.11n at 6 GHz", "base = \"wlan-11n-150\"\n[wifi]\nband = \"6 GHz\"\n", &[]),
    (
        "320 MHz at 5 GHz",
        "base = \"wlan-11be-5765\"\n[wifi]\nband = \"5 GHz\"\nchannel-width = \"320 MHz\"\n",
        &[],
    ),
    (
        "802.11ac at 6 GHz",
        "base = \"wlan-11be-5765\"\n[[client]]\nstandard = \"802.11ac\"\nrate = \"866.7Mbps\"\n",
        &[],
    ),
    (
        "a client newer than its access point",
        "base = \"wlan-11ac-866\"\n[[client]]\nstandard = \"802.11ax\"\n",
        &[],
    ),
    (
        "an older client without a rate",
        "base = \"wlan-11ax-1200\"\n[[client]]\nstandard = \"802.11ac\"\n",
        &[],
    ),
    ("an HE-LTF of 802.11ac", "base = \"wlan-11ac-866\"\n[wifi]\nltf = \"2x\"\n", &[]),
    (
        "an HE-LTF for another guard interval",
        "base = \"wlan-11ax-1200\"\n[wifi]\nltf = \"1x\"\n",
        &["wifi.guard-interval=1.6 us", "wifi.rate=1134.3 Mbps"],
    ),
    ("the 1x HE-LTF of 802.11be", "base = \"wlan-11be-5765\"\n[wifi]\nltf = \"1x\"\n", &[]),
    ("a packet extension of EHT", "base = \"wlan-11ax-1200\"\n[wifi]\npacket-extension = \"20 us\"\n", &[]),
    ("A-MSDU of another length", "base = \"wlan-11n-150\"\n[wifi]\namsdu = \"4 kB\"\n", &[]),
    ("A-MSDU of 802.11a", "base = \"wlan-11a-54\"\n[wifi]\namsdu = \"3839 B\"\n", &[]),
    (
        "no link-layer ACKs for Minstrel",
        "base = \"wlan-11n-150\"\n[wifi]\nlink-acks = \"none\"\nrate-control = \"minstrel\"\n",
        &[],
    ),
    ("no link-layer ACKs under DCF", "base = \"wlan-11a-54\"\n", &["wifi.link-acks=none"]),
    (
        "a client without link-layer ACKs for FastACK",
        "base = \"wlan-11n-150\"\n[wifi]\nap-acks = \"fastack\"\n[[client]]\nlink-acks = \"uplink-only\"\n",
        &[],
    ),
    (
        "a client whose ACKs ride on nothing",
        "base = \"wlan-11n-150\"\n[hack]\nvariant = \"timer\"\n[[client]]\nlink-acks = \"none\"\nhack = true\n",
        &[],
    ),
    (
        "queues of streams under FastACK",
        "base = \"wlan-11n-150\"\n[wifi]\nap-acks = \"fastack\"\nstream-queues = \"independent\"\n",
        &[],
    ),
    (
        "a driver's placeholders with queues of streams",
        "base = \"wlan-11n-150\"\n[wifi]\nstream-queues = \"independent\"\n[fwp]\nplaceholders = \"driver\"\n",
        &[],
    ),
    ("no window", "base = \"wlan-11n-150\"\n[wifi]\nblock-ack-window = 1\n", &[]),
    ("too many clients", "base = \"wlan-11n-150\"\n[[client]]\ncount = 600\n[[client]]\ncount = 401\n", &[]),
    (
        "ACKs that ride on nothing",
        "base = \"wlan-11n-150\"\n[wifi]\nlink-acks = \"none\"\n[hack]\nvariant = \"timer\"\n",
        &[],
    ),
    ("access categories of 802.11a", "base = \"wlan-11a-54\"\n[wifi]\naccess-categories = \"all\"\n", &[]),
    ("ACK rate of 802.11b", "[wifi]\nstandard = \"802.11b\"\nrate = \"11Mbps\"\nack-rate = \"6Mbps\"\n", &[]),
    ("no such standard", "[wifi]\nstandard = \"802.11q\"\nrate = \"54Mbps\"\n", &[]),
    ("rate missing", "[wifi]\nstandard = \"802.11a\"\n", &[]),
    ("share above one", "base = \"wlan-11n-150\"\n[wifi]\nmpdu-error = { down = \"101 %\" }\n", &[]),
    ("signal twice over", "base = \"wlan-11n-150\"\n[wifi]\nsnr = \"20 dB\"\ndistance = \"3 m\"\n", &[]),
    ("no unit of SNR", "base = \"wlan-11n-150\"\n[wifi]\nsnr = 20\n", &[]),
    ("negative distance", "base = \"wlan-11n-150\"\n[[client]]\ndistance = \"-3 m\"\n", &[]),
    ("too near", "base = \"wlan-11n-150\"\n[wifi]\ndistance = \"1 mm\"\n", &[]),
    ("no such path loss", "base = \"wlan-11n-150\"\n[wifi]\npath-loss = \"fris\"\n", &[]),
    (
        "exponent of free space",
        "base = \"wlan-11n-150\"\n[wifi]\npath-loss = \"friis\"\npath-loss-exponent = 2\n",
        &[],
    ),
    ("queue in milliseconds", "base = \"wlan-11n-150\"\n[wifi]\nap-queue = \"5 ms\"\n", &[]),
    (
        "queue without a discipline",
        "base = \"wlan-11n-150\"\n[wifi]\nap-queue = { limit = \"9 packets\" }\n",
        &[],
    ),
    (
        "a target for drop-tail",
        "base = \"wlan-11n-150\"\n[wifi]\nap-queue = { discipline = \"drop-tail\", target = \"5 ms\" }\n",
        &[],
    ),
    ("no such category", "base = \"wlan-11n-150\"\n[traffic]\naccess-category = \"voice\"\n", &[]),
    ("a category without EDCA", "base = \"wlan-11a-54\"\n[traffic]\naccess-category = \"vo\"\n", &[]),
    ("half a channel", "base = \"wlan-11n-150\"\n[wifi]\nlink-ack-error = { good = \"1 %\" }\n", &[]),
    ("hidden from itself", "base = \"wlan-11n-150\"\n[[client]]\nhidden-from = [1]\n", &[]),
    ("no place", "base = \"wlan-11n-150\"\n[[client]]\nposition = [\"3 m\"]\n", &[]),
    ("packet too large for Wi-Fi", "base = \"wlan-11n-150\"\n[tcp]\nmtu = \"9000 B\"\n", &[]),
    ("too small for IPv6", "[tcp]\nip = \"v6\"\nmtu = \"1000 B\"\n", &[]),
    ("client without Wi-Fi", "[[client]]\nrate = \"54Mbps\"\n", &[]),
    ("reordering without a distance", "[wired]\nreorder = \"1 %\"\n", &[]),
    ("reordering by nothing", "[wired]\nreorder = { chance = \"1 %\" }\n", &[]),
    ("no such jitter", "[wired]\njitter = { spread = \"1 ms\", distribution = \"normale\" }\n", &[]),
    ("jitter of no time", "[wired]\njitter = 3\n", &[]),
    ("rates in no order", "[wired]\nrate-script = [[\"2 s\", \"1Mbps\"], [\"1 s\", \"2Mbps\"]]\n", &[]),
    ("rates that end", "[wired]\nrate-script = [[\"2 s\", \"off\"]]\n", &[]),
    ("a rate without a time", "[wired]\nrate-script = [\"2Mbps\"]\n", &[]),
    ("a key of the other direction", "[wired.down]\nup = { rate = \"1Mbps\" }\n", &[]),
    ("a trace that is missing", "[cellular]\ndown-trace = \"lte-synthetic.down\"\n", &[]),
    ("a trace that is not there", "[cellular]\ndown-trace = \"nowhere.down\"\n", &[]),
    (
        "a rate of a cellular link",
        "[cellular]\ndown-trace = \"lte-synthetic.down\"\nup-trace = \"lte-synthetic.up\"\nrate = \"1Mbps\"\n",
        &[],
    ),
    ("a hop of no kind", "[[hop]]\nrate = \"1Mbps\"\n", &[]),
    ("a hop of another kind", "[[hop]]\nkind = \"wire\"\n", &[]),
    ("a Wi-Fi hop without Wi-Fi", "[[hop]]\nkind = \"wifi\"\n", &[]),
    ("Wi-Fi twice", "base = \"wlan-11n-150\"\n[[hop]]\nkind = \"wifi\"\n[[hop]]\nkind = \"wifi\"\n", &[]),
    (
        "ACKs that ride and are filtered",
        "base = \"wlan-11n-150\"\n[wifi]\nack-filter = \"cake\"\n[hack]\nvariant = \"timer\"\n",
        &[],
    ),
    (
        "grants where no frame has room for them",
        "base = \"wlan-11a-54\"\n[wifi]\nreverse-direction = \"granted\"\n",
        &[],
    ),
    (
        "ACKs that ride and that the access point gives",
        "base = \"wlan-11n-150\"\n[wifi]\nap-acks = \"fastack\"\n[hack]\nvariant = \"timer\"\n",
        &[],
    ),
    ("an access point that acknowledges slowly", "base = \"wlan-11n-150\"\n", &["wifi.ap-acks=slowack"]),
    ("bursts under DCF", "base = \"wlan-11a-54\"\n[wifi]\ntxop-bursts = \"all\"\n", &[]),
    ("one of several links", "base = \"wlan-11be-mlo-5-6\"\n[[wifi.link]]\nmcs = 9\n", &[]),
    ("several links before 802.11be", "base = \"wlan-11ax-1200\"\n[[wifi.link]]\n[[wifi.link]]\n", &[]),
    ("what several links have in common, of one", "base = \"wlan-11be-5765\"\n[wifi.multi-link]\n", &[]),
    ("OFDMA over several links", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.ofdma=mu-bar"]),
    ("a key that no link has", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.link[1].ap-queue=5 packets"]),
    ("a link that is not there", "base = \"wlan-11be-mlo-5-6\"\n", &["client=[{ links = [3] }]"]),
    ("links of a client where there is one", "base = \"wlan-11be-5765\"\n[[client]]\nlinks = [1]\n", &[]),
    ("ACKs on link 0", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.acks=0"]),
    ("ACKs on a link that is not there", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.acks=3"]),
    ("an unknown mode of links", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.mode=emlmr"]),
    ("a padding without a code", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.padding=16 us"]),
    ("a transition without a code", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.transition=100 us"]),
    ("a late return", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.radio-return=1 ms"]),
    ("a mode with one link", "base = \"wlan-11be-5765\"\n[[client]]\nmode = \"emlsr\"\n", &[]),
    ("ACKs on links that nobody knows", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.acks=busiest"]),
    (
        "a category on a link that is not there",
        "base = \"wlan-11be-mlo-5-6\"\n",
        &["wifi.multi-link.map={ vo = [3] }"],
    ),
    ("a map to no direction", "base = \"wlan-11be-mlo-5-6\"\n", &["wifi.multi-link.map={ left = [1] }"]),
    (
        "hidden stations on several links",
        "base = \"wlan-11be-mlo-5-6\"\n[[client]]\n[[client]]\nhidden-from = [1]\n",
        &[],
    ),
    (
        "a client's own rate on several links",
        "base = \"wlan-11be-mlo-5-6\"\n[[client]]\nmcs = 3\nchannel-width = \"80 MHz\"\n",
        &[],
    ),
    ("a driver's filter on a wire", "[wired]\nack-filter = \"driver-hold\"\n", &[]),
    ("missing base", "base = \"wlan-11n-15\"\n", &[]),
    ("a name that is none", "name = \"\"\n", &[]),
    ("a name that a terminal obeys", "name = \"a\\u001b[2J\"\n", &[]),
    ("a name that is a directory", "name = \"..\"\n", &[]),
    ("a description of two lines", "description = \"one\\ntwo\"\n", &[]),
    ("base of the wrong type", "base = 3\n", &[]),
    ("pages over UDP", "[traffic]\napplication = \"request-response\"\ntransport = \"udp\"\n", &[]),
    ("on and off over UDP without a rate", "[[flow]]\napplication = \"on-off\"\ntransport = \"udp\"\n", &[]),
    ("a video of a size", "[[flow]]\napplication = \"streaming\"\nsize = \"1 MB\"\n", &[]),
    ("no such application", "[traffic]\napplication = \"stream\"\n", &[]),
    ("a page without objects", "[traffic]\nobjects = []\n", &[]),
    ("client zero", "[[flow]]\nclient = 0\n", &[]),
    ("frames of nothing", "[traffic]\napplication = \"streaming\"\nrate = \"100bps\"\n", &[]),
    ("a flow that is no table", "flow = 3\n", &[]),
    ("not TOML", "[run\nduration = \"1 s\"\n", &[]),
    ("the same key twice", "[run]\nduration = \"1 s\"\nduration = \"2 s\"\n", &[]),
    ("number too large", "[clients]\ncount = 99999999999999999999\n", &[]),
    (
        "a limit of growth without growth",
        "base = \"wlan-11n-150\"\n[tcp]\nreceive-buffer = \"64 KiB\"\nreceive-buffer-max = \"1 MiB\"\n",
        &[],
    ),
    ("a buffer that shrinks", "base = \"wlan-11n-150\"\n[tack]\nreceive-buffer-max = \"4 KiB\"\n", &[]),
    ("TACK once a round trip", "base = \"wlan-11n-150\"\n[tack]\nbeta = 1\n", &[]),
    ("--set of an unknown key", "base = \"wlan-11n-150\"\n", &["tcp.ack-evry=4"]),
    ("--set without a value", "base = \"wlan-11n-150\"\n", &["tcp.ack-every"]),
    ("pacing that is neither", "base = \"wlan-11n-150\"\n", &["tcp.pacing=fast"]),
    ("a policy that does not exist", "base = \"wlan-11n-150\"\n", &["tcp.ack-policy=quic-ack3"]),
    ("--set of the wrong type", "base = \"wlan-11n-150\"\n", &["tcp.ack-every=many"]),
    ("--set through a value", "base = \"wlan-11n-150\"\n", &["wifi.rate.fast=true"]),
    ("OFDMA before 802.11ax", "base = \"wlan-11ac-866\"\n[wifi]\nofdma = \"mu-bar\"\n", &[]),
    ("OFDMA of 802.11be", "base = \"wlan-11be-5765\"\n[wifi]\nofdma = \"mu-bar\"\n", &[]),
    (
        "Minstrel in random-access units",
        "base = \"wlan-11ax-1200\"\n",
        &[
            "wifi.ofdma=mu-bar",
            "wifi.triggers=random",
            "wifi.random-access-units=4",
            "wifi.rate-control=minstrel",
        ],
    ),
    ("one user", "base = \"wlan-11ax-1200\"\n", &["wifi.ofdma-users=1"]),
    (
        "units that no trigger offers",
        "base = \"wlan-11ax-1200\"\n",
        &["wifi.ofdma=mu-bar", "wifi.random-access-units=2"],
    ),
    (
        "triggers that offer none",
        "base = \"wlan-11ax-1200\"\n",
        &["wifi.ofdma=mu-bar", "wifi.triggers=random"],
    ),
    ("no such padding", "base = \"wlan-11ax-1200\"\n", &["wifi.trigger-padding=4 us"]),
    ("no such trigger", "base = \"wlan-11ax-1200\"\n", &["wifi.triggers=sometimes"]),
    ("triggers without units", "base = \"wlan-11ax-1200\"\n", &["wifi.triggers=always"]),
    ("no such room", "base = \"wlan-11ax-1200\"\n", &["hack.mu-room=much"]),
];

#[test]
fn units_go_beside_hidden_clients_at_any_rate() {
    let text = "base = \"wlan-11ax-1200\"\n[wifi]\nofdma = \"mu-bar\"\ntriggers = \"always\"\nsnr = \"30 dB\"\n\
                [[client]]\nhidden-from = [2]\n[[client]]\n";
    for rates in ["fixed", "ideal", "minstrel"] {
        let scenario = Scenario::parse("my.toml", text, &[format!("wifi.rate-control={rates}")]).unwrap();
        scenario.check(2).unwrap();
        let set = &scenario.setup(2, 1).unwrap().bss[0];
        assert_eq!(set.config.hidden, [(StationId(1), StationId(2))]);
        assert!(set.config.ofdma.is_some(), "{rates}");
        assert!(tacit_sim::run(&scenario.setup(2, 1).unwrap()).is_ok(), "{rates}");
    }
}

#[test]
fn clients_in_units_find_their_rates() {
    let text = "base = \"wlan-11ax-1200\"\n[wifi]\nofdma = \"mu-bar\"\nrate-control = \"minstrel\"\nsnr = \"30 dB\"\n";
    for (triggers, mu_edca) in [("off", "off"), ("always", "off"), ("always", "openwrt"), ("nist", "silent")]
    {
        let set = [format!("wifi.triggers={triggers}"), format!("wifi.mu-edca={mu_edca}")];
        let scenario = Scenario::parse("my.toml", text, &set).unwrap();
        let set = &scenario.setup(2, 1).unwrap().bss[0];
        assert_eq!(set.config.rate_control, RateControl::Minstrel);
        assert!(set.config.ofdma.is_some());
    }
}

#[test]
fn every_mistake_is_explained_in_one_line() {
    let mut errors = String::new();
    for (mistake, text, assignments) in MISTAKES {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        let error = Scenario::parse("my.toml", text, &assignments).expect_err(mistake).to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        writeln!(errors, "{mistake}\n    {error}").unwrap();
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn every_bundled_scenario_loads_and_builds() {
    for name in library::names() {
        let scenario = Scenario::load(name, &[]).unwrap();
        assert!(!scenario.description.is_empty(), "{name}");
        for clients in &scenario.compare.clients {
            scenario.setup(*clients, 1).unwrap();
        }
    }
}

#[test]
fn the_recorded_text_gives_the_same_scenario() {
    for name in library::names() {
        let scenario = Scenario::load(name, &["clients.count=3".to_owned()]).unwrap();
        let again = Scenario::parse(&format!("{name}.toml"), &scenario.text, &[]).unwrap();
        assert_eq!(Scenario { invocation: scenario.invocation.clone(), ..again }, scenario);
    }
}

#[test]
fn bases_are_found_beside_the_file_and_do_not_go_in_circles() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("common.toml", "base = \"wlan-11a-54\"\n[clients]\ncount = 7\n");
    write("mine.toml", "base = \"common.toml\"\n[wifi]\nrate = \"24Mbps\"\n");
    write("circle.toml", "base = \"circle.toml\"\n");
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let scenario = Scenario::load(&path("mine.toml"), &[]).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.clients), ("mine", 7));
    assert_eq!(scenario.wifi.unwrap().mode.rate(), BitRate::from_mbps(24));
    let error = Scenario::load(&path("circle.toml"), &[]).unwrap_err().to_string();
    assert!(error.contains("more than 16 bases deep"), "{error}");
}

#[test]
fn more_client_tables_than_the_base_has_clients_are_all_meant() {
    let clients = |text: &str, assignments: &[&str]| {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        Scenario::parse("t.toml", text, &assignments).unwrap().clients
    };
    // wlan-11n-150 sets one client, wlan-11a-54 sets none, and wlan-video sets two.
    let three = "[[client]]\n[[client]]\n[[client]]\n";
    assert_eq!(clients(&format!("base = \"wlan-11n-150\"\n{three}"), &[]), 3);
    assert_eq!(clients(&format!("base = \"wlan-11a-54\"\n{three}"), &[]), 3);
    assert_eq!(clients("base = \"wlan-11n-150\"\n", &[]), 1);
    // `clients.count` takes precedence over the number of `[[client]]` tables; excess tables are ignored.
    assert_eq!(clients(&format!("base = \"wlan-11n-150\"\n{three}[clients]\ncount = 2\n"), &[]), 2);
    assert_eq!(clients(&format!("base = \"wlan-11n-150\"\n{three}"), &["clients.count=1"]), 1);
    // If there are fewer tables than clients, they apply to the first clients.
    assert_eq!(clients("base = \"wlan-video\"\n[[client]]\n", &[]), 2);
}

#[test]
fn files_that_are_no_text_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    fs::write(&path, b"a = 1\n\xff\n").unwrap();
    let error = Scenario::load(path.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(error.contains("x.toml:2: not TOML: not UTF-8"), "{error}");
    fs::write(&path, vec![b'#'; load::MAX_FILE as usize + 1]).unwrap();
    assert!(Scenario::load(path.to_str().unwrap(), &[]).is_err());
}

#[test]
fn a_tcp_profile_gives_way_to_keys() {
    use tacit_packet::units::Bytes;
    use tacit_tcp::{Config, LossDetection, Profile, ReceiveAutotuning, Undo};

    let tcp = |keys: &str| {
        let text = format!("base = \"hack-2014-11n-150\"\n[tcp]\n{keys}\n");
        Scenario::parse("my.toml", &text, &[]).unwrap().tcp
    };
    assert_eq!(tcp(""), Config::default());
    assert_eq!(tcp("profile = \"linux\""), Profile::Linux.config());
    let mixed = tcp("profile = \"linux\"\nloss-detection = \"rfc6675\"\nreceive-buffer = \"1 MiB\"");
    assert_eq!((mixed.loss_detection, mixed.undo), (LossDetection::DupAck, Undo::All));
    assert_eq!((mixed.receive_buffer, mixed.receive_autotuning), (Bytes(1 << 20), ReceiveAutotuning::Off));
    let small = tcp("receive-buffer = \"auto\"\nreceive-buffer-max = \"100 KiB\"");
    assert_eq!(small.receive_buffer, Bytes(100 << 10));
    assert_eq!(small.receive_autotuning, ReceiveAutotuning::UpTo(Bytes(100 << 10)));
}

#[test]
fn a_wire_has_a_delay_or_a_round_trip_time() {
    let delays = |text: &str, assignments: &[&str]| {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        let text = format!("base = \"wlan-11n-150\"\n{text}");
        let setup = Scenario::parse("my.toml", &text, &assignments)?.setup(1, 1)?;
        Ok::<_, ScenarioError>(
            [setup.wired[0].forward.delay, setup.wired[0].backward.delay].map(|d| d.as_micros()),
        )
    };
    // The base has a delay of 1 ms.
    assert_eq!(delays("[wired]\nrtt = \"40 ms\"\n", &[]).unwrap(), [20_000; 2]);
    assert_eq!(delays("", &["wired.rtt=40ms"]).unwrap(), [20_000; 2]);
    assert_eq!(delays("[wired]\nrtt = \"40 ms\"\n", &["wired.delay=3ms"]).unwrap(), [3_000; 2]);
    assert_eq!(delays("[wired]\nrtt = \"40 ms\"\n", &["wired.up.delay=3ms"]).unwrap(), [1_000, 3_000]);
    for (text, assignments) in [
        ("[wired]\nrtt = \"40 ms\"\ndelay = \"20 ms\"\n", &[][..]),
        ("[wired]\nrtt = \"40 ms\"\nup = { delay = \"20 ms\" }\n", &[]),
        ("", &["wired.rtt=40ms", "wired.delay=20ms"]),
    ] {
        let error = delays(text, assignments).unwrap_err().to_string();
        assert!(error.contains("given beside delay") && error.contains("allowed: rtt or delay"), "{error}");
    }
}

#[test]
fn queues_have_a_limit_or_a_discipline() {
    use tacit_link::queue::{CoDelConfig, Discipline, FqCoDelConfig, QueueConfig};
    use tacit_packet::units::Duration;

    let queue = |text: &str| {
        let text = format!("base = \"wlan-11n-150\"\n[wifi]\nap-queue = {text}\n");
        Scenario::parse("my.toml", &text, &[]).unwrap().wifi.unwrap().ap_queue
    };
    let limit = QueueLimit { packets: Some(300), bytes: None };
    assert_eq!(queue("\"300 packets\""), limit.into());
    assert_eq!(
        queue("{ discipline = \"codel\", limit = \"300 packets\", ecn = false }"),
        QueueConfig {
            limit,
            discipline: Discipline::CoDel(CoDelConfig { ecn: false, ..CoDelConfig::INTERNET })
        }
    );
    let FqCoDelConfig { codel, quantum, flows } = FqCoDelConfig::MAC80211;
    assert_eq!(
        queue("{ discipline = \"fq-codel\", target = \"7 ms\" }").discipline,
        Discipline::FqCoDel(FqCoDelConfig {
            codel: CoDelConfig { target: Duration::from_millis(7), ..codel },
            quantum,
            flows
        })
    );
}

#[test]
fn each_direction_of_a_wire_has_a_queue_of_its_own() {
    use tacit_link::queue::{CoDelConfig, Discipline, FqCoDelConfig, QueueConfig};

    let read = |wired: &str| Scenario::parse("my.toml", &format!("[wired]\n{wired}\n[[client]]\n"), &[]);
    let queues = |wired: &str| {
        let setup = read(wired).unwrap().setup(1, 1).unwrap();
        [setup.wired[0].forward.queue, setup.wired[0].backward.queue]
    };
    let packets = |packets| QueueLimit { packets: Some(packets), bytes: None };
    let queue = |limit, discipline| QueueConfig { limit: packets(limit), discipline };
    let fq = Discipline::FqCoDel(FqCoDelConfig::INTERNET);
    assert_eq!(queues("queue = { discipline = \"fq-codel\" }"), [queue(10_240, fq); 2]);
    let codel = Discipline::CoDel(CoDelConfig::INTERNET);
    assert_eq!(
        queues("queue = \"50 packets\"\ndown = { queue = { discipline = \"codel\" } }"),
        [queue(1_000, codel), queue(50, Discipline::DropTail)]
    );
    assert_eq!(
        queues("drop = \"head\"\nup = { queue = \"50 packets\" }"),
        [queue(1_000, Discipline::DropHead), queue(50, Discipline::DropHead)]
    );
    assert_eq!(
        queues("queue = { discipline = \"codel\" }\nup = { queue = \"50 packets\" }"),
        [queue(1_000, codel), queue(50, Discipline::DropTail)]
    );
    let error = read("queue = { discipline = \"codel\" }\ndrop = \"head\"").unwrap_err().to_string();
    assert!(error.contains("wired.drop"), "{error}");
}

#[test]
fn a_run_that_is_made_shorter_measures_from_its_quarter() {
    let measured = |text: &str, assignments: &[&str]| {
        let text = format!("base = \"wlan-11n-150\"\n{text}");
        let assignments: Vec<_> = assignments.iter().map(|text| (*text).to_owned()).collect();
        Scenario::parse("my.toml", &text, &assignments).map(|scenario| scenario.run.measure_from.as_micros())
    };
    let base = measured("", &[]).unwrap();
    assert_eq!(measured("", &["run.duration=2 s"]).unwrap(), 500_000);
    assert_eq!(measured("[run]\nduration = \"2 s\"\n", &[]).unwrap(), 500_000);
    assert_eq!(measured("", &["run.duration=2 s", "run.measure-from=1 s"]).unwrap(), 1_000_000);
    assert_eq!(measured("", &["run.duration=5 s"]).unwrap(), base, "there is something to measure");
    let contradiction = measured("", &["run.measure-from=3 s", "run.duration=2 s"]).unwrap_err().to_string();
    assert!(contradiction.contains("leaves nothing to measure"), "{contradiction}");
}

#[test]
fn hidden_stations_follow_from_names_or_positions() {
    let hidden = |clients: &str| {
        let text = format!("base = \"wlan-11n-150\"\n{clients}");
        let setup = Scenario::parse("my.toml", &text, &[]).unwrap().setup(3, 1).unwrap();
        setup.bss[0].config.hidden.iter().map(|(a, b)| (a.0, b.0)).collect::<Vec<_>>()
    };
    assert_eq!(hidden(""), []);
    let named = "[[client]]\nhidden-from = [3]\n[[client]]\n[[client]]\nhidden-from = [2, 1]\n";
    assert_eq!(hidden(named), [(1, 3), (2, 3)]);
    // 16 dBm and exponent 3 from 1 m on: -82 dBm remain after 51.8 m.
    let at = |x: &str| format!("[[client]]\nposition = [\"{x}\", \"0 m\"]\n");
    assert_eq!(hidden(&(at("-25 m") + &at("26 m") + &at("28 m"))), [(1, 3)]);
}

#[test]
fn toml_itself_may_stand_where_a_name_or_a_path_does() {
    let text = "base = \"wired-10\"\nname = \"mine\"\n[wired]\ndelay = \"20 ms\"\n";
    let scenario = Scenario::load(text, &["run.seeds=3".to_owned()]).unwrap();
    let set = ["name=mine", "wired.delay=20 ms", "run.seeds=3"].map(str::to_owned);
    let named = Scenario::load("wired-10", &set).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.run.seeds), ("mine", 3));
    assert_eq!(scenario.hops, named.hops);
    let wrong = Scenario::load(&text.replace("delay", "dely"), &[]).unwrap_err().to_string();
    assert!(wrong.starts_with("text:4: "), "{wrong}");
}
