//! Results of a codec for a capture: bytes, formats, time, and whether all packets were restored.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tacit_rohc::hack::Coding;

use super::RohcError;
use super::hack::HackPair;
use super::packets::{Chunk, LeftOut, Packets, Wanted, flow_bytes};
use super::pair::{Counts, Pair};
use super::strict::StrictPair;
use tacit_scenario::InputError;
use tacit_scenario::table::{TextTable, number};

/// Number of bytes of packets in memory at a time. Derived data takes up to three times as much in addition.
const CHUNK: usize = 16 * 1024 * 1024;
/// Number of passes for a capture that fits in one chunk.
const PASSES: usize = 9;

/// A codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// RFC 6846, each TCP packet separately.
    Strict,
    /// The HACK variant, each ACK coded separately.
    Hack,
    /// The HACK variant, the ACKs of a frame coded as one run.
    HackBatch,
}

impl Codec {
    const ALL: [Self; 3] = [Self::Strict, Self::Hack, Self::HackBatch];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Hack => "hack",
            Self::HackBatch => "hack-batch",
        }
    }

    /// The codec with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        Self::ALL.into_iter().find(|codec| codec.name() == text).ok_or_else(|| {
            InputError::new("--codec", format!("unknown codec {text:?}"))
                .allowed(Self::ALL.map(Self::name).join(", "))
        })
    }

    const fn wanted(self) -> Wanted {
        match self {
            Self::Strict => Wanted::Tcp,
            Self::Hack | Self::HackBatch => Wanted::PureAcks,
        }
    }

    fn pair(self) -> Box<dyn Pair> {
        match self {
            Self::Strict => Box::new(StrictPair::new()),
            Self::Hack => Box::new(HackPair::new(Coding::PerAck)),
            Self::HackBatch => Box::new(HackPair::new(Coding::Batch)),
        }
    }
}

/// Results of a codec for a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Name of the file as given.
    pub name: String,
    /// "strict", "hack" or "hack-batch".
    pub codec: &'static str,
    /// Number of packets compressed.
    pub packets: u64,
    /// Total length of their IP and TCP headers in bytes.
    pub header_bytes: u64,
    /// Total length of the compressed headers in bytes, including framing. Payload, which is not compressed, is not
    /// included.
    pub compressed_bytes: u64,
    /// `compressed_bytes` per packet.
    pub bytes_per_packet: f64,
    /// Strict: number of packets by RFC 6846 format. HACK: number of frames by kind.
    pub formats: BTreeMap<&'static str, u64>,
    /// Number of packets that were not restored.
    pub failures: u64,
    /// Number of packets that were restored incorrectly, or were never sent.
    pub wrong: u64,
    /// Median time of the compressor per packet over the passes, in nanoseconds.
    pub compress_ns_per_packet: f64,
    /// Median time of the decompressor per packet, in nanoseconds.
    pub decompress_ns_per_packet: f64,
    /// Number of unidirectional flows, up to 65,536.
    pub flows: u64,
    /// HACK: number of uncompressed packets, mainly the first of each flow.
    pub native: u64,
    /// HACK: number of these whose CID is used by another live flow.
    pub cid_taken: u64,
    /// HACK: number of frames, each the payload of one link-layer ACK.
    pub frames: Option<u64>,
    /// Number of packets whose wrong TCP checksum was corrected first.
    pub checksums_set_right: u64,
    /// Number of packets with truncated payload, which was filled with zeros.
    pub payloads_filled: u64,
    /// Packets in the capture that the codec does not support.
    pub left_out: LeftOut,
    /// Number of measurements in the medians.
    pub passes: usize,
}

/// Runs the capture at `path` through `codec` and back. `clock` returns the time since any fixed instant.
///
/// # Errors
/// If the capture cannot be read to its end or contains nothing for this codec.
pub fn stats(path: &Path, codec: Codec, clock: &dyn Fn() -> Duration) -> Result<Stats, RohcError> {
    in_chunks(path, codec, clock, CHUNK)
}

/// Runs the capture at `path` through `codec` and back, with at most `limit` bytes of packets in memory, plus the
/// packet that exceeds the limit.
pub(super) fn in_chunks(
    path: &Path,
    codec: Codec,
    clock: &dyn Fn() -> Duration,
    limit: usize,
) -> Result<Stats, RohcError> {
    let mut run = Run { clock, counts: Counts::default(), times: Vec::new() };
    let mut packets = Packets::open(path, codec.wanted())?;
    let mut chunk = Chunk::default();
    let mut flows = BTreeSet::new();
    let mut pair = codec.pair();
    let mut chunks = 0;
    loop {
        let is_more = packets.fill(&mut chunk, limit)?;
        note_flows(&mut flows, &chunk);
        run.once(pair.as_mut(), &chunk);
        chunks += 1;
        if !is_more {
            break;
        }
    }
    if chunks == 1 {
        for _ in 1..PASSES {
            pair.renew();
            run.once(pair.as_mut(), &chunk);
        }
    }
    let Run { counts, times, .. } = run;
    // Every pass adds the same counts.
    let passes = if chunks == 1 { PASSES as u64 } else { 1 };
    let of_one = |count: u64| count / passes;
    let packets_compressed = of_one(counts.packets);
    if packets_compressed == 0 {
        return Err(nothing(path, codec, of_one(counts.native)).into());
    }
    let mut left_out = packets.tally.left_out;
    left_out.options += of_one(counts.options);
    let compressed_bytes = of_one(counts.compressed_bytes);
    Ok(Stats {
        name: path.display().to_string(),
        codec: codec.name(),
        packets: packets_compressed,
        header_bytes: of_one(counts.header_bytes),
        compressed_bytes,
        bytes_per_packet: compressed_bytes as f64 / packets_compressed as f64,
        formats: counts.formats.iter().map(|(&name, &count)| (name, of_one(count))).collect(),
        failures: of_one(counts.failures),
        wrong: counts.wrong.div_ceil(passes),
        compress_ns_per_packet: median(times.iter().map(|time| time.0).collect()),
        decompress_ns_per_packet: median(times.iter().map(|time| time.1).collect()),
        flows: flows.len() as u64,
        native: of_one(counts.native),
        cid_taken: of_one(counts.cid_taken),
        frames: (codec != Codec::Strict).then(|| of_one(counts.frames)),
        checksums_set_right: packets.tally.checksums_set_right,
        payloads_filled: packets.tally.payloads_filled,
        left_out,
        passes: times.len(),
    })
}

