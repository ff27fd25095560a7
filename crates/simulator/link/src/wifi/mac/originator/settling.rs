//! What becomes of the MPDUs of a PPDU: acknowledged, to be sent again, or given up.

use tacit_packet::units::Instant;

use super::Originator;
use crate::packet::{Holders, PayloadClass};
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::mac::mpdu::{Mpdu, MpduState};
use crate::wifi::mac::{SEQUENCE_MODULUS, sequence_distance};

/// Outcome for the packets of MPDUs after an acknowledgment or the end of retries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settled {
    pub first_try: u32,
    pub after_retry: u32,
    pub bytes: u64,
    pub dropped: u32,
    /// Number of MPDUs of this link's PPDU acknowledged now; the other fields count packets, of whatever link.
    pub mpdus: u32,
}

impl Originator {
    /// Reports the outcome of the PPDU to rate control.
    pub fn report_rate(&mut self, settled: Settled) {
        let plan = &self.plan;
        if let Some(control) = &mut self.rate_control {
            control.report(plan.mpdus, settled.mpdus, plan.bytes, plan.more_data);
        }
    }

    /// An ACK arrived for the one MPDU in flight.
    pub fn acknowledged(&mut self, holders: &mut Holders) -> Settled {
        self.sync_due = false;
        self.upper.unheard = false;
        self.settle(|_| true, u32::MAX, Instant::ZERO, holders)
    }

    /// A Block Ack arrived: bit i of `bitmap` is for number `start + i`.
    pub fn block_acknowledged(
        &mut self,
        start: u16,
        bitmap: &AckBitmap,
        retry_limit: u32,
        oldest: Instant,
        holders: &mut Holders,
    ) -> Settled {
        if std::mem::take(&mut self.request_due) {
            // It answers the request, which announced the start of the window.
            self.upper.untold = None;
        }
        self.request_retries = 0;
        self.sync_due = false;
        self.upper.unheard = false;
        let acked = |sequence| bitmap.contains(sequence_distance(start, sequence));
        let settled = if self.role.settles_others {
            self.settle_each((acked, true), (retry_limit, oldest), holders)
        } else {
            self.settle(acked, retry_limit, oldest, holders)
        };
        if settled.dropped > 0 {
            self.request_due = self.has_agreement();
        }
        settled
    }

    /// No ACK came for the MPDU in flight: sends it again, unless no retry is left.
    pub fn not_acknowledged(&mut self, retry_limit: u32, oldest: Instant, holders: &mut Holders) -> Settled {
        let agreement = self.has_agreement();
        let settled = self.settle(|_| false, retry_limit, oldest, holders);
        if settled.dropped > 0 && agreement {
            self.request_due = true;
        }
        // Under an agreement, the retransmission may go in an A-MPDU, which the receiver would take as proof of
        // acknowledgment.
        self.sync_due |= agreement || settled.dropped > 0;
        self.upper.unheard |= self.sync_due && self.gate.padding.is_some();
        settled
    }

    /// No Block Ack came: requests it at the control rate of the most reliable rate. A rate that was only tried may be
    /// one that the peer cannot decode.
    pub fn block_ack_missed(&mut self) {
        self.request_due = true;
        self.upper.unheard = self.gate.padding.is_some();
        if let Some(control) = &self.rate_control {
            self.control_mode = control.surest().control_mode;
        }
    }

    /// No Block Ack came after a request. After `retry_limit` attempts, all MPDUs in flight are given up and the window
    /// moves on (802.11-2020 clause 10.25.6).
    pub fn request_missed(&mut self, retry_limit: u32, holders: &mut Holders) -> Settled {
        self.request_retries += 1;
        self.upper.unheard = self.gate.padding.is_some();
        if self.request_retries <= retry_limit {
            return Settled::default();
        }
        self.request_due = false;
        self.request_retries = 0;
        self.sync_due = true;
        self.settle(|_| false, 0, Instant::ZERO, holders)
    }

    /// A CTS arrived.
    pub fn rts_answered(&mut self) {
        self.rts_retries = 0;
        self.others.iter_mut().for_each(Self::rts_answered);
    }

    /// No CTS arrived, so no part of the PPDU was sent. After `short_retry_limit` attempts the PPDU is given up
    /// (802.11-2020 clause 10.3.4.4).
    pub fn rts_missed(&mut self, short_retry_limit: u32, holders: &mut Holders) -> Settled {
        self.rts_retries += 1;
        if self.rts_retries > short_retry_limit {
            self.rts_retries = 0;
            let settled = self.settle(|_| false, 0, Instant::ZERO, holders);
            self.request_due |= self.has_agreement();
            self.sync_due = true;
            return settled;
        }
        for mpdu in &mut self.upper.window {
            if mpdu.state == MpduState::InFlight(self.role.link) {
                mpdu.state = MpduState::Waiting;
                self.upper.waiting += 1;
            }
        }
        Settled::default()
    }

