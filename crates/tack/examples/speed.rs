//! How fast octets cross loopback, and what that costs: `cargo run --release -p tacit-tack --example speed`.

use std::sync::Arc;
use std::time::Instant;

use tacit_tack::{Config, Endpoint, Identity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Octets that are sent.
const OCTETS: usize = 1 << 30;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "an edge that measures")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let identity = Identity::generate();
    let key = identity.public();
    let server =
        Endpoint::server(([127, 0, 0, 1], 0).into(), identity, Config::default(), Arc::new(|_| true))?;
    let client = Endpoint::client(server.local_addr(), Identity::generate(), Config::default())?;
    let (there, here) = tokio::join!(server.accept(), client.connect(server.local_addr(), key));
    let (there, here) = (there.ok_or("no client came")?, here?);
    let began = Instant::now();
    let reading = tokio::spawn(async move {
        let (_, mut receive) = there.accept().await.map_err(std::io::Error::other)?;
        let (mut buffer, mut read) = (vec![0; 1 << 20], 0);
        loop {
            match receive.read(&mut buffer).await? {
                0 => return Ok::<_, std::io::Error>((read, there)),
                len => read += len,
            }
        }
    });
    let (mut send, _receive) = here.open().await?;
    let piece = vec![7; 1 << 20];
    for _ in 0..OCTETS / piece.len() {
        send.write_all(&piece).await?;
    }
    send.shutdown().await?;
    let (read, _there) = reading.await??;
    let stats = here.stats();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{:.0} Mb/s, {} packets again, {} ACKs for {} packets",
        read as f64 * 8e-6 / seconds,
        stats.packets_retransmitted,
        stats.acks_received,
        stats.data_packets_sent
    );
    Ok(())
}
