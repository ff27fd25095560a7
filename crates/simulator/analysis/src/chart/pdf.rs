//! Writes pictures as PDF on white. Text is in Helvetica, one of the 14 fonts that every reader of PDF has (ISO 32000-1,
//! 9.6.2.2), so no font is embedded.

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};

use super::Ink;
use super::canvas::{Anchor, Element, Font, Level, Picture, Stroke};

/// PDF counts in points of 1/72 inch, CSS in pixels of 1/96 inch.
const POINTS_PER_PIXEL: f32 = 0.75;
const HELVETICA: Name<'static> = Name(b"F");
/// Half the height of a lower-case letter, and the height of a digit, in em (the x-height of 523 and the height of 703
/// in Adobe's metrics of Helvetica).
const HALF_X_HEIGHT_EM: f64 = 0.26;
const DIGIT_HEIGHT_EM: f64 = 0.7;
/// Control points of a quarter circle of radius 1 as a Bézier curve.
const QUARTER: f32 = 0.5523;
/// Deflate's usual level.
const LEVEL: u8 = 6;

impl Picture {
    /// As a PDF file of one page.
    pub fn to_pdf(&self) -> Vec<u8> {
        let [catalog, pages, page, font, content, info] = [1, 2, 3, 4, 5, 6].map(Ref::new);
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        let size = [self.width, self.height].map(|length| length as f32 * POINTS_PER_PIXEL);
        let mut only = pdf.page(page);
        only.parent(pages).media_box(Rect::new(0.0, 0.0, size[0], size[1])).contents(content);
        only.resources().fonts().pair(HELVETICA, font);
        only.finish();
        let mut helvetica = pdf.type1_font(font);
        helvetica.base_font(Name(b"Helvetica")).encoding_predefined(Name(b"WinAnsiEncoding"));
        helvetica.finish();
        pdf.document_info(info).title(TextStr(&self.alt)).producer(TextStr("tacit"));
        let drawn = compress_to_vec_zlib(&self.content(), LEVEL);
        pdf.stream(content, &drawn).filter(Filter::FlateDecode);
        pdf.finish()
    }

    /// The operators that draw the page.
    fn content(&self) -> Vec<u8> {
        let mut content = Content::new();
        // PDF counts upwards from the lower left corner.
        content.transform([POINTS_PER_PIXEL, 0.0, 0.0, POINTS_PER_PIXEL, 0.0, 0.0]);
        content.set_fill_gray(1.0).rect(0.0, 0.0, self.width as f32, self.height as f32).fill_nonzero();
        let page = Page { content, height: f64::from(self.height) };
        self.elements.iter().fold(page, Page::with).content.finish().into_vec()
    }
}

/// A page under construction.
struct Page {
    content: Content,
    /// Height in pixels.
    height: f64,
}

impl Page {
    /// A point in the page's coordinates.
    fn at(&self, (x, y): (f64, f64)) -> (f32, f32) {
        (x as f32, (self.height - y) as f32)
    }

    fn with(mut self, element: &Element) -> Self {
        match element {
            Element::Line { points, stroke } => self.line(points, *stroke),
            Element::Polygon { corners, ink } => {
                self.fill(*ink, 1.0);
                self.path(corners);
                self.content.close_path().fill_nonzero();
            }
            Element::Circle { centre, radius, ink } => {
                self.fill(*ink, 1.0);
                self.circle(*centre, *radius as f32);
            }
            Element::Box { edges, ink, opacity } => {
                self.fill(*ink, *opacity);
                self.rectangle(*edges);
                self.content.fill_nonzero();
            }
            Element::Outline { edges, stroke } => {
                self.stroke(*stroke);
                self.rectangle(*edges);
                self.content.stroke();
            }
            Element::Text { words, at, font, is_upward } => self.text(words, *at, *font, *is_upward),
        }
        self
    }

    fn fill(&mut self, ink: Ink, opacity: f64) {
        let [red, green, blue] = on_white(ink, opacity);
        self.content.set_fill_rgb(red, green, blue);
    }

    fn stroke(&mut self, stroke: Stroke) {
        let [red, green, blue] = on_white(stroke.ink, stroke.opacity);
        let dash = stroke.dash.split_whitespace().filter_map(|length| length.parse().ok());
        self.content.set_stroke_rgb(red, green, blue).set_line_width(stroke.width as f32);
        self.content.set_dash_pattern(dash.collect::<Vec<f32>>(), 0.0);
    }

    fn line(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        self.stroke(stroke);
        self.path(points);
        self.content.stroke();
    }

    fn path(&mut self, points: &[(f64, f64)]) {
        let Some((first, rest)) = points.split_first() else { return };
        let (x, y) = self.at(*first);
        self.content.move_to(x, y);
        for point in rest {
            let (x, y) = self.at(*point);
            self.content.line_to(x, y);
        }
    }

    fn rectangle(&mut self, [left, top, width, height]: [f64; 4]) {
        let (x, y) = self.at((left, top + height));
        self.content.rect(x, y, width as f32, height as f32);
    }

