//! The common frame of all pages, which are self-contained HTML files.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::style;
use crate::chart::{STYLE, VIEWS_STYLE};

/// A page with this title, header and main part.
pub fn document(title: &str, header: &Markup, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(VIEWS_STYLE)) (PreEscaped(style::PAGE)) }
            }
            body {
                header { (header) }
                main { (main) }
            }
        }
    }
}
