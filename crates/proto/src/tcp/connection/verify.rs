//! Invariants of a connection at any time, once all it has to send was taken.

use super::{Connection, State};
use crate::tcp::sender::Timer;

impl Connection {
    /// Verifies that a timer will wake all that waits: data or a SYN for its acknowledgment (RFC 9293 section 3.8.1, RFC 6298
    /// section 5.1), the rest of the data for a window that opens (RFC 9293 section 3.8.6.1).
    ///
    /// # Errors
    /// Where data or a SYN would wait for ever if the peer said nothing more.
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
