//! A picture as pages show it: drawn for each width that a page may have, so that its text has the size of the page's.

use maud::{Markup, PreEscaped, html};

use super::Picture;

/// Widths in pixels: of a phone, of a column or a sheet of paper, and of a screen. The style sheet of pages chooses.
const WIDTHS: [(u32, &str); 3] = [(400, "narrow"), (PAPER_WIDTH, "middle"), (1_160, "wide")];
/// Width of pictures in files.
pub const PAPER_WIDTH: u32 = 720;

/// Style of views. Browsers without container queries show the middle one.
pub(crate) const STYLE: &str = "\
.views{container-type:inline-size}\
.views svg{display:block;width:100%;height:auto}\
.narrow,.wide{display:none}.any{overflow-x:auto}.any svg{min-width:800px;max-width:1240px}\
.narrow svg{max-width:500px}.middle svg{max-width:960px}.wide svg{max-width:1240px}\
@container(max-width:540px){.narrow{display:block}.middle,.wide{display:none}}\
@container(min-width:960px){.wide{display:block}.middle,.narrow{display:none}}";

/// A picture at each width, or one that scrolls where it has no room.
#[derive(Clone, Debug, PartialEq)]
pub struct Views(Vec<(&'static str, Picture)>);

/// Class of a picture for all widths.
const ANY: &str = "any";

impl Views {
    /// The pictures that `draw` makes, which receives the width in pixels.
    pub fn new(draw: impl Fn(u32) -> Picture) -> Self {
        Self(WIDTHS.into_iter().map(|(width, name)| (name, draw(width))).collect())
    }

    /// One picture for all widths.
    pub fn one(picture: Picture) -> Self {
        Self(vec![(ANY, picture)])
    }

    /// The picture for paper and files; `None` without any.
    pub fn on_paper(&self) -> Option<&Picture> {
        let middle = self.0.iter().find(|(_, picture)| picture.width == PAPER_WIDTH);
        middle.or(self.0.first()).map(|(_, picture)| picture)
    }

    /// As an element of a page.
    pub fn markup(&self) -> Markup {
        html! {
            div.views { @for (name, picture) in &self.0 {
                @let scrolls = *name == ANY;
                div class=(name) tabindex=[scrolls.then_some("0")] role=[scrolls.then_some("region")]
                    aria-label=[scrolls.then_some(&picture.alt)] { (PreEscaped(picture.to_svg())) }
            } }
        }
    }
}
