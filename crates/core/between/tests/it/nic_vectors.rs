//! The vectors of `vectors/hack/nic`: what the NIC appends to each ACK or Block Ack. `TACIT_WRITE_VECTORS=1` writes them.
//! A model in Python, written from `docs/references/hack-wire.md` alone, is compared with all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use tacit_between::hack::{Nic, SolicitedBy};

const ABOUT_LINES: &str = "\
# Each line is an event at the NIC of the sending end, for one peer; behind = is its answer. Bytes are in hexadecimal.
# begin: nothing is retained or fresh, no limit
# limit BYTES: most bytes behind one ACK
# add FRAME: the driver's frame is in the NIC's memory
# take fresh | take retained: the driver takes these frames back
# heard single NUMBER | ampdu | request [sync] [room BYTES] = proven or not, frames sent for the first time, bytes appended
";

/// Each file: its name, what it shows, its events and comments.
const SCRIPTS: [(&str, &str, &[&str]); 6] = [
    (
        "block-acks",
        "Block Acks: the paper's figures 5a, 6 and 8.",
        &[
            "# Figure 5a: the Block Ack with the first frame is lost; a request proves nothing.",
            "add aa01",
            "heard ampdu",
            "add bb0203",
            "heard request",
            "# The next A-MPDU does.",
            "add cc",
            "heard ampdu",
            "# Figure 8: requests were lost, too. SYNC means that the data continues without the Block Ack.",
            "add dd04",
            "heard ampdu sync",
            "heard ampdu sync",
            "heard ampdu",
            "heard ampdu",
        ],
    ),
    (
        "single-mpdus",
        "ACKs of single MPDUs: figure 5b, and an A-MPDU between.",
        &[
            "add aa01",
            "heard single 7",
            "# The same number: the ACK was lost.",
            "heard single 7",
            "heard single 8",
            "add bb",
            "heard single 4095",
            "heard single 0",
            "# Only consecutive single MPDUs are compared: behind an A-MPDU or a request, the same number is another MPDU.",
            "add cc",
            "heard ampdu",
            "heard single 0",
            "add dd",
            "heard single 0",
            "heard single 1",
            "heard request",
            "heard single 1",
            "# SYNC: another number is no proof.",
            "add ee",
            "heard single 2",
            "heard single 3 sync",
            "heard single 4",
        ],
    ),
    (
        "no-more-data",
        "Figure 7: the driver takes frames back.",
        &[
            "add aa01",
            "heard ampdu",
            "add bb",
            "take fresh",
            "heard request",
            "take retained",
            "heard request",
            "heard ampdu",
            "add cc",
            "heard ampdu",
        ],
    ),
    (
        "room",
        "Answers to triggers, whose length is fixed: cut at a frame, in order.",
        &[
            "add aa0102",
            "add bb010203",
            "add cc",
            "heard ampdu room 5",
            "# The first is proven. The second does not fit, and the third does not overtake it.",
            "heard ampdu room 3",
            "heard ampdu room 5",
            "# Its answer is lost. No room to repeat it: withheld, so the next A-MPDU is no proof.",
            "heard request room 4",
            "heard ampdu room 9",
            "heard ampdu room 9",
            "# Withheld, and SYNC in the next.",
            "add dd0102",
            "heard ampdu",
            "heard request room 2",
            "heard ampdu sync room 3",
            "heard ampdu room 3",
            "# Room of exactly the retained bytes is enough; none is not.",
            "add ee0102",
            "heard ampdu room 3",
            "heard request room 3",
            "heard request room 0",
            "heard request",
            "heard ampdu room 0",
        ],
    ),
    (
        "limit",
        "A limit of appended bytes: frames wait for the next ACK; a longer one goes alone.",
        &[
            "limit 4",
            "add aa0102",
            "add bb",
            "add cc0102030405",
            "add dd",
            "heard ampdu",
            "heard request",
            "heard ampdu",
            "heard ampdu",
            "# With room: both hold.",
            "add ee0102",
            "add ff",
            "heard ampdu room 3",
            "heard request room 9",
        ],
    ),
    ("drawn", "Drawn events.", &[]),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// What the NIC answers to an event, if anything.
fn happen(nic: &mut Nic, event: &str) -> Option<String> {
    let words: Vec<&str> = event.split(' ').collect();
    match words[..] {
        ["begin"] => *nic = Nic::new(1),
        ["limit", bytes] => nic.limit_appended(bytes.parse().unwrap()),
        ["add", frame] => nic.add(0, &from_hex(frame)),
        ["take", "fresh"] => nic.clear_fresh(0),
        ["take", "retained"] => nic.clear_retained(0),
        ["heard", what, ref rest @ ..] => {
            let (heard, rest) = match (what, rest) {
                ("single", [number, rest @ ..]) => {
                    (SolicitedBy::Single { sequence: number.parse().unwrap() }, rest)
                }
                ("ampdu", rest) => (SolicitedBy::Ampdu, rest),
                ("request", rest) => (SolicitedBy::BlockAckRequest, rest),
                _ => panic!("no event: {event}"),
            };
            let sync = rest.first() == Some(&"sync");
            let room = rest.iter().position(|word| *word == "room").map(|at| rest[at + 1].parse().unwrap());
            let mut appended = Vec::new();
            let response = nic.respond(0, heard, sync, room, &mut appended);
            assert_eq!(response.appended_bytes as usize, appended.len());
            let proven = if response.proven { "proven" } else { "unproven" };
            return Some(
                format!("{proven} {} {}", response.fresh_frames, hex(&appended)).trim_end().to_owned(),
            );
        }
        _ => panic!("no event: {event}"),
    }
    None
}

/// Events of all kinds, by a generator of pseudo-random numbers (xorshift64, Marsaglia 2003).
fn drawn() -> Vec<String> {
    let mut state = 0x2014_u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut events = Vec::new();
    for number in 0..600 {
        if number % 100 == 50 {
            events.extend(["begin".to_owned(), format!("limit {}", 4 + draw(12))]);
        }
        let event = match draw(16) {
            0..6 => {
                let len = 1 + draw(6) as usize;
                format!("add {}", hex(&vec![number as u8; len]))
            }
            6 => ["take fresh", "take retained"][draw(2) as usize].to_owned(),
            _ => {
                let mut event = match draw(5) {
                    0 | 1 => "heard ampdu".to_owned(),
                    2 => "heard request".to_owned(),
                    _ => format!("heard single {}", draw(3)),
                };
                if !event.ends_with("request") && draw(4) == 0 {
                    event += " sync";
                }
                if draw(3) == 0 {
                    write!(event, " room {}", draw(12)).unwrap();
                }
                event
            }
        };
        events.push(event);
    }
    events
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../vectors/hack/nic")
}

fn committed() -> BTreeSet<PathBuf> {
    fs::read_dir(directory()).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
fn each_script_leaves_its_vector() {
    let mut names = BTreeSet::new();
    let how = "TACIT_WRITE_VECTORS=1 cargo test -p tacit-between --test it nic_vectors writes them";
    for (name, about, script) in SCRIPTS {
        let events =
            if name == "drawn" { drawn() } else { script.iter().map(|line| (*line).into()).collect() };
        let mut nic = Nic::new(1);
        let mut text = format!("# {about}\n{ABOUT_LINES}");
        for event in events {
            let answer = if event.starts_with('#') { None } else { happen(&mut nic, &event) };
            text += &answer.map_or(format!("{event}\n"), |answer| format!("{event} = {answer}\n"));
        }
        let file = directory().join(name).with_extension("txt");
        if env::var_os("TACIT_WRITE_VECTORS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&file).unwrap_or_default(), "{name}\n{how}");
        names.insert(file);
    }
    assert_eq!(committed(), names, "each file has its script, and each script its file");
}

/// Runs the model in Python on these files; `None` without Python.
fn modelled_in_python(files: &BTreeSet<PathBuf>) -> Option<Output> {
    let program = directory().join("../../../contrib/hack_nic.py");
    match Command::new("python3").arg(program).args(files).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("SKIPPED: python3: {error}: NO OTHER NIC WAS COMPARED WITH THE VECTORS");
            None
        }
    }
}

#[test]
fn a_model_written_from_the_page_alone_gives_every_answer() {
    let files = committed();
    let Some(output) = modelled_in_python(&files) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let texts: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let answers = texts.lines().filter(|line| line.starts_with("heard ")).count();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{} files, {answers} answers\n", files.len())
    );
    assert!(answers > 300, "{answers}");
}

/// Otherwise the comparison above would say nothing.
#[test]
fn that_model_sees_each_part_of_a_wrong_answer() {
    let text = fs::read_to_string(directory().join("block-acks.txt")).unwrap();
    for (number, (from, to)) in
        [("= proven 1 ", "= unproven 1 "), ("= proven 1 ", "= proven 2 "), ("aa01bb", "aa02bb")]
            .into_iter()
            .enumerate()
    {
        assert!(text.contains(from), "{from}");
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wrong-nic-{number}.txt"));
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let Some(output) = modelled_in_python(&[file].into()) else { return };
        assert!(!output.status.success(), "{from} became {to}");
    }
}

/// The example on the page is a part of a vector.
#[test]
fn the_page_shows_lines_of_a_vector() {
    let page = fs::read_to_string(directory().join("../../../docs/references/hack-wire.md")).unwrap();
    let vector = fs::read_to_string(directory().join("block-acks.txt")).unwrap();
    let shown = page.split("```text\n").find(|block| block.starts_with("add ")).unwrap();
    let shown = shown.split("```").next().unwrap();
    assert!(shown.lines().count() > 5 && vector.contains(shown), "the page shows\n{shown}");
}
