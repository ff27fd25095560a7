//! Frames on the air: a lane per station, a box per PPDU, an arrow to its receiver.

mod place;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, Ink, finish, font};
use place::{Placed, PlacedExchange, part_width, place, text_width};

/// A time line.
#[derive(Clone, Debug, Default)]
pub struct TimelineChart {
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// Names of the stations, first on top.
    pub lanes: Vec<String>,
    /// The exchanges in order of time.
    pub exchanges: Vec<Exchange>,
    /// Colours and what they mean.
    pub legend: Vec<(Ink, String)>,
}

/// A PPDU and its response.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// When it starts.
    pub label: String,
    /// The PPDUs, by start.
    pub frames: Vec<Frame>,
}

/// A PPDU.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Who sends: index of a lane.
    pub lane: usize,
    /// Who should hear it; `None` for everybody.
    pub to: Option<usize>,
    /// When it starts.
    pub start_us: f64,
    /// How long it is.
    pub duration_us: f64,
    /// What its box is made of, left to right.
    pub parts: Vec<Part>,
    /// Of each MPDU, whether it arrived; nothing is drawn of fewer than two.
    pub mpdus: Vec<bool>,
    /// What stands above or below the box.
    pub notes: Vec<Note>,
    /// Nothing of it arrived.
    pub lost: bool,
    /// Which of how many users' parts of a PPDU it is, from 0: it has its share of the lane's height.
    pub part_of: (usize, usize),
}

/// A stretch of a box.
#[derive(Clone, Debug)]
pub struct Part {
    /// What is written in it.
    pub label: String,
    /// Its colour.
    pub ink: Ink,
}

/// A line of text beside a box.
#[derive(Clone, Debug)]
pub struct Note {
    /// The text.
    pub text: String,
    /// Its colour.
    pub ink: Ink,
}

/// The colour of what is lost.
pub const LOST: Ink = Ink::Series(5);

/// How to read widths; see [`place`].
const SCALE_NOTE: &str =
    "A box is as wide as the square root of its airtime, or as its text; gaps are not to scale.";
const WIDTH: u32 = 1_060;
const MARGIN: i32 = 12;
const BOX: i32 = 36;
/// Least height of a user's part of a PPDU.
const LEAST_PART: i32 = 17;
/// Height of the strip that shows the MPDUs of a box.
const STRIP: i32 = 7;
/// Between the notes of a lane, or its boxes, and the next lane.
const BETWEEN: i32 = 38;
const NOTE: i32 = 15;
/// Bracket and time under an exchange.
const FOOT: i32 = 40;
const LEGEND: i32 = 24;
const SMALL: f64 = 11.0;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Vertical places of one line of the picture, relative to its top.
struct RowLayout {
    /// Top of the boxes of each lane, and how high they are.
    lanes: Vec<(i32, i32)>,
    foot: i32,
    height: i32,
}

impl TimelineChart {
    /// The picture.
    pub fn to_svg(&self) -> String {
        let placed = place(&self.exchanges, self.left(), f64::from(WIDTH) - f64::from(MARGIN));
        let line = self.line();
        let lines = placed.last().map_or(0, |exchange| exchange.line + 1) as i32;
        let legend = LEGEND * (self.legend_height() + 1);
        let size = (WIDTH, (MARGIN + lines * line.height + legend + MARGIN) as u32);
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        // Writing to a string does not fail.
        let _ = self.draw(&area, &placed, &line).and_then(|()| Ok(area.present()?));
        drop(area);
        finish(&svg, size, &self.alt)
    }

    /// Where time starts: right of the names.
    fn left(&self) -> f64 {
        let widest = self.lanes.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        f64::from(MARGIN) + widest + 16.0
    }

    /// Lines of notes that lane `lane` needs.
    fn notes(&self, lane: usize) -> i32 {
        let frames = self.exchanges.iter().flat_map(|exchange| &exchange.frames);
        frames.filter(|frame| frame.lane == lane).map(|frame| frame.notes.len() as i32).max().unwrap_or(0)
    }

    /// How high the boxes of lane `lane` are.
    fn height(&self, lane: usize) -> i32 {
        let frames = self.exchanges.iter().flat_map(|exchange| &exchange.frames);
        let parts = frames.filter(|frame| frame.lane == lane).map(|frame| frame.part_of.1).max();
        BOX.max(LEAST_PART * parts.unwrap_or(1) as i32)
    }

