//! Options of a driver: when an ACK waits, which ACKs are appended, and within which limits.

use tacit_rohc::hack::Coding;

use tacit_packet::units::Duration;

/// When an ACK waits for a link-layer ACK (paper section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Always; after this time it is sent as a packet.
    Timer(Duration),
    /// Never: it is also queued as a packet, and the first opportunity of either kind is used.
    Opportunistic,
    /// While the last PPDU from the peer had More Data set.
    MoreData,
    /// Like `MoreData`, and also while data triggered by an ACK is about to arrive: the timestamp of a sent ACK has not
    /// been echoed, and echoes usually take this long. The paper leaves this for future work (section 5). It needs TCP
    /// timestamps, and is for paced senders, which leave no queue at the access point that More Data could announce.
    TimestampEcho,
}

/// Which of the [waiting](Variant) ACKs are appended to a link-layer ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Every one, as in the paper.
    #[default]
    Every,
    /// The ones that save airtime. If ACKs arrive together and the last one contains all their information, only the
    /// first, one in `one_in`, and the last are appended. All waiting ACKs are sent as packets if that takes less
    /// [airtime](super::Driver::compare_airtime), unless [`Config::appended_limit`] limits the appended bytes.
    ///
    /// Not with [`Variant::Opportunistic`], whose ACKs are also packets.
    Airtime {
        /// One ACK in this many is appended; 1 drops none.
        one_in: u32,
    },
}

/// Configuration of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// When an ACK waits.
    pub variant: Variant,
    /// Which ACKs are appended.
    pub rule: Rule,
    /// How the ACKs of a frame are coded.
    pub coding: Coding,
    /// Time from the reception of data until the compressed ACKs for it are in the NIC: interrupt, stack, compression,
    /// DMA. Never zero on real hosts (paper section 3.2: SIFS is too short).
    pub turnaround: Duration,
    /// Most bytes appended to one link-layer ACK; the rest waits for the next. `None` appends everything, as the
    /// paper's simulator does (section 3.3.2, footnote 7).
    pub appended_limit: Option<u32>,
    /// Longest wait of an ACK. The paper has no such limit. It is needed if announced data never arrives (packets
    /// dropped for their age), which would otherwise cause a retransmission timeout.
    pub hold_limit: Duration,
    /// Longest time without access in which ACKs overtake a waiting packet of the same station on link-layer ACKs. Beyond it they
    /// queue behind that packet, as without TCP/HACK. Ours: a client with one radio for several links (EMLSR) wins no access
    /// while its access point has data for it, so ACKs that ride would keep its packets waiting without end.
    pub overtake_limit: Duration,
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
            overtake_limit: Duration::from_millis(10),
            appended_limit: None,
        }
    }
}
