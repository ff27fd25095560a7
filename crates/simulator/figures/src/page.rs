//! A page with all figures of a run.

use std::path::{Path, PathBuf};

use maud::{Markup, html};

use super::{ClaimOutcome, FigureOutcome, Tally, value};
use tacit_analysis::chart::Views;
use tacit_analysis::report::figure::{saves, scroller, table_markup};
use tacit_analysis::report::page::document;
use tacit_runs::RunsError;
use tacit_runs::store::{Sheet, write_whole};
use tacit_scenario::table::count;

/// The path to which [`write`] writes the page.
pub(super) fn page_path(directory: &Path) -> PathBuf {
    directory.join("index.html")
}

/// A figure as drawn.
pub(super) struct Drawing {
    pub views: Views,
    /// The plotted points, if it has curves.
    pub points: Option<Sheet>,
}

/// Writes the page. `drawings` are those of the outcomes.
pub(super) fn write(
    directory: &Path,
    outcomes: &[FigureOutcome],
    drawings: &[Option<Drawing>],
) -> Result<(), RunsError> {
    let summary = format!("{}; {}.", count(outcomes.len() as u64, "figure"), Tally::new(outcomes));
    let header = html! {
        p.kicker { "tacit figure" }
        h1 { "The papers' figures" }
        p.lead { (summary) }
        p.note { "tacit " (tacit_runs::VERSION) }
    };
    let main = html! {
                    @for (outcome, drawing) in outcomes.iter().zip(drawings) {
                        section {
                            h2 { (outcome.title) }
                            p.note {
                                @if let Some(paper) = &outcome.paper { (paper) " – " }
                                code { "tacit figure " (outcome.id) }
                            }
                            @if let Some(reason) = &outcome.skipped { p { "Not made: " (reason) } }
                            @if let Some(note) = &outcome.note { p { (note) } }
                            @match (&outcome.table, drawing) {
                                (Some(table), _) => (scroller("Measured", &table_markup(None, &table.table()))),
                                (None, Some(Drawing { views, points })) => {
                                    (views.markup())
                                    (saves(views, points.as_ref()))
                                }
                                (None, None) => {}
                            }
                            @if let Some(points) = &outcome.not_claimed { p.note { (points) } }
                            @if !outcome.claims.is_empty() { (claims_table(outcome)) }
                            @if let Some(depends) = &outcome.depends {
                                (scroller("Dependence", &table_markup(Some(&depends.caption()), &depends.table())))
                            }
                        }
                    }
    };
    let page = document("The papers' figures", &header, &main);
    write_whole(&page_path(directory), page.into_string().as_bytes())
}

fn claims_table(outcome: &FigureOutcome) -> Markup {
    html! {
        (scroller("Claims", &html! { table {
            thead { tr {
                th.name scope="col" { "claim" }
                th scope="col" { "claimed by" }
                th scope="col" { "value" }
                th scope="col" { "measured" }
                th scope="col" { "" }
            } }
            tbody { @for claim in &outcome.claims { (row(claim)) } }
        } }))
    }
}

fn row(claim: &ClaimOutcome) -> Markup {
    html! {
        tr {
            th.name scope="row" {
                (claim.text)
                @if let Some(reason) = claim.reason() { br; small { (reason) } }
            }
            td { (claim.source) }
            td { (claim.statement) " " (claim.unit) }
            td { (claim.measured.map_or_else(|| "–".to_owned(), value)) " " (claim.unit) }
            td { (claim.verdict.word()) }
        }
    }
}
