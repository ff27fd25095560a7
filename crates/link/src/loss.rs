//! Which packets a link loses.

use tacit_proto::units::Ratio;

use crate::random::Stream;

/// What a link loses, apart from what its queue drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    #[default]
    None,
    /// Each packet with the same chance, independently.
    Bernoulli(Ratio),
    /// Exactly these packets, counted from 0 in the order they enter the link; sorted ascending.
    Scripted(Vec<u64>),
}

/// A loss model at work.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    loss: Loss,
    stream: Stream,
    seen: u64,
}

impl LossProcess {
    pub(crate) fn new(loss: Loss, stream: Stream) -> Self {
        Self { loss, stream, seen: 0 }
    }

    /// True when the next packet is lost.
    #[inline]
    pub(crate) fn takes(&mut self) -> bool {
        let number = self.seen;
        self.seen += 1;
        match &self.loss {
            Loss::None => false,
            Loss::Bernoulli(ratio) => self.stream.hit(*ratio),
            Loss::Scripted(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}
