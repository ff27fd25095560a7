//! Parser for a repair connection: a sequence of responses in which any byte may be a placeholder.
//!
//! The [`Shape`] of the server's earlier responses gives the length of the next head, so a head with a hole in it can
//! be skipped and costs only the bytes behind it. A complete head is trusted. The bytes of a part are handed on once
//! one head of its response was found where expected and named the requested range. Any mismatch ends the connection.
//! Only the head of a response says which version of the file its parts belong to; without that head the version is
//! unproven ([`AnswerEvent::Bytes`]).

use std::collections::VecDeque;

use tacit_between::fwp::repair::{Range, RequestId};

use crate::byteranges::{Template, digits};
use crate::error::NetError;
use crate::head::{Framing, HeadError, HeadReader};
use crate::partial::{RangeError, Validator, check, check_several};

/// Longest body, in bytes, of the answer to the probe that shows how the server writes parts.
const LESSON_MAX: u64 = 4096;

/// The file that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Validator that the file must have.
    pub validator: Validator,
    /// Length of the whole file in bytes.
    pub complete: u64,
}

/// Whether a server answers a request for several ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Several {
    /// Not known yet.
    #[default]
    Unknown,
    /// It does not, or its answers are malformed.
    No,
    /// It does: a head has this length in bytes, not counting the digits of lengths, and parts follow this template.
    Like(u64, Template),
}

/// Layout of a server's partial responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the head of an answer with one range, not counting the digits of its range and length.
    pub single: Option<u64>,
    /// Layout of answers with several ranges.
    pub several: Several,
    /// The server does not merge adjacent ranges.
    pub splits: bool,
    /// Most ranges of a request.
    pub ranges_max: usize,
    /// The connection stays open after an answer.
    pub keeps: bool,
}

/// Ranges of one request: 64 of them need 1.4 kB of the 8 kB that nginx reads, and Apache answers 200 (`MaxRanges`).
pub const RANGES_MAX: usize = 64;

impl Shape {
    /// The shape of a server's answers. `of_head` is the length of a head and the range in it, if one was seen.
    pub fn new(of_head: Option<(u64, Range)>) -> Self {
        let single = of_head.and_then(|(len, range)| len.checked_sub(single_digits(range)));
        Self { single, several: Several::Unknown, splits: false, ranges_max: RANGES_MAX, keeps: false }
    }

    /// True once the server's answer to several ranges is known.
    pub fn is_known(&self) -> bool {
        self.several != Several::Unknown
    }

    /// True if the length of every answer's head can be computed.
    pub fn places_heads(&self) -> bool {
        match self.several {
            Several::Unknown => false,
            Several::No => self.single.is_some(),
            Several::Like(..) => self.single.is_some(),
        }
    }

    /// Most ranges of one request.
    pub fn most_ranges(&self) -> usize {
        if matches!(self.several, Several::Like(..)) { self.ranges_max } else { 1 }
    }

    /// Most requests in progress on a connection. With two, the server has the next request while it answers the first,
    /// and the second answer reveals a lost tail of the first.
    pub fn pipelined(&self) -> usize {
        if self.keeps { 2 } else { 1 }
    }

    /// Records that the server answered `ranges` ranges with the whole file or in an unknown form.
    pub fn refuses(&mut self, ranges: usize) {
        self.ranges_max = self.ranges_max.min(ranges / 2);
        if self.ranges_max < 2 {
            self.several = Several::No;
        }
    }

    /// Bytes of the head of the answer to `request`.
    fn head_len(&self, request: &Request) -> Option<u64> {
        match (request.ranges.as_slice(), &self.several) {
            ([(_, range)], _) => Some(self.single? + single_digits(*range)),
            (_, Several::Like(head, template)) => Some(head + digits(template.body_len(request.parts()))),
            _ => None,
        }
    }
}

/// Digits in the head of an answer with one range: those of `Content-Range` that vary, and of `Content-Length`.
fn single_digits(range: Range) -> u64 {
    digits(range.start) + digits(range.end - 1) + digits(range.bytes())
}

/// A request for one or more ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The requested ranges, and the repair request that each one belongs to.
    ranges: Vec<(Option<RequestId>, Range)>,
    /// A probe of how the server answers; no repair request waits for its bytes.
    is_question: bool,
    /// Number of earlier requests for the file.
    number: u64,
}

