//! The subset of Markdown that the tests need.

use std::fs;
use std::path::Path;

/// The line after a table that a test generates.
const END: &str = "<!-- end -->\n";

/// Compares the table after the line `begin` on a page with the expected one, or replaces it.
pub fn check_table(path: &Path, begin: &str, table: &str) {
    let page = fs::read_to_string(path).unwrap();
    let parts = page.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.unwrap_or_else(|| panic!("{}: no {begin:?} and {END:?}", path.display()));
    let right = format!("{before}{begin}{table}{END}{after}");
    if std::env::var_os("TACIT_WRITE_DOCS").is_some() {
        fs::write(path, right).unwrap();
    } else {
        assert!(page == right, "{}: TACIT_WRITE_DOCS=1 writes its table anew", path.display());
    }
}

/// A fenced block.
pub struct Block {
    /// The language after the fence: `console`, `sh`, or empty.
    pub language: String,
    /// Number of the first line within.
    pub line: usize,
    /// The lines within.
    pub text: String,
}

/// A link or a picture.
pub struct Link {
    pub line: usize,
    pub target: String,
    pub text: String,
    pub is_picture: bool,
}

/// The fenced blocks of `page`.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (number, line) in page.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                found.push(Block { language: language.to_owned(), line: number + 2, text: String::new() });
            }
        } else if is_open {
            let block = found.last_mut().unwrap();
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    assert!(!is_open, "a block has no end");
    found
}

/// The lines that are prose, with their numbers.
fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut is_open = false;
    let mut lines = Vec::new();
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_open = !is_open;
        } else if !is_open {
            lines.push((number + 1, line));
        }
    }
    lines
}

/// Code in prose.
pub fn code_spans(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(page) {
        let spans = line.split('`').skip(1).step_by(2);
        found.extend(spans.map(|span| (number, span.to_owned())));
    }
    found
}

/// Links and pictures on `page`. Text in code that looks like one is ignored.
pub fn links(page: &str) -> Vec<Link> {
    // A link may extend over two lines.
    let mut text = String::new();
    let mut lines = prose(page).into_iter().peekable();
    for number in 1..=page.lines().count() {
        text.push_str(lines.next_if(|(line, _)| *line == number).map_or("", |(_, line)| line));
        text.push('\n');
    }
    let plain: Vec<String> = text.lines().map(without_code).collect();
    let plain = plain.join("\n");
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(middle) = plain[from..].find("](").map(|at| at + from) {
        let line = plain[..middle].matches('\n').count() + 1;
        let end = plain[middle..].find(')').unwrap_or_else(|| panic!("line {line}: a link has no end"));
        let start = plain[..middle].rfind('[').unwrap_or_else(|| panic!("line {line}: a link has no text"));
        from = middle + end;
        // A picture in the place of a link's text is a picture of its own.
        let is_around_picture = plain[start..middle].contains("](");
        found.push(Link {
            line,
            target: plain[middle + 2..from].to_owned(),
            text: text[start + 1..middle].to_owned(),
            is_picture: plain[..start].ends_with('!') && !is_around_picture,
        });
    }
    found
}

/// Links and pictures in HTML tags on `page`. The text of a picture, and of its other forms before it, is its `alt`.
pub fn html_links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose(page) {
        for (name, is_picture) in [("href", false), ("src", true), ("srcset", true)] {
            let Some((_, rest)) = text.split_once(&format!(" {name}=\"")) else { continue };
            let target = rest.split('"').next().unwrap().to_owned();
            let below = page.lines().skip(line - 1).find_map(|line| line.split_once(" alt=\""));
            let alt = below.map_or("", |(_, rest)| rest.split('"').next().unwrap());
            found.push(Link { line, target, text: alt.to_owned(), is_picture });
        }
    }
    found
}

/// `line` with code replaced by the same number of blanks.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let parts =
        parts.map(|(place, part)| if place % 2 == 1 { " ".repeat(part.len()) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// The anchors of `page`, as GitHub and mdBook derive them from headings.
pub fn anchors(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(page) {
        let Some(heading) = line.strip_prefix('#') else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, '-' | '_' | ' '));
        let anchor: String = kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect();
        let before = found.iter().filter(|other| **other == anchor).count();
        found.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
    }
    found
}

#[test]
fn links_in_tags_are_found() {
    let page = "a\n<picture>\n<source srcset=\"b.webp\">\n<img src=\"c.webp\" alt=\"d e\">\n```\n<a href=\"f\">\n```\n";
    let found: Vec<_> =
        html_links(page).into_iter().map(|link| (link.line, link.target, link.text)).collect();
    let expected = [(3, "b.webp", "d e"), (4, "c.webp", "d e")];
    assert_eq!(found, expected.map(|(line, target, text)| (line, target.to_owned(), text.to_owned())));
}

#[test]
fn links_in_code_are_none() {
    let page = "# A `[b]` c\n[d](e.md#f) and `[g](h)`, ![`i`\nk](j.svg)\n```\n[k](l)\n```\n";
    let found: Vec<_> =
        links(page).into_iter().map(|link| (link.target, link.text, link.is_picture)).collect();
    let expected = [("e.md#f", "d", false), ("j.svg", "`i`\nk", true)];
    assert_eq!(
        found,
        expected.map(|(target, text, is_picture)| (target.to_owned(), text.to_owned(), is_picture))
    );
    assert_eq!(anchors(page), ["a-b-c"]);
    let around: Vec<_> =
        links("[![a](b)](c)").into_iter().map(|link| (link.target, link.is_picture)).collect();
    assert_eq!(around, [("b".to_owned(), true), ("c".to_owned(), false)]);
}
