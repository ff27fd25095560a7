//! FWP's shim before a kernel's TCP, and its connections to the programs that read the flows. They connect to a socket
//! with an abstract name in the command's network, which is not reachable from outside and disappears with the hop.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, listen, recv, send, socket,
};
use nix::unistd::{Pid, Uid};
use tacit_between::fwp::control::{MAX_LATE_LEN, NONCE_LEN, Refusal, SOCKET_NAME, ToReader, ToShim, VERSION};
use tacit_between::fwp::{Config, Counters, Readers, Shim};
use tacit_packet::FlowKey;
use tacit_packet::units::{Duration, Instant};

use crate::datagram::Datagram;
use crate::socket_owner::{SocketOwners, peer_uid};

/// IP protocol number of TCP.
const TCP: u8 = 6;
/// Maximum number of concurrent connections to readers.
const MOST_CONNECTIONS: usize = 512;
/// Number of bytes read per message: one more than the longest message of readers.
const MESSAGE_LEN: usize = 64;
/// Maximum number of messages read from one connection before others are handled.
const MESSAGES_AT_ONCE: usize = 64;
/// Interval between checks of the socket while the hop has no time to wait.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The shim at a hop's near side.
#[derive(Debug)]
pub struct NearShim {
    shim: Shim<Datagram>,
    connections: Connections,
    socket: ReaderSocket,
    looks_at: Instant,
    random: File,
}

/// A reader's connection.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// The flow it registered.
    flow: Option<FlowKey>,
}

#[derive(Debug)]
struct Connections {
    all: Vec<Connection>,
    ready: Epoll,
    message: Vec<u8>,
}

/// The socket for readers in the command's network.
#[derive(Debug)]
pub struct ReaderSocket {
    listener: OwnedFd,
    /// `None` if the kernel does not reveal socket owners. Then only root and the user of this process may register.
    owners: Option<SocketOwners>,
}

