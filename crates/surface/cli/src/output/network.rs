//! Failures of commands that communicate with other machines.

use tacit_apps::copy::CopyError;
use tacit_apps::node::NodeError;
use tacit_apps::pair::PairError;
use tacit_apps::trust::TrustError;
use tacit_net::NetError;

use super::{BAD_INPUT, FAILED, Failure};

/// A server refused a request, or its answer is not valid.
const NO_ANSWER: u8 = 3;
/// A connection could not be established, or failed permanently.
const NO_NETWORK: u8 = 4;
/// A response body is incomplete.
const NOT_WHOLE: u8 = 5;

/// Why a command that communicates with another machine ends without a result.
#[derive(Debug, thiserror::Error)]
pub enum NetworkFailure {
    /// A file could not be fetched, or others could not be served.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A key file is not valid, or a peer is not trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is no connection over TACK.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A copy ended before its summary.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// Pairing failed.
    #[error(transparent)]
    Pair(#[from] PairError),
}

impl NetworkFailure {
    /// The failure as one line. Text from a peer is stripped of terminal control characters.
    pub fn one_line(&self) -> String {
        match self {
            Self::Net(error) => error.to_string(),
            Self::Trust(_) | Self::Node(_) | Self::Copy(_) | Self::Pair(_) => printable(&self.to_string()),
        }
    }

    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Copy(CopyError::Refused(_)) | Self::Node(NodeError::Refused { .. }) => NO_ANSWER,
            Self::Node(NodeError::Connection { .. } | NodeError::Resolve { .. })
            | Self::Copy(CopyError::Io(_) | CopyError::Protocol(_)) => NO_NETWORK,
            Self::Pair(PairError::Stream(_) | PairError::TimedOut) => NO_NETWORK,
            Self::Net(NetError::Checksum { .. }) | Self::Pair(PairError::WrongCode | PairError::Guessed) => {
                FAILED
            }
            Self::Net(
                NetError::Status { .. }
                | NetError::Redirects(_)
                | NetError::Head(_)
                | NetError::Downgrade { .. },
            ) => NO_ANSWER,
            Self::Net(
                NetError::Resolve { .. }
                | NetError::Connect { .. }
                | NetError::Tls { .. }
                | NetError::Timeout(_)
                | NetError::Broken(_),
            ) => NO_NETWORK,
            Self::Net(
                NetError::Misplaced | NetError::Hop(_) | NetError::Range(_) | NetError::Unrepaired(_),
            ) => NOT_WHOLE,
            Self::Net(_) | Self::Trust(_) | Self::Node(_) | Self::Copy(_) | Self::Pair(_) => BAD_INPUT,
        }
    }
}

failures_of!(Network: NetError, TrustError, NodeError, PairError, CopyError);

/// `text` as one line without terminal control characters, because part of it comes from a peer.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // Of the invisible characters, only those that change the order of the text are replaced.
        let reorders =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c.is_control() || reorders || matches!(c, '\u{2028}' | '\u{2029}') {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let shown = printable("a b\tü\n\u{1b}[31m\u{9b}\u{202e}\u{2066}\u{200f}\u{2028}\u{7f}");
        assert_eq!(shown, "a b\\tü\\n\\u{1b}[31m\\u{9b}\\u{202e}\\u{2066}\\u{200f}\\u{2028}\\u{7f}");
        assert!(shown.chars().all(|c| !c.is_control()));
    }
}
