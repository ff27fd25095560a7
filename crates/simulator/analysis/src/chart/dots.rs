//! Ranked dots, one per row, with intervals and the largest mean at the top. This stays readable with many schemes at
//! one setting.

use super::axis::{Axis, round_step};
use super::canvas::{Canvas, Font, Picture, Stroke};
use super::rows::{AXIS, draw_axis, room_for};
use super::{Ink, SeriesStyle, Shape};
use tacit_runs::store::Sheet;

/// A chart of ranked dots.
#[derive(Clone, Debug, Default)]
pub struct DotChart {
    /// Alternative text.
    pub alt: String,
    /// Text above the chart, for pages without a title.
    pub title: String,
    /// Label and unit of the axis.
    pub axis: String,
    /// Further values that the axis must include, so that several charts can share one axis.
    pub also: Vec<f64>,
    /// The dots, in any order.
    pub dots: Vec<Dot>,
    /// Name of the dot whose value is drawn as a line across all rows.
    pub baseline: Option<String>,
}

/// A row of the chart.
#[derive(Clone, Debug, Default)]
pub struct Dot {
    /// Text before the dot. It determines the look of the dot, see [`SeriesStyle::for_series`].
    pub name: String,
    /// Text after the dot.
    pub label: String,
    /// Position of the dot.
    pub value: f64,
    /// Half-width of its interval.
    pub interval: Option<f64>,
    /// A value stated by another source, between its smallest and largest acceptable value.
    pub reference: Option<[f64; 3]>,
}

const ROW: u32 = 22;
const TOP: u32 = 24;
/// Intervals are truncated at this multiple of the span of the dots, so that one outlier does not compress all others.
const MAX_REACH: f64 = 2.0;

impl Dot {
    fn ends(&self) -> [f64; 2] {
        let half = self.interval.unwrap_or(0.0);
        [self.value - half, self.value + half]
    }
}

impl DotChart {
    /// The dots in descending order of value. Equal dots keep their order.
    pub fn ranked(&self) -> Vec<&Dot> {
        let mut dots: Vec<&Dot> = self.dots.iter().collect();
        dots.sort_by(|a, b| b.value.total_cmp(&a.value));
        dots
    }

    /// A row for each dot, the largest first.
    pub fn sheet(&self) -> Sheet {
        let ranked = self.ranked();
        let mut sheet = Sheet::default();
        sheet.text("name", ranked.iter().map(|dot| dot.name.as_str()));
        sheet.number(&self.axis, ranked.iter().map(|dot| Some(dot.value)));
        sheet.number("ci95", ranked.iter().map(|dot| dot.interval));
        sheet
    }

    /// The picture.
    pub fn picture(&self, width: u32) -> Picture {
        let mut canvas = Canvas::new(width, self.height());
        self.draw(&mut canvas);
        canvas.into_picture(&self.alt)
    }

    pub(super) fn height(&self) -> u32 {
        self.top() + ROW * self.dots.len() as u32 + AXIS
    }

    /// Height of the title and of the baseline's name.
    const fn top(&self) -> u32 {
        if self.title.is_empty() { TOP } else { TOP + ROW }
    }

