//! `Content-Range` (RFC 9110 section 14.4).

use tacit_between::fwp::repair::Range;

use crate::head::number;

/// Parses `bytes first-last/complete`; `None` unless all three numbers are given and consistent.
pub fn content_range(value: &[u8]) -> Option<(Range, u64)> {
    let value = value.trim_ascii();
    let (unit, rest) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes ") {
        return None;
    }
    let mut halves = rest.split(|byte| *byte == b'/');
    let (range, complete) = (halves.next()?, number(halves.next()?)?);
    let mut ends = range.split(|byte| *byte == b'-');
    let (first, last) = (number(ends.next()?)?, number(ends.next()?)?);
    if halves.next().is_some() || ends.next().is_some() || last >= complete {
        return None;
    }
    Range::new(first, last.checked_add(1)?).map(|range| (range, complete))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range::new(start, end).unwrap()
    }

    #[test]
    fn a_content_range_has_three_numbers_that_fit() {
        assert_eq!(content_range(b"bytes 0-9/10"), Some((range(0, 10), 10)));
        for bad in [
            "bytes 0-10/10",
            "bytes 5-4/10",
            "bytes */10",
            "bytes 0-9/*",
            "bytes=0-9/10",
            "items 0-9/10",
            "bytes 0-9",
            "bytes 0-9/10/11",
            "bytes 0-9-9/10",
            "bytes -9/10",
            "bytes +0-9/10",
            "bytes 0x0-9/10",
            "",
            "bytes",
            "bytes 0-18446744073709551615/18446744073709551615",
            "bytes 0 - 9/10",
        ] {
            assert_eq!(content_range(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn content_ranges_round_trip(first in 0..u64::MAX / 4, len in 1..u64::MAX / 4, more in 0..u64::MAX / 4) {
            let (end, complete) = (first + len, first + len + more);
            let text = format!("bytes {first}-{}/{complete}", end - 1);
            prop_assert_eq!(content_range(text.as_bytes()), Some((range(first, end), complete)));
        }

        #[test]
        fn nothing_panics(text in "(bytes )?[0-9*/ -]{0,24}") {
            if let Some((range, complete)) = content_range(text.as_bytes()) {
                prop_assert!(range.end <= complete);
            }
        }
    }
}
