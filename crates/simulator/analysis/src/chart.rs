//! Charts, and their pictures as SVG and PDF. On pages, colours are CSS variables that follow the reader's light or dark
//! theme; files are on white.

mod axis;
mod bars;
mod canvas;
mod dots;
mod layout;
mod lines;
mod look;
mod names;
mod panels;
mod pdf;
mod rows;
mod strips;
mod svg;
mod table;
pub mod timeline;
mod views;

pub use bars::{Bar, BarChart, Part};
pub use canvas::Picture;
pub use dots::{Dot, DotChart};
pub use lines::{Line, LineChart, Mark};
pub use look::{SeriesStyle, Shape};
pub use panels::{Panel, stacked};
pub use strips::{Strip, StripChart};
pub use table::table_picture;
pub(crate) use views::STYLE as VIEWS_STYLE;
pub use views::{PAPER_WIDTH, Views};

use look::CURVE_COLOURS;

/// A colour by role. The style sheet sets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Main text.
    Text,
    /// Axes and small print.
    Muted,
    /// Grid lines.
    Grid,
    /// Background curves, which do not have a colour of their own.
    Rest,
    /// Part `n` of a bar or strip. Colours repeat after the last one.
    Series(usize),
    /// Colour `n` of the curve colours in [`SeriesStyle`]. They repeat after the last one.
    Curve(usize),
}

/// Number of different colours for parts.
const SERIES_COLOURS: usize = 10;

/// The style sheet with the values of the colours. Curves use Okabe and Ito's palette for colour-blind readers (Color
/// Universal Design, 2008), except its yellow, which is invisible on paper. Orange, sky blue and purple are darkened to
/// a contrast of 3:1 on white. Parts use the same palette. Both are lighter on a dark background.
pub const STYLE: &str = "\
:root{--ground:#ffffff;--text:#1c2127;--muted:#5f6b76;--grid:#e3e7eb;\
--s0:#0072b2;--s1:#e69f00;--s2:#d55e00;--s3:#009e73;--s4:#a9c4d6;--s5:#b0184e;--s6:#8a63b8;--s7:#d5dade;--s8:#f4dc7c;--s9:#7a5a36;\
--rest:#b8c0c7;--c0:#000000;--c1:#0072b2;--c2:#d55e00;--c3:#009e73;--c4:#c46a9f;--c5:#b87a00;--c6:#3391cc}\
@media(prefers-color-scheme:dark){:root{--ground:#14181c;--text:#e8ecef;--muted:#9aa6b0;--grid:#2d343b;\
--s0:#4aa3df;--s1:#f0b429;--s2:#ee7d3b;--s3:#2fc296;--s4:#4f6a7c;--s5:#e5507f;--s6:#b08fdc;--s7:#3a434b;--s8:#8a7530;--s9:#b08c62;\
--rest:#4a545d;--c0:#f2f4f6;--c1:#4a9be0;--c2:#ee7d3b;--c3:#2fc296;--c4:#dd94bd;--c5:#f0b429;--c6:#7cc4ee}}";

/// The variables of [`STYLE`], by [`Ink::number`].
const VARIABLES: [&str; 4 + SERIES_COLOURS + CURVE_COLOURS] = [
    "--text", "--muted", "--grid", "--rest", "--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7",
    "--s8", "--s9", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6",
];

impl Ink {
    const fn number(self) -> usize {
        match self {
            Self::Text => 0,
            Self::Muted => 1,
            Self::Grid => 2,
            Self::Rest => 3,
            Self::Series(n) => 4 + n % SERIES_COLOURS,
            Self::Curve(n) => 4 + SERIES_COLOURS + n % CURVE_COLOURS,
        }
    }

    /// The CSS value, which is a variable of [`STYLE`].
    pub fn css(self) -> String {
        format!("var({})", VARIABLES[self.number()])
    }

    /// The colour on a light background, as `#rrggbb`.
    pub fn light(self) -> &'static str {
        /// `#` and six digits.
        const COLOUR: usize = 7;
        let name = VARIABLES[self.number()];
        let found = STYLE.find(&format!("{name}:")).map(|at| at + name.len() + 1);
        found.and_then(|at| STYLE.get(at..at + COLOUR)).unwrap_or("#000000")
    }
}