    fn circle(&mut self, centre: (f64, f64), radius: f32) {
        let (x, y) = self.at(centre);
        let near = QUARTER * radius;
        self.content.move_to(x + radius, y);
        self.content.cubic_to(x + radius, y + near, x + near, y + radius, x, y + radius);
        self.content.cubic_to(x - near, y + radius, x - radius, y + near, x - radius, y);
        self.content.cubic_to(x - radius, y - near, x - near, y - radius, x, y - radius);
        self.content.cubic_to(x + near, y - radius, x + radius, y - near, x + radius, y);
        self.content.close_path().fill_nonzero();
    }

    fn text(&mut self, words: &str, at: (f64, f64), font: Font, is_upward: bool) {
        let width = width_em(words) * font.px;
        let back = match font.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let down = font.px
            * match font.level {
                Level::Centred => HALF_X_HEIGHT_EM,
                Level::Below => DIGIT_HEIGHT_EM,
                Level::Above => -HALF_X_HEIGHT_EM,
            };
        self.fill(font.ink, 1.0);
        let matrix = if is_upward {
            let (x, y) = self.at((at.0 + down, at.1 + back));
            [0.0, 1.0, -1.0, 0.0, x, y]
        } else {
            let (x, y) = self.at((at.0 - back, at.1 + down));
            [1.0, 0.0, 0.0, 1.0, x, y]
        };
        self.content.begin_text().set_font(HELVETICA, font.px as f32).set_text_matrix(matrix);
        self.content.show(Str(&encoded(words))).end_text();
    }
}

/// The colour of `ink` on white, from 0 to 1.
fn on_white(ink: Ink, opacity: f64) -> [f32; 3] {
    let digits = ink.light();
    [1, 3, 5].map(|at| {
        let byte = digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
        let value = f64::from(byte) / 255.0;
        (1.0 - opacity + opacity * value) as f32
    })
}

/// The letters beyond Latin-1 in Windows code page 1252, with their codes (ISO 32000-1, annex D.2).
const BEYOND_LATIN_1: [(char, u8); 12] = [
    ('€', 0x80),
    ('…', 0x85),
    ('‰', 0x89),
    ('‘', 0x91),
    ('’', 0x92),
    ('“', 0x93),
    ('”', 0x94),
    ('•', 0x95),
    ('–', 0x96),
    ('—', 0x97),
    ('™', 0x99),
    ('−', 0x96),
];

/// `words` in Windows code page 1252; `?` replaces what it lacks.
fn encoded(words: &str) -> Vec<u8> {
    let code = |letter: char| match u32::from(letter) {
        latin @ (0x20..=0x7e | 0xa0..=0xff) => latin as u8,
        _ => BEYOND_LATIN_1.iter().find(|(known, _)| *known == letter).map_or(b'?', |(_, code)| *code),
    };
    words.chars().map(code).collect()
}

/// Widths of the printable ASCII letters in thousandths of an em (Adobe's metrics of Helvetica).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Width of `words` in em. Letters beyond ASCII count as a digit, the width of most of them.
fn width_em(words: &str) -> f64 {
    const DIGIT: u16 = 556;
    let width = |letter: char| {
        let place = u32::from(letter).checked_sub(0x20).map(|place| place as usize);
        place.and_then(|place| WIDTHS.get(place)).copied().unwrap_or(DIGIT)
    };
    words.chars().map(|letter| f64::from(width(letter)) / 1_000.0).sum()
}

#[cfg(test)]
mod tests {
    use super::super::canvas::Canvas;
    use super::*;

    fn drawn(draw: impl FnOnce(&mut Canvas)) -> Picture {
        let mut canvas = Canvas::new(200, 100);
        draw(&mut canvas);
        canvas.into_picture("a plot")
    }

    fn operators(picture: &Picture) -> String {
        String::from_utf8(picture.content()).unwrap()
    }

    #[test]
    fn a_file_has_one_page_of_the_pictures_size_and_its_title() {
        let pdf = drawn(|_| {}).to_pdf();
        let text = String::from_utf8_lossy(&pdf);
        assert!(text.starts_with("%PDF-1.") && text.trim_end().ends_with("%%EOF"), "{text}");
        for part in ["/MediaBox [0 0 150 75]", "/Count 1", "/Title (a plot)", "/BaseFont /Helvetica"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn pixels_from_above_become_lengths_from_below() {
        let stroke = Stroke::new(Ink::Curve(1), 2).dashed("7 3");
        let operators = operators(&drawn(|canvas| canvas.line([(0, 10), (200, 100)], stroke)));
        let expected = "0 0.44705883 0.69803923 RG\n2 w\n[7 3] 0 d\n0 90 m\n200 0 l\nS";
        assert!(operators.contains(expected), "{operators}");
    }

    #[test]
    fn text_is_aligned_by_the_widths_of_its_letters() {
        assert!((width_em("10 Mb/s") - (2.0 * 0.556 + 0.278 + 0.833 + 0.556 + 0.278 + 0.5)).abs() < 1e-9);
        let font = Font::new(10.0, Ink::Text).to_the_left();
        let operators = operators(&drawn(|canvas| canvas.text("ab", (100, 50), font)));
        assert!(operators.contains("1 0 0 1 88.88 47.4 Tm\n(ab) Tj"), "{operators}");
    }

    #[test]
    fn what_the_font_lacks_becomes_a_question_mark() {
        assert_eq!(encoded("±µ–é"), [0xb1, 0xb5, 0x96, 0xe9]);
        assert_eq!(encoded("≤\u{0}"), *b"??");
    }
}
