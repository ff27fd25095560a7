//! Text tables with aligned columns, numbers to the right.

/// A table under construction.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
    heads: usize,
}

impl TextTable {
    /// Creates a table with these headings. Each heading may have several lines, such as a name and a unit.
    pub fn new<const LINES: usize>(heads: &[[&str; LINES]]) -> Self {
        let rows = (0..LINES).map(|line| heads.iter().map(|head| head[line].to_owned()).collect());
        Self { rows: rows.collect(), heads: LINES }
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as lines of text. The first column is left-aligned, all others are right-aligned.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.chars().count());
                match column {
                    0 => line.extend([cell.as_str(), &padding]),
                    _ => line.extend(["  ", &padding, cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if index + 1 == self.heads {
                let rule = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
                text.push_str(&"─".repeat(rule));
                text.push('\n');
            }
        }
        text
    }
}

/// `value` with `decimals` decimals, and with commas between thousands.
pub fn number(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.map_or(String::new(), |fraction| format!(".{fraction}"));
    format!("{sign}{grouped}{fraction}")
}

/// `value` formatted by [`number`], or a dash if it is `None`.
pub fn number_or_dash(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| number(value, decimals))
}

/// `value` with at most four decimals, and with none if it is an integer or large.
pub fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        size if size.fract() == 0.0 || size >= 1_000.0 => 0,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    number(value, decimals)
}

/// A fraction in per cent, or a dash.
pub fn percent(fraction: Option<f64>, decimals: usize) -> String {
    fraction.map_or_else(|| "–".to_owned(), |fraction| format!("{} %", number(fraction * 100.0, decimals)))
}

/// A change in per cent with its sign.
pub fn signed_percent(fraction: Option<f64>, decimals: usize) -> String {
    fraction.map_or_else(|| "–".to_owned(), |fraction| format!("{:+.decimals$} %", fraction * 100.0))
}

/// `n noun`, with a plural s if necessary.
pub fn count(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(n as f64, 0), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(number(1_234_567.89, 1), "1,234,567.9");
        assert_eq!(number(-123.0, 0), "-123");
        assert_eq!(number(999.96, 1), "1,000.0");
        assert_eq!(
            [18_445_010.13, 978.942, 0.00462, 5.0].map(significant),
            ["18,445,010", "978.94", "0.0046", "5"]
        );
        assert_eq!(signed_percent(Some(0.0714), 1), "+7.1 %");
        assert_eq!(count(1, "client"), "1 client");
        assert_eq!(count(10, "client"), "10 clients");
    }

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(&[["a", ""], ["goodput", "Mb/s"]]);
        table.push(vec!["stock".into(), "111.9".into()]);
        table.push(vec!["udp".into(), "1".into()]);
        assert_eq!(
            table.render(),
            "a      goodput\n          Mb/s\n──────────────\nstock    111.9\nudp          1\n"
        );
    }
}
