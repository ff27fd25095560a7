//! What the programs of this workspace share: their words, their line of numbers, a certificate and a socket.
//!
//! Each moves data over its stack as tacit-peers does over others: `serve ADDRESS` and
//! `fetch ADDRESS --bytes N [--objects N] [--times N]`, by the QUIC performance protocol (draft-banks-quic-performance-00): a
//! request is the length of its answer, in 8 bytes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use tempfile::TempDir;

/// Of the certificate.
pub const NAME: &str = "localhost";
pub const PROTOCOL: &str = "perf";
pub const REQUEST_BYTES: usize = 8;
/// Answers consist of it.
pub static PIECE: [u8; 65_535] = [7; 65_535];

/// Settings of a command line; a stack refuses those that it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub congestion: Option<String>,
    /// Packets that a receiver answers with one ACK.
    pub ack_packets: Option<u64>,
    /// How long its ACK may wait.
    pub ack_delay_ms: Option<u64>,
    /// Windows and scheduling for throughput.
    pub throughput: bool,
    pub bytes: u64,
    pub objects: u64,
    pub times: u64,
}

impl Flags {
    fn parse(words: &[String]) -> Result<Self> {
        let mut flags = Self { bytes: 1, objects: 1, times: 1, ..Self::default() };
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            if flag == "--throughput" {
                flags.throughput = true;
                continue;
            }
            let value = words.next().with_context(|| format!("{flag} lacks a value"))?;
            match flag.as_str() {
                "--congestion" => flags.congestion = Some(value.clone()),
                "--ack-packets" => flags.ack_packets = Some(value.parse()?),
                "--ack-delay-ms" => flags.ack_delay_ms = Some(value.parse()?),
                "--bytes" => flags.bytes = value.parse()?,
                "--objects" => flags.objects = value.parse()?,
                "--times" => flags.times = value.parse()?,
                _ => bail!("{flag} is unknown"),
            }
        }
        Ok(flags)
    }

    /// A stack without settings of ACKs has none of these.
    pub const fn has_acks(&self) -> bool {
        self.ack_packets.is_some() || self.ack_delay_ms.is_some()
    }

    pub const fn all_bytes(&self) -> u64 {
        self.bytes * self.objects
    }

    /// How many objects are asked for when `ended` have ended: the first, then all others at once.
    pub const fn wanted(&self, ended: u64) -> u64 {
        if ended == 0 { 1 } else { self.objects }
    }
}

/// A stack's end of a job.
pub trait Stack: Sized {
    const VERSION: &'static str;

    /// Answers all requests of all clients, until the process is killed.
    fn serve(address: SocketAddr, flags: &Flags) -> Result<()>;

    fn client(server: SocketAddr, flags: &Flags) -> Result<Self>;

    /// Fetches the objects over a connection of its own, and returns the bytes that came.
    fn transfer(&mut self, flags: &Flags) -> Result<u64>;
}

/// Does what the command line says.
pub fn run<S: Stack>() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [word] if word == "version" => {
            println!("{}", S::VERSION);
            Ok(())
        }
        [word, address, flags @ ..] if word == "serve" => S::serve(address.parse()?, &Flags::parse(flags)?),
        [word, address, flags @ ..] if word == "fetch" => fetch::<S>(address.parse()?, &Flags::parse(flags)?),
        _ => bail!("usage: version | serve ADDRESS | fetch ADDRESS --bytes N [--objects N] [--times N]"),
    }
}

#[expect(clippy::disallowed_methods, reason = "an edge that measures")]
fn fetch<S: Stack>(server: SocketAddr, flags: &Flags) -> Result<()> {
    let mut client = S::client(server, flags)?;
    let mut times_s = Vec::new();
    for _ in 0..flags.times {
        let began = Instant::now();
        let read = client.transfer(flags)?;
        times_s.push(began.elapsed().as_secs_f64());
        if read != flags.all_bytes() {
            bail!("{read} of {} bytes came", flags.all_bytes());
        }
    }
    let bytes = flags.all_bytes() * flags.times;
    let duration_s: f64 = times_s.iter().sum();
    println!(
        "{{\"bytes\":{bytes},\"duration_s\":{duration_s},\"times_s\":{times_s:?},\"cpu_s\":{}}}",
        cpu_s()?
    );
    Ok(())
}

/// Of this process (proc_pid_stat(5)): user and system time, in hundredths of a second.
fn cpu_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks =
        |field: usize| after_name.split_whitespace().nth(field).and_then(|ticks| ticks.parse::<u64>().ok());
    Ok((ticks(11).context("utime")? + ticks(12).context("stime")?) as f64 / 100.0)
}

/// What is left to send on a stream.
#[derive(Debug)]
pub enum Answer {
    /// The part of the request that has come.
    Asked(Vec<u8>),
    Left(u64),
}

