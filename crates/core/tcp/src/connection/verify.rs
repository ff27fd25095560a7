//! Invariants of a connection that hold whenever all its output has been taken.

use super::{Connection, State};
use crate::sender::Timer;

impl Connection {
    /// Verifies that a timer is set for everything that waits: data or a SYN for its acknowledgment (RFC 9293 section
    /// 3.8.1, RFC 6298 section 5.1), remaining data for the window to open (RFC 9293 section 3.8.6.1).
    ///
    /// # Errors
    /// If data or a SYN would wait forever without further segments from the peer.
    pub fn check(&self) -> Result<(), String> {
        let armed = |timer| self.timers.get(timer).is_some();
        let waits = match self.state {
            State::SynSent | State::SynReceived if !self.syn_due => "a SYN",
            State::SynSent | State::SynReceived | State::Closed | State::Listen | State::TimeWait => {
                return Ok(());
            }
            _ if !self.sender.board.is_empty() => "data",
            _ if self.sender.unsent() > 0 && !armed(Timer::Persist) && !armed(Timer::Pacing) => {
                return Err(format!("holds {} bytes back, and no timer runs", self.sender.unsent()));
            }
            _ => return Ok(()),
        };
        if armed(Timer::Retransmit) || armed(Timer::Pacing) {
            return Ok(());
        }
        Err(format!("waits for the acknowledgment of {waits}, and no timer runs"))
    }
}
