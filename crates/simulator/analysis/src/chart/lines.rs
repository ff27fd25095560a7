//! Curves over a common axis, each with its name at its end.

use super::axis::Axis;
use super::canvas::{Canvas, Font, Stroke};
use super::layout::{BOTTOM, LEFT, Layout, MARGIN};
use super::names::Names;
use super::{Dot, DotChart, Ink, SeriesStyle};
use tacit_runs::store::Sheet;
use tacit_scenario::scheme::{Role, Scheme};
use tacit_scenario::table::number;

/// A line chart.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// Alternative text.
    pub alt: String,
    /// Text above the chart, for pictures without a caption.
    pub title: String,
    /// Label and unit of x.
    pub x: String,
    /// Label and unit of y.
    pub y: String,
    /// Names of the places of x at 0, 1, 2, …, if they are no numbers. Points are not connected then.
    pub places: Vec<String>,
    /// Logarithmic x axis; only for positive x.
    pub log_x: bool,
    /// Logarithmic y axis; only for positive y.
    pub log_y: bool,
    /// The curves, in the order of their names where these are not at the ends.
    pub lines: Vec<Line>,
    /// Curves have too many points for a marker at each, so only a few get one.
    pub dense: bool,
    /// Draw steps instead of straight lines between points, for fractions of a count.
    pub steps: bool,
    /// Names of curves that get a colour first, because claims refer to them.
    pub concerned: Vec<String>,
    /// Claimed values of the curves.
    pub marks: Vec<Mark>,
    /// Source of the marks, as shown beside the curves' names.
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
    /// Its name.
    pub name: String,
    /// Points (x, y) in ascending order of x.
    pub points: Vec<(f64, f64)>,
    /// Half-width of the 95 % confidence interval at each point; empty if unknown.
    pub ci95: Vec<Option<f64>>,
}

/// Maximum number of curves with a colour. All others are grey. Colours repeat with other markers.
const MAX_COLOURED: usize = 12;
/// Number of curves with colours of their own.
const MAX_APART: usize = 7;

/// Height of a plot.
const HEIGHT: u32 = 400;
/// Height of a plot in a lower panel.
const PANEL_HEIGHT: u32 = 210;
/// Height of an axis without a label, because a panel below has it.
const BOTTOM_UNNAMED: u32 = 26;
/// Height of the title.
const TITLE: u32 = 24;
/// Intervals widen the y axis up to this fraction of the largest value, so that one outlier does not compress the curves.
const MAX_REACH: f64 = 0.25;
/// Part of the distance between two named places that their points take up.
const SPREAD: f64 = 0.6;

