//! Real programs through a hop: whole files, many connections, both directions, over good and bad links.

use std::fs;

use super::support::{download, machine, output_text, report, shared_machine, shell, valid_report};

const LOSSY: [&str; 4] =
    ["--set", "wifi.mpdu-error={ down = \"5 %\", up = \"5 %\" }", "--set", "wifi.link-ack-error=\"2 %\""];

/// Fetches a file from nginx with curl, and checks that it is unchanged. Returns the hop's report.
fn fetch(address: &str, options: &[&str]) -> Option<serde_json::Value> {
    let _machine = shared_machine(&["nginx", "curl"])?;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    // No two packets of the file are equal.
    let content: Vec<u8> =
        (0_u32..8_000_000).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(at("file"), &content).unwrap();
    let configuration = format!(
        "daemon off; pid {0}/pid; error_log {0}/errors; events {{}}\nhttp {{ access_log off; server {{ \
         listen 80; listen [::]:80; root {0}; }} }}\n",
        directory.path().display()
    );
    fs::write(at("nginx.conf"), configuration).unwrap();
    // nginx's workers run as another user.
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (url, got, conf) = (format!("http://{address}/file"), at("got"), at("nginx.conf"));
    let mut words = vec!["--json"];
    words.extend(options);
    words.extend(["--", "curl", "-sS", "-g", "--max-time", "60", "-o", &got, &url]);
    words.extend(["--server", "--", "nginx", "-c", &conf]);
    let output = shell(&words).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    assert!(fs::read(&got).unwrap() == content, "the file is another one");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn a_file_arrives_whole() {
    fetch("198.18.0.1", &["--scheme", "stock"]);
}

#[test]
fn a_file_arrives_whole_with_hack_over_a_lossy_link() {
    fetch("198.18.0.1", &[&["--scheme", "hack-more-data"], &LOSSY[..]].concat());
}

#[test]
fn a_file_arrives_whole_with_batches_over_a_lossy_link_and_ipv6() {
    fetch("[2001:2::1]", &[&["--scheme", "hack-batch"], &LOSSY[..]].concat());
}

#[test]
fn a_file_arrives_whole_with_opportunistic_hack_over_802_11a() {
    fetch("198.18.0.1", &[&["wlan-11a-54", "--scheme", "hack-opportunistic"], &LOSSY[..]].concat());
}

/// The bytes of ACKs alone must suffice, for real and simulated hosts: the hop does not remember the originals.
#[test]
fn a_file_arrives_whole_with_nobody_to_compare_acks() {
    let options = ["--no-oracle", "--scheme", "hack-more-data", "--background", "2", "--acks", "2"];
    let Some(report) = fetch("198.18.0.1", &[&options, &LOSSY[..]].concat()) else { return };
    let stations = report["hack"].as_array().unwrap();
    let counts =
        |name: &str| -> Vec<u64> { stations.iter().map(|station| station[name].as_u64().unwrap()).collect() };
    let [compressed, failed] = [counts("compressed_acks"), counts("failed_frames")];
    assert!(compressed[1..].iter().all(|acks| *acks > 100), "{report}");
    assert_eq!(failed.iter().sum::<u64>(), 0, "{report}");
}

/// The hop's report of iperf3 with these options, and the number of compressed ACKs of each station.
fn iperf(options: &[&str]) -> Option<(serde_json::Value, Vec<u64>)> {
    let _machine = shared_machine(&["iperf3"])?;
    let mut words = vec!["--json", "--scheme", "hack-more-data", "--acks", "2", "--congestion", "cubic"];
    words.extend(["--", "iperf3", "-c", "198.18.0.1", "-t", "2"]);
    words.extend(options);
    words.extend(["--server", "--", "iperf3", "-s", "-1"]);
    let report = report(&words);
    let stations = report["hack"].as_array().unwrap().iter();
    let compressed = stations.map(|station| {
        assert_eq!(station["failed_frames"], 0, "{report}");
        station["compressed_acks"].as_u64().unwrap()
    });
    let compressed = compressed.collect();
    Some((report, compressed))
}

#[test]
fn downloads_have_the_clients_acks_ride() {
    let Some((report, compressed)) = iperf(&["-R"]) else { return };
    assert!(compressed[1] > 1_000 && compressed[0] < 100, "{report}");
}

#[test]
fn uploads_have_the_access_points_acks_ride() {
    let Some((report, compressed)) = iperf(&[]) else { return };
    assert!(compressed[0] > 1_000 && compressed[1] < 100, "{report}");
}

#[test]
fn both_ways_at_once_have_both_ride() {
    let Some((report, compressed)) = iperf(&["--bidir"]) else { return };
    // Some ACKs are piggybacked on data, so fewer are pure.
    assert!(compressed.iter().all(|acks| *acks > 100), "{report}");
}

#[test]
fn many_connections_share_the_hop() {
    let Some((report, compressed)) = iperf(&["-R", "-P", "32"]) else { return };
    assert!(compressed[1] > 500, "{report}");
}

#[test]
fn simulated_competitors_take_their_share() {
    let Some(_machine) = machine(&["iperf3"]) else { return };
    let goodput = |background: &str| {
        let options = [
            "--json",
            "--scheme",
            "stock",
            "--acks",
            "2",
            "--congestion",
            "cubic",
            "--background",
            background,
        ];
        let report = valid_report(&download(&options, "4"))?;
        report["transfer"]["down"]["end"]["sum_received"]["bits_per_second"].as_f64()
    };
    let (Some(alone), Some(beside)) = (goodput("0"), goodput("3")) else { return };
    let share = beside / alone;
    assert!((0.18..0.32).contains(&share), "{share} of the goodput beside three others");
}
