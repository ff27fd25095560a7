//! Generates the lists of keys in `docs/use/scenario.md`, and tests that the page contains them.

use std::fmt::Write as _;

use super::{Row, rows};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/use/scenario.md");

/// The tables of a scenario in the order of the page, with their headings.
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

/// Replaces the first list under each heading of a table in `page` by the generated one, and leaves the other text
/// unchanged.
fn with_lists(page: &str) -> String {
    let mut text = String::new();
    let mut table = None;
    let mut in_list = false;
    for line in page.lines() {
        if line.starts_with('#') {
            table = HEADINGS.iter().find(|(_, heading)| *heading == line).map(|(table, _)| *table);
        }
        let is_item = line.starts_with("* `");
        in_list &= is_item;
        if in_list {
            continue;
        }
        if is_item && let Some(table) = table.take() {
            text.push_str(&markdown(table));
            in_list = true;
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The list of keys for `table`. Keys with the same description share an item.
fn markdown(table: &str) -> String {
    let mut items: Vec<(Vec<String>, String)> = Vec::new();
    for row in rows().iter().filter(|row| row.table == table) {
        let wired = Row { table: "wired", ..row.clone() };
        let rest = if table == "cellular" && rows().contains(&wired) {
            ": as in `[wired]`".to_owned()
        } else {
            format!(" ({}{}): {}", allowed_of(row), default_of(row), row.meaning)
        };
        let name = format!("`{}`", row.name);
        match items.last_mut().filter(|(_, last)| *last == rest) {
            Some((names, _)) => names.push(name),
            None => items.push((vec![name], rest)),
        }
    }
    let mut text = String::new();
    for (names, rest) in items {
        let _ = writeln!(text, "* {}{rest}", names.join(", "));
    }
    text
}

/// The allowed values. "Up to 60 min" is the limit of every duration, which the table of values has.
fn allowed_of(row: &Row) -> &str {
    if row.allowed == "up to 60 min" { "duration" } else { &row.allowed }
}

/// The default behind the allowed values, and a semicolon; literal ones are code, except for plain numbers.
/// Nothing if both are said alike.
fn default_of(row: &Row) -> String {
    let is_number = row.default.bytes().all(|byte| byte.is_ascii_digit());
    if row.default == row.allowed {
        String::new()
    } else if row.default.is_empty() || row.default.starts_with("required") {
        let separator = if row.default.is_empty() { "" } else { "; " };
        format!("{separator}{}", row.default)
    } else if row.literal && !is_number {
        format!("; `{}`", row.default)
    } else {
        format!("; {}", row.default)
    }
}

#[test]
fn the_page_says_what_the_keys_say() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let right = with_lists(&page);
    for (table, heading) in HEADINGS {
        assert!(right.contains(&format!("\n{heading}\n")), "the page has no {heading}");
        assert!(right.contains(&markdown(table)), "the page has no list of keys under {heading}");
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
fn only_lists_of_keys_are_written() {
    let page =
        "# Page\n\n* `a`: b\n\n### `[compare]`\n\nWords.\n\n* `old`: item\n* `older`: item\n\n* `c`: d\n";
    let expected =
        format!("# Page\n\n* `a`: b\n\n### `[compare]`\n\nWords.\n\n{}\n* `c`: d\n", markdown("compare"));
    assert_eq!(with_lists(page), expected);
}