    /// The ends of the axis, and the distance of its grid lines. Dots show their value by position instead of length,
    /// so the axis starts near the smallest value.
    fn range(&self) -> ([f64; 2], f64) {
        let least_and_most = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            })
        };
        let references = || self.dots.iter().filter_map(|dot| dot.reference).flatten();
        let values =
            || self.dots.iter().map(|dot| dot.value).chain(self.also.iter().copied()).chain(references());
        let (least, most) = least_and_most(&mut values());
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        let reach = (most - least).max(most.abs() * 0.05).max(1e-9) * MAX_REACH;
        let ends = self.dots.iter().flat_map(Dot::ends).map(|end| end.clamp(least - reach, most + reach));
        let (least, most) = least_and_most(&mut ends.chain(values()).chain([least, most]));
        // Measured values are not negative, but an interval may be.
        let least = if self.dots.iter().all(|dot| dot.value >= 0.0) { least.max(0.0) } else { least };
        let step = round_step((most - least).max(most.abs() * 1e-6).max(1e-9), 5.0);
        let from = (least / step).floor() * step;
        ([from, most.max(from + step) + step * 0.15], step)
    }

    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let (names, labels) =
            (self.dots.iter().map(|dot| &*dot.name), self.dots.iter().map(|dot| &*dot.label));
        let (width, top) = (canvas.width(), f64::from(self.top()));
        // Leaves room for the dots even if names are long.
        let left = f64::from(room_for(names).min(width / 3));
        let right = f64::from(width - room_for(labels).min(width / 3));
        let (values, step) = self.range();
        let axis = Axis { values, pixels: [left, right], log: false };
        let bottom = top + f64::from(ROW * self.dots.len() as u32);
        canvas.text(&self.title, (left, 12.0), Font::new(13.0, Ink::Text));
        draw_axis(canvas, &axis, step, [top, bottom], &self.axis);
        let baseline = self.dots.iter().find(|dot| self.baseline.as_ref() == Some(&dot.name));
        if let Some(dot) = baseline {
            let x = axis.at(dot.value);
            canvas
                .line([(x, top - 4.0), (x, bottom)], Stroke::new(Ink::Text, 1).dashed(Shape::Square.dash()));
            canvas.text(&dot.name, (x, top - 6.0), Font::new(11.0, Ink::Text).centred().above());
        }
        let ranked = self.ranked();
        let looks = SeriesStyle::for_series(&ranked.iter().map(|dot| dot.name.as_str()).collect::<Vec<_>>());
        for (row, (dot, look)) in ranked.into_iter().zip(looks).enumerate() {
            let y = top + f64::from(ROW * row as u32 + ROW / 2);
            if dot.interval.is_some() {
                let [low, high] = dot.ends().map(|end| axis.at(end));
                let stroke = Stroke::new(look.ink, 2);
                canvas.line([(low, y), (high, y)], stroke);
                for end in [low, high] {
                    canvas.line([(end, y - 4.0), (end, y + 4.0)], stroke);
                }
            }
            look.mark(canvas, (axis.at(dot.value), y));
            if let Some(reference) = dot.reference {
                let [low, at, high] = reference.map(|value| axis.at(value));
                let strokes = [
                    [(low, y), (high, y)],
                    [(at - 5.0, y - 5.0), (at + 5.0, y + 5.0)],
                    [(at - 5.0, y + 5.0), (at + 5.0, y - 5.0)],
                ];
                for line in strokes {
                    canvas.line(line, Stroke::new(Ink::Muted, 1));
                }
            }
            canvas.text(&dot.name, (left - 8.0, y), Font::new(12.5, Ink::Text).to_the_left());
            canvas.text(&dot.label, (right + 10.0, y), Font::new(11.5, Ink::Muted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(name: &str, value: f64, interval: Option<f64>) -> Dot {
        Dot { name: name.into(), value, interval, ..Dot::default() }
    }

    #[test]
    fn the_largest_is_on_top_and_the_baseline_a_line() {
        let dots =
            vec![dot("stock", 90.0, Some(2.0)), dot("udp", 130.0, None), dot("tack", 120.0, Some(1.0))];
        let chart = DotChart { dots, baseline: Some("stock".into()), ..DotChart::default() };
        assert_eq!(
            chart.ranked().iter().map(|dot| dot.name.as_str()).collect::<Vec<_>>(),
            ["udp", "tack", "stock"]
        );
        let ([from, to], step) = chart.range();
        assert_eq!((from, step), (80.0, 10.0), "near the least end");
        assert!((130.0..=140.0).contains(&to), "{to}");
        let svg = chart.picture(560).to_svg();
        let place = |text: &str| svg.rfind(&format!(">{text}<")).unwrap_or_else(|| panic!("{text}: {svg}"));
        assert!(place("udp") < place("tack") && place("tack") < place("stock"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 1, "one baseline");
    }

    #[test]
    fn a_wide_interval_hides_no_other_dot() {
        let dots = vec![dot("stock", 90.0, Some(1e12)), dot("udp", 130.0, None)];
        let ([from, to], _) = DotChart { dots, ..DotChart::default() }.range();
        assert!(from >= 0.0 && to < 300.0, "{from} to {to}");
    }
}
