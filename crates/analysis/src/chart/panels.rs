//! Several charts below each other in one picture.

use super::layout::WIDTH;
use super::svg::Canvas;
use super::{DotChart, LineChart, StripChart};

const HEIGHT: u32 = 400;
/// Height of curves in a lower panel.
const PANEL_HEIGHT: u32 = 210;

/// One of several charts in a picture.
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
    /// Length of the longest name in its legend, in characters.
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

/// `panels` below each other in one picture, with aligned axes. `alt` is the alternative text.
pub fn stacked(alt: &str, panels: &[Panel<'_>]) -> String {
    let heights: Vec<u32> =
        panels.iter().enumerate().map(|(index, panel)| panel.height(index == 0)).collect();
    let legend = panels.iter().map(|panel| panel.legend()).max().unwrap_or(0);
    let mut all = Canvas::new(WIDTH, heights.iter().sum());
    let mut top = 0;
    for (panel, height) in panels.iter().zip(heights) {
        let mut own = Canvas::new(WIDTH, height);
        match panel {
            Panel::Lines(chart) => chart.draw(&mut own, legend),
            Panel::Dots(chart) => chart.draw(&mut own),
            Panel::Strips(chart) => chart.draw(&mut own, legend),
        }
        all.put(top, &own);
        top += height;
    }
    all.into_svg(alt)
}

impl LineChart {
    /// The picture.
    pub fn to_svg(&self) -> String {
        match self.ranked() {
            Some(charts) => stacked(&self.alt, &charts.iter().map(Panel::Dots).collect::<Vec<_>>()),
            None => stacked(&self.alt, &[Panel::Lines(self)]),
        }
    }
}
