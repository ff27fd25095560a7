//! Frames on the air: one lane per station, one box per PPDU, and an arrow to its receiver.

mod place;

use super::canvas::{Canvas, Font, Picture, Stroke};
use super::{Ink, Shape};
use place::{Placed, PlacedExchange, part_width, place, text_width};

/// A time line.
#[derive(Clone, Debug, Default)]
pub struct TimelineChart {
    /// Alternative text.
    pub alt: String,
    /// Names of the stations from top to bottom.
    pub lanes: Vec<String>,
    /// The exchanges in chronological order.
    pub exchanges: Vec<Exchange>,
    /// The colours with their meaning.
    pub legend: Vec<(Ink, String)>,
}

/// A PPDU and its response.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Its start time.
    pub label: String,
    /// The PPDUs in order of start time.
    pub frames: Vec<Frame>,
}

/// A PPDU.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The transmitter as the index of its lane.
    pub lane: usize,
    /// The receiver as the index of its lane; `None` for broadcast.
    pub to: Option<usize>,
    /// Start time.
    pub start_us: f64,
    /// Duration.
    pub duration_us: f64,
    /// Parts of its box from left to right.
    pub parts: Vec<Part>,
    /// For each MPDU, whether it arrived. Not drawn if there are fewer than two.
    pub mpdus: Vec<bool>,
    /// Text above or below the box.
    pub notes: Vec<Note>,
    /// None of it arrived.
    pub lost: bool,
    /// Index of this user's part, from 0, and number of parts in a multi-user PPDU. The parts share the height of the
    /// lane.
    pub part_of: (usize, usize),
}

/// A part of a box.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its text.
    pub label: String,
    /// Its colour.
    pub ink: Ink,
}

/// A line of text next to a box.
#[derive(Clone, Debug)]
pub struct Note {
    /// The text.
    pub text: String,
    /// Its colour.
    pub ink: Ink,
}

/// The colour of lost frames and MPDUs.
pub const LOST: Ink = Ink::Series(5);

/// Explanation of the widths; see [`place`].
const SCALE_NOTE: &str =
    "A box is as wide as the square root of its airtime, or as its text; gaps are not to scale.";
const WIDTH: u32 = 1_060;
const MARGIN: i32 = 12;
const BOX: i32 = 36;
/// Minimum height of a user's part of a PPDU.
const LEAST_PART: i32 = 17;
/// Height of the strip that shows the MPDUs of a box.
const STRIP: f64 = 7.0;
/// Distance between the notes or boxes of a lane and the next lane.
const BETWEEN: i32 = 38;
const NOTE: i32 = 15;
/// Height of the bracket and the time below an exchange.
const FOOT: i32 = 40;
const LEGEND: i32 = 24;
const SMALL: f64 = 11.0;

/// Vertical positions in one row of the picture, relative to its top.
struct RowLayout {
    /// Top and height of the boxes in each lane.
    lanes: Vec<(i32, i32)>,
    foot: i32,
    height: i32,
}

impl TimelineChart {
    /// The picture.
    pub fn picture(&self) -> Picture {
        let placed = place(&self.exchanges, self.left(), f64::from(WIDTH) - f64::from(MARGIN));
        let line = self.line();
        let lines = placed.last().map_or(0, |exchange| exchange.line + 1) as i32;
        let legend = LEGEND * (self.legend_height() + 1);
        let mut canvas = Canvas::new(WIDTH, (MARGIN + lines * line.height + legend + MARGIN) as u32);
        self.draw(&mut canvas, &placed, &line);
        canvas.into_picture(&self.alt)
    }

    /// Start of the time axis, to the right of the names.
    fn left(&self) -> f64 {
        let widest = self.lanes.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        f64::from(MARGIN) + widest + 16.0
    }

    /// Number of lines of notes in lane `lane`.
    fn notes(&self, lane: usize) -> i32 {
        let frames = self.exchanges.iter().flat_map(|exchange| &exchange.frames);
        frames.filter(|frame| frame.lane == lane).map(|frame| frame.notes.len() as i32).max().unwrap_or(0)
    }

