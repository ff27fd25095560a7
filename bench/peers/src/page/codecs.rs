//! The header compression beside librohc: bytes and time per ACK.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::spread::{Spread, ratios};
use super::table::{Table, filled, middle, whole};
use super::tools::{compile, json, stdout_of, tacit};
use super::{Measurement, Name, Part, Plan};

/// Codecs of `tacit rohc stats`.
const CODECS: [&str; 3] = ["strict", "hack", "hack-batch"];
const ENDING: &str = ".acks.pcap";
/// How often librohc repeats each change, in the recorded packets and by default.
const THEIR_REPEAT: &str = "4";
const OUR_REPEAT: &str = "2";

/// Results of `tacit rohc stats` and of the program in bench/rohc with a capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stats {
    packets: u64,
    bytes_per_packet: f64,
    compress_ns_per_packet: f64,
    decompress_ns_per_packet: f64,
    failures: u64,
    wrong: u64,
    /// The library's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// Results of `tacit rohc compare`.
#[derive(Clone, Debug, Deserialize)]
struct Compared {
    packets: u64,
    rohc_bytes: u64,
    other_bytes: u64,
    failures: u64,
    wrong: u64,
}

/// Bytes per packet beside those that librohc once made of the same capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorded {
    librohc: f64,
    /// With changes said as often as librohc does.
    ours_alike: f64,
    ours: f64,
}

/// A capture; runs at the same place of each list ran next to each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    name: String,
    strict: Vec<Stats>,
    hack: Vec<Stats>,
    hack_batch: Vec<Stats>,
    /// Empty where the library is not installed.
    librohc: Vec<Stats>,
    recorded: Option<Recorded>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Codecs {
    /// False where captures of real receivers are not on this machine.
    real: bool,
    rows: Vec<Row>,
}

impl Part for Codecs {
    const NAME: Name = Name::Codecs;
    const HEADING: &'static str = "The codec beside librohc";

    fn measure(plan: &Plan) -> Result<Measurement<Self>> {
        let captures = captures_in(&plan.data().join("captures"));
        let real = !captures.is_empty();
        let captures = if real { captures } else { vec![simulated_capture(plan)?] };
        let driver = driver(plan)?;
        let rows = captures.iter().map(|capture| Row::measure(plan, capture, driver.as_deref()));
        Ok(Measurement::Measured(Self { real, rows: rows.collect::<Result<_>>()? }))
    }

    fn text(&self) -> String {
        let version =
            self.rows.iter().flat_map(|row| &row.librohc).find_map(|stats| stats.version.as_deref());
        let librohc = version.map_or_else(
            || "**librohc is not installed here: its times were not measured.**".to_owned(),
            |version| format!("librohc {version}."),
        );
        let captures = if self.real {
            "Captures are pure ACKs that Linux receivers sent."
        } else {
            "**Captures of real receivers are not on this machine**: this one is of a download that `tacit run` simulated, \
             its data packets included under `strict`."
        };
        let recorded = if self.rows.iter().any(|row| row.recorded.is_some()) {
            "Recorded are packets that librohc 2.3.1 made of the captures once (U-mode, small CIDs, each change said 4 \
             times); our decompressor turns all of them into the captures again."
        } else {
            "**There are no recorded packets of librohc on this machine.**"
        };
        let bytes = format!(
            "Bytes per ACK. {captures} {recorded} `hack` and `hack-batch` are the bytes that TCP/HACK appends to link-layer ACKs, \
             coded ACK by ACK and as runs ([rohc](../use/rohc.md))."
        );
        let times = format!(
            "Nanoseconds per ACK, the median of runs that are medians of nine passes each; `strict` says each change twice. \
             {librohc}"
        );
        format!("{}\n{}\n{}\n{}", filled(&bytes), self.bytes(), filled(&times), self.times())
    }
}

impl Codecs {
    fn bytes(&self) -> String {
        let mut table = Table::new(&[
            "",
            "ACKs",
            "librohc, recorded",
            "tacit, changes 4 times",
            "tacit, twice",
            "`hack`",
            "`hack-batch`",
        ]);
        for row in &self.rows {
            let bytes = |stats: &[Stats]| {
                middle(Spread::from_values(stats.iter().map(|stats| stats.bytes_per_packet)), 2)
            };
            let recorded = |value: fn(&Recorded) -> f64| {
                middle(Spread::from_values(row.recorded.as_ref().map(value)), 2)
            };
            table.push(&[
                row.name.clone(),
                middle(Spread::from_values(row.hack.iter().map(|stats| stats.packets as f64)), 0),
                recorded(|recorded| recorded.librohc),
                recorded(|recorded| recorded.ours_alike),
                bytes(&row.strict),
                bytes(&row.hack),
                bytes(&row.hack_batch),
            ]);
        }
        table.text()
    }

