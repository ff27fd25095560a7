//! Common parts of charts with one row per name: the room for names, and the axis below the rows.

use super::Ink;
use super::axis::Axis;
use super::canvas::{Canvas, Font, Stroke};

/// Height of the axis.
pub(super) const AXIS: u32 = 46;
/// Width of a character in names and labels in pixels, estimated generously.
const CHARACTER: u32 = 7;

/// Maximum number of decimals in labels of grid lines.
const MAX_DECIMALS: f64 = 12.0;
/// Maximum number of grid lines.
const MAX_TICKS: u32 = 1_000;

/// Width of the longest of `texts`.
pub(super) fn room_for<'a>(texts: impl Iterator<Item = &'a str>) -> u32 {
    texts.map(|text| text.chars().count()).max().unwrap_or(0) as u32 * CHARACTER + 14
}

/// Draws the axis with label `name` below rows from `top` to `bottom`, with a grid line every `step`.
pub(super) fn draw_axis(canvas: &mut Canvas, axis: &Axis, step: f64, [top, bottom]: [f64; 2], name: &str) {
    let ([from, to], [left, right]) = (axis.values, axis.pixels);
    let decimals = (-step.log10().floor()).clamp(0.0, MAX_DECIMALS) as usize;
    let font = Font::new(11.5, Ink::Muted).centred().below();
    let last = ((to - from) / step + 1e-9) as u32;
    for tick in 0..=last.min(MAX_TICKS) {
        let value = from + f64::from(tick) * step;
        let x = axis.at(value);
        canvas.line([(x, top), (x, bottom)], Stroke::new(Ink::Grid, 1));
        canvas.text(&format!("{value:.decimals$}"), (x, bottom + 7.0), font);
    }
    canvas.text(name, (f64::midpoint(left, right), bottom + 25.0), font);
}
