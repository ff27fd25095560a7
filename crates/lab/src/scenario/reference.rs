//! What each key of a scenario means: the tables of `docs/use/scenario.md`, which the program carries, so that
//! there is one description of a key and not two.

use std::sync::OnceLock;

const PAGE: &str = include_str!("../../../../docs/use/scenario.md");

/// A row of a table: one key, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The table: `wifi`, `client`; empty at the top of a scenario; a heading without brackets describes tables
    /// that stand in place of a value.
    pub table: String,
    /// The keys in it.
    pub keys: Vec<String>,
    /// The default as the page has it; literal ones in TOML.
    pub default: String,
    /// True for a default that can be written in a scenario as it stands.
    pub literal: bool,
    /// What is allowed.
    pub allowed: String,
    /// What it means.
    pub meaning: String,
}

/// Name of the table that describes queues written as tables.
pub(super) const QUEUE_TABLE: &str = "Queue disciplines";

/// Every row of the page.
pub(super) fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| parse(PAGE))
}

fn parse(page: &str) -> Vec<Row> {
    let mut table = None;
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("##") {
            let heading = heading.trim_start_matches('#').trim();
            let bracketed = heading.strip_prefix("`[").and_then(|rest| rest.strip_suffix("]`"));
            table = Some(match (bracketed, heading) {
                (Some(name), _) => name.trim_matches(['[', ']']).to_owned(),
                (None, "At the top") => String::new(),
                (None, other) => other.to_owned(),
            });
        }
        let (Some(table), Some(cells)) = (&table, cells(line)) else { continue };
        let [keys, default, allowed, meaning] = &cells[..] else { continue };
        let names: Vec<String> =
            keys.split('`').skip(1).step_by(2).filter(|key| !key.contains('[')).map(str::to_owned).collect();
        if names.is_empty() {
            continue;
        }
        let bare = default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        let literal = bare.filter(|bare| !bare.contains('`'));
        let number = !default.is_empty() && default.bytes().all(|octet| octet.is_ascii_digit());
        rows.push(Row {
            table: table.clone(),
            keys: names,
            literal: literal.is_some() || number,
            default: plain(literal.unwrap_or(default)),
            allowed: plain(allowed),
            meaning: plain(meaning),
        });
    }
    rows
}

/// The cells of a table's line.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Markdown as plain text: no code marks, emphasis or addresses of links.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((label, tail)) = after.split_once("](") else { break };
        let Some((_, tail)) = tail.split_once(')') else { break };
        text.push_str(before);
        text.push_str(label);
        rest = tail;
    }
    text.push_str(rest);
    text.replace(['`', '*'], "")
}

/// The row that describes `path`, such as `wifi.rate` or `client[2].rate`. What `[[flow]]` and `[[hop]]` do not
/// describe themselves is as in the tables they differ from; `down` and `up` of a link have its keys; any other
/// table in place of a value has a table of its own, or is described by the value.
pub(super) fn find(path: &str) -> Option<&'static Row> {
    let parts: Vec<&str> = path.split('.').collect();
    let (table, key) = match parts[..] {
        [key] => ("", key),
        [_, queue, key] if queue.ends_with("-queue") => (QUEUE_TABLE, key),
        [table, "down" | "up", key, ..] | [table, key, ..] => (table.split('[').next().unwrap_or(table), key),
        [] => return None,
    };
    let others: &[&str] = match table {
        "flow" => &["traffic"],
        "hop" => &["wired", "cellular"],
        _ => &[],
    };
    let in_table = |table: &str| {
        let row = |row: &&Row| row.table == table && row.keys.iter().any(|known| known == key);
        rows().iter().find(row)
    };
    std::iter::once(table).chain(others.iter().copied()).find_map(in_table)
}

/// The default of `path`; of a key that is "as in" another table, that table's.
pub(super) fn default_of(path: &str) -> String {
    let Some(row) = find(path) else { return String::new() };
    let other = row.allowed.strip_prefix("as in [").and_then(|rest| rest.strip_suffix(']'));
    let key = path.rsplit('.').next().unwrap_or(path);
    let there = other.filter(|_| row.default.is_empty()).and_then(|table| find(&format!("{table}.{key}")));
    there.unwrap_or(row).default.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_described_twice() {
        let mut keys: Vec<(&str, &str)> =
            rows().iter().flat_map(|row| row.keys.iter().map(|key| (&*row.table, &**key))).collect();
        keys.sort_unstable();
        let twice: Vec<_> = keys.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert_eq!(twice, [] as [&[(&str, &str)]; 0]);
    }

    #[test]
    fn tables_are_read_as_they_are_written() {
        let page = "### `[tcp]`\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n\
                    | `a`, `b` | `\"4 MiB\"` | a [size](x.md) | of *both* |\n| `c` | none | | `d` |\n\
                    ### `[[client]]`\n| `e` | 3 | flag | more |\n";
        let row = |table: &str, keys: &[&str], default: &str, literal, allowed: &str, meaning: &str| Row {
            table: table.into(),
            keys: keys.iter().map(|&key| key.into()).collect(),
            default: default.into(),
            literal,
            allowed: allowed.into(),
            meaning: meaning.into(),
        };
        let expected = [
            row("tcp", &["a", "b"], "\"4 MiB\"", true, "a size", "of both"),
            row("tcp", &["c"], "none", false, "", "d"),
            row("client", &["e"], "3", true, "flag", "more"),
        ];
        assert_eq!(parse(page), expected);
    }
}
