//! Cloudflare's quiche.
//!
//! quiche leaves sockets and pacing to the program. This one does what quiche's examples do: it reads until the socket is
//! empty, and sends at once, with the windows and the datagram size of the examples.

#![expect(
    clippy::disallowed_methods,
    reason = "the edge that reads the clock; the order of clients decides nothing"
)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use quiche::{Config, Connection, ConnectionId, Header, MAX_CONN_ID_LEN, RecvInfo, Type};
use rust_peers::{Answer, Certificate, Flags, NAME, PROTOCOL, Port, Stack};

/// As the examples have them.
const DATAGRAM_BYTES: usize = 1_350;
const CONNECTION_WINDOW: u64 = 10_000_000;
const STREAM_WINDOW: u64 = 1_000_000;
const STREAMS: u64 = 100;
const IDLE_MS: u64 = 5_000;

fn main() -> Result<()> {
    rust_peers::run::<Quiche>()
}

fn config(flags: &Flags) -> Result<Config> {
    if flags.has_acks() || flags.throughput {
        bail!("quiche has no such setting");
    }
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[PROTOCOL.as_bytes()])?;
    config.set_cc_algorithm_name(flags.congestion.as_deref().unwrap_or("cubic"))?;
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM_BYTES);
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_disable_active_migration(true);
    config.verify_peer(false);
    Ok(config)
}

/// Sends all that a connection has to send. What the socket does not take is lost, as on a full interface.
fn send(port: &Port, connection: &mut Connection) -> Result<()> {
    let mut out = [0; DATAGRAM_BYTES];
    loop {
        match connection.send(&mut out) {
            Ok((len, info)) => {
                let _ = port.socket.send_to(&out[..len], info.to);
            }
            Err(quiche::Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A new identifier of a connection.
fn identifier(count: u64) -> Result<ConnectionId<'static>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let mut bytes = [0; MAX_CONN_ID_LEN];
    bytes[..16].copy_from_slice(&now.to_be_bytes());
    bytes[16..].copy_from_slice(&(std::process::id() ^ (count as u32).rotate_left(16)).to_be_bytes());
    Ok(ConnectionId::from_vec(bytes.to_vec()))
}

/// A client of the server.
struct Client {
    connection: Connection,
    answers: HashMap<u64, Answer>,
}

impl Client {
    fn take_requests(&mut self, buffer: &mut [u8]) {
        for stream in self.connection.readable() {
            while let Ok((read, _)) = self.connection.stream_recv(stream, buffer) {
                self.answers.entry(stream).or_default().receive_request(&buffer[..read]);
            }
        }
    }

    /// Writes as much of the answers as the connection takes.
    fn answer(&mut self) {
        let connection = &mut self.connection;
        self.answers.retain(|stream, answer| {
            while let Some((piece, last)) = answer.next() {
                match connection.stream_send(*stream, piece, last) {
                    Ok(written) if written > 0 => answer.sent(written as u64),
                    Ok(_) | Err(quiche::Error::Done) => return true,
                    // The client has left.
                    Err(_) => return false,
                }
            }
            matches!(answer, Answer::Asked(_))
        });
    }
}

struct Quiche {
    config: Config,
    server: SocketAddr,
    count: u64,
    buffer: Vec<u8>,
}

impl Stack for Quiche {
    const VERSION: &'static str = env!("QUICHE_VERSION");

    fn serve(address: SocketAddr, flags: &Flags) -> Result<()> {
        let mut config = config(flags)?;
        let files = Certificate::generate()?;
        let [certificate, key] = files.names()?;
        config.load_cert_chain_from_pem_file(certificate)?;
        config.load_priv_key_from_pem_file(key)?;
        let mut port = Port::bind(address)?;
        let mut clients: HashMap<ConnectionId<'static>, Client> = HashMap::new();
        let mut buffer = vec![0; 65_535];
        let mut count = 0;
        loop {
            let timeout = clients.values().filter_map(|client| client.connection.timeout()).min();
            if !port.wait(timeout)? {
                clients.values_mut().for_each(|client| client.connection.on_timeout());
            }
            while let Some((datagram, from)) = port.receive(&mut buffer)? {
                let info = RecvInfo { from, to: port.address };
                let Ok(header) = Header::from_slice(datagram, MAX_CONN_ID_LEN) else { continue };
                let known = clients.contains_key(&header.dcid);
                let id = if known { header.dcid.into_owned() } else { identifier(count)? };
                if !known {
                    if header.ty != Type::Initial {
                        continue;
                    }
                    count += 1;
                    let connection = quiche::accept(&id, None, info.to, info.from, &mut config)?;
                    clients.insert(id.clone(), Client { connection, answers: HashMap::new() });
                }
                let Some(client) = clients.get_mut(&id) else { continue };
                let _ = client.connection.recv(datagram, info);
            }
            for client in clients.values_mut() {
                client.take_requests(&mut buffer);
                client.answer();
                send(&port, &mut client.connection)?;
            }
            clients.retain(|_, client| !client.connection.is_closed());
        }
    }

    fn client(server: SocketAddr, flags: &Flags) -> Result<Self> {
        Ok(Self { config: config(flags)?, server, count: 0, buffer: vec![0; 65_535] })
    }

    fn transfer(&mut self, flags: &Flags) -> Result<u64> {
        let Self { config, server, count, buffer } = self;
        *count += 1;
        let mut port = Port::towards(*server)?;
        let mut connection =
            quiche::connect(Some(NAME), &identifier(*count)?, port.address, *server, config)?;
        let (mut asked, mut ended, mut read) = (0, 0, 0);
        send(&port, &mut connection)?;
        while ended < flags.objects {
            if !port.wait(connection.timeout())? {
                connection.on_timeout();
            }
            while let Some((datagram, from)) = port.receive(buffer)? {
                let _ = connection.recv(datagram, RecvInfo { from, to: port.address });
            }
            if connection.is_closed() {
                bail!("the connection has ended: {:?}", connection.peer_error());
            }
            for stream in connection.readable() {
                while let Ok((some, fin)) = connection.stream_recv(stream, buffer) {
                    read += some as u64;
                    ended += u64::from(fin);
                }
            }
            while connection.is_established() && asked < flags.wanted(ended) {
                // Bidirectional streams of a client (RFC 9000 section 2.1).
                connection.stream_send(asked * 4, &flags.bytes.to_be_bytes(), true)?;
                asked += 1;
            }
            send(&port, &mut connection)?;
        }
        connection.close(true, 0, b"done")?;
        send(&port, &mut connection)?;
        Ok(read)
    }
}
