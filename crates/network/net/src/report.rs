//! What a download cost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use crate::body::RepairStats;
use crate::connection::{Connector, Hop};

/// Whether the path had a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shim {
    /// No shim listens: all requests were plain HTTP.
    None,
    /// A shim listens, but refused these flows.
    Refused,
    /// The shim accepted the flows.
    Registered,
}

/// The source of the expected SHA-256 of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verified {
    /// The user gave it.
    Argument,
    /// The server sent it.
    Server,
}

/// The cost of one file. Byte counts are those of this attempt.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The requested URL.
    pub url: String,
    /// URL of the file after redirects.
    pub found_at: String,
    /// Path of the file; `None` is standard output.
    pub file: Option<String>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Of these, bytes from an earlier attempt.
    pub resumed_bytes: u64,
    /// The part file of an earlier attempt had been modified, and the whole file was downloaded again.
    pub was_damaged: bool,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Source of the expected digest, if the file was checked.
    pub verified: Option<Verified>,
    /// Seconds from the first request to the last byte.
    pub duration_s: f64,
    /// Bytes of this attempt over that time, in bits per second.
    pub throughput_bps: f64,
    /// Whether the path had a shim.
    pub shim: Shim,
    /// Why the shim refused a flow.
    pub shim_refused: Option<String>,
    /// The file came over TLS, without repair.
    pub is_tls: bool,
    /// Statistics of repair; `None` if repair was not possible.
    pub repair: Option<RepairReport>,
    /// Connections opened.
    pub connections: u64,
    /// Bytes that the server sent in addition to the file, relative to the file: wasted capacity of the Internet path.
    pub internet_overhead: Option<f64>,
    /// Bytes sent or received over the hop in addition to the file, relative to the file.
    pub wireless_overhead: Option<f64>,
}

/// Statistics of repair.
#[derive(Clone, Debug, Serialize)]
pub struct RepairReport {
    /// Fraction of frames that the link had lost when the first flow was registered; `None` without a shim.
    pub expected_fer: Option<f64>,
    /// Holes in the body.
    pub holes: u64,
    /// Bytes of placeholders, including those in answers to repair requests.
    pub placeholder_bytes: u64,
    /// Bytes whose original arrived late.
    pub late_bytes: u64,
    /// Repair requests.
    pub requests: u64,
    /// Of these, requests that left a hole open.
    pub requests_short: u64,
    /// Bytes of answers that filled holes.
    pub repaired_bytes: u64,
    /// Bytes of answers between holes, which were not needed.
    pub spare_bytes: u64,
    /// Most bytes that waited behind a hole at one time.
    pub held_bytes_max: u64,
    /// Longest delay of data behind a hole, in seconds.
    pub added_delay_max_s: f64,
    /// Sum of these delays, in seconds.
    pub added_delay_total_s: f64,
    /// How often the shim detected congestion and stopped hiding losses from TCP.
    pub switched_off: u64,
    /// How often the main connection broke and a new one continued.
    pub resumed: u64,
    /// Repair failed, and the rest was received without placeholders.
    pub fell_back: bool,
}

impl RepairReport {
    /// A report of these statistics.
    pub fn new(repaired: &RepairStats, hop: &Hop, placeholder_bytes: u64) -> Self {
        let counters = &repaired.counters;
        Self {
            expected_fer: hop.expected_fer_ppm.map(|ppm| f64::from(ppm) / 1e6),
            holes: counters.holes,
            placeholder_bytes,
            late_bytes: counters.late_bytes,
            requests: counters.requests,
            requests_short: counters.requests_short,
            repaired_bytes: counters.repaired_bytes,
            spare_bytes: counters.spare_bytes,
            held_bytes_max: counters.held_bytes_max,
            added_delay_max_s: counters.blocked_max.as_secs_f64(),
            added_delay_total_s: counters.blocked_total.as_secs_f64(),
            switched_off: repaired.switched_off,
            resumed: repaired.resumed,
            fell_back: repaired.fell_back,
        }
    }
}

/// Bytes on the wire of one attempt, relative to the bytes of the file.
pub(crate) struct Overheads {
    pub internet: Option<f64>,
    pub wireless: Option<f64>,
    pub placeholder_bytes: u64,
}

impl Overheads {
    /// Overheads of `connector`, which delivered `bytes` of a file, `late` of them twice.
    pub fn measure(connector: &Connector, bytes: u64, late: u64) -> Self {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let traffic = &connector.traffic;
        let (received, sent) = (load(&traffic.received), load(&traffic.sent));
        let placeholder_bytes = load(&traffic.placeholders);
        let parts = |beyond: u64| (bytes > 0).then(|| beyond as f64 / bytes as f64);
        let beyond = received.saturating_sub(bytes);
        Self {
            internet: parts(beyond),
            wireless: parts((received + late).saturating_sub(placeholder_bytes + bytes) + sent),
            placeholder_bytes,
        }
    }
}

impl Report {
    /// A few lines of text for people.
    pub fn to_text(&self) -> String {
        let name = self.file.as_deref().unwrap_or("standard output");
        let mut text = format!(
            "{name}: {} bytes in {:.2} s, {:.2} Mb/s\nSHA-256 {}\n",
            self.bytes,
            self.duration_s,
            self.throughput_bps / 1e6,
            self.sha256
        );
        if self.verified == Some(Verified::Server) {
            text.push_str("it is the digest that the server gives\n");
        }
        if self.was_damaged {
            text.push_str("the part of an earlier attempt was damaged; the whole file came again\n");
        }
        if self.resumed_bytes > 0 {
            let bytes = self.resumed_bytes;
            let doubt = match self.verified {
                Some(_) => "",
                None => ", as they had come; the server gives no digest of the whole: --sha256 HEX checks it",
            };
            text.push_str(&format!("{bytes} bytes were there before{doubt}\n"));
        }
        if self.is_tls {
            text.push_str("over TLS, without repair\n");
        }
        if let Some(reason) = &self.shim_refused {
            text.push_str(&format!("plain HTTP: {reason}\n"));
        }
        if let Some(repair) = self.repair.as_ref().filter(|_| self.shim == Shim::Registered) {
            text.push_str(&format!(
                "repaired: {} holes, {} bytes, with {} requests; longest delay {:.0} ms\n",
                repair.holes,
                repair.repaired_bytes,
                repair.requests,
                repair.added_delay_max_s * 1e3
            ));
            let percent =
                |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
            text.push_str(&format!(
                "overhead: {} on the Internet path, {} on the hop\n",
                percent(self.internet_overhead),
                percent(self.wireless_overhead)
            ));
            if repair.fell_back {
                text.push_str("repair failed; the rest came without placeholders\n");
            }
        }
        text
    }
}

/// Throughput in bits per second of `bytes` in `span`.
pub(crate) fn bits_per_second(bytes: u64, span: Duration) -> f64 {
    let seconds = span.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
