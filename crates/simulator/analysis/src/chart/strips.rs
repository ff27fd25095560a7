//! States over time: one strip per name, coloured by state.

use super::axis::Axis;
use super::canvas::{Canvas, Font};
use super::layout::{BOTTOM, LEFT, Layout, MARGIN};
use super::{Ink, SERIES_COLOURS};
use crate::first_seen;

/// Strips below each other over a common axis.
#[derive(Clone, Debug, Default)]
pub struct StripChart {
    /// Label and unit of x.
    pub x: String,
    /// End of the axis, which starts at zero.
    pub end: f64,
    /// The strips from top to bottom.
    pub strips: Vec<Strip>,
}

/// A strip.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// Its name.
    pub name: String,
    /// States with their start times, ascending. Each lasts until the next one, the last until the end.
    pub states: Vec<(f64, String)>,
}

/// Height of a strip including its name.
const STRIP: u32 = 34;
/// Line height of the legend.
const LINE: u32 = 18;

impl StripChart {
    /// The states in order of first appearance.
    fn states(&self) -> Vec<&str> {
        first_seen(self.strips.iter().flat_map(|strip| &strip.states).map(|(_, state)| state.as_str()))
    }

    /// Length of the longest state in characters.
    pub(super) fn letters(&self) -> u32 {
        self.states().iter().map(|state| state.chars().count()).max().unwrap_or(0) as u32
    }

    pub(super) fn height(&self, layout: Layout) -> u32 {
        let strips = self.strips.len() as u32 * STRIP;
        let rows = self.states().len() as u32;
        2 * MARGIN
            + BOTTOM
            + match layout.is_beside() {
                true => strips.max(rows * LINE),
                false => strips + rows.div_ceil(layout.columns()) * LINE,
            }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, layout: Layout) {
        let right = layout.right();
        let time = Axis {
            values: [0.0, self.end.max(f64::MIN_POSITIVE)],
            pixels: [LEFT, right].map(f64::from),
            log: false,
        };
        let states = self.states();
        let ink = |state: &str| state_ink(states.iter().position(|known| *known == state).unwrap_or(0));
        for (index, strip) in self.strips.iter().enumerate() {
            let top = f64::from(MARGIN + STRIP * index as u32);
            canvas.text(&strip.name, (f64::from(LEFT), top + 6.0), Font::new(11.5, Ink::Muted));
            let ends = strip.states.iter().skip(1).map(|(from, _)| *from).chain([self.end]);
            for ((from, state), to) in strip.states.iter().zip(ends) {
                let corners = [(time.at(*from), top + 14.0), (time.at(to), top + 28.0)];
                canvas.rectangle(corners, ink(state), 1.0);
            }
        }
        let below = MARGIN + STRIP * self.strips.len() as u32 + BOTTOM / 2;
        canvas.text(&self.x, (u32::midpoint(LEFT, right), below), Font::new(12.0, Ink::Text).centred());
        for (state, index) in states.iter().zip(0..) {
            let (left, middle) = match layout.is_beside() {
                true => (layout.names(), MARGIN + 10 + LINE * index),
                false => {
                    let (row, column) = (index / layout.columns(), index % layout.columns());
                    (MARGIN + column * layout.entry + 31, below + BOTTOM / 2 + row * LINE + LINE / 2)
                }
            };
            canvas.rectangle([(left - 25, middle - 4), (left - 7, middle + 4)], ink(state), 1.0);
            canvas.text(state, (left, middle), Font::new(12.0, Ink::Text));
        }
    }
}

/// The colour of state `index`. Strong colours are used first.
const fn state_ink(index: usize) -> Ink {
    const ORDER: [usize; SERIES_COLOURS] = [0, 1, 3, 5, 6, 2, 4, 8, 7, 9];
    Ink::Series(ORDER[index % SERIES_COLOURS])
}
