//! The look of a series: each scheme has the same colour, marker and dash in all pictures of the program.

use super::Ink;
use super::canvas::{Canvas, Stroke};

/// Colour and marker of a series. When printed without colours, marker and dash still distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesStyle {
    /// Its colour.
    pub ink: Ink,
    /// Its marker.
    pub shape: Shape,
}

/// A marker. Each implies a dash pattern of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Cross,
    Plus,
}

impl Shape {
    /// All markers, most distinct first.
    pub const ALL: [Self; 7] = [
        Self::Circle,
        Self::Square,
        Self::Triangle,
        Self::Diamond,
        Self::TriangleDown,
        Self::Cross,
        Self::Plus,
    ];

    /// SVG dash array of its line; empty for a solid line.
    pub const fn dash(self) -> &'static str {
        const DASHES: [&str; Shape::ALL.len()] = ["", "7 3", "2 3", "10 3 2 3", "4 2", "12 4", "6 2 2 2 2 2"];
        DASHES[self as usize]
    }
}

use Shape::{Circle as Dot, Cross, Diamond, Plus, Square, Triangle, TriangleDown as Down};

/// Curve colours by index in [`super::STYLE`]: those of Okabe and Ito for colour-blind readers.
const BLACK: usize = 0;
const BLUE: usize = 1;
const VERMILLION: usize = 2;
const GREEN: usize = 3;
const PURPLE: usize = 4;
const ORANGE: usize = 5;
const SKY: usize = 6;
pub(super) const CURVE_COLOURS: usize = 7;

/// Colour and marker of each scheme. Families share a colour (our choice): references black, HACK blue, less frequent
/// ACKs sky blue, policies of TCP stacks purple, schemes that thin ACKs in transit orange, FWP and senders green (black
/// since green has no marker left), TACK vermillion. QUIC stacks have what is left.
const SCHEMES: &[(&str, usize, Shape)] = &[
    ("stock", BLACK, Dot),
    ("udp", BLACK, Down),
    ("as-written", BLACK, Square),
    ("hack-more-data", BLUE, Dot),
    ("hack-batch", BLUE, Square),
    ("hack-echo", BLUE, Plus),
    ("hack-opportunistic", BLUE, Triangle),
    ("hack-timer", BLUE, Diamond),
    ("tcp-l1", SKY, Dot),
    ("tcp-l2", SKY, Down),
    ("tcp-l4", SKY, Square),
    ("tcp-l8", SKY, Triangle),
    ("tcp-l16", SKY, Diamond),
    ("tcp-linux", PURPLE, Dot),
    ("quic-ack2", PURPLE, Square),
    ("quic-ackfreq", PURPLE, Triangle),
    ("quinn", BLACK, Cross),
    ("quic-go", ORANGE, Plus),
    ("aioquic", VERMILLION, Plus),
    ("chrome", PURPLE, Diamond),
    ("neqo", PURPLE, Down),
    ("picoquic", PURPLE, Cross),
    ("quiche", SKY, Plus),
    ("mvfst", SKY, Cross),
    ("s2n-quic", BLUE, Cross),
    ("msquic", BLACK, Plus),
    ("tack-lite", PURPLE, Plus),
    ("cake-ack-filter", ORANGE, Dot),
    ("driver-replace", ORANGE, Square),
    ("driver-hold", ORANGE, Triangle),
    ("thin", ORANGE, Cross),
    ("rdg", ORANGE, Diamond),
    ("fastack", ORANGE, Down),
    ("fwp", GREEN, Dot),
    ("fwp-ap-repair", GREEN, Square),
    ("cubic", GREEN, Triangle),
    ("newreno", GREEN, Diamond),
    ("bbr", GREEN, Down),
    ("bbr3", BLACK, Triangle),
    ("prague", BLACK, Diamond),
    ("rre", GREEN, Cross),
    ("rsfc", GREEN, Plus),
    ("tack", VERMILLION, Dot),
    ("tack-poor", VERMILLION, Square),
    ("tack-l1", VERMILLION, Triangle),
    ("tack-cubic", VERMILLION, Diamond),
    ("tack-hack", VERMILLION, Down),
    ("tack-paper", VERMILLION, Cross),
];

impl SeriesStyle {
    const fn new(colour: usize, shape: Shape) -> Self {
        Self { ink: Ink::Curve(colour), shape }
    }

