//! A table as a picture, for reports that keep pictures.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, Ink, finish, font};

const ROW: u32 = 30;
/// Pixels per character, generously.
const CHARACTER: u32 = 8;
const GAP: u32 = 24;

/// `rows` as a table under their first; the first column to the left, all others to the right. `alt` says what
/// it shows.
pub fn table_picture(alt: &str, rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<u32> =
        (0..columns).map(|column| widest(column).unwrap_or(0) as u32 * CHARACTER + GAP).collect();
    let size = (widths.iter().sum::<u32>() + GAP, ROW * rows.len() as u32 + GAP);
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    // Writing to a string does not fail.
    let _ = draw(&area, rows, &widths, size.0).and_then(|()| Ok(area.present()?));
    drop(area);
    finish(&svg, size, alt)
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    rows: &[Vec<String>],
    widths: &[u32],
    width: u32,
) -> Drawn {
    for (index, row) in rows.iter().enumerate() {
        let middle = (GAP / 2 + ROW * index as u32 + ROW / 2) as i32;
        let ink = if index == 0 { Ink::Muted } else { Ink::Text };
        let mut right = GAP / 2;
        for (column, (cell, cell_width)) in row.iter().zip(widths).enumerate() {
            let (x, side) = match column {
                0 => (right, HPos::Left),
                _ => (right + cell_width, HPos::Right),
            };
            right += cell_width;
            let style = font(13.0, ink).pos(Pos::new(side, VPos::Center));
            area.draw(&Text::new(cell.clone(), (x as i32, middle), style))?;
        }
        let line = middle + ROW as i32 / 2;
        let stroke = Ink::Grid.stand_in().stroke_width(if index == 0 { 2 } else { 1 });
        area.draw(&PathElement::new([(8, line), (width as i32 - 8, line)], stroke))?;
    }
    Ok(())
}
