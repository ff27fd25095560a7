//! Explicit Congestion Notification (RFC 3168 section 6.1): the state of each half of a connection.

use tacit_packet::Ecn;
use tacit_packet::position::Position;
use tacit_packet::tcp::Flags;

/// Flags of a SYN that offers ECN, and of the SYN-ACK that accepts (RFC 3168 section 6.1.1).
pub(crate) const OFFER: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);
pub(crate) const ACCEPTANCE: Flags = Flags::ECE;

/// True for an ECN-setup SYN.
pub(crate) fn offers(flags: Flags) -> bool {
    flags.contains(OFFER)
}

/// True for an ECN-setup SYN-ACK. One that mirrors both flags comes from a host that copies flags it does not know.
pub(crate) fn accepts(flags: Flags) -> bool {
    flags.contains(ACCEPTANCE) && !flags.contains(Flags::CWR)
}

/// The receiver's state: CE was received, and the sender has not confirmed it with CWR yet; for a scalable control,
/// whether the last data had CE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Echo(bool);

impl Echo {
    /// An acceptable data segment arrived. CWR ends the echo; CE in the same packet starts it again (section 6.1.3).
    pub fn on_data(&mut self, codepoint: Ecn, flags: Flags) {
        if flags.contains(Flags::CWR) {
            self.0 = false;
        }
        if codepoint == Ecn::Ce {
            self.0 = true;
        }
    }

    /// Data for a scalable control arrived (RFC 8257 section 3.2). Data before it must have been acknowledged if this
    /// [changes](Self::changes_with) the echo.
    pub fn on_scalable_data(&mut self, codepoint: Ecn) {
        self.0 = codepoint == Ecn::Ce;
    }

    /// Whether data with `codepoint` is marked otherwise than that before it.
    pub fn changes_with(self, codepoint: Ecn) -> bool {
        self.0 != (codepoint == Ecn::Ce)
    }

    /// Flags for the next ACKs.
    pub fn flags(self) -> Flags {
        if self.0 { Flags::ECE } else { Flags::NONE }
    }
}

/// The sender's state: one reduction per window of data (section 6.1.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reductions {
    /// An ACK up to here belongs to a window that was already reduced.
    answered: Position,
    /// The next new data carries CWR.
    cwr_due: bool,
}

impl Reductions {
    pub fn new(una: Position) -> Self {
        Self { answered: una, cwr_due: false }
    }

    /// True if an ECE in an ACK for `ack` requires a reduction.
    pub fn is_news(&self, ack: Position) -> bool {
        ack > self.answered
    }

    /// The window was reduced, for any reason, when data up to `snd_nxt` had been sent.
    pub fn on_reduced(&mut self, snd_nxt: Position) {
        self.answered = snd_nxt;
        self.cwr_due = true;
    }

    /// The flags of the next segment with new data; each call clears them.
    pub fn take_flags(&mut self) -> Flags {
        if core::mem::take(&mut self.cwr_due) { Flags::CWR } else { Flags::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::units::SeqNumber;

    #[test]
    fn the_echo_lasts_from_ce_to_cwr() {
        let mut echo = Echo::default();
        echo.on_data(Ecn::Ect0, Flags::ACK);
        assert_eq!(echo.flags(), Flags::NONE);
        echo.on_data(Ecn::Ce, Flags::ACK);
        echo.on_data(Ecn::Ect0, Flags::ACK);
        assert_eq!(echo.flags(), Flags::ECE);
        echo.on_data(Ecn::Ce, Flags::ACK | Flags::CWR);
        assert_eq!(echo.flags(), Flags::ECE);
        echo.on_data(Ecn::Ect0, Flags::ACK | Flags::CWR);
        assert_eq!(echo.flags(), Flags::NONE);
    }

    #[test]
    fn a_window_is_reduced_once_and_told_once() {
        let at = |byte| Position::first(SeqNumber(0)) + byte;
        let mut reductions = Reductions::new(at(1));
        assert!(reductions.is_news(at(1001)));
        reductions.on_reduced(at(10_001));
        assert!(!reductions.is_news(at(10_001)));
        assert!(reductions.is_news(at(10_002)));
        assert_eq!(reductions.take_flags(), Flags::CWR);
        assert_eq!(reductions.take_flags(), Flags::NONE);
    }

    #[test]
    fn a_host_that_copies_reserved_bits_does_not_speak_ecn() {
        assert!(offers(Flags::SYN | OFFER));
        assert!(!offers(Flags::SYN | Flags::ECE));
        assert!(accepts(Flags::SYN | Flags::ACK | Flags::ECE));
        assert!(!accepts(Flags::SYN | Flags::ACK | OFFER));
        assert!(!accepts(Flags::SYN | Flags::ACK));
    }
}
