//! TACK as a scenario says it, and the configuration of a connection that it becomes.

use tacit_proto::packet::IpVersion;
use tacit_proto::tack::{AckClock, Config};
use tacit_proto::units::{Bytes, Duration};

/// `[tack]`: both ends of each TACK connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TackPlan {
    /// When receivers acknowledge: which rule.
    pub rule: AckRule,
    /// ACKs per round-trip time, but for [`AckRule::Delayed`].
    pub beta: u32,
    /// Full-sized packets per ACK, where they are not as the rule usually has them.
    pub every: Option<u32>,
    /// Least time between ACKs, for [`AckRule::Tack`].
    pub min_interval: Duration,
    /// Longest an ACK is held, for [`AckRule::Delayed`].
    pub ack_delay: Duration,
    /// All else, but for IP and MTU, which are those of all traffic.
    pub config: Config,
}

/// A rule by which a receiver acknowledges: see [`AckClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// The rarest of by number, by the round-trip time as it is and by a least interval.
    Tack,
    /// The rarer of by number and by the smallest round-trip time.
    Paper,
    /// The more frequent.
    Delayed,
}

impl From<Config> for TackPlan {
    /// Fields that only the other rule needs have their defaults.
    fn from(config: Config) -> Self {
        /// QUIC's `max_ack_delay` (RFC 9000 section 18.2).
        const USUAL_DELAY: Duration = Duration::from_millis(25);
        const USUAL_BETA: u8 = 4;
        let usual = Self {
            rule: AckRule::Tack,
            beta: USUAL_BETA.into(),
            every: None,
            min_interval: USUAL_DELAY,
            ack_delay: USUAL_DELAY,
            config,
        };
        match config.ack_clock {
            AckClock::Tack { beta, every, min_interval } => {
                let every = (every != usual_every(AckRule::Tack)).then_some(every.into());
                Self { beta: beta.into(), every, min_interval, ..usual }
            }
            AckClock::Paper { beta, every } => {
                Self { rule: AckRule::Paper, beta: beta.into(), every: Some(every.into()), ..usual }
            }
            AckClock::Delayed { every, delay } => {
                Self { rule: AckRule::Delayed, every: Some(every.into()), ack_delay: delay, ..usual }
            }
        }
    }
}

/// Full-sized packets per ACK where the scenario does not say: TCP's two for delayed ACKs (RFC 9293 section 3.8.6.3).
fn usual_every(rule: AckRule) -> u8 {
    match rule {
        AckRule::Tack => AckClock::USUAL.every(),
        AckRule::Paper => AckClock::PAPER.every(),
        AckRule::Delayed => 2,
    }
}

impl TackPlan {
    /// The configuration of a connection over `ip` whose packets have up to `mtu` bytes.
    pub fn config(&self, ip: IpVersion, mtu: Bytes) -> Config {
        let small = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let (beta, every) = (small(self.beta), self.every.map_or(usual_every(self.rule), small));
        let ack_clock = match self.rule {
            AckRule::Tack => AckClock::Tack { beta, every, min_interval: self.min_interval },
            AckRule::Paper => AckClock::Paper { beta, every },
            AckRule::Delayed => AckClock::Delayed { every, delay: self.ack_delay },
        };
        // A connection of one stream, which may have all there is.
        let stream_buffer = self.config.max_receive_buffer;
        Config { ip, mtu, max_mtu: mtu, ack_clock, stream_buffer, ..self.config }
    }
}
