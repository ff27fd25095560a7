//! Moves data over Cloudflare's quiche, as tacit-peers does over other stacks: `serve ADDRESS` and
//! `fetch ADDRESS --bytes N [--objects N] [--times N]`, by the QUIC performance protocol (draft-banks-quic-performance-00): a
//! request is the length of its answer, in 8 bytes.
//!
//! quiche leaves sockets and pacing to the program. This one does what quiche's examples do: it reads until the socket is
//! empty, and sends at once, with the windows and the datagram size of the examples.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use boring::asn1::Asn1Time;
use boring::ec::{EcGroup, EcKey};
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::{X509Builder, X509NameBuilder};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quiche::{Config, Connection, ConnectionId, Header, MAX_CONN_ID_LEN, RecvInfo, Type};

const NAME: &str = "localhost";
/// As the examples have them.
const DATAGRAM_BYTES: usize = 1_350;
const CONNECTION_WINDOW: u64 = 10_000_000;
const STREAM_WINDOW: u64 = 1_000_000;
const STREAMS: u64 = 100;
const IDLE_MS: u64 = 5_000;

const REQUEST_BYTES: usize = 8;
static PIECE: [u8; 65_535] = [7; 65_535];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["version"] => {
            println!("{}", env!("QUICHE_VERSION"));
            Ok(())
        }
        ["serve", address, flags @ ..] => serve(address.parse()?, &Flags::parse(flags)?),
        ["fetch", address, flags @ ..] => fetch(address.parse()?, &Flags::parse(flags)?),
        _ => bail!("usage: version | serve ADDRESS | fetch ADDRESS --bytes N [--objects N] [--times N]"),
    }
}

struct Flags {
    congestion: String,
    bytes: u64,
    objects: u64,
    times: u64,
}

impl Flags {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut flags = Self { congestion: "cubic".to_owned(), bytes: 1, objects: 1, times: 1 };
        for pair in words.chunks(2) {
            let &[flag, value] = pair else { bail!("{} lacks a value", pair[0]) };
            match flag {
                "--congestion" => flags.congestion = value.to_owned(),
                "--bytes" => flags.bytes = value.parse()?,
                "--objects" => flags.objects = value.parse()?,
                "--times" => flags.times = value.parse()?,
                _ => bail!("{flag} is unknown"),
            }
        }
        Ok(flags)
    }
}

/// A certificate of its own for each server; clients check nothing, and need not on one machine.
fn certified() -> Result<SslContextBuilder> {
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&curve)?)?;
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", NAME)?;
    let name = name.build();
    let mut certificate = X509Builder::new()?;
    certificate.set_version(2)?;
    certificate.set_subject_name(&name)?;
    certificate.set_issuer_name(&name)?;
    certificate.set_not_before(Asn1Time::days_from_now(0)?.as_ref())?;
    certificate.set_not_after(Asn1Time::days_from_now(365)?.as_ref())?;
    certificate.set_pubkey(&key)?;
    certificate.sign(&key, MessageDigest::sha256())?;
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_certificate(certificate.build().as_ref())?;
    tls.set_private_key(&key)?;
    Ok(tls)
}

fn config(flags: &Flags) -> Result<Config> {
    let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, certified()?)?;
    config.set_application_protos(&[b"perf"])?;
    config.set_cc_algorithm_name(&flags.congestion)?;
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

/// A socket, and what waits for it.
struct Port {
    socket: UdpSocket,
    poll: Poll,
    events: Events,
    address: SocketAddr,
}

