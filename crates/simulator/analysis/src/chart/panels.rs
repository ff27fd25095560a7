//! Several charts below each other in one picture.

use super::canvas::{Canvas, Picture};
use super::layout::Layout;
use super::{DotChart, LineChart, StripChart};

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
    /// Length of its longest name in characters.
    fn letters(self) -> u32 {
        match self {
            Self::Lines(chart) => chart.letters(),
            Self::Dots(_) => 0,
            Self::Strips(chart) => chart.letters(),
        }
    }

    fn height(self, layout: Layout, is_first: bool) -> u32 {
        match self {
            Self::Lines(chart) => chart.height(layout, is_first),
            Self::Dots(chart) => chart.height(),
            Self::Strips(chart) => chart.height(layout),
        }
    }
}

/// `panels` below each other in one picture that is `width` pixels wide, with aligned axes. `alt` is the alternative
/// text.
pub fn stacked(alt: &str, panels: &[Panel<'_>], width: u32) -> Picture {
    let letters = panels.iter().map(|panel| panel.letters()).max().unwrap_or(0);
    let layout = Layout::new(width, letters);
    let heights: Vec<u32> =
        panels.iter().enumerate().map(|(index, panel)| panel.height(layout, index == 0)).collect();
    let mut all = Canvas::new(width, heights.iter().sum());
    let mut top = 0;
    for (panel, height) in panels.iter().zip(heights) {
        let mut panel_canvas = Canvas::new(width, height);
        match panel {
            Panel::Lines(chart) => chart.draw(&mut panel_canvas, layout),
            Panel::Dots(chart) => chart.draw(&mut panel_canvas),
            Panel::Strips(chart) => chart.draw(&mut panel_canvas, layout),
        }
        all.put(top, panel_canvas);
        top += height;
    }
    all.into_picture(alt)
}

impl LineChart {
    /// The picture.
    pub fn picture(&self, width: u32) -> Picture {
        match self.ranked() {
            Some(charts) => stacked(&self.alt, &charts.iter().map(Panel::Dots).collect::<Vec<_>>(), width),
            None => stacked(&self.alt, &[Panel::Lines(self)], width),
        }
    }
}
