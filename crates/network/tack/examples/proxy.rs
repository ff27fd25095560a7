//! TCP connections through a TACK connection, one stream for each.
//!
//! ```sh
//! cargo run -p tacit-tack --example proxy -- exit 127.0.0.1:4433 127.0.0.1:80     # prints KEY
//! cargo run -p tacit-tack --example proxy -- entry 127.0.0.1:8080 127.0.0.1:4433 KEY
//! curl http://127.0.0.1:8080/
//! ```
//!
//! Programs connect to the entry. For each of them the exit connects to its TARGET once the program has sent data.

use std::error::Error;
use std::net::SocketAddr;

use tacit_tack::{Config, Endpoint, Identity, PublicKey, RecvStream, SendStream};
use tokio::io::{AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};

const USAGE: &str = "usage: proxy exit ADDRESS TARGET | proxy entry ADDRESS EXIT KEY";

/// Most concurrent TCP connections; further ones wait for a stream.
const CONNECTIONS: u16 = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["exit", address, target] => exit(address.parse()?, target.parse()?).await,
        ["entry", address, server, key] => entry(address.parse()?, server, key.parse()?).await,
        _ => Err(USAGE.into()),
    }
}

async fn exit(address: SocketAddr, target: SocketAddr) -> Result<(), Box<dyn Error>> {
    let identity = Identity::generate();
    let key = identity.public_key();
    let mut config = Config::default();
    config.max_concurrent_bidi_streams(CONNECTIONS);
    let endpoint = Endpoint::server(address, identity, config, |_| true)?;
    println!("listening on {} with the key {key}", endpoint.local_addr());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Ok((send, recv)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    // If the target cannot be reached, the stream is reset and the program's connection closes.
                    if let Ok(tcp) = TcpStream::connect(target).await {
                        relay(tcp, send, recv).await;
                    }
                });
            }
        });
    }
    Err("the socket failed".into())
}

async fn entry(address: SocketAddr, server: &str, key: PublicKey) -> Result<(), Box<dyn Error>> {
    let (_endpoint, connection) =
        Endpoint::connect_to(server, key, &Identity::generate(), &Config::default()).await?;
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (tcp, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            error = connection.closed() => return Err(error.into()),
        };
        let connection = connection.clone();
        tokio::spawn(async move {
            if let Ok((send, recv)) = connection.open_bi().await {
                relay(tcp, send, recv).await;
            }
        });
    }
}

/// Copies in both directions until both have ended. An error in one direction resets the other.
async fn relay(mut tcp: TcpStream, mut send: SendStream, mut recv: RecvStream) {
    let (mut read, mut write) = tcp.split();
    let up = async {
        copy(&mut read, &mut send).await?;
        send.finish()?;
        Ok::<_, std::io::Error>(send.finished().await?)
    };
    let down = async {
        copy(&mut recv, &mut write).await?;
        write.shutdown().await
    };
    let _ = tokio::try_join!(up, down);
}
