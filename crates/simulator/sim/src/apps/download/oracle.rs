//! The oracle of a repaired download: checks that all bytes handed on are those that the server sent, no matter what flow
//! carried them. It observes the packets that hosts receive, detects placeholders by their mark, and uses neither the
//! shim nor the repair.

use tacit_packet::tcp::Flags;
use tacit_packet::units::{FlowId, SeqNumber};
use tacit_packet::{Packet, Transport};

/// Positions `start..end`.
pub(super) type Span = (u64, u64);

/// A set of positions: disjoint spans in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Spans(Vec<Span>);

impl Spans {
    fn insert(&mut self, (mut start, mut end): Span) {
        let from = self.0.partition_point(|span| span.1 < start);
        let to = self.0.partition_point(|span| span.0 <= end);
        if let [first, .., last] | [first @ last] = &self.0[from..to] {
            (start, end) = (start.min(first.0), end.max(last.1));
        }
        self.0.splice(from..to, [(start, end)]);
    }

    fn remove(&mut self, (start, end): Span) {
        let from = self.0.partition_point(|span| span.1 <= start);
        let to = self.0.partition_point(|span| span.0 < end);
        let touched = &self.0[from..to];
        let before = touched.first().map(|span| (span.0, start));
        let after = touched.last().map(|span| (end, span.1));
        let kept = before.into_iter().chain(after).filter(|span| span.0 < span.1);
        let kept: Vec<Span> = kept.collect();
        self.0.splice(from..to, kept);
    }

    /// The parts of `wanted` that are in the set (`inside`), or that are not.
    fn parts(&self, (start, end): Span, inside: bool) -> Vec<Span> {
        let from = self.0.partition_point(|span| span.1 <= start);
        let (mut at, mut parts) = (start, Vec::new());
        for span in self.0[from..].iter().take_while(|span| span.0 < end) {
            let here = (span.0.max(start), span.1.min(end));
            if inside {
                parts.push(here);
            } else if at < here.0 {
                parts.push((at, here.0));
            }
            at = here.1;
        }
        if !inside && at < end {
            parts.push((at, end));
        }
        parts
    }
}

/// Received bytes of one flow at a host.
#[derive(Debug)]
struct Watched {
    flow: FlowId,
    /// Sequence number of the first byte.
    first: Option<SeqNumber>,
    /// End of the received bytes.
    top: u64,
    seen: Spans,
    /// Bytes that were first received as placeholders.
    placed: Spans,
}

#[derive(Debug)]
pub(super) struct Oracle {
    /// Observed flows; the body's is the first.
    flows: Vec<Watched>,
    /// Bytes of the head before the body.
    head: u64,
    /// Original bytes of the body that arrived on another flow and were not handed on yet.
    brought: Spans,
}

impl Oracle {
    pub fn new(flows: &[FlowId], head: u64) -> Self {
        let watched = |flow: &FlowId| Watched {
            flow: *flow,
            first: None,
            top: 0,
            seen: Spans::default(),
            placed: Spans::default(),
        };
        Self { flows: flows.iter().map(watched).collect(), head, brought: Spans::default() }
    }

    fn flow(&mut self, flow: FlowId) -> Option<&mut Watched> {
        self.flows.iter_mut().find(|watched| watched.flow == flow)
    }

    /// `packet` of `flow` is about to be received.
    pub fn watch(&mut self, flow: FlowId, packet: &Packet) {
        let Some(watched) = self.flow(flow) else { return };
        let Transport::Tcp(segment) = &packet.transport else { return };
        if segment.flags.contains(Flags::SYN) {
            watched.first = Some(segment.seq + 1);
        }
        let Some(first) = watched.first.filter(|_| segment.payload_len > 0) else { return };
        // The position nearest to the last one with this number.
        let ahead = segment.seq.0.wrapping_sub(first.0.wrapping_add(watched.top as u32)) as i32;
        let Some(start) = watched.top.checked_add_signed(ahead.into()) else { return };
        let text = (start, start + u64::from(segment.payload_len));
        if segment.placeholder {
            for part in watched.seen.parts(text, false) {
                watched.placed.insert(part);
            }
        }
        watched.seen.insert(text);
        watched.top = watched.top.max(text.1);
    }

