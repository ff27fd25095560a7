//! What became of every figure, as a page of Markdown: written by runs, not by hand.

use std::fmt::Write as _;

use super::{ClaimOutcome, Outcome, Tally, value};
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, Tree, text};

/// The figures that have no file yet.
const LATER: &str = include_str!("../../../../figures/later.toml");
const LATER_PATH: &str = "figures/later.toml";

/// Headings by what ids begin with, in the order of the page.
const SECTIONS: [(&str, &str); 6] = [
    ("hack", "HACK (USENIX ATC 2014)"),
    ("tack", "TACK (SIGCOMM 2020)"),
    ("rre", "TCP-RRE (ICNP 2013)"),
    ("fwp", "FWP"),
    ("baselines", "What thins ACKs already"),
    ("validation", "Against closed forms and ns-3"),
];

/// A figure that has no file yet.
struct Later {
    id: String,
    claim: String,
}

/// A page with a row for every claim of `outcomes`, and one for every figure that has no file yet.
///
/// # Errors
/// Where the list of those says something that is not allowed.
pub fn summary(outcomes: &[Outcome]) -> Result<String, InputError> {
    let later = later()?;
    let mut page = format!(
        "# Figures and tables of the papers\n\n\
         Written by `tacit figure --all --summary docs/validation/papers.md` from full runs, by tacit {}; what is typed\n\
         here is lost. Each row is a claim of a figure file: what the paper (or who else) says, with the tolerance of the\n\
         file, and what was measured. A claim that is missed stays, with its reason. *Later* figures have no file yet\n\
         (`{LATER_PATH}`).\n\n{}.\n",
        tacit_runs::VERSION,
        Tally::of(outcomes),
    );
    for (prefix, heading) in SECTIONS {
        let in_section = |id: &str| id.split('/').next() == Some(prefix);
        let _ =
            write!(page, "\n## {heading}\n\n| figure | claim | said | measured | |\n|---|---|---|---|---|\n");
        outcomes
            .iter()
            .filter(|outcome| in_section(&outcome.id))
            .for_each(|outcome| rows(&mut page, outcome));
        for figure in later.iter().filter(|figure| in_section(&figure.id)) {
            let _ = writeln!(page, "| {} | {} | | | later |", figure.id, cell(&figure.claim));
        }
    }
    Ok(page)
}

fn rows(page: &mut String, outcome: &Outcome) {
    if let Some(reason) = &outcome.skipped {
        let _ =
            writeln!(page, "| {} | {} | | | not made: {} |", outcome.id, cell(&outcome.title), cell(reason));
    }
    for (index, claim) in outcome.claims.iter().enumerate() {
        // The first row of a figure names it.
        let id = if index == 0 { outcome.id.as_str() } else { "" };
        let _ = writeln!(page, "| {id} | {} |", row(claim));
    }
}

fn row(claim: &ClaimOutcome) -> String {
    let reason = match claim.reason() {
        Some(reason) if !claim.pass => format!("; {}", cell(reason)),
        _ => String::new(),
    };
    format!(
        "{}{reason} | {} {} {} | {} | {}",
        cell(&claim.text),
        claim.source,
        claim.claimed(),
        claim.unit,
        claim.measured.map_or_else(|| "nothing".to_owned(), value),
        claim.verdict().word(),
    )
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn later() -> Result<Vec<Later>, InputError> {
    let tree = Tree::parse(LATER_PATH, LATER)?;
    let root = Section::root(LATER_PATH, &tree);
    let read = |section: Section<'_>| {
        let figure = Later { id: section.required("id", text)?, claim: section.required("claim", text)? };
        section.finish()?;
        Ok(figure)
    };
    let figures = root.sections("figure")?.into_iter().map(read).collect::<Result<_, InputError>>()?;
    root.finish()?;
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::super::library::ALL;
    use super::*;

    #[test]
    fn the_committed_page_has_every_figure_and_those_to_come() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation/papers.md");
        let page = std::fs::read_to_string(path).unwrap();
        let named = |id: &str| page.lines().any(|line| line.starts_with(&format!("| {id} |")));
        for bundled in ALL {
            assert!(named(bundled.id), "{} is not in papers.md: write it anew", bundled.id);
        }
        for figure in later().unwrap() {
            assert!(named(&figure.id) && !ALL.iter().any(|bundled| bundled.id == figure.id), "{}", figure.id);
            assert!(SECTIONS.iter().any(|(prefix, _)| figure.id.starts_with(prefix)), "{}", figure.id);
        }
    }

    #[test]
    fn a_row_says_who_claims_what_and_why_it_is_missed() {
        let claim = ClaimOutcome {
            text: "a|b".into(),
            paper: 4.36,
            source: "paper".into(),
            measured: Some(5.0),
            tolerance: 0.0,
            bound: super::super::Bound::AtMost,
            unit: "B".into(),
            pass: false,
            deviation: Some("why".into()),
            skipped: None,
        };
        assert_eq!(row(&claim), "a\\|b; why | paper <= 4.36 B | 5 | deviation");
    }
}
