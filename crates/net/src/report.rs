//! The cost of a file.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use crate::body::RepairStats;
use crate::connection::{Connector, Hop};

/// Whether the path had a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shim {
    /// None listens: all was plain HTTP.
    None,
    /// It looks after flows like this one, and refused these.
    Refused,
    /// It looked after them.
    Registered,
}

/// The source of the SHA-256 that a file was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verified {
    /// The user.
    Argument,
    /// The server.
    Server,
}

/// The cost of one file. Bytes are those of this attempt.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The requested URL.
    pub url: String,
    /// Where it was found.
    pub found_at: String,
    /// Where it is now; `None` is standard output.
    pub file: Option<String>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Of them, there before.
    pub resumed_bytes: u64,
    /// The part of an earlier attempt had changed since, and all of the file came again.
    pub was_damaged: bool,
    /// Of the file.
    pub sha256: String,
    /// Source of the digest that it was checked against, if any.
    pub verified: Option<Verified>,
    /// From the first request to the last byte.
    pub duration_s: f64,
    /// Bytes of this attempt in that time.
    pub throughput_bps: f64,
    /// Whether the path had a shim.
    pub shim: Shim,
    /// Why it refused a flow.
    pub shim_refused: Option<String>,
    /// It came over TLS: as it was, without repair.
    pub is_tls: bool,
    /// The work of repair; `None` where nothing could be repaired.
    pub repair: Option<RepairReport>,
    /// Connections made.
    pub connections: u64,
    /// Bytes that the server sent beyond the file's own, relative to those: wasted capacity of the Internet path.
    pub internet_overhead: Option<f64>,
    /// Bytes that came over the hop or went out beyond the file's own, in parts of those.
    pub wireless_overhead: Option<f64>,
}

/// The work of repair.
#[derive(Clone, Debug, Serialize)]
pub struct RepairReport {
    /// Frames that the link is expected to lose, in parts of all; `None` without a shim.
    pub expected_fer: Option<f64>,
    /// Holes in the body.
    pub holes: u64,
    /// Bytes of placeholders, those in answers to repairs included.
    pub placeholder_bytes: u64,
    /// Bytes whose original came late.
    pub late_bytes: u64,
    /// Requests for holes.
    pub requests: u64,
    /// Of them, those that left a hole open.
    pub requests_short: u64,
    /// Bytes of answers that filled holes.
    pub repaired_bytes: u64,
    /// Bytes of answers between holes.
    pub spare_bytes: u64,
    /// Most bytes that waited for a hole.
    pub held_bytes_max: u64,
    /// Longest time in seconds that a hole delayed data behind it.
    pub added_delay_max_s: f64,
    /// All such times.
    pub added_delay_total_s: f64,
    /// Times that the shim saw congestion and let TCP see the holes.
    pub switched_off: u64,
    /// Times that the connection broke and another one went on.
    pub resumed: u64,
    /// Repair failed, and the rest came without placeholders.
    pub fell_back: bool,
}

impl RepairReport {
    /// Of these counts.
    pub fn of(repaired: &RepairStats, hop: &Hop, placeholder_bytes: u64) -> Self {
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

/// Bytes on the wire of one attempt, in parts of those of the file.
pub(crate) struct Overheads {
    pub internet: Option<f64>,
    pub wireless: Option<f64>,
    pub placeholder_bytes: u64,
}

impl Overheads {
    /// Of `connector`, which brought `bytes` of a file, `late` of them twice.
    pub fn of(connector: &Connector, bytes: u64, late: u64) -> Self {
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
    /// A few lines for people.
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

/// Bytes in a time, per second and in bits.
pub(crate) fn bits_per_second(bytes: u64, span: Duration) -> f64 {
    let seconds = span.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
