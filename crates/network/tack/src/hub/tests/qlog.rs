//! Contents of qlog files, read by a third-party library and compared with the counters of connections.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tacit_packet::Stats;

use super::*;
use crate::qlog::Qlog;

/// Records that QUIC does not define; these and no other fields.
#[derive(Deserialize)]
#[serde(tag = "name", content = "data", deny_unknown_fields)]
#[expect(dead_code, reason = "only whether it can be read is tested")]
enum Own {
    #[serde(rename = "tacit:tack")]
    Tack {
        delay_us: Option<u32>,
        rate_kbps: u32,
        loss_65536ths: u16,
        received_bytes: u32,
        window_bytes: u32,
        ce_packets: u32,
        cumulative: u32,
        acked: Vec<[u32; 2]>,
        unacked: Vec<[u32; 2]>,
        repeated: u8,
        streams: Vec<[u32; 2]>,
        direction: Direction,
        packet_number: u64,
    },
    #[serde(rename = "tacit:iack")]
    Iack {
        cause: String,
        largest: u32,
        second: u32,
        since: u32,
        cumulative: u32,
        window_bytes: u32,
        direction: Direction,
        packet_number: u64,
    },
    #[serde(rename = "tacit:sync")]
    Sync {
        rtt_min_us: u32,
        floor: u32,
        blocks: u8,
        startup: bool,
        ack_interval_ms: u16,
        direction: Direction,
        packet_number: u64,
    },
    #[serde(rename = "tacit:path_updated")]
    Path { old: SocketAddr, new: SocketAddr },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Sent,
    Received,
}

/// True if `ours` and `theirs` are equal; fractions may be rounded to 24 bits.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() / f64::from(1 << 23)
        }
        (one, other) => one == other,
    }
}

/// The records of a file, each checked against the schema.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut texts = text.split('\x1e');
    assert_eq!(texts.next(), Some(""), "a separator comes first");
    let mut records = Vec::new();
    for text in texts {
        assert!(text.ends_with('\n') && text.matches('\n').count() == 1, "{text:?}");
        records.push(serde_json::from_str::<Value>(text).unwrap());
    }
    let header: ::qlog::QlogSeq = serde_json::from_value(records[0].clone()).unwrap();
    assert_eq!((header.qlog_version.as_str(), header.qlog_format.as_str()), ("0.3", "JSON-SEQ"));
    assert!(same(&records[0], &serde_json::to_value(&header).unwrap()), "{}", records[0]);
    let mut before = 0.0;
    for record in &records[1..] {
        let time = record["time"].as_f64().unwrap();
        assert!(time >= before, "{record} is earlier than the record before it");
        before = time;
        if record["name"].as_str().unwrap().starts_with("tacit:") {
            let mut fields = record.clone();
            fields.as_object_mut().unwrap().remove("time");
            serde_json::from_value::<Own>(fields).unwrap_or_else(|error| panic!("{record}: {error}"));
            continue;
        }
        schema::check(record);
        let event: ::qlog::events::Event =
            serde_json::from_value(record.clone()).unwrap_or_else(|error| panic!("{record}: {error}"));
        let again = serde_json::to_value(&event).unwrap();
        assert!(same(record, &again), "{record}\nis read as\n{again}");
    }
    records.remove(0);
    records
}

fn count(records: &[Value], name: &str) -> u64 {
    records.iter().filter(|record| record["name"] == name).count() as u64
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn frames<'a>(records: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    let packets = records.iter().filter(move |record| record["name"] == name);
    packets.flat_map(|packet| packet["data"]["frames"].as_array().unwrap())
}

