//! The HTML page: results that are known in advance, and the data that the scripts draw.

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use tacit_link::wifi::AirtimeUse;
use tacit_runs::VERSION;
use tacit_runs::single::Single;
use tacit_scenario::table::{count, number, number_or_dash, percent};

use super::data::Side;
use crate::chart::STYLE;
use crate::compare::airtime_label;
use crate::report::figure::{block, scroller};

/// The parts of the script, in order. They share one scope.
const SCRIPTS: [&str; 10] = [
    include_str!("js/data.js"),
    include_str!("js/words.js"),
    include_str!("js/query.js"),
    include_str!("js/view.js"),
    include_str!("js/links.js"),
    include_str!("js/lanes.js"),
    include_str!("js/plots.js"),
    include_str!("js/shares.js"),
    include_str!("js/hands.js"),
    include_str!("js/main.js"),
];
const SHEET: &str = include_str!("explore.css");
/// Forbids fetching anything, even if the text of the page requests it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Contents of the page.
pub(super) struct Content<'a> {
    pub scenario: &'a str,
    pub description: &'a str,
    pub scenario_text: &'a str,
    pub command: &'a str,
    pub clients: u32,
    pub seed: u64,
    /// Each scheme with its bytes and its run.
    pub sides: &'a [(Side, String, Single)],
}

/// Data for the scripts.
#[derive(Serialize)]
struct ScriptData<'a> {
    scenario: &'a str,
    uses: Vec<(&'static str, &'static str)>,
    sides: Vec<&'a Side>,
}

pub(super) fn document(content: &Content<'_>) -> String {
    let title = format!("{}: frames on the air", content.scenario);
    let known = ScriptData {
        scenario: content.scenario,
        uses: AirtimeUse::ALL.map(|what| (what.name(), airtime_label(what))).into(),
        sides: content.sides.iter().map(|(side, ..)| side).collect(),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(themes())) (PreEscaped(SHEET)) }
            }
            body {
                a.skip href="#numbers" { "Skip to the numbers" }
                (header(content))
                main {
                    noscript { p.note {
                        "The time line is drawn by a script in this file, and scripts are off. The numbers of both runs "
                        "stand below."
                    } }
                    div #app hidden {}
                    (numbers(content))
                    (provenance(content))
                }
                script #known type="application/json" { (PreEscaped(in_script(&known))) }
                @for (number, (_, bytes, _)) in content.sides.iter().enumerate() {
                    script id=(format!("bytes-{number}")) type="text/plain" { (PreEscaped(bytes)) }
                }
                script { (PreEscaped(script())) }
            }
        }
    };
    page.into_string()
}

/// The colours of all pages: according to the reader's system, or as selected on the page.
fn themes() -> String {
    let (light, rest) = STYLE.split_once("@media").unwrap_or((STYLE, ""));
    let dark = rest.split_once("{:root{").and_then(|(_, rest)| rest.split_once('}'));
    let dark = dark.map_or("", |(dark, _)| dark);
    format!(
        "{light}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark};color-scheme:dark}}}}\
         :root[data-theme=dark]{{{dark};color-scheme:dark}}:root[data-theme=light]{{color-scheme:light}}"
    )
}

fn script() -> String {
    format!("(()=>{{'use strict';\n{}}})();", SCRIPTS.join("\n"))
}

/// JSON that neither ends the script element nor opens a comment, regardless of the strings in it.
fn in_script(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("structs of numbers and strings become JSON");
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn header(content: &Content<'_>) -> Markup {
    let warnings: BTreeSet<&String> = content.sides.iter().flat_map(|(side, ..)| &side.warnings).collect();
    let names: Vec<&str> = content.sides.iter().map(|(side, ..)| side.scheme.as_str()).collect();
    html! {
        header {
            h1 { (content.scenario) }
            p { (content.description) }
            p.note {
                (names.join(" and ")) ", " (count(content.clients.into(), "client")) ", seed " (content.seed)
                ". Everything on the air of the first channel."
            }
            @for warning in warnings { p.note { strong { "Warning: " } (warning) } }
            @for (side, ..) in content.sides {
                @if side.left_out > 0 {
                    p.note { strong { "Not all frames: " }
                        (side.scheme) " has the first " (side.ppdus) ", " (side.left_out) " after them had no room."
                    }
                }
            }
        }
    }
}

/// A row of the table: its label, and a function that returns the value for a run.
type Row = (&'static str, fn(&Single) -> String);

const ROWS: [Row; 13] = [
    ("goodput, Mb/s", |run| number(run.goodput_bps / 1e6, 2)),
    ("channel accesses that collided, per second", |run| metric(run, "collisions_per_s", 1.0, 1)),
    ("retries, of MPDUs", |run| percent(run.metrics.get("retry_share"), 1)),
    ("MPDUs in a PPDU of data", |run| metric(run, "ampdu_mean", 1.0, 1)),
    ("pure ACKs on the air, per second", |run| metric(run, "tcp_acks_on_air_per_s", 1.0, 0)),
    ("queueing, median, ms", |run| metric(run, "queue_delay_p50_us", 1e-3, 2)),
    ("queueing, 95th percentile, ms", |run| metric(run, "queue_delay_p95_us", 1e-3, 2)),
    ("airtime: data", |run| airtime(run, AirtimeUse::Data)),
    ("airtime: ACKs", |run| airtime(run, AirtimeUse::TcpAck)),
    ("airtime: link ACKs", |run| airtime(run, AirtimeUse::LinkAck)),
    ("airtime: compressed ACKs", |run| airtime(run, AirtimeUse::CompressedAck)),
    ("airtime: acquisition", |run| airtime(run, AirtimeUse::Acquisition)),
    ("airtime: collisions", |run| airtime(run, AirtimeUse::Collision)),
];

fn metric(run: &Single, name: &str, factor: f64, digits: usize) -> String {
    number_or_dash(run.metrics.get(name).map(|value| value * factor), digits)
}

fn airtime(run: &Single, what: AirtimeUse) -> String {
    percent(run.airtime.map(|shares| shares.0[what as usize]), 1)
}

fn numbers(content: &Content<'_>) -> Markup {
    html! {
        section #numbers {
            h2 { "Numbers" }
            p.note { "Of the measured window, as " code { "tacit run" } " gives them." }
            (scroller("Numbers", &html! {
                table {
                    thead { tr {
                        th.name scope="col" { "" }
                        @for (side, ..) in content.sides { th scope="col" { (side.scheme) } }
                    } }
                    tbody {
                        @for (label, value) in ROWS {
                            tr {
                                th.name scope="row" { (label) }
                                @for (.., run) in content.sides { td { (value(run)) } }
                            }
                        }
                    }
                }
            }))
        }
    }
}

fn provenance(content: &Content<'_>) -> Markup {
    html! {
        section {
            h2 { "The same again" }
            (block("Command", content.command))
            dl {
                dt { "version" } dd { "tacit " (VERSION) }
                @for (side, ..) in content.sides {
                    dt { (side.scheme) } dd { (side.summary) }
                    dt { "digest" } dd { code { (side.digest) } }
                }
            }
            details {
                summary { "The whole scenario" }
                (block("The whole scenario", content.scenario_text.trim()))
            }
        }
    }
}
