//! TACK as a scenario says it, and the configuration of a connection that it becomes.

use tacit_proto::packet::IpVersion;
use tacit_proto::tack::{AckClock, Config};
use tacit_proto::units::{Bytes, Duration};

/// `[tack]`: both ends of each TACK connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TackPlan {
    /// When receivers acknowledge: which rule.
    pub rule: AckRule,
    /// ACKs per smallest round-trip time, for [`AckRule::Tack`].
    pub beta: u32,
    /// Full-sized packets per ACK.
    pub every: u32,
    /// Longest an ACK is held, for [`AckRule::Delayed`].
    pub ack_delay: Duration,
    /// All else, but for IP and MTU, which are those of all traffic.
    pub config: Config,
}

/// A rule by which a receiver acknowledges: see [`AckClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// The rarer of by number and by time.
    Tack,
    /// The more frequent.
    Delayed,
}

impl From<Config> for TackPlan {
    /// What the other rule would need is as usual.
    fn from(config: Config) -> Self {
        /// QUIC's `max_ack_delay` (RFC 9000 section 18.2).
        const USUAL_DELAY: Duration = Duration::from_millis(25);
        const USUAL_BETA: u8 = 4;
        let (rule, beta, every, ack_delay) = match config.ack_clock {
            AckClock::Tack { beta, every } => (AckRule::Tack, beta, every, USUAL_DELAY),
            AckClock::Delayed { every, delay } => (AckRule::Delayed, USUAL_BETA, every, delay),
        };
        Self { rule, beta: beta.into(), every: every.into(), ack_delay, config }
    }
}

impl TackPlan {
    /// The configuration of a connection over `ip` whose packets have up to `mtu` octets.
    pub fn config(&self, ip: IpVersion, mtu: Bytes) -> Config {
        let small = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let every = small(self.every);
        let ack_clock = match self.rule {
            AckRule::Tack => AckClock::Tack { beta: small(self.beta), every },
            AckRule::Delayed => AckClock::Delayed { every, delay: self.ack_delay },
        };
        // A connection of one stream, which may have all there is.
        let stream_buffer = self.config.max_receive_buffer;
        Config { ip, mtu, max_mtu: mtu, ack_clock, stream_buffer, ..self.config }
    }
}