#[test]
fn a_qlog_is_what_the_schema_says_and_counts_what_the_connection_counts() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::to_directory(directory.path()).unwrap();
    let began = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000);
    let config = Config { qlog: Some(qlog.began(began, server_address())), ..Config::default() };
    let mut net = Net::with(&config);
    let client = net.connect();
    net.run(Duration::from_secs(1));
    net.lose = |order| scattered(order).is_multiple_of(10);
    // No more than the receive window, because the reader starts late.
    let content = payload(250_000);
    let stream = net.client.session(client).unwrap().open().unwrap().unwrap();
    let mut written = 0;
    for _ in 0..1000 {
        let session = net.client.session(client).unwrap();
        written += session.write(stream, &content[written..]).unwrap().unwrap_or(0);
        net.run(Duration::from_millis(20));
    }
    assert_eq!(written, content.len());
    net.client.session(client).unwrap().end_stream(stream).unwrap();
    net.run(Duration::from_secs(5));
    // The client moves to another address.
    net.client_at = address(1, 1001);
    net.run(Duration::from_secs(20));
    let (read, ended) = net.read();
    assert!(read == content, "{} bytes, {ended}", read.len());
    assert!(ended);
    let lost = |hub: &Hub, id| hub.get(id).unwrap().connection_stats().packets_lost;
    let (client_lost, client_stats) = (lost(&net.client, client), net.client.get(client).unwrap().stats());
    net.client.session(client).unwrap().close(7, "all \u{1b}[31mthere");
    net.run(Duration::from_secs(60));
    qlog.flush_without_limit();
    let files = files(directory.path());
    let [of_client, of_server] = ["client", "server"].map(|role| {
        let path = files.iter().find(|path| path.to_str().unwrap().contains(role)).unwrap();
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("1800000000000-"));
        records(path)
    });
    assert_eq!(files.len(), 2);
    let Stats { packets_sent, packets_received, acks_received, data_packets_sent, .. } = client_stats;
    // The packet that closes the connection, and packets received after it.
    assert_eq!(count(&of_client, "transport:packet_sent"), packets_sent + 1);
    let received = count(&of_client, "transport:packet_received");
    assert!((packets_received..packets_received + 3).contains(&received), "{received} of {packets_received}");
    assert_eq!(count(&of_client, "recovery:packet_lost"), client_lost);
    assert!(client_lost > 5);
    let stream = |frame: &&Value| frame["frame_type"] == "stream";
    assert_eq!(frames(&of_client, "transport:packet_sent").filter(stream).count() as u64, data_packets_sent);
    let acks =
        frames(&of_client, "transport:packet_received").filter(|frame| frame["frame_type"] == "ack").count();
    assert_eq!(acks as u64, acks_received);
    assert!(count(&of_client, "recovery:metrics_updated") > 5);
    for records in [&of_client, &of_server] {
        assert_eq!(records[0]["name"], "connectivity:connection_started");
        assert_eq!(count(records, "connectivity:connection_closed"), 1);
        assert_eq!(count(records, "connectivity:connection_state_updated"), 1);
    }
    assert_eq!(count(&of_server, "tacit:path_updated"), 1);
    // MTU discovery finds a larger MTU, and starts again after the client has moved.
    let takes = |records: &[Value]| -> Vec<u64> {
        let updates = records.iter().filter(|record| record["name"] == "connectivity:mtu_updated");
        updates.map(|update| update["data"]["new"].as_u64().unwrap()).collect()
    };
    let found = takes(&of_client);
    assert_eq!(found.first(), Some(&1200), "RFC 9000 section 14.1");
    assert!(found.last().is_some_and(|last| *last > 1400) && found.windows(2).all(|pair| pair[0] != pair[1]));
    // Each byte of the stream has an offset: together the sent frames cover the stream.
    let mut pieces: Vec<_> = frames(&of_client, "transport:packet_sent")
        .filter(stream)
        .map(|frame| (frame["offset"].as_u64().unwrap(), frame["length"].as_u64().unwrap()))
        .collect();
    pieces.sort_unstable();
    let covered = pieces.iter().fold(0, |end, (at, len)| if *at <= end { end.max(at + len) } else { end });
    assert_eq!(covered, 250_000);
    // Acknowledged and lost packet numbers belong to packets that were sent.
    let sent: BTreeSet<u64> = of_client
        .iter()
        .filter(|record| record["name"] == "transport:packet_sent")
        .map(|record| record["data"]["header"]["packet_number"].as_u64().unwrap())
        .collect();
    let newest = *sent.last().unwrap();
    for frame in frames(&of_client, "transport:packet_received") {
        for range in frame["acked_ranges"].as_array().into_iter().flatten() {
            let [first, last] = [0, 1].map(|end| range[end].as_u64().unwrap());
            assert!(first <= last && last <= newest, "{frame}");
        }
    }
    assert_eq!(qlog.dropped(), 0);
}

