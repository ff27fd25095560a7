//! Curves over a common axis, with a legend beside them.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Dot, DotChart, Drawn, Ink, Look, Panel, font, stacked};
use tacit_scenario::scheme::{Role, Scheme};
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
    /// The curves have more points than marks would be told apart of: few have one.
    pub dense: bool,
    /// Steps in place of straight lines from point to point: shares of a count.
    pub steps: bool,
    /// Names of curves that have a colour before others, as what is said is said of them.
    pub concerned: Vec<String>,
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
    /// Half-width of the 95 % confidence interval at each point; empty where nobody knows.
    pub ci95: Vec<Option<f64>>,
}

/// Most curves with a colour: the rest is grey.
pub const MAX_COLOURED: usize = 7;

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
        match self.ranked() {
            Some(charts) => stacked(&self.alt, &charts.iter().map(Panel::Dots).collect::<Vec<_>>()),
            None => stacked(&self.alt, &[Panel::Lines(self)]),
        }
    }

    /// A chart of ranked dots for each x, where more curves than have a colour meet few x: what would cross as lines is in
    /// order as dots. `None` where lines say more.
    pub fn ranked(&self) -> Option<Vec<DotChart>> {
        /// Most charts below each other.
        const MAX_PLACES: usize = 3;
        let mut places: Vec<f64> = self.lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if self.dense || self.lines.len() <= MAX_COLOURED || !(1..=MAX_PLACES).contains(&places.len()) {
            return None;
        }
        Some(places.into_iter().map(|x| self.dots_at(x)).collect())
    }

    fn dots_at(&self, x: f64) -> DotChart {
        let at = |value: f64| value.total_cmp(&x).is_eq();
        let dot = |(index, line): (usize, &Line)| {
            let place = line.points.iter().position(|point| at(point.0))?;
            let mark = self.marks.iter().find(|mark| mark.line == index && at(mark.from) && at(mark.to));
            let value = line.points[place].1;
            Some(Dot {
                name: line.name.clone(),
                label: number(value, if value.abs() >= 100.0 { 1 } else { 2 }),
                value,
                interval: line.ci95.get(place).copied().flatten(),
                said: mark.map(|mark| [mark.low, mark.y, mark.high]),
            })
        };
        let said = if self.marks.is_empty() { "" } else { &self.marks_name };
        DotChart {
            alt: self.alt.clone(),
            title: format!("{}: {}", self.x, number(x, if x.fract() == 0.0 { 0 } else { 3 })),
            axis: if said.is_empty() { self.y.clone() } else { format!("{} (crosses: {said})", self.y) },
            dots: self.lines.iter().enumerate().filter_map(dot).collect(),
            baseline: Some(Scheme::of_role(Role::Baseline).name.to_owned()),
            ..DotChart::default()
        }
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

    /// Pixels that the legend takes from above.
    pub(super) fn legend_height(&self) -> u32 {
        let coloured = self.lines.len().min(MAX_COLOURED) + usize::from(!self.marks.is_empty());
        let rest = self.lines.len().saturating_sub(MAX_COLOURED);
        let rest = if rest > 0 { REST_STEP * (rest as u32 + 2) } else { 0 };
        24 + LEGEND_STEP * coloured as u32 + rest
    }

    /// The curves with a colour, as in the legend, and the others, from the best down. Up to seven all have one. Of more
    /// those do of which something is said, then the baseline and the bound, then the best: those that end highest, and of
    /// distributions, which all end at the top, those with the least median.
    fn coloured_and_rest(&self) -> (Vec<usize>, Vec<usize>) {
        let all = 0..self.lines.len();
        let mut ranked: Vec<usize> = all.clone().collect();
        let rank = |line: usize| {
            let points = &self.lines[line].points;
            let half = points.last().map_or(0.0, |point| point.1 / 2.0);
            let value = match self.steps {
                true => points.iter().find(|point| point.1 >= half).map(|point| -point.0),
                false => points.last().map(|point| point.1),
            };
            value.unwrap_or(f64::NEG_INFINITY)
        };
        // Of equal ones the first in the legend.
        ranked.sort_by(|a, b| rank(*b).total_cmp(&rank(*a)));
        let yardsticks = [Role::Baseline, Role::Bound].map(|role| Scheme::of_role(role).name);
        let named = self.marks.iter().map(|mark| mark.line);
        let concerned = self.concerned.iter().map(String::as_str).chain(yardsticks);
        let concerned = concerned.filter_map(|name| all.clone().find(|line| self.lines[*line].name == name));
        let mut chosen: Vec<usize> = Vec::new();
        for line in named.chain(concerned).chain(ranked.iter().copied()) {
            if chosen.len() < MAX_COLOURED && !chosen.contains(&line) && all.contains(&line) {
                chosen.push(line);
            }
        }
        chosen.sort_unstable();
        ranked.retain(|line| !chosen.contains(line));
        (chosen, ranked)
    }

    fn looks(&self) -> Vec<Look> {
        Look::of_series(&self.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>())
    }

    /// Points of curve `line` that have its marker: all, or of a dense curve some.
    fn marked(&self, line: usize) -> Vec<(f64, f64)> {
        /// Markers of a dense curve, and one more.
        const PIECES: usize = 6;
        let points = &self.lines[line].points;
        match self.dense {
            true => {
                (1..PIECES).filter_map(|piece| points.get(points.len() * piece / PIECES)).copied().collect()
            }
            false => points.clone(),
        }
    }

    /// What is drawn of curve `line`.
    fn path(&self, line: usize) -> Vec<(f64, f64)> {
        let points = &self.lines[line].points;
        let Some(first) = points.first().filter(|_| self.steps) else { return points.clone() };
        let corners = points.windows(2).flat_map(|two| [(two[1].0, two[0].1), two[1]]);
        std::iter::once(*first).chain(corners).collect()
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
        let (looks, (coloured, rest)) = (self.looks(), self.coloured_and_rest());
        for line in rest {
            chart.draw_series(LineSeries::new(self.path(line), Ink::Rest.stand_in().stroke_width(1)))?;
        }
        for line in coloured {
            chart.draw_series(LineSeries::new(self.path(line), looks[line].line(2)))?;
            for at in self.marked(line) {
                looks[line].mark(chart.plotting_area(), at)?;
            }
        }
        for mark in &self.marks {
            let middle =
                if self.log_x { (mark.from * mark.to).sqrt() } else { f64::midpoint(mark.from, mark.to) };
            draw_mark(&mut chart, mark, middle, looks.get(mark.line).map_or(Ink::Text, |look| look.ink))?;
        }
        self.draw_legend(area, legend)
    }

    fn draw_legend(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, widest: u32) -> Drawn {
        let left = (WIDTH - widest * CHARACTER - 40) as i32;
        let (looks, (coloured, rest)) = (self.looks(), self.coloured_and_rest());
        let mut top = 24;
        for line in coloured {
            area.draw(&PathElement::new([(left - 3, top), (left + 21, top)], looks[line].line(2)))?;
            looks[line].mark(area, (left + 9, top))?;
            let style = font(12.0, Ink::Text).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(self.lines[line].name.clone(), (left + 25, top), style))?;
            top += LEGEND_STEP as i32;
        }
        let mut below = top + if self.marks.is_empty() { 0 } else { LEGEND_STEP as i32 };
        let small = || font(10.5, Ink::Muted).pos(Pos::new(HPos::Left, VPos::Center));
        if !rest.is_empty() {
            let ink = Ink::Rest.stand_in().stroke_width(1);
            area.draw(&PathElement::new([(left - 3, below), (left + 21, below)], ink))?;
            area.draw(&Text::new(
                if self.steps { "from the left:" } else { "from above:" }.to_owned(),
                (left + 25, below),
                small(),
            ))?;
        }
        for line in rest {
            below += REST_STEP as i32;
            area.draw(&Text::new(self.lines[line].name.clone(), (left + 25, below), small()))?;
        }
        if self.marks.is_empty() {
            return Ok(());
        }
        let middle = left + 9;
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
    ink: Ink,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let colour = ink.stand_in().stroke_width(2);
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

/// Pixels from one line of the legend to the next, and where curves are grey.
const LEGEND_STEP: u32 = 20;
const REST_STEP: u32 = 15;

/// A tick's label: as many digits as it needs.
fn tick(value: f64) -> String {
    let decimals = if value.abs() >= 10.0 || value.fract().abs() < 1e-9 { 0 } else { 3 };
    let text = number(value, decimals);
    if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_curves_those_named_the_yardsticks_and_the_highest_have_a_colour() {
        let names = ["stock", "a", "b", "c", "d", "e", "f", "g", "udp", "h"];
        let end = |name: &str| f64::from(name.as_bytes()[0]);
        let line = |name: &str| Line {
            name: name.to_owned(),
            points: vec![(1.0, 1.0), (2.0, end(name))],
            ..Line::default()
        };
        let chart = LineChart {
            lines: names.map(line).into(),
            concerned: vec!["b".into(), "not drawn".into()],
            marks: vec![Mark { line: 1, ..Mark::default() }],
            ..LineChart::default()
        };
        let (coloured, rest) = chart.coloured_and_rest();
        let name = |lines: &[usize]| lines.iter().map(|line| names[*line]).collect::<Vec<_>>();
        assert_eq!(name(&coloured), ["stock", "a", "b", "f", "g", "udp", "h"]);
        assert_eq!(name(&rest), ["e", "d", "c"], "from above");
        let svg = stacked("", &[Panel::Lines(&chart)]);
        assert_eq!(svg.matches("stroke=\"var(--rest)\"").count(), 3 + 1, "three curves and the legend");
        assert!(svg.contains("stroke-dasharray") && !svg.contains("#01"), "{svg}");
    }

    #[test]
    fn many_curves_at_few_x_are_ranked_dots() {
        let line = |count: u32| Line {
            name: format!("scheme {count}"),
            points: vec![(1.0, count.into()), (2.0, (10 - count).into())],
            ci95: vec![Some(0.5), None],
        };
        let chart = |lines: u32| LineChart {
            x: "delay (ms)".into(),
            lines: (0..lines).map(line).collect(),
            ..LineChart::default()
        };
        assert!(chart(7).ranked().is_none(), "seven have a colour each");
        let charts = chart(8).ranked().unwrap();
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["delay (ms): 1", "delay (ms): 2"]);
        let first = |at: usize| charts[at].ranked()[0];
        assert_eq!((first(0).name.as_str(), first(0).interval), ("scheme 7", Some(0.5)));
        assert_eq!((first(1).name.as_str(), first(1).interval), ("scheme 0", None));
        assert!(LineChart { dense: true, ..chart(8) }.ranked().is_none());
    }

    #[test]
    fn steps_stay_until_the_next_point() {
        let line = Line { name: "stock".into(), points: vec![(1.0, 50.0), (3.0, 100.0)], ..Line::default() };
        let chart = LineChart { lines: vec![line], steps: true, ..LineChart::default() };
        assert_eq!(chart.path(0), [(1.0, 50.0), (3.0, 50.0), (3.0, 100.0)]);
    }

    #[test]
    fn of_many_distributions_those_with_the_least_median_have_a_colour() {
        let line = |slow: u32| Line {
            name: format!("slow {slow}"),
            points: vec![(0.1, 10.0), (f64::from(slow), 50.0), (20.0, 100.0)],
            ..Line::default()
        };
        let chart =
            LineChart { lines: (1..=9).rev().map(line).collect(), steps: true, ..LineChart::default() };
        let (_, rest) = chart.coloured_and_rest();
        assert_eq!(
            rest.iter().map(|line| chart.lines[*line].name.as_str()).collect::<Vec<_>>(),
            ["slow 8", "slow 9"]
        );
    }

    #[test]
    fn ticks_say_where_they_are() {
        for (value, said) in
            [(0.0, "0"), (0.05, "0.05"), (0.15, "0.15"), (2.5, "2.5"), (3.0, "3"), (250.0, "250")]
        {
            assert_eq!(tick(value), said);
        }
    }
}