    /// Height of the boxes in lane `lane`.
    fn height(&self, lane: usize) -> i32 {
        let frames = self.exchanges.iter().flat_map(|exchange| &exchange.frames);
        let parts = frames.filter(|frame| frame.lane == lane).map(|frame| frame.part_of.1).max();
        BOX.max(LEAST_PART * parts.unwrap_or(1) as i32)
    }

    /// The notes of the first lane are above its boxes, those of the others below.
    fn line(&self) -> RowLayout {
        let mut top = NOTE * self.notes(0) + 4;
        let mut lanes = Vec::new();
        for lane in 0..self.lanes.len() {
            let height = self.height(lane);
            lanes.push((top, height));
            let below = if lane == 0 { 0 } else { NOTE * self.notes(lane) };
            top += height + below + BETWEEN;
        }
        let foot = top - BETWEEN + 10;
        RowLayout { lanes, foot, height: foot + FOOT }
    }

    fn draw(&self, canvas: &mut Canvas, placed: &[PlacedExchange], line: &RowLayout) {
        let lines = placed.last().map_or(0, |exchange| exchange.line + 1);
        for number in 0..lines {
            self.draw_lanes(canvas, MARGIN + number as i32 * line.height, line);
        }
        for (exchange, at) in self.exchanges.iter().zip(placed) {
            let top = MARGIN + at.line as i32 * line.height;
            draw_bracket(canvas, exchange, at, top + line.foot);
            for (frame, place) in exchange.frames.iter().zip(&at.boxes) {
                draw_frame(canvas, frame, place, top, line);
            }
        }
        self.draw_legend(canvas, MARGIN + lines as i32 * line.height);
    }

    fn draw_lanes(&self, canvas: &mut Canvas, top: i32, line: &RowLayout) {
        for (number, (name, (lane, height))) in self.lanes.iter().zip(&line.lanes).enumerate() {
            canvas.text(name, (MARGIN, top + lane + height / 2), Font::new(12.0, Ink::Text));
            // The boxes of the first lane are above its line, those of the others below theirs.
            let level = top + lane + if number == 0 { *height } else { 0 };
            canvas.line([(MARGIN, level), (WIDTH as i32 - MARGIN, level)], Stroke::new(Ink::Grid, 2));
        }
    }

    /// Row and left end of each entry in the legend.
    fn legend_rows(&self) -> Vec<(i32, i32)> {
        let (mut row, mut left) = (0, MARGIN);
        let mut places = Vec::new();
        for (_, text) in &self.legend {
            let width = text_width(text) as i32 + 46;
            if left > MARGIN && left + width > WIDTH as i32 {
                (row, left) = (row + 1, MARGIN);
            }
            places.push((row, left));
            left += width;
        }
        places
    }

    /// Number of rows in the legend.
    fn legend_height(&self) -> i32 {
        self.legend_rows().last().map_or(0, |(row, _)| row + 1)
    }

    fn draw_legend(&self, canvas: &mut Canvas, top: i32) {
        let font = Font::new(SMALL, Ink::Muted);
        for ((ink, text), (row, left)) in self.legend.iter().zip(self.legend_rows()) {
            let middle = top + row * LEGEND + LEGEND / 2;
            fill(canvas, [(left, middle - 6), (left + 16, middle + 6)], *ink);
            canvas.text(text, (left + 22, middle), font);
        }
        canvas.text(SCALE_NOTE, (MARGIN, top + self.legend_height() * LEGEND + LEGEND / 2), font);
    }
}

/// Boxes are light, so that text in them is readable. Lost ones are in full colour.
fn tint(ink: Ink) -> f64 {
    if ink == LOST { 1.0 } else { 0.25 }
}

fn fill<T: Into<f64> + Copy>(canvas: &mut Canvas, corners: [(T, T); 2], ink: Ink) {
    canvas.rectangle(corners, ink, tint(ink));
    canvas.outline(corners, Stroke::new(ink, 1));
}

fn draw_bracket(canvas: &mut Canvas, exchange: &Exchange, at: &PlacedExchange, top: i32) {
    let top = f64::from(top);
    let bracket = [(at.left, top), (at.left, top + 5.0), (at.right, top + 5.0), (at.right, top)];
    canvas.line(bracket, Stroke::new(Ink::Muted, 1));
    canvas.text(&exchange.label, (at.left, top + 10.0), Font::new(SMALL, Ink::Muted).below());
}