#[test]
fn datagrams_that_are_not_taken_are_told_with_the_reason_and_not_without_end() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::to_directory(directory.path()).unwrap();
    let began = std::time::SystemTime::UNIX_EPOCH;
    let config = Config { qlog: Some(qlog.began(began, server_address())), ..Config::default() };
    let mut net = Net::with(&config);
    let client = net.connect();
    net.run(Duration::from_secs(15));
    let is_sealed = |(_, to, bytes): &&(SocketAddr, SocketAddr, Vec<u8>)| {
        *to == server_address() && bytes[0] & kind::MASK != kind::MASK
    };
    let again = net.seen.iter().find(is_sealed).unwrap().2.clone();
    let mut forged = again.clone();
    // A packet number in the future.
    forged[8] ^= 0x40;
    net.attack(client_address(), again.clone());
    net.attack(attacker_address(), forged.clone());
    let number = net.client.get(client).unwrap().reset_source().unwrap().1;
    assert_eq!(again[1..5], number.to_be_bytes());
    // To the client, from another address than its server's.
    let mut astray = forged.clone();
    astray[1..5].copy_from_slice(&client.to_be_bytes());
    net.client.handle(net.now, attacker_address(), Ecn::NotEct, &mut astray);
    net.run(Duration::from_secs(1));
    for _ in 0..2_000 {
        net.server.handle(net.now, attacker_address(), Ecn::NotEct, &mut forged.clone());
    }
    net.client.session(client).unwrap().close(0, "");
    net.run(Duration::from_secs(60));
    qlog.flush_without_limit();
    let records_of = |role: &str| {
        let files = files(directory.path());
        records(files.iter().find(|path| path.to_str().unwrap().contains(role)).unwrap())
    };
    let dropped = |records: &[Value], trigger: &str| {
        let dropped = records.iter().filter(|record| record["name"] == "transport:packet_dropped");
        dropped.filter(|record| record["data"]["trigger"] == trigger).count()
    };
    let (of_client, of_server) = (records_of("client"), records_of("server"));
    assert_eq!(dropped(&of_client, "rejected"), 1);
    assert_eq!(dropped(&of_server, "general"), 1);
    assert_eq!(dropped(&of_server, "decryption_failure"), 999, "1,000 in all");
}

#[test]
fn a_directory_that_takes_no_files_stops_no_transfer_and_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::to_directory(directory.path()).unwrap();
    let began = std::time::SystemTime::UNIX_EPOCH;
    let config = Config { qlog: Some(qlog.began(began, server_address())), ..Config::default() };
    let mut net = Net::with(&config);
    // The directory is deleted before the first file is created.
    drop(directory);
    net.begin(100_000);
    net.run(Duration::from_secs(20));
    assert!(net.read() == (payload(100_000), true));
    qlog.flush_without_limit();
    assert!(qlog.dropped() > 100, "{}", qlog.dropped());
}

#[test]
fn files_that_are_there_stay_and_connections_that_never_stood_have_none() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::to_directory(directory.path()).unwrap();
    let began = std::time::SystemTime::UNIX_EPOCH;
    let config = Config { qlog: Some(qlog.began(began, server_address())), ..Config::default() };
    let mut net = Net::with(&config);
    net.lose = |_| true;
    net.connect();
    net.run(Duration::from_secs(60));
    qlog.flush_without_limit();
    assert_eq!(files(directory.path()).len(), 0);
    for _ in 0..2 {
        let mut trace = qlog.trace(7, true);
        trace.begin(Instant::ZERO, server_address(), None);
        drop(trace);
    }
    qlog.flush_without_limit();
    let names: Vec<_> =
        files(directory.path()).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["0-00000007-client-1.sqlog", "0-00000007-client.sqlog"]);
    files(directory.path()).iter().for_each(|path| assert_eq!(records(path).len(), 1));
    assert!(Qlog::to_directory(Path::new("/dev/null")).is_err());
}
