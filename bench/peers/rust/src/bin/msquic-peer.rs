//! Microsoft's msquic.
//!
//! msquic has threads of its own, which call the program back. This one sends as msquic's own `secnetperf` does: pieces of 64 kB,
//! as long as fewer bytes are under way than msquic asks for.

use std::ffi::c_void;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context as _, Result, bail};
use msquic::{
    Addr, BufferRef, Configuration, Connection, ConnectionEvent, ConnectionRef, ConnectionShutdownFlags,
    Credential, CredentialConfig, CredentialFlags, ExecutionProfile, Listener, ListenerEvent, Registration,
    RegistrationConfig, SendFlags, Settings, Status, Stream as Channel, StreamEvent, StreamOpenFlags,
    StreamRef, StreamStartFlags,
};
use rust_peers::{Answer, Certificate, Flags, PROTOCOL, Stack};

/// Bytes under way before msquic has asked for others: `PERF_DEFAULT_SEND_BUFFER_SIZE` of secnetperf.
const UNDER_WAY: u64 = 0x2_0000;
/// Streams at once.
const STREAMS: u16 = 100;
/// Of each stream and of a connection, with `--throughput`: msquic's own of a connection.
const WINDOW: u32 = 16 << 20;
/// Of `QUIC_CONGESTION_CONTROL_ALGORITHM`.
const CONGESTION: [(&str, u16); 2] = [("cubic", 0), ("bbr", 1)];

fn main() -> Result<()> {
    rust_peers::run::<Msquic>()
}

/// What callbacks hand over to the thread that closes: msquic's objects may not be closed while a closure of theirs runs.
enum Closed {
    Stream(Channel),
    Connection(Connection),
}

#[expect(unsafe_code, reason = "msquic passes ownership with the last event of a stream")]
fn owned(stream: &StreamRef) -> Channel {
    // SAFETY: called once, at `ShutdownComplete`. The stream's handle has no other owner.
    unsafe { Channel::from_raw(stream.as_raw()) }
}

#[expect(unsafe_code, reason = "msquic passes ownership with the last event of a connection")]
fn owned_connection(connection: &ConnectionRef) -> Connection {
    // SAFETY: called once, at `ShutdownComplete`. The connection's handle has no other owner.
    unsafe { Connection::from_raw(connection.as_raw()) }
}

/// A buffer that msquic has until it says that it is sent.
struct Under {
    buffers: [BufferRef; 1],
    /// What the buffer points to, where it is not static.
    _bytes: Vec<u8>,
    len: u64,
}

#[expect(unsafe_code, reason = "msquic reads the buffer after this returns")]
fn send(stream: &Channel, bytes: &'static [u8], owned: Vec<u8>, flags: SendFlags) -> Result<(), Status> {
    let slice = if owned.is_empty() { bytes } else { owned.as_slice() };
    let under = Box::new(Under { buffers: [BufferRef::from(slice)], len: slice.len() as u64, _bytes: owned });
    let context = Box::into_raw(under);
    // SAFETY: the box lives until `sent` takes it back, and moving it does not move the bytes.
    unsafe { stream.send(&(*context).buffers, flags, context.cast::<c_void>()) }.inspect_err(|_| {
        // SAFETY: msquic did not take it.
        drop(unsafe { Box::from_raw(context) });
    })
}

/// Takes back a buffer, and returns its length.
#[expect(unsafe_code, reason = "the pointer is that of `send`")]
fn sent(context: *const c_void) -> u64 {
    // SAFETY: msquic returns each context once.
    unsafe { Box::from_raw(context.cast_mut().cast::<Under>()) }.len
}

fn settings(flags: &Flags) -> Result<Settings> {
    if flags.has_acks() {
        bail!("msquic has no such setting");
    }
    let mut settings = Settings::new().set_PeerBidiStreamCount(STREAMS);
    if let Some(name) = &flags.congestion {
        let known = CONGESTION.iter().find(|(known, _)| known == name);
        let (_, number) = known.with_context(|| format!("msquic has no {name}"))?;
        settings = settings.set_CongestionControlAlgorithm(*number);
    }
    if flags.throughput {
        settings = settings.set_StreamRecvWindowDefault(WINDOW).set_ConnFlowControlWindow(WINDOW);
    }
    Ok(settings)
}

fn registration(flags: &Flags) -> Result<Registration> {
    let profile =
        if flags.throughput { ExecutionProfile::MaxThroughput } else { ExecutionProfile::LowLatency };
    Ok(Registration::new(&RegistrationConfig::new().set_execution_profile(profile))?)
}

fn protocols() -> [BufferRef; 1] {
    [BufferRef::from(PROTOCOL)]
}

/// An answer on a stream of the server.
struct Answering {
    answer: Answer,
    under_way: u64,
    /// How many bytes under way msquic asks for.
    ideal: u64,
    closed: Sender<Closed>,
}

impl Answering {
    fn event(&mut self, stream: &StreamRef, event: &StreamEvent<'_>) -> Result<(), Status> {
        match event {
            StreamEvent::Receive { buffers, .. } => {
                buffers.iter().for_each(|buffer| self.answer.receive_request(buffer.as_bytes()));
            }
            StreamEvent::SendComplete { client_context, .. } => self.under_way -= sent(*client_context),
            StreamEvent::IdealSendBufferSize { byte_count } => self.ideal = *byte_count,
            StreamEvent::ShutdownComplete { .. } => {
                let _ = self.closed.send(Closed::Stream(owned(stream)));
                return Ok(());
            }
            _ => return Ok(()),
        }
        while self.under_way < self.ideal
            && let Some((piece, last)) = self.answer.next()
        {
            let flags = if last { SendFlags::FIN } else { SendFlags::NONE };
            send(stream, piece, Vec::new(), flags)?;
            self.answer.sent(piece.len() as u64);
            self.under_way += piece.len() as u64;
        }
        Ok(())
    }
}

