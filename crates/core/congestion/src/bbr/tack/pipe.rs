//! A path for tests: a paced sender, a bottleneck with a queue, a receiver that reports once in a TACK interval.

use std::collections::VecDeque;

use super::super::super::control::CongestionControl as _;
use super::{TackBbr, TackConfig, Version as _};
use crate::pacing::{Bursts, Pacer};
use crate::rate::RateSample;
use crate::{Delivery, ReceiverReport, Repair, Start};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

pub const MSS: u64 = 1_000;
/// Time goes in such steps.
const STEP: Duration = Duration::from_micros(50);
const BETA: u64 = 4;

#[derive(Clone, Copy)]
struct Packet {
    sent_at: Instant,
    number: u64,
    /// Bytes delivered when it left.
    prior_delivered: u64,
    arrived_at: Instant,
}

/// Contents of a TACK.
struct Feedback {
    arrives_at: Instant,
    received: u64,
    largest: u64,
    rate: Option<BitRate>,
    base_loss: u8,
    /// Of least one-way delay since the last: when it left, and how long ago it came.
    least: Option<(Instant, Duration)>,
    prior_delivered: u64,
}

/// One flow over one bottleneck, the delay behind it.
pub struct Pipe {
    pub bbr: TackBbr,
    pub now: Instant,
    pub rate: BitRate,
    pub rtt: Duration,
    /// Bytes that the queue at the bottleneck holds.
    pub buffer: u64,
    /// The bottleneck sends all that came together once in this time, as Wi-Fi does.
    pub burst: Duration,
    /// And chance makes that up to twice as long.
    pub uneven: bool,
    burst_now: Duration,
    /// Round trips so far, in 1000ths, by their actual lengths.
    pub trips: u64,
    /// Data packets and TACKs that chance takes, in 256ths.
    pub loss: u32,
    pub feedback_loss: u32,
    /// Nothing gets through in either direction.
    pub is_down: bool,
    /// Bytes that arrived.
    pub received: u64,
    pub overflowed: u64,
    pub queued: u64,
    queue: VecDeque<Packet>,
    credit: u64,
    credit_at: Instant,
    served_at: Instant,
    flying: VecDeque<Packet>,
    /// When bytes came last, and the time before it with the bytes that had come by then: arrivals of one instant are counted
    /// when the next has begun. And that as of earlier TACKs.
    latest_at: Instant,
    complete: (Instant, u64),
    marks: VecDeque<(Instant, u64)>,
    largest: u64,
    newest_prior: u64,
    least: Option<Packet>,
    tack_at: Instant,
    feedback: VecDeque<Feedback>,
    pacer: Pacer,
    sent: u64,
    /// Bytes that were reported, and held lost.
    delivered: u64,
    lost: u64,
    /// The recovery lasts until this number of bytes is accounted for.
    recovered_at: u64,
    heard_at: Instant,
    smoothed_rtt: Option<Duration>,
    random: u32,
}

impl Pipe {
    pub fn new(config: TackConfig, mbps: u64, rtt: Duration) -> Self {
        let start = Start { seed: 7, rtt: Some(rtt), ..Start::default() };
        let window = crate::Config::default().window(MSS as u32);
        let rate = BitRate::from_mbps(mbps);
        Self {
            bbr: TackBbr::new(window, config, start),
            now: Instant::ZERO,
            rate,
            rtt,
            buffer: 4 * rate.amount_in(rtt).0,
            burst: STEP,
            uneven: false,
            burst_now: STEP,
            trips: 0,
            loss: 0,
            feedback_loss: 0,
            is_down: false,
            received: 0,
            overflowed: 0,
            queued: 0,
            queue: VecDeque::new(),
            credit: 0,
            credit_at: Instant::ZERO,
            served_at: Instant::ZERO,
            flying: VecDeque::new(),
            latest_at: Instant::ZERO,
            complete: (Instant::ZERO, 0),
            marks: VecDeque::new(),
            largest: 0,
            newest_prior: 0,
            least: None,
            tack_at: Instant::ZERO,
            feedback: VecDeque::new(),
            pacer: Pacer::new(Bursts::Datagrams),
            sent: 0,
            delivered: 0,
            lost: 0,
            recovered_at: 0,
            heard_at: Instant::ZERO,
            smoothed_rtt: Some(rtt),
            random: 1,
        }
    }

    /// Runs for `span`; the share of the bottleneck that was used meanwhile, in per cent.
    pub fn run(&mut self, span: Duration) -> u64 {
        let (until, before) = (self.now + span, self.received);
        while self.now < until {
            self.step();
        }
        (self.received - before) * 100 / self.rate.amount_in(span).0.max(1)
    }

    /// Runs until `done`; how long that took, `None` for more than `limit`.
    pub fn until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> Option<Duration> {
        let begin = self.now;
        while !done(self) {
            if self.now.saturating_since(begin) > limit {
                return None;
            }
            self.step();
        }
        Some(self.now.saturating_since(begin))
    }

    pub fn estimate(&self) -> BitRate {
        self.bbr.rate()
    }

    /// The queue at the bottleneck, in time.
    pub fn queue_delay(&self) -> Duration {
        self.rate.time_for(Bytes(self.queued))
    }

