//! Content beside streams: messages about them, datagrams, and a new path.

use std::collections::{BTreeMap, VecDeque};

use super::path::Path;
use super::{Carried, Sender};
use tacit_congestion::Start;
use tacit_packet::tack::packet::{Body, Control, Datagram, Stamp, StreamId, room_for_datagram};
use tacit_packet::units::{Duration, Instant};

/// Datagrams that wait to be sent at most; of more, the oldest is dropped. Ours: at 1 Mb/s full-sized ones wait for 0.8 s.
pub(crate) const MAX_DATAGRAMS: usize = 64;

/// Longest time until a limit is asked for again: how long a stream stands for news of it that was lost. Ours.
const LONGEST_REQUEST_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default)]
pub(crate) struct ControlsAndDatagrams {
    pending: VecDeque<Control>,
    /// Streams that the peer may open: the limit to send, the one last sent, and whether its packet is in flight.
    limit: u32,
    advertised: u32,
    advertising: bool,
    /// Streams that their limits hold, by when these are asked for; with the wait until then.
    held: BTreeMap<(Instant, StreamId), Duration>,
    /// Lengths of datagrams, and the number of the first.
    datagrams: VecDeque<u32>,
    first: u64,
    /// Streams have the next turn.
    after_datagram: bool,
}

impl ControlsAndDatagrams {
    /// `control` is to be sent until it is acknowledged.
    pub fn push(&mut self, control: Control) {
        self.pending.push_back(control);
    }

    /// Number of streams that the peer may open.
    pub fn allow(&mut self, limit: u32) {
        self.limit = limit;
    }

    fn must_advertise_limit(&self) -> bool {
        self.limit != self.advertised && !self.advertising
    }

    /// True when something does not wait for the window and the pacer.
    pub fn is_urgent(&self) -> bool {
        !self.pending.is_empty() || self.must_advertise_limit()
    }

    /// When [`handle_timeout`](Sender::handle_timeout) has a limit to ask for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    /// Adds a datagram and returns its number.
    pub fn queue(&mut self, len: u32) -> u64 {
        if self.datagrams.len() >= MAX_DATAGRAMS {
            self.datagrams.pop_front();
            self.first += 1;
        }
        self.datagrams.push_back(len);
        self.first + self.datagrams.len() as u64 - 1
    }

    /// Datagrams for which there is room before the oldest is dropped.
    pub fn datagram_room(&self) -> usize {
        MAX_DATAGRAMS.saturating_sub(self.datagrams.len())
    }

    /// The number of the oldest datagram that waits.
    pub fn oldest(&self) -> u64 {
        self.first
    }

    /// The number of the datagram that left last.
    pub fn latest(&self) -> u64 {
        self.first.saturating_sub(1)
    }

    /// True when a datagram waits.
    pub fn has_datagrams(&self) -> bool {
        !self.datagrams.is_empty()
    }
}

impl Sender {
    /// Bytes of the longest datagram that fits now.
    pub fn max_datagram(&self) -> u32 {
        room_for_datagram(self.path.mtu.payload())
    }

    /// See [`ControlsAndDatagrams::datagram_room`].
    pub fn datagram_room(&self) -> usize {
        self.controls.datagram_room()
    }

    /// The next message about streams.
    pub(super) fn next_control(&mut self, now: Instant) -> Option<Body> {
        if !self.controls.is_urgent() || self.sent.len() >= super::MAX_PACKETS {
            return None;
        }
        if self.controls.must_advertise_limit() {
            let limit = self.controls.limit;
            (self.controls.advertised, self.controls.advertising) = (limit, true);
            self.push(now, Carried::Streams, 0);
            return Some(Body::Control(Control::Streams { limit }));
        }
        let control = self.controls.pending.pop_front()?;
        self.push(now, Carried::Control(control), 0);
        Some(Body::Control(control))
    }

    /// The peer has the message.
    pub(super) fn on_control_acked(&mut self, control: Control) {
        match control {
            Control::Reset { stream, .. } => self.streams.on_reset_acked(stream),
            Control::Held { .. } | Control::Stop { .. } | Control::Streams { .. } => (),
        }
    }

