//! The control connection of one TCP flow to the shim ([`tacit_between::fwp::control`]).

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use tacit_between::fwp::control::{MAX_MESSAGE_LEN, SOCKET_NAME, ToReader, ToShim, VERSION};
use tacit_between::fwp::repair::Range;
use tokio::net::UnixDatagram;

use crate::error::NetError;

/// The name of the shim's socket.
#[derive(Clone, Debug)]
pub struct ShimName(Vec<u8>);

impl Default for ShimName {
    fn default() -> Self {
        Self::abstracted(SOCKET_NAME)
    }
}

impl ShimName {
    /// A name in the abstract socket namespace of this network namespace.
    pub fn abstracted(name: &[u8]) -> Self {
        Self([&[0], name].concat())
    }

    /// The socket address.
    ///
    /// # Errors
    /// If the name is too long for one.
    pub fn address(&self) -> io::Result<SockAddr> {
        SockAddr::unix(OsStr::from_bytes(&self.0))
    }
}

/// Time limit for the answer to a registration; the shim is a process of this machine.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(1);

/// Most messages that may wait. The reader takes them after each read, and a receive window holds fewer segments than
/// this.
const NEWS_MAX: usize = 65_536;

/// Messages from the shim since the last call.
#[derive(Debug, Default)]
struct ShimMessages {
    registered: Option<u32>,
    refused: Option<String>,
    holes: Vec<Range>,
    late: Vec<(u64, Vec<u8>)>,
    switched_off: u64,
    over: bool,
}

/// Frame loss, in parts per million, from which a link counts as lossy: at 2 %, one in five flights of ten segments
/// loses a segment.
const LOSSY_PPM: u32 = 20_000;

/// A TCP flow that is registered with the shim. Dropping it ends the registration.
#[derive(Debug)]
pub struct Flow {
    socket: Socket,
    /// A second handle of the socket, to wait on: tokio has no type for SOCK_SEQPACKET, but its calls are the same. Its
    /// readiness lags behind the socket's, so reads use the socket.
    waiter: UnixDatagram,
    news: Mutex<ShimMessages>,
}

/// The result of a registration.
#[derive(Debug)]
pub enum Registration {
    /// No shim listens.
    NoShim,
    /// The shim refuses the flow; the reason.
    Refused(String),
    /// The shim accepted the flow.
    Flow(Flow),
}

impl Flow {
    /// True if a shim listens.
    pub fn is_there(name: &ShimName) -> bool {
        connect(name).is_ok()
    }