impl LineChart {
    /// One chart of ranked dots per x, if there are more curves than colours but only a few x, where lines would be
    /// hard to distinguish. `None` if lines are more suitable.
    pub fn ranked(&self) -> Option<Vec<DotChart>> {
        /// Maximum number of charts below each other.
        const MAX_PLACES: usize = 3;
        let mut places: Vec<f64> = self.lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if self.dense || self.lines.len() <= MAX_APART || !(1..=MAX_PLACES).contains(&places.len()) {
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
                reference: mark.map(|mark| [mark.low, mark.y, mark.high]),
            })
        };
        let source = if self.marks.is_empty() { "" } else { &self.marks_name };
        DotChart {
            alt: self.alt.clone(),
            title: format!("{}: {}", self.x, number(x, if x.fract() == 0.0 { 0 } else { 3 })),
            axis: if source.is_empty() { self.y.clone() } else { format!("{} (crosses: {source})", self.y) },
            dots: self.lines.iter().enumerate().filter_map(dot).collect(),
            baseline: Some(Scheme::with_role(Role::Baseline).name.to_owned()),
            ..DotChart::default()
        }
    }

    /// A row for each point.
    pub fn sheet(&self) -> Sheet {
        let points = || {
            let places = |line: &'_ Line| 0..line.points.len();
            self.lines.iter().flat_map(move |line| places(line).map(move |place| (line, place)))
        };
        let mut sheet = Sheet::default();
        sheet.text("name", points().map(|(line, _)| line.name.as_str()));
        if self.places.is_empty() {
            sheet.number(&self.x, points().map(|(line, place)| Some(line.points[place].0)));
        } else {
            let place = |x: f64| self.places.get(x as usize).map_or("", String::as_str);
            sheet.text(&self.x, points().map(|(line, at)| place(line.points[at].0)));
        }
        sheet.number(&self.y, points().map(|(line, place)| Some(line.points[place].1)));
        if self.lines.iter().any(|line| !line.ci95.is_empty()) {
            sheet.number("ci95", points().map(|(line, place)| line.ci95.get(place).copied().flatten()));
        }
        sheet
    }

    /// Height of the chart. That of the first of several is larger.
    pub(super) fn height(&self, layout: Layout, is_first: bool) -> u32 {
        let plot = if is_first { HEIGHT } else { PANEL_HEIGHT };
        let (coloured, rest) = self.coloured_and_rest();
        let names = self.names(&coloured, &rest);
        let title = if self.title.is_empty() { 0 } else { TITLE };
        title + if layout.is_beside() { plot.max(names.height()) } else { plot + names.rows(layout) }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, layout: Layout) {
        let (coloured, rest) = self.coloured_and_rest();
        let names = self.names(&coloured, &rest);
        let top = MARGIN + if self.title.is_empty() { 0 } else { TITLE };
        let below = if layout.is_beside() { 0 } else { names.rows(layout) };
        let axis = if self.x.is_empty() { BOTTOM_UNNAMED } else { BOTTOM };
        let bottom = canvas.height() - MARGIN - axis - below;
        let pixels = [LEFT, layout.right()].map(f64::from);
        let x = Axis { values: self.x_range(), pixels, log: self.log_x };
        let y = Axis { values: self.y_range(), pixels: [bottom, top].map(f64::from), log: self.log_y };
        canvas.text(&self.title, (f64::from(MARGIN), f64::from(MARGIN) + 6.0), Font::new(14.0, Ink::Text));
        self.draw_axes(canvas, &x, &y);
        let at = |(a, b): (f64, f64)| (x.at(a), y.at(b));
        let looks = self.looks();
        if self.places.is_empty() {
            for line in &rest {
                canvas.line(self.path(*line).into_iter().map(at), Stroke::new(Ink::Rest, 1));
            }
            for line in &coloured {
                canvas.line(self.path(*line).into_iter().map(at), looks[*line].line(2));
            }
        }
        for line in rest.iter().chain(&coloured).copied() {
            let is_grey = rest.contains(&line);
            let look = if is_grey { SeriesStyle { ink: Ink::Rest, ..looks[line] } } else { looks[line] };
            for place in self.marked(line) {
                let point = self.placed(line, place);
                self.draw_whisker(canvas, (line, place), (&x, &y), look.ink);
                if !is_grey || !self.places.is_empty() {
                    look.mark(canvas, at(point));
                }
            }
        }
        for mark in &self.marks {
            draw_mark(canvas, mark, &x, &y, looks.get(mark.line).map_or(Ink::Text, |look| look.ink));
        }
        if layout.is_beside() {
            let ends = |line: usize| {
                let last = self.lines[line].points.len().checked_sub(1)?;
                Some(at(self.placed(line, last)))
            };
            names.draw_beside(canvas, layout, [top, bottom], (!self.steps).then_some(&ends));
        } else {
            names.draw_below(canvas, layout, bottom + axis);
        }
    }

    /// The names of the curves, those of `coloured` first, and of the marks.
    fn names(&self, coloured: &[usize], rest: &[usize]) -> Names {
        let looks = self.looks();
        let mut names = Names::default();
        for line in coloured {
            names.curve(*line, &self.lines[*line].name, looks[*line]);
        }
        if !self.marks.is_empty() {
            names.marks(&self.marks_name);
        }
        for line in rest {
            names.grey(*line, &self.lines[*line].name);
        }
        names
    }

    fn draw_axes(&self, canvas: &mut Canvas, x: &Axis, y: &Axis) {
        let ([left, right], [bottom, top]) = (x.pixels, y.pixels);
        let small = Font::new(11.5, Ink::Muted);
        let mut tick_x = |value: f64, name: &str| {
            let at = x.at(value);
            canvas.line([(at, top), (at, bottom)], Stroke::new(Ink::Grid, 1));
            canvas.text(name, (at, bottom + 7.0), small.centred().below());
        };
        if self.places.is_empty() {
            x.ticks().into_iter().for_each(|value| tick_x(value, &tick(value)));
        } else {
            self.places.iter().zip(0_u32..).for_each(|(name, place)| tick_x(place.into(), name));
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

    /// Length of the longest name in characters.
    pub(super) fn letters(&self) -> u32 {
        let names = self.lines.iter().map(|line| &line.name);
        let marks = (!self.marks.is_empty()).then_some(&self.marks_name);
        names.chain(marks).map(|name| name.chars().count()).max().unwrap_or(0) as u32
    }

    /// The curves with a colour in order, and the others, best first. Up to twelve curves all have a colour. If there
    /// are more, priority is given to curves with claims, then to the baseline and the bound, then to the best. The
    /// best are those that end highest, or, for distributions, which all end at the top, those with the lowest median.
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
        let yardsticks = [Role::Baseline, Role::Bound].map(|role| Scheme::with_role(role).name);
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

    fn looks(&self) -> Vec<SeriesStyle> {
        SeriesStyle::for_series(&self.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>())
    }

    /// Indices of the points of curve `line` with a marker: all of them, or some of a dense curve.
    fn marked(&self, line: usize) -> Vec<usize> {
        /// Number of intervals between the markers of a dense curve.
        const PIECES: usize = 6;
        let points = self.lines[line].points.len();
        match self.dense {
            // The markers of neighbours are apart, so that none covers the other's where curves meet.
            true => {
                let shift = points * line / (PIECES * self.lines.len());
                let places = (1..PIECES).map(|piece| points * piece / PIECES + shift);
                places.filter(|place| *place < points).collect()
            }
            false => (0..points).collect(),
        }
    }

    /// Where the point with this index is drawn. Points at a named place stand side by side.
    fn placed(&self, line: usize, place: usize) -> (f64, f64) {
        let (x, y) = self.lines[line].points[place];
        let part = (line as f64 + 0.5) / self.lines.len() as f64 - 0.5;
        (if self.places.is_empty() { x } else { x + part * SPREAD }, y)
    }

    /// The path of curve `line`.
    fn path(&self, line: usize) -> Vec<(f64, f64)> {
        let points = &self.lines[line].points;
        let Some(first) = points.first().filter(|_| self.steps) else { return points.clone() };
        let corners = points.windows(2).flat_map(|two| [(two[1].0, two[0].1), two[1]]);
        std::iter::once(*first).chain(corners).collect()
    }

    /// The ends of the interval at a point.
    fn interval(&self, (line, place): (usize, usize)) -> Option<[f64; 2]> {
        let Line { points, ci95, .. } = &self.lines[line];
        let half = ci95.get(place).copied().flatten()?;
        Some([points[place].1 - half, points[place].1 + half])
    }

    fn draw_whisker(&self, canvas: &mut Canvas, at: (usize, usize), (x, y): (&Axis, &Axis), ink: Ink) {
        let Some(ends) = self.interval(at) else { return };
        let x = x.at(self.placed(at.0, at.1).0);
        let stroke = Stroke::new(ink, 1);
        canvas.line(ends.map(|end| (x, y.at(end))), stroke);
        // An end beyond the axis has no cap.
        for end in ends.into_iter().filter(|end| (y.values[0]..=y.values[1]).contains(end)) {
            canvas.line([(x - CAP, y.at(end)), (x + CAP, y.at(end))], stroke);
        }
    }

    fn x_range(&self) -> [f64; 2] {
        if let Some(last) = self.places.len().checked_sub(1) {
            return [-0.5, last as f64 + 0.5];
        }
        let points = self.lines.iter().flat_map(|line| &line.points).map(|point| point.0);
        range(points.chain(self.marks.iter().flat_map(|mark| [mark.from, mark.to])), self.log_x)
    }

    fn y_range(&self) -> [f64; 2] {
        let points = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let (least, most) = (points().fold(f64::INFINITY, f64::min), points().fold(0.0, f64::max));
        let reach = most * MAX_REACH;
        // Measured values are not negative, but an interval may be.
        let floor = if least >= 0.0 { 0.0 } else { least - reach };
        let places = |line: usize| (0..self.lines[line].points.len()).map(move |place| (line, place));
        let ends = (0..self.lines.len()).flat_map(places).filter_map(|at| self.interval(at)).flatten();
        let ends = ends.map(|end| end.max(floor).max(least - reach).min(most + reach));
        let marks = self.marks.iter().flat_map(|mark| [mark.low, mark.high]);
        range(points().chain(ends).chain(marks), self.log_y)
    }
}

/// From zero (or slightly below the minimum, on a logarithmic axis) to slightly above the maximum.
fn range(values: impl Iterator<Item = f64>, log: bool) -> [f64; 2] {
    let inside = values.filter(|value| !log || *value > 0.0);
    let (least, most) = inside
        .fold((f64::INFINITY, 0.0), |(least, most), value| (f64::min(least, value), f64::max(most, value)));
    if log { [least / 1.5, most * 1.5] } else { [least.min(0.0), (most * 1.05).max(1e-9)] }
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
    canvas.cross((middle, value));
}

/// Half the size of the caps of an error bar, in pixels.
const CAP: f64 = 3.0;

/// Label of a tick, with the number of digits it needs.
fn tick(value: f64) -> String {
    let decimals = if value.abs() >= 10.0 || value.fract().abs() < 1e-9 { 0 } else { 3 };
    let text = number(value, decimals);
    if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::canvas::Element;
    use super::super::{Panel, stacked};
    use super::*;

    #[test]
    fn of_many_curves_those_named_the_yardsticks_and_the_highest_have_a_colour() {
        let names = ["stock", "a", "b", "c", "d", "e", "f", "g", "udp", "h", "i", "j", "k", "l", "m"];
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
        let expected = ["stock", "a", "b", "f", "g", "udp", "h", "i", "j", "k", "l", "m"];
        assert_eq!(name(&coloured), expected);
        assert_eq!(name(&rest), ["e", "d", "c"], "from above");
        let svg = stacked("", &[Panel::Lines(&chart)], 720).to_svg();
        for name in names {
            assert!(svg.contains(&format!(">{name}</text>")), "{name} has its name");
        }
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

    /// Half of what a paired reader needs: the mean alone shows no difference.
    #[test]
    fn points_have_whiskers_and_names_stand_at_the_ends() {
        let line = |name: &str, last: f64| Line {
            name: name.into(),
            points: vec![(1.0, 10.0), (5.0, last)],
            ci95: vec![Some(2.0), Some(1e9)],
        };
        let chart = LineChart {
            title: "s: goodput over delay".into(),
            lines: vec![line("low", 10.0), line("high", 30.0)],
            ..LineChart::default()
        };
        assert!(chart.y_range()[1] < 40.0, "one wide interval does not compress the curves");
        let picture = chart.picture(720);
        let text = |words: &str| {
            let mut found = picture.elements.iter().filter_map(|element| match element {
                Element::Text { words: written, at, .. } if written == words => Some(*at),
                _ => None,
            });
            found.next().unwrap_or_else(|| panic!("{words}"))
        };
        text("s: goodput over delay");
        assert!(text("high").1 < text("low").1, "in the order of the curves' ends");
        let caps = |at: usize| {
            let is_cap = |points: &[(f64, f64)]| {
                points.len() == 2
                    && (points[0].1 - points[1].1).abs() < 1e-9
                    && (points[1].0 - points[0].0 - 2.0 * CAP).abs() < 0.2
            };
            let ink = chart.looks()[at].ink;
            let lines = picture.elements.iter().filter(|element| {
                matches!(element, Element::Line { points, stroke } if stroke.ink == ink && is_cap(points))
            });
            lines.count()
        };
        assert_eq!([caps(0), caps(1)], [2, 2], "the ends beyond the axis have no cap");
        let places = LineChart { places: vec!["cubic".into(), "bbr".into()], ..chart.clone() };
        assert!(places.picture(720).to_svg().contains(">bbr</text>"));
        let narrow = chart.picture(400);
        assert!(narrow.elements.iter().all(|element| match element {
            Element::Text { at, .. } => (0.0..=400.0).contains(&at.0),
            _ => true,
        }));
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
            LineChart { lines: (1..=14).rev().map(line).collect(), steps: true, ..LineChart::default() };
        let (_, rest) = chart.coloured_and_rest();
        assert_eq!(
            rest.iter().map(|line| chart.lines[*line].name.as_str()).collect::<Vec<_>>(),
            ["slow 13", "slow 14"]
        );
    }

    #[test]
    fn ticks_say_where_they_are() {
        for (value, expected) in
            [(0.0, "0"), (0.05, "0.05"), (0.15, "0.15"), (2.5, "2.5"), (3.0, "3"), (250.0, "250")]
        {
            assert_eq!(tick(value), expected);
        }
    }
}
