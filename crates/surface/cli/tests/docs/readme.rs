//! What the README says of validation, Rust and licence is what other files say.

use std::fs;

use crate::features;
use crate::markdown::{self, check_table};
use crate::root;

/// The line of the README before the lines about validation.
const BEGIN: &str = "<!-- written by a test from docs/validation -->\n";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The text of `page` between `from` and the next `to`.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let rest = page.split_once(from).unwrap_or_else(|| panic!("no {from:?}")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to:?} behind {from:?}")).0
}

/// The numbers before "passed" and "missed" behind `marker` in papers.md's count.
fn passed_and_missed<'a>(papers: &'a str, marker: &str) -> (&'a str, &'a str) {
    let counts = between(papers, marker, ";");
    let (passed, rest) = counts.split_once(" passed, ").unwrap();
    (passed, rest.split_once(" missed").unwrap().0)
}

/// Differences of the measurements that papers.md has beside ns-3.
fn beside_ns3(papers: &str) -> String {
    let number =
        |cell: &str| cell.split_whitespace().next().unwrap().replace(',', "").parse::<f64>().unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split(" | ").collect();
        let reference = cells.get(2)?.strip_prefix("ns-3 ")?;
        Some((100.0 * (number(cells[3]) / number(reference) - 1.0)).abs())
    };
    let differences: Vec<f64> = papers.lines().filter_map(row).collect();
    let close = differences.iter().filter(|difference| **difference <= 3.0).count();
    let most = differences.iter().fold(0.0, |most: f64, difference| most.max(*difference));
    format!("within 3 % in {close} of {} measurements, within {most:.0} % in the others", differences.len())
}

#[test]
fn the_page_of_the_project_has_three_lines_of_validation() {
    let papers = read("docs/validation/papers.md");
    let (passed, missed) = passed_and_missed(&papers, "\nclaims of the papers: ");
    let (own_passed, own_missed) = passed_and_missed(&papers, "goals of tacit's own: ");
    let features = features::counted(&features::table(features::FEATURES));
    let held = read("docs/validation/README.md");
    // The second cell of a row.
    let agreement = |row: &str| between(&held, row, " | `").rsplit(" | ").next().unwrap().to_owned();
    let (bianchi, capacity) = (agreement("\n| [Bianchi's model]"), agreement("\n| [capacity model]"));
    let ns3 = beside_ns3(&papers);
    assert!(agreement("\n| [ns-3 ").starts_with(&ns3), "docs/validation/README.md does not say: {ns3}");
    let lines = format!(
        "\
* Claims: {passed} of the papers pass, {missed} are missed, each for a reason and within a range; {own_passed} goals of tacit's own pass, \
{own_missed} are missed ([every one](docs/validation/papers.md)).
* {features} ([each with its test](docs/validation/features.md)).
* Bianchi's saturation throughput {bianchi}, the capacity model {capacity}, ns-3 {ns3} ([how](docs/validation/README.md)).
"
    );
    check_table(&root().join("README.md"), BEGIN, &lines);
}

/// A stranger reads them in a terminal of 80 columns. Prose is wrapped by what shows it.
#[test]
fn commands_and_output_of_the_first_page_fit_80_columns() {
    let page = read("README.md");
    let all = markdown::blocks(&page);
    assert!(all.len() >= 3, "{} blocks", all.len());
    for line in all.iter().flat_map(|block| block.text.lines()) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn badges_are_true() {
    let (readme, cargo) = (read("README.md"), read("Cargo.toml"));
    let value = |key: &str| between(&cargo, &format!("\n{key} = \""), "\"");
    let rust = value("rust-version");
    assert!(readme.contains(&format!("/badge/Rust-{rust}_or_later-")), "the badge of Rust is not {rust}");
    let licence = value("license").replace('-', "--").replace(' ', "_");
    assert!(
        readme.contains(&format!("/badge/licence-{licence}-")),
        "the badge of the licence is not {licence}"
    );
    let workflow = between(&readme, "/actions/workflows/", "/badge.svg");
    assert!(root().join(".github/workflows").join(workflow).exists(), "no workflow {workflow}");
}

#[test]
fn the_citation_is_of_this_version() {
    let (citation, cargo) = (read("CITATION.cff"), read("Cargo.toml"));
    let value = |key: &str| between(&cargo, &format!("\n{key} = \""), "\"").to_owned();
    for needed in
        [format!("version: {}", value("version")), format!("repository-code: {}", value("repository"))]
    {
        assert!(citation.contains(&format!("\n{needed}\n")), "CITATION.cff does not say {needed}");
    }
    for licence in value("license").split(" OR ") {
        assert!(
            between(&citation, "\nlicense:", "\n\n").contains(licence),
            "CITATION.cff does not name {licence}"
        );
    }
    let changelog = read("CHANGELOG.md");
    let released = format!("## [{}] - {}", value("version"), between(&citation, "\ndate-released: ", "\n"));
    assert!(changelog.contains(&format!("\n{released}")), "CHANGELOG.md has no heading {released:?}");
}
