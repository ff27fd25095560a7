//! Horizontal bars, one row each: names stay readable however many there are.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, Ink, finish, font, round_step};

/// A bar chart.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// Meaning and unit of the axis.
    pub axis: String,
    /// End of the axis; `None` leaves room for the longest bar.
    pub axis_end: Option<f64>,
    /// The bars, first on top.
    pub bars: Vec<Bar>,
}

/// A row of the chart.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// What stands before it.
    pub name: String,
    /// What stands behind it.
    pub label: String,
    /// Its parts, end to end.
    pub parts: Vec<Part>,
}

/// A stretch of a bar.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// How long.
    pub length: f64,
    /// Its colour.
    pub ink: Ink,
}

const WIDTH: u32 = 560;
const ROW: u32 = 28;
const TOP: u32 = 4;
const AXIS: u32 = 46;
/// Pixels per character of names and labels, generously.
const CHARACTER: u32 = 7;

/// The axis may be this multiple of the longest bar before its grid gets coarser.
const MAX_AXIS_OF_BARS: f64 = 100.0;
/// Most digits behind the point of what stands at them.
const MAX_DECIMALS: f64 = 12.0;

type Plane<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|part| part.length).sum()
    }
}

impl BarChart {
    /// The picture.
    pub fn to_svg(&self) -> String {
        let height = TOP + ROW * self.bars.len() as u32 + AXIS;
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        // Writing to a string does not fail.
        let _ = self.draw(&area).and_then(|()| Ok(area.present()?));
        drop(area);
        finish(&svg, (WIDTH, height), &self.alt)
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let widest = |text: fn(&Bar) -> &str| {
            self.bars.iter().map(|bar| text(bar).chars().count()).max().unwrap_or(0) as u32
        };
        let names = widest(|bar| &bar.name) * CHARACTER + 14;
        let labels = widest(|bar| &bar.label) * CHARACTER + 14;
        let longest = self.bars.iter().map(Bar::length).fold(f64::MIN_POSITIVE, f64::max);
        let end = self.axis_end.unwrap_or(longest).max(f64::MIN_POSITIVE);
        // Bars much shorter than the axis would fill it with grid lines.
        let step = round_step(longest.max(end / MAX_AXIS_OF_BARS), 6.0);
        let mut chart = ChartBuilder::on(area)
            .margin_top(TOP)
            .margin_left(names)
            .margin_right(labels)
            .x_label_area_size(AXIS)
            .build_cartesian_2d(0.0..end, self.bars.len() as f64..0.0)?;
        self.draw_axis(&mut chart, step, end)?;
        for (row, bar) in self.bars.iter().enumerate() {
            draw_bar(&chart, row as f64, bar, end)?;
        }
        Ok(())
    }

    fn draw_axis(&self, chart: &mut Plane<'_>, step: f64, end: f64) -> Drawn {
        let rows = self.bars.len() as f64;
        let decimals = (-step.log10().floor()).clamp(0.0, MAX_DECIMALS) as usize;
        let ticks = (end / step + 1e-9) as u32;
        for tick in 0..=ticks {
            let at = f64::from(tick) * step;
            let line = [(at, 0.0), (at, rows)];
            chart.plotting_area().draw(&PathElement::new(line, Ink::Grid.stand_in()))?;
            let style = font(11.5, Ink::Muted).pos(Pos::new(HPos::Center, VPos::Top));
            let text = Text::new(format!("{at:.decimals$}"), (0, 7), style);
            chart.plotting_area().draw(&(EmptyElement::at((at, rows)) + text))?;
        }
        let style = font(11.5, Ink::Muted).pos(Pos::new(HPos::Center, VPos::Top));
        let title = Text::new(self.axis.clone(), (0, 25), style);
        chart.plotting_area().draw(&(EmptyElement::at((end / 2.0, rows)) + title))?;
        Ok(())
    }
}

/// Draws one row; what stands behind it goes beyond the end of the axis, where nothing crosses it.
fn draw_bar(chart: &Plane<'_>, row: f64, bar: &Bar, axis_end: f64) -> Drawn {
    // What lies far beyond the picture has no place in pixels.
    let near = |at: f64| at.clamp(-axis_end, 2.0 * axis_end);
    let (top, middle, bottom) = (row + 0.16, row + 0.5, row + 0.84);
    let mut from = 0.0;
    for part in &bar.parts {
        let to = from + part.length;
        let colour = part.ink.stand_in().filled();
        chart.plotting_area().draw(&Rectangle::new([(near(from), top), (near(to), bottom)], colour))?;
        from = to;
    }
    let name = font(12.5, Ink::Text).pos(Pos::new(HPos::Right, VPos::Center));
    let label = font(11.5, Ink::Muted).pos(Pos::new(HPos::Left, VPos::Center));
    chart
        .plotting_area()
        .draw(&(EmptyElement::at((0.0, middle)) + Text::new(bar.name.clone(), (-8, 0), name)))?;
    chart
        .plotting_area()
        .draw(&(EmptyElement::at((axis_end, middle)) + Text::new(bar.label.clone(), (10, 0), label)))?;
    Ok(())
}
