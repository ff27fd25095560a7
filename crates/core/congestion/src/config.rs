//! Configuration of congestion control.

use super::external::External;
use super::pacing::Pacing;
use super::window::Window;
use super::{bbr, cubic, rre};

/// The controller, with its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681 with NewReno's window arithmetic.
    NewReno,
    /// RFC 9438.
    Cubic(cubic::Config),
    /// BBR version 1 (Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00), with
    /// the compensation for aggregated ACKs of Linux 5.1 and later.
    Bbr(bbr::Config),
    /// BBR version 3 (draft-ietf-ccwg-bbr-06), which also answers losses of more than 2 %.
    Bbr3,
    /// The co-designed, receiver-based BBR of TACK (successor paper section VI-D). If the receiver reports no rates, it
    /// uses the sender's.
    TackBbr(bbr::TackConfig),
    /// Vegas (Brakmo and Peterson 1995): 2 to 4 segments in the path's queues, losses as NewReno.
    Vegas,
    /// Copa (Arun and Balakrishnan 2018), default mode and TCP-competitive mode.
    Copa,
    /// PCC Allegro (Dong et al. 2015): rates are tried, and their utilities compared.
    Allegro,
    /// PCC Vivace (Dong et al. 2018): the rate follows the gradient of a utility.
    Vivace,
    /// Prague (draft-briscoe-iccrg-prague-congestion-control), the scalable control of L4S. Over TCP only.
    Prague,
    /// TCP-RRE (Leong et al., ICNP 2013): paces at the rate at which the receiver receives, read off timestamps.
    Rre(rre::Config),
    /// A user's own controller.
    External(External),
}

impl Algorithm {
    /// CUBIC with its default options.
    pub const CUBIC: Self = Self::Cubic(cubic::Config::USUAL);
    /// The co-designed BBR of TACK with its default options.
    pub const TACK_BBR: Self = Self::TackBbr(bbr::TackConfig::USUAL);
    /// BBR with its default options.
    pub const BBR: Self = Self::Bbr(bbr::Config::USUAL);
    /// Whether it answers the share of congestion marks, as L4S requires (RFC 9331 section 4.3).
    pub const fn is_scalable(self) -> bool {
        matches!(self, Self::Prague)
    }

    /// TCP-RRE with its default options.
    pub const RRE: Self = Self::Rre(rre::Config { target: None, memory: rre::Memory::Address });
}

/// Configuration of the congestion control of one sender, of any transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The controller.
    pub algorithm: Algorithm,
    /// Whether packets are spaced in time.
    pub pacing: Pacing,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Most segments by which the congestion window grows per ACK in the slow start of NewReno, CUBIC and Vegas: `L` of
    /// RFC 3465, which recommends 2. Linux has no such limit, which matters if there are fewer ACKs than one per two
    /// segments.
    pub byte_counting_limit: u32,
}

impl Config {
    /// The initial window in bytes for packets of `mss` bytes.
    pub fn initial_window_bytes(&self, mss: u32) -> u64 {
        u64::from(self.initial_window.max(1)) * u64::from(mss)
    }

    /// The initial state of a connection's window for packets of `mss` bytes.
    pub(super) fn window(&self, mss: u32) -> Window {
        Window::new(self.initial_window_bytes(mss), mss, self.byte_counting_limit)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { algorithm: Algorithm::CUBIC, pacing: Pacing::Auto, initial_window: 10, byte_counting_limit: 2 }
    }
}

/// This controller, with the default options otherwise.
impl From<Algorithm> for Config {
    fn from(algorithm: Algorithm) -> Self {
        Self { algorithm, ..Self::default() }
    }
}
