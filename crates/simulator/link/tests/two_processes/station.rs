//! A station: its own MAC with A-MPDU, Block Acks and retries, the NIC and the driver of TCP/HACK, and a host.
//!
//! The MAC is the smallest one that can lose and repeat every kind of frame. Stations take turns, a station without
//! data passes the medium to the other, and nothing is given up. Both derive the time from the frames on the air.

use std::collections::{BTreeMap, VecDeque};

use tacit_between::hack::{AckPacket as _, Action, Config, Counters, Driver, Nic, Rides, SolicitedBy};
use tacit_link::random::Stream;
use tacit_packet::units::{Duration, Instant};

use super::frames::{Medium, Mpdu, NUMBERS, Ppdu};
use super::host::{Host, IpPacket};

/// Most MPDUs that may be unacknowledged, and most in one A-MPDU.
const WINDOW: u64 = 64;
const AMPDU_MPDUS: usize = 42;
/// Time from the end of one exchange to the next transmission: DIFS and half a contention window.
const ACCESS: Duration = Duration::from_micros(100);
const SIFS: Duration = Duration::from_micros(16);
/// A response that has not started after this time never comes.
const NO_ANSWER: Duration = Duration::from_micros(25);
/// A transfer that is not complete after this time is considered stuck.
const PATIENCE: Duration = Duration::from_secs(120);
/// The only peer.
const PEER: usize = 0;

/// Loss ratios of a station's receiver, in percent.
pub struct Losses {
    /// Whole PPDUs of any kind.
    pub ppdus: u32,
    /// MPDUs in the PPDUs that were received.
    pub mpdus: u32,
}

/// Counters of a station.
#[derive(Default)]
pub struct Counts {
    /// Data MPDUs lost at this station.
    pub lost_mpdus: u64,
    /// Block Acks lost at this station.
    pub lost_block_acks: u64,
    /// Retransmitted MPDUs.
    pub retries: u64,
    /// Requests sent for Block Acks that did not arrive.
    pub requests: u64,
}

/// A sent MPDU that is not acknowledged yet.
struct Sent {
    number: u64,
    packet: IpPacket,
    is_retry: bool,
    acknowledged: bool,
}

/// The sending half of a MAC.
#[derive(Default)]
struct Originator {
    queue: VecDeque<IpPacket>,
    window: VecDeque<Sent>,
    next: u64,
    /// A Block Ack is missing and must be requested.
    must_ask: bool,
}

impl Originator {
    /// The PPDU to send in a turn.
    fn next_ppdu(&mut self, counts: &mut Counts) -> Ppdu {
        let Some(oldest) = self.window.front().map(|sent| sent.number).or(Some(self.next)) else {
            return Ppdu::CfEnd;
        };
        if self.must_ask {
            counts.requests += 1;
            return Ppdu::BlockAckReq { start: (oldest % NUMBERS) as u16 };
        }
        while self.next < oldest + WINDOW
            && self.window.iter().filter(|sent| !sent.acknowledged).count() < AMPDU_MPDUS
            && let Some(packet) = self.queue.pop_front()
        {
            self.window.push_back(Sent { number: self.next, packet, is_retry: false, acknowledged: false });
            self.next += 1;
        }
        let mut waiting = self.window.iter_mut().filter(|sent| !sent.acknowledged);
        let mut mpdus = Vec::new();
        for sent in waiting.by_ref().take(AMPDU_MPDUS) {
            counts.retries += u64::from(sent.is_retry);
            let (sequence, packet) = ((sent.number % NUMBERS) as u16, sent.packet.0.clone());
            mpdus.push(Mpdu { sequence, retry: sent.is_retry, more_data: false, packet });
            sent.is_retry = true;
        }
        let more_data = waiting.next().is_some() || !self.queue.is_empty();
        mpdus.iter_mut().for_each(|mpdu| mpdu.more_data = more_data);
        if mpdus.is_empty() { Ppdu::CfEnd } else { Ppdu::Ampdu(mpdus) }
    }

