//! What somebody was doing over time: a strip each, coloured by what it was.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::lines::{BOTTOM, CHARACTER, LEFT, WIDTH};
use super::{Drawn, Ink, SERIES_COLOURS, font};

/// Strips below each other over one axis.
#[derive(Clone, Debug, Default)]
pub struct StripChart {
    /// Meaning and unit of x.
    pub x: String,
    /// Where the axis ends; it begins at zero.
    pub end: f64,
    /// The strips, from above.
    pub strips: Vec<Strip>,
}

/// A strip.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// Whose.
    pub name: String,
    /// From when on what, ascending; each lasts until the next, the last to the end.
    pub states: Vec<(f64, String)>,
}

/// Height of a strip with its name, and of the margins of all of them together.
const STRIP: u32 = 34;
const MARGIN: u32 = 14;
/// Distance of two lines of the legend.
const LINE: u32 = 18;

impl StripChart {
    /// What there is, in the order it first appears.
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

    pub(super) fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, legend: u32) -> Drawn {
        // As curves have it: margins, the axis of y, and room for the legend.
        let left = (MARGIN + LEFT) as i32;
        let right = (WIDTH - legend * CHARACTER - 46) as i32;
        let at = |x: f64| {
            left + ((x / self.end.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * f64::from(right - left)) as i32
        };
        let states = self.states();
        let ink = |state: &str| state_ink(states.iter().position(|known| *known == state).unwrap_or(0));
        let small = |side| font(11.5, Ink::Muted).pos(Pos::new(side, VPos::Center));
        for (index, strip) in self.strips.iter().enumerate() {
            let top = (MARGIN + STRIP * index as u32) as i32;
            area.draw(&Text::new(strip.name.clone(), (left, top + 6), small(HPos::Left)))?;
            let ends = strip.states.iter().skip(1).map(|(from, _)| *from).chain([self.end]);
            for ((from, state), to) in strip.states.iter().zip(ends) {
                let corners = [(at(*from), top + 14), (at(to), top + 14 + 14)];
                area.draw(&Rectangle::new(corners, ink(state).stand_in().filled()))?;
            }
        }
        for (index, state) in states.iter().enumerate() {
            let top = (MARGIN + 10 + LINE * index as u32) as i32;
            let corner = (WIDTH - legend * CHARACTER - 40) as i32;
            let mark =
                Rectangle::new([(corner, top - 4), (corner + 18, top + 4)], ink(state).stand_in().filled());
            area.draw(&mark)?;
            let style = font(12.0, Ink::Text).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new((*state).to_owned(), (corner + 25, top), style))?;
        }
        let below = (self.height() - BOTTOM / 2) as i32;
        let style = font(12.0, Ink::Text).pos(Pos::new(HPos::Center, VPos::Center));
        area.draw(&Text::new(self.x.clone(), (i32::midpoint(left, right), below), style))?;
        Ok(())
    }
}

/// The colour of state `index`: the strong ones first.
const fn state_ink(index: usize) -> Ink {
    const ORDER: [usize; SERIES_COLOURS] = [0, 1, 3, 5, 6, 2, 4, 8, 7, 9];
    Ink::Series(ORDER[index % SERIES_COLOURS])
}
