//! A live video, played as it arrives.

use std::collections::VecDeque;

use tacit_packet::units::{FlowId, Instant};

use super::Sockets;
use super::download::RepairedDownload;
use super::player::Player;
use crate::drivers::fwp::ToReader;
use crate::flow::End;
use crate::record::VideoPlayed;
use crate::setup::Streaming;

/// A frame that was sent as datagrams and not yet played.
#[derive(Clone, Copy, Debug)]
struct SentFrame {
    /// Number of its first datagram.
    first: u64,
    datagrams: u64,
    arrived: u64,
}

#[derive(Debug)]
pub(super) struct VideoStream {
    plan: Streaming,
    flow: FlowId,
    /// Repairs holes.
    repair: Option<Box<RepairedDownload>>,
    start: Instant,
    stopped: bool,
    /// Number of sent frames.
    sent: u64,
    player: Player,
    /// Over UDP: frames sent but not played.
    unplayed: VecDeque<SentFrame>,
    /// Number of the next datagram.
    next_datagram: u64,
    /// Number of frames up to the last one that has a datagram here.
    begun: u64,
    played: u64,
    damaged: u64,
}

impl VideoStream {
    pub fn new(plan: Streaming, flows: &[FlowId], start: Instant) -> Self {
        let repair = plan.repair.map(|repairers| {
            let mut repair = RepairedDownload::fed(repairers.download, flows, start);
            // All bytes of the connection are video.
            repair.allow_when_registered(0, u64::MAX);
            Box::new(repair)
        });
        Self {
            plan,
            // The setup was checked: there is a flow.
            flow: flows[0],
            repair,
            start,
            stopped: false,
            sent: 0,
            player: Player::new(plan.frame_rate, plan.buffer),
            unplayed: VecDeque::new(),
            next_datagram: 0,
            begun: 0,
            played: 0,
            damaged: 0,
        }
    }

    /// Bytes of the first `frames` frames, rounded down.
    fn bytes(&self, frames: u64) -> u64 {
        let per_second = 8 * u128::from(self.plan.frame_rate);
        (u128::from(frames) * u128::from(self.plan.rate.as_bps()) / per_second) as u64
    }

