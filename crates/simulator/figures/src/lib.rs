//! The papers' figures: one small TOML file each, with the papers' claims about it.
//!
//! `docs/use/figure.md` describes the files. The kinds are: closed forms, sweeps with variants, time lines, series, and
//! transfers through live hops. A figure yields curves, tables or frames, and claims are numbers derived from these.

mod arms;
mod axis;
mod claim;
mod dependence;
mod downloads;
mod draw;
mod figure;
mod file;
mod kinds;
mod library;
mod live_runs;
mod measure;
mod metrics;
#[cfg(test)]
mod mock;
mod page;
mod plot_data;
mod results;
mod run;
mod saved;
mod schemes;
mod series;
mod shell_hop;
mod summary;
mod sweep;
mod swept;
mod table;
mod theory_and_sweep;
mod timeline;
mod transferred;
mod transfers;
mod variant;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use claim::Origin;
pub use claim::{Bound, ClaimOutcome, Range, Verdict};
pub use dependence::{Dependence, DependenceCell, DependenceRow};
pub use figure::Figure;
pub use live_runs::{Download, GoodputSource, LiveRuns, MakeLive, TransferReport, TransferRun};
pub use measure::{Curve, Measure};
pub use results::Options;
pub use run::run;
pub use shell_hop::ShellHop;
pub use summary::summary;
pub use table::{MeasuredCell, MeasuredRow, MeasuredTable};

use tacit_runs::RunsError;
use tacit_scenario::input::{did_you_mean, few};
use tacit_scenario::table::{TextTable, count, hanging, number};
use tacit_scenario::{InputError, bounded};

/// Outcome of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureOutcome {
    /// Paper and figure.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its source, if it reproduces something.
    pub paper: Option<String>,
    /// Notes that a reader needs to assess it.
    pub note: Option<String>,
    /// The paper's table with measured values, if it has one.
    pub table: Option<MeasuredTable>,
    /// The dependence of its result on variants, if it has any.
    pub depends: Option<Dependence>,
    /// The claims, in the order of the file.
    pub claims: Vec<ClaimOutcome>,
    /// Number of further claims that only whole runs judge, because the quick form lacks the runs they need.
    pub in_full_only: usize,
    /// Measurements of transfers as text, one line per place of a curve.
    #[serde(rename = "told")]
    pub measurements: Vec<String>,
    /// Which points of the four systems, drawn beside a rival, no claim measures.
    pub not_claimed: Option<String>,
    /// The versions of tacit that executed its runs; empty if the results do not name them.
    pub made_by: Vec<String>,
    /// Its picture.
    pub svg: Option<PathBuf>,
    /// Why this machine could not produce it. It then has no claims.
    pub skipped: Option<String>,
}

impl FigureOutcome {
    /// True if any claim is missed without a reason.
    pub fn fails(&self) -> bool {
        self.claims.iter().any(ClaimOutcome::fails)
    }

    /// True if this machine could not produce it, or could not judge some claim.
    pub fn is_skipped(&self) -> bool {
        self.skipped.is_some() || self.claims.iter().any(|claim| claim.skipped.is_some())
    }

    /// As text, one line per claim.
    pub fn to_text(&self) -> String {
        self.to_text_within(None)
    }

    /// As text with lines of at most `width` characters, except rows of tables.
    pub fn to_text_within(&self, width: Option<usize>) -> String {
        let mut text =
            hanging("", &format!("{}: {}", self.id, titled(&self.title, self.paper.as_deref())), width);
        if let Some(reason) = &self.skipped {
            text.push_str(&hanging("  SKIPPED    ", reason, width));
        }
        if let Some(note) = &self.note {
            text.push_str(&hanging("  ", note, width));
        }
        if let Some(table) = &self.table {
            text.push_str(&indented(&table.table()));
        }
        let widest = self.claims.iter().map(|claim| claim.text.chars().count()).max().unwrap_or(0);
        for claim in &self.claims {
            let sentence = format!(
                "{:<widest$}  {} {}, measured {} {}",
                claim.text,
                claim.source,
                claim.statement,
                claim.measured_words(),
                claim.unit,
            );
            text.push_str(&hanging(&format!("  {:<9}  ", claim.verdict.word()), sentence.trim_end(), width));
            if let Some(reason) = claim.reason() {
                text.push_str(&hanging(&format!("  {:<9}  ", ""), &reason, width));
            }
        }
        if let Some(points) = &self.not_claimed {
            text.push_str(&hanging("  ", points, width));
        }
        if self.in_full_only > 0 {
            let claims = count(self.in_full_only as u64, "claim");
            text.push_str(&format!("  {claims} more in whole runs, without --quick\n"));
        }
        if let Some(depends) = &self.depends {
            text.push_str(&format!("  {}\n{}", depends.caption(), indented(&depends.table())));
        }
        self.measurements.iter().for_each(|line| text.push_str(&hanging("  ", line, width)));
        text
    }
}

