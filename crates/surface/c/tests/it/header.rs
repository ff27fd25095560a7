//! `include/tacit.h` is what the code says. `TACIT_WRITE_HEADER=1` writes it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const HEAD: &str = "\
/* libtacit: TCP/HACK's codec, TACK's ACK law, and ROHC-TCP (RFC 6846).
 *
 * Written from the Rust code by a test (crates/surface/c/tests/it/header.rs); do not change it by hand.
 * docs/use/c.md has examples and the duties of a driver. Licence: MIT OR Apache-2.0.
 *
 * Functions return TACIT_OK or a negative code, unless they say otherwise. A handle is for one thread at a time; several
 * handles are independent. Packets are whole IP packets, from the first byte of the IP header. A length of 0 may have a
 * NULL pointer. Outputs are written only as far as their length says.
 */
#ifndef TACIT_H
#define TACIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

const TAIL: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// Source files, each with a title; the last needs an operating system.
const PARTS: [(&str, &str); 5] = [
    ("memory", "Memory"),
    ("error", "What functions return"),
    ("hack", "TCP/HACK: compressed ACKs inside link-layer ACKs"),
    ("ack", "TACK's ACK law: when to acknowledge"),
    ("rohc", "ROHC-TCP; not in a library without an operating system"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

#[test]
fn the_header_is_what_the_code_says() {
    let mut header = HEAD.to_owned();
    for (file, title) in PARTS {
        let source = fs::read_to_string(root().join(format!("src/{file}.rs"))).unwrap();
        write!(header, "\n/* {title} */\n").unwrap();
        header += &declarations(&source);
    }
    header += TAIL;
    let path = root().join("include/tacit.h");
    if env::var_os("TACIT_WRITE_HEADER").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let other = header.lines().zip(kept.lines()).find(|(is, was)| is != was);
    assert!(header == kept, "{other:?}\nTACIT_WRITE_HEADER=1 cargo test -p tacit-c header writes it");
}

/// The version script of the shared library names exactly the header's functions.
#[test]
fn every_function_has_a_version() {
    let header = fs::read_to_string(root().join("include/tacit.h")).unwrap();
    let prototypes =
        header.lines().filter(|line| line.contains('(') && !line.starts_with([' ', '#', '/', 't']));
    let mut functions: Vec<&str> =
        prototypes.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next()).collect();
    functions.sort_unstable();
    assert!(functions.len() > 25, "{functions:?}");
    let map = fs::read_to_string(root().join("tacit.map")).unwrap();
    let names = map.split([';', '{', ':', ' ', '\n']);
    let mut versioned: Vec<&str> = names.filter(|name| name.starts_with("tacit_")).collect();
    versioned.sort_unstable();
    assert_eq!(functions, versioned);
}

/// All that is public in a source file, as C declares it.
fn declarations(source: &str) -> String {
    let mut text = String::new();
    let mut comment = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("///") {
            comment.push(words.trim_start());
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        let comment_text = comment_of(&std::mem::take(&mut comment), "");
        if let Some(constant) = line.strip_prefix("pub const ") {
            let (name, rest) = constant.split_once(": ").unwrap();
            let value = rest.split_once(" = ").unwrap().1.trim_end_matches(';');
            let value = if value.starts_with('-') { format!("({value})") } else { value.to_owned() };
            write!(text, "\n{comment_text}#define {name} {value}\n").unwrap();
        } else if let Some(alias) = line.strip_prefix("pub type ") {
            let (name, is) = alias.split_once(" = ").unwrap();
            let declared = match is.split_once("fn(") {
                None => format!("struct {name} {name}"),
                Some((_, arguments)) => format!("void (*{name})({})", arguments_of(arguments)),
            };
            write!(text, "\n{comment_text}typedef {declared};\n").unwrap();
        } else if let Some(name) = line.strip_prefix("pub struct tacit_") {
            let name = format!("tacit_{}", name.trim_end_matches(" {"));
            write!(text, "\n{comment_text}typedef struct {name} {{\n").unwrap();
            fields(&mut lines, &mut text);
            writeln!(text, "}} {name};").unwrap();
        } else if line.starts_with("pub ") && line.contains("extern \"C\" fn ") {
            let mut signature = line.split_once("fn ").unwrap().1.to_owned();
            while !signature.ends_with('{') {
                signature += lines.next().unwrap().trim();
            }
            write!(text, "\n{comment_text}{};\n", function(&signature)).unwrap();
        }
    }
    text
}

fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>, text: &mut String) {
    let mut comment = Vec::new();
    for line in lines.map(str::trim).take_while(|line| *line != "}") {
        if let Some(words) = line.strip_prefix("///") {
            comment.push(words.trim_start());
        } else {
            let comment_text = comment_of(&std::mem::take(&mut comment), "    ");
            let field = line.strip_prefix("pub ").unwrap().trim_end_matches(',');
            writeln!(text, "{comment_text}    {};", argument(field)).unwrap();
        }
    }
}

/// A comment of C's, without what is for Rust alone.
fn comment_of(lines: &[&str], indent: &str) -> String {
    let lines: Vec<&str> = lines.iter().take_while(|line| **line != "# Safety").copied().collect();
    let lines = lines.join("\n").trim_end().to_owned();
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
    format!("{indent}/* {} */\n", lines.join(&format!("\n{indent} * ")).replace(" * \n", " *\n"))
}

/// `name(a: A, b: B) -> C {` as a prototype.
fn function(signature: &str) -> String {
    let (name, rest) = signature.split_once('(').unwrap();
    let (arguments, result) = rest.rsplit_once(") -> ").expect("all functions return something");
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments_of(arguments) };
    let head = argument(&format!("{name}: {}", result.trim_end_matches(" {")));
    let line = format!("{head}({arguments})");
    if line.len() <= 100 { line } else { format!("{head}(\n    {})", arguments.replace(", ", ",\n    ")) }
}

fn arguments_of(text: &str) -> String {
    let text = text.trim_end_matches([')', '>', ';', ',']);
    let arguments: Vec<String> = text.split(',').map(|it| argument(it.trim())).collect();
    arguments.join(", ")
}

/// `name: type` in the order of C.
fn argument(text: &str) -> String {
    let (name, c_type_name) = text.split_once(": ").unwrap_or_else(|| panic!("no argument: {text}"));
    let c_type_name = c_type(c_type_name);
    if c_type_name.ends_with('*') { format!("{c_type_name}{name}") } else { format!("{c_type_name} {name}") }
}

fn c_type(rust_type: &str) -> String {
    if let Some(to) = rust_type.strip_prefix("*mut ") {
        let to = c_type(to);
        return if to.ends_with('*') { format!("{to}*") } else { format!("{to} *") };
    }
    if let Some(to) = rust_type.strip_prefix("*const ") {
        return format!("const {} *", c_type(to));
    }
    match rust_type {
        "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &rust_type[1..]),
        "usize" => "size_t".to_owned(),
        "c_int" => "int".to_owned(),
        "c_char" => "char".to_owned(),
        "c_void" => "void".to_owned(),
        name if name.starts_with("tacit_") => name.to_owned(),
        other => panic!("C has no {other}"),
    }
}