    /// The look of the scheme with this name; `None` if there is no such scheme.
    pub fn for_scheme(name: &str) -> Option<Self> {
        let (_, colour, shape) = SCHEMES.iter().find(|(known, ..)| *known == name)?;
        Some(Self::new(*colour, *shape))
    }

    /// The looks of the series in a picture. Schemes have their own look. A name that contains a scheme's, such as
    /// "live FWP", gets that scheme's colour and the first unused marker with it. All others get the first unused
    /// colour, then marker.
    pub fn for_series(names: &[&str]) -> Vec<Self> {
        let mut looks: Vec<Option<Self>> = names.iter().map(|name| Self::for_scheme(name)).collect();
        for by_word in [true, false] {
            for (index, name) in
                names.iter().enumerate().filter(|(index, _)| looks[*index].is_none()).collect::<Vec<_>>()
            {
                let colour = scheme_in(name).map(|look| look.ink);
                if by_word == colour.is_some() {
                    looks[index] = Some(free(colour, &looks));
                }
            }
        }
        looks.into_iter().map(|look| look.unwrap_or(Self::new(BLACK, Dot))).collect()
    }

    /// The dash pattern of its line in pixels, alternately drawn and omitted, separated by spaces; empty for a solid
    /// line.
    pub const fn dash(self) -> &'static str {
        self.shape.dash()
    }

    /// Its line, `width` pixels wide.
    pub(super) const fn line(self, width: u32) -> Stroke {
        Stroke::new(self.ink, width).dashed(self.dash())
    }

    /// Draws its marker.
    pub(super) fn mark(self, canvas: &mut Canvas, (x, y): (f64, f64)) {
        /// Distance from the centre to the edge in pixels.
        const SIZE: f64 = 5.0;
        let corners = |offsets: [[f64; 2]; 4]| offsets.map(|[right, down]| (x + right, y + down));
        let strokes = |canvas: &mut Canvas, [a, b, c, d]: [(f64, f64); 4]| {
            canvas.line([a, b], Stroke::new(self.ink, 2));
            canvas.line([c, d], Stroke::new(self.ink, 2));
        };
        match self.shape {
            Dot => canvas.circle((x, y), 4, self.ink),
            Square => canvas.rectangle([(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)], self.ink, 1.0),
            Triangle => canvas.polygon([(x, y - SIZE), (x + SIZE, y + 4.0), (x - SIZE, y + 4.0)], self.ink),
            Diamond => canvas.polygon(
                corners([[0.0, -SIZE - 1.0], [SIZE, 0.0], [0.0, SIZE + 1.0], [-SIZE, 0.0]]),
                self.ink,
            ),
            Down => canvas.polygon([(x, y + SIZE), (x + SIZE, y - 4.0), (x - SIZE, y - 4.0)], self.ink),
            Cross => strokes(canvas, corners([[-4.0, -4.0], [4.0, 4.0], [-4.0, 4.0], [4.0, -4.0]])),
            Plus => strokes(canvas, corners([[-SIZE, 0.0], [SIZE, 0.0], [0.0, -SIZE], [0.0, SIZE]])),
        }
    }
}

/// The look of the first scheme whose name is a word in `name`, or of the family that a word names.
fn scheme_in(name: &str) -> Option<SeriesStyle> {
    let lower = name.to_lowercase();
    let mut words = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
    words.find_map(|word| {
        if word == "hack" { Some(SeriesStyle::new(BLUE, Dot)) } else { SeriesStyle::for_scheme(word) }
    })
}

