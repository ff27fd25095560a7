//! Curves over a common axis, with a legend at the side.

use super::axis::Axis;
use super::layout::{self, BOTTOM, LEFT, MARGIN};
use super::svg::{Canvas, Font, Stroke};
use super::{Dot, DotChart, Ink, Look};
use tacit_scenario::scheme::{Role, Scheme};
use tacit_scenario::table::number;

/// A line chart.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// Alternative text.
    pub alt: String,
    /// Label and unit of x.
    pub x: String,
    /// Label and unit of y.
    pub y: String,
    /// Logarithmic x axis; only for positive x.
    pub log_x: bool,
    /// Logarithmic y axis; only for positive y.
    pub log_y: bool,
    /// The curves, in the order of the legend.
    pub lines: Vec<Line>,
    /// Curves have too many points for a marker at each, so only a few get one.
    pub dense: bool,
    /// Draw steps instead of straight lines between points, for fractions of a count.
    pub steps: bool,
    /// Names of curves that get a colour first, because claims refer to them.
    pub concerned: Vec<String>,
    /// Claimed values of the curves.
    pub marks: Vec<Mark>,
    /// Source of the marks, as shown in the legend.
    pub marks_name: String,
}

/// A claimed value of a curve, with its tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mark {
    /// Index of the curve.
    pub line: usize,
    /// Start of the x range over which the value is a mean; equal to `to` for a single x.
    pub from: f64,
    /// End of the x range.
    pub to: f64,
    /// The value.
    pub y: f64,
    /// Lower end of its error bar; equal to `y` if there is none on this side.
    pub low: f64,
    /// Upper end of its error bar.
    pub high: f64,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y) in ascending order of x.
    pub points: Vec<(f64, f64)>,
    /// Half-width of the 95 % confidence interval at each point; empty if unknown.
    pub ci95: Vec<Option<f64>>,
}

/// Maximum number of curves with a colour. All others are grey.
pub const MAX_COLOURED: usize = 7;

/// Height of an axis without a label, because a panel below has it.
const BOTTOM_UNNAMED: u32 = 26;

