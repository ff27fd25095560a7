//! Curves over a common axis, with a legend beside them.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, Ink, Panel, SERIES_COLOURS, font, stacked};
use tacit_scenario::table::number;

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
    /// The curves have more points than marks would be told apart of.
    pub dense: bool,
    /// What is said of the curves, beside what they are.
    pub marks: Vec<Mark>,
    /// Who says so, as in the legend.
    pub marks_name: String,
}

/// A value said of a curve, with how far off it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mark {
    /// Which of the chart's lines.
    pub line: usize,
    /// At this x, or as a mean from here
    pub from: f64,
    /// to here.
    pub to: f64,
    /// The value.
    pub y: f64,
    /// Ends of its error bar; equal to `y` where there is none on that side.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// As in the legend.
    pub name: String,
    /// x and y, x ascending.
    pub points: Vec<(f64, f64)>,
}

pub(super) const WIDTH: u32 = 720;
pub(super) const LEFT: u32 = 62;
pub(super) const BOTTOM: u32 = 48;
/// Of an axis that the panel below names.
const BOTTOM_UNNAMED: u32 = 26;
/// Pixels per character of the legend, generously.
pub(super) const CHARACTER: u32 = 7;

impl LineChart {
    /// The picture.
    pub fn to_svg(&self) -> String {
        stacked(&self.alt, &[Panel::Lines(self)])
    }

    pub(super) fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, legend: u32) -> Drawn {
        let x = self.range(|point| point.0, |mark| [mark.from, mark.to], self.log_x);
        let y = self.range(|point| point.1, |mark| [mark.low, mark.high], self.log_y);
        match (self.log_x, self.log_y) {
            (false, false) => self.draw_on(area, legend, x.0..x.1, y.0..y.1),
            (true, false) => self.draw_on(area, legend, (x.0..x.1).log_scale(), y.0..y.1),
            (false, true) => self.draw_on(area, legend, x.0..x.1, (y.0..y.1).log_scale()),
            (true, true) => self.draw_on(area, legend, (x.0..x.1).log_scale(), (y.0..y.1).log_scale()),
        }
    }

    /// Characters of the longest name in the legend.
    pub(super) fn legend(&self) -> u32 {
        let names = self.lines.iter().map(|line| &line.name);
        let marks = (!self.marks.is_empty()).then_some(&self.marks_name);
        names.chain(marks).map(|name| name.chars().count()).max().unwrap_or(0) as u32
    }

    /// From zero (or a little below the least, on a logarithmic axis) to a little above the largest.
    fn range(
        &self,
        of: impl Fn(&(f64, f64)) -> f64,
        of_mark: impl Fn(&Mark) -> [f64; 2],
        log: bool,
    ) -> (f64, f64) {
        let points = || self.lines.iter().flat_map(|line| &line.points).map(&of);
        let marks = || self.marks.iter().flat_map(&of_mark).filter(|value| !log || *value > 0.0);
        let values = || points().chain(marks());
        let (least, largest) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if log { (least / 1.5, largest * 1.5) } else { (least.min(0.0), (largest * 1.05).max(1e-9)) }
    }

    fn draw_on<X, Y>(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, legend: u32, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin(14)
            .margin_right(legend * CHARACTER + 46)
            .x_label_area_size(if self.x.is_empty() { BOTTOM_UNNAMED } else { BOTTOM })
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
            if !self.dense {
                chart.draw_series(line.points.iter().map(|at| Circle::new(*at, 3, mark)))?;
            }
        }
        for mark in &self.marks {
            let middle =
                if self.log_x { (mark.from * mark.to).sqrt() } else { f64::midpoint(mark.from, mark.to) };
            draw_mark(&mut chart, mark, middle)?;
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
        if self.marks.is_empty() {
            return Ok(());
        }
        let (middle, top) = (left + 9, 24 + 20 * self.lines.len() as i32);
        let ink = Ink::Text.stand_in().stroke_width(1);
        for stroke in [[(-MARK, -MARK), (MARK, MARK)], [(-MARK, MARK), (MARK, -MARK)], [(0, -8), (0, 8)]] {
            let stroke = stroke.map(|(x, y)| (middle + x, top + y));
            area.draw(&PathElement::new(stroke, ink))?;
        }
        let style = font(12.0, Ink::Text).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(self.marks_name.clone(), (left + 25, top), style))?;
        Ok(())
    }
}

/// The error bar and the line from end to end in the colour of the curve, the cross in that of text, so that it is seen
/// where it meets its curve.
fn draw_mark<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    mark: &Mark,
    middle: f64,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let colour = line_ink(mark.line).stand_in().stroke_width(2);
    let lines = [[(mark.from, mark.y), (mark.to, mark.y)], [(middle, mark.low), (middle, mark.high)]];
    chart.draw_series(lines.map(|line| PathElement::new(line, colour)))?;
    for end in [mark.low, mark.high] {
        let cap = PathElement::new([(-CAP, 0), (CAP, 0)], colour);
        chart.plotting_area().draw(&(EmptyElement::at((middle, end)) + cap))?;
    }
    for rise in [-MARK, MARK] {
        let stroke = PathElement::new([(-MARK, rise), (MARK, -rise)], Ink::Text.stand_in().stroke_width(1));
        chart.plotting_area().draw(&(EmptyElement::at((middle, mark.y)) + stroke))?;
    }
    Ok(())
}

/// Half the size of a mark's cross, and of the caps of its error bar, in pixels.
const MARK: i32 = 5;
const CAP: i32 = 3;

/// There are more curves than colours: from here on they are thin, their marks hollow.
const fn is_second_of_colour(index: usize) -> bool {
    index >= SERIES_COLOURS
}

/// The colour of curve `index`: the strong ones first.
pub(super) const fn line_ink(index: usize) -> Ink {
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
