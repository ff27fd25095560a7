//! Formats Markdown for a terminal, as plain text.

/// `markdown` without markup: the content of code spans, the labels of links, and emphasised words.
pub fn to_text(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some(mark) = rest.find(['`', '[', '*']) {
        let (before, at) = rest.split_at(mark);
        text.push_str(before);
        let (words, after) = code(at).or_else(|| link(at)).or_else(|| emphasis(at)).unwrap_or_else(|| {
            // A literal character that looks like markup.
            let (mark, after) = at.split_at(1);
            (mark.to_owned(), after)
        });
        text.push_str(&words);
        rest = after;
    }
    text + rest
}

/// The text between backticks, and the text after them.
fn code(text: &str) -> Option<(String, &str)> {
    let (inner, after) = text.strip_prefix('`')?.split_once('`')?;
    Some((inner.to_owned(), after))
}

/// The label of `[label](target)`.
fn link(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('[')?;
    // Code in a label may contain brackets: `[[flow]]`.
    let mut in_code = false;
    let end = text.find(|character| {
        in_code ^= character == '`';
        character == ']' && !in_code
    })?;
    let (_, after) = text[end + 1..].strip_prefix('(')?.split_once(')')?;
    Some((to_text(&text[..end]), after))
}

/// The words of `*words*` or `**words**`.
fn emphasis(text: &str) -> Option<(String, &str)> {
    let mark = if text.starts_with("**") { "**" } else { "*" };
    let (inner, after) = text.strip_prefix(mark)?.split_once(mark)?;
    let has_room = |side: Option<char>| side.is_none_or(char::is_whitespace);
    let stands_alone = has_room(inner.chars().next()) || has_room(inner.chars().next_back());
    (!stands_alone).then(|| (to_text(inner), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_labels() {
        let filter =
            "not with `[hack]`; see [simulator.md](../design/simulator.md#ack-filters). Schemes change it";
        assert_eq!(to_text(filter), "not with [hack]; see simulator.md. Schemes change it");
        assert_eq!(to_text("a [size](x.md), or [`[[flow]]`](#flow)"), "a size, or [[flow]]");
        assert_eq!(to_text("![drawn](a.svg)"), "!drawn");
    }

    #[test]
    fn marks_go_and_what_only_looks_like_one_stays() {
        assert_eq!(to_text("of *both*, **all** and `a*b|c`"), "of both, all and a*b|c");
        assert_eq!(to_text("2 * 3 * 4, [1, 10], a ` alone"), "2 * 3 * 4, [1, 10], a ` alone");
        assert_eq!(to_text("*`code`* of [a *b*](c)"), "code of a b");
        for text in ["", "[", "[a", "[a](", "*", "**", "`", "[é](ü)ö*", "–`"] {
            // No input panics, and text that is not Markdown is returned unchanged.
            assert!(to_text(text).len() <= text.len(), "{text}");
        }
        let plain = "as in [wired]; 3 of them, \"none\"";
        assert_eq!(to_text(plain), plain);
    }
}
