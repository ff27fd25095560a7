//! Ranked dots: a row each, the largest mean on top, with its interval. Many schemes at one setting stay readable.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, Ink, Look, Shape, finish, font, round_step};

/// A chart of ranked dots.
#[derive(Clone, Debug, Default)]
pub struct DotChart {
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// What stands above it, where the page says nothing.
    pub title: String,
    /// Meaning and unit of the axis.
    pub axis: String,
    /// Values that the axis has at least, so that several charts can have one axis.
    pub also: Vec<f64>,
    /// The dots, in any order.
    pub dots: Vec<Dot>,
    /// Name of the dot whose value is a line across all.
    pub baseline: Option<String>,
}

/// A row of the chart.
#[derive(Clone, Debug, Default)]
pub struct Dot {
    /// What stands before it; it says how the dot looks, see [`Look::of_series`].
    pub name: String,
    /// What stands behind it.
    pub label: String,
    /// Where it is.
    pub value: f64,
    /// Half-width of the interval around it.
    pub interval: Option<f64>,
    /// What somebody says it is, between how little and how much it may be.
    pub said: Option<[f64; 3]>,
}

const WIDTH: u32 = 560;
const ROW: u32 = 22;
const TOP: u32 = 24;
const AXIS: u32 = 46;
/// Pixels per character of names and labels, generously.
const CHARACTER: u32 = 7;
/// Intervals reach this multiple of the dots' span before they are cut: one seed gone wrong hides nobody.
const MAX_REACH: f64 = 2.0;

/// From where to where the axis goes, and the distance of its grid lines.
struct Axis {
    from: f64,
    to: f64,
    step: f64,
}

impl Dot {
    fn ends(&self) -> [f64; 2] {
        let half = self.interval.unwrap_or(0.0);
        [self.value - half, self.value + half]
    }
}

impl DotChart {
    /// The dots from the largest value down; of equal ones the first comes first.
    pub fn ranked(&self) -> Vec<&Dot> {
        let mut dots: Vec<&Dot> = self.dots.iter().collect();
        dots.sort_by(|a, b| b.value.total_cmp(&a.value));
        dots
    }

    /// The picture.
    pub fn to_svg(&self) -> String {
        let height = self.height();
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        // Writing to a string does not fail.
        let _ = self.draw(&area).and_then(|()| Ok(area.present()?));
        drop(area);
        finish(&svg, (WIDTH, height), &self.alt)
    }

    pub(super) fn height(&self) -> u32 {
        self.top() + ROW * self.dots.len() as u32 + AXIS
    }

    /// Room for the title, and the name of the baseline.
    const fn top(&self) -> u32 {
        if self.title.is_empty() { TOP } else { TOP + ROW }
    }

