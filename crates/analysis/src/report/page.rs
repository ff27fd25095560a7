//! The frame of every page: one HTML file that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::style;
use crate::chart::STYLE;

/// A page called `title`, with its header and main part.
pub fn document(title: &str, header: &Markup, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style::PAGE)) }
            }
            body {
                header { (header) }
                main { (main) }
            }
        }
    }
}
