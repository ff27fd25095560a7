//! Writes pictures as SVG: for pages that include [`STYLE`](super::STYLE), or as a file of its own.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::Ink;
use super::canvas::{Anchor, Element, Font, Level, Picture};

/// How colours are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// As variables of the style sheet, which follow the reader's light or dark theme.
    Page,
    /// As values on white. Drawing programs and converters know no variables.
    Paper,
}

impl Ground {
    fn colour(self, ink: Ink) -> String {
        match self {
            Self::Page => ink.css(),
            Self::Paper => ink.light().to_owned(),
        }
    }
}

impl Picture {
    /// As an element of a page that includes [`STYLE`](super::STYLE).
    pub fn to_svg(&self) -> String {
        let Self { width, height, alt, .. } = self;
        let shapes = self.shapes(Ground::Page);
        let svg = html! {
            svg role="img" aria-label=(alt) font-family="system-ui, sans-serif"
                viewBox={ "0 0 " (width) " " (height) } xmlns="http://www.w3.org/2000/svg" { "\n" (shapes) }
        };
        svg.0
    }

    /// As a file, on white.
    pub fn to_svg_file(&self) -> String {
        let Self { width, height, alt, .. } = self;
        let shapes = self.shapes(Ground::Paper);
        let svg = html! {
            svg role="img" aria-label=(alt) font-family="Helvetica, Arial, sans-serif" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } xmlns="http://www.w3.org/2000/svg" {
                "\n" title { (alt) } "\n" rect width="100%" height="100%" fill="#ffffff" {} "\n" (shapes)
            }
        };
        svg.0
    }

    fn shapes(&self, ground: Ground) -> Markup {
        let mut shapes = String::new();
        for element in &self.elements {
            shapes.push_str(&written(element, ground).0);
            shapes.push('\n');
        }
        PreEscaped(shapes)
    }
}

fn written(element: &Element, ground: Ground) -> Markup {
    match element {
        Element::Line { points, stroke } => html! {
            polyline fill="none" stroke=(ground.colour(stroke.ink)) stroke-width=(stroke.width)
                stroke-dasharray=[Some(stroke.dash).filter(|dash| !dash.is_empty())]
                opacity=[below_one(stroke.opacity)] points=(point_list(points)) {}
        },
        Element::Polygon { corners, ink } => html! {
            polygon fill=(ground.colour(*ink)) points=(point_list(corners)) {}
        },
        Element::Circle { centre: (x, y), radius, ink } => html! {
            circle cx=(x) cy=(y) r=(radius) fill=(ground.colour(*ink)) {}
        },
        Element::Box { edges: [left, top, width, height], ink, opacity } => html! {
            rect x=(left) y=(top) width=(width) height=(height) fill=(ground.colour(*ink))
                opacity=[below_one(*opacity)] {}
        },
        Element::Outline { edges: [left, top, width, height], stroke } => html! {
            rect x=(left) y=(top) width=(width) height=(height) fill="none" stroke=(ground.colour(stroke.ink))
                stroke-width=(stroke.width) {}
        },
        Element::Text { words, at: (x, y), font, is_upward } => {
            let turned = is_upward.then(|| format!("rotate(-90 {x} {y})"));
            html! {
                text x=(x) y=(y) dy=(offset(*font)) text-anchor=(anchor(*font)) font-size=(font.px)
                    fill=(ground.colour(font.ink)) transform=[turned] { (words) }
            }
        }
    }
}

/// Vertical offset of the baseline from the point.
const fn offset(font: Font) -> &'static str {
    match font.level {
        Level::Centred => "0.5ex",
        Level::Below => "0.76em",
        Level::Above => "-0.5ex",
    }
}

const fn anchor(font: Font) -> &'static str {
    match font.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    }
}

fn below_one(opacity: f64) -> Option<f64> {
    Some(opacity).filter(|opacity| *opacity < 1.0)
}

/// The value of the attribute `points`.
fn point_list(points: &[(f64, f64)]) -> String {
    let mut list = String::new();
    for (x, y) in points {
        let gap = if list.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(list, "{gap}{x},{y}");
    }
    list
}

#[cfg(test)]
mod tests {
    use super::super::canvas::{Canvas, Stroke};
    use super::*;

    #[test]
    fn shapes_are_written_in_the_colours_of_the_style_sheet() {
        let mut canvas = Canvas::new(100, 50);
        canvas.line([(0, 1), (2, 3)], Stroke::new(Ink::Curve(1), 2).dashed("7 3"));
        canvas.line([(0.04, 1.25), (f64::NAN, 2.0), (9.0, 9.0)], Stroke::new(Ink::Grid, 1));
        canvas.rectangle([(1, 1), (5, 3)], Ink::Series(0), 0.25);
        canvas.text("a < b", (1, 2), Font::new(12.0, Ink::Text).centred());
        let picture = canvas.into_picture("two \"lines\"");
        let svg = picture.to_svg();
        let (head, shapes) = svg.split_once('\n').unwrap();
        assert!(
            head.contains("aria-label=\"two &quot;lines&quot;\"") && head.contains("viewBox=\"0 0 100 50\""),
            "{head}"
        );
        assert_eq!(
            shapes,
            "<polyline fill=\"none\" stroke=\"var(--c1)\" stroke-width=\"2\" stroke-dasharray=\"7 3\" points=\"0,1 2,3\"></polyline>\n\
             <polyline fill=\"none\" stroke=\"var(--grid)\" stroke-width=\"1\" points=\"0,1.3 9,9\"></polyline>\n\
             <rect x=\"1\" y=\"1\" width=\"4\" height=\"2\" fill=\"var(--s0)\" opacity=\"0.25\"></rect>\n\
             <text x=\"1\" y=\"2\" dy=\"0.5ex\" text-anchor=\"middle\" font-size=\"12\" fill=\"var(--text)\">a &lt; b</text>\n</svg>"
        );
    }

    /// Inkscape, rsvg-convert and LaTeX read no variables of style sheets.
    #[test]
    fn a_file_has_colours_that_every_program_reads() {
        let mut canvas = Canvas::new(100, 50);
        canvas.line([(0, 1), (2, 3)], Stroke::new(Ink::Curve(1), 2));
        let svg = canvas.into_picture("a line").to_svg_file();
        assert!(svg.contains("stroke=\"#0072b2\"") && !svg.contains("var("), "{svg}");
        assert!(svg.contains("width=\"100\"") && svg.contains("<title>a line</title>"), "{svg}");
    }
}
