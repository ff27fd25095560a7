//! What hosts know of those that they send to.

use std::collections::BTreeMap;

use crate::transport::Config;
use tacit_congestion::Algorithm;
use tacit_congestion::rre::{Memory, SharedClient};
use tacit_packet::endpoint::Ends;
use tacit_packet::units::HostId;

/// The clients of each host that uses TCP-RRE; one for all where they share an address.
#[derive(Debug, Default)]
pub(crate) struct Clients(BTreeMap<(HostId, Option<HostId>), SharedClient>);

impl Clients {
    /// The client at the other end of a connection.
    pub fn get(&mut self, config: &Config, ends: Ends) -> Option<&SharedClient> {
        let Config::Tcp(tcp) = config else { return None };
        let Algorithm::Rre(rre) = tcp.congestion.algorithm else { return None };
        let remote = match rre.memory {
            Memory::Address => None,
            Memory::Client => Some(ends.remote),
            Memory::None => return None,
        };
        Some(self.0.entry((ends.local, remote)).or_default())
    }
}