struct Run<'a> {
    clock: &'a dyn Fn() -> Duration,
    counts: Counts,
    /// Nanoseconds per packet in each pass: compression and decompression.
    times: Vec<(f64, f64)>,
}

impl Run<'_> {
    fn once(&mut self, pair: &mut dyn Pair, chunk: &Chunk) {
        pair.prepare(chunk);
        let before = (self.clock)();
        pair.compress(chunk);
        let compressed = (self.clock)();
        pair.decompress();
        let back = (self.clock)();
        pair.check(chunk, &mut self.counts);
        if !chunk.places.is_empty() {
            let per_packet = |time: Duration| time.as_secs_f64() * 1e9 / chunk.places.len() as f64;
            let times = (compressed.saturating_sub(before), back.saturating_sub(compressed));
            self.times.push((per_packet(times.0), per_packet(times.1)));
        }
    }
}

/// Maximum number of flows that are counted.
const MOST_FLOWS: usize = 65_536;

fn note_flows(flows: &mut BTreeSet<Vec<u8>>, chunk: &Chunk) {
    let mut last = Cow::Borrowed(&[][..]);
    for place in &chunk.places {
        let flow = flow_bytes(chunk.packet(place));
        if flow != last && flows.len() < MOST_FLOWS && !flows.contains(&*flow) {
            flows.insert(flow.to_vec());
        }
        last = flow;
    }
}

/// The error that there are no results.
fn nothing(path: &Path, codec: Codec, native: u64) -> InputError {
    let (what, allowed) = match codec {
        Codec::Strict => {
            ("no TCP packet that can be compressed", "a capture of TCP over IPv4 without options or IPv6")
        }
        _ if native > 0 => ("no flow with two pure ACKs", "flows whose first pure ACK is followed by others"),
        _ => ("no pure ACK", "a capture that holds pure TCP ACKs"),
    };
    InputError::new(path.display(), what).allowed(allowed)
}

/// The middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

impl Stats {
    /// The results formatted for a terminal.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}: {} codec; flows: {}\n", self.name, self.codec, self.flows);
        for note in self.notes() {
            let _ = writeln!(out, "note: {note}");
        }
        let per_packet = |bytes: u64| bytes as f64 / self.packets as f64;
        let rows = [
            ("packets compressed", self.packets.to_string(), String::new()),
            (
                "headers before",
                self.header_bytes.to_string(),
                format!("{:.2} B each", per_packet(self.header_bytes)),
            ),
            (
                "headers after",
                self.compressed_bytes.to_string(),
                format!("{:.2} B each", self.bytes_per_packet),
            ),
            ("not come back", self.failures.to_string(), String::new()),
            ("wrong", self.wrong.to_string(), String::new()),
            ("compress", number(self.compress_ns_per_packet, 0), "ns each".into()),
            ("decompress", number(self.decompress_ns_per_packet, 0), "ns each".into()),
        ];
        for (label, value, each) in rows {
            let _ = writeln!(out, "{}", format!("  {label:<20} {value:>12}  {each}").trim_end());
        }
        let heads =
            if self.frames.is_some() { ["kind", "frames", "share"] } else { ["format", "packets", "share"] };
        let mut table = TextTable::new(&heads.map(|head| [head]));
        let total: u64 = self.formats.values().sum();
        for (name, count) in &self.formats {
            let share = *count as f64 / total as f64 * 100.0;
            table.push(vec![(*name).to_owned(), count.to_string(), format!("{share:.1} %")]);
        }
        out.push('\n');
        out.push_str(&table.render());
        out
    }

    /// Caveats about the results.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.checksums_set_right > 0 {
            notes.push(format!(
                "{} TCP checksums were wrong (left to an offloading interface when captured) and were set right first",
                self.checksums_set_right
            ));
        }
        if self.payloads_filled > 0 {
            let count = self.payloads_filled;
            notes.push(format!("{count} payloads were captured in part; zeros stand for the rest"));
        }
        if let Some(frames) = self.frames {
            notes.push(format!(
                "frames of at most 21 ACKs, cut where more than 1 ms passes: {}; ACKs that go natively: {}",
                frames, self.native
            ));
        }
        if self.cid_taken > 0 {
            notes.push(format!("{} of the native ACKs share their CID with another flow", self.cid_taken));
        }
        let reasons = self.left_out.reasons();
        if !reasons.is_empty() {
            notes.push(format!("left out: {}", reasons.join(", ")));
        }
        notes
    }
}
