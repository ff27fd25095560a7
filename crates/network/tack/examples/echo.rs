//! An echo server and its client.
//!
//! ```sh
//! cargo run -p tacit-tack --example echo -- server 127.0.0.1:4433
//! cargo run -p tacit-tack --example echo -- client 127.0.0.1:4433 KEY hello
//! ```
//!
//! The server prints its address and its KEY, which the client expects. It accepts every client.

use std::error::Error;
use std::net::SocketAddr;

use tacit_tack::{Config, Connection, Endpoint, Identity, PublicKey};

const USAGE: &str = "usage: echo server ADDRESS | echo client ADDRESS KEY MESSAGE";

/// Longest message, in bytes.
const MAX_MESSAGE: usize = 64 << 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", address] => server(address.parse()?).await,
        ["client", address, key, message] => client(address, key.parse()?, message).await,
        _ => Err(USAGE.into()),
    }
}

async fn server(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let identity = Identity::generate();
    let key = identity.public_key();
    let endpoint = Endpoint::server(address, identity, Config::default(), |_| true)?;
    println!("listening on {} with the key {key}", endpoint.local_addr());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            let (client, address) = (connection.peer(), connection.remote_address());
            let error = echo(&connection).await;
            eprintln!("{client} at {address}: {error}");
        });
    }
    Err("the socket failed".into())
}

/// Echoes every stream of a connection, until it ends.
async fn echo(connection: &Connection) -> Box<dyn Error> {
    loop {
        let (mut send, mut recv) = match connection.accept_bi().await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        tokio::spawn(async move {
            // A stream that fails or is too long is reset when it is dropped.
            let Ok(message) = recv.read_to_end(MAX_MESSAGE).await else { return };
            if send.write_all(&message).await.is_ok() && send.finish().is_ok() {
                let _ = send.finished().await;
            }
        });
    }
}

async fn client(address: &str, key: PublicKey, message: &str) -> Result<(), Box<dyn Error>> {
    let (endpoint, connection) =
        Endpoint::connect_to(address, key, &Identity::generate(), &Config::default()).await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(message.as_bytes()).await?;
    send.finish()?;
    let answer = recv.read_to_end(MAX_MESSAGE).await?;
    println!("{}", String::from_utf8_lossy(&answer));
    connection.close(0, "done");
    endpoint.wait_idle().await;
    Ok(())
}