    /// Handles a Block Ack; `settled` gets the packets that have left the window, in order.
    fn acknowledged(&mut self, start: u16, bitmap: u64, mut settled: impl FnMut(IpPacket)) {
        self.must_ask = false;
        for sent in &mut self.window {
            let place = (sent.number + NUMBERS - u64::from(start)) % NUMBERS;
            sent.acknowledged |= place < 64 && bitmap >> place & 1 == 1;
        }
        while self.window.front().is_some_and(|oldest| oldest.acknowledged) {
            settled(self.window.pop_front().expect("it was just seen").packet);
        }
    }
}

/// The receiving half.
#[derive(Default)]
struct Recipient {
    /// The first missing number; MPDUs received after it wait.
    next: u64,
    behind: BTreeMap<u64, Vec<u8>>,
    /// One more than the highest number received.
    end: u64,
}

impl Recipient {
    /// Accepts an MPDU and passes the MPDUs in order to `up`.
    fn take(&mut self, mpdu: Mpdu, up: &mut Vec<Vec<u8>>) {
        // Of the numbers modulo 4096, the nearest to the expected one.
        let ahead = (u64::from(mpdu.sequence) + NUMBERS - self.next % NUMBERS) % NUMBERS;
        if ahead >= NUMBERS / 2 {
            // It is a duplicate.
            return;
        }
        self.end = self.end.max(self.next + ahead + 1);
        self.behind.insert(self.next + ahead, mpdu.packet);
        while let Some(packet) = self.behind.remove(&self.next) {
            self.next += 1;
            up.push(packet);
        }
    }

    fn block_ack(&self, appended: Vec<u8>) -> Ppdu {
        let start = self.end.saturating_sub(WINDOW);
        let arrived = |place: &u64| start + place < self.next || self.behind.contains_key(&(start + place));
        let bitmap = (0..WINDOW).filter(arrived).fold(0, |bitmap, place| bitmap | 1 << place);
        Ppdu::BlockAck { start: (start % NUMBERS) as u16, bitmap, appended }
    }
}

/// A running station.
pub struct Station {
    medium: Medium,
    draws: Stream,
    losses: Losses,
    now: Instant,
    originator: Originator,
    recipient: Recipient,
    nic: Nic,
    driver: Driver<IpPacket>,
    host: Host,
    counts: Counts,
    /// The PPDU that arrived instead of a response.
    heard: Option<Ppdu>,
}

impl Station {
    pub fn new(medium: Medium, host: Host, config: Config, losses: Losses, draws: Stream) -> Self {
        Self {
            medium,
            draws,
            losses,
            now: Instant::ZERO,
            originator: Originator::default(),
            recipient: Recipient::default(),
            nic: Nic::new(1),
            driver: Driver::new(config, 1),
            host,
            counts: Counts::default(),
            heard: None,
        }
    }

    /// Takes turns with the other station until both hosts are done; with `begins`, this station has the first turn.
    pub fn run(mut self, begins: bool) -> (Host, Counts, Counters) {
        let mut is_mine = begins;
        while !self.host.is_done() {
            if is_mine {
                self.send();
            } else if self.listen().is_none() {
                break;
            }
            is_mine = !is_mine;
        }
        (self.host, self.counts, self.driver.counters())
    }