    /// Registers the TCP connection between `local` and `remote`.
    ///
    /// # Errors
    /// If the shim violates the protocol.
    pub async fn register(
        name: &ShimName,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Registration, NetError> {
        let Ok(socket) = connect(name) else { return Ok(Registration::NoShim) };
        let waiter =
            socket.try_clone().and_then(|second| UnixDatagram::from_std(OwnedFd::from(second).into()));
        let waiter = waiter.map_err(|error| NetError::Hop(error.to_string()))?;
        let flow = Self { socket, waiter, news: Mutex::default() };
        flow.send(ToShim::Register { version: VERSION, local, remote })?;
        let answer = async {
            loop {
                flow.readable().await;
                flow.drain()?;
                let news = flow.news();
                if news.registered.is_some() || news.refused.is_some() || news.over {
                    return Ok::<_, NetError>(());
                }
            }
        };
        if tokio::time::timeout(REGISTRATION_TIMEOUT, answer).await.map_or(Ok(()), |answer| answer).is_err() {
            return Ok(Registration::Refused("it cannot be understood".to_owned()));
        }
        let (registered, refused) = {
            let mut news = flow.news();
            (news.registered, news.refused.take())
        };
        Ok(match registered {
            Some(_) => Registration::Flow(flow),
            None => Registration::Refused(refused.unwrap_or_else(|| "it did not answer".to_owned())),
        })
    }

    /// Frame loss of the link until the flow was registered, in parts per million.
    pub fn expected_fer_ppm(&self) -> u32 {
        self.news().registered.unwrap_or(0)
    }

    /// True if the link loses enough frames that single lost segments matter.
    pub fn is_lossy(&self) -> bool {
        self.expected_fer_ppm() >= LOSSY_PPM
    }

    /// Allows placeholders in `range` of the stream.
    ///
    /// # Errors
    /// If the shim no longer listens.
    pub fn allow(&self, range: Range) -> Result<(), NetError> {
        self.send(ToShim::Allow { start: range.start, end: range.end })
    }

    /// Reports that the original bytes of `range` were received or are no longer needed.
    pub fn repaired(&self, range: Range) {
        // A shim that no longer listens has dropped its state anyway.
        let _ = self.send(ToShim::Repaired { start: range.start, end: range.end });
    }

    fn send(&self, message: ToShim) -> Result<(), NetError> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        match self.socket.send(&bytes) {
            Ok(_) => Ok(()),
            // The shim is gone and writes no more placeholders, so nothing has to be allowed.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                Ok(())
            }
            Err(error) => Err(NetError::Hop(error.to_string())),
        }
    }

    /// Waits for a message from the shim. Never returns once the shim has closed the connection.
    pub async fn readable(&self) {
        if self.news().over {
            std::future::pending::<()>().await;
        }
        // An error of the socket shows when it is read.
        let _ = self.waiter.readable().await;
    }

    /// Reads all pending messages from the shim.
    ///
    /// # Errors
    /// If a message is malformed.
    pub fn drain(&self) -> Result<(), NetError> {
        let mut buffer = [0; MAX_MESSAGE_LEN + 1];
        let mut news = self.news();
        while !news.over {
            // The last read goes through the waiter, which so learns that nothing is pending.
            let read = match (&self.socket).read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.waiter.try_recv(&mut buffer),
                read => read,
            };
            let bytes = match read {
                Ok(0) => {
                    news.over = true;
                    break;
                }
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    news.over = true;
                    break;
                }
            };
            match ToReader::decode(&buffer[..bytes]).map_err(|error| NetError::Hop(error.to_string()))? {
                ToReader::Registered { expected_fer_ppm, .. } => news.registered = Some(expected_fer_ppm),
                ToReader::Refused(reason) => news.refused = Some(reason.to_string()),
                ToReader::Hole { start, end } => news.holes.extend(Range::new(start, end)),
                ToReader::Late { start, bytes } => news.late.push((start, bytes.to_vec())),
                ToReader::Switched { on } => news.switched_off += u64::from(!on),
            }
            if news.holes.len() > NEWS_MAX || news.late.len() > NEWS_MAX {
                return Err(NetError::Hop("more holes than can be kept track of".to_owned()));
            }
        }
        Ok(())
    }

    /// Returns and removes the holes before `end`, lowest first.
    pub fn take_holes(&self, end: u64) -> Vec<Range> {
        let mut news = self.news();
        news.holes.sort_unstable();
        let known = news.holes.partition_point(|hole| hole.start < end);
        let mut taken: Vec<_> = news.holes.drain(..known).collect();
        for hole in &mut taken {
            if let Some(rest) = Range::new(end, hole.end) {
                news.holes.push(rest);
                hole.end = end;
            }
        }
        taken
    }

    /// Returns and removes late data: stream position and bytes.
    pub fn take_late(&self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut self.news().late)
    }

    /// How often the shim stopped writing placeholders because of congestion.
    pub fn switched_off(&self) -> u64 {
        self.news().switched_off
    }

    /// True if no hole overlaps `range`, except within `allowed`.
    pub fn is_clean(&self, range: Range, allowed: Option<Range>) -> bool {
        self.news()
            .holes
            .iter()
            .filter_map(|hole| hole.common(range))
            .all(|hole| allowed.and_then(|allowed| allowed.common(hole)) == Some(hole))
    }

    fn news(&self) -> MutexGuard<'_, ShimMessages> {
        // A poisoned lock can be used: no code that holds it panics in the middle of a change.
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(name: &ShimName) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET.cloexec(), None)?;
    // Never wait for a shim whose queue is full; it is treated like a missing one.
    socket.set_nonblocking(true)?;
    socket.connect(&name.address()?)?;
    Ok(socket)
}
