//! Text tables with aligned columns, numbers to the right.

/// A table under construction.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
    heads: usize,
    /// Columns in the order in which a narrow terminal loses them; the others stay.
    droppable: Vec<usize>,
}

impl TextTable {
    /// Creates a table with these headings. Each heading may have several lines, such as a name and a unit.
    pub fn new<const LINES: usize>(heads: &[[&str; LINES]]) -> Self {
        let rows = (0..LINES).map(|line| heads.iter().map(|head| head[line].to_owned()).collect());
        Self { rows: rows.collect(), heads: LINES, droppable: Vec::new() }
    }

    /// Columns that a narrow terminal loses, by index, in that order.
    pub fn dropping(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.droppable = columns.into_iter().collect();
        self
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines of the headings, and the rows.
    pub fn parts(&self) -> (&[Vec<String>], &[Vec<String>]) {
        self.rows.split_at(self.heads)
    }

    /// Width of a column in characters.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// The name of a column on one line.
    fn name(&self, column: usize) -> String {
        let words = self.rows.iter().take(self.heads).filter_map(|row| row.get(column));
        words.map(String::as_str).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The table as [`TextTable::render`] makes it, in at most `width` characters a line as far as columns may be dropped;
    /// and the names of those dropped.
    pub fn render_within(&self, width: Option<usize>) -> (String, Vec<String>) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut kept: Vec<usize> = (0..columns).collect();
        let mut dropped = Vec::new();
        for column in &self.droppable {
            let needed = kept.iter().map(|column| self.width(*column) + 2).sum::<usize>().saturating_sub(2);
            if width.is_none_or(|width| needed <= width) {
                break;
            }
            kept.retain(|known| known != column);
            dropped.push(*column);
        }
        dropped.sort_unstable();
        let pick = |row: &Vec<String>| kept.iter().filter_map(|column| row.get(*column).cloned()).collect();
        let narrow =
            Self { rows: self.rows.iter().map(pick).collect(), heads: self.heads, droppable: Vec::new() };
        (narrow.render(), dropped.into_iter().map(|column| self.name(column)).collect())
    }

    /// The table as lines of text. The first column is left-aligned, all others are right-aligned.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
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

/// Lines and tables for a terminal.
#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
    width: Option<usize>,
    /// Names of columns that did not fit.
    missing: Vec<String>,
}

impl Page {
    /// An empty page with lines of at most `width` characters, as far as that is possible.
    pub fn new(width: Option<usize>) -> Self {
        Self { width, ..Self::default() }
    }

    /// Adds a line, or several.
    pub fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// Adds an empty line, unless there is one or the page is empty.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a table, without columns that do not fit and that may be left out.
    pub fn table(&mut self, table: &TextTable) {
        let (text, dropped) = table.render_within(self.width);
        self.text.push_str(&text);
        self.missing.extend(dropped);
    }

    /// Names the columns that were left out.
    pub fn name_missing(&mut self) {
        self.missing.sort();
        self.missing.dedup();
        if !self.missing.is_empty() {
            self.gap();
            let missing = std::mem::take(&mut self.missing).join(", ");
            self.line(format!("--wide has also: {missing}"));
        }
    }

    /// The page as text.
    pub fn finish(mut self) -> String {
        self.name_missing();
        wrapped(&self.text, self.width)
    }
}

/// `text` with lines of at most `width` characters, broken between words; a continued line is indented by two more. Words
/// that are longer, commands, and rules and rows of tables stay whole.
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let words = line.trim_start();
        let lead = &line[..line.len() - words.len()];
        let is_prose = !words.contains("  ") && !words.contains('─') && !words.starts_with("tacit ");
        if line.chars().count() <= width || !is_prose {
            lines.push(line.to_owned());
        } else {
            lines.extend(filled(words, width, [lead, &format!("{lead}  ")]));
        }
    }
    let end = if text.ends_with('\n') { "\n" } else { "" };
    lines.join("\n") + end
}

/// The words of `text` in lines of at most `width` characters. A longer word has a line of its own.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    filled(text, width, ["", ""])
}

