//! A wire between two network namespaces that cuts packets that leave in one piece, as a network card without segmentation
//! offload does. Over loopback the kernel never cuts: how many datagrams a stack hands it at once decides there how much a stack costs.

use std::process::Command;

use anyhow::{Result, bail};

/// The end of the wire at which servers are.
const SERVER: &str = "198.51.100.1";
const CLIENT: &str = "198.51.100.2";

/// Packets of one piece that the wire takes: each crosses by itself.
const GSO_MAX_SEGS: &str = "1";

/// The wire; its namespaces go with it.
#[derive(Debug)]
pub struct Wire {
    server: String,
    client: String,
}

fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(words).output()?;
    if !output.status.success() {
        bail!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

impl Wire {
    /// Lays a wire.
    pub fn new() -> Result<Self> {
        let name = |end: &str| format!("tacit-peers-{}-{end}", std::process::id());
        let wire = Self { server: name("server"), client: name("client") };
        ip(&["netns", "add", &wire.server])?;
        ip(&["netns", "add", &wire.client])?;
        let [server, client] = [wire.server.as_str(), wire.client.as_str()];
        ip(&["-n", server, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", client])?;
        for (namespace, address) in [(server, SERVER), (client, CLIENT)] {
            ip(&["-n", namespace, "address", "add", &format!("{address}/24"), "dev", "wire"])?;
            ip(&["-n", namespace, "link", "set", "dev", "wire", "gso_max_segs", GSO_MAX_SEGS])?;
            ip(&["-n", namespace, "link", "set", "dev", "wire", "up"])?;
        }
        Ok(wire)
    }

    /// Where servers listen.
    pub fn address() -> String {
        format!("{SERVER}:4433")
    }

    /// A command that runs a program at one of the ends.
    pub fn enter(&self, serves: bool) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", if serves { &self.server } else { &self.client }]);
        command
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            // One that was not made cannot go.
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}