    /// The notes of the first lane stand above its boxes, those of the others below.
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

    fn draw(&self, area: &Area<'_>, placed: &[PlacedExchange], line: &RowLayout) -> Drawn {
        let lines = placed.last().map_or(0, |exchange| exchange.line + 1);
        for number in 0..lines {
            self.draw_lanes(area, MARGIN + number as i32 * line.height, line)?;
        }
        for (exchange, at) in self.exchanges.iter().zip(placed) {
            let top = MARGIN + at.line as i32 * line.height;
            draw_bracket(area, exchange, at, top + line.foot)?;
            for (frame, place) in exchange.frames.iter().zip(&at.boxes) {
                draw_frame(area, frame, place, top, line)?;
            }
        }
        self.draw_legend(area, MARGIN + lines as i32 * line.height)
    }

    fn draw_lanes(&self, area: &Area<'_>, top: i32, line: &RowLayout) -> Drawn {
        for (number, (name, (lane, height))) in self.lanes.iter().zip(&line.lanes).enumerate() {
            let style = font(12.0, Ink::Text).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(name.clone(), (MARGIN, top + lane + height / 2), style))?;
            // The first lane stands on its line, the others hang from theirs.
            let level = top + lane + if number == 0 { *height } else { 0 };
            let ends = [(MARGIN, level), (WIDTH as i32 - MARGIN, level)];
            area.draw(&PathElement::new(ends, Ink::Grid.stand_in().stroke_width(2)))?;
        }
        Ok(())
    }

    /// Row and left end of each entry of the legend.
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

    /// Rows of the legend.
    fn legend_height(&self) -> i32 {
        self.legend_rows().last().map_or(0, |(row, _)| row + 1)
    }

    fn draw_legend(&self, area: &Area<'_>, top: i32) -> Drawn {
        for ((ink, text), (row, left)) in self.legend.iter().zip(self.legend_rows()) {
            let middle = top + row * LEGEND + LEGEND / 2;
            fill(area, (left, middle - 6), (left + 16, middle + 6), *ink, tint(*ink))?;
            let style = font(SMALL, Ink::Muted).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(text.clone(), (left + 22, middle), style))?;
        }
        let middle = top + self.legend_height() * LEGEND + LEGEND / 2;
        let style = font(SMALL, Ink::Muted).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(SCALE_NOTE, (MARGIN, middle), style))?;
        Ok(())
    }
}

/// Boxes are light enough for the text in them; what is lost stands out.
fn tint(ink: Ink) -> f64 {
    if ink == LOST { 1.0 } else { 0.25 }
}

fn fill(area: &Area<'_>, from: (i32, i32), to: (i32, i32), ink: Ink, tint: f64) -> Drawn {
    area.draw(&Rectangle::new([from, to], ink.stand_in().mix(tint).filled()))?;
    area.draw(&Rectangle::new([from, to], ink.stand_in().stroke_width(1)))?;
    Ok(())
}

fn draw_bracket(area: &Area<'_>, exchange: &Exchange, at: &PlacedExchange, top: i32) -> Drawn {
    let (left, right) = (at.left as i32, at.right as i32);
    let path = [(left, top), (left, top + 5), (right, top + 5), (right, top)];
    area.draw(&PathElement::new(path, Ink::Muted.stand_in().stroke_width(1)))?;
    let style = font(SMALL, Ink::Muted).pos(Pos::new(HPos::Left, VPos::Top));
    area.draw(&Text::new(exchange.label.clone(), (left, top + 10), style))?;
    Ok(())
}

