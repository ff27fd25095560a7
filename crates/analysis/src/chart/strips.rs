//! States over time: one strip per name, coloured by state.

use super::axis::Axis;
use super::layout::{self, BOTTOM, LEFT, MARGIN};
use super::svg::{Canvas, Font};
use super::{Ink, SERIES_COLOURS};

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
        let mut states: Vec<&str> = Vec::new();
        for (_, state) in self.strips.iter().flat_map(|strip| &strip.states) {
            if !states.contains(&state.as_str()) {
                states.push(state);
            }
        }
        states
    }

    pub(super) fn legend(&self) -> u32 {
        self.states().iter().map(|state| state.chars().count()).max().unwrap_or(0) as u32
    }

    pub(super) fn height(&self) -> u32 {
        let legend = self.states().len() as u32 * LINE;
        (self.strips.len() as u32 * STRIP).max(legend) + 2 * MARGIN + BOTTOM
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, legend: u32) {
        let right = layout::right(legend);
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
        let names = layout::legend_names(legend);
        for (index, state) in states.iter().enumerate() {
            let middle = MARGIN + 10 + LINE * index as u32;
            canvas.rectangle([(names - 25, middle - 4), (names - 7, middle + 4)], ink(state), 1.0);
            canvas.text(state, (names, middle), Font::new(12.0, Ink::Text));
        }
        let below = self.height() - BOTTOM / 2;
        canvas.text(&self.x, (u32::midpoint(LEFT, right), below), Font::new(12.0, Ink::Text).centred());
    }
}

/// The colour of state `index`. Strong colours are used first.
const fn state_ink(index: usize) -> Ink {
    const ORDER: [usize; SERIES_COLOURS] = [0, 1, 3, 5, 6, 2, 4, 8, 7, 9];
    Ink::Series(ORDER[index % SERIES_COLOURS])
}
