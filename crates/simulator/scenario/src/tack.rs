//! The TACK settings of a scenario, and the connection configuration that results from them.

use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration};
use tacit_tack_proto::{AckClock, Config};

/// `[tack]`: both ends of each TACK connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TackPlan {
    /// The rule for when receivers acknowledge.
    pub rule: AckRule,
    /// ACKs per round-trip time, for all rules except [`AckRule::Delayed`].
    pub beta: u32,
    /// Number of full-sized packets per ACK, if it differs from the rule's default.
    pub every: Option<u32>,
    /// Minimum interval between ACKs, for [`AckRule::Tack`].
    pub min_interval: Duration,
    /// Maximum delay of an ACK, for [`AckRule::Delayed`].
    pub ack_delay: Duration,
    /// All other settings, except IP version and MTU, which are common to all traffic.
    pub config: Config,
}

/// The rule by which a receiver acknowledges; see [`AckClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// The lowest ACK rate of three limits: by packet count, by the current round-trip time, and by a minimum interval.
    Tack,
    /// The lower ACK rate of two limits: by packet count, and by the minimum round-trip time.
    Paper,
    /// The higher ACK rate of two limits: by packet count, and by a maximum delay.
    Delayed,
}

impl From<Config> for TackPlan {
    /// Fields that only other rules use have their defaults.
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

/// Default number of full-sized packets per ACK. For delayed ACKs it is two as in TCP (RFC 9293 section 3.8.6.3).
fn usual_every(rule: AckRule) -> u8 {
    match rule {
        AckRule::Tack => AckClock::USUAL.every(),
        AckRule::Paper => AckClock::PAPER.every(),
        AckRule::Delayed => 2,
    }
}

impl TackPlan {
    /// The configuration of a connection over `ip` with packets of up to `mtu` bytes.
    pub fn config(&self, ip: IpVersion, mtu: Bytes) -> Config {
        let small = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let (beta, every) = (small(self.beta), self.every.map_or(usual_every(self.rule), small));
        let ack_clock = match self.rule {
            AckRule::Tack => AckClock::Tack { beta, every, min_interval: self.min_interval },
            AckRule::Paper => AckClock::Paper { beta, every },
            AckRule::Delayed => AckClock::Delayed { every, delay: self.ack_delay },
        };
        // The connection has a single stream, which may use the whole buffer.
        let stream_buffer = self.config.max_receive_buffer;
        Config { ip, mtu, max_mtu: mtu, ack_clock, stream_buffer, ..self.config }
    }
}
