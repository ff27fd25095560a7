//! Tables of Markdown.

use std::fmt::Display;

use clap::ValueEnum;

use super::spread::Spread;

/// A table under construction.
pub struct Table(String);

impl Table {
    pub fn new(heads: &[&str]) -> Self {
        let mut table = Self(String::new());
        table.push(heads);
        table.0.push_str(&"|---".repeat(heads.len()));
        table.0.push_str("|\n");
        table
    }

    pub fn push(&mut self, cells: &[impl Display]) {
        for cell in cells {
            self.0.push_str(&format!("| {cell} "));
        }
        self.0.push_str("|\n");
    }

    pub fn text(self) -> String {
        self.0
    }
}

/// The median alone; a dash where there is none.
pub fn middle(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(dash, |spread| format!("{:.decimals$}", spread.median))
}

/// The median with what it lies between; a dash where there is none.
pub fn whole(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(dash, |spread| spread.text(decimals).to_string())
}

fn dash() -> String {
    "–".to_owned()
}

/// What a value is called on the command line.
pub fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
