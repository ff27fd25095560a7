//! The SVG elements that charts need: lines, boxes, markers and text in the colours of [`Ink`], for pages that include
//! [`STYLE`](super::STYLE).

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::Ink;

/// A picture under construction. Coordinates are pixels from the upper left corner.
pub(super) struct Canvas {
    width: u32,
    height: u32,
    shapes: String,
}

/// Style of a line.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    ink: Ink,
    width: u32,
    /// SVG dash array; empty for a solid line.
    dash: &'static str,
    opacity: f64,
}

impl Stroke {
    pub const fn new(ink: Ink, width: u32) -> Self {
        Self { ink, width, dash: "", opacity: 1.0 }
    }

    /// The same line with this SVG dash array.
    pub const fn dashed(self, dash: &'static str) -> Self {
        Self { dash, ..self }
    }

    pub const fn opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}

/// Size, colour and alignment of text.
#[derive(Clone, Copy)]
pub(super) struct Font {
    px: f64,
    ink: Ink,
    anchor: &'static str,
    /// Vertical offset of the baseline from the point.
    dy: &'static str,
}

impl Font {
    /// Text of `px` pixels that starts at its point and is vertically centred on it.
    pub const fn new(px: f64, ink: Ink) -> Self {
        Self { px, ink, anchor: "start", dy: "0.5ex" }
    }

    /// Horizontally centred on the point.
    pub const fn centred(self) -> Self {
        Self { anchor: "middle", ..self }
    }

    /// Ends at the point.
    pub const fn to_the_left(self) -> Self {
        Self { anchor: "end", ..self }
    }

    /// Below the point.
    pub const fn below(self) -> Self {
        Self { dy: "0.76em", ..self }
    }

    /// Above the point.
    pub const fn above(self) -> Self {
        Self { dy: "-0.5ex", ..self }
    }
}

impl Canvas {
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height, shapes: String::new() }
    }

    pub const fn width(&self) -> u32 {
        self.width
    }

    pub const fn height(&self) -> u32 {
        self.height
    }

    fn add(&mut self, shape: &Markup) {
        self.shapes.push_str(&shape.0);
        self.shapes.push('\n');
    }

    /// A line through `points`.
    pub fn line<T: Into<f64>>(&mut self, points: impl IntoIterator<Item = (T, T)>, stroke: Stroke) {
        let points = point_list(points);
        self.add(&html! {
            polyline fill="none" stroke=(stroke.ink.css()) stroke-width=(stroke.width)
                stroke-dasharray=[written(stroke.dash)] opacity=[below_one(stroke.opacity)] points=(points) {}
        });
    }

    /// A filled polygon.
    pub fn polygon<T: Into<f64>>(&mut self, corners: impl IntoIterator<Item = (T, T)>, ink: Ink) {
        let points = point_list(corners);
        self.add(&html! { polygon fill=(ink.css()) points=(points) {} });
    }

    /// A filled circle.
    pub fn circle<T: Into<f64>>(&mut self, (x, y): (T, T), radius: u32, ink: Ink) {
        self.add(&html! { circle cx=(px(x)) cy=(px(y)) r=(radius) fill=(ink.css()) {} });
    }

    /// A filled box between the upper left and the lower right corner.
    pub fn rectangle<T: Into<f64>>(&mut self, corners: [(T, T); 2], ink: Ink, opacity: f64) {
        let [left, top, width, height] = edges(corners);
        self.add(&html! {
            rect x=(left) y=(top) width=(width) height=(height) fill=(ink.css()) opacity=[below_one(opacity)] {}
        });
    }

    /// The outline of a box.
    pub fn outline<T: Into<f64>>(&mut self, corners: [(T, T); 2], stroke: Stroke) {
        let [left, top, width, height] = edges(corners);
        self.add(&html! {
            rect x=(left) y=(top) width=(width) height=(height) fill="none" stroke=(stroke.ink.css())
                stroke-width=(stroke.width) {}
        });
    }

    /// `words` at a point.
    pub fn text<T: Into<f64>>(&mut self, words: &str, (x, y): (T, T), font: Font) {
        self.write(words, [x.into(), y.into()], font, None);
    }

    /// Vertical text that reads upwards.
    pub fn upward_text<T: Into<f64>>(&mut self, words: &str, (x, y): (T, T), font: Font) {
        let (x, y) = (x.into(), y.into());
        self.write(words, [x, y], font, Some(format!("rotate(-90 {} {})", px(x), px(y))));
    }

    fn write(&mut self, words: &str, [x, y]: [f64; 2], font: Font, transform: Option<String>) {
        if words.is_empty() {
            return;
        }
        self.add(&html! {
            text x=(px(x)) y=(px(y)) dy=(font.dy) text-anchor=(font.anchor) font-size=(px(font.px))
                fill=(font.ink.css()) transform=[transform] { (words) }
        });
    }

    /// Inserts `other` into the picture with its upper edge at `top`.
    pub fn put(&mut self, top: u32, other: &Self) {
        let shapes = PreEscaped(&other.shapes);
        self.add(&html! { g transform={ "translate(0 " (top) ")" } { (shapes) } });
    }

    /// The picture with `alt` as the alternative text.
    pub fn into_svg(self, alt: &str) -> String {
        let Self { width, height, shapes } = self;
        let svg = html! {
            svg role="img" aria-label=(alt) style={ "width:100%;max-width:" (width) "px;height:auto" }
                font-family="system-ui, sans-serif" viewBox={ "0 0 " (width) " " (height) }
                xmlns="http://www.w3.org/2000/svg" { "\n" (PreEscaped(shapes)) }
        };
        svg.0
    }
}

fn written(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn below_one(opacity: f64) -> Option<f64> {
    Some(opacity).filter(|opacity| *opacity < 1.0)
}

/// A length in pixels, rounded to a tenth.
fn px(length: impl Into<f64>) -> f64 {
    (length.into() * 10.0).round() / 10.0
}

/// Left, top, width and height.
fn edges<T: Into<f64>>([from, to]: [(T, T); 2]) -> [f64; 4] {
    let (left, top, right, bottom) = (px(from.0), px(from.1), px(to.0), px(to.1));
    [left, top, px((right - left).max(0.0)), px((bottom - top).max(0.0))]
}

/// The value of the attribute `points`. Points that are not finite are omitted.
fn point_list<T: Into<f64>>(points: impl IntoIterator<Item = (T, T)>) -> String {
    let mut list = String::new();
    for (x, y) in points {
        let (x, y) = (px(x), px(y));
        if x.is_finite() && y.is_finite() {
            let gap = if list.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(list, "{gap}{x},{y}");
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_written_in_the_colours_of_the_style_sheet() {
        let mut canvas = Canvas::new(100, 50);
        canvas.line([(0, 1), (2, 3)], Stroke::new(Ink::Curve(1), 2).dashed("7 3"));
        canvas.line([(0.04, 1.25), (f64::NAN, 2.0), (9.0, 9.0)], Stroke::new(Ink::Grid, 1));
        canvas.rectangle([(1, 1), (5, 3)], Ink::Series(0), 0.25);
        canvas.text("a < b", (1, 2), Font::new(12.0, Ink::Text).centred());
        let svg = canvas.into_svg("two \"lines\"");
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

    #[test]
    fn a_picture_in_a_picture_is_moved_down() {
        let (mut all, mut own) = (Canvas::new(10, 20), Canvas::new(10, 10));
        own.circle((5, 5), 4, Ink::Text);
        all.put(10, &own);
        let svg = all.into_svg("");
        assert!(svg.contains("<g transform=\"translate(0 10)\"><circle cx=\"5\""), "{svg}");
    }
}