    /// Dots say by their place, not their length, what they are: the axis begins near the least.
    fn axis(&self) -> Axis {
        let least_and_most = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            })
        };
        let said = || self.dots.iter().filter_map(|dot| dot.said).flatten();
        let values = || self.dots.iter().map(|dot| dot.value).chain(self.also.iter().copied()).chain(said());
        let (least, most) = least_and_most(&mut values());
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        let reach = (most - least).max(most.abs() * 0.05).max(1e-9) * MAX_REACH;
        let ends = self.dots.iter().flat_map(Dot::ends).map(|end| end.clamp(least - reach, most + reach));
        let (least, most) = least_and_most(&mut ends.chain(values()).chain([least, most]));
        // Nothing that was measured is below zero; an interval may be.
        let least = if self.dots.iter().all(|dot| dot.value >= 0.0) { least.max(0.0) } else { least };
        let step = round_step((most - least).max(most.abs() * 1e-6).max(1e-9), 5.0);
        let from = (least / step).floor() * step;
        Axis { from, to: most.max(from + step) + step * 0.15, step }
    }

    pub(super) fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let widest = |text: fn(&Dot) -> &str| {
            self.dots.iter().map(|dot| text(dot).chars().count()).max().unwrap_or(0) as u32 * CHARACTER + 14
        };
        let (width, top) = (area.dim_in_pixel().0, self.top());
        // Whatever names are like, something is left for the dots.
        let left = widest(|dot| &dot.name).min(width / 3) as i32;
        let right = (width - widest(|dot| &dot.label).min(width / 3)) as i32;
        let Axis { from, to, step } = self.axis();
        let x = |value: f64| {
            left + ((value.clamp(from, to) - from) / (to - from) * f64::from(right - left)).round() as i32
        };
        let bottom = (top + ROW * self.dots.len() as u32) as i32;
        let text = |words: String, at: (i32, i32), ink, size, side, height| {
            area.draw(&Text::new(words, at, font(size, ink).pos(Pos::new(side, height))))
        };
        text(self.title.clone(), (left, 12), Ink::Text, 13.0, HPos::Left, VPos::Center)?;
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let ticks = ((to - from) / step + 1e-9) as u32;
        for tick in 0..=ticks.min(20) {
            let value = from + f64::from(tick) * step;
            area.draw(&PathElement::new([(x(value), top as i32), (x(value), bottom)], Ink::Grid.stand_in()))?;
            text(
                format!("{value:.decimals$}"),
                (x(value), bottom + 7),
                Ink::Muted,
                11.5,
                HPos::Center,
                VPos::Top,
            )?;
        }
        let middle = i32::midpoint(left, right);
        text(self.axis.clone(), (middle, bottom + 25), Ink::Muted, 11.5, HPos::Center, VPos::Top)?;
        let baseline = self.dots.iter().find(|dot| self.baseline.as_ref() == Some(&dot.name));
        if let Some(dot) = baseline {
            let line = [(x(dot.value), top as i32 - 4), (x(dot.value), bottom)];
            let ink = Ink::Text.stroke(Shape::Square).stroke_width(1);
            area.draw(&PathElement::new(line, ink))?;
            text(
                dot.name.clone(),
                (x(dot.value), top as i32 - 6),
                Ink::Text,
                11.0,
                HPos::Center,
                VPos::Bottom,
            )?;
        }
        let ranked = self.ranked();
        let looks = Look::of_series(&ranked.iter().map(|dot| dot.name.as_str()).collect::<Vec<_>>());
        for (row, (dot, look)) in ranked.into_iter().zip(looks).enumerate() {
            let y = (top + ROW * row as u32 + ROW / 2) as i32;
            if dot.interval.is_some() {
                let [low, high] = dot.ends().map(x);
                let ink = look.ink.stand_in().stroke_width(2);
                area.draw(&PathElement::new([(low, y), (high, y)], ink))?;
                for end in [low, high] {
                    area.draw(&PathElement::new([(end, y - 4), (end, y + 4)], ink))?;
                }
            }
            look.mark(area, (x(dot.value), y))?;
            if let Some(said) = dot.said {
                let [low, at, high] = said.map(x);
                let strokes = [
                    [(low, y), (high, y)],
                    [(at - 5, y - 5), (at + 5, y + 5)],
                    [(at - 5, y + 5), (at + 5, y - 5)],
                ];
                let ink = Ink::Muted.stand_in().stroke_width(1);
                strokes.into_iter().try_for_each(|line| area.draw(&PathElement::new(line, ink)))?;
            }
            text(dot.name.clone(), (left - 8, y), Ink::Text, 12.5, HPos::Right, VPos::Center)?;
            text(dot.label.clone(), (right + 10, y), Ink::Muted, 11.5, HPos::Left, VPos::Center)?;
        }
        Ok(())
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
        let Axis { from, to, step } = chart.axis();
        assert_eq!((from, step), (80.0, 10.0), "near the least end");
        assert!((130.0..=140.0).contains(&to), "{to}");
        let svg = chart.to_svg();
        let place = |text: &str| svg.rfind(&format!("\n{text}\n")).unwrap_or_else(|| panic!("{text}: {svg}"));
        assert!(place("udp") < place("tack") && place("tack") < place("stock"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 1, "one baseline");
    }

    #[test]
    fn a_wide_interval_hides_no_other_dot() {
        let dots = vec![dot("stock", 90.0, Some(1e12)), dot("udp", 130.0, None)];
        let axis = DotChart { dots, ..DotChart::default() }.axis();
        assert!(axis.from >= 0.0 && axis.to < 300.0, "{} to {}", axis.from, axis.to);
    }
}
