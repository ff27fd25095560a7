//! Outcomes of all figures, as a page of Markdown: written by runs, not by hand.

use std::fmt::Write as _;

use super::claim::Range;
use super::{ClaimOutcome, Figure, FigureOutcome, MeasuredTable, Tally, Verdict};
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, Tree, text};

/// The figures that have no file yet.
const LATER: &str = include_str!("../../../figures/later.toml");
const LATER_PATH: &str = "figures/later.toml";

/// Headings by the start of ids, in the order of the page.
const SECTIONS: [(&str, &str); 6] = [
    ("hack", "HACK (USENIX ATC 2014)"),
    ("tack", "TACK (SIGCOMM 2020)"),
    ("rre", "TCP-RRE (ICNP 2013)"),
    ("fwp", "FWP"),
    ("baselines", "What thins ACKs already"),
    ("validation", "Against closed forms and ns-3"),
];

/// The heading of those whose numbers other versions measured.
const EARLIER: &str = "Measured by other versions";

/// In their table, the row of all figures that it does not name.
const OTHERS: &str = "all others";

/// A version that results do not name.
const UNNAMED: &str = "a version that its results do not name";

/// Between the measured value and its range.
const WITHIN: &str = ", within ";

/// The verdict of a row of a table.
const TABLE: &str = "table";

/// The verdict of a figure that was not made, before the reason.
const NOT_MADE: &str = "not made";

/// A figure that has no file yet.
struct PlannedFigure {
    id: String,
    claim: String,
}

/// A page with a row for every claim of `figures` and its verdict, in the same order `outcomes`, and one for every figure
/// that has no file yet. A figure that could not be made takes the values measured in `before`, the page as it was, and is
/// judged by its file as it is now.
///
/// # Errors
/// Where the list of figures without a file says something that is not allowed.
pub fn summary(
    figures: &[Figure],
    outcomes: &[FigureOutcome],
    before: Option<&str>,
) -> Result<String, InputError> {
    let before = before.map(Page::read).unwrap_or_default();
    let result = |(figure, outcome)| before.judged_again(figure, outcome);
    let outcomes: Vec<FigureOutcome> = figures.iter().zip(outcomes).map(result).collect();
    page(&outcomes, &later()?)
}