    /// When frame `self.sent` is due to be sent.
    fn next_frame_at(&self) -> Option<Instant> {
        (!self.stopped).then(|| self.start + Player::time_of(self.sent, u64::from(self.plan.frame_rate)))
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let repair = self.repair.as_ref().and_then(|repair| repair.poll_timeout());
        let times = [self.next_frame_at(), self.player.poll_timeout(), repair];
        times.into_iter().flatten().min()
    }

    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        if let Some(repair) = &mut self.repair {
            repair.handle_timeout(now, sockets);
            self.provide_repaired(now);
        }
        while self.next_frame_at().is_some_and(|at| at <= now) {
            self.send_frame(sockets);
        }
        self.play(now, sockets.datagram_payload(self.flow).is_some());
    }

    fn send_frame(&mut self, sockets: &mut Sockets<'_>) {
        let bytes = self.bytes(self.sent + 1) - self.bytes(self.sent);
        self.sent += 1;
        if let Some(payload) = sockets.datagram_payload(self.flow) {
            let datagrams = bytes.div_ceil(payload);
            self.unplayed.push_back(SentFrame { first: self.next_datagram, datagrams, arrived: 0 });
            self.next_datagram += datagrams;
        }
        sockets.write(self.flow, End::Source, bytes);
    }

    fn play(&mut self, now: Instant, over_udp: bool) {
        while self.player.poll_timeout().is_some_and(|due| due <= now) {
            if self.player.play(now).is_none() {
                break;
            }
            self.played += 1;
            if over_udp {
                let frame = self.unplayed.pop_front();
                self.damaged += u64::from(frame.is_none_or(|frame| frame.arrived < frame.datagrams));
            }
        }
    }

    /// A message from the shim below the sink of `flow`.
    pub fn on_message(&mut self, now: Instant, flow: FlowId, message: ToReader, sockets: &mut Sockets<'_>) {
        if let Some(repair) = &mut self.repair {
            repair.on_message(now, flow, message, sockets);
            self.provide_repaired(now);
        }
    }

    /// Passes frames that repair has handed on to the player.
    fn provide_repaired(&mut self, now: Instant) {
        if let Some(repair) = &self.repair {
            self.player.provide(now, self.whole_frames(repair.released()));
        }
    }

    pub fn repair(&self) -> Option<&RepairedDownload> {
        self.repair.as_deref()
    }

    pub fn repair_mut(&mut self) -> Option<&mut RepairedDownload> {
        self.repair.as_deref_mut()
    }

    pub fn arrived(&mut self, now: Instant, flow: FlowId, end: End, sockets: &mut Sockets<'_>) {
        if let Some(repair) = &mut self.repair {
            repair.arrived(now, flow, end, sockets);
            self.provide_repaired(now);
            return;
        }
        if end == End::Source {
            return;
        }
        if sockets.datagram_payload(self.flow).is_some() {
            let Some(number) = sockets.new_datagram(self.flow) else { return };
            self.datagram_arrived(number);
            // Missing datagrams before the last begun frame will not arrive in time; the last frame itself is available
            // once it is complete.
            let last = self.begun.checked_sub(self.player.played() + 1);
            let whole = last
                .and_then(|place| self.unplayed.get(place as usize))
                .is_some_and(|frame| frame.arrived == frame.datagrams);
            let there = if whole || self.stopped { self.begun } else { self.begun.saturating_sub(1) };
            self.player.provide(now, there);
        } else {
            let delivered = sockets.delivered(self.flow, end);
            self.player.provide(now, self.whole_frames(delivered));
        }
    }

    /// Complete frames in the first `bytes` of the video.
    fn whole_frames(&self, bytes: u64) -> u64 {
        let per_second = 8 * u128::from(self.plan.frame_rate);
        // The smallest number of frames with more bytes than these, minus one.
        let frames = ((u128::from(bytes) + 1) * per_second).div_ceil(u128::from(self.plan.rate.as_bps()));
        frames as u64 - 1
    }

    fn datagram_arrived(&mut self, number: u64) {
        let behind = self.unplayed.partition_point(|frame| frame.first <= number);
        // Too late: the frame was already played.
        let Some(place) = behind.checked_sub(1) else { return };
        self.unplayed[place].arrived += 1;
        self.begun = self.begun.max(self.player.played() + behind as u64);
    }

    /// Stops the source; the sent frames are still played.
    pub fn stop(&mut self, now: Instant) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        if !self.unplayed.is_empty() {
            // No later datagram will show that one of these was lost, so they are played at their times.
            self.player.provide(now, self.sent);
        }
        self.player.end_at(now, self.sent);
    }

    pub fn start_measuring(&mut self, now: Instant) {
        (self.played, self.damaged) = (0, 0);
        if let Some(repair) = &mut self.repair {
            repair.start_measuring();
        }
        self.player.start_measuring(now);
    }

    pub fn result(&self, now: Instant, start: Instant) -> VideoPlayed {
        let watched = self.player.watched(now);
        VideoPlayed {
            frames_played: self.played,
            frames_damaged: self.damaged,
            rebuffers: watched.waits,
            rebuffering: watched.waited,
            watched: watched.watched,
            start_up: watched.started_at.map(|at| at.saturating_since(start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::{BitRate, Duration};

    use super::*;

    #[test]
    fn frames_add_up_to_the_rate_and_are_counted_back() {
        // 4 Mb/s at 30 frames per second: 16666.67 bytes each.
        let plan =
            Streaming { rate: BitRate::from_mbps(4), frame_rate: 30, buffer: Duration::ZERO, repair: None };
        let stream = VideoStream::new(plan, &[FlowId(0)], Instant::ZERO);
        assert_eq!([1, 2, 3, 30].map(|frames| stream.bytes(frames)), [16_666, 33_333, 50_000, 500_000]);
        for frames in 1..100 {
            let bytes = stream.bytes(frames);
            assert_eq!(stream.whole_frames(bytes), frames);
            assert_eq!(stream.whole_frames(bytes - 1), frames - 1);
        }
        assert_eq!(stream.whole_frames(0), 0);
    }
}
