//! Which packets a link loses.

use tacit_packet::units::Ratio;

use crate::random::Stream;

/// Loss process of a link, not counting queue drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    #[default]
    None,
    /// Each packet independently with the same probability.
    Bernoulli(Ratio),
    /// By a channel with good and bad periods.
    GilbertElliott(GilbertElliott),
    /// Exactly these packets, counted from 0 in the order in which they enter the link; sorted ascending.
    Scripted(Vec<u64>),
}

/// A channel of two states (E. N. Gilbert, Bell System Technical Journal 39(5), 1960; E. O. Elliott, the
/// same 42(5), 1963).
///
/// It may change state before each packet, not with time. The model therefore has the same meaning on a wire, where
/// losses have no time scale; its parameters are those that the literature fits to packet traces; and bursts of losses
/// have the same length with any other traffic. An unused channel does not recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Loss rate in the good state, which is the initial one.
    pub good: Ratio,
    /// Loss rate in the bad state.
    pub bad: Ratio,
    /// Probability that the good state ends before a packet.
    pub good_to_bad: Ratio,
    /// Probability that the bad state ends before a packet; its mean duration is the inverse, in packets.
    pub bad_to_good: Ratio,
}

impl GilbertElliott {
    /// Long-term loss rate, for reports; that of the good state if the state never changes.
    pub fn mean_loss(&self) -> f64 {
        let (to_bad, to_good) = (self.good_to_bad.as_fraction(), self.bad_to_good.as_fraction());
        let in_bad = if to_bad > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 };
        in_bad * self.bad.as_fraction() + (1.0 - in_bad) * self.good.as_fraction()
    }
}

/// A loss model in use.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    loss: Loss,
    /// The state of a Gilbert-Elliott channel.
    in_bad: bool,
    stream: Stream,
    seen: u64,
}

impl LossProcess {
    pub(crate) fn new(loss: Loss, stream: Stream) -> Self {
        Self { loss, in_bad: false, stream, seen: 0 }
    }

    /// True if it never loses a packet.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.loss, Loss::None)
    }

    /// True if the next packet is lost.
    #[inline]
    pub(crate) fn takes(&mut self) -> bool {
        // Most links lose nothing, and need not count packets.
        !matches!(self.loss, Loss::None) && self.takes_some()
    }

    fn takes_some(&mut self) -> bool {
        let number = self.seen;
        self.seen += 1;
        match &self.loss {
            Loss::None => false,
            Loss::Bernoulli(ratio) => self.stream.hit(*ratio),
            Loss::GilbertElliott(channel) => {
                let channel = *channel;
                self.takes_in_burst(channel)
            }
            Loss::Scripted(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }

    /// Out of line, so that memoryless loss processes are not slowed down by this one.
    #[inline(never)]
    fn takes_in_burst(&mut self, channel: GilbertElliott) -> bool {
        let leaves = if self.in_bad { channel.bad_to_good } else { channel.good_to_bad };
        self.in_bad ^= self.stream.hit(leaves);
        self.stream.hit(if self.in_bad { channel.bad } else { channel.good })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: GilbertElliott = GilbertElliott {
        good: share(1_000_000),
        bad: share(500_000_000),
        good_to_bad: share(10_000_000),
        bad_to_good: share(100_000_000),
    };

    const fn share(parts: u32) -> Ratio {
        match Ratio::from_parts_per_billion(parts) {
            Some(ratio) => ratio,
            None => panic!("a share is at most one"),
        }
    }

    /// The fate of `packets` packets in `channel`; true for a loss.
    fn losses(channel: GilbertElliott, packets: usize) -> Vec<bool> {
        let mut process = LossProcess::new(Loss::GilbertElliott(channel), Stream::new(1, "bursts"));
        (0..packets).map(|_| process.takes()).collect()
    }

    fn mean_run(losses: &[bool]) -> f64 {
        let runs = losses.windows(2).filter(|pair| pair[0] && !pair[1]).count();
        losses.iter().filter(|lost| **lost).count() as f64 / runs as f64
    }

    #[test]
    fn the_long_run_share_is_the_stationary_one() {
        // 1/11 of the time bad: 0.5 / 11 + 0.001 * 10 / 11.
        assert!((CHANNEL.mean_loss() - 0.04636).abs() < 1e-5);
        let lost = losses(CHANNEL, 2_000_000).iter().filter(|lost| **lost).count() as f64 / 2e6;
        assert!((lost / CHANNEL.mean_loss() - 1.0).abs() < 0.02, "{lost}");
    }

    #[test]
    fn bursts_last_as_long_as_the_bad_state() {
        // Every packet is lost in the bad state, so the lengths of loss bursts are geometric with mean 1 / 0.1.
        let all = GilbertElliott { good: Ratio::ZERO, bad: Ratio::ONE, ..CHANNEL };
        let mean = mean_run(&losses(all, 2_000_000));
        assert!((mean - 10.0).abs() < 0.2, "{mean}");
    }

    #[test]
    fn losses_come_together_as_independent_ones_do_not() {
        let share = CHANNEL.mean_loss();
        let bursts = losses(CHANNEL, 2_000_000);
        let pairs = bursts.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        let after_a_loss = pairs / bursts.iter().filter(|lost| **lost).count() as f64;
        // Almost all losses are in the bad state; the next packet is lost if the state does not change and a loss is
        // drawn.
        assert!((after_a_loss - 0.9 * 0.5).abs() < 0.02, "{after_a_loss}, {share} if independent");
    }

    #[test]
    fn a_channel_that_never_turns_bad_is_bernoulli() {
        let good = GilbertElliott { good_to_bad: Ratio::ZERO, good: share(50_000_000), ..CHANNEL };
        let lost = losses(good, 1_000_000).iter().filter(|lost| **lost).count() as f64 / 1e6;
        assert!((lost - 0.05).abs() < 0.001, "{lost}");
    }
}
