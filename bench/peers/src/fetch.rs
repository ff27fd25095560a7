//! Objects by the QUIC performance protocol (draft-banks-quic-performance-00 section 2.2): a request is the length of its answer, in
//! 8 bytes, and each has a stream of its own. Over TCP requests follow each other on the only stream, as HTTP/2's do.

use std::time::Instant;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use tacit_runs::bench::processor_time;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::{LocalSet, spawn_local};

use crate::stack::{Dial, Link, Listen, Pair, Settings};

/// Bytes that are written or read at once.
const PIECE_BYTES: usize = 1 << 16;

/// The line that a client prints; programs of other languages print the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fetched {
    pub bytes: u64,
    /// Of all transfers.
    pub duration_s: f64,
    /// Of each transfer, from the attempt to connect to the last byte.
    pub times_s: Vec<f64>,
    /// Of this process.
    #[serde(default)]
    pub cpu_s: f64,
}

/// Answers all requests of all clients, until it is killed.
pub async fn serve<L: Listen<Link: 'static>>(mut listener: L) -> Result<()> {
    let accept = async move {
        loop {
            let mut link = listener.accept().await?;
            spawn_local(async move {
                while let Some(pair) = link.accept().await {
                    spawn_local(answer(pair));
                }
            });
        }
    };
    LocalSet::new().run_until(accept).await
}

/// Answers the requests on a stream. A client that has left needs nothing.
async fn answer((mut write, mut read): Pair) {
    let piece = vec![7; PIECE_BYTES];
    while let Ok(mut left) = read.read_u64().await {
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            match write.write(&piece[..len]).await {
                Ok(written) if written > 0 => left -= written as u64,
                _ => return,
            }
        }
        if write.flush().await.is_err() {
            return;
        }
    }
    let _ = write.shutdown().await;
}

/// Fetches as often as asked for, each time over a connection of its own.
pub async fn fetch<D: Dial>(dialer: &mut D, settings: &Settings) -> Result<()> {
    let mut all = Fetched::default();
    let bytes = settings.bytes.unwrap_or(1);
    let cpu = processor_time();
    for _ in 0..settings.times {
        let began = now();
        transfer(dialer, bytes, settings.objects).await?;
        all.times_s.push(began.elapsed().as_secs_f64());
    }
    dialer.drain().await;
    all.bytes = bytes * u64::from(settings.objects) * u64::from(settings.times);
    all.duration_s = all.times_s.iter().sum();
    all.cpu_s = (processor_time() - cpu).as_secs_f64();
    println!("{}", serde_json::to_string(&all)?);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "an edge that measures")]
fn now() -> Instant {
    Instant::now()
}

/// The first object, then all others at once.
async fn transfer<D: Dial>(dialer: &mut D, bytes: u64, objects: u32) -> Result<()> {
    let mut link = dialer.connect().await?;
    let others = objects.saturating_sub(1);
    if D::Link::MULTIPLEXED {
        object(link.open().await?, bytes).await?;
        let mut pairs = Vec::new();
        for _ in 0..others {
            pairs.push(link.open().await?);
        }
        futures_util::future::try_join_all(pairs.into_iter().map(|pair| object(pair, bytes))).await?;
    } else {
        let mut pair = link.open().await?;
        in_a_row(&mut pair, bytes, 1).await?;
        in_a_row(&mut pair, bytes, others).await?;
    }
    link.close();
    Ok(())
}

/// An object on a stream of its own.
async fn object((mut write, mut read): Pair, bytes: u64) -> Result<()> {
    write.write_all(&bytes.to_be_bytes()).await?;
    // Some stacks shut a stream down when the peer has acknowledged all of it: the answer need not wait.
    let (shut, read) = tokio::join!(write.shutdown(), count(&mut read, u64::MAX));
    let read = read?;
    if read != bytes {
        bail!("{read} of {bytes} bytes came");
    }
    // A peer that has sent everything may close before it acknowledges.
    let _ = shut;
    Ok(())
}

/// Requests at once, and the answers one after the other.
async fn in_a_row((write, read): &mut Pair, bytes: u64, objects: u32) -> Result<()> {
    for _ in 0..objects {
        write.write_all(&bytes.to_be_bytes()).await?;
    }
    write.flush().await?;
    let all = bytes * u64::from(objects);
    let read = count(read, all).await?;
    if read != all {
        bail!("{read} of {all} bytes came");
    }
    Ok(())
}

/// Reads `most` bytes, or to the end.
async fn count(read: &mut (impl tokio::io::AsyncRead + Unpin + ?Sized), most: u64) -> Result<u64> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    while bytes < most {
        let len = usize::try_from(most - bytes).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        match read.read(&mut piece[..len]).await? {
            0 => break,
            more => bytes += more as u64,
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::quinn_stack::{self, Flavour};
    use crate::stack::{Congestion, Windows};
    use crate::tcp_stack;

    fn settings() -> Settings {
        Settings {
            congestion: Congestion::Default,
            windows: Windows::Own,
            seconds: None,
            bytes: None,
            requests: 0,
            connections: 1,
            objects: 1,
            times: 1,
        }
    }

    /// Fetches objects over loopback, and asks once for more than a server that counts wrongly would send.
    async fn fetches<L: Listen<Link: 'static>>(listener: L, mut dialer: impl Dial) {
        let fetching = async {
            for (bytes, objects) in [(1, 1), (100_000, 1), (20_000, 10)] {
                transfer(&mut dialer, bytes, objects).await.unwrap();
            }
        };
        tokio::select! {
            served = serve(listener) => panic!("{served:?}"),
            // A limit on a hang.
            done = timeout(Duration::from_secs(60), fetching) => done.unwrap(),
        }
    }

    fn free() -> std::net::SocketAddr {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn objects_come_whole_over_quinn() {
        let address = free();
        let server = quinn_stack::listen(address, &settings(), Flavour::Plain).unwrap();
        fetches(server, quinn_stack::dial(address, &settings(), Flavour::Plain).unwrap()).await;
    }

    #[tokio::test]
    async fn objects_come_whole_over_tcp_one_after_the_other() {
        let address = free();
        let server = tcp_stack::listen(address).await.unwrap();
        fetches(server, tcp_stack::dial(address)).await;
    }

    #[tokio::test]
    async fn an_answer_that_is_too_short_is_an_error() {
        let (client, mut server) = tokio::io::duplex(1 << 10);
        let (read, write) = tokio::io::split(client);
        let answers = async {
            assert_eq!(server.read_u64().await.unwrap(), 5);
            server.write_all(&[7; 4]).await.unwrap();
            server.shutdown().await.unwrap();
        };
        let (fetched, ()) = tokio::join!(object((Box::new(write), Box::new(read)), 5), answers);
        assert_eq!(fetched.unwrap_err().to_string(), "4 of 5 bytes came");
    }
}
