//! A chart on a page, with links that save it.

use data_encoding::BASE64;
use maud::{Markup, html};
use tacit_runs::store::Sheet;
use tacit_scenario::table::TextTable;

use crate::chart::{BarChart, DotChart, LineChart, Views};

/// A chart at every width, and its numbers.
pub struct Shown {
    views: Views,
    sheet: Sheet,
}

impl Shown {
    /// Curves.
    pub fn lines(chart: &LineChart) -> Self {
        Self { views: Views::new(|width| chart.picture(width)), sheet: chart.sheet() }
    }

    /// Ranked dots.
    pub fn dots(chart: &DotChart) -> Self {
        Self { views: Views::new(|width| chart.picture(width)), sheet: chart.sheet() }
    }

    /// Bars.
    pub fn bars(chart: &BarChart) -> Self {
        Self { views: Views::new(|width| chart.picture(width)), sheet: chart.sheet() }
    }

    /// The chart with its links.
    pub fn markup(&self) -> Markup {
        html! {
            (self.views.markup())
            (saves(&self.views, Some(&self.sheet)))
        }
    }
}

/// A table whose first column names the rows.
pub fn table_markup(caption: Option<&str>, table: &TextTable) -> Markup {
    let (heads, rows) = table.parts();
    let columns = heads.first().map_or(0, Vec::len);
    let lines = |column: usize| heads.iter().map(move |line| line[column].as_str());
    html! {
        table {
            @if let Some(caption) = caption { caption { (caption) } }
            thead { tr {
                @for column in 0..columns {
                    th.name[column == 0] scope="col" {
                        @for (number, line) in lines(column).filter(|line| !line.is_empty()).enumerate() {
                            @if number == 0 { (line) } @else { br; small { (line) } }
                        }
                    }
                }
            } }
            tbody { @for row in rows { tr {
                @for (column, cell) in row.iter().enumerate() {
                    @if column == 0 { th.name scope="row" { (cell) } } @else { td { (cell) } }
                }
            } } }
        }
    }
}

/// Links that save a picture as SVG and PDF, and its numbers as CSV. The files are in the page.
pub fn saves(views: &Views, sheet: Option<&Sheet>) -> Markup {
    let Some(picture) = views.on_paper() else { return html! {} };
    let csv = sheet.map(|sheet| ("CSV", "text/csv", sheet.to_csv().into_bytes()));
    let files = [
        ("SVG", "image/svg+xml", picture.to_svg_file().into_bytes()),
        ("PDF", "application/pdf", picture.to_pdf()),
    ];
    html! {
        p.save {
            "Save as"
            @for (name, kind, content) in files.into_iter().chain(csv) {
                " " a download={ (file_name(&picture.alt)) "." (name.to_lowercase()) }
                    href={ "data:" (kind) ";base64," (BASE64.encode(&content)) } { (name) }
            }
        }
    }
}

/// The letters and digits of a title, with hyphens between its words.
fn file_name(title: &str) -> String {
    /// Most file systems limit names to 255 bytes.
    const MAX_LENGTH: usize = 80;
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    name.chars().take(MAX_LENGTH).collect()
}

/// Preformatted text, which scrolls sideways, also by keyboard. `name` is its name for screen readers.
pub fn block(name: &str, text: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(name) { (text) } }
}

/// A part of a page that scrolls sideways, also by keyboard. `name` is its name for screen readers.
pub fn scroller(name: &str, content: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(name) { (content) } }
}