fn draw_frame(canvas: &mut Canvas, frame: &Frame, place: &Placed, line_top: i32, line: &RowLayout) {
    let (top, height) = line.lanes[frame.lane];
    let top = line_top + top;
    draw_box(canvas, frame, place, (top, height));
    for (number, note) in frame.notes.iter().enumerate() {
        let middle = if frame.lane == 0 {
            top - NOTE * (frame.notes.len() - number) as i32 + NOTE / 2 - 3
        } else {
            top + height + NOTE * number as i32 + NOTE / 2 + 3
        };
        canvas.text(&note.text, (place.left, f64::from(middle)), Font::new(SMALL, note.ink));
    }
    // Arrows from the parts of a PPDU would cross each other.
    let Some(to) = frame.to.filter(|_| frame.part_of.1 == 1) else { return };
    let (to_top, to_height) = line.lanes[to];
    let (from, end) = if to > frame.lane {
        (top + height, line_top + to_top)
    } else {
        (top, line_top + to_top + to_height)
    };
    draw_arrow(canvas, place.right(), f64::from(from), f64::from(end), frame.lost);
}

/// Draws the box: its parts, the strip of its MPDUs, a cross if it was lost, and its text.
fn draw_box(canvas: &mut Canvas, frame: &Frame, place: &Placed, (lane_top, lane_height): (i32, i32)) {
    let (part, parts) = (frame.part_of.0 as i32, frame.part_of.1 as i32);
    let edge = |part: i32| f64::from(lane_top + lane_height * part / parts);
    let (top, bottom) = (edge(part), edge(part + 1));
    let written: f64 = frame.parts.iter().map(|part| part_width(&part.label)).sum();
    let has_strip = frame.mpdus.len() > 1 && parts == 1;
    let text_bottom = if has_strip { bottom - STRIP } else { bottom };
    let mut left = place.left;
    let mut labels = Vec::new();
    for part in &frame.parts {
        let right = left + place.width * part_width(&part.label) / written;
        fill(canvas, [(left, top), (right, bottom)], part.ink);
        labels.push((part.label.as_str(), (f64::midpoint(left, right), f64::midpoint(top, text_bottom))));
        left = right;
    }
    if has_strip {
        draw_mpdus(canvas, frame, place, bottom - STRIP);
    }
    if frame.lost {
        for (from, to) in [(top, bottom), (bottom, top)] {
            canvas.line([(place.left, from), (place.right(), to)], Stroke::new(LOST, 1).opacity(0.55));
        }
    }
    for (label, at) in labels {
        canvas.text(label, at, Font::new(SMALL, Ink::Text).centred());
    }
}

/// Draws a strip with the MPDUs of an A-MPDU side by side.
fn draw_mpdus(canvas: &mut Canvas, frame: &Frame, place: &Placed, top: f64) {
    let Some(part) = frame.parts.first() else { return };
    let each = place.width / frame.mpdus.len() as f64;
    for (number, arrived) in frame.mpdus.iter().enumerate() {
        let edge = |number: usize| place.left + each * number as f64;
        let (ink, tint) = if *arrived { (part.ink, 0.5) } else { (LOST, 1.0) };
        canvas.rectangle([(edge(number), top), (edge(number + 1), top + STRIP)], ink, tint);
    }
}

/// Draws an arrow from the end of a frame to its receiver, broken if the receiver did not get it.
fn draw_arrow(canvas: &mut Canvas, x: f64, from: f64, to: f64, lost: bool) {
    let down = (to - from).signum();
    if !lost {
        canvas.line([(x, from), (x, to - 5.0 * down)], Stroke::new(Ink::Muted, 1));
        let base = to - 7.0 * down;
        canvas.polygon([(x, to), (x - 4.0, base), (x + 4.0, base)], Ink::Muted);
        return;
    }
    let middle = f64::midpoint(from, to);
    canvas.line([(x, from), (x, middle)], Stroke::new(LOST, 1).dashed(Shape::Triangle.dash()));
    for side in [-4.0, 4.0] {
        canvas.line([(x - 4.0, middle - side), (x + 4.0, middle + side)], Stroke::new(LOST, 2));
    }
}
