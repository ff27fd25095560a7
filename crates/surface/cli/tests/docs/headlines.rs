//! Pages about the systems have a table of the conditions of their headline, generated from
//! `docs/validation/headlines.toml` and the numbers in `papers.md`.

use std::fmt::Write as _;
use std::fs;

use crate::features::{self, Table, tables, text};
use crate::markdown::check_table;
use crate::root;

/// The line of a page before its table.
const BEGIN: &str = "<!-- written by a test from docs/validation/headlines.toml -->\n";

/// The value of a figure's claim in papers.md with its interval; `None` if it was not measured.
fn measured(papers: &str, figure: &str, claim: &str) -> Option<String> {
    let mut current = "";
    for row in papers.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [id, text, _, number, _] = cells[..] else { continue };
        let id = id.trim_matches([' ', '|']);
        if !id.is_empty() {
            current = id;
        }
        let is_it = text.strip_prefix(claim).is_some_and(|rest| rest.is_empty() || rest.starts_with("; "));
        if current == figure && is_it {
            return Some(number.split(", within").next().unwrap_or(number).to_owned());
        }
    }
    None
}

fn table(system: &Table, papers: &str) -> String {
    let mut table = format!("\n| set-up | {} | claim of |\n|---|---|---|\n", text(system, "number"));
    for row in tables(system, "rows") {
        let (figure, claim) = (text(row, "figure"), text(row, "claim"));
        let number = measured(papers, figure, claim).unwrap_or_else(|| "not made yet".to_owned());
        let _ = writeln!(table, "| {} | {number} | `{figure}` |", text(row, "setting"));
    }
    table + "\n"
}

#[test]
fn the_page_of_each_system_says_what_its_headline_depends_on() {
    let papers = fs::read_to_string(root().join("docs/validation/papers.md")).unwrap();
    let headlines = features::table("docs/validation/headlines.toml");
    for system in tables(&headlines, "system") {
        check_table(&root().join(text(system, "page")), BEGIN, &table(system, &papers));
    }
}

/// Rows refer to claims that exist in the figures' files; otherwise their numbers would never appear.
#[test]
fn rows_of_headlines_are_claims_of_figures() {
    let headlines = features::table("docs/validation/headlines.toml");
    for row in tables(&headlines, "system").into_iter().flat_map(|system| tables(system, "rows")) {
        let (figure, claim) = (text(row, "figure"), text(row, "claim"));
        let file = fs::read_to_string(root().join(format!("figures/{figure}.toml"))).unwrap();
        assert!(file.contains(&format!("text = \"{claim}\"")), "{figure} has no claim {claim:?}");
    }
}

/// The README has the headline numbers of the pages.
#[test]
fn headlines_of_the_readme_are_those_of_the_pages() {
    let papers = fs::read_to_string(root().join("docs/validation/papers.md")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for system in tables(&features::table("docs/validation/headlines.toml"), "system") {
        let is_headline = |row: &&Table| row.get("headline").is_some();
        for row in tables(system, "rows").iter().filter(|row| is_headline(row)) {
            let number = measured(&papers, text(row, "figure"), text(row, "claim"));
            // Rounded as in the README: to one decimal, or two for factors.
            let Some(number) = number.and_then(|number| number.split(' ').next()?.parse::<f64>().ok()) else {
                continue;
            };
            let decimals = if text(system, "number").contains("times") { 2 } else { 1 };
            let expected = format!("{number:.decimals$}");
            assert!(
                readme.contains(&expected),
                "README.md does not say {expected}: {}",
                text(row, "setting")
            );
        }
    }
}
