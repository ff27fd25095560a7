//! Plain quinn beside tacit-quinn over loopback, in one process and in turn: `cargo run --release -p tacit-quinn --example
//! beside -- [MEGABYTES [PAIRS]]`. Prints the time of each pair of transfers, and the median of their ratios. Loopback has
//! no Wi-Fi: it shows that a fast path stays fast.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

const NAME: &str = "localhost";
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const CHUNK: usize = 1 << 16;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The two ends; endpoints live as long as their connection.
struct Pair {
    _endpoints: [Endpoint; 2],
    client: Connection,
    server: Connection,
}

async fn connect(has_law: bool) -> Outcome<Pair> {
    let transport = || {
        let mut transport = TransportConfig::default();
        if has_law {
            tacit_quinn::configure(&mut transport);
        }
        Arc::new(transport)
    };
    let certified = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    config.transport_config(transport());
    let server = Endpoint::server(config, ANY)?;
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone())?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport());
    let mut client = Endpoint::client(ANY)?;
    client.set_default_client_config(config);
    let connecting = client.connect(server.local_addr()?, NAME)?;
    let accepting = async { Ok(server.accept().await.ok_or("the endpoint closed")?.await?) };
    let (connected, accepted): (_, Outcome<Connection>) = tokio::join!(connecting, accepting);
    Ok(Pair { client: connected?, server: accepted?, _endpoints: [client, server] })
}

/// Time from the first byte to the last, and the ACKs for 100 packets.
async fn transfer(has_law: bool, bytes: usize) -> Outcome<(Duration, f64)> {
    let pair = connect(has_law).await?;
    #[expect(clippy::disallowed_methods, reason = "it measures real time")]
    let began = Instant::now();
    let send = async {
        let (mut stream, chunk) = (pair.server.open_uni().await?, vec![7; CHUNK]);
        for at in (0..bytes).step_by(CHUNK) {
            stream.write_all(&chunk[..CHUNK.min(bytes - at)]).await?;
        }
        stream.finish()?;
        Ok(())
    };
    let receive = async {
        let mut stream = pair.client.accept_uni().await?;
        let mut read = 0;
        while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
            read += chunk.bytes.len();
        }
        Ok(read)
    };
    let (sent, read): (Outcome<()>, Outcome<usize>) = tokio::join!(send, receive);
    sent?;
    if read? != bytes {
        return Err("some bytes are missing".into());
    }
    let stats = pair.server.stats();
    let acks = 100.0 * stats.frame_rx.acks as f64 / stats.udp_tx.datagrams as f64;
    Ok((began.elapsed(), acks))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let megabytes: usize = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let pairs: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    if megabytes == 0 || pairs == 0 {
        return Err("megabytes and pairs: at least 1 is allowed".into());
    }
    println!(
        "{:>9} {:>9} {:>6} {:>16} {:>16}",
        "plain, s", "law, s", "ratio", "plain, ACKs/100", "law, ACKs/100"
    );
    let mut ratios = Vec::new();
    for at in 0..pairs {
        // The first of a pair may find a colder machine.
        let (plain, law) = if at % 2 == 0 {
            let plain = transfer(false, megabytes * 1_000_000).await?;
            (plain, transfer(true, megabytes * 1_000_000).await?)
        } else {
            let law = transfer(true, megabytes * 1_000_000).await?;
            (transfer(false, megabytes * 1_000_000).await?, law)
        };
        let ratio = law.0.as_secs_f64() / plain.0.as_secs_f64();
        println!(
            "{:>9.3} {:>9.3} {ratio:>6.2} {:>16.2} {:>16.2}",
            plain.0.as_secs_f64(),
            law.0.as_secs_f64(),
            plain.1,
            law.1
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[(pairs - 1) / 2]);
    Ok(())
}
