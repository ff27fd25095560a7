//! A table as a picture, for reports that store pictures.

use super::Ink;
use super::canvas::{Canvas, Font, Picture, Stroke};
use tacit_scenario::table::TextTable;

const ROW: u32 = 30;
/// Width of a character in pixels, estimated generously.
const CHARACTER: u32 = 8;
const GAP: u32 = 24;

/// `table`, which has one line of headings, as a picture. The first column is left-aligned, all others are right-aligned.
/// `alt` is the alternative text.
pub fn table_picture(alt: &str, table: &TextTable) -> Picture {
    let (heads, rows) = table.parts();
    let rows: Vec<&Vec<String>> = heads.iter().chain(rows).collect();
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<u32> =
        (0..columns).map(|column| widest(column).unwrap_or(0) as u32 * CHARACTER + GAP).collect();
    let width = widths.iter().sum::<u32>() + GAP;
    let mut canvas = Canvas::new(width, ROW * rows.len() as u32 + GAP);
    for (index, row) in rows.iter().enumerate() {
        let middle = GAP / 2 + ROW * index as u32 + ROW / 2;
        let font = Font::new(13.0, if index == 0 { Ink::Muted } else { Ink::Text });
        let mut left = GAP / 2;
        for (column, (cell, cell_width)) in row.iter().zip(&widths).enumerate() {
            let right = left + cell_width;
            match column {
                0 => canvas.text(cell, (left, middle), font),
                _ => canvas.text(cell, (right, middle), font.to_the_left()),
            }
            left = right;
        }
        let line = middle + ROW / 2;
        canvas.line([(8, line), (width - 8, line)], Stroke::new(Ink::Grid, if index == 0 { 2 } else { 1 }));
    }
    canvas.into_picture(alt)
}
