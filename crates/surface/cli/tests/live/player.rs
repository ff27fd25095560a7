//! Video players behind a hop with FWP: how long they stall.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fetch::{lines, run, run_in, served, through_proxy};
use super::support::{machine, skip};

/// The byte at `place` in every file of these tests.
pub fn byte(place: u64) -> u8 {
    (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Seconds of video that a player buffers before it starts, approximately as hls.js and dash.js do.
const BEGINS_WITH_S: f64 = 2.0;

/// Bytes per second of the video: 16 Mb/s.
const RATE: f64 = 2_000_000.0;

/// Simulates a player that reads from a connection.
struct Player {
    rate: f64,
    /// Maximum seconds of video in the buffer.
    buffer_s: f64,
    got: u64,
    began: Option<Instant>,
    stood_still: Duration,
    stalls: u32,
}

impl Player {
    fn got_s(&self) -> f64 {
        self.got as f64 / self.rate
    }

    /// Seconds of video played, assuming that nothing was missing.
    fn played_s(&self) -> f64 {
        self.began.map_or(0.0, |began| began.elapsed().saturating_sub(self.stood_still).as_secs_f64())
    }

    /// Accounts for received bytes, after which `self.got` bytes are available.
    fn take(&mut self, bytes: usize) {
        let dry_s = self.played_s() - self.got_s();
        if dry_s > 0.0 {
            self.stood_still += Duration::from_secs_f64(dry_s);
            self.stalls += 1;
        }
        self.got += bytes as u64;
        if self.got_s() >= BEGINS_WITH_S {
            #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
            self.began.get_or_insert_with(Instant::now);
        }
    }

    /// Waits until there is room in the buffer.
    fn wait(&self) {
        let ahead_s = self.got_s() - self.played_s() - self.buffer_s;
        if ahead_s > 0.0 {
            #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
            std::thread::sleep(Duration::from_secs_f64(ahead_s));
        }
    }
}

/// Plays the file, through the proxy if there is one, and writes the result.
#[test]
#[ignore = "runs inside a hop"]
fn play() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<f64>().unwrap();
    let proxy = std::env::var("http_proxy").ok();
    let address = proxy.as_deref().map_or("198.18.0.1:80", |proxy| proxy.trim_start_matches("http://"));
    let mut stream = TcpStream::connect(address).unwrap();
    // Players request a range that starts at the beginning.
    let request = "GET http://198.18.0.1/file HTTP/1.1\r\nHost: 198.18.0.1\r\nRange: bytes=0-\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut player = Player {
        rate: number("RATE"),
        buffer_s: number("BUFFER"),
        got: 0,
        began: None,
        stood_still: Duration::ZERO,
        stalls: 0,
    };
    let mut buffer = vec![0; 65_536];
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut buffer[..1]).unwrap(), 1);
        head.push(buffer[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 206"), "{head}");
    loop {
        player.wait();
        let len = stream.read(&mut buffer).unwrap();
        if len == 0 {
            break;
        }
        let same = (player.got..).zip(&buffer[..len]).all(|(place, got)| byte(place) == *got);
        assert!(same, "behind byte {}", player.got);
        player.take(len);
    }
    let played = json!({ "bytes": player.got, "stood_still_s": player.stood_still.as_secs_f64(), "stalls": player.stalls });
    std::fs::write("played.json", played.to_string()).unwrap();
}

/// The command line of a player that buffers `buffer_s` seconds of video.
fn player(rate: f64, buffer_s: u32) -> String {
    format!("RATE={rate} BUFFER={buffer_s} $PLAYER > player.log 2>&1")
}

/// The report of a player in `folder` whose video has `bytes` bytes.
fn report_in(folder: &Path, bytes: usize) -> Value {
    let played = std::fs::read(folder.join("played.json")).unwrap();
    let played: Value = serde_json::from_slice(&played).unwrap();
    println!("{played}");
    assert_eq!(played["bytes"], bytes, "{played}");
    played
}

/// The report of a player with `seconds` of video and a buffer of `buffer_s`, with the lines of the proxy.
fn played(seconds: f64, buffer_s: u32, rate: f64) -> (Value, Vec<Value>) {
    let (folder, content) = served((seconds * rate) as usize);
    println!("{buffer_s} s of buffer, {:.0} Mb/s", rate * 8.0 / 1e6);
    run(folder.path(), "10 %", &through_proxy(&player(rate, buffer_s)));
    (report_in(folder.path(), content.len()), lines(folder.path()))
}

/// The paper's players buffer 8 s (live) and 30 s (on demand). The video is longer than either, so that the reader
/// stops at a full buffer and continues later.
#[test]
fn players_through_the_proxy_never_stand_still() {
    let Some(_machine) = machine(&["nginx"]) else { return };
    // Another rate can be set to find the limit.
    let rate = std::env::var("TACIT_PLAYER_RATE").map_or(RATE, |rate| rate.parse().unwrap());
    for (buffer_s, seconds) in [(8, 16.0), (30, 34.0)] {
        let (played, served) = played(seconds, buffer_s, rate);
        assert_eq!(played["stalls"], 0, "{played}");
        assert!(served[0]["repaired"] == true && served[0]["holes"].as_u64().unwrap() > 100, "{served:?}");
    }
}

/// Together with nine stations that use Block Ack, a download at this loss reaches 21 Mb/s with Block Ack and 30 Mb/s
/// with FWP. A video of 24 Mb/s stalls with the former and never with the latter.
#[test]
fn near_the_rate_of_the_hop_repair_is_worth_a_player_that_never_stands_still() {
    let Some(_machine) = machine(&["nginx"]) else { return };
    let rate = 3_000_000.0;
    let stands_still = |scheme: &str, buffer_s, seconds: f64| {
        let (folder, content) = served((seconds * rate) as usize);
        let player = player(rate, buffer_s);
        let script =
            if scheme == "fwp" { format!("PARALLEL=64\n{}", through_proxy(&player)) } else { player };
        let hop = ["fwp-11n-600", "--scheme", scheme, "--background", "9"];
        println!("{scheme}, {buffer_s} s of buffer");
        let report = run_in(&hop, folder.path(), "10 %", &script);
        let played = report_in(folder.path(), content.len());
        let is_valid = report["valid"] == true;
        is_valid
            .then(|| played["stood_still_s"].as_f64().unwrap())
            .ok_or_else(|| report["reasons"].to_string())
    };
    let runs = [("fwp", 8, 20.0), ("fwp", 30, 34.0), ("stock", 30, 34.0)];
    let runs = runs.map(|(scheme, buffer_s, seconds)| stands_still(scheme, buffer_s, seconds));
    let [Ok(live), Ok(on_demand), Ok(stock)] = &runs else {
        return skip(&format!("this machine does not keep up with hops among nine: {runs:?}"));
    };
    assert_eq!((*live, *on_demand), (0.0, 0.0), "with FWP; {stock} s over Block Ack");
    assert!(*stock > 0.5, "{stock} s over Block Ack");
}
