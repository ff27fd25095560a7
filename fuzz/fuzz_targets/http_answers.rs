//! Arbitrary bytes as a server's responses to requests for holes; any byte may be a placeholder. Bytes that are
//! passed on are not placeholders, belong to the request, arrive once, and do not depend on how the input is split.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use tacit_between::fwp::repair::{Range, RequestId};
use tacit_net::answers::{AnswerEvent, Answers, Request, Shape, Subject};
use tacit_net::byteranges::{Template, boundary};
use tacit_net::partial::Validator;

/// Bytes of the file.
const COMPLETE: u64 = 100_000;

/// Parameters at the start of the input.
struct Case<'a> {
    /// The server is first asked how it responds to several ranges.
    asks: bool,
    /// Length of the head of a response with one range.
    single: Option<(u64, Range)>,
    wanted: Vec<(RequestId, Range)>,
    hit: Vec<Range>,
    bytes: &'a [u8],
}

fn take<const LEN: usize>(bytes: &mut &[u8]) -> Option<[u8; LEN]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u16::from_le_bytes).map(u64::from)
}

impl<'a> Case<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let [flags, wanted, hit] = take(&mut bytes)?;
        let single = number(&mut bytes)?;
        let mut case = Self {
            asks: flags & 1 > 0,
            single: (flags & 2 > 0).then_some((single, Range { start: 0, end: 1_000 })),
            wanted: Vec::new(),
            hit: Vec::new(),
            bytes: &[],
        };
        // Ascending and disjoint, as repair requests them.
        let mut at = 0;
        for id in 0..u64::from(wanted % 8).max(1) {
            let start = at + number(&mut bytes)?;
            let end = start + number(&mut bytes)?.max(1);
            if end > COMPLETE {
                break;
            }
            case.wanted.push((RequestId(id), Range { start, end }));
            at = end + 1;
        }
        let mut at = 0;
        for _ in 0..hit % 8 {
            let start = at + number(&mut bytes)?;
            let end = start + number(&mut bytes)?.max(1);
            case.hit.push(Range { start, end });
            at = end + 1;
        }
        case.bytes = bytes;
        Some(case)
    }

    /// For each byte passed on: the request, and its position in the file and in the stream. Also how the parsing
    /// ended.
    fn feed(&self, piece: usize) -> (Vec<(RequestId, u64, u64)>, String) {
        let subject = Subject { validator: Validator::Tag("\"v1\"".to_owned()), complete: COMPLETE };
        let (mut answers, mut shape) = (Answers::new(subject), Shape::new(self.single));
        if self.asks {
            answers.expect(Request::question(0, COMPLETE));
        }
        answers.expect(Request::new(1, &self.wanted, &shape));
        answers.expect(Request::new(2, &self.wanted[..1], &shape));
        let mut bytes = Vec::new();
        for piece in self.bytes.chunks(piece) {
            let (before, mut heard) = (answers.at(), Vec::new());
            let result = answers.take(piece, &self.hit, &mut shape, &mut heard);
            for heard in heard {
                if let AnswerEvent::Bytes { id, position, from, len, .. } = heard {
                    bytes.extend(
                        (0..len as u64).map(|place| (id, position + place, before + from as u64 + place)),
                    );
                }
            }
            if let Err(error) = result {
                return (bytes, format!("{error}"));
            }
            assert_eq!(answers.at(), before + piece.len() as u64);
        }
        (bytes, String::new())
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(known) = boundary(bytes) {
        assert!((1..=70).contains(&known.len()));
    }
    let asked = [Range { start: 0, end: 1 }, Range { start: 5, end: 25 }];
    if let Ok(template) = Template::learn(bytes, b"b", &asked, COMPLETE) {
        assert_eq!(template.body_len(asked.into_iter()), bytes.len() as u64);
    }
    let Some(case) = Case::read(bytes).filter(|case| !case.wanted.is_empty()) else { return };
    let whole = case.feed(usize::MAX);
    for piece in [1, 7] {
        assert_eq!(case.feed(piece), whole);
    }
    let mut streamed = BTreeSet::new();
    for (id, position, place) in heard.0 {
        let (_, range) = case.wanted[id.0 as usize];
        assert!((range.start..range.end).contains(&position));
        assert!(!case.hit.iter().any(|hit| (hit.start..hit.end).contains(&place)), "a placeholder");
        assert!(streamed.insert(place), "twice");
    }
});
