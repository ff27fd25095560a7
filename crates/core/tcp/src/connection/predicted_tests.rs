use std::collections::VecDeque;

use proptest::prelude::*;

use super::{Connection, State};
use crate::config::Config;
use crate::profile::Profile;
use tacit_packet::endpoint::{Endpoint, Ends};
use tacit_packet::units::{Bytes, Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Packet, Transport};

/// What happens to a packet. A path applies a list of these in order, repeatedly.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    IsLost,
    FallsBehind,
}

/// Two ends and the packets in flight between them.
struct Path {
    ends: [Connection; 2],
    between: [VecDeque<Packet>; 2],
    fates: Vec<Fate>,
    sent: usize,
    now: Instant,
    /// Segments processed as predicted, and segments sent by the fast path.
    predicted: u32,
    sent_full: u32,
}

fn state_of(connection: &Connection) -> String {
    format!("{connection:?}")
}

impl Path {
    fn new(config: Config, fates: Vec<Fate>) -> Self {
        let ends = |local, remote| Ends { flow: FlowId(0), local: HostId(local), remote: HostId(remote) };
        Self {
            ends: [
                // The sequence numbers wrap during the transfer.
                Connection::connect(config, ends(0, 1), SeqNumber(u32::MAX - 100_000), Instant::ZERO),
                Connection::listen(config, ends(1, 0), SeqNumber(7)),
            ],
            between: Default::default(),
            fates,
            sent: 0,
            now: Instant::ZERO,
            predicted: 0,
            sent_full: 0,
        }
    }

    /// Sends all output of `end`, and compares the two ways of choosing it.
    fn drain(&mut self, end: usize) {
        loop {
            let mut short = self.ends[end].clone();
            let mut long = self.ends[end].clone();
            let is_established = short.state == State::Established;
            if let Some(outgoing) = short.sender.next_full(self.now, &short.timers).filter(|_| is_established)
            {
                self.sent_full += 1;
                let chosen = long.sender.next(self.now, &mut long.timers, &mut long.counters);
                assert_eq!(chosen, Some(outgoing));
                assert_eq!(state_of(&short), state_of(&long));
            }
            let Some(packet) = self.ends[end].poll_transmit(self.now) else { break };
            self.sent += 1;
            let handshake = self.ends.iter().any(|end| end.state != State::Established);
            let fate = if handshake { Fate::Arrives } else { self.fates[self.sent % self.fates.len()] };
            let queue = &mut self.between[1 - end];
            match fate {
                Fate::Arrives => queue.push_back(packet),
                Fate::IsLost => {}
                Fate::FallsBehind => queue.insert(queue.len().saturating_sub(3), packet),
            }
        }
        while self.ends[end].poll_event().is_some() {}
    }

    /// Delivers the next packet to `end`, and compares the two ways of processing it.
    fn arrive(&mut self, end: usize) {
        let Some(packet) = self.between[end].pop_front() else { return };
        let Transport::Tcp(segment) = packet.transport else { unreachable!("the ends speak TCP") };
        let before = &self.ends[end];
        if !matches!(before.state, State::Closed | State::Listen | State::SynSent) {
            let mut short = before.clone();
            if short.arrive_as_predicted(self.now, &segment) {
                self.predicted += 1;
                let mut long = before.clone();
                long.arrive_in_others(self.now, &segment, packet.ip.ecn);
                assert_eq!(state_of(&short), state_of(&long));
            } else {
                assert_eq!(state_of(&short), state_of(before));
            }
        }
        self.ends[end].handle_packet(self.now, packet);
        self.drain(end);
    }

    fn run(&mut self, written: [u64; 2]) {
        for (end, bytes) in self.ends.iter_mut().zip(written) {
            end.write(bytes);
        }
        self.drain(0);
        for round in 0..20_000 {
            self.now += Duration::from_micros(100);
            let end = round % 2;
            self.arrive(end);
            if self.ends[end].poll_timeout().is_some_and(|at| at <= self.now) {
                self.ends[end].handle_timeout(self.now);
                self.drain(end);
            }
            let is_done = |end: usize| self.ends[1 - end].delivered_bytes() == written[end];
            if is_done(0) && is_done(1) {
                break;
            }
            if self.between.iter().all(VecDeque::is_empty) {
                let next = self.ends.iter().filter_map(Connection::poll_timeout).min();
                self.now = self.now.max(next.unwrap_or(self.now));
            }
        }
    }
}

fn config(profile: Profile, every: u32, sack: bool, timestamps: bool) -> Config {
    let mut config = Config { sack, timestamps, receive_buffer: Bytes(200_000), ..profile.config() };
    if let crate::AckPolicy::Delayed(delayed) = &mut config.ack_policy {
        delayed.every = every;
    }
    config
}

#[test]
fn a_transfer_without_loss_is_predicted() {
    let mut path = Path::new(config(Profile::Classic, 2, true, true), vec![Fate::Arrives]);
    path.run([500_000, 0]);
    assert_eq!(path.ends[1].delivered_bytes(), 500_000);
    let segments = path.ends[0].counters().data_segments_sent;
    assert!(u64::from(path.predicted) > segments, "{} of {segments} and their ACKs", path.predicted);
    assert!(u64::from(path.sent_full) * 2 > segments, "{} of {segments}", path.sent_full);
}

proptest! {
    /// On any path, a predicted segment is processed with the same result as without prediction, and so is output sent
    /// by the fast path.
    #[test]
    fn the_short_ways_lead_where_the_long_ones_do(
        linux in any::<bool>(),
        every in 1_u32..4,
        sack in any::<bool>(),
        timestamps in prop::bool::weighted(0.9),
        fates in prop::collection::vec(
            prop_oneof![20 => Just(Fate::Arrives), 1 => Just(Fate::IsLost), 1 => Just(Fate::FallsBehind)],
            1..200,
        ),
        written in (0_u64..150_000, prop_oneof![Just(0), 0_u64..50_000]),
    ) {
        let profile = if linux { Profile::Linux } else { Profile::Classic };
        let mut path = Path::new(config(profile, every, sack, timestamps), fates);
        path.run([written.0, written.1]);
    }
}
