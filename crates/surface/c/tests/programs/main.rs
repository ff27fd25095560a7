//! The Makefile, and programs in C and Go: they compile without a warning and run, under AddressSanitizer and valgrind, too.
//! `./ci.sh c` runs these tests, which build the library with make.
#![allow(clippy::unwrap_used, reason = "a failure is a panic")]

mod drawn;
#[path = "../it/in_rust.rs"]
mod in_rust;
#[path = "../../../../core/rohc/tests/it/hack_support/packets.rs"]
mod packets;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

use tacit_rohc::hack::{Coding, Compressor, Limits, Refusal};
use tacit_rohc::header::{Header, MAX_HEADER_LEN};

use crate::packets::{Change, Receiver};

/// The packet that consists of this header alone.
fn bytes_of(header: &Header) -> Vec<u8> {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes).unwrap();
    bytes[..len].to_vec()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// True if a program is there; else says what is left out.
fn has(program: &str, what: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
        // Go's own way.
        || Command::new(program).arg("version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("SKIPPED: {what}: there is no {program}");
    }
    is_there
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    output
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The static library of this build, which cargo makes beside the test program.
fn archive() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        cargo.current_dir(root()).args(["build", "--quiet", "-p", "tacit-c", "--message-format", "json"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let stdout = text(&run(&mut cargo));
        let path = stdout.split('"').rfind(|word| word.ends_with("libtacit.a"));
        path.expect("cargo names the library").into()
    })
}

/// Runs the Makefile with this library into `out`.
fn make(out: &Path, arguments: &[&str]) -> Output {
    let (archive, out) = (format!("ARCHIVE={}", archive().display()), format!("OUT={}", out.display()));
    run(Command::new("make").args(["-s", "-C"]).arg(root()).args([&archive, &out]).args(arguments))
}

fn tools(what: &str) -> bool {
    has("make", what) && has("cc", what)
}

fn vectors() -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("../../../vectors/hack")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files
}

/// 1000 ACKs of a download, one of them broken, in bursts of 20, and a data packet. Returns what the Rust code makes of them:
/// bytes before and after, and ACKs in frames of 16.
fn write_capture(path: &Path) -> (usize, usize, usize) {
    let mut pcap = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 101] {
        pcap.extend_from_slice(&word.to_le_bytes());
    }
    let mut flow = Receiver::new(false, 40000, 1);
    let mut compressor = Compressor::new(Coding::Batch, Limits { contexts: 64, frame_acks: 16 });
    let (mut before, mut frames, mut acks) = (0, Vec::new(), 0);
    for number in 0..1000u32 {
        flow.apply(&Change::Usual { units: 2, value: u32::from(number % 9 == 0), echo: 0, window: 1 });
        let mut packet = flow.packet();
        if number == 500 {
            packet[25] ^= 1;
        }
        if number % 20 == 0 {
            acks += compressor.finish_frame(&mut frames);
        }
        let mut refused = compressor.push(&packet);
        if refused == Err(Refusal::FrameFull) {
            acks += compressor.finish_frame(&mut frames);
            refused = compressor.push(&packet);
        }
        match refused {
            Ok(()) => before += packet.len(),
            Err(_) => {
                acks += compressor.finish_frame(&mut frames);
                compressor.note_native(&packet);
            }
        }
        let at_us = number / 20 * 10_000 + number % 20;
        for word in [0, at_us, packet.len() as u32, packet.len() as u32] {
            pcap.extend_from_slice(&word.to_le_bytes());
        }
        pcap.extend_from_slice(&packet);
    }
    acks += compressor.finish_frame(&mut frames);
    fs::write(path, pcap).unwrap();
    (before, frames.len(), acks)
}

fn page() -> String {
    fs::read_to_string(root().join("../../../docs/use/c.md")).unwrap()
}

/// How many random streams go through each part.
fn streams() -> u32 {
    env::var("TACIT_C_STREAMS").map_or(200, |number| number.parse().unwrap())
}

/// All programs, each under `before`, and this number of random streams.
fn run_all(out: &Path, before: &[&str], streams: u32) {
    let command = |program: &str| {
        let program = out.join(program);
        match before {
            [] => Command::new(program),
            [tool, arguments @ ..] => {
                let mut command = Command::new(tool);
                command.args(arguments).arg(program);
                command
            }
        }
    };
    let stdout = text(&run(command("vectors").args(vectors())));
    assert!(stdout.starts_with(&format!("{} files, ", vectors().len())), "{stdout}");
    drawn::play(&mut command("vectors"), streams.max(20));
    let stdout = text(&run(&mut command("hooks")));
    assert!(page().contains(&stdout), "docs/use/c.md shows\n{stdout}");
    let stdout = text(&run(&mut command("ack_law")));
    assert!(page().contains(&stdout), "docs/use/c.md shows\n{stdout}");
    let capture = out.join("acks.pcap");
    let (bytes, framed, acks) = write_capture(&capture);
    let stdout = text(&run(command("hack_capture").arg(&capture)));
    for (name, number) in
        [("packets", 1000), ("ACKs in frames", acks), ("bytes before", bytes), ("bytes after", framed)]
    {
        let line = format!("{name:<18}{number:>8}");
        assert!(stdout.contains(&line), "{stdout} has no {line}");
    }
    assert_eq!(acks, 998, "the first and the broken one go as they are");
    for mode in ["make", "compress", "both"] {
        run(command("cost").args([mode, "160", "batch"]));
    }
}

