//! Several charts below each other in one picture.

use plotters::prelude::*;

use super::lines::WIDTH;
use super::{DotChart, LineChart, StripChart, finish};

const HEIGHT: u32 = 400;
/// Of curves below another panel.
const PANEL_HEIGHT: u32 = 210;

/// What stands below or above something else.
#[derive(Clone, Copy, Debug)]
pub enum Panel<'a> {
    /// Curves.
    Lines(&'a LineChart),
    /// Ranked dots.
    Dots(&'a DotChart),
    /// Strips of states.
    Strips(&'a StripChart),
}

impl Panel<'_> {
    /// Characters of the longest name in its legend.
    fn legend(self) -> u32 {
        match self {
            Self::Lines(chart) => chart.legend(),
            Self::Dots(_) => 0,
            Self::Strips(chart) => chart.legend(),
        }
    }

    fn height(self, is_first: bool) -> u32 {
        match self {
            Self::Lines(chart) => chart.legend_height().max(if is_first { HEIGHT } else { PANEL_HEIGHT }),
            Self::Dots(chart) => chart.height(),
            Self::Strips(chart) => chart.height(),
        }
    }
}

/// `panels` below each other in one picture, their axes aligned; `alt` says what it shows.
pub fn stacked(alt: &str, panels: &[Panel<'_>]) -> String {
    let heights: Vec<u32> =
        panels.iter().enumerate().map(|(index, panel)| panel.height(index == 0)).collect();
    let size = (WIDTH, heights.iter().sum());
    let legend = panels.iter().map(|panel| panel.legend()).max().unwrap_or(0);
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let mut rest = area.clone();
    for (panel, height) in panels.iter().zip(heights) {
        let (own, below) = rest.split_vertically(height);
        // Writing to a string does not fail.
        let _ = match panel {
            Panel::Lines(chart) => chart.draw(&own, legend),
            Panel::Dots(chart) => chart.draw(&own),
            Panel::Strips(chart) => chart.draw(&own, legend),
        };
        rest = below;
    }
    let _ = area.present();
    drop((area, rest));
    finish(&svg, size, alt)
}