impl Request {
    /// A probe of how the server answers several ranges, two of them adjacent, of a file of `complete` bytes. `number`
    /// is the number of earlier requests for the file.
    pub fn question(number: u64, complete: u64) -> Self {
        let byte = |place| (None, Range { start: place, end: place + 1 });
        Self { ranges: [0, 1, complete - 1].map(byte).to_vec(), is_question: true, number }
    }

    /// A request for `holes`, fewer than the ranges that `shape` allows, after `number` earlier requests for the file.
    pub fn new(number: u64, holes: &[(RequestId, Range)], shape: &Shape) -> Self {
        let mut ranges: Vec<_> = holes.iter().map(|(id, range)| (Some(*id), *range)).collect();
        if shape.splits {
            let room = shape.ranges_max.saturating_sub(ranges.len());
            ranges = split(ranges, room);
        }
        Self { ranges, is_question: false, number }
    }

    fn parts(&self) -> impl Iterator<Item = Range> {
        self.ranges.iter().map(|(_, range)| *range)
    }

    /// The value of the `Range` header.
    pub fn value(&self) -> String {
        let ranges: Vec<_> = self.parts().map(|range| format!("{}-{}", range.start, range.end - 1)).collect();
        format!("bytes={}", ranges.join(","))
    }
}

/// Longest part in bytes, if more parts are allowed. One complete part head proves that the answer is the right one,
/// but the bytes before the first such head are lost.
const PART_MAX: u64 = 16 * 1024;

/// Splits long ranges, adding at most `more` ranges. A single range becomes two, because without a second head the
/// answer would be lost with its first head.
fn split(ranges: Vec<(Option<RequestId>, Range)>, mut more: usize) -> Vec<(Option<RequestId>, Range)> {
    let is_alone = ranges.len() == 1;
    let mut cut = Vec::with_capacity(ranges.len());
    for (id, mut range) in ranges {
        let longest = if is_alone { PART_MAX.min(range.bytes().div_ceil(2)) } else { PART_MAX };
        while range.bytes() > longest && more > 0 {
            let at = range.start + longest;
            cut.push((id, Range { start: range.start, end: at }));
            range.start = at;
            more -= 1;
        }
        cut.push((id, range));
    }
    cut
}

/// What a connection's bytes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    /// Of the bytes just read, `from..from + len` are the file's bytes starting at `position`.
    Bytes {
        /// The repair request that asked for them.
        id: RequestId,
        /// Position in the file.
        position: u64,
        /// Offset in the bytes just read.
        from: usize,
        /// Number of bytes.
        len: usize,
        /// True if the head of the answer named the version of the file. Otherwise only the request's condition vouches
        /// for it.
        is_proven: bool,
    },
    /// The head of the answer to this request (see [`Request::new`]) names the expected version of the file.
    Proven(u64),
    /// This repair request gets no more bytes.
    Ended(RequestId),
    /// An answer was read to its end.
    Answered,
}

/// Why a connection is unusable.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The server does not answer this number of ranges correctly.
    #[error("the server does not answer {0} ranges")]
    Refuses(usize),
    /// The server closes the connection, or it cannot be used for further requests.
    #[error("the connection is over")]
    Over,
    /// Another error.
    #[error("{0}")]
    Net(#[from] NetError),
}

impl From<RangeError> for Unusable {
    fn from(error: RangeError) -> Self {
        Self::Net(error.into())
    }
}

impl From<HeadError> for Unusable {
    fn from(error: HeadError) -> Self {
        Self::Net(error.into())
    }
}

/// State of the parser. Every `end` is a stream position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParseState {
    /// In a head that has no hole so far.
    Head,
    /// In a head with a hole, or in bytes to skip.
    HitHead { end: u64 },
    /// In the body of the answer to the probe.
    Lesson { end: u64 },
    /// In the head of a part.
    PartHead { index: usize, end: u64 },
    /// In a part.
    Part { index: usize, end: u64 },
    /// After the last part.
    End { end: u64 },
}

