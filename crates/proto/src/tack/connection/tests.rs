//! Two ends and a path between them.

use super::*;
use crate::units::{BitRate, Bytes, FlowId, HostId};

/// One direction: a rate, a delay, a queue, losses.
struct Path {
    rate: BitRate,
    delay: Duration,
    queue: Duration,
    loss: u32,
    free_at: Instant,
    random: u64,
    flying: VecDeque<(Instant, Packet)>,
    sent: u64,
}

impl Path {
    fn new(mbps: u64, delay_ms: u64, queue_ms: u64, loss_per_10000: u32, seed: u64) -> Self {
        Self {
            rate: BitRate::from_mbps(mbps),
            delay: Duration::from_millis(delay_ms),
            queue: Duration::from_millis(queue_ms),
            loss: loss_per_10000,
            free_at: Instant::ZERO,
            random: seed * 2 + 1,
            flying: VecDeque::new(),
            sent: 0,
        }
    }

    fn send(&mut self, now: Instant, packet: Packet) {
        self.sent += 1;
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let waits = self.free_at.saturating_since(now);
        if (self.random >> 33) % 10_000 < u64::from(self.loss) || waits > self.queue {
            return;
        }
        self.free_at = self.free_at.max(now) + self.rate.time_for(Bytes(packet.len().0));
        self.flying.push_back((self.free_at + self.delay, packet));
    }

    fn next(&self) -> Option<Instant> {
        self.flying.front().map(|(at, _)| *at)
    }
}

struct World {
    now: Instant,
    ends: [Connection; 2],
    paths: [Path; 2],
}

impl World {
    fn new(config: Config, paths: [Path; 2]) -> Self {
        let ends = |local, remote| Ends { flow: FlowId(0), local: HostId(local), remote: HostId(remote) };
        let ends = [
            Connection::connect(config, ends(0, 1), 7, Instant::ZERO),
            Connection::listen(config, ends(1, 0), 8),
        ];
        Self { now: Instant::ZERO, ends, paths }
    }

    fn drain(&mut self) {
        for (end, path) in self.ends.iter_mut().zip(&mut self.paths) {
            while let Some(packet) = end.poll_transmit(self.now) {
                path.send(self.now, packet);
            }
            end.check().unwrap();
        }
    }

    fn run(&mut self, until_ms: u64) {
        let until = Instant::ZERO + Duration::from_millis(until_ms);
        loop {
            self.drain();
            let arrivals = self.paths.iter().filter_map(Path::next);
            let timers = self.ends.iter().filter_map(Connection::poll_timeout);
            let Some(next) = arrivals.chain(timers).min().filter(|next| *next < until) else { break };
            self.now = self.now.max(next);
            for way in 0..2 {
                while self.paths[way].next().is_some_and(|at| at <= self.now) {
                    let (_, packet) = self.paths[way].flying.pop_front().unwrap();
                    self.ends[1 - way].handle_packet(self.now, packet);
                }
                self.ends[way].handle_timeout(self.now);
            }
        }
        self.now = until;
    }
}

#[test]
fn smoke() {
    for (mbps, delay, loss, ack_loss) in
        [(100, 5, 0, 0), (100, 40, 0, 0), (100, 100, 0, 0), (100, 40, 100, 1000), (500, 100, 100, 1000), (10, 5, 5000, 5000)]
    {
        let paths = [Path::new(mbps, delay, 2 * delay, loss, 1), Path::new(mbps, delay, 1000, ack_loss, 2)];
        let mut config = Config { rate_from: crate::tack::RateFrom::Sender, ..Config::default() };
        if std::env::var("CUBIC").is_ok() { config.congestion.algorithm = crate::congestion::Algorithm::CUBIC; }
        let mut world = World::new(config, paths);
        world.ends[0].write(u64::MAX);
        world.run(10_000);
        let stats = world.ends[0].stats();
        let sink = world.ends[1].stats();
        println!(
            "{mbps} Mb/s {delay} ms {loss} {ack_loss}: {:.1} Mb/s, acks {} of {} data, again {}, timeouts {:?}, rtt_min {:?} srtt {:?} cwnd {:?} recoveries {:?} dup {}",
            sink.delivered_bytes as f64 * 8.0 / 10e6,
            sink.acks_sent,
            stats.data_packets_sent,
            stats.packets_retransmitted,
            stats.timeouts,
            world.ends[0].rtt_min(),
            stats.srtt,
            stats.cwnd,
            stats.fast_recoveries,
            sink.duplicate_bytes,
        );
    }
}

#[test]
fn trace() {
    let (mbps, delay, loss, ack_loss) = (100, 100, 0, 0);
    let paths = [Path::new(mbps, delay, 2 * delay, loss, 1), Path::new(mbps, delay, 1000, ack_loss, 2)];
    let config = Config { rate_from: crate::tack::RateFrom::Sender, ..Config::default() };
    let mut world = World::new(config, paths);
    world.ends[0].write(u64::MAX);
    for step in 1..25 {
        world.run(step * 400);
        let stats = world.ends[0].stats();
        let sink = world.ends[1].stats();
        let (base, first) = world.ends[0].sender.base_dbg();
        println!("B {:?} {:?} {}", base, first, world.ends[1].receiver.what(base));
        println!(
            "T {} delivered {} blocked {} cwnd {} flight {} unrep {} again {} acks {} timeouts {:?} lostq {} new {} held {} base..next {} holes {} probeat {:?} rto {:?}",
            step * 400, sink.delivered_bytes, world.ends[1].blocked_bytes(), stats.cwnd.unwrap(), stats.bytes_in_flight,
            world.ends[0].sender.dbg().0, stats.packets_retransmitted, sink.acks_sent, stats.timeouts,
            world.ends[0].sender.streams.has_lost(), world.ends[0].sender.streams.has_new(), world.ends[0].sender.streams.is_held(),
            world.ends[0].sender.dbg().1, world.ends[1].receiver.dbg(), world.ends[0].poll_timeout(), stats.rto
        );
    }
}