/// Like [`broken`]; the first line and the others begin with an indentation.
fn filled(text: &str, width: usize, [first, others]: [&str; 2]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{others}{word}")),
            None => lines.push(format!("{first}{word}")),
        }
    }
    lines
}

/// `words` behind `lead`, in lines of at most `width` characters, as far as words fit; others are indented by as much.
pub fn hanging(lead: &str, words: &str, width: Option<usize>) -> String {
    let columns = lead.chars().count();
    match width {
        Some(width) if columns + words.chars().count() > width => {
            filled(words, width, [lead, &" ".repeat(columns)]).join("\n") + "\n"
        }
        _ => format!("{lead}{words}\n"),
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
    fn words_hang_behind_their_lead() {
        let fits = "NO   rre  not built in\n";
        assert_eq!(hanging("NO   rre  ", "not built in", Some(22)), fits);
        assert_eq!(hanging("NO   rre  ", "not built in", None), fits);
        assert_eq!(hanging("NO   rre  ", "not built in", Some(21)), "NO   rre  not built\n          in\n");
    }

    #[test]
    fn a_narrow_terminal_loses_the_columns_that_may_go_in_their_order() {
        let mut table =
            TextTable::new(&[["a", ""], ["goodput", "Mb/s"], ["ACKs", "/s"], ["gain", "%"]]).dropping([2, 1]);
        table.push(vec!["stock".into(), "111.9".into(), "290".into(), "1".into()]);
        let all = table.render();
        assert_eq!(all.lines().map(|line| line.chars().count()).max(), Some(26));
        assert_eq!(table.render_within(None), (all.clone(), vec![]));
        assert_eq!(table.render_within(Some(26)), (all, vec![]));
        let (text, dropped) = table.render_within(Some(25));
        assert_eq!(
            text,
            "a      goodput  gain\n          Mb/s     %\n────────────────────\nstock    111.9     1\n"
        );
        assert_eq!(dropped, ["ACKs /s"]);
        let (text, dropped) = table.render_within(Some(1));
        assert_eq!(text, "a      gain\n          %\n───────────\nstock     1\n");
        assert_eq!(dropped, ["goodput Mb/s", "ACKs /s"]);
    }

    #[test]
    fn prose_is_broken_between_words_and_tables_are_not() {
        let text = "with a = 1, b = 2, c = 3\na  table of  columns\n────────────\nshort\n";
        assert_eq!(
            wrapped(text, Some(12)),
            "with a = 1,\n  b = 2, c =\n  3\na  table of  columns\n────────────\nshort\n"
        );
        assert_eq!(wrapped(text, None), text);
        assert_eq!(wrapped("averylongword indeed", Some(5)), "averylongword\n  indeed");
        assert_eq!(wrapped("  two words", Some(8)), "  two\n    words");
        assert_eq!(wrapped("  tacit run x", Some(8)), "  tacit run x", "a command can be copied");
    }

    #[test]
    fn a_page_names_the_columns_that_did_not_fit_once() {
        let mut table = TextTable::new(&[["a"], ["goodput"], ["gain"]]).dropping([1]);
        table.push(vec!["stock".into(), "111.9".into(), "1".into()]);
        let page = |width| {
            let mut page = Page::new(width);
            page.gap();
            page.line("two tables of schemes");
            page.gap();
            page.gap();
            page.table(&table);
            page.table(&table);
            page.finish()
        };
        let narrow = "two tables of\n  schemes\n\na      gain\n───────────\nstock     1\na      gain\n───────────\nstock     1\n\n\
                      --wide has\n  also:\n  goodput\n";
        assert_eq!(page(Some(13)), narrow);
        assert!(page(None).contains("a      goodput  gain\n") && !page(None).contains("--wide"));
    }

    #[test]
    fn lines_are_no_longer_than_the_width() {
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
        assert_eq!(broken("one  two\nthree", 80), ["one two three"]);
        assert_eq!(broken("a unbreakable b", 5), ["a", "unbreakable", "b"]);
        assert_eq!(broken("µµ µµ", 5), ["µµ µµ"]);
        assert_eq!(broken("", 5), [] as [&str; 0]);
        assert_eq!(filled("one two three four", 9, ["> ", "  "]), ["> one two", "  three", "  four"]);
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
