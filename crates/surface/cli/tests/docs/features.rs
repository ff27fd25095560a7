//! `docs/validation/features.md` is generated from the table `features.toml` next to it, and the names in the table
//! exist.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use crate::root;

pub(super) const FEATURES: &str = "docs/validation/features.toml";

const HEAD: &str = "\
# Features and their tests

The features that tacit set out to have, each with the tests and figures that show it. The page is written from
[features.toml](features.toml). `cargo test -p PACKAGE NAME` runs a test, `tacit figure NAME` a figure; [papers.md](papers.md) has
the verdicts on its claims. *Partly* and *missing* name what is not there. Tests that *need* something are skipped without it.

";

/// Degree to which a feature is implemented.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Shown,
    Partly,
    Missing,
}

/// Keys of a feature.
const KEYS: [&str; 6] = ["what", "tests", "figures", "checks", "needs", "missing"];

/// Requirements of some tests, by their name in the table.
const NEEDS: [(&str, &str); 6] = [
    ("captures", "recorded captures"),
    ("live", "live hops"),
    ("ebpf", "root and eBPF"),
    ("ns-3", "libns3-dev"),
    ("tshark", "tshark"),
    ("python", "Python"),
];

pub(super) type Table = Map<String, Value>;

/// A table of `docs/`, at `path` in the project.
pub(super) fn table(path: &str) -> Table {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let table = DeTable::parse(&text).unwrap().into_inner();
    table.iter().map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref()))).collect()
}

/// Converts a value of the table. Only texts, lists and tables occur.
fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Array(list) => list.iter().map(|it| plain(it.get_ref())).collect(),
        DeValue::Table(table) => {
            let members =
                table.iter().map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref())));
            Value::Object(members.collect())
        }
        DeValue::Boolean(flag) => (*flag).into(),
        _ => panic!("{value:?} is no text, list, flag or table"),
    }
}

/// The tables in a list.
pub(super) fn tables<'a>(table: &'a Table, key: &str) -> Vec<&'a Table> {
    table[key].as_array().unwrap().iter().map(|it| it.as_object().unwrap()).collect()
}

/// The features in all groups.
fn features(table: &Table) -> Vec<&Table> {
    tables(table, "group").into_iter().flat_map(|group| tables(group, "feature")).collect()
}

/// The words in a list; none if the list does not exist.
fn words<'a>(feature: &'a Table, key: &str) -> Vec<&'a str> {
    let list = feature.get(key).and_then(Value::as_array);
    list.into_iter().flatten().map(|word| word.as_str().unwrap()).collect()
}

pub(super) fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table[key].as_str().unwrap()
}

fn state(feature: &Table) -> State {
    let is_shown = ["tests", "figures", "checks"].iter().any(|key| feature.contains_key(*key));
    match (is_shown, feature.contains_key("missing")) {
        (true, false) => State::Shown,
        (true, true) => State::Partly,
        (false, true) => State::Missing,
        (false, false) => panic!("{} is neither shown nor missing", feature["what"]),
    }
}

/// Figures with claims, according to docs/validation/papers.md.
fn claimed() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("docs/validation/papers.md")).unwrap();
    // The versions that measured the claims follow after them.
    let rows = page.lines().take_while(|line| !line.starts_with("## Measured by"));
    let rows = rows.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" |").next().unwrap_or_default().trim().to_owned()).collect()
}

/// The number of features of each state, in words.
pub(super) fn counted(table: &Table) -> String {
    let count = |wanted| features(table).iter().filter(|feature| state(feature) == wanted).count();
    let (shown, partly, missing) = (count(State::Shown), count(State::Partly), count(State::Missing));
    let all = features(table).len();
    format!("Of {all} features {shown} are shown, {partly} partly, {missing} are missing")
}

/// The page generated from the table.
fn page(table: &Table) -> String {
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "{}.", counted(table));
    for group in tables(table, "group") {
        let _ = writeln!(page, "\n## {}\n", text(group, "title"));
        for feature in tables(group, "feature") {
            let _ = writeln!(page, "* {}: {}", text(feature, "what"), shown_by(feature));
        }
    }
    page
}

/// What shows a feature, and what is missing of it.
fn shown_by(feature: &Table) -> String {
    let mut parts: Vec<String> = Vec::new();
    for test in words(feature, "tests") {
        let (file, name) = test.split_once(' ').unwrap();
        parts.push(format!("[`{name}`](../../{file})"));
    }
    let figures = words(feature, "figures").into_iter();
    parts.extend(figures.map(|figure| format!("[{figure}](../../figures/{figure}.toml)")));
    // A check that is not a test of a crate but a step of ci.sh.
    parts.extend(words(feature, "checks").iter().map(|step| format!("`./ci.sh {step}`")));
    if feature.contains_key("needs") {
        parts.push(format!("*needs* {}", needs(feature)));
    }
    if let Some(missing) = feature.get("missing") {
        let begin = if state(feature) == State::Partly { "*partly*" } else { "*missing*" };
        parts.push(format!("{begin}: {}", missing.as_str().unwrap()));
    }
    parts.join(", ")
}

/// The requirement of a feature's tests, in words.
fn needs(feature: &Table) -> &'static str {
    let needed = text(feature, "needs");
    let known = NEEDS.iter().find(|(name, _)| *name == needed);
    known.map(|(_, words)| *words).unwrap_or_else(|| panic!("{}: unknown need {needed}", feature["what"]))
}