    fn times(&self) -> String {
        let is_installed = self.rows.iter().any(|row| !row.librohc.is_empty());
        let theirs: &[&str] = if is_installed { &["librohc", "librohc over `strict`"] } else { &[] };
        let mut heads = vec![String::new()];
        for codec in ["`strict`", "`hack`", "`hack-batch`"].iter().chain(theirs) {
            heads.extend(["compress", "decompress"].map(|way| format!("{codec}: {way}")));
        }
        let mut table = Table::new(&heads);
        let ways: [fn(&Stats) -> f64; 2] =
            [|stats| stats.compress_ns_per_packet, |stats| stats.decompress_ns_per_packet];
        for row in &self.rows {
            let mut cells = vec![row.name.clone()];
            let times =
                |stats: &[Stats]| ways.map(|way| middle(Spread::from_values(stats.iter().map(way)), 0));
            cells.extend([&row.strict, &row.hack, &row.hack_batch].iter().flat_map(|stats| times(stats)));
            if is_installed {
                cells.extend(times(&row.librohc));
                let ratio =
                    |way: fn(&Stats) -> f64| ratios(&row.librohc, &row.strict, |stats| Some(way(stats)));
                cells.extend(ways.map(|way| whole(ratio(way), 1)));
            }
            table.push(&cells);
        }
        table.text()
    }
}

impl Row {
    fn measure(plan: &Plan, capture: &Path, driver: Option<&Path>) -> Result<Self> {
        let file = capture.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = file.strip_suffix(ENDING).unwrap_or(&file).to_owned();
        let plain = driver.map(|_| plain(plan, capture)).transpose()?;
        let mut runs: [Vec<Stats>; 3] = Default::default();
        let mut librohc = Vec::new();
        for _ in 0..plan.pairs {
            for (codec, runs) in CODECS.iter().zip(&mut runs) {
                let mut command = tacit()?;
                command.args(["rohc", "stats", "--json", "--codec", codec]).arg(capture);
                runs.push(right(json::<Stats>(&mut command)?, &name)?);
            }
            if let (Some(driver), Some(plain)) = (driver, &plain) {
                librohc.push(json(Command::new(driver).arg(plain))?);
            }
        }
        let [strict, hack, hack_batch] = runs;
        let golden = plan.data().join(format!("rohc-golden/{name}.U.oa4.smallcid.rohc"));
        let recorded = golden.exists().then(|| recorded(capture, &golden)).transpose()?;
        Ok(Self { name, strict, hack, hack_batch, librohc, recorded })
    }
}

/// Nothing that does not come back is compared.
fn right(stats: Stats, name: &str) -> Result<Stats> {
    if stats.failures > 0 || stats.wrong > 0 {
        bail!("{name}: {} packets did not come back, {} came back wrong", stats.failures, stats.wrong);
    }
    Ok(stats)
}

fn recorded(capture: &Path, golden: &Path) -> Result<Recorded> {
    let compared = |repeat: &str| -> Result<[f64; 2]> {
        let mut command = tacit()?;
        command.args(["rohc", "compare", "--json", "--repeat", repeat]).args([capture, golden]);
        let report: Compared = json(&mut command)?;
        if report.failures > 0 || report.wrong > 0 {
            bail!(
                "{}: {} did not decompress, {} came out wrong",
                golden.display(),
                report.failures,
                report.wrong
            );
        }
        Ok([report.rohc_bytes, report.other_bytes].map(|bytes| bytes as f64 / report.packets as f64))
    };
    let [ours_alike, librohc] = compared(THEIR_REPEAT)?;
    let [ours, _] = compared(OUR_REPEAT)?;
    Ok(Recorded { librohc, ours_alike, ours })
}

/// Captures of ACKs, by name.
fn captures_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut captures: Vec<_> = entries.map(|entry| entry.path()).collect();
    captures.retain(|path| path.to_string_lossy().ends_with(ENDING));
    captures.sort();
    captures
}

/// Stands in for captures of real receivers.
fn simulated_capture(plan: &Plan) -> Result<PathBuf> {
    let path = plan.arguments.results.join("made.pcapng");
    let mut command = tacit()?;
    command.args([
        "run",
        "hack-2014-11n-150",
        "--json",
        "--set=run.duration=3 s",
        "--set=run.measure-from=1 s",
    ]);
    let _: serde::de::IgnoredAny = json(command.arg("--pcap").arg(&path))?;
    Ok(path)
}

/// The program that drives librohc, where the library is installed.
fn driver(plan: &Plan) -> Result<Option<PathBuf>> {
    if stdout_of("pkg-config", &["--modversion", "rohc"]).is_none() {
        eprintln!("tacit-peers: codecs: librohc (pkg-config rohc) is not installed: SKIPPED");
        return Ok(None);
    }
    let source = plan.arguments.sources.join("rohc/librohc.c");
    compile(&["cc", "-O2", "-std=c11"], &source, &["rohc"], &plan.arguments.results.join("librohc")).map(Some)
}

/// The TCP packets of a capture as raw IP, which the program in bench/rohc reads.
fn plain(plan: &Plan, capture: &Path) -> Result<PathBuf> {
    let [rohc, pcap] = ["plain.rohc", "plain.pcap"].map(|name| plan.arguments.results.join(name));
    for (way, from, to) in [("compress", capture, &rohc), ("decompress", rohc.as_path(), &pcap)] {
        let mut command = tacit()?;
        let _: serde::de::IgnoredAny = json(command.args(["rohc", way, "--json"]).args([from, to]))?;
    }
    Ok(pcap)
}
