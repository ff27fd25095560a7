//! A file for one known client.
//!
//! ```sh
//! cargo run -p tacit-tack --example file -- key client.key                           # prints CLIENT_KEY
//! cargo run -p tacit-tack --example file -- send 127.0.0.1:4433 CLIENT_KEY video.mp4 # prints SERVER_KEY
//! cargo run -p tacit-tack --example file -- receive 127.0.0.1:4433 SERVER_KEY client.key copy.mp4
//! ```
//!
//! The client keeps its identity in a file, and the server authorizes only this key. The windows of [`Config`] suit a
//! path of 100 ms at 2 Gb/s.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tacit_tack::{Config, Endpoint, Identity, IdentityError, PublicKey};
use tokio::task::spawn_blocking;

const USAGE: &str = "usage: file key KEY_FILE | file send ADDRESS CLIENT_KEY FILE | file receive ADDRESS SERVER_KEY KEY_FILE FILE";

/// Bytes per read or write.
const PIECE: usize = 256 << 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["key", path] => {
            println!("{}", identity(path.as_ref())?.public_key());
            Ok(())
        }
        ["send", address, key, path] => send(address.parse()?, key.parse()?, path.as_ref()).await,
        ["receive", address, server, key, path] => {
            receive(address, server.parse()?, identity(key.as_ref())?, path.as_ref()).await
        }
        _ => Err(USAGE.into()),
    }
}

/// Loads the identity from a file, which is created if it does not exist.
fn identity(path: &Path) -> Result<Identity, IdentityError> {
    if path.exists() {
        return Identity::load(path);
    }
    let identity = Identity::generate();
    identity.save(path)?;
    Ok(identity)
}

fn config() -> Config {
    let mut config = Config::default();
    config.receive_window(1 << 20).max_receive_window(32 << 20).max_stream_window(32 << 20);
    config.max_idle_timeout(Duration::from_secs(10));
    config
}

/// Sends the file once, to the client with this key.
async fn send(address: SocketAddr, client: PublicKey, path: &Path) -> Result<(), Box<dyn Error>> {
    use std::io::Read as _;
    let mut file = std::fs::File::open(path)?;
    let identity = Identity::generate();
    let key = identity.public_key();
    let endpoint = Endpoint::server(address, identity, config(), move |key| *key == client)?;
    println!("listening on {} with the key {key}", endpoint.local_addr());
    let connection = endpoint.accept().await.ok_or("the socket failed")?;
    let (mut send, _recv) = connection.accept_bi().await?;
    let mut piece = vec![0; PIECE];
    loop {
        // Disk reads block, so they run on another thread and do not delay packets.
        let read = spawn_blocking(move || file.read(&mut piece).map(|len| (file, piece, len)));
        let len;
        (file, piece, len) = read.await??;
        if len == 0 {
            break;
        }
        send.write_all(&piece[..len]).await?;
    }
    send.finish()?;
    send.finished().await?;
    let stats = connection.stats();
    println!(
        "sent {} bytes; {} ACKs for {} packets",
        stats.bytes_sent, stats.acks_received, stats.packets_sent
    );
    endpoint.close(0, "done");
    endpoint.wait_idle().await;
    Ok(())
}

async fn receive(
    address: &str,
    server: PublicKey,
    identity: Identity,
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;
    let mut file = std::fs::File::create_new(path)?;
    let (endpoint, connection) = Endpoint::connect_to(address, server, &identity, &config()).await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    // The peer learns of the stream by its first bytes or its end; this side has nothing to send, so it ends.
    send.finish()?;
    let (mut piece, mut total) = (vec![0; PIECE], 0);
    while let Some(len) = recv.read(&mut piece).await? {
        total += len;
        let written = spawn_blocking(move || file.write_all(&piece[..len]).map(|()| (file, piece)));
        (file, piece) = written.await??;
    }
    println!("received {total} bytes");
    // The server closes once it knows that all data has arrived.
    connection.closed().await;
    endpoint.wait_idle().await;
    Ok(())
}