#[test]
fn programs_in_c_run() {
    if !tools("programs in C") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    make(out.path(), &["all"]);
    run_all(out.path(), &[], streams() / 100);
    if has("valgrind", "programs in C under valgrind") {
        // It takes fifty times as long.
        run_all(out.path(), &["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"], streams() / 100);
    }
    if has("go", "the program in Go") {
        let stdout = text(&make(out.path(), &["go"]));
        let bytes = stdout.split(" became ").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok());
        // The shortest packet of the profile has four bytes.
        assert!(
            stdout.contains(": 40000 bytes became ") && (4000..4200).contains(&bytes.unwrap_or(0)),
            "{stdout}"
        );
    }
}

/// Without std, on this machine: no symbol of an allocator or a thread is left, and the vectors come out the same.
#[test]
fn the_library_without_an_operating_system_plays_the_vectors() {
    if !tools("the library without an operating system") {
        return;
    }
    let stdout = text(&run(Command::new("rustc").arg("-vV")));
    let host = stdout.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let targets = archive().parent().and_then(Path::parent).unwrap();
    let mut bare = Command::new("make");
    bare.env("CARGO_TARGET_DIR", targets)
        .args(["-s", "-C"])
        .arg(root())
        .args(["bare", &format!("TARGET={host}")]);
    run(&mut bare);
    let library = targets.join(host).join("release/libtacit.a");
    let out = tempfile::tempdir().unwrap();
    let (stubs, program) = (out.path().join("stubs.c"), out.path().join("vectors"));
    // The second is for a core library that can unwind, as those of hosts can.
    let source =
        "void abort(void);\nvoid tacit_panic(void) { abort(); }\nvoid rust_eh_personality(void) {}\n";
    fs::write(&stubs, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-DTACIT_BARE", "-Iinclude", "tests/c/vectors.c"])
        .current_dir(root())
        .arg(&stubs)
        .arg(&library);
    run(cc.arg("-o").arg(&program));
    let stdout = text(&run(Command::new(program).args(vectors())));
    assert!(stdout.starts_with(&format!("{} files, ", vectors().len())), "{stdout}");
    if has("nm", "the symbols that a library without an operating system needs") {
        let symbols = text(&run(Command::new("nm").args(["-u", "--format=just-symbols"]).arg(library)));
        for symbol in ["malloc", "free", "calloc", "mmap", "write", "abort", "pthread_create"] {
            assert!(!symbols.lines().any(|line| line.trim() == symbol), "it needs {symbol}");
        }
    }
}

#[test]
fn programs_in_c_run_under_address_sanitizer() {
    if !tools("programs in C under AddressSanitizer") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let (source, program) = (out.path().join("empty.c"), out.path().join("empty"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let sanitizer =
        Command::new("cc").arg("-fsanitize=address,undefined").arg(&source).arg("-o").arg(&program).output();
    if !sanitizer.is_ok_and(|output| output.status.success())
        || !Command::new(program).status().unwrap().success()
    {
        eprintln!("SKIPPED: programs in C under AddressSanitizer: cc has none");
        return;
    }
    make(out.path(), &["CFLAGS=-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all", "all"]);
    run_all(out.path(), &[], streams());
}

/// What a distribution installs: pkg-config finds it, symbols have versions, and nothing else is exported.
#[test]
fn the_shared_library_is_installed_with_versioned_symbols() {
    if !tools("the shared library") || !has("pkg-config", "the shared library") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let prefix = out.path().join("usr");
    make(out.path(), &[&format!("PREFIX={}", prefix.display()), "install"]);
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(["--cflags", "--libs", "tacit"]);
    let flags = text(&run(&mut pkg_config));
    let program = out.path().join("shared");
    let source = root().join("examples/ack_law.c");
    run(Command::new("cc").arg(source).args(flags.split_whitespace()).arg("-o").arg(&program));
    run(Command::new(program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    if has("nm", "the versions of symbols") {
        let library = prefix.join("lib/libtacit.so");
        let symbols = text(&run(Command::new("nm").args(["-D", "--defined-only"]).arg(library)));
        let functions = symbols.lines().filter(|line| line.contains(" T "));
        let (versioned, other): (Vec<&str>, Vec<&str>) =
            functions.partition(|line| line.contains(" tacit_") && line.ends_with("@@TACIT_0.2"));
        assert!(versioned.len() > 25 && other.is_empty(), "{other:?}");
    }
    if has("c++", "the header in C++") {
        let header = root().join("include/tacit.h");
        run(Command::new("c++").args(["-fsyntax-only", "-Wall", "-Werror", "-x", "c++"]).arg(header));
    }
}