impl Default for Answer {
    fn default() -> Self {
        Self::Asked(Vec::new())
    }
}

impl Answer {
    /// Bytes of a request that came.
    pub fn receive_request(&mut self, bytes: &[u8]) {
        if let Self::Asked(request) = self {
            request.extend_from_slice(bytes);
            if let Some(bytes) = request.first_chunk::<REQUEST_BYTES>() {
                *self = Self::Left(u64::from_be_bytes(*bytes));
            }
        }
    }

    /// The next piece, and whether it is the last; nothing before the request and after the end.
    pub fn next(&self) -> Option<(&'static [u8], bool)> {
        let Self::Left(left @ 1..) = *self else { return None };
        let len = usize::try_from(left).unwrap_or(PIECE.len()).min(PIECE.len());
        Some((&PIECE[..len], len as u64 == left))
    }

    /// Bytes of a piece were taken.
    pub const fn sent(&mut self, bytes: u64) {
        if let Self::Left(left) = self {
            *left = left.saturating_sub(bytes);
        }
    }
}

/// A certificate of its own for each server, in files; clients check nothing, and need not on one machine.
pub struct Certificate {
    /// Removed with this.
    _directory: TempDir,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    pub fn generate() -> Result<Self> {
        let certified = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let directory = tempfile::tempdir()?;
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| directory.path().join(name));
        std::fs::write(&certificate, certified.cert.pem())?;
        std::fs::write(&key, certified.signing_key.serialize_pem())?;
        Ok(Self { _directory: directory, certificate, key })
    }

    /// The names of both files.
    pub fn names(&self) -> Result<[&str; 2]> {
        Ok([self.certificate.to_str().context("no UTF-8")?, self.key.to_str().context("no UTF-8")?])
    }
}

/// A socket, and what waits for it.
pub struct Port {
    pub socket: UdpSocket,
    poll: Poll,
    events: Events,
    pub address: SocketAddr,
}

impl Port {
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let (mut socket, poll) = (UdpSocket::bind(address)?, Poll::new()?);
        poll.registry().register(&mut socket, Token(0), Interest::READABLE)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, poll, events: Events::with_capacity(16), address })
    }

    /// For a client of `server`.
    pub fn towards(server: SocketAddr) -> Result<Self> {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        Self::bind(any.parse()?)
    }

    /// Waits until a datagram has arrived; false where `timeout` has passed instead.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(false),
            polled => Ok(polled.map(|()| !self.events.is_empty())?),
        }
    }

    /// A datagram that has arrived, and its sender.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<(&'a mut [u8], SocketAddr)>> {
        match self.socket.recv_from(buffer) {
            Ok((len, from)) => Ok(Some((&mut buffer[..len], from))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &str) -> Result<Flags> {
        Flags::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_those_of_tacit_peers() {
        let parsed =
            flags("--ack-packets 10 --ack-delay-ms 5 --throughput --bytes 7 --objects 2 --times 3").unwrap();
        let expected = Flags {
            congestion: None,
            ack_packets: Some(10),
            ack_delay_ms: Some(5),
            throughput: true,
            bytes: 7,
            objects: 2,
            times: 3,
        };
        assert_eq!(parsed, expected);
        assert_eq!((parsed.all_bytes(), parsed.wanted(0), parsed.wanted(1)), (14, 1, 2));
        assert_eq!(flags("--bytes").unwrap_err().to_string(), "--bytes lacks a value");
        assert_eq!(flags("--speed 3").unwrap_err().to_string(), "--speed is unknown");
    }

    #[test]
    fn an_answer_has_the_length_that_a_request_names_however_it_arrives() {
        let mut answer = Answer::default();
        let request = 65_536_u64.to_be_bytes();
        answer.receive_request(&request[..3]);
        assert_eq!(answer.next(), None);
        answer.receive_request(&request[3..]);
        assert_eq!(answer.next(), Some((&PIECE[..], false)));
        // A connection takes less than it was offered.
        answer.sent(65_000);
        assert_eq!(answer.next(), Some((&PIECE[..536], true)));
        answer.sent(536);
        assert_eq!(answer.next(), None);
    }

    #[test]
    fn certificates_are_files_as_long_as_they_are_used() {
        let certificate = Certificate::generate().unwrap();
        let names = certificate.names().unwrap().map(str::to_owned);
        assert!(std::fs::read_to_string(&names[0]).unwrap().starts_with("-----BEGIN CERTIFICATE"));
        assert!(std::fs::read_to_string(&names[1]).unwrap().starts_with("-----BEGIN PRIVATE KEY"));
        drop(certificate);
        assert!(!std::path::Path::new(&names[1]).exists());
    }
}