    fn chance(&mut self, in_256: u32) -> bool {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) % 256 < in_256
    }

    fn in_flight(&self) -> u64 {
        self.sent * MSS - self.delivered - self.lost
    }

    fn step(&mut self) {
        self.now += STEP;
        let trip = self.rtt + self.queue_delay();
        self.trips += STEP.as_nanos() * 1_000_000 / trip.as_nanos();
        self.serve();
        self.receive();
        self.receive_feedback();
        self.send();
        // The sender's timer: two round trips and more without a word.
        let patience = self.smoothed_rtt.unwrap_or_default() * 2 + Duration::from_millis(200);
        if self.in_flight() > 0 && self.now.saturating_since(self.heard_at) > patience {
            self.heard_at = self.now;
            self.lost = self.sent * MSS - self.delivered;
            self.bbr.on_timeout(self.now, 0);
        }
    }

    fn send(&mut self) {
        while self.in_flight() + MSS <= self.bbr.common.window.cwnd
            && self.pacer.held_until(self.now).is_none()
        {
            if self.in_flight() == 0 {
                self.heard_at = self.now;
            }
            self.pacer.on_sent(MSS, self.now, Some(self.bbr.common.pacing_rate), MSS);
            self.sent += 1;
            let packet = Packet {
                sent_at: self.now,
                number: self.sent,
                prior_delivered: self.delivered,
                arrived_at: self.now,
            };
            if self.chance(self.loss) || self.is_down {
                continue;
            }
            if self.queued + MSS > self.buffer {
                self.overflowed += MSS;
                continue;
            }
            self.queued += MSS;
            self.queue.push_back(packet);
        }
    }

    fn serve(&mut self) {
        self.credit += self.rate.amount_in(self.now.saturating_since(self.credit_at)).0;
        // The rest of a byte counts too: the next step starts where this one is paid for.
        self.credit_at = self.now;
        if self.now.saturating_since(self.served_at) < self.burst_now {
            return;
        }
        self.served_at = self.now;
        self.burst_now = self.burst;
        if self.uneven {
            self.burst_now += self.burst * u64::from(self.random >> 16 & 255) / 256;
            self.chance(0);
        }
        while self.credit >= MSS {
            let Some(mut packet) = self.queue.pop_front() else {
                self.credit = self.credit.min(MSS);
                break;
            };
            self.credit -= MSS;
            self.queued -= MSS;
            packet.arrived_at = self.now + self.rtt / 2;
            if !self.is_down {
                self.flying.push_back(packet);
            }
        }
    }

    fn receive(&mut self) {
        while let Some(packet) = self.flying.front().copied().filter(|packet| packet.arrived_at <= self.now) {
            self.flying.pop_front();
            if self.latest_at < self.now {
                self.complete = (self.latest_at, self.received);
                self.latest_at = self.now;
            }
            self.received += MSS;
            self.largest = packet.number;
            self.newest_prior = packet.prior_delivered;
            let delay = |packet: &Packet| packet.arrived_at.saturating_since(packet.sent_at);
            if self.least.is_none_or(|least| delay(&packet) < delay(&least)) {
                self.least = Some(packet);
            }
        }
        let is_due = self.now.saturating_since(self.tack_at) >= self.rtt / BETA;
        if !is_due || self.least.is_none() {
            return;
        }
        self.tack_at = self.now;
        // The youngest mark that lies a round trip back.
        while self.marks.get(1).is_some_and(|mark| self.complete.0.saturating_since(mark.0) >= self.rtt) {
            self.marks.pop_front();
        }
        let rate = self.marks.front().and_then(|(at, bytes)| {
            BitRate::from_amount(Bytes(self.complete.1 - bytes), self.complete.0.saturating_since(*at))
        });
        self.marks.push_back(self.complete);
        let feedback = Feedback {
            arrives_at: self.now + self.rtt - self.rtt / 2,
            received: self.received,
            largest: self.largest,
            rate,
            base_loss: self.loss as u8,
            least: self
                .least
                .take()
                .map(|packet| (packet.sent_at, self.now.saturating_since(packet.arrived_at))),
            prior_delivered: self.newest_prior,
        };
        if !self.chance(self.feedback_loss) && !self.is_down {
            self.feedback.push_back(feedback);
        }
    }

    fn receive_feedback(&mut self) {
        let is_here = |feedback: &mut Feedback| feedback.arrives_at <= self.now;
        let Some(feedback) = self.feedback.pop_front_if(is_here) else { return };
        self.heard_at = self.now;
        let prior_in_flight = self.in_flight();
        let newly_delivered = feedback.received - self.delivered;
        self.delivered = feedback.received;
        let lost = (feedback.largest * MSS - feedback.received).max(self.lost);
        // Packets held lost by a timeout that arrived after all are not in flight either.
        let newly_lost = lost - self.lost;
        self.lost = lost.min(self.sent * MSS - self.delivered);
        let rtt =
            feedback.least.map(|(sent_at, waited)| self.now.saturating_since(sent_at).saturating_sub(waited));
        if let (Some(smoothed), Some(rtt)) = (self.smoothed_rtt, rtt) {
            self.smoothed_rtt = Some(smoothed - smoothed / 8 + rtt / 8);
        }
        let accounted = self.delivered + self.lost;
        if newly_lost > 0 && accounted >= self.recovered_at {
            self.recovered_at = self.sent * MSS;
            self.bbr.on_loss(0);
        }
        let repair = if accounted < self.recovered_at { Repair::Fast } else { Repair::None };
        self.bbr.on_delivery(&Delivery {
            now: self.now,
            sample: RateSample {
                over: None,
                prior_delivered: feedback.prior_delivered,
                app_limited: false,
                newly_delivered,
                delivered: self.delivered,
                rtt,
                ..RateSample::default()
            },
            lost: newly_lost,
            prior_in_flight,
            in_flight: self.in_flight(),
            advanced: true,
            repair,
            smoothed_rtt: self.smoothed_rtt,
            stamps: None,
            receiver_limited: false,
            receiver: Some(ReceiverReport {
                rate: feedback.rate,
                base_loss: feedback.base_loss,
                interval: self.rtt / BETA,
                wait: Duration::ZERO,
                burst: Bytes(0),
            }),
        });
    }
}