/// What the client's callbacks report.
enum Came {
    Connected,
    /// All of an object, in bytes.
    Object(u64),
    Failed(String),
}

/// An object on a stream of the client.
fn object(connection: &Connection, flags: &Flags, client: &Msquic) -> Result<(), Status> {
    let (came, closed) = (client.came.0.clone(), client.closed.0.clone());
    let mut read = 0;
    let callback = move |stream: StreamRef, event: StreamEvent<'_>| {
        match event {
            StreamEvent::Receive { total_buffer_length, .. } => read += *total_buffer_length,
            StreamEvent::PeerSendShutdown => drop(came.send(Came::Object(read))),
            StreamEvent::SendComplete { client_context, .. } => drop(sent(client_context)),
            StreamEvent::ShutdownComplete { .. } => {
                let _ = closed.send(Closed::Stream(owned(&stream)));
            }
            _ => {}
        }
        Ok(())
    };
    let stream = Channel::open(connection, StreamOpenFlags::NONE, callback)?;
    stream.start(StreamStartFlags::NONE)?;
    send(&stream, &[], flags.bytes.to_be_bytes().to_vec(), SendFlags::FIN)?;
    released(stream);
    Ok(())
}

/// The callback closes it.
#[expect(unsafe_code, reason = "the handle's owner is now msquic")]
fn released(stream: Channel) {
    // SAFETY: `ShutdownComplete` takes it up.
    unsafe { stream.into_raw() };
}

struct Msquic {
    server: SocketAddr,
    came: (Sender<Came>, Receiver<Came>),
    closed: (Sender<Closed>, Receiver<Closed>),
    /// Connections that end.
    ending: Vec<Connection>,
    configuration: Configuration,
    registration: Registration,
}

impl Stack for Msquic {
    const VERSION: &'static str = env!("MSQUIC_VERSION");

    fn serve(address: SocketAddr, flags: &Flags) -> Result<()> {
        let files = Certificate::generate()?;
        let [certificate, key] = files.names()?.map(str::to_owned);
        let registration = registration(flags)?;
        let configuration = Configuration::open(&registration, &protocols(), Some(&settings(flags)?))?;
        let file = msquic::CertificateFile::new(key, certificate);
        configuration.load_credential(
            &CredentialConfig::new()
                .set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION)
                .set_credential(Credential::CertificateFile(file)),
        )?;
        let (closed, to_close) = channel();
        let configuration = Arc::new(configuration);
        let listener = Listener::open(&registration, move |_, event| {
            let ListenerEvent::NewConnection { connection, .. } = event else { return Ok(()) };
            let closed = closed.clone();
            connection.set_callback_handler(move |connection: ConnectionRef, event: ConnectionEvent<'_>| {
                match event {
                    ConnectionEvent::PeerStreamStarted { stream, .. } => {
                        let closed = closed.clone();
                        let mut answering =
                            Answering { answer: Answer::default(), under_way: 0, ideal: UNDER_WAY, closed };
                        stream.set_callback_handler(move |stream: StreamRef, event: StreamEvent<'_>| {
                            answering.event(&stream, &event)
                        });
                    }
                    ConnectionEvent::ShutdownComplete { .. } => {
                        let _ = closed.send(Closed::Connection(owned_connection(&connection)));
                    }
                    _ => {}
                }
                Ok(())
            });
            connection.set_configuration(&configuration)
        })?;
        listener.start(&protocols(), Some(&Addr::from(address)))?;
        for closed in to_close {
            match closed {
                Closed::Stream(stream) => stream.close(),
                Closed::Connection(connection) => connection.close(),
            }
        }
        Ok(())
    }

    fn client(server: SocketAddr, flags: &Flags) -> Result<Self> {
        let registration = registration(flags)?;
        let configuration = Configuration::open(&registration, &protocols(), Some(&settings(flags)?))?;
        let unchecked =
            CredentialConfig::new_client().set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION);
        configuration.load_credential(&unchecked)?;
        Ok(Self {
            server,
            came: channel(),
            closed: channel(),
            ending: Vec::new(),
            configuration,
            registration,
        })
    }

    fn transfer(&mut self, flags: &Flags) -> Result<u64> {
        let came = self.came.0.clone();
        let connection =
            Connection::open(&self.registration, move |_: ConnectionRef, event: ConnectionEvent<'_>| {
                match event {
                    ConnectionEvent::Connected { .. } => drop(came.send(Came::Connected)),
                    ConnectionEvent::ShutdownInitiatedByTransport { status, .. } => {
                        drop(came.send(Came::Failed(format!("the connection has ended: {status}"))));
                    }
                    _ => {}
                }
                Ok(())
            })?;
        connection.start(&self.configuration, &self.server.ip().to_string(), self.server.port())?;
        let (mut asked, mut ended, mut read) = (0, 0, 0);
        while ended < flags.objects {
            match self.came.1.recv()? {
                Came::Connected => {}
                Came::Object(bytes) => {
                    read += bytes;
                    ended += 1;
                }
                Came::Failed(why) => bail!("{why}"),
            }
            while asked < flags.wanted(ended) {
                object(&connection, flags, self)?;
                asked += 1;
            }
        }
        connection.shutdown(ConnectionShutdownFlags::NONE, 0);
        self.ending.push(connection);
        Ok(read)
    }
}

impl Drop for Msquic {
    /// Closes streams before their connections, and those before the registration.
    fn drop(&mut self) {
        self.registration.shutdown();
        self.ending.clear();
    }
}
