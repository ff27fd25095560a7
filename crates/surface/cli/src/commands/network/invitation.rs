//! `tacit serve --invite`: the first machine whose user has the code becomes a client, in the same port as copies.

use std::net::SocketAddr;

use tacit_apps::SERVE_PORT;
use tacit_apps::pair::{Code, Keys, Pairing};
use tacit_apps::trust::Store;
use tacit_tack::{Connection, PublicKey};

use super::pair::take;
use super::remote::SCHEME;
use crate::output::{note, printable};

/// An invitation for one machine.
pub struct Invitation(Pairing);

impl Invitation {
    /// The invitation by `code`.
    pub fn new(code: Code) -> Self {
        Self(Pairing::new(code))
    }

    /// True until a machine was admitted, or too many codes were wrong.
    pub fn is_open(&self) -> bool {
        !self.0.is_spent()
    }

    /// Serves one unknown client: it can show the code, and nothing else.
    pub async fn admit(&self, store: &Store, local_key: PublicKey, connection: &Connection) {
        let keys = Keys { server: local_key, client: connection.peer() };
        let came = match take(&self.0, store, keys, connection).await {
            Ok(peer) => format!("admitted {}, key {}", peer.name, peer.key),
            Err(failure) if self.is_open() => format!("not admitted: {failure}"),
            Err(failure) => format!("not admitted: {failure}; the invitation has ended"),
        };
        note(&printable(&format!("tacit: {came}")));
        connection.close(0, "");
    }
}

/// The command for another machine that reaches this one at `address`.
pub fn command(address: SocketAddr, code: &Code, write: bool) -> String {
    let place = if address.port() == SERVE_PORT {
        let bare = address.ip();
        if address.is_ipv6() { format!("[{bare}]") } else { bare.to_string() }
    } else {
        address.to_string()
    };
    let place = format!("{SCHEME}{code}@{place}/");
    if write { format!("tacit cp FILE {place}") } else { format!("tacit cp {place} .") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_all_that_the_other_machine_needs() {
        let code: Code = "482913057".parse().unwrap();
        let shown = |address: &str, write| command(address.parse().unwrap(), &code, write);
        assert_eq!(shown("192.168.1.5:4433", false), "tacit cp tack://482-913-057@192.168.1.5/ .");
        assert_eq!(shown("192.168.1.5:99", true), "tacit cp FILE tack://482-913-057@192.168.1.5:99/");
        assert_eq!(shown("[2001:db8::7]:4433", false), "tacit cp tack://482-913-057@[2001:db8::7]/ .");
        assert_eq!(shown("[2001:db8::7]:1", false), "tacit cp tack://482-913-057@[2001:db8::7]:1/ .");
    }
}
