//! Compares a program's output with a page.

/// Compares a line on a page with a line of output. `…` matches anything.
fn is_like(shown: &str, line: &str) -> bool {
    let mut rest = line.trim_end();
    let mut parts = shown.trim_end().split('…');
    let Some(after) = rest.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    rest = after;
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Shown lines, where those that are wrapped as in a narrow terminal are one: the rest of a line of `output` is indented by
/// two blanks.
fn unwrapped(shown: &str, output: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in shown.lines() {
        let is_printed = |shown: &str| output.lines().any(|line| is_like(shown, line));
        let cut = lines.last().filter(|begin| !is_printed(begin));
        let whole = cut.zip(line.strip_prefix("  ")).map(|(begin, rest)| format!("{begin} {rest}"));
        let whole = whole.filter(|whole| is_printed(whole));
        if let Some(whole) = whole {
            lines.pop();
            lines.push(whole);
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

/// The first shown lines that are missing in `output`, if any. A line with only `…` matches any number of lines. The
/// lines between two of these must be consecutive, and those after one must come later in the output.
pub fn missing(shown: &str, output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().collect();
    let mut from = 0;
    let shown = unwrapped(shown, output);
    let shown: Vec<&str> = shown.lines().collect();
    for part in shown.split(|line| line.trim() == "…").filter(|part| !part.is_empty()) {
        let fits = |at: &usize| {
            lines.len() >= at + part.len()
                && part.iter().zip(&lines[*at..]).all(|(shown, line)| is_like(shown, line))
        };
        match (from..lines.len()).find(fits) {
            Some(at) => from = at + part.len(),
            None => return Some(part.join("\n")),
        }
    }
    None
}

/// Headings of tables: the lines above a rule, with runs of blanks reduced to one.
fn headings(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let above = lines.windows(2).filter(|pair| pair[1].starts_with("───"));
    above.map(|pair| pair[0].split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The headings that a page shows but `output` lacks.
pub fn missing_headings(shown: &str, output: &str) -> Vec<String> {
    let found = headings(output);
    headings(shown).into_iter().filter(|heading| !found.contains(heading)).collect()
}

/// Labels of indented lines with at least two columns: the text of the first column.
fn labels(text: &str) -> Vec<String> {
    let indented = text.lines().filter_map(|line| line.strip_prefix("  "));
    let columns = indented.filter_map(|line| line.trim().split_once("  "));
    columns.map(|(label, _)| label.to_owned()).collect()
}

/// Labels that a page shows but `output` lacks.
pub fn missing_labels(shown: &str, output: &str) -> Vec<String> {
    let found = labels(output);
    labels(shown).into_iter().filter(|label| !found.contains(label)).collect()
}

#[test]
fn dots_stand_for_anything() {
    let output = "one\ntwo 17 three\nfour\n";
    for shown in ["one\n…\nfour\n", "two … three\nfour\n", "…\nfour", "t…o … three"] {
        assert_eq!(missing(shown, output), None, "{shown}");
    }
    for shown in ["one\nfour\n", "four\n…\none\n", "two … four", "tw", "five"] {
        assert!(missing(shown, output).is_some(), "{shown}");
    }
}

#[test]
fn headings_are_what_stands_above_a_rule() {
    assert_eq!(headings("x  y\n─────\n1  2\n"), ["x y"]);
    assert_eq!(missing_headings("x y z\n───\n", "x y\n───\n"), ["x y z"]);
    assert_eq!(labels("  a b   1 2\n  c\nd   3\n"), ["a b"]);
}

#[test]
fn a_line_may_be_wrapped_and_nothing_else() {
    let output = "the first line is long\nsecond\n  third\n";
    assert_eq!(missing("the first\n  line is long\nsecond\n  third\n", output), None);
    assert_eq!(missing("the first\n  … long\nsecond\n", output), None);
    for wrong in [
        "the first\nline is long\n",
        "the first\n  line is short\n",
        "the first\n  line\n",
        "second\n  fourth\n",
    ] {
        assert!(missing(wrong, output).is_some(), "{wrong}");
    }
}
