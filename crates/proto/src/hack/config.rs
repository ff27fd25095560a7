//! Options of a driver: when an ACK waits, which ACKs ride, and within which bounds.

use tacit_rohc::hack::Coding;

use crate::units::Duration;

/// When an ACK waits for a link-layer ACK (paper section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Always; after this long it goes as a packet after all.
    Timer(Duration),
    /// Never: it is queued as a packet too, and whichever goes first goes.
    Opportunistic,
    /// While the last PPDU from the peer had More Data set.
    MoreData,
    /// As `MoreData`, and while data is about to come that an ACK provoked: the timestamp of one that was sent has not
    /// been echoed, and echoes usually take as long. The paper leaves it for future work (section 5). It needs TCP
    /// timestamps, and serves paced senders, which leave the access point no queue to announce.
    TimestampEcho,
}

/// Which ACKs ride, of those that [wait](Variant) for a link-layer ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Every one, as in the paper.
    #[default]
    Every,
    /// Those that save airtime. Of ACKs that come together and of which the last says it all, the first rides, one in
    /// `one_in`, and the last. All that wait go as packets where that takes less
    /// [airtime](super::Driver::compare_airtime), unless [`Config::appended_limit`] says how many may ride.
    ///
    /// Not with [`Variant::Opportunistic`], whose ACKs are packets too.
    Airtime {
        /// 1 thins nothing.
        one_in: u32,
    },
}

/// Configuration of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// When an ACK waits.
    pub variant: Variant,
    /// Which ACKs ride.
    pub rule: Rule,
    /// How the ACKs of a frame are coded.
    pub coding: Coding,
    /// From the reception of data to the moment the compressed ACKs for it lie in the NIC: interrupt,
    /// stack, compression, DMA. Never zero on real hosts (paper section 3.2: SIFS is too short).
    pub turnaround: Duration,
    /// Most bytes appended to one link-layer ACK; the rest rides on the next. `None` appends
    /// everything, as the paper's simulator does (section 3.3.2, footnote 7).
    pub appended_limit: Option<u32>,
    /// Nothing waits longer than this. The paper has no such limit; it keeps a promise of more data
    /// that is not kept (packets dropped for age) from ending in a retransmission timeout.
    pub hold_limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            variant: Variant::MoreData,
            rule: Rule::default(),
            coding: Coding::PerAck,
            turnaround: Duration::from_micros(100),
            // Below the smallest retransmission timeout in use, Linux's 200 ms.
            hold_limit: Duration::from_millis(150),
            appended_limit: None,
        }
    }
}
