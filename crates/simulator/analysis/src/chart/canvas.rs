//! What charts draw with: lines, boxes, markers and text in the colours of [`Ink`]. [`Picture`] is the result, which
//! [`super::svg`] and [`super::pdf`] write.

use super::Ink;

/// A picture under construction. Coordinates are pixels from the upper left corner.
pub(super) struct Canvas {
    width: u32,
    height: u32,
    elements: Vec<Element>,
}

/// A finished picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Alternative text.
    pub alt: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    pub(super) elements: Vec<Element>,
}

/// One element of a picture. Later ones cover earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    /// A line through points.
    Line { points: Vec<(f64, f64)>, stroke: Stroke },
    /// A filled polygon.
    Polygon { corners: Vec<(f64, f64)>, ink: Ink },
    /// A filled circle.
    Circle { centre: (f64, f64), radius: u32, ink: Ink },
    /// A filled box: left, top, width and height.
    Box { edges: [f64; 4], ink: Ink, opacity: f64 },
    /// The outline of a box: left, top, width and height.
    Outline { edges: [f64; 4], stroke: Stroke },
    /// A line of text.
    Text { words: String, at: (f64, f64), font: Font, is_upward: bool },
}

/// Style of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke {
    pub ink: Ink,
    pub width: u32,
    /// SVG dash array; empty for a solid line.
    pub dash: &'static str,
    pub opacity: f64,
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

/// Which part of a line of text is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Where a line of text is relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Centred,
    Below,
    Above,
}

/// Size, colour and alignment of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Font {
    pub px: f64,
    pub ink: Ink,
    pub anchor: Anchor,
    pub level: Level,
}

impl Font {
    /// Text of `px` pixels that starts at its point and is vertically centred on it.
    pub const fn new(px: f64, ink: Ink) -> Self {
        Self { px, ink, anchor: Anchor::Start, level: Level::Centred }
    }

    /// Horizontally centred on the point.
    pub const fn centred(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    /// Ends at the point.
    pub const fn to_the_left(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    /// Below the point.
    pub const fn below(self) -> Self {
        Self { level: Level::Below, ..self }
    }

    /// Above the point.
    pub const fn above(self) -> Self {
        Self { level: Level::Above, ..self }
    }
}

impl Canvas {
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height, elements: Vec::new() }
    }

    pub const fn width(&self) -> u32 {
        self.width
    }

    pub const fn height(&self) -> u32 {
        self.height
    }

    /// A line through `points`. Points that are not finite are omitted.
    pub fn line<T: Into<f64>>(&mut self, points: impl IntoIterator<Item = (T, T)>, stroke: Stroke) {
        self.elements.push(Element::Line { points: finite(points), stroke });
    }

    /// The cross of a mark.
    pub fn cross(&mut self, (x, y): (f64, f64)) {
        /// Half its size in pixels.
        const HALF: f64 = 5.0;
        for rise in [-HALF, HALF] {
            self.line([(x - HALF, y + rise), (x + HALF, y - rise)], Stroke::new(Ink::Text, 1));
        }
    }

    /// A filled polygon.
    pub fn polygon<T: Into<f64>>(&mut self, corners: impl IntoIterator<Item = (T, T)>, ink: Ink) {
        self.elements.push(Element::Polygon { corners: finite(corners), ink });
    }

    /// A filled circle.
    pub fn circle<T: Into<f64>>(&mut self, (x, y): (T, T), radius: u32, ink: Ink) {
        self.elements.push(Element::Circle { centre: (px(x), px(y)), radius, ink });
    }

    /// A filled box between the upper left and the lower right corner.
    pub fn rectangle<T: Into<f64>>(&mut self, corners: [(T, T); 2], ink: Ink, opacity: f64) {
        self.elements.push(Element::Box { edges: edges(corners), ink, opacity });
    }

    /// The outline of a box.
    pub fn outline<T: Into<f64>>(&mut self, corners: [(T, T); 2], stroke: Stroke) {
        self.elements.push(Element::Outline { edges: edges(corners), stroke });
    }

    /// `words` at a point.
    pub fn text<T: Into<f64>>(&mut self, words: &str, at: (T, T), font: Font) {
        self.write(words, at, font, false);
    }

    /// Vertical text that reads upwards.
    pub fn upward_text<T: Into<f64>>(&mut self, words: &str, at: (T, T), font: Font) {
        self.write(words, at, font, true);
    }

    fn write<T: Into<f64>>(&mut self, words: &str, (x, y): (T, T), font: Font, is_upward: bool) {
        if !words.is_empty() {
            let at = (px(x), px(y));
            self.elements.push(Element::Text { words: words.to_owned(), at, font, is_upward });
        }
    }

    /// Inserts `other` into the picture with its upper edge at `top`.
    pub fn put(&mut self, top: u32, other: Self) {
        self.elements.extend(other.elements.into_iter().map(|element| element.lowered(top.into())));
    }

    /// The picture with `alt` as the alternative text.
    pub fn into_picture(self, alt: &str) -> Picture {
        let Self { width, height, elements } = self;
        Picture { alt: alt.to_owned(), width, height, elements }
    }
}

impl Element {
    /// The same element, `by` pixels lower.
    fn lowered(self, by: f64) -> Self {
        let low = |(x, y): (f64, f64)| (x, px(y + by));
        let all = |points: Vec<(f64, f64)>| points.into_iter().map(low).collect();
        let box_low = |[left, top, width, height]: [f64; 4]| [left, px(top + by), width, height];
        match self {
            Self::Line { points, stroke } => Self::Line { points: all(points), stroke },
            Self::Polygon { corners, ink } => Self::Polygon { corners: all(corners), ink },
            Self::Circle { centre, radius, ink } => Self::Circle { centre: low(centre), radius, ink },
            Self::Box { edges, ink, opacity } => Self::Box { edges: box_low(edges), ink, opacity },
            Self::Outline { edges, stroke } => Self::Outline { edges: box_low(edges), stroke },
            Self::Text { words, at, font, is_upward } => Self::Text { words, at: low(at), font, is_upward },
        }
    }
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

/// The points that are finite.
fn finite<T: Into<f64>>(points: impl IntoIterator<Item = (T, T)>) -> Vec<(f64, f64)> {
    let rounded = points.into_iter().map(|(x, y)| (px(x), px(y)));
    rounded.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_in_a_picture_is_moved_down() {
        let (mut all, mut inner) = (Canvas::new(10, 20), Canvas::new(10, 10));
        inner.circle((5, 5), 4, Ink::Text);
        inner.rectangle([(1, 1), (2, 3)], Ink::Rest, 1.0);
        all.put(10, inner);
        let elements = all.into_picture("").elements;
        assert_eq!(elements[0], Element::Circle { centre: (5.0, 15.0), radius: 4, ink: Ink::Text });
        assert!(matches!(elements[1], Element::Box { edges: [1.0, 11.0, 1.0, 2.0], .. }), "{elements:?}");
    }
}
