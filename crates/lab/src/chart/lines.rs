//! Curves over a common axis, with a legend beside them.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, Ink, SERIES_COLOURS, finish, font};
use crate::table::number;

/// A line chart.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// Meaning and unit of x.
    pub x: String,
    /// Meaning and unit of y.
    pub y: String,
    /// Logarithmic x; only for x above zero.
    pub log_x: bool,
    /// Logarithmic y; only for y above zero.
    pub log_y: bool,
    /// The curves, in the order of the legend.
    pub lines: Vec<Line>,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// As in the legend.
    pub name: String,
    /// x and y, x ascending.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: u32 = 720;
const HEIGHT: u32 = 400;
const LEFT: u32 = 62;
const BOTTOM: u32 = 48;
/// Pixels per character of the legend, generously.
const CHARACTER: u32 = 7;

impl LineChart {
    /// The picture.
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        // Writing to a string does not fail.
        let _ = self.draw(&area).and_then(|()| Ok(area.present()?));
        drop(area);
        finish(&svg, (WIDTH, HEIGHT), &self.alt)
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let (x, y) = (self.range(|point| point.0, self.log_x), self.range(|point| point.1, self.log_y));
        match (self.log_x, self.log_y) {
            (false, false) => self.draw_on(area, x.0..x.1, y.0..y.1),
            (true, false) => self.draw_on(area, (x.0..x.1).log_scale(), y.0..y.1),
            (false, true) => self.draw_on(area, x.0..x.1, (y.0..y.1).log_scale()),
            (true, true) => self.draw_on(area, (x.0..x.1).log_scale(), (y.0..y.1).log_scale()),
        }
    }

    /// From zero (or a little below the least, on a logarithmic axis) to a little above the largest.
    fn range(&self, of: impl Fn(&(f64, f64)) -> f64, log: bool) -> (f64, f64) {
        let values = || self.lines.iter().flat_map(|line| &line.points).map(&of);
        let (least, largest) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if log { (least / 1.5, largest * 1.5) } else { (least.min(0.0), (largest * 1.05).max(1e-9)) }
    }

    fn draw_on<X, Y>(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let legend = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0) as u32;
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .margin_right(legend * CHARACTER + 46)
            .x_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .bold_line_style(Ink::Grid.stand_in())
            .light_line_style(TRANSPARENT)
            .axis_style(Ink::Muted.stand_in())
            .label_style(font(11.5, Ink::Muted))
            .axis_desc_style(font(12.0, Ink::Text))
            .x_labels(8)
            .y_labels(8)
            .x_label_formatter(&|value| tick(*value))
            .y_label_formatter(&|value| tick(*value))
            .x_desc(self.x.clone())
            .y_desc(self.y.clone())
            .draw()?;
        for (index, line) in self.lines.iter().enumerate() {
            let colour = line_ink(index).stand_in();
            let (width, mark) =
                if is_second_of_colour(index) { (1, colour.stroke_width(1)) } else { (2, colour.filled()) };
            chart.draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(width)))?;
            chart.draw_series(line.points.iter().map(|at| Circle::new(*at, 3, mark)))?;
        }
        self.draw_legend(area, legend)
    }

    fn draw_legend(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, widest: u32) -> Drawn {
        let left = (WIDTH - widest * CHARACTER - 40) as i32;
        for (index, line) in self.lines.iter().enumerate() {
            let top = 24 + 20 * index as i32;
            let colour = line_ink(index).stand_in();
            let mark = if is_second_of_colour(index) { colour.stroke_width(1) } else { colour.filled() };
            area.draw(&Rectangle::new([(left, top - 2), (left + 18, top + 2)], mark))?;
            let style = font(12.0, Ink::Text).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(line.name.clone(), (left + 25, top), style))?;
        }
        Ok(())
    }
}

/// There are more curves than colours: from here on they are thin, their marks hollow.
const fn is_second_of_colour(index: usize) -> bool {
    index >= SERIES_COLOURS
}

/// The colour of curve `index`: the strong ones first.
const fn line_ink(index: usize) -> Ink {
    const ORDER: [usize; SERIES_COLOURS] = [0, 1, 3, 5, 6, 2, 4, 8, 7, 9];
    Ink::Series(ORDER[index % SERIES_COLOURS])
}

/// A tick's label: as many digits as it needs.
fn tick(value: f64) -> String {
    let decimals = if value.abs() >= 10.0 || value.fract().abs() < 1e-9 {
        0
    } else if value.abs() >= 0.1 {
        1
    } else {
        3
    };
    number(value, decimals)
}