impl LineChart {
    /// One chart of ranked dots per x, if there are more curves than colours but only a few x, where lines would be
    /// hard to distinguish. `None` if lines are more suitable.
    pub fn ranked(&self) -> Option<Vec<DotChart>> {
        /// Maximum number of charts below each other.
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

    pub(super) fn draw(&self, canvas: &mut Canvas, legend: u32) {
        let bottom = canvas.height() - MARGIN - if self.x.is_empty() { BOTTOM_UNNAMED } else { BOTTOM };
        let x = Axis {
            values: self.range(|point| point.0, |mark| [mark.from, mark.to], self.log_x),
            pixels: [LEFT, layout::right(legend)].map(f64::from),
            log: self.log_x,
        };
        let y = Axis {
            values: self.range(|point| point.1, |mark| [mark.low, mark.high], self.log_y),
            pixels: [bottom, MARGIN].map(f64::from),
            log: self.log_y,
        };
        self.draw_axes(canvas, &x, &y);
        let at = |(a, b): (f64, f64)| (x.at(a), y.at(b));
        let (looks, (coloured, rest)) = (self.looks(), self.coloured_and_rest());
        for line in rest {
            canvas.line(self.path(line).into_iter().map(at), Stroke::new(Ink::Rest, 1));
        }
        for line in coloured {
            canvas.line(self.path(line).into_iter().map(at), looks[line].line(2));
            for point in self.marked(line) {
                looks[line].mark(canvas, at(point));
            }
        }
        for mark in &self.marks {
            draw_mark(canvas, mark, &x, &y, looks.get(mark.line).map_or(Ink::Text, |look| look.ink));
        }
        self.draw_legend(canvas, f64::from(layout::legend_names(legend)));
    }

    fn draw_axes(&self, canvas: &mut Canvas, x: &Axis, y: &Axis) {
        let ([left, right], [bottom, top]) = (x.pixels, y.pixels);
        let small = Font::new(11.5, Ink::Muted);
        for value in x.ticks() {
            let at = x.at(value);
            canvas.line([(at, top), (at, bottom)], Stroke::new(Ink::Grid, 1));
            canvas.text(&tick(value), (at, bottom + 7.0), small.centred().below());
        }
        for value in y.ticks() {
            let at = y.at(value);
            canvas.line([(left, at), (right, at)], Stroke::new(Ink::Grid, 1));
            canvas.text(&tick(value), (left - 7.0, at), small.to_the_left());
        }
        canvas.line([(left, top), (left, bottom), (right, bottom)], Stroke::new(Ink::Muted, 1));
        let name = Font::new(12.0, Ink::Text).centred();
        canvas.text(&self.x, (f64::midpoint(left, right), bottom + 28.0), name.below());
        canvas.upward_text(&self.y, (f64::from(MARGIN) + 6.0, f64::midpoint(top, bottom)), name);
    }

    /// Length of the longest name in the legend, in characters.
    pub(super) fn legend(&self) -> u32 {
        let names = self.lines.iter().map(|line| &line.name);
        let marks = (!self.marks.is_empty()).then_some(&self.marks_name);
        names.chain(marks).map(|name| name.chars().count()).max().unwrap_or(0) as u32
    }

    /// Height of the legend in pixels.
    pub(super) fn legend_height(&self) -> u32 {
        let coloured = self.lines.len().min(MAX_COLOURED) + usize::from(!self.marks.is_empty());
        let rest = self.lines.len().saturating_sub(MAX_COLOURED);
        let rest = if rest > 0 { REST_STEP * (rest as u32 + 2) } else { 0 };
        24 + LEGEND_STEP * coloured as u32 + rest
    }

    /// The curves with a colour in legend order, and the others, best first. Up to seven curves all have a colour. If
    /// there are more, priority is given to curves with claims, then to the baseline and the bound, then to the best.
    /// The best are those that end highest, or, for distributions, which all end at the top, those with the lowest
    /// median.
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
        // Equal curves keep the order of the legend.
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

    /// Points of curve `line` with a marker: all of them, or some of a dense curve.
    fn marked(&self, line: usize) -> Vec<(f64, f64)> {
        /// Number of intervals between the markers of a dense curve.
        const PIECES: usize = 6;
        let points = &self.lines[line].points;
        match self.dense {
            true => {
                (1..PIECES).filter_map(|piece| points.get(points.len() * piece / PIECES)).copied().collect()
            }
            false => points.clone(),
        }
    }

    /// The path of curve `line`.
    fn path(&self, line: usize) -> Vec<(f64, f64)> {
        let points = &self.lines[line].points;
        let Some(first) = points.first().filter(|_| self.steps) else { return points.clone() };
        let corners = points.windows(2).flat_map(|two| [(two[1].0, two[0].1), two[1]]);
        std::iter::once(*first).chain(corners).collect()
    }

    /// The range from zero (or slightly below the minimum, on a logarithmic axis) to slightly above the maximum.
    fn range(
        &self,
        of: impl Fn(&(f64, f64)) -> f64,
        of_mark: impl Fn(&Mark) -> [f64; 2],
        log: bool,
    ) -> [f64; 2] {
        let points = || self.lines.iter().flat_map(|line| &line.points).map(&of);
        let marks = || self.marks.iter().flat_map(&of_mark).filter(|value| !log || *value > 0.0);
        let values = || points().chain(marks());
        let (least, largest) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if log { [least / 1.5, largest * 1.5] } else { [least.min(0.0), (largest * 1.05).max(1e-9)] }
    }

    fn draw_legend(&self, canvas: &mut Canvas, names: f64) {
        let (looks, (coloured, rest)) = (self.looks(), self.coloured_and_rest());
        let sample = |y: f64| [(names - 28.0, y), (names - 4.0, y)];
        let mut y = 24.0;
        for line in coloured {
            canvas.line(sample(y), looks[line].line(2));
            looks[line].mark(canvas, (names - 16.0, y));
            canvas.text(&self.lines[line].name, (names, y), Font::new(12.0, Ink::Text));
            y += f64::from(LEGEND_STEP);
        }
        let mut below = y;
        if !self.marks.is_empty() {
            draw_cross(canvas, (names - 16.0, y));
            canvas.line([(names - 16.0, y - 8.0), (names - 16.0, y + 8.0)], Stroke::new(Ink::Text, 1));
            canvas.text(&self.marks_name, (names, y), Font::new(12.0, Ink::Text));
            below += f64::from(LEGEND_STEP);
        }
        let small = Font::new(10.5, Ink::Muted);
        if !rest.is_empty() {
            canvas.line(sample(below), Stroke::new(Ink::Rest, 1));
            canvas.text(if self.steps { "from the left:" } else { "from above:" }, (names, below), small);
        }
        for line in rest {
            below += f64::from(REST_STEP);
            canvas.text(&self.lines[line].name, (names, below), small);
        }
    }
}

/// Draws the error bar and the line over the range in the colour of the curve, and the cross in that of text, so that
/// it is visible where it overlaps the curve.
fn draw_mark(canvas: &mut Canvas, mark: &Mark, x: &Axis, y: &Axis, ink: Ink) {
    let stroke = Stroke::new(ink, 2);
    let (from, to, value) = (x.at(mark.from), x.at(mark.to), y.at(mark.y));
    let middle = f64::midpoint(from, to);
    let ends = [mark.low, mark.high].map(|end| y.at(end));
    canvas.line([(from, value), (to, value)], stroke);
    canvas.line(ends.map(|end| (middle, end)), stroke);
    for end in ends {
        canvas.line([(middle - CAP, end), (middle + CAP, end)], stroke);
    }
    draw_cross(canvas, (middle, value));
}

fn draw_cross(canvas: &mut Canvas, (x, y): (f64, f64)) {
    for rise in [-MARK, MARK] {
        canvas.line([(x - MARK, y + rise), (x + MARK, y - rise)], Stroke::new(Ink::Text, 1));
    }
}

/// Half the size of a mark's cross, and of the caps of its error bar, in pixels.
const MARK: f64 = 5.0;
const CAP: f64 = 3.0;

/// Line height of the legend in pixels, for coloured and for grey curves.
const LEGEND_STEP: u32 = 20;
const REST_STEP: u32 = 15;

/// Label of a tick, with the number of digits it needs.
fn tick(value: f64) -> String {
    let decimals = if value.abs() >= 10.0 || value.fract().abs() < 1e-9 { 0 } else { 3 };
    let text = number(value, decimals);
    if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::{Panel, stacked};
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