    /// Bytes `text` of the stream of `flow` are the body's bytes from `place` on, except placeholders.
    pub fn answered(&mut self, flow: FlowId, text: Span, place: u64) {
        let Some(watched) = self.flow(flow) else { return };
        let parts = watched.placed.parts(text, false);
        watched.placed.remove((0, text.1));
        for (start, end) in parts {
            self.brought.insert((start - text.0 + place, end - text.0 + place));
        }
    }

    /// The original bytes of `body` arrived late and were dropped by the shim, whose report is trusted here.
    pub fn late(&mut self, body: Span) {
        self.brought.insert(body);
    }

    /// `body` is handed on.
    ///
    /// # Errors
    /// If a part of it is a placeholder.
    pub fn released(&mut self, body: Span) -> Result<(), String> {
        let Some(main) = self.flows.first_mut() else { return Ok(()) };
        let text = (body.0 + self.head, body.1 + self.head);
        let placed = main.placed.parts(text, true);
        main.placed.remove((0, text.1));
        for (start, end) in placed {
            let part = (start - self.head, end - self.head);
            if let Some(false_part) = self.brought.parts(part, false).first() {
                return Err(format!("bytes {false_part:?} of a body are a placeholder and were handed on"));
            }
        }
        self.brought.remove((0, body.1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::IpHeader;
    use tacit_packet::tcp::Segment;
    use tacit_packet::units::HostId;

    use super::*;

    const HEAD: u64 = 100;

    fn oracle() -> Oracle {
        let mut oracle = Oracle::new(&[FlowId(0), FlowId(1)], HEAD);
        for flow in [0, 1] {
            takes(&mut oracle, flow, u64::MAX, 0, false);
        }
        oracle
    }

    /// A host receives `len` bytes at `offset`, or the SYN if `offset` is `u64::MAX`.
    fn takes(oracle: &mut Oracle, flow: u32, offset: u64, len: u32, placeholder: bool) {
        let seq = SeqNumber(u32::MAX - 50) + offset as u32;
        let flags = if offset == u64::MAX { Flags::SYN } else { Flags::ACK };
        let segment = Segment { seq, payload_len: len, flags, placeholder, ..Segment::default() };
        let packet = Packet {
            flow: FlowId(flow),
            source: HostId(0),
            destination: HostId(1),
            ip: IpHeader::default(),
            transport: Transport::Tcp(segment),
        };
        oracle.watch(FlowId(flow), &packet);
    }

    #[test]
    fn placeholders_may_not_be_handed_on_unless_something_brought_their_bytes() {
        let mut oracle = oracle();
        takes(&mut oracle, 0, 0, 300, false);
        takes(&mut oracle, 0, 300, 100, true);
        takes(&mut oracle, 0, 400, 100, false);
        assert_eq!(oracle.released((0, 200)), Ok(()));
        assert!(oracle.released((200, 250)).is_err());
        let mut oracle = self::oracle();
        takes(&mut oracle, 0, 300, 100, true);
        takes(&mut oracle, 1, 100, 100, false);
        oracle.answered(FlowId(1), (100, 200), 200);
        assert_eq!(oracle.released((0, 300)), Ok(()));
    }

    #[test]
    fn the_first_copy_counts_and_answers_with_placeholders_bring_nothing() {
        let mut oracle = oracle();
        takes(&mut oracle, 0, 300, 50, false);
        takes(&mut oracle, 0, 300, 100, true);
        takes(&mut oracle, 0, 350, 50, false);
        assert_eq!(oracle.released((0, 250)), Ok(()), "true before the placeholder came");
        takes(&mut oracle, 1, 100, 50, true);
        oracle.answered(FlowId(1), (100, 150), 250);
        assert!(oracle.released((250, 300)).is_err(), "TCP has the placeholder and ignores later bytes");
    }

    #[test]
    fn spans_join_and_part() {
        let mut spans = Spans::default();
        for span in [(10, 20), (30, 40), (20, 30), (50, 60)] {
            spans.insert(span);
        }
        assert_eq!(spans.0, [(10, 40), (50, 60)]);
        assert_eq!(spans.parts((0, 55), true), [(10, 40), (50, 55)]);
        assert_eq!(spans.parts((0, 55), false), [(0, 10), (40, 50)]);
        spans.remove((15, 55));
        assert_eq!(spans.0, [(10, 15), (55, 60)]);
        spans.remove((11, 12));
        assert_eq!(spans.0, [(10, 11), (12, 15), (55, 60)]);
    }
}
