//! The vectors of `vectors/hack`: what each end of the HACK variant does, event by event, for implementations in other
//! languages. `TACIT_WRITE_VECTORS=1` writes them. A decoder in Python, written from
//! `docs/references/hack-wire.md` alone, decodes them all.

mod scripts;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, Report, frame_kinds};

const ABOUT_LINES: &str = "\
# Each line is an event at one end; behind = is what that end does. Packets and frames are in hexadecimal.
# compressor coding NAME: starts without contexts
# compressor native PACKET: the link layer acknowledged this native ACK
# compressor push PACKET = taken, or refused and why
# compressor frame = FRAMES: ends the frame of the ACKs that were taken since the last one
# compressor invalidate PACKET: frames of this flow were given up
# decompressor contexts N: starts without contexts, with room for this number of flows
# decompressor native PACKET: this native ACK arrived
# decompressor receive FRAMES = how many frames had each outcome
# decompressor ack PACKET: delivered by the event before, in order
";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// How many frames had each outcome, without those of none.
fn outcomes(report: &Report) -> String {
    let counts = [
        ("delivered", report.frames - report.duplicates - report.failures()),
        ("duplicate", report.duplicates),
        ("malformed", report.malformed),
        ("no-context", report.no_context),
        ("gap", report.gap),
        ("stale", report.stale),
        ("check", report.check),
    ];
    let seen = counts.iter().filter(|(_, count)| *count > 0);
    seen.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// Both ends.
struct Ends {
    compressor: Compressor,
    decompressor: Decompressor,
}

impl Ends {
    fn new() -> Self {
        Self {
            compressor: Compressor::new(Coding::PerAck, Limits::default()),
            decompressor: Decompressor::new(Limits::default()),
        }
    }

    /// What happens at an event: its line, and a line for each ACK that it delivers.
    fn happen(&mut self, event: &str) -> Vec<String> {
        let words: Vec<&str> = event.split(' ').collect();
        let packet = || from_hex(words[2]);
        match words[..2] {
            ["compressor", "coding"] => {
                let coding = if words[2] == "batch" { Coding::Batch } else { Coding::PerAck };
                self.compressor = Compressor::new(coding, Limits::default());
            }
            ["compressor", "native"] => self.compressor.note_native(&packet()),
            ["compressor", "invalidate"] => self.compressor.invalidate(&packet()),
            ["compressor", "push"] => {
                return vec![match self.compressor.push(&packet()) {
                    Ok(()) => format!("{event} = taken"),
                    Err(refusal) => format!("{event} = refused: {refusal}"),
                }];
            }
            ["compressor", "frame"] => {
                let mut frames = Vec::new();
                self.compressor.finish_frame(&mut frames);
                return vec![format!("{event} = {}", hex(&frames))];
            }
            ["decompressor", "contexts"] => {
                let limits = Limits { contexts: words[2].parse().unwrap(), ..Limits::default() };
                self.decompressor = Decompressor::new(limits);
            }
            ["decompressor", "native"] => self.decompressor.note_native(&packet()),
            ["decompressor", "receive"] => {
                let mut acks = Vec::new();
                let mut deliver = |packet: &[u8]| acks.push(format!("decompressor ack {}", hex(packet)));
                let report = self.decompressor.receive(&packet(), &mut deliver);
                assert_eq!(acks.len(), report.acks);
                acks.insert(0, format!("{event} = {}", outcomes(&report)));
                return acks;
            }
            _ => panic!("no event: {event}"),
        }
        vec![event.to_owned()]
    }
}

/// A vector under construction.
pub struct Script {
    ends: Ends,
    text: String,
}

impl Script {
    fn new(about: &str) -> Self {
        Self { ends: Ends::new(), text: format!("# {about}\n{ABOUT_LINES}") }
    }

    /// Writes a comment line.
    fn comment(&mut self, text: &str) {
        writeln!(self.text, "# {text}").unwrap();
    }

    /// Lets an event happen; returns its answer.
    fn run(&mut self, event: &str) -> String {
        let lines = self.ends.happen(event);
        for line in &lines {
            writeln!(self.text, "{line}").unwrap();
        }
        lines[0].split_once(" = ").map_or(String::new(), |(_, answer)| answer.to_owned())
    }

    /// A native ACK that arrived and was acknowledged.
    fn native(&mut self, packet: &[u8]) {
        self.run(&format!("decompressor native {}", hex(packet)));
        self.run(&format!("compressor native {}", hex(packet)));
    }

    /// A frame of these ACKs.
    fn frame(&mut self, packets: &[Vec<u8>]) -> Vec<u8> {
        for packet in packets {
            assert_eq!(self.run(&format!("compressor push {}", hex(packet))), "taken");
        }
        from_hex(&self.run("compressor frame"))
    }

    /// A link-layer ACK arrives with `frames` behind it; their outcomes must be `expected`.
    fn receive(&mut self, frames: &[u8], expected: &str) {
        assert_eq!(self.outcome(frames), expected, "{}", self.text);
    }

    /// The outcomes of frames.
    fn outcome(&mut self, frames: &[u8]) -> String {
        self.run(&format!("decompressor receive {}", hex(frames)))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn directory() -> PathBuf {
    root().join("vectors/hack")
}

/// The committed vectors, by path.
fn committed() -> Vec<PathBuf> {
    let files = fs::read_dir(directory()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "txt")).collect();
    files.sort();
    files
}

#[test]
fn each_script_leaves_its_vector() {
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, about, script) in scripts::ALL {
        let mut written = Script::new(about);
        script(&mut written);
        let file = directory().join(name).with_extension("txt");
        if env::var_os("TACIT_WRITE_VECTORS").is_some() {
            fs::write(&file, &written.text).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        if let Some((number, (is, was))) =
            (1..).zip(written.text.lines().zip(kept.lines())).find(|(_, (is, was))| is != was)
        {
            wrong.push(format!("{name}, line {number}:\n  is  {is}\n  was {was}"));
        } else if written.text != kept {
            wrong.push(format!("{name}: of another length"));
        }
        names.insert(file);
    }
    let how =
        "TACIT_WRITE_VECTORS=1 cargo test -p tacit-rohc --features hack --test it hack_vectors writes them";
    assert!(wrong.is_empty(), "{}\n{how}", wrong.join("\n"));
    let kept: BTreeSet<_> = committed().into_iter().collect();
    assert_eq!(kept, names, "each file has its script, and each script its file");
}

/// A program that reads only the files can do the same check.
#[test]
fn the_text_says_all() {
    for file in committed() {
        let text = fs::read_to_string(&file).unwrap();
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut ends = Ends::new();
        while let Some(line) = lines.next() {
            for (number, happened) in ends.happen(line.split(" =").next().unwrap()).iter().enumerate() {
                let line = if number == 0 { line } else { lines.next().unwrap_or_default() };
                assert_eq!(happened, line, "{}", file.display());
            }
        }
    }
}

#[test]
fn every_kind_and_outcome_is_in_some_vector() {
    let texts: String = committed().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for outcome in ["delivered", "duplicate", "malformed", "no-context", "gap", "stale", "check"] {
        assert!(texts.contains(&format!(" {outcome}=")), "no frame is {outcome}");
    }
    let frames = texts.lines().filter_map(|line| line.strip_prefix("decompressor receive "));
    let bytes: Vec<_> = frames.map(|line| from_hex(line.split(' ').next().unwrap())).collect();
    let kinds: BTreeSet<_> = bytes.iter().flat_map(|bytes| frame_kinds(bytes)).collect();
    assert_eq!(kinds, ["batch", "batch-init", "long", "long-init", "short"].into());
}

/// Runs the decoder in Python on these files; `None` without Python.
fn decoded_in_python(files: &[PathBuf]) -> Option<Output> {
    let program = root().join("contrib/hack_decode.py");
    match Command::new("python3").arg(program).args(files).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("SKIPPED: python3: {error}: NO OTHER DECODER READ THE VECTORS");
            None
        }
    }
}

