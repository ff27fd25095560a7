//! Proportional Rate Reduction (RFC 6937): during fast recovery the window shrinks ACK by ACK.

/// How much may be sent during fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// As much as fits between `pipe` and the reduced window (RFC 6675 section 5 step (C)): nothing until enough data
    /// has left the network, then one segment per segment.
    #[default]
    Rfc6675,
    /// A share of the data that each ACK delivers, so that the reduction is spread over the round trip; below the
    /// reduced window like slow start, PRR-SSRB (RFC 6937).
    Prr,
}

/// The variables of one recovery (RFC 6937 section 3), in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
    /// RecoverFS.
    flight_at_start: u64,
    /// The remaining part of sndcnt.
    allowance: u64,
}

impl Prr {
    /// Recovery begins with `flight` bytes unacknowledged.
    pub fn new(flight: u64) -> Self {
        Self { delivered: 0, out: 0, flight_at_start: flight.max(1), allowance: 0 }
    }

    /// An ACK delivered `delivered` bytes and left `pipe` in the network; `target` is the window at the end of
    /// recovery: ssthresh.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, target: u64, mss: u64) {
        self.delivered += delivered;
        self.allowance = if pipe > target {
            let share = u128::from(self.delivered) * u128::from(target);
            let due = share.div_ceil(u128::from(self.flight_at_start)) as u64;
            due.saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
            limit.min(target - pipe)
        };
    }

    /// `bytes` were sent, new or retransmitted.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// True if a segment of `bytes` may be sent.
    pub fn allows(&self, bytes: u64) -> bool {
        bytes <= self.allowance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// The first example in RFC 6937 section 3.1: twenty in flight, one lost, window halved; every second ACK sends a
    /// segment.
    #[test]
    fn a_single_loss_sends_on_every_other_ack() {
        let mut prr = Prr::new(20 * MSS);
        let mut pipe = 19 * MSS;
        let mut sent = Vec::new();
        for ack in 1..=19u64 {
            pipe -= MSS;
            prr.on_ack(MSS, pipe, 10 * MSS, MSS);
            while prr.allows(MSS) {
                prr.on_sent(MSS);
                pipe += MSS;
                sent.push(ack);
            }
        }
        assert_eq!(sent, [2, 4, 6, 8, 10, 12, 14, 17, 18, 19]);
        assert_eq!(pipe, 10 * MSS);
    }

    /// The second example: losses reduce the pipe far below ssthresh, and each ACK sends one segment more than it
    /// delivered until the window is full.
    #[test]
    fn below_the_target_each_ack_sends_one_more_than_it_delivered() {
        let mut prr = Prr::new(20 * MSS);
        let mut pipe = 4 * MSS;
        let mut counts = Vec::new();
        for _ in 0..4 {
            pipe -= MSS;
            prr.on_ack(MSS, pipe, 10 * MSS, MSS);
            let mut count = 0;
            while prr.allows(MSS) {
                prr.on_sent(MSS);
                pipe += MSS;
                count += 1;
            }
            counts.push(count);
        }
        assert_eq!(counts, [2, 2, 2, 2]);
        assert_eq!(pipe, 8 * MSS);
    }

    /// Above ssthresh the share is rounded up, so that the reduction is not larger than required; below it, unused
    /// allowance from earlier ACKs is kept (RFC 6937 section 3).
    #[test]
    fn shares_are_rounded_up_and_kept_until_they_are_used() {
        let mut prr = Prr::new(3 * MSS);
        prr.on_ack(MSS, 3 * MSS, 2 * MSS, MSS);
        assert!(prr.allows(667) && !prr.allows(668));
        let mut prr = Prr::new(20 * MSS);
        prr.on_ack(MSS, 4 * MSS, 10 * MSS, MSS);
        prr.on_ack(MSS, 3 * MSS, 10 * MSS, MSS);
        prr.on_ack(MSS, 2 * MSS, 10 * MSS, MSS);
        assert!(prr.allows(4 * MSS) && !prr.allows(4 * MSS + 1));
    }

    #[test]
    fn the_target_is_never_overshot_from_below() {
        let mut prr = Prr::new(20 * MSS);
        prr.on_ack(10 * MSS, 9 * MSS, 10 * MSS, MSS);
        assert!(prr.allows(MSS) && !prr.allows(MSS + 1));
    }
}
