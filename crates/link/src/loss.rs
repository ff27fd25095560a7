//! Which packets a link loses.

use tacit_proto::units::Ratio;

/// What a link loses, apart from what its queue drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    #[default]
    None,
    /// Each packet with the same chance, independently.
    Bernoulli(Ratio),
    /// Exactly these packets, counted from 0 in the order they enter the link; sorted ascending.
    Scripted(Vec<u64>),
}