impl Port {
    fn bind(address: SocketAddr) -> Result<Self> {
        let (mut socket, poll) = (UdpSocket::bind(address)?, Poll::new()?);
        poll.registry().register(&mut socket, Token(0), Interest::READABLE)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, poll, events: Events::with_capacity(16), address })
    }

    /// Waits until a datagram has arrived; false where `timeout` has passed instead.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<bool> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(false),
            polled => Ok(polled.map(|()| !self.events.is_empty())?),
        }
    }

    /// A datagram that has arrived, and whose it is.
    fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<(&'a mut [u8], RecvInfo)>> {
        match self.socket.recv_from(buffer) {
            Ok((len, from)) => Ok(Some((&mut buffer[..len], RecvInfo { from, to: self.address }))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends all that a connection has to send. What the socket does not take is lost, as on a full interface.
    fn send(&self, connection: &mut Connection) -> Result<()> {
        let mut out = [0; DATAGRAM_BYTES];
        loop {
            match connection.send(&mut out) {
                Ok((len, info)) => {
                    let _ = self.socket.send_to(&out[..len], info.to);
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
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

/// A client, its requests so far, and the bytes of answers that are left to send.
struct Client {
    connection: Connection,
    requests: HashMap<u64, Vec<u8>>,
    left: HashMap<u64, u64>,
}

impl Client {
    fn take_requests(&mut self, buffer: &mut [u8]) {
        for stream in self.connection.readable() {
            while let Ok((read, _)) = self.connection.stream_recv(stream, buffer) {
                let request = self.requests.entry(stream).or_default();
                request.extend_from_slice(&buffer[..read]);
                if let Some(bytes) = request.first_chunk::<REQUEST_BYTES>() {
                    self.left.insert(stream, u64::from_be_bytes(*bytes));
                    self.requests.remove(&stream);
                }
            }
        }
    }

    /// Writes as much of the answers as the connection takes.
    fn answer(&mut self) {
        let connection = &mut self.connection;
        self.left.retain(|stream, left| {
            while *left > 0 {
                let len = usize::try_from(*left).unwrap_or(PIECE.len()).min(PIECE.len());
                match connection.stream_send(*stream, &PIECE[..len], len as u64 == *left) {
                    Ok(written) if written > 0 => *left -= written as u64,
                    Ok(_) | Err(quiche::Error::Done) => return true,
                    // The client has left.
                    Err(_) => return false,
                }
            }
            false
        });
    }
}

fn serve(address: SocketAddr, flags: &Flags) -> Result<()> {
    let mut config = config(flags)?;
    let mut port = Port::bind(address)?;
    let mut clients: HashMap<ConnectionId<'static>, Client> = HashMap::new();
    let mut buffer = vec![0; 65_535];
    let mut count = 0;
    loop {
        let timeout = clients.values().filter_map(|client| client.connection.timeout()).min();
        if !port.wait(timeout)? {
            clients.values_mut().for_each(|client| client.connection.on_timeout());
        }
        while let Some((datagram, info)) = port.receive(&mut buffer)? {
            let Ok(header) = Header::from_slice(datagram, MAX_CONN_ID_LEN) else { continue };
            let known = clients.contains_key(&header.dcid);
            let id = if known { header.dcid.into_owned() } else { identifier(count)? };
            if !known {
                if header.ty != Type::Initial {
                    continue;
                }
                count += 1;
                let connection = quiche::accept(&id, None, info.to, info.from, &mut config)?;
                let client = Client { connection, requests: HashMap::new(), left: HashMap::new() };
                clients.insert(id.clone(), client);
            }
            let Some(client) = clients.get_mut(&id) else { continue };
            let _ = client.connection.recv(datagram, info);
        }
        for client in clients.values_mut() {
            client.take_requests(&mut buffer);
            client.answer();
            port.send(&mut client.connection)?;
        }
        clients.retain(|_, client| !client.connection.is_closed());
    }
}

fn fetch(server: SocketAddr, flags: &Flags) -> Result<()> {
    let mut config = config(flags)?;
    let mut times_s = Vec::new();
    for count in 0..flags.times {
        let began = Instant::now();
        transfer(server, flags, &mut config, count)?;
        times_s.push(began.elapsed().as_secs_f64());
    }
    let bytes = flags.bytes * flags.objects * flags.times;
    let duration_s: f64 = times_s.iter().sum();
    println!(
        "{{\"bytes\":{bytes},\"duration_s\":{duration_s},\"times_s\":{times_s:?},\"cpu_s\":{}}}",
        cpu_s()?
    );
    Ok(())
}

/// The first object, then all others at once.
fn transfer(server: SocketAddr, flags: &Flags, config: &mut Config, count: u64) -> Result<()> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut port = Port::bind(any.parse()?)?;
    let id = identifier(count)?;
    let mut connection = quiche::connect(Some(NAME), &id, port.address, server, config)?;
    let mut buffer = vec![0; 65_535];
    let (mut asked, mut ended, mut read) = (0, 0, 0);
    port.send(&mut connection)?;
    while ended < flags.objects {
        if !port.wait(connection.timeout())? {
            connection.on_timeout();
        }
        while let Some((datagram, info)) = port.receive(&mut buffer)? {
            let _ = connection.recv(datagram, info);
        }
        if connection.is_closed() {
            bail!("the connection has ended: {:?}", connection.peer_error());
        }
        for stream in connection.readable() {
            while let Ok((some, fin)) = connection.stream_recv(stream, &mut buffer) {
                read += some as u64;
                ended += u64::from(fin);
            }
        }
        let wanted = match (connection.is_established(), ended) {
            (false, _) => 0,
            (true, 0) => 1,
            (true, _) => flags.objects,
        };
        while asked < wanted {
            // Bidirectional streams of a client (RFC 9000 section 2.1).
            connection.stream_send(asked * 4, &flags.bytes.to_be_bytes(), true)?;
            asked += 1;
        }
        port.send(&mut connection)?;
    }
    if read != flags.bytes * flags.objects {
        bail!("{read} of {} bytes came", flags.bytes * flags.objects);
    }
    connection.close(true, 0, b"done")?;
    port.send(&mut connection)
}

/// Of this process (proc_pid_stat(5)): user and system time, in hundredths of a second.
fn cpu_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks =
        |field: usize| after_name.split_whitespace().nth(field).and_then(|ticks| ticks.parse::<u64>().ok());
    Ok((ticks(11).context("utime")? + ticks(12).context("stime")?) as f64 / 100.0)
}
