//! Horizontal bars, one per row, so that names stay readable regardless of their number.

use super::Ink;
use super::axis::{Axis, round_step};
use super::canvas::{Canvas, Font, Picture};
use super::rows::{AXIS, draw_axis, room_for};
use tacit_runs::store::Sheet;

/// A bar chart.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// Alternative text.
    pub alt: String,
    /// Label and unit of the axis.
    pub axis: String,
    /// Names of the parts of all bars.
    pub parts: Vec<String>,
    /// End of the axis; `None` fits the longest bar.
    pub axis_end: Option<f64>,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A row of the chart.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Text before the bar.
    pub name: String,
    /// Text after the bar.
    pub label: String,
    /// Its parts, adjacent to each other.
    pub parts: Vec<Part>,
}

/// A part of a bar.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its length.
    pub length: f64,
    /// Its colour.
    pub ink: Ink,
}

const ROW: u32 = 28;
const TOP: u32 = 4;

/// Up to this ratio of axis length to longest bar, the grid follows the longest bar; beyond it, the grid becomes
/// coarser.
const MAX_AXIS_OF_BARS: f64 = 100.0;

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|part| part.length).sum()
    }
}

impl BarChart {
    /// A row for each part of each bar.
    pub fn sheet(&self) -> Sheet {
        let parts = || {
            self.bars.iter().flat_map(|bar| self.parts.iter().zip(&bar.parts).map(move |part| (bar, part)))
        };
        let mut sheet = Sheet::default();
        sheet.text("name", parts().map(|(bar, _)| bar.name.as_str()));
        sheet.text("part", parts().map(|(_, (name, _))| name.as_str()));
        sheet.number(&self.axis, parts().map(|(_, (_, part))| Some(part.length)));
        sheet
    }

    /// The picture.
    pub fn picture(&self, width: u32) -> Picture {
        let (names, labels) =
            (self.bars.iter().map(|bar| &*bar.name), self.bars.iter().map(|bar| &*bar.label));
        let longest = self.bars.iter().map(Bar::length).fold(f64::MIN_POSITIVE, f64::max);
        let end = self.axis_end.unwrap_or(longest).max(f64::MIN_POSITIVE);
        // Leaves room for the bars even if names are long.
        let left = f64::from(room_for(names).min(width * 2 / 5));
        let right = f64::from(width - room_for(labels).min(width * 2 / 5));
        let axis = Axis { values: [0.0, end], pixels: [left, right], log: false };
        let bottom = TOP + ROW * self.bars.len() as u32;
        let mut canvas = Canvas::new(width, bottom + AXIS);
        // If bars are much shorter than the axis, their grid would fill the axis with lines.
        let step = round_step(longest.max(end / MAX_AXIS_OF_BARS), 6.0);
        draw_axis(&mut canvas, &axis, step, [TOP, bottom].map(f64::from), &self.axis);
        for (row, bar) in self.bars.iter().enumerate() {
            draw_bar(&mut canvas, f64::from(TOP + ROW * row as u32), bar, &axis);
        }
        canvas.into_picture(&self.alt)
    }
}

/// Draws one row at `top` pixels. Its label is placed after the end of the axis, so that nothing crosses it.
fn draw_bar(canvas: &mut Canvas, top: f64, bar: &Bar, axis: &Axis) {
    let row = f64::from(ROW);
    let (upper, middle, lower) = (top + 0.16 * row, top + 0.5 * row, top + 0.84 * row);
    let mut from = 0.0;
    for part in &bar.parts {
        let to = from + part.length;
        canvas.rectangle([(axis.at(from), upper), (axis.at(to), lower)], part.ink, 1.0);
        from = to;
    }
    let [left, right] = axis.pixels;
    canvas.text(&bar.name, (left - 8.0, middle), Font::new(12.5, Ink::Text).to_the_left());
    canvas.text(&bar.label, (right + 10.0, middle), Font::new(11.5, Ink::Muted));
}
