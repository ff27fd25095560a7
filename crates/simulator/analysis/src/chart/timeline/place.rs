//! Positions of the boxes in a time line. Time runs from left to right; when a row is full, it continues in the next
//! row.
//!
//! Time is not to scale, because a Block Ack of 30 us next to an A-MPDU of 3.5 ms would be too thin. The width of a box
//! is [`SCALE`] times the square root of its duration in microseconds, but at least the width of its text. Idle time is
//! a fixed gap: a narrow one before a response, a wide one before the next exchange.

use super::{Exchange, Frame};

/// Pixels per square root of a microsecond.
const SCALE: f64 = 2.2;
/// Pixels before a response.
const RESPONSE_GAP: f64 = 12.0;
/// Pixels before the next exchange.
const EXCHANGE_GAP: f64 = 26.0;
/// Width of a character in pixels, estimated generously.
const CHARACTER: f64 = 6.6;
/// Total horizontal padding of the text in a box, in pixels.
const PADDING: f64 = 12.0;

/// A positioned box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub left: f64,
    pub width: f64,
}

impl Placed {
    pub fn right(&self) -> f64 {
        self.left + self.width
    }
}

/// A positioned exchange, with its boxes in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlacedExchange {
    pub line: usize,
    pub left: f64,
    pub right: f64,
    pub boxes: Vec<Placed>,
}

/// Width of `text`.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Width of a part of a box with this label.
pub(super) fn part_width(label: &str) -> f64 {
    text_width(label) + PADDING
}

fn box_width(frame: &Frame) -> f64 {
    let written: f64 = frame.parts.iter().map(|part| part_width(&part.label)).sum();
    written.max(SCALE * frame.duration_us.sqrt())
}

/// Width of a box including its notes.
fn slot_width(frame: &Frame) -> f64 {
    frame.notes.iter().map(|note| text_width(&note.text)).fold(box_width(frame), f64::max)
}

/// Places `exchanges` in rows from `left` to `right`. An exchange that does not fit in any row has a row of its own and
/// extends beyond its end.
pub(super) fn place(exchanges: &[Exchange], left: f64, right: f64) -> Vec<PlacedExchange> {
    let (mut line, mut cursor) = (0, left);
    let mut placed = Vec::with_capacity(exchanges.len());
    for exchange in exchanges {
        let (mut boxes, width) = boxes(exchange);
        if cursor > left && cursor + width > right {
            line += 1;
            cursor = left;
        }
        for one in &mut boxes {
            one.left += cursor;
        }
        placed.push(PlacedExchange { line, left: cursor, right: cursor + width, boxes });
        cursor += width + EXCHANGE_GAP;
    }
    placed
}

/// The boxes of an exchange relative to 0, and its width. PPDUs that overlap in time (collisions) start at the same
/// position.
fn boxes(exchange: &Exchange) -> (Vec<Placed>, f64) {
    let mut boxes: Vec<Placed> = Vec::with_capacity(exchange.frames.len());
    let (mut slot_left, mut slot_right) = (0.0f64, 0.0f64);
    let mut end_us = f64::NEG_INFINITY;
    for frame in &exchange.frames {
        if frame.start_us >= end_us && !boxes.is_empty() {
            slot_left = slot_right + RESPONSE_GAP;
        }
        boxes.push(Placed { left: slot_left, width: box_width(frame) });
        slot_right = slot_right.max(slot_left + slot_width(frame));
        end_us = end_us.max(frame.start_us + frame.duration_us);
    }
    (boxes, slot_right.max(text_width(&exchange.label)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Ink;
    use crate::chart::timeline::{Note, Part};

    fn frame(start_us: f64, duration_us: f64, note: &str) -> Frame {
        Frame {
            lane: 0,
            to: Some(1),
            start_us,
            duration_us,
            parts: vec![Part { label: "BA".into(), ink: Ink::Series(0) }],
            mpdus: Vec::new(),
            notes: vec![Note { text: note.into(), ink: Ink::Text }],
            lost: false,
            part_of: (0, 1),
        }
    }

    #[test]
    fn boxes_keep_their_order_do_not_overlap_and_stay_on_their_line() {
        let exchange = |number: u32| {
            let start = f64::from(number) * 4_000.0;
            let data = frame(start, f64::from(number) * 170.0, "");
            let response = frame(start + 3_600.0, 32.0, "a note that is wider than its box");
            Exchange { label: format!("+{start} us"), frames: vec![data, response] }
        };
        let exchanges: Vec<Exchange> = (0..20).map(exchange).collect();
        let placed = place(&exchanges, 50.0, 1_000.0);
        assert_eq!(placed.len(), exchanges.len());
        assert!(placed.last().unwrap().line > 0);
        let (mut line, mut end) = (0, 0.0);
        for exchange in &placed {
            assert!(exchange.line == line || exchange.line == line + 1);
            if exchange.line > line {
                (line, end) = (exchange.line, 0.0);
            }
            assert!(exchange.left >= 50.0 && exchange.right <= 1_000.0 && exchange.left >= end);
            end = exchange.left;
            for one in &exchange.boxes {
                assert!(one.left >= end && one.right() <= exchange.right, "{exchange:?}");
                end = one.right();
            }
            end = exchange.right;
        }
    }

    #[test]
    fn colliding_frames_start_at_the_same_place() {
        let frames = vec![frame(0.0, 300.0, ""), frame(0.0, 900.0, ""), frame(916.0, 32.0, "")];
        let (boxes, _) = boxes(&Exchange { label: String::new(), frames });
        assert!((boxes[0].left - boxes[1].left).abs() < f64::EPSILON);
        assert!(boxes[2].left > boxes[1].right());
    }

    #[test]
    fn short_and_long_are_both_seen() {
        let (short, long) = (box_width(&frame(0.0, 30.0, "")), box_width(&frame(0.0, 3_500.0, "")));
        assert!(short >= 20.0 && long <= 150.0 && long > 3.0 * short, "{short} {long}");
    }
}