    /// Lets time pass, and processes the events due in it.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        assert!(until < Instant::ZERO + PATIENCE, "the transfer hangs");
        loop {
            self.settle();
            let due = [self.host.poll_timeout(), self.driver.poll_timeout()].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = self.now.max(due);
            self.driver.handle_timeout(self.now);
            self.host.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Does the work of the driver and the host until none is left.
    fn settle(&mut self) {
        loop {
            if let Some(action) = self.driver.poll_action() {
                match action {
                    Action::Send(_, packet) => self.originator.queue.push_back(packet),
                    Action::Descriptor(peer, frame) => self.nic.add(peer, &frame),
                    Action::ClearFresh(peer) => self.nic.clear_fresh(peer),
                    Action::ClearRetained(peer) => self.nic.clear_retained(peer),
                    Action::Retract(..) => unreachable!("nothing is queued that rides too"),
                }
            } else if let Some(packet) = self.host.poll_transmit(self.now) {
                self.driver.handle_outgoing(self.now, PEER, packet);
            } else if let Some((_, IpPacket(bytes))) = self.driver.poll_reconstituted() {
                self.host.receive(self.now, &bytes);
            } else {
                return;
            }
        }
    }

    fn is_lost(&mut self, percent: u32) -> bool {
        self.draws.up_to(99) < percent
    }

    /// This station's turn.
    fn send(&mut self) {
        self.wait(ACCESS);
        let ppdu = self.originator.next_ppdu(&mut self.counts);
        if matches!(ppdu, Ppdu::Ampdu(_)) {
            self.driver.handle_drained(PEER);
        }
        self.medium.send(&ppdu);
        self.wait(ppdu.airtime());
        if ppdu == Ppdu::CfEnd {
            return;
        }
        match self.medium.receive() {
            Some(answer @ Ppdu::BlockAck { .. }) => {
                self.wait(SIFS + answer.airtime());
                if self.is_lost(self.losses.ppdus) {
                    self.counts.lost_block_acks += 1;
                    self.originator.must_ask = true;
                } else {
                    self.answered(answer);
                }
            }
            other => {
                self.wait(NO_ANSWER);
                self.originator.must_ask = true;
                self.heard = other;
            }
        }
    }

    fn answered(&mut self, answer: Ppdu) {
        let Ppdu::BlockAck { start, bitmap, appended } = answer else { return };
        let (driver, now) = (&mut self.driver, self.now);
        driver.handle_appended(PEER, &appended, |bytes| Some(IpPacket(bytes.to_vec())));
        self.originator.acknowledged(start, bitmap, |packet| {
            if packet.rides() != Rides::Never {
                driver.handle_settled(now, PEER, &packet, true);
            }
        });
        self.settle();
    }

    /// The other station's turn; `None` if its process has exited.
    fn listen(&mut self) -> Option<()> {
        let ppdu = match self.heard.take() {
            Some(ppdu) => ppdu,
            None => self.medium.receive()?,
        };
        self.wait(ACCESS + ppdu.airtime());
        let (mut up, mut more_data) = (Vec::new(), false);
        let is_lost = ppdu != Ppdu::CfEnd && self.is_lost(self.losses.ppdus);
        let heard = match ppdu {
            Ppdu::CfEnd => return Some(()),
            Ppdu::Ampdu(mpdus) if is_lost => {
                self.counts.lost_mpdus += mpdus.len() as u64;
                None
            }
            Ppdu::Ampdu(mpdus) => {
                let mut any = None;
                for mpdu in mpdus {
                    if self.is_lost(self.losses.mpdus) {
                        self.counts.lost_mpdus += 1;
                        continue;
                    }
                    any = Some(SolicitedBy::Ampdu);
                    more_data = mpdu.more_data;
                    self.recipient.take(mpdu, &mut up);
                }
                any
            }
            Ppdu::BlockAckReq { .. } => (!is_lost).then_some(SolicitedBy::BlockAckRequest),
            Ppdu::BlockAck { .. } => panic!("no request asked for it"),
        };
        match heard {
            Some(heard) => self.answer(heard, more_data, up),
            None => self.wait(NO_ANSWER),
        }
        Some(())
    }

    /// The NIC responds at once with the bytes it holds; the driver and the host are notified meanwhile.
    fn answer(&mut self, heard: SolicitedBy, more_data: bool, up: Vec<Vec<u8>>) {
        let mut appended = Vec::new();
        let response = self.nic.respond(PEER, heard, false, None, &mut appended);
        let block_ack = self.recipient.block_ack(appended);
        self.medium.send(&block_ack);
        self.driver.handle_received(self.now, PEER, heard, more_data, response);
        for bytes in up {
            let packet = IpPacket(bytes);
            self.driver.handle_incoming(self.now, PEER, &packet);
            self.host.receive(self.now, &packet.0);
            self.settle();
        }
        self.wait(SIFS + block_ack.airtime());
    }
}
