//! Generates the tables in `docs/use/scenario.md` from the keys, and tests that the page contains them.

use std::fmt::Write as _;

use super::{Row, rows};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/use/scenario.md");

/// The tables in the order of the page, with their headings.
const HEADINGS: [(&str, &str); 17] = [
    ("", "### At the top"),
    ("run", "### `[run]`"),
    ("wifi", "### `[wifi]`"),
    ("wifi.multi-link", "#### `[wifi.multi-link]`"),
    ("queue", "#### Queue disciplines"),
    ("hack", "### `[hack]`"),
    ("fwp", "### `[fwp]`"),
    ("wired", "### `[wired]`"),
    ("cellular", "### `[cellular]`"),
    ("hop", "### `[[hop]]`"),
    ("clients", "### `[clients]`"),
    ("client", "### `[[client]]`"),
    ("traffic", "### `[traffic]`"),
    ("flow", "### `[[flow]]`"),
    ("tcp", "### `[tcp]`"),
    ("tack", "### `[tack]`"),
    ("compare", "### `[compare]`"),
];

/// Replaces every table of keys in `page` by the generated one, and leaves the other text unchanged.
fn with_tables(page: &str) -> String {
    let mut text = String::new();
    let mut table = None;
    let mut in_table = false;
    for line in page.lines() {
        if line.starts_with('#') {
            table = HEADINGS.iter().find(|(_, heading)| *heading == line).map(|(table, _)| *table);
        }
        let is_head = line.starts_with("| key |");
        in_table = line.starts_with('|') && (is_head || in_table);
        if is_head && let Some(table) = table {
            text.push_str(&markdown(table));
        } else if !in_table {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The table of keys for `table`. Keys with the same description share a row.
fn markdown(table: &str) -> String {
    let mut lines: Vec<(Vec<String>, String)> = Vec::new();
    for row in rows().iter().filter(|row| row.table == table) {
        let wired = Row { table: "wired", ..row.clone() };
        let rest = if table == "cellular" && rows().contains(&wired) {
            " |  | as in `[wired]`".to_owned()
        } else {
            format!("{} | {} | {}", default_cell(row), row.allowed, row.meaning)
        };
        let name = format!("`{}`", row.name);
        match lines.last_mut().filter(|(_, last)| *last == rest) {
            Some((names, _)) => names.push(name),
            None => lines.push((vec![name], rest)),
        }
    }
    let mut text = "| key | default | allowed | meaning |\n|---|---|---|---|\n".to_owned();
    for (names, rest) in lines {
        let _ = writeln!(text, "| {} | {rest} |", names.join(", "));
    }
    text
}

/// Formats a literal default as code, except for plain numbers.
fn default_cell(row: &Row) -> String {
    let is_number = row.default.bytes().all(|byte| byte.is_ascii_digit());
    if row.literal && !is_number { format!("`{}`", row.default) } else { row.default.clone() }
}

#[test]
fn the_page_says_what_the_keys_say() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let right = with_tables(&page);
    for (table, heading) in HEADINGS {
        assert!(right.contains(&format!("\n{heading}\n")), "the page has no {heading}");
        assert!(right.contains(&markdown(table)), "the page has no table of keys under {heading}");
    }
    if std::env::var_os("TACIT_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, right).unwrap();
        return;
    }
    for (line, (found, expected)) in page.lines().zip(right.lines()).enumerate() {
        assert_eq!(
            found,
            expected,
            "docs/use/scenario.md:{}; TACIT_WRITE_DOCS=1 cargo test -p tacit-scenario the_page writes it",
            line + 1
        );
    }
    assert_eq!(page.len(), right.len());
}

#[test]
fn only_tables_of_keys_are_written() {
    let page = "# Page\n\n| kind | written |\n|---|---|\n| a | b |\n\n### `[compare]`\n\nWords.\n\n\
                | key | default |\n|---|---|\n| old | row |\n\nMore.\n";
    let expected = format!(
        "# Page\n\n| kind | written |\n|---|---|\n| a | b |\n\n### `[compare]`\n\nWords.\n\n{}\nMore.\n",
        markdown("compare")
    );
    assert_eq!(with_tables(page), expected);
}
