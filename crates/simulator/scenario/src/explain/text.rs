//! An explained scenario as text: four columns, or one paragraph per setting if the width is too small.

use std::fmt::Write as _;

use super::{Explanation, Setting};
use crate::keys;
use crate::markdown::to_text;
use crate::table::broken;

/// Longer values are printed on a separate line.
const LONGEST_VALUE: usize = 40;
/// Minimum width of the column with the meaning, in characters.
const NARROWEST_MEANING: usize = 32;
/// Indentation of continuation lines.
const INDENT: &str = "    ";
const GAP: &str = "  ";

impl Explanation {
    /// The explanation as text, with lines of at most `width` characters if words permit. Without a width, each setting
    /// is one line.
    pub fn to_text(&self, width: Option<usize>) -> String {
        let scheme = self.scheme.as_deref().unwrap_or("as written");
        let title = format!("{} ({scheme}): {}", self.scenario, self.description);
        let mut text = lines(&title, "", width);
        text.push('\n');
        let columns = Columns::new(&self.settings);
        match width.map(|width| width.checked_sub(columns.left())) {
            None => columns.table(&self.settings, None, &mut text),
            Some(Some(room)) if room >= NARROWEST_MEANING => {
                columns.table(&self.settings, Some(room), &mut text);
            }
            Some(_) => paragraphs(&self.settings, width, &mut text),
        }
        for (number, (key, row)) in
            self.named.iter().filter_map(|key| Some((key, keys::find(key)?))).enumerate()
        {
            if number == 0 {
                text.push('\n');
            }
            text.push_str(&lines(&format!("allowed for {key}: {}", to_text(&row.allowed)), "", width));
        }
        if !self.choice.is_empty() {
            text.push_str("\nlink layer to choose\n");
        }
        for reason in &self.choice {
            text.push_str(&lines(reason, INDENT, width));
        }
        if !self.acks.is_empty() {
            text.push_str("\nACKs that ride on link-layer ACKs\n");
        }
        for line in &self.acks {
            text.push_str(&lines(line, INDENT, width));
        }
        text
    }
}

/// Wraps `words` into lines that start with `indent`.
fn lines(words: &str, indent: &str, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent.len()).max(1));
    broken(words, room).into_iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// Widths of the columns before the meaning.
struct Columns {
    key: usize,
    value: usize,
    origin: usize,
}

impl Columns {
    fn new(settings: &[Setting]) -> Self {
        let longest = |head: &str, column: fn(&Setting) -> &str| {
            settings.iter().map(|setting| column(setting).chars().count()).max().unwrap_or(0).max(head.len())
        };
        Self {
            key: longest("setting", |setting| &setting.key),
            value: longest("value", |setting| &setting.value).min(LONGEST_VALUE),
            origin: longest("from", |setting| &setting.origin),
        }
    }

    /// Column in which the meaning starts.
    fn left(&self) -> usize {
        self.key + self.value + self.origin + 3 * GAP.len()
    }

    /// Prints settings with meanings wrapped to `room` characters.
    fn table(&self, settings: &[Setting], room: Option<usize>, text: &mut String) {
        let Self { key, value, origin } = *self;
        let left = |cells: [&str; 3]| {
            format!("{:key$}{GAP}{:value$}{GAP}{:origin$}{GAP}", cells[0], cells[1], cells[2])
        };
        let _ = writeln!(text, "{}meaning", left(["setting", "value", "from"]));
        let widest = settings.iter().map(|setting| setting.meaning.chars().count()).max().unwrap_or(0);
        let _ = writeln!(text, "{}", "─".repeat(self.left() + room.unwrap_or(widest).min(widest)));
        for setting in settings {
            let mut line = left([&setting.key, &setting.value, &setting.origin]);
            if let Some(room) = room.filter(|_| setting.value.chars().count() > value) {
                let mut name = setting.key.as_str();
                for words in broken(&setting.value, self.left() + room - key - GAP.len()) {
                    let _ = writeln!(text, "{name:key$}{GAP}{words}");
                    name = "";
                }
                line = left(["", "", &setting.origin]);
            }
            for words in broken(&setting.meaning, room.unwrap_or(usize::MAX)) {
                let _ = writeln!(text, "{line}{words}");
                line = " ".repeat(self.left());
            }
            if setting.meaning.is_empty() {
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
    }
}

fn paragraphs(settings: &[Setting], width: Option<usize>, text: &mut String) {
    for setting in settings {
        let head = format!("{} = {}  ({})", setting.key, setting.value, setting.origin);
        let fits = width.is_none_or(|width| head.chars().count() <= width);
        text.push_str(&if fits { format!("{head}\n") } else { lines(&head, "", width) });
        text.push_str(&lines(&setting.meaning, INDENT, width));
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain;

    fn explained(width: Option<usize>) -> String {
        let assignments = [r#"wired.loss=[3, 17, "20 to 29", 4000, 5000, 6000, 7000]"#.to_owned()];
        explain("wlan-11n-150", &assignments, Some("tcp-l8"), &[]).unwrap().to_text(width)
    }

    #[test]
    fn without_a_width_each_setting_has_one_line() {
        let text = explained(None);
        let line = text.lines().find(|line| line.starts_with("wifi.ap-acks ")).unwrap();
        assert!(line.ends_with("nor in tacit shell; see fastack.md. Schemes change it"), "{line}");
        let delayed = text.lines().find(|line| line.starts_with("tcp.ack-policy ")).unwrap();
        assert!(delayed.contains("\"delayed\"") && delayed.contains("scheme tcp-l8"), "{delayed}");
    }

    #[test]
    fn text_fits_the_terminal() {
        for width in [40, 80, 100, 132, 200] {
            let text = explained(Some(width));
            // A single word, such as a key, may exceed the width of a narrow terminal.
            let fits = |line: &str| line.chars().count() <= width || line.split_whitespace().count() == 1;
            for line in text.lines() {
                assert!(fits(line), "{width}: {line}");
            }
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
            let meaning = "filter of pure TCP ACKs in Wi-Fi queues; not with [hack]; see simulator.md";
            if width == 40 || width == 80 {
                assert!(words(&text).contains(meaning), "{width}: {text}");
            }
        }
    }

    #[test]
    fn a_wide_terminal_has_columns_and_a_narrow_one_paragraphs() {
        let wide = explained(Some(160));
        let head: Vec<_> = wide.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(head, ["setting", "value", "from", "meaning"]);
        assert!(wide.contains("\nwired.loss  "), "{wide}");
        let narrow = explained(Some(60));
        let at = narrow.lines().position(|line| line == "tcp.ack-every = 8  (scheme tcp-l8)").unwrap();
        assert!(narrow.lines().nth(at + 1).unwrap().starts_with("    full-sized segments"), "{narrow}");
    }
}