fn draw_frame(area: &Area<'_>, frame: &Frame, place: &Placed, line_top: i32, line: &RowLayout) -> Drawn {
    let (top, height) = line.lanes[frame.lane];
    let top = line_top + top;
    draw_box(area, frame, place, (top, height))?;
    let (left, right) = (place.left as i32, place.right() as i32);
    for (number, note) in frame.notes.iter().enumerate() {
        let middle = if frame.lane == 0 {
            top - NOTE * (frame.notes.len() - number) as i32 + NOTE / 2 - 3
        } else {
            top + height + NOTE * number as i32 + NOTE / 2 + 3
        };
        let style = font(SMALL, note.ink).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(note.text.clone(), (left, middle), style))?;
    }
    // Arrows from each part of a PPDU would cross the others.
    let Some(to) = frame.to.filter(|_| frame.part_of.1 == 1) else { return Ok(()) };
    let (to_top, to_height) = line.lanes[to];
    let (from, end) = if to > frame.lane {
        (top + height, line_top + to_top)
    } else {
        (top, line_top + to_top + to_height)
    };
    draw_arrow(area, right, from, end, frame.lost)
}

/// The box: its parts, the strip of its MPDUs, a cross where it was lost, and on top what is written.
fn draw_box(area: &Area<'_>, frame: &Frame, place: &Placed, (lane_top, lane_height): (i32, i32)) -> Drawn {
    let (part, parts) = (frame.part_of.0 as i32, frame.part_of.1 as i32);
    let edge = |part: i32| lane_top + lane_height * part / parts;
    let (top, bottom) = (edge(part), edge(part + 1));
    let written: f64 = frame.parts.iter().map(|part| part_width(&part.label)).sum();
    let has_strip = frame.mpdus.len() > 1 && parts == 1;
    let text_height = if has_strip { bottom - top - STRIP } else { bottom - top };
    let mut left = place.left;
    let mut labels = Vec::new();
    for part in &frame.parts {
        let right = left + place.width * part_width(&part.label) / written;
        fill(area, (left as i32, top), (right as i32, bottom), part.ink, tint(part.ink))?;
        let style = font(SMALL, Ink::Text).pos(Pos::new(HPos::Center, VPos::Center));
        let middle = (f64::midpoint(left, right) as i32, top + text_height / 2);
        labels.push(Text::new(part.label.clone(), middle, style));
        left = right;
    }
    if has_strip {
        draw_mpdus(area, frame, place, bottom - STRIP)?;
    }
    if frame.lost {
        let (left, right) = (place.left as i32, place.right() as i32);
        for (from, to) in [(top, bottom), (bottom, top)] {
            let ink = LOST.stand_in().mix(0.55).stroke_width(1);
            area.draw(&PathElement::new([(left, from), (right, to)], ink))?;
        }
    }
    for label in &labels {
        area.draw(label)?;
    }
    Ok(())
}

/// A strip with the MPDUs of an A-MPDU side by side.
fn draw_mpdus(area: &Area<'_>, frame: &Frame, place: &Placed, top: i32) -> Drawn {
    let Some(part) = frame.parts.first() else { return Ok(()) };
    let each = place.width / frame.mpdus.len() as f64;
    for (number, arrived) in frame.mpdus.iter().enumerate() {
        let edge = |number: usize| (place.left + each * number as f64) as i32;
        let (ink, tint) = if *arrived { (part.ink, 0.5) } else { (LOST, 1.0) };
        let corners = [(edge(number), top), (edge(number + 1), top + STRIP)];
        area.draw(&Rectangle::new(corners, ink.stand_in().mix(tint).filled()))?;
    }
    Ok(())
}

/// An arrow at the end of a frame, to who should hear it; a broken one where nobody did.
fn draw_arrow(area: &Area<'_>, x: i32, from: i32, to: i32, lost: bool) -> Drawn {
    let down = (to - from).signum();
    if !lost {
        let ink = Ink::Muted.stand_in();
        area.draw(&PathElement::new([(x, from), (x, to - 5 * down)], ink.stroke_width(1)))?;
        let head = [(x, to), (x - 4, to - 7 * down), (x + 4, to - 7 * down)];
        area.draw(&Polygon::new(head, ink.filled()))?;
        return Ok(());
    }
    let (middle, ink) = (i32::midpoint(from, to), LOST.stand_in());
    for dash in 0..(middle - from).abs() / 6 {
        let start = from + 6 * dash * down;
        area.draw(&PathElement::new([(x, start), (x, start + 3 * down)], ink.stroke_width(1)))?;
    }
    for side in [-4, 4] {
        let stroke = [(x - 4, middle - side), (x + 4, middle + side)];
        area.draw(&PathElement::new(stroke, ink.stroke_width(2)))?;
    }
    Ok(())
}