    /// The message was lost.
    pub(super) fn on_control_lost(&mut self, control: Control) {
        let matters = match control {
            Control::Reset { stream, .. } => self.streams.is_resetting(stream),
            Control::Held { stream } => self.streams.is_stream_held(stream),
            Control::Stop { .. } | Control::Streams { .. } => true,
        };
        if matters {
            self.controls.push(control);
        }
    }

    /// The number of streams that the peer may open has arrived there, or was lost.
    pub(super) fn on_stream_limit_settled(&mut self, arrived: bool) {
        self.controls.advertising = false;
        if !arrived {
            self.controls.advertised = 0;
        }
    }

    /// Limits that have come to hold a stream are asked for, unless they move by themselves before the probe timeout is over. Where
    /// many acknowledgments are lost, a round trip is enough.
    pub(super) fn watch_limits(&mut self, now: Instant) {
        while let Some(stream) = self.streams.next_held() {
            let is_lossy = super::questions(self.unanswered()) > 0;
            let wait = self.path.rtt.smoothed().filter(|_| is_lossy).unwrap_or_else(|| self.probe_timeout());
            self.request_later(now, stream, wait);
        }
    }

    fn request_later(&mut self, now: Instant, stream: StreamId, wait: Duration) {
        let at = now + wait;
        // What the stream waited for when its limit held it before is over.
        if let Some(before) = self.streams.set_request_at(stream, Some(at)) {
            self.controls.held.remove(&(before, stream));
        }
        self.controls.held.insert((at, stream), wait);
    }

    /// Asks for the limits of streams that a limit has held for that long. Until data comes, the peer tells them in each answer.
    pub(super) fn request_limits(&mut self, now: Instant) {
        while let Some(entry) = self.controls.held.first_entry()
            && entry.key().0 <= now
        {
            let ((_, stream), wait) = entry.remove_entry();
            self.streams.set_request_at(stream, None);
            if self.streams.is_stream_held(stream) {
                self.controls.push(Control::Held { stream });
                self.ends_flight = true;
                self.request_later(now, stream, wait.saturating_mul(2).min(LONGEST_REQUEST_WAIT));
            }
        }
    }

    /// The next datagram, which leaves as data does. Streams take turns with datagrams.
    pub(super) fn next_datagram(&mut self, now: Instant) -> Option<Body> {
        if self.controls.after_datagram && (self.streams.has_lost() || self.streams.has_new()) {
            self.controls.after_datagram = false;
            return None;
        }
        let len = loop {
            let len = self.controls.datagrams.pop_front()?;
            self.controls.first += 1;
            // Packets may have been longer when it was queued.
            if len <= self.max_datagram() {
                break len;
            }
        };
        self.controls.after_datagram = true;
        self.pace(now, u64::from(len));
        self.counters.data_packets += 1;
        self.counters.data_bytes += u64::from(len);
        let number = self.push(now, Carried::Datagram(len), u64::from(len));
        let sync = self.next_sync(now, number);
        let departed = Stamp::at(now, self.clock_offset);
        Some(Body::Datagram(Datagram { payload_len: len as u16, departed, sync }))
    }

    /// Bytes of UDP payload of the longest packets that the path is known to take.
    pub fn path_payload(&self) -> u32 {
        self.path.mtu.payload()
    }

    /// Packets take another path from now on: the measurements are of none (RFC 9000 section 9.4). Packets in flight are
    /// neither lost nor of the new path.
    pub fn on_path_changed(&mut self, now: Instant, seed: u32) {
        let start = Start { seed, at: now, ..Start::default() };
        let fresh = Path::new(&self.config, self.path.mtu.restarted(), self.implied, self.next, start);
        self.path = Path { elsewhere: self.in_flight, ..fresh };
        self.rate.limit_by_application(self.in_flight);
    }

    /// A packet of more bytes of UDP payload than `max` cannot leave.
    pub fn set_max_payload(&mut self, max: u32) {
        self.path.mtu.limit(max);
        self.path.set_mss(self.implied);
    }
}
