//! Two quinn endpoints over loopback, one unmodified and one with the ACK law, and a relay between them that delays
//! packets as a real path does. Time is virtual: it advances when no task can run.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::{ClientConfig, Connection, Endpoint, FrameStats, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::UdpSocket;

const NAME: &str = "localhost";
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const TRANSFER_BYTES: usize = 2 << 20;

/// 23 Mb/s, with a queue of 300 packets.
const TICK: Duration = Duration::from_millis(1);
const DATAGRAMS_PER_TICK: usize = 2;
const WAITING_MAX: usize = 300;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn transport(has_law: bool) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if has_law {
        // With its queue of 300 packets the relay has 100 ms.
        let rtt = Duration::from_millis(100);
        let path = tacit_quinn::Path { rtt, window_bytes: 300 * 1_200, packet_bytes: 1_200 };
        tacit_quinn::configure_for(&mut transport, &path);
    }
    Arc::new(transport)
}

/// Relays datagrams between `server` and the first address that sends to `front`.
async fn relay(front: UdpSocket, server: SocketAddr) -> Outcome<()> {
    let back = UdpSocket::bind(ANY).await?;
    back.connect(server).await?;
    let (mut up, mut down, mut client) = (VecDeque::new(), VecDeque::new(), None);
    let (mut near, mut far) = (vec![0; 65_535], vec![0; 65_535]);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            received = front.recv_from(&mut near) => {
                let (len, from) = received?;
                client = Some(from);
                wait(&mut up, &near[..len]);
            }
            received = back.recv(&mut far) => wait(&mut down, &far[..received?]),
            _ = tick.tick() => {
                for datagram in up.drain(..up.len().min(DATAGRAMS_PER_TICK)) {
                    back.send(&datagram).await?;
                }
                for datagram in down.drain(..down.len().min(DATAGRAMS_PER_TICK)) {
                    front.send_to(&datagram, client.ok_or("no client sent yet")?).await?;
                }
            }
        }
    }
}

fn wait(queue: &mut VecDeque<Vec<u8>>, datagram: &[u8]) {
    if queue.len() < WAITING_MAX {
        queue.push_back(datagram.to_vec());
    }
}

/// Both ends of a connection. Either the client has the law, or neither end has.
async fn connected(client_has_law: bool) -> Outcome<(Endpoint, Connection, Endpoint, Connection)> {
    let certified = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key.into())?;
    config.transport_config(transport(false));
    let server = Endpoint::server(config, ANY)?;

    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone())?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(client_has_law));
    let mut client = Endpoint::client(ANY)?;
    client.set_default_client_config(config);

    let front = UdpSocket::bind(ANY).await?;
    let (address, far) = (front.local_addr()?, server.local_addr()?);
    tokio::spawn(async move { relay(front, far).await.map_err(|error| error.to_string()) });
    let accept = async { Ok(server.accept().await.ok_or("the endpoint closed")?.await?) };
    let connect = async { Ok(client.connect(address, NAME)?.await?) };
    let (accepted, connected): (Outcome<_>, Outcome<_>) = tokio::join!(accept, connect);
    let (accepted, connected) = (accepted?, connected?);
    Ok((server, accepted, client, connected))
}

/// Transfers data from one end to the other, and counts the frames that the sender received.
async fn transfer(from: &Connection, to: &Connection) -> Outcome<FrameStats> {
    let data: Vec<u8> = (0..TRANSFER_BYTES).map(|at| (at % 251) as u8).collect();
    let before = from.stats().frame_rx.acks;
    let send = async {
        let mut stream = from.open_uni().await?;
        stream.write_all(&data).await?;
        stream.finish()?;
        stream.stopped().await?;
        Ok(())
    };
    let receive = async { Ok(to.accept_uni().await?.read_to_end(TRANSFER_BYTES).await?) };
    let (sent, received): (Outcome<()>, Outcome<Vec<u8>>) = tokio::join!(send, receive);
    sent?;
    assert!(received? == data, "it arrives as it was sent");
    let mut frames = from.stats().frame_rx;
    frames.acks -= before;
    Ok(frames)
}

/// Both transfers carry the same data; by default quinn acknowledges every second packet.
#[tokio::test(start_paused = true)]
async fn an_unmodified_peer_acknowledges_far_less_often() {
    let (plain, law) = (connected(false).await.unwrap(), connected(true).await.unwrap());
    let acks_of_plain = transfer(&plain.3, &plain.1).await.unwrap().acks;
    let acks_of_law = transfer(&law.3, &law.1).await.unwrap().acks;
    eprintln!("{acks_of_plain} ACKs by themselves, {acks_of_law} by the law");
    assert!(acks_of_law * 3 <= acks_of_plain, "{acks_of_law} ACKs, {acks_of_plain} without the law");
    assert_eq!(law.3.stats().frame_tx.ack_frequency, 1, "quinn asks once");

    // In the other direction the sender does not have the law, so its peer acknowledges as usual.
    let acks_of_law = transfer(&law.1, &law.3).await.unwrap().acks;
    assert!(acks_of_law * 3 > acks_of_plain, "{acks_of_law} ACKs, {acks_of_plain} without the law");
    assert_eq!(law.1.stats().frame_tx.ack_frequency, 0);
}

/// What a socket keeps of more than fits, while nothing reads.
async fn kept(socket: std::net::UdpSocket) -> Outcome<usize> {
    socket.set_nonblocking(true)?;
    let receiver = UdpSocket::from_std(socket)?;
    let sender = UdpSocket::bind(ANY).await?;
    for _ in 0..4_000 {
        sender.send_to(&[0; 1_452], receiver.local_addr()?).await?;
    }
    let mut buffer = [0; 2_048];
    Ok((0..).take_while(|_| receiver.try_recv(&mut buffer).is_ok()).count())
}

/// Linux allows at least twice its default.
#[tokio::test]
async fn a_socket_of_ours_has_more_room_than_quinns() {
    let quinns = kept(std::net::UdpSocket::bind(ANY).unwrap()).await.unwrap();
    let ours = kept(tacit_quinn::bind(ANY).unwrap()).await.unwrap();
    assert!(2 * ours >= 3 * quinns, "{ours} packets, and {quinns}");
}