#[test]
fn tests_that_are_skipped_elsewhere_say_so() {
    for feature in features(&table(FEATURES)) {
        let is_live =
            words(feature, "tests").iter().any(|test| test.starts_with("crates/surface/cli/tests/live/"));
        assert!(!is_live || feature.contains_key("needs"), "{} needs live hops", feature["what"]);
    }
}

#[test]
fn the_page_says_what_the_table_says() {
    let path = root().join("docs/validation/features.md");
    let right = page(&table(FEATURES));
    if std::env::var_os("TACIT_WRITE_DOCS").is_some() {
        fs::write(&path, right).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    for (line, (found, right)) in found.lines().zip(right.lines()).enumerate() {
        assert_eq!(found, right, "line {}; {WRITE}", line + 1);
    }
    assert_eq!(found.len(), right.len(), "{WRITE}");
}

const WRITE: &str =
    "TACIT_WRITE_DOCS=1 cargo test -p tacit --test docs the_page writes docs/validation/features.md";

#[test]
fn every_test_that_is_named_exists() {
    let table = table(FEATURES);
    let features = features(&table);
    let faults = not_there(features.iter().flat_map(|feature| words(feature, "tests")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Items in docs/validation/reports.md end in names of tests, each a link to its file.
#[test]
fn tests_that_reports_name_exist() {
    let page = fs::read_to_string(root().join("docs/validation/reports.md")).unwrap();
    let items: Vec<&str> = page.lines().filter(|line| line.starts_with("* ")).collect();
    assert!(items.len() > 30, "{} items", items.len());
    for item in items {
        let (_, shown_by) = item.rsplit_once(": ").unwrap_or_else(|| panic!("no test: {item}"));
        let tests: Vec<String> = shown_by.split(", ").map(linked_test).collect();
        let faults = not_there(tests.iter().map(String::as_str));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

/// The test of a link in docs/validation, as FILE NAME.
fn linked_test(link: &str) -> String {
    let inner = link.strip_prefix("[`").and_then(|link| link.strip_suffix(')'));
    let parts = inner.and_then(|inner| inner.split_once("`](../../"));
    let (name, file) = parts.unwrap_or_else(|| panic!("{link}: a link to a test is expected"));
    format!("{file} {name}")
}

/// Those of `tests` that do not exist. Each is given as FILE NAME.
fn not_there<'a>(tests: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut faults = Vec::new();
    for test in tests {
        let (file, name) = test.split_once(' ').unwrap_or_else(|| panic!("{test}: FILE NAME is expected"));
        let Ok(source) = fs::read_to_string(root().join(file)) else {
            faults.push(format!("{test}: no such file"));
            continue;
        };
        if !has_test(&source, name) {
            faults.push(format!("{test}: no such test there"));
        }
    }
    faults
}

/// Whether `source` has a test function with this name, for Rust's test harness or pytest.
fn has_test(source: &str, name: &str) -> bool {
    if name.starts_with("test_") && source.contains(&format!("\ndef {name}(")) {
        return true;
    }
    let lines: Vec<&str> = source.lines().collect();
    let is_it =
        |line: &&str| line.trim_start().trim_start_matches("async ").starts_with(&format!("fn {name}("));
    let Some(at) = lines.iter().position(is_it) else { return false };
    // Attributes and doc comments are directly above a function.
    let above = lines[..at].iter().rev().take_while(|line| {
        let line = line.trim_start();
        line.starts_with("#[") || line.starts_with("//") || line.starts_with(')') || line.starts_with(']')
    });
    above.clone().any(|line| line.contains("test]") || line.contains("test("))
}

#[test]
fn every_figure_that_is_named_has_claims() {
    let claimed = claimed();
    for figure in features(&table(FEATURES)).iter().flat_map(|feature| words(feature, "figures")) {
        assert!(root().join(format!("figures/{figure}.toml")).exists(), "there is no figure {figure}");
        assert!(claimed.contains(figure), "{figure} is not in docs/validation/papers.md");
    }
}

#[test]
fn every_step_that_is_named_is_one() {
    let script = fs::read_to_string(root().join("ci.sh")).unwrap();
    for step in features(&table(FEATURES)).iter().flat_map(|feature| words(feature, "checks")) {
        assert!(script.contains(&format!("\n  {step} ")), "ci.sh has no {step}");
    }
}

#[test]
fn nothing_else_is_said_of_a_feature() {
    let table = table(FEATURES);
    for feature in features(&table) {
        for key in feature.keys() {
            assert!(KEYS.contains(&key.as_str()), "{}: unknown key {key}", feature["what"]);
        }
        assert!(!text(feature, "what").contains('|'), "{}", feature["what"]);
    }
}

#[test]
fn a_helper_is_no_test() {
    let source = "#[test]\nfn a() {}\n\nfn b() {}\n\n#[test]\n/// Words.\n#[ignore]\n    fn c() {}\n";
    assert!(has_test(source, "a") && has_test(source, "c"));
    assert!(!has_test(source, "b") && !has_test(source, "d"));
    let source = "\ndef test_a() -> None:\n\ndef helper() -> None:\n";
    assert!(has_test(source, "test_a") && !has_test(source, "helper") && !has_test(source, "test_b"));
}
