//! Tables of Markdown.

use std::fmt::Display;

use super::spread::Spread;

/// A table under construction.
pub struct Table(String);

impl Table {
    pub fn new(heads: &[impl Display]) -> Self {
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

/// The median with the least and the largest value; a dash where there is none.
pub fn whole(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(dash, |spread| spread.text(decimals))
}

/// Where there is no value.
pub fn dash() -> String {
    "–".to_owned()
}

/// Longest line of prose.
const WIDTH: usize = 120;

/// A paragraph in lines; text in backquotes is not broken.
pub fn filled(text: &str) -> String {
    let mut lines = String::new();
    let (mut width, mut quoted) = (0, false);
    for word in text.split_whitespace() {
        let len = word.chars().count();
        let fits = width + 1 + len <= WIDTH || quoted;
        if width > 0 {
            lines.push(if fits { ' ' } else { '\n' });
        }
        width = if fits && width > 0 { width + 1 + len } else { len };
        lines.push_str(word);
        quoted ^= word.matches('`').count() % 2 == 1;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words_but_not_within_backquotes() {
        let word = "x".repeat(118);
        assert_eq!(filled(&format!("{word}  a b c")), format!("{word} a\nb c\n"));
        assert_eq!(filled(&format!("{word} `a b` c")), format!("{word}\n`a b` c\n"));
    }

    #[test]
    fn a_table_has_a_rule_below_its_head() {
        let mut table = Table::new(&["", "Mb/s"]);
        table.push(&["tack", "1"]);
        assert_eq!(table.text(), "|  | Mb/s |\n|---|---|\n| tack | 1 |\n");
    }
}