/// Number of claims by verdict over several figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    papers: Counts,
    goals: Counts,
    others: Counts,
    kept: usize,
    skipped: usize,
    failed: usize,
    /// Rows of tables, which have no verdict.
    rows: usize,
    /// Claims that the quick form does not judge.
    in_full_only: usize,
    /// Figures that were not produced, so that their claims were not judged.
    figures_skipped: usize,
}

/// How many claims of one origin were met and missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    missed: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} missed", self.passed, self.missed)
    }
}

impl Tally {
    /// Counts the claims of `outcomes`.
    pub fn new(outcomes: &[FigureOutcome]) -> Self {
        let claims = || outcomes.iter().flat_map(|outcome| &outcome.claims);
        let count = |verdict: Verdict| claims().filter(|claim| claim.verdict == verdict).count();
        let tables = outcomes.iter().filter_map(|outcome| outcome.table.as_ref());
        let counts = |origin: Origin| {
            let verdicts = || {
                claims()
                    .filter(|claim| Origin::from_source(&claim.source) == origin)
                    .map(|claim| claim.verdict)
            };
            Counts {
                passed: verdicts().filter(|verdict| *verdict == Verdict::Pass).count(),
                missed: verdicts().filter(|verdict| *verdict == Verdict::Missed).count(),
            }
        };
        Self {
            papers: counts(Origin::Paper),
            goals: counts(Origin::Goal),
            others: counts(Origin::Other),
            kept: count(Verdict::Kept),
            skipped: count(Verdict::Skipped),
            failed: count(Verdict::Fail),
            rows: tables.map(|table| table.rows.len()).sum(),
            in_full_only: outcomes.iter().map(|outcome| outcome.in_full_only).sum(),
            figures_skipped: outcomes.iter().filter(|outcome| outcome.skipped.is_some()).count(),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { papers, goals, others, kept, skipped, failed, rows, in_full_only, figures_skipped } = self;
        write!(
            f,
            "claims of the papers: {papers} for a reason given; of ns-3, formulas and arguments: {others}; goals of tacit's own: \
             {goals}; {skipped} SKIPPED on this machine, {failed} failed; {kept} regression bounds kept; {rows} rows of tables \
             without a verdict"
        )?;
        if *in_full_only > 0 {
            write!(f, "; {} in whole runs only", count(*in_full_only as u64, "claim"))?;
        }
        if *figures_skipped > 0 {
            write!(f, "; {} SKIPPED", count(*figures_skipped as u64, "figure"))?;
        }
        Ok(())
    }
}

/// A table, indented like claims.
fn indented(table: &TextTable) -> String {
    table.render().lines().map(|line| format!("  {line}\n")).collect()
}

/// A title with its source.
fn titled(title: &str, paper: Option<&str>) -> String {
    paper.map_or_else(|| title.to_owned(), |paper| format!("{title} ({paper})"))
}

/// Four significant digits, with at most four decimals.
fn value(number_to_show: f64) -> String {
    let magnitude = number_to_show.abs().max(1e-4).log10().floor();
    let decimals = (3.0 - magnitude).clamp(0.0, 4.0) as usize;
    let text = number(number_to_show, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// All bundled figures.
///
/// # Errors
/// If a file contains something that is not allowed.
pub fn all() -> Result<Vec<Figure>, RunsError> {
    library::ALL.iter().map(|bundled| Ok(Figure::parse(bundled.id, bundled.path, bundled.text)?)).collect()
}

/// The figure `id`, or the one in the file at this path if it ends in `.toml`.
///
/// # Errors
/// If there is no such figure, or its file contains something that is not allowed.
pub fn find(id: &str) -> Result<Figure, RunsError> {
    if let Some(stem) = Path::new(id).file_name().and_then(|name| name.to_str()?.strip_suffix(".toml")) {
        return load_file(id, stem);
    }
    let ids = || library::ALL.iter().map(|bundled| bundled.id);
    let Some(bundled) = library::ALL.iter().find(|bundled| bundled.id == id) else {
        let hint = did_you_mean(id, ids());
        return Err(InputError::new("figure", format!("no figure {id:?}{hint}"))
            .allowed(few(id, &ids().collect::<Vec<_>>(), "`tacit figure --list` has all"))
            .into());
    };
    Ok(Figure::parse(bundled.id, bundled.path, bundled.text)?)
}

/// The figure with the ID `stem` in the file at `path`.
fn load_file(path: &str, stem: &str) -> Result<Figure, RunsError> {
    /// Maximum size of a figure file in bytes.
    const MAX_FILE: u64 = 1 << 20;
    let file = Path::new(path);
    let bytes = bounded::read(file, MAX_FILE).map_err(RunsError::io(file))?.ok_or_else(|| {
        InputError::new(path, format!("more than {MAX_FILE} bytes are no figure"))
            .allowed(format!("files up to {MAX_FILE} bytes"))
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| RunsError::io(file)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    Ok(Figure::parse(stem, path, &text)?)
}