/// The first look that is not in `taken`; if all are taken, the first one.
fn free(ink: Option<Ink>, taken: &[Option<SeriesStyle>]) -> SeriesStyle {
    let all = Shape::ALL
        .into_iter()
        .flat_map(|shape| (0..CURVE_COLOURS).map(move |colour| SeriesStyle::new(colour, shape)));
    let of_ink: Vec<SeriesStyle> = all.filter(|look| ink.is_none_or(|ink| look.ink == ink)).collect();
    // If possible, neighbours differ in both colour and marker.
    let is_fresh = |look: &&SeriesStyle| !taken.iter().flatten().any(|other| other == *look);
    let has_own_colour = |look: &&SeriesStyle| !taken.iter().flatten().any(|other| other.ink == look.ink);
    let has_own_shape = |look: &&SeriesStyle| !taken.iter().flatten().any(|other| other.shape == look.shape);
    let fresh = || of_ink.iter().filter(is_fresh);
    let apart = fresh().filter(has_own_colour).find(has_own_shape);
    let fresh_look = apart.or_else(|| fresh().find(has_own_colour)).or_else(|| fresh().find(has_own_shape));
    fresh_look.or_else(|| fresh().next()).copied().unwrap_or(of_ink[0])
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use tacit_scenario::scheme::{self, AS_WRITTEN};

    use super::super::STYLE;
    use super::*;

    #[test]
    fn every_scheme_has_a_look_of_its_own() {
        let names = || scheme::ALL.iter().map(|scheme| scheme.name).chain([AS_WRITTEN.name]);
        let mut seen: Vec<(&str, SeriesStyle)> = Vec::new();
        for name in names() {
            let look = SeriesStyle::for_scheme(name).unwrap_or_else(|| panic!("{name} has no look"));
            let like = seen.iter().find(|(_, other)| *other == look);
            assert!(like.is_none(), "{name} looks like {like:?}");
            seen.push((name, look));
        }
        assert_eq!(seen.len(), SCHEMES.len(), "a look without a scheme");
    }

    /// Changing a look changes every picture, including published ones.
    #[test]
    fn looks_of_the_default_schemes_stay() {
        let mut table = String::new();
        for scheme in scheme::by_default() {
            let SeriesStyle { ink, shape } = SeriesStyle::for_scheme(scheme.name).unwrap();
            writeln!(table, "{} {ink:?} {shape:?}", scheme.name).unwrap();
        }
        assert_eq!(
            table,
            "stock Curve(0) Circle\nhack-more-data Curve(1) Circle\nhack-batch Curve(1) Square\n\
             hack-opportunistic Curve(1) Triangle\nhack-timer Curve(1) Diamond\ntcp-l1 Curve(6) Circle\n\
             tcp-l4 Curve(6) Square\ntcp-l8 Curve(6) Triangle\ntcp-l16 Curve(6) Diamond\ntack Curve(2) Circle\n\
             udp Curve(0) TriangleDown\n"
        );
    }

    #[test]
    fn a_look_is_told_as_pictures_have_it() {
        let look = SeriesStyle::for_scheme("tcp-l4").unwrap();
        assert_eq!((look.ink.light(), look.dash()), ("#3391cc", "7 3"));
        for colour in 0..CURVE_COLOURS {
            let light = Ink::Curve(colour).light();
            assert!(
                STYLE.split("@media").next().unwrap().contains(&format!("--c{colour}:{light}")),
                "{light}"
            );
        }
    }

    #[test]
    fn series_that_are_no_scheme_have_the_schemes_colour_or_a_free_one() {
        let looks = SeriesStyle::for_series(&["fwp", "live FWP", "curl", "stock", "another"]);
        assert_eq!(looks[1], SeriesStyle::new(GREEN, Square), "beside fwp, its colour, another marker");
        assert_eq!(looks[3], SeriesStyle::for_scheme("stock").unwrap());
        assert!(![GREEN, BLACK].map(Ink::Curve).contains(&looks[2].ink), "{looks:?}");
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{looks:?}");
        }
        let closed = SeriesStyle::for_series(&["UDP", "TCP/HACK", "TCP"]);
        assert_eq!(closed[1].ink, Ink::Curve(BLUE), "the colour of TCP/HACK");
        for (index, look) in closed.iter().enumerate() {
            let is_apart = |other: &SeriesStyle| other.ink != look.ink && other.shape != look.shape;
            assert!(closed[..index].iter().all(is_apart), "apart without colours: {closed:?}");
        }
        let many: Vec<String> = (0..200).map(|number| format!("n {number}")).collect();
        assert_eq!(SeriesStyle::for_series(&many.iter().map(String::as_str).collect::<Vec<_>>()).len(), 200);
    }

    /// WCAG 2.1, success criterion 1.4.11 requires a contrast of 3:1 for graphics. A greyscale print shows luminance as
    /// defined by WCAG.
    #[test]
    fn every_curve_stands_out_from_paper_without_its_colour() {
        let light = STYLE.split("@media").next().unwrap();
        for curve in 0..CURVE_COLOURS {
            let hex = light.split(&format!("--c{curve}:#")).nth(1).unwrap();
            let linear = |at: usize| {
                let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            let luminance = 0.2126 * linear(0) + 0.7152 * linear(2) + 0.0722 * linear(4);
            let contrast = 1.05 / (luminance + 0.05);
            assert!(contrast >= 3.0, "--c{curve}: {contrast:.2}");
        }
    }
}