fn page(outcomes: &[FigureOutcome], later: &[PlannedFigure]) -> Result<String, InputError> {
    let mut page = format!(
        "# Figures and tables of the papers\n\n\
         Written by `tacit figure --all --summary docs/validation/papers.md` from whole runs, by tacit {}; text typed\n\
         here is lost. Each row is a claim of a figure file: the statement of the paper (or of another source), with the\n\
         tolerance of the file, and the measured value. Behind the least or largest of a grid stands its place, with the\n\
         95 % interval of the median over the seeds. A claim that is *missed* stays, with its reason and the range in\n\
         which it is missed: beyond that range it fails, on either side. *Kept* are regression bounds: ranges that were\n\
         measured here before, which reproduce nothing. Rows of a *table* have no verdict; in brackets is the paper's\n\
         number. *Later* figures have no file yet (`{LATER_PATH}`).\n\n{}.\n",
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
    page.push_str(&earlier(outcomes));
    Ok(page)
}

/// Which figures another version measured. The version that measured most of all is told once, behind the exceptions.
fn earlier(outcomes: &[FigureOutcome]) -> String {
    let measured: Vec<(&str, String)> = outcomes
        .iter()
        .filter(|outcome| outcome.skipped.is_none())
        .map(|outcome| (outcome.id.as_str(), outcome.made_by.join(", ")))
        .collect();
    let count = |version: &str| measured.iter().filter(|(_, by)| by == version).count();
    let most = measured.iter().map(|(_, by)| by.as_str()).find(|version| count(version) * 2 > measured.len());
    let most = most.unwrap_or(tacit_runs::VERSION);
    let row = |id: &str, by: &str| match by {
        "" => format!("| {id} | {UNNAMED} |\n"),
        by => format!("| {id} | {} |\n", cell(by)),
    };
    let mut rows: Vec<String> =
        measured.iter().filter(|(_, by)| by != most).map(|(id, by)| row(id, by)).collect();
    if most != tacit_runs::VERSION {
        rows.push(row(OTHERS, most));
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n## {EARLIER}\n\nTheir claims are judged by their files as they are now.\n\n| figure | by tacit |\n|---|---|\n{}",
        rows.concat()
    )
}

fn rows(page: &mut String, outcome: &FigureOutcome) {
    let mut rows = Vec::new();
    if let Some(reason) = &outcome.skipped {
        rows.push(format!("{} | | | {NOT_MADE}: {}", cell(&outcome.title), cell(reason)));
    }
    rows.extend(outcome.claims.iter().map(row));
    rows.extend(outcome.table.iter().flat_map(table_rows));
    if rows.is_empty() {
        rows.push(format!("{} | | | picture", cell(&outcome.title)));
    }
    for (index, row) in rows.iter().enumerate() {
        // The first row of a figure names it.
        let id = if index == 0 { outcome.id.as_str() } else { "" };
        let _ = writeln!(page, "| {id} | {row} |");
    }
}

fn row(claim: &ClaimOutcome) -> String {
    let reason = claim.reason().map_or_else(String::new, |reason| format!("; {}", cell(&reason)));
    let within = match (claim.verdict, claim.range) {
        (Verdict::Missed, Some(range)) => format!("{WITHIN}{range}"),
        _ => String::new(),
    };
    format!(
        "{}{reason} | {} {} {} | {}{within} | {}",
        cell(&claim.text),
        claim.source,
        claim.said,
        claim.unit,
        claim.measured_words(),
        claim.verdict.word(),
    )
}

fn table_rows(table: &MeasuredTable) -> Vec<String> {
    let row = |(name, cells): (&str, Vec<String>)| {
        let named = table.columns.iter().zip(cells).filter(|(_, cell)| cell != MeasuredTable::NOTHING);
        let cells: Vec<String> = named.map(|(column, cell)| format!("{column}: {cell}")).collect();
        format!("{} | | {} | {TABLE}", cell(name), cell(&cells.join("; ")))
    };
    table.texts().map(row).collect()
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A page as it was written.
#[derive(Debug, Default)]
struct Page {
    rows: Vec<Row>,
    /// By figure: which version measured it, where that is not the version that wrote the page.
    earlier: Vec<(String, String)>,
    /// The version that wrote it.
    version: String,
}

/// A row of it.
#[derive(Debug)]
struct Row {
    id: String,
    claim: String,
    said: String,
    measured: String,
    verdict: String,
}

impl Row {
    /// The measured number.
    fn number(&self) -> Option<f64> {
        // A median's interval and place follow in brackets.
        let number = self.measured.split(WITHIN).next()?.split(" (").next()?;
        number.replace(',', "").parse().ok()
    }

    /// The parts in brackets behind the number: a median's interval, and its place.
    fn details(&self) -> impl Iterator<Item = &str> {
        let measured = self.measured.split(WITHIN).next().unwrap_or_default();
        let inside = measured.split_once(" (").and_then(|(_, inside)| inside.strip_suffix(')'));
        inside.into_iter().flat_map(|inside| inside.split(", "))
    }

    /// The place in a grid at which it was measured.
    fn place(&self) -> Option<f64> {
        self.details().find_map(|detail| detail.strip_prefix("at "))?.replace(',', "").parse().ok()
    }

    /// The 95 % interval of the median.
    fn interval(&self) -> Option<Range> {
        let (low, high) =
            self.details().find_map(|detail| detail.strip_prefix("95 %: "))?.split_once(" to ")?;
        let [low, high] = [low, high].map(|bound| bound.replace(',', "").parse().ok());
        Some(Range { low: low?, high: high? })
    }

    /// Whether it is about the claim of this text, which the reason follows.
    fn is_about(&self, text: &str) -> bool {
        self.claim.strip_prefix(&cell(text)).is_some_and(|rest| rest.is_empty() || rest.starts_with("; "))
    }
}

impl Page {
    fn read(page: &str) -> Self {
        let mut read = Self::default();
        let mut of_earlier = false;
        let by = |line: &str| Some(line.split_once("by tacit ")?.1.split_once(';')?.0.to_owned());
        read.version = page.lines().find_map(by).unwrap_or_default();
        for line in page.lines() {
            of_earlier = if line.starts_with("## ") { line.ends_with(EARLIER) } else { of_earlier };
            let cells = cells(line);
            match &cells[..] {
                [id, versions] if of_earlier => read.earlier.push((id.clone(), versions.clone())),
                [id, claim, said, measured, verdict] if !verdict.is_empty() && !verdict.starts_with("--") => {
                    let last = read.rows.last().map(|row: &Row| row.id.clone());
                    let id = if id.is_empty() { last.unwrap_or_default() } else { id.clone() };
                    let [claim, said, measured, verdict] = [claim, said, measured, verdict].map(Clone::clone);
                    read.rows.push(Row { id, claim, said, measured, verdict });
                }
                _ => {}
            }
        }
        read
    }

    /// The outcome of a figure that could not be made, with the values measured on this page.
    fn judged_again(&self, figure: &Figure, outcome: &FigureOutcome) -> FigureOutcome {
        let mut outcome = outcome.clone();
        let rows = || self.rows.iter().filter(|row| row.id == figure.id);
        if outcome.skipped.is_none() || !rows().any(|row| row.number().is_some()) {
            return outcome;
        }
        let judge = |claim: &super::figure::Claim| {
            // A number in another unit is of another claim.
            let is_same = |row: &&Row| row.is_about(&claim.text) && row.said.ends_with(&cell(&claim.unit));
            let row = rows().find(is_same);
            let mut result = claim.judge(row.and_then(Row::number), None, false);
            (result.at, result.interval) = (row.and_then(Row::place), row.and_then(Row::interval));
            if let Some(row) = row.filter(|row| row.verdict == Verdict::Skipped.word()) {
                let reason = row.claim[cell(&claim.text).len()..].trim_start_matches("; ");
                result.skip(reason.replace("\\|", "|"));
            }
            result
        };
        outcome.claims = figure.claims.iter().map(judge).collect();
        let recorded = |row: &str, column: &str| {
            let row = rows().find(|known| known.verdict == TABLE && known.claim == cell(row))?;
            let column = format!("{}: ", cell(column));
            let number = row.measured.split("; ").find_map(|cell| cell.strip_prefix(&column))?;
            number.split(" (").next()?.replace(',', "").parse().ok()
        };
        outcome.table = figure.table.as_ref().map(|table| table.recorded(recorded));
        outcome.skipped = None;
        let named = |id: &str| self.earlier.iter().find(|(named, _)| named == id);
        let version =
            named(&figure.id).or_else(|| named(OTHERS)).map_or(&self.version, |(_, version)| version);
        outcome.made_by = vec![version.clone()];
        outcome
    }
}

/// The cells of a row of a Markdown table, with escapes as they are written; none of other lines.
fn cells(line: &str) -> Vec<String> {
    let Some(inner) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
        return Vec::new();
    };
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for letter in inner.chars() {
        match (letter, cells.last_mut()) {
            ('|', _) if !escaped => cells.push(String::new()),
            (letter, Some(cell)) => cell.push(letter),
            (_, None) => {}
        }
        escaped = letter == '\\';
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn later() -> Result<Vec<PlannedFigure>, InputError> {
    let tree = Tree::parse(LATER_PATH, LATER)?;
    let root = Section::root(LATER_PATH, &tree);
    let read = |section: Section<'_>| {
        let figure =
            PlannedFigure { id: section.required("id", text)?, claim: section.required("claim", text)? };
        section.finish()?;
        Ok(figure)
    };
    let figures = root.sections("figure")?.into_iter().map(read).collect::<Result<_, InputError>>()?;
    root.finish()?;
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;
    use crate::claim::Origin;
    use crate::{Bound, all};

    fn committed() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation/papers.md");
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_committed_page_has_every_figure_and_those_to_come() {
        let page = Page::read(&committed());
        let figures = all().unwrap();
        let named = |id: &str| page.rows.iter().any(|row| row.id == id);
        for figure in &figures {
            assert!(named(&figure.id), "{} is not in papers.md: write it anew", figure.id);
        }
        let later = later().unwrap();
        for figure in &later {
            assert!(named(&figure.id) && !figures.iter().any(|made| made.id == figure.id), "{}", figure.id);
            assert!(SECTIONS.iter().any(|(prefix, _)| figure.id.starts_with(prefix)), "{}", figure.id);
        }
        for row in &page.rows {
            let known = figures.iter().map(|figure| &figure.id).chain(later.iter().map(|figure| &figure.id));
            assert!(known.into_iter().any(|id| *id == row.id), "{} of papers.md is no figure", row.id);
        }
    }

    /// Measured values are printed with four digits: claims are judged by these here. Values of another version stay as
    /// they were printed, their interval and place included.
    #[test]
    fn rows_keep_what_stands_behind_their_number() {
        let page = "# p\n\n| f/g | text | goal >= 2  | 2,396 (95 %: 2,376 to 2,478.5, at 1,020), within 2 to 3,000 | missed |\n";
        let row = &Page::read(page).rows[0];
        assert_eq!((row.number(), row.place()), (Some(2396.0), Some(1020.0)));
        assert_eq!(row.interval(), Some(Range { low: 2376.0, high: 2478.5 }));
        let plain = "# p\n\n| f/g | text | goal >= 2  | 0.5 (at 3) | pass |\n";
        let row = &Page::read(plain).rows[0];
        assert_eq!((row.number(), row.place(), row.interval()), (Some(0.5), Some(3.0), None));
    }

    #[test]
    fn rows_of_the_committed_page_are_the_claims_of_the_files_and_their_verdicts_follow() {
        let page = Page::read(&committed());
        for figure in all().unwrap() {
            let rows: Vec<&Row> =
                page.rows.iter().filter(|row| row.id == figure.id && row.verdict != TABLE).collect();
            if rows.iter().all(|row| row.verdict.starts_with(NOT_MADE)) {
                continue;
            }
            assert_eq!(rows.len(), figure.claims.len(), "{}: write papers.md anew", figure.id);
            for (row, claim) in rows.iter().zip(&figure.claims) {
                let place = format!("{}, {:?}: write papers.md anew", figure.id, claim.text);
                let result = claim.judge(row.number(), None, false);
                assert!(row.is_about(&claim.text), "{place}: {row:?}");
                let said = format!("{} {} {}", result.source, result.said, result.unit);
                assert_eq!(row.said, cell(said.trim()), "{place}");
                if row.verdict != Verdict::Skipped.word() {
                    assert_eq!(row.verdict, result.verdict.word(), "{place}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn the_committed_page_counts_its_own_rows_and_is_of_one_commit() {
        let text = committed();
        let page = Page::read(&text);
        let count = |word: &str| page.rows.iter().filter(|row| row.verdict == word).count();
        let of = |origin: Origin| {
            let rows = || page.rows.iter().filter(|row| Origin::of(&row.said) == origin);
            Counts {
                passed: rows().filter(|row| row.verdict == Verdict::Pass.word()).count(),
                missed: rows().filter(|row| row.verdict == Verdict::Missed.word()).count(),
            }
        };
        let tally = Tally {
            papers: of(Origin::Paper),
            goals: of(Origin::Goal),
            others: of(Origin::Other),
            kept: count(Verdict::Kept.word()),
            skipped: count(Verdict::Skipped.word()),
            failed: count(Verdict::Fail.word()),
            rows: count(TABLE),
            figures_skipped: page.rows.iter().filter(|row| row.verdict.starts_with(NOT_MADE)).count(),
            ..Tally::default()
        };
        assert!(text.contains(&format!("\n{tally}.\n")), "papers.md counts otherwise than its rows: {tally}");
        assert_eq!(count(Verdict::Fail.word()), 0, "a claim of papers.md fails");
        let readme =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
        for (counts, whose) in [(tally.papers, "of the papers"), (tally.goals, "goals of tacit's own")] {
            let sentence = format!("{} {whose} pass, {} are missed", counts.passed, counts.missed);
            assert!(readme.contains(&sentence), "README.md does not say that {sentence}");
        }
        let version = &page.version;
        assert!(version.contains(" (") && !version.contains("modified"), "papers.md is of {version:?}");
    }

    const FIGURE: &str = "\
title = \"t\"
paper = \"p\"
[theory]
figure = \"hack/fig1a\"
[[claim]]
text = \"a|b\"
paper = 4.36
unit = \"B\"
bound = \"at-most\"
tolerance = 0
deviation = \"why\"
measured = [20, 25]
measure = { value = \"TCP\", x = 54 }
[[claim]]
text = \"as it was\"
regression = [23.5, 24.5]
measure = { value = \"TCP\", x = 54 }
[table]
columns = [\"here\", \"printed\"]
[[table.row]]
name = \"54 Mb/s\"
cells = [{ paper = 30.2, measure = { value = \"UDP\", x = 54 } }, {}]
";

    fn made() -> (Figure, FigureOutcome) {
        let figure = Figure::parse("hack/test", "test.toml", FIGURE).unwrap();
        let outcomes = crate::run(
            std::slice::from_ref(&figure),
            &crate::Options::default(),
            tacit_runs::sweep::Control::unattended(),
        );
        (figure, outcomes.unwrap().remove(0))
    }

    #[test]
    fn a_row_says_who_claims_what_and_why_it_is_missed() {
        let (figure, outcome) = made();
        let text = summary(&[figure], &[outcome], None).unwrap();
        for row in [
            "| hack/test | a\\|b; why | paper <= 4.36 B | 23.92, within 20 to 25 | missed |",
            "|  | as it was | regression 23.5 to 24.5  | 23.92 | kept |",
            "|  | 54 Mb/s | | here: 29.93 (30.2) | table |",
        ] {
            assert!(text.lines().any(|line| line == row), "{row}: {text}");
        }
        assert!(text.contains("claims of the papers: 0 passed, 1 missed for a reason given"), "{text}");
        assert!(text.contains("; 1 regression bounds kept; 1 rows of tables"), "{text}");
        assert!(!text.contains(EARLIER));
    }

    /// The page was written by an older version, and this machine cannot make the figure.
    #[test]
    fn a_figure_that_cannot_be_made_is_judged_by_its_last_measurement() {
        let (figure, outcome) = made();
        let figures = [figure];
        let before = summary(&figures, std::slice::from_ref(&outcome), None)
            .unwrap()
            .replace(tacit_runs::VERSION, "0.1 (old)");
        let cannot =
            FigureOutcome { skipped: Some("no root".into()), claims: Vec::new(), table: None, ..outcome };
        let text = summary(&figures, std::slice::from_ref(&cannot), Some(&before)).unwrap();
        assert!(text.contains("why | paper <= 4.36 B | 23.92, within 20 to 25 | missed |"), "{text}");
        assert!(text.contains("| all others | 0.1 (old) |"), "{text}");
        assert!(text.contains("|  | 54 Mb/s | | here: 29.93 (30.2) | table |"), "{text}");
        // The file has changed since: the measured value is outside now.
        let changed = FIGURE.replace("[20, 25]", "[20, 22]");
        let changed = [Figure::parse("hack/test", "test.toml", &changed).unwrap()];
        let text = summary(&changed, std::slice::from_ref(&cannot), Some(&text)).unwrap();
        assert!(text.contains("| 23.92 | FAIL |") && text.contains("| all others | 0.1 (old) |"), "{text}");
        let text = summary(&figures, &[cannot], None).unwrap();
        assert!(text.contains("| hack/test | t | | | not made: no root |"), "{text}");
    }

    #[test]
    fn the_version_that_measured_most_is_told_once() {
        let (_, outcome) = made();
        let by = |id: &str, version: &str| FigureOutcome {
            id: id.into(),
            made_by: vec![version.into()],
            ..outcome.clone()
        };
        let outcomes =
            [by("hack/a", "0.1 (old)"), by("hack/b", tacit_runs::VERSION), by("hack/c", "0.1 (old)")];
        let text = page(&outcomes, &[]).unwrap();
        let table = format!("|---|---|\n| hack/b | {} |\n| all others | 0.1 (old) |\n", tacit_runs::VERSION);
        assert!(text.ends_with(&table), "{text}");
        // And so it is read.
        for outcome in &outcomes {
            let figure = Figure::parse(&outcome.id, "test.toml", FIGURE).unwrap();
            let cannot = FigureOutcome { skipped: Some("no root".into()), ..outcome.clone() };
            assert_eq!(Page::read(&text).judged_again(&figure, &cannot).made_by, outcome.made_by);
        }
    }

    #[test]
    fn a_skipped_claim_stays_skipped_with_its_reason() {
        let (figure, mut outcome) = made();
        outcome.claims[0].skip("busy | late".into());
        let figures = [figure];
        let before = summary(&figures, &[outcome.clone()], None).unwrap();
        let cannot = FigureOutcome { skipped: Some("no root".into()), claims: Vec::new(), ..outcome };
        let again = Page::read(&before).judged_again(&figures[0], &cannot);
        assert_eq!(again.claims[0].reason().as_deref(), Some("busy | late"));
        assert_eq!(again.claims[0].bound, Some(Bound::AtMost));
    }
}