/// Creates the listening socket in the network of `process`.
///
/// # Errors
/// If the kernel does not permit it, or the name is in use.
pub fn listen_in(process: Pid) -> io::Result<ReaderSocket> {
    // A thread can enter another network namespace. This one stays there until it ends.
    let inside = move || -> io::Result<ReaderSocket> {
        setns(File::open(format!("/proc/{process}/ns/net"))?, CloneFlags::CLONE_NEWNET)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        bind(listener.as_raw_fd(), &UnixAddr::new_abstract(SOCKET_NAME)?)?;
        listen(&listener, Backlog::MAXCONN)?;
        Ok(ReaderSocket { listener, owners: SocketOwners::new() })
    };
    let thread = std::thread::Builder::new().name("fwp-socket".to_owned()).spawn(inside)?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Connections {
    fn send(&mut self, index: usize, message: &ToReader<'_>) -> bool {
        message.encode(&mut self.message);
        let Some(connection) = self.all.get(index) else { return false };
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        send(connection.socket.as_raw_fd(), &self.message, flags) == Ok(self.message.len())
    }

    fn index_of(&self, flow: FlowKey) -> Option<usize> {
        self.all.iter().position(|connection| connection.flow == Some(flow))
    }
}

impl Readers for Connections {
    fn hole(&mut self, flow: FlowKey, start: u64, end: u64) -> bool {
        self.index_of(flow).is_some_and(|index| self.send(index, &ToReader::Hole { start, end }))
    }

    fn late(&mut self, flow: FlowKey, start: u64, _: u64, bytes: &[u8]) {
        let Some(index) = self.index_of(flow) else { return };
        for (part, start) in bytes.chunks(MAX_LATE_LEN).zip((start..).step_by(MAX_LATE_LEN)) {
            // A reader that does not receive this requests the bytes from the server.
            self.send(index, &ToReader::Late { start, bytes: part });
        }
    }

    fn switched(&mut self, flow: FlowKey, on: bool) {
        if let Some(index) = self.index_of(flow) {
            self.send(index, &ToReader::Switched { on });
        }
    }
}

impl NearShim {
    /// Creates the shim.
    ///
    /// # Errors
    /// If the kernel has no randomness or no memory.
    pub fn new(config: Config, socket: ReaderSocket) -> io::Result<Self> {
        let shim = Shim::new(config);
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // Number 0 is the listener. A connection has its file descriptor plus 1.
        ready.add(&socket.listener, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        let connections = Connections { all: Vec::new(), ready, message: Vec::new() };
        let random = File::open("/dev/urandom")?;
        Ok(Self { shim, connections, socket, looks_at: Instant::ZERO, random })
    }

    /// Readable when a reader has sent a message.
    pub fn readers(&self) -> BorrowedFd<'_> {
        self.connections.ready.0.as_fd()
    }

    /// Records that the command's kernel sent `datagram`.
    pub fn outgoing(&mut self, now: Instant, datagram: &Datagram) {
        self.shim.handle_up(now, datagram);
    }

    /// Processes `datagram` for the command's kernel, before which `missing` frames were lost. Calls `each` with every
    /// datagram for the kernel, in order.
    pub fn incoming(
        &mut self,
        now: Instant,
        datagram: Datagram,
        missing: u16,
        mut each: impl FnMut(Datagram),
    ) {
        self.shim.link_lost(missing);
        if let Some(datagram) = self.shim.handle_down(now, datagram, &mut self.connections) {
            each(datagram);
        }
        self.drain(each);
    }

    /// Handles timers and readers. Calls `each` with the resulting datagrams for the kernel.
    pub fn turn(&mut self, now: Instant, each: impl FnMut(Datagram)) {
        self.shim.handle_timeout(now, &mut self.connections);
        if now >= self.looks_at {
            self.looks_at = now + LOOK_EVERY;
            self.serve();
        }
        self.drain(each);
    }

    /// Schedules reading messages from readers for the next turn.
    pub fn look_now(&mut self) {
        self.looks_at = Instant::ZERO;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shim.poll_timeout()
    }

    pub fn counters(&self) -> Counters {
        self.shim.counters()
    }

    /// Verifies the consistency of its accounting.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub fn check(&self) -> Result<(), String> {
        self.shim.check()
    }

    fn drain(&mut self, mut each: impl FnMut(Datagram)) {
        while let Some(datagram) = self.shim.poll_down() {
            each(datagram);
        }
    }

    /// Reads messages from readers.
    fn serve(&mut self) {
        let mut events = [EpollEvent::empty(); 32];
        let Ok(count) = self.connections.ready.wait(&mut events, EpollTimeout::ZERO) else { return };
        for event in &events[..count] {
            match event.data() {
                0 => self.accept(),
                number => self.read(number),
            }
        }
    }

    fn accept(&mut self) {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        while let Ok(file) = accept4(self.socket.listener.as_raw_fd(), flags) {
            // SAFETY: the call made this file and it has no other owner.
            let socket = unsafe { OwnedFd::from_raw_fd(file) };
            // A connection beyond the limit is closed. Its reader works without placeholders.
            if self.connections.all.len() < MOST_CONNECTIONS {
                let event = EpollEvent::new(EpollFlags::EPOLLIN, number_of(&socket));
                if self.connections.ready.add(&socket, event).is_ok() {
                    self.connections.all.push(Connection { socket, flow: None });
                }
            }
        }
    }

    /// Reads from the connection with this number, and removes it when it ends.
    fn read(&mut self, number: u64) {
        for _ in 0..MESSAGES_AT_ONCE {
            let known = |connection: &Connection| number_of(&connection.socket) == number;
            let Some(index) = self.connections.all.iter().position(known) else { return };
            let mut message = [0; MESSAGE_LEN];
            let socket = self.connections.all[index].socket.as_raw_fd();
            let is_open = match recv(socket, &mut message, MsgFlags::MSG_DONTWAIT) {
                Ok(0) => false,
                Ok(len) => self.on_message(index, &message[..len]),
                Err(Errno::EAGAIN | Errno::EINTR) => return,
                Err(_) => false,
            };
            if !is_open {
                let Connection { socket, flow } = self.connections.all.swap_remove(index);
                // Closing would suffice, unless another process has the file open too.
                let _ = self.connections.ready.delete(&socket);
                if let Some(flow) = flow {
                    self.shim.unregister(flow);
                }
                return;
            }
        }
    }

    /// Handles a message from a reader. Returns false if the connection must be closed.
    fn on_message(&mut self, index: usize, bytes: &[u8]) -> bool {
        match (ToShim::decode(bytes), self.connections.all[index].flow) {
            (Ok(ToShim::Register { version, local, remote }), None) => {
                // The IPv4 address of a dual-stack socket appears as IPv4 on the wire.
                let [local, remote] = [local, remote].map(|mut end| {
                    end.set_ip(end.ip().to_canonical());
                    end
                });
                let result = match version {
                    VERSION if !self.may_register(index, local, remote) => Err(Refusal::Foreign),
                    VERSION => self.register(index, FlowKey::live(TCP, [remote, local])),
                    _ => Err(Refusal::Version),
                };
                result.map_err(|refusal| self.connections.send(index, &ToReader::Refused(refusal))).is_ok()
            }
            (Ok(ToShim::Allow { start, end }), Some(flow)) => {
                self.shim.allow(flow, start, end);
                true
            }
            (Ok(ToShim::Repaired { start, end }), Some(flow)) => {
                self.shim.repaired(flow, start, end);
                true
            }
            (Ok(ToShim::Stop), Some(flow)) => {
                self.shim.stop(flow);
                true
            }
            (_, None) => {
                self.connections.send(index, &ToReader::Refused(Refusal::Unreadable));
                false
            }
            // Such a reader might take any bytes for original.
            (_, Some(flow)) => {
                self.shim.fail(flow);
                true
            }
        }
    }

    /// True for root, and for the owner of the socket: placeholders would corrupt the stream of any other reader.
    fn may_register(&self, index: usize, local: SocketAddr, remote: SocketAddr) -> bool {
        let Ok(reader) = peer_uid(&self.connections.all[index].socket) else { return false };
        reader.is_root()
            || match &self.socket.owners {
                Some(owners) => owners.uid(local, remote) == Ok(Some(reader)),
                None => reader == Uid::effective(),
            }
    }

    fn register(&mut self, index: usize, flow: FlowKey) -> Result<(), Refusal> {
        let mut nonce = [0; NONCE_LEN];
        self.random.read_exact(&mut nonce).map_err(|_| Refusal::Room)?;
        self.shim.register(flow, nonce)?;
        self.connections.all[index].flow = Some(flow);
        let expected_fer_ppm = self.shim.link_loss_ppm();
        self.connections.send(index, &ToReader::Registered { nonce, expected_fer_ppm });
        Ok(())
    }
}

/// The number that identifies a connection in epoll events.
fn number_of(socket: &OwnedFd) -> u64 {
    socket.as_raw_fd() as u64 + 1
}