#[test]
fn a_decoder_written_from_the_page_alone_reads_every_vector() {
    let files = committed();
    let Some(output) = decoded_in_python(&files) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let acks = stdout.lines().filter_map(|line| line.strip_suffix(" ACKs")?.rsplit(' ').next()?.parse().ok());
    let acks: Vec<usize> = acks.collect();
    assert_eq!(acks.len(), files.len(), "{stdout}");
    let texts: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let expected = texts.lines().filter(|line| line.starts_with("decompressor ack ")).count();
    assert_eq!(acks.iter().sum::<usize>(), expected);
}

/// Otherwise the comparison above would say nothing.
#[test]
fn that_decoder_sees_a_wrong_ack_a_missing_one_and_a_wrong_count() {
    let text = fs::read_to_string(directory().join("first-frames.txt")).unwrap();
    let ack = text.lines().find(|line| line.starts_with("decompressor ack ")).unwrap();
    let last = if ack.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &ack[..ack.len() - 1]);
    let changes = [(ack, wrong.as_str()), (ack, "#"), ("delivered=1", "duplicate=1")];
    for (number, (from, to)) in changes.into_iter().enumerate() {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wrong-{number}.txt"));
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let Some(output) = decoded_in_python(&[file]) else { return };
        assert!(!output.status.success(), "{from} became {to}");
    }
}

/// The example on the page is a part of a vector.
#[test]
fn the_page_shows_lines_of_a_vector() {
    let page = fs::read_to_string(root().join("docs/references/hack-wire.md")).unwrap();
    let vector = fs::read_to_string(directory().join("first-frames.txt")).unwrap();
    let is_event = |line: &&str| {
        let bytes = |rest: &str| {
            rest.split(' ').any(|word| word.len() > 7 && word.starts_with(|c: char| c.is_ascii_digit()))
        };
        line.strip_prefix("compressor ").or_else(|| line.strip_prefix("decompressor ")).is_some_and(bytes)
    };
    let shown: Vec<_> = page.lines().filter(is_event).collect();
    assert!(shown.len() >= 6, "{shown:?}");
    for line in shown {
        assert!(vector.lines().any(|kept| kept == line), "the page shows {line}");
    }
}
