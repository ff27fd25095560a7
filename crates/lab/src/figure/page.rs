//! All figures of a run on one page.

use std::path::Path;

use maud::{PreEscaped, html};

use super::{ClaimOutcome, Outcome, run, value};
use crate::error::LabError;
use crate::report::page::document;
use crate::store::write_whole;
use crate::table::count;

/// Writes the page; `pictures` are the outcomes' SVG.
pub(super) fn write(directory: &Path, outcomes: &[Outcome], pictures: &[String]) -> Result<(), LabError> {
    let claims = || outcomes.iter().flat_map(|outcome| &outcome.claims);
    let failed = claims().filter(|claim| claim.fails()).count();
    let deviating = claims().filter(|claim| !claim.pass && !claim.fails()).count();
    let summary = format!(
        "{} of {}, of which {failed} failed and {deviating} deviate for a reason given.",
        count(claims().count() as u64, "claim"),
        count(outcomes.len() as u64, "figure"),
    );
    let header = html! {
        p.kicker { "tacit figure" }
        h1 { "The papers' figures" }
        p.lead { (summary) }
        p.note { "tacit " (crate::VERSION) }
    };
    let main = html! {
                    @for (outcome, picture) in outcomes.iter().zip(pictures) {
                        section {
                            h2 { (outcome.title) }
                            p.note { (outcome.paper) " – " code { "tacit figure " (outcome.id) } }
                            @if let Some(reason) = &outcome.skipped { p { "Not made: " (reason) } }
                            (PreEscaped(picture))
                            div.scroll { table {
                                thead { tr {
                                    th.name scope="col" { "claim" }
                                    th scope="col" { "paper" }
                                    th scope="col" { "measured" }
                                    th scope="col" { "" }
                                } }
                                tbody { @for claim in &outcome.claims { (row(claim)) } }
                            } }
                        }
                    }
    };
    let page = document("The papers' figures", &header, &main);
    write_whole(&run::page_path(directory), page.into_string().as_bytes())
}

fn row(claim: &ClaimOutcome) -> maud::Markup {
    html! {
        tr {
            th.name scope="row" {
                (claim.text)
                @if let (false, Some(reason)) = (claim.pass, &claim.deviation) { br; small { (reason) } }
            }
            td { (value(claim.paper)) " ± " (value(claim.tolerance)) " " (claim.unit) }
            td { (claim.measured.map_or_else(|| "–".to_owned(), value)) " " (claim.unit) }
            td { (claim.verdict()) }
        }
    }
}
