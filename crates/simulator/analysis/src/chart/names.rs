//! Names of curves: each where its curve ends, or in a list beside or below the plot.

use super::canvas::{Canvas, Font, Stroke};
use super::layout::{Layout, MARGIN};
use super::{Ink, SeriesStyle};

/// Line height of names in pixels.
const STEP: u32 = 18;
const SMALL_STEP: u32 = 14;

/// The names in a chart, in the order of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Index of the curve; `None` for the marks.
    line: Option<usize>,
    name: String,
    /// `None` for a grey curve, and for the marks.
    look: Option<SeriesStyle>,
}

impl Names {
    /// Adds a curve with a colour.
    pub fn curve(&mut self, line: usize, name: &str, look: SeriesStyle) {
        self.entries.push(Entry { line: Some(line), name: name.to_owned(), look: Some(look) });
    }

    /// Adds a grey curve.
    pub fn grey(&mut self, line: usize, name: &str) {
        self.entries.push(Entry { line: Some(line), name: name.to_owned(), look: None });
    }

    /// Adds the source of the marks.
    pub fn marks(&mut self, name: &str) {
        self.entries.push(Entry { line: None, name: name.to_owned(), look: None });
    }

    /// Height of a list beside the plot, with the margins above and below.
    pub fn height(&self) -> u32 {
        self.entries.iter().map(Entry::step).sum::<u32>() + 4 * MARGIN
    }

    /// Height of the rows below the plot.
    pub fn rows(&self, layout: Layout) -> u32 {
        (self.entries.len() as u32).div_ceil(layout.columns()) * STEP
    }

    /// Draws the names beside the plot, which is between `top` and `bottom`. `end_of` is where a curve ends; names are
    /// near it. Without it, they are a list.
    pub fn draw_beside(
        &self,
        canvas: &mut Canvas,
        layout: Layout,
        [top, bottom]: [u32; 2],
        end_of: Option<&dyn Fn(usize) -> Option<(f64, f64)>>,
    ) {
        let left = f64::from(layout.names());
        let end = |entry: &Entry| entry.line.and_then(|line| end_of?(line));
        let mut order: Vec<&Entry> = self.entries.iter().collect();
        if end_of.is_some() {
            // Marks and curves without points come last.
            let level = |entry: &Entry| end(entry).map_or(f64::INFINITY, |(_, y)| y);
            order.sort_by(|a, b| level(a).total_cmp(&level(b)));
        }
        let steps: Vec<f64> = order.iter().map(|entry| entry.step().into()).collect();
        let wanted = order.iter().map(|entry| match (end_of.is_some(), end(entry)) {
            (true, Some((_, y))) => y,
            (true, None) => bottom.into(),
            (false, _) => top.into(),
        });
        let levels = spread(&wanted.collect::<Vec<_>>(), &steps, [top, bottom].map(f64::from));
        for (entry, level) in order.into_iter().zip(levels) {
            if let Some((x, y)) = end(entry) {
                canvas.line([(x, y), (left - 30.0, level)], Stroke::new(Ink::Rest, 1));
            }
            entry.draw(canvas, (left, level));
        }
    }

    /// Draws the names in rows that begin at `top`.
    pub fn draw_below(&self, canvas: &mut Canvas, layout: Layout, top: u32) {
        for (entry, place) in self.entries.iter().zip(0..) {
            let (row, column) = (place / layout.columns(), place % layout.columns());
            let left = MARGIN + column * layout.entry + 31;
            entry.draw(canvas, (left.into(), (top + row * STEP + STEP / 2).into()));
        }
    }
}

impl Entry {
    const fn is_small(&self) -> bool {
        self.look.is_none() && self.line.is_some()
    }

    const fn step(&self) -> u32 {
        if self.is_small() { SMALL_STEP } else { STEP }
    }

    /// Draws the sample, and the name from `left` on.
    fn draw(&self, canvas: &mut Canvas, (left, y): (f64, f64)) {
        let middle = left - 16.0;
        let sample = [(left - 28.0, y), (left - 4.0, y)];
        match (self.look, self.line) {
            (Some(look), _) => {
                canvas.line(sample, look.line(2));
                look.mark(canvas, (middle, y));
            }
            (None, Some(_)) => canvas.line(sample, Stroke::new(Ink::Rest, 1)),
            (None, None) => {
                canvas.cross((middle, y));
                canvas.line([(middle, y - 8.0), (middle, y + 8.0)], Stroke::new(Ink::Text, 1));
            }
        }
        let font = if self.is_small() { Font::new(10.5, Ink::Muted) } else { Font::new(12.0, Ink::Text) };
        canvas.text(&self.name, (left, y), font);
    }
}

/// Levels near the ascending `wanted` ones, each at least half of its own step and half of its neighbour's apart from
/// it. They stay between the ends if there is room.
fn spread(wanted: &[f64], steps: &[f64], [top, bottom]: [f64; 2]) -> Vec<f64> {
    let gap = |place: usize| f64::midpoint(steps[place], steps[place + 1]);
    let mut levels: Vec<f64> = wanted.iter().map(|level| level.max(top)).collect();
    for place in 1..levels.len() {
        levels[place] = levels[place].max(levels[place - 1] + gap(place - 1));
    }
    let mut limit = bottom;
    for place in (0..levels.len()).rev() {
        levels[place] = levels[place].min(limit);
        limit = levels[place] - place.checked_sub(1).map_or(0.0, gap);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_near_their_curves() {
        let steps = [18.0; 4];
        assert_eq!(spread(&[50.0, 55.0, 60.0, 200.0], &steps, [0.0, 300.0]), [50.0, 68.0, 86.0, 200.0]);
        // At the lower end there is no room below.
        assert_eq!(spread(&[10.0, 290.0, 295.0, 299.0], &steps, [0.0, 300.0]), [10.0, 264.0, 282.0, 300.0]);
        assert_eq!(spread(&[0.0, 0.0], &[18.0, 14.0], [20.0, 300.0]), [20.0, 36.0]);
    }
}