/// The answers of one connection.
#[derive(Debug)]
pub struct Answers {
    subject: Subject,
    requests: VecDeque<Request>,
    /// Stream position: bytes read so far.
    at: u64,
    place: ParseState,
    /// Stream position at which the current answer begins.
    begins: u64,
    head: HeadReader,
    /// Text of a part's head, or of the answer to the probe.
    text: Vec<u8>,
    text_is_hit: bool,
    boundary: Option<Vec<u8>>,
    /// A complete head was seen: this is the answer to the request.
    is_known: bool,
    /// That head also named the version of the file.
    is_proven: bool,
    /// The server closes the connection after this answer.
    closes: bool,
    lesson_head: u64,
}

impl Answers {
    /// The parser of a new connection.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            requests: VecDeque::new(),
            at: 0,
            place: ParseState::Head,
            begins: 0,
            head: HeadReader::default(),
            text: Vec::new(),
            text_is_hit: false,
            boundary: None,
            is_known: false,
            is_proven: false,
            closes: false,
            lesson_head: 0,
        }
    }

    /// Records that `request` is sent.
    pub fn expect(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    /// Bytes read so far.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Parses `bytes`, which were just read. `holes` are the placeholders among them, as stream positions in ascending
    /// order.
    ///
    /// # Errors
    /// Why the connection cannot be used any longer. Events reported before the error remain valid.
    pub fn take(
        &mut self,
        bytes: &[u8],
        holes: &[Range],
        shape: &mut Shape,
        heard: &mut Vec<AnswerEvent>,
    ) -> Result<(), Unusable> {
        let begin = self.at;
        let end = begin + bytes.len() as u64;
        let holes = holes.iter().filter_map(|hole| hole.common(Range { start: begin, end }));
        for hole in holes.chain([Range { start: end, end }]) {
            while self.at < hole.start {
                let from = (self.at - begin) as usize;
                let to = (hole.start - begin) as usize;
                self.take_true(&bytes[from..to], from, shape, heard)?;
            }
            while self.at < hole.end {
                self.take_hole(hole.end - self.at, shape, heard)?;
            }
        }
        Ok(())
    }

    /// Consumes some of `bytes`, which are no placeholders and start at offset `from` of the bytes just read.
    fn take_true(
        &mut self,
        bytes: &[u8],
        from: usize,
        shape: &mut Shape,
        heard: &mut Vec<AnswerEvent>,
    ) -> Result<(), Unusable> {
        if self.requests.is_empty() {
            return Err(broken("the server sends an answer without a request"));
        }
        let len = match self.place {
            ParseState::Head => {
                let (taken, is_whole) = self.head.push(bytes)?;
                self.at += taken as u64;
                return if is_whole { self.end_head(shape, heard) } else { Ok(()) };
            }
            ParseState::HitHead { end } => self.within(bytes, end),
            ParseState::Lesson { end } | ParseState::PartHead { end, .. } | ParseState::End { end } => {
                let len = self.within(bytes, end);
                self.text.extend_from_slice(&bytes[..len]);
                len
            }
            ParseState::Part { index, end } => {
                let len = self.within(bytes, end);
                if let (true, Some((Some(id), range))) = (self.is_known, self.range(index)) {
                    let position = range.end - (end - self.at);
                    heard.push(AnswerEvent::Bytes { id, position, from, len, is_proven: self.is_proven });
                }
                len
            }
        };
        self.advance(len as u64, shape, heard)
    }

    fn within(&self, bytes: &[u8], end: u64) -> usize {
        bytes.len().min(usize::try_from(end - self.at).unwrap_or(usize::MAX))
    }

    /// Consumes some of `len` bytes of placeholders.
    fn take_hole(
        &mut self,
        len: u64,
        shape: &mut Shape,
        heard: &mut Vec<AnswerEvent>,
    ) -> Result<(), Unusable> {
        let end = match self.place {
            ParseState::Head => {
                let len = self.requests.front().and_then(|request| shape.head_len(request));
                // The reader must not allow placeholders while it does not know the length of the head.
                let end = self.begins + len.ok_or(NetError::Misplaced)?;
                if end <= self.at {
                    return Err(broken("a head longer than those before"));
                }
                self.head.clear();
                self.place = ParseState::HitHead { end };
                end
            }
            ParseState::HitHead { end } | ParseState::Part { end, .. } => end,
            ParseState::Lesson { end } => {
                if !shape.is_known() {
                    return Err(NetError::Misplaced.into());
                }
                self.text_is_hit = true;
                end
            }
            ParseState::PartHead { end, .. } | ParseState::End { end } => {
                self.text_is_hit = true;
                end
            }
        };
        self.advance(len.min(end - self.at), shape, heard)
    }

    fn advance(&mut self, len: u64, shape: &mut Shape, heard: &mut Vec<AnswerEvent>) -> Result<(), Unusable> {
        self.at += len;
        match self.place {
            ParseState::Head => Ok(()),
            ParseState::HitHead { end } if self.at == end => {
                let several = self.requests.front().is_some_and(|request| request.ranges.len() > 1);
                self.go_to(if several { 0 } else { usize::MAX }, shape, heard)
            }
            ParseState::Lesson { end } if self.at == end => {
                self.learn(shape);
                self.finish(heard)
            }
            ParseState::PartHead { index, end } if self.at == end => {
                self.check_part_head(index, shape)?;
                self.begin_part(index, shape, heard)
            }
            ParseState::Part { index, end } if self.at == end => {
                let next = self.range(index + 1).and_then(|(id, _)| id);
                if let Some((Some(id), _)) = self.range(index)
                    && next != Some(id)
                {
                    heard.push(AnswerEvent::Ended(id));
                }
                self.go_to(index + 1, shape, heard)
            }
            ParseState::End { end } if self.at == end => {
                let text = std::mem::take(&mut self.text);
                if let (false, Several::Like(_, template)) = (self.text_is_hit, &shape.several) {
                    template.end(&text, self.boundary.as_deref()).map_err(|_| self.refuses())?;
                }
                self.finish(heard)
            }
            _ => Ok(()),
        }
    }

    fn range(&self, index: usize) -> Option<(Option<RequestId>, Range)> {
        self.requests.front()?.ranges.get(index).copied()
    }

    fn refuses(&self) -> Unusable {
        Unusable::Refuses(self.requests.front().map_or(0, |request| request.ranges.len()))
    }

    /// Begins the item that follows a head or a part. `index` is that of the next part, or `usize::MAX` after the head
    /// of an answer with a single range, whose bytes have no part head.
    fn go_to(
        &mut self,
        index: usize,
        shape: &mut Shape,
        heard: &mut Vec<AnswerEvent>,
    ) -> Result<(), Unusable> {
        let several = self.requests.front().is_some_and(|request| request.ranges.len() > 1);
        (self.text_is_hit, self.text) = (false, Vec::new());
        if !several {
            return if index == usize::MAX { self.begin_part(0, shape, heard) } else { self.finish(heard) };
        }
        // If the shape was dropped in the meantime, no head can be placed.
        let Several::Like(_, template) = &shape.several else { return Err(self.refuses()) };
        self.place = match self.range(index) {
            Some((_, range)) => {
                ParseState::PartHead { index, end: self.at + template.head_len(index == 0, range) }
            }
            None => ParseState::End { end: self.at + template.end_len() },
        };
        Ok(())
    }

    fn begin_part(
        &mut self,
        index: usize,
        shape: &mut Shape,
        heard: &mut Vec<AnswerEvent>,
    ) -> Result<(), Unusable> {
        match self.range(index) {
            Some((_, range)) => {
                self.place = ParseState::Part { index, end: self.at + range.bytes() };
                Ok(())
            }
            None => self.go_to(index, shape, heard),
        }
    }

    /// Checks that a complete part head is where expected and names the requested range.
    fn check_part_head(&mut self, index: usize, shape: &Shape) -> Result<(), Unusable> {
        let text = std::mem::take(&mut self.text);
        if self.text_is_hit {
            return Ok(());
        }
        let (Several::Like(_, template), Some((_, range))) = (&shape.several, self.range(index)) else {
            return Err(self.refuses());
        };
        let boundary = template.head(&text, index == 0, range, self.boundary.as_deref());
        let boundary = boundary.map_err(|_| self.refuses())?;
        self.boundary.get_or_insert_with(|| boundary.to_vec());
        self.is_known = true;
        Ok(())
    }

    /// Handles the complete head of an answer.
    fn end_head(&mut self, shape: &mut Shape, heard: &mut Vec<AnswerEvent>) -> Result<(), Unusable> {
        let head = self.head.response(false)?;
        let (headers, keeps) = self.head.headers()?;
        let head_len = self.head.len() as u64;
        self.head.clear();
        if head.status < 200 {
            // An interim answer: the final one follows.
            self.begins = self.at;
            return if head.status == 101 { Err(broken("the server changes the protocol")) } else { Ok(()) };
        }
        let Subject { validator, complete } = &self.subject;
        let Some(request) = self.requests.front() else { return Err(Unusable::Over) };
        (self.closes, shape.keeps) = (!keeps, keeps);
        let (number, is_proven) = (request.number, validator.is_in(&headers));
        if let [(_, asked)] = request.ranges[..] {
            let has = check(head.status, &headers, asked, *complete, validator)?;
            self.is_known = true;
            self.prove(is_proven, number, heard);
            if has.start != asked.start || has.end > asked.end {
                return self.whole_file(asked, shape, heard);
            }
            if head.status == 206 {
                shape.single = head_len.checked_sub(single_digits(has));
            }
            // A part may be shorter than the requested range.
            self.requests.front_mut().into_iter().for_each(|request| request.ranges[0].1 = has);
            return self.go_to(usize::MAX, shape, heard);
        }
        let boundary = check_several(head.status, &headers, *complete, validator)?;
        let (Some(boundary), Framing::Length(len)) = (boundary, head.framing) else {
            return Err(self.refuses());
        };
        if request.is_question {
            if len > LESSON_MAX {
                return Err(self.refuses());
            }
            self.prove(is_proven, number, heard);
            self.lesson_head = head_len.saturating_sub(digits(len));
            self.boundary = Some(boundary);
            self.place = ParseState::Lesson { end: self.at + len };
            return Ok(());
        }
        let Several::Like(_, template) = &shape.several else { return Err(self.refuses()) };
        if boundary.len() != template.boundary_len() || len != template.body_len(request.parts()) {
            return Err(self.refuses());
        }
        (self.boundary, self.is_known) = (Some(boundary), true);
        self.prove(is_proven, number, heard);
        self.go_to(0, shape, heard)
    }

    fn prove(&mut self, is_proven: bool, number: u64, heard: &mut Vec<AnswerEvent>) {
        self.is_proven = is_proven;
        if is_proven {
            heard.push(AnswerEvent::Proven(number));
        }
    }

    /// Handles an answer with the whole file instead of `asked`, whose start is near the file's: the bytes before it
    /// are skipped, and the connection is not used again.
    fn whole_file(
        &mut self,
        asked: Range,
        shape: &mut Shape,
        heard: &mut Vec<AnswerEvent>,
    ) -> Result<(), Unusable> {
        self.closes = true;
        if asked.start == 0 {
            return self.go_to(usize::MAX, shape, heard);
        }
        self.place = ParseState::HitHead { end: self.at + asked.start };
        Ok(())
    }

    fn learn(&mut self, shape: &mut Shape) {
        let text = std::mem::take(&mut self.text);
        let (false, Some(boundary), Some(request)) =
            (shape.is_known(), self.boundary.take(), self.requests.front())
        else {
            return;
        };
        let asked: Vec<_> = request.parts().collect();
        let learn = |asked: &[Range]| Template::learn(&text, &boundary, asked, self.subject.complete);
        // The server may merge adjacent ranges (RFC 9110 section 15.3.7.2).
        let joined = [Range { start: asked[0].start, end: asked[1].end }, asked[2]];
        let (template, splits) = match learn(&asked) {
            Ok(template) => (Some(template), true),
            Err(_) => (learn(&joined).ok(), false),
        };
        shape.splits = splits;
        shape.several = template.map_or(Several::No, |template| Several::Like(self.lesson_head, template));
    }

    fn finish(&mut self, heard: &mut Vec<AnswerEvent>) -> Result<(), Unusable> {
        let request = self.requests.pop_front();
        if request.is_some_and(|request| !request.is_question) {
            heard.push(AnswerEvent::Answered);
        }
        (self.place, self.begins) = (ParseState::Head, self.at);
        (self.boundary, self.is_known, self.is_proven, self.text_is_hit) = (None, false, false, false);
        self.text.clear();
        if self.closes { Err(Unusable::Over) } else { Ok(()) }
    }
}

fn broken(what: &str) -> Unusable {
    Unusable::Net(NetError::Broken(what.to_owned()))
}

#[cfg(test)]
mod tests;