    /// Settles every MPDU in flight on this link: acknowledged, to be sent again, or given up because it was retried
    /// `retry_limit` times or queued before `oldest`.
    fn settle(
        &mut self,
        acked: impl Fn(u16) -> bool,
        retry_limit: u32,
        oldest: Instant,
        holders: &mut Holders,
    ) -> Settled {
        if let Some(settled) = self.settle_all(&acked, holders) {
            return settled;
        }
        self.settle_each((acked, false), (retry_limit, oldest), holders)
    }

    /// Fast version of [`settle_each`](Self::settle_each) for the case that all of the window was sent and `acked` and
    /// only counts are needed; otherwise returns `None` and changes nothing.
    pub(super) fn settle_all(
        &mut self,
        acked: impl Fn(u16) -> bool,
        holders: &mut Holders,
    ) -> Option<Settled> {
        if self.upper.reports_acks
            || self.upper.untold.is_some()
            || self.limits.joins_packets()
            || self.upper.fates.is_asked()
        {
            return None;
        }
        let mut settled = Settled { mpdus: self.upper.window.len() as u32, ..Settled::default() };
        let in_flight = MpduState::InFlight(self.role.link);
        for mpdu in &self.upper.window {
            if mpdu.state != in_flight || !acked(mpdu.sequence) {
                return None;
            }
            settled.bytes += u64::from(mpdu.bytes);
            settled.after_retry += u32::from(mpdu.retries > 0);
        }
        settled.first_try = settled.mpdus - settled.after_retry;
        for mpdu in self.upper.window.drain(..) {
            mpdu.msdus.release(holders);
        }
        Some(settled)
    }

    /// Settles every MPDU in flight on this link, one by one, and with `others` those on other links that are `acked`.
    pub(super) fn settle_each(
        &mut self,
        (acked, others): (impl Fn(u16) -> bool, bool),
        (retry_limit, oldest): (u32, Instant),
        holders: &mut Holders,
    ) -> Settled {
        let mut settled = Settled::default();
        for mpdu in &mut self.upper.window {
            let MpduState::InFlight(link) = mpdu.state else { continue };
            if link != self.role.link && !(others && acked(mpdu.sequence)) {
                continue;
            }
            let msdus = mpdu.msdus.count();
            mpdu.is_decided = false;
            mpdu.state = if acked(mpdu.sequence) {
                // An MPDU of another link says nothing of this link's rate.
                settled.mpdus += u32::from(link == self.role.link);
                if mpdu.retries == 0 {
                    settled.first_try += msdus;
                } else {
                    settled.after_retry += msdus;
                }
                settled.bytes += u64::from(mpdu.bytes);
                self.upper.fates.note(&mpdu.msdus, true, holders);
                MpduState::Delivered
            } else if mpdu.retries >= retry_limit || mpdu.queued_at < oldest {
                // A copy was counted before.
                settled.dropped += if self.upper.sent.is_some() && mpdu.retries > 0 { 0 } else { msdus };
                self.upper.fates.note(&mpdu.msdus, false, holders);
                MpduState::GivenUp
            } else {
                mpdu.retries += 1;
                self.upper.waiting += 1;
                MpduState::Waiting
            };
        }
        while self.upper.window.front().is_some_and(Mpdu::is_settled) {
            let Some(mpdu) = self.upper.window.pop_front() else { break };
            let passed_up = self.is_passed_up(&mpdu);
            let buffer = mpdu.msdus.into_each(|packet| {
                if self.upper.reports_acks && packet.class == PayloadClass::Ack {
                    self.upper.settled_acks.push_back((packet, passed_up));
                } else {
                    holders.release(packet);
                }
            });
            if buffer.capacity() > 0 {
                self.upper.spare.push(buffer);
            }
        }
        debug_assert!(self.upper.window.len() <= usize::from(SEQUENCE_MODULUS / 2));
        settled
    }

    /// Whether the recipient has certainly passed up an MPDU that leaves the window.
    ///
    /// After an MPDU that was given up, the recipient still holds the later MPDUs. It releases them when it learns the
    /// start of the window, from a request or from a number beyond its own window (802.11-2020 clause 10.25.6).
    fn is_passed_up(&mut self, mpdu: &Mpdu) -> bool {
        if mpdu.state == MpduState::GivenUp {
            // Without an agreement nothing is reordered.
            self.upper.untold = (self.limits.window > 1).then_some(mpdu.sequence);
            return false;
        }
        let window = self.limits.recipient_window();
        self.upper.untold = self.upper.untold.filter(|gap| sequence_distance(*gap, mpdu.sequence) < window);
        self.upper.untold.is_none()
    }
}
