//! Tencent's tquic.
//!
//! tquic leaves the socket to the program, and paces by itself. This one does what tquic's examples do: it reads until the
//! socket is empty, and lets the endpoint process what came.

#![expect(clippy::disallowed_methods, reason = "the edge that reads the clock")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use rust_peers::{Answer, Certificate, Flags, NAME, PROTOCOL, Port, Stack};
use tquic::{
    Config, Connection, Endpoint, Error, PacketInfo, PacketSendHandler, TIMER_GRANULARITY, TlsConfig,
    TransportHandler,
};

fn main() -> Result<()> {
    rust_peers::run::<Tquic>()
}

fn config(flags: &Flags) -> Result<Config> {
    if flags.throughput {
        bail!("tquic has no such setting");
    }
    let mut config = Config::new()?;
    // A connection that has no timeout and whose peer left would stay for ever.
    config.set_max_idle_timeout(30_000);
    if let Some(name) = &flags.congestion {
        config.set_congestion_control_algorithm(name.parse()?);
    }
    if let Some(packets) = flags.ack_packets {
        config.set_ack_eliciting_threshold(packets);
    }
    if let Some(ms) = flags.ack_delay_ms {
        // tquic takes the delay that its peer announces for its own: both ends have it.
        config.set_max_ack_delay(ms);
    }
    Ok(config)
}

fn protocols() -> Vec<Vec<u8>> {
    vec![PROTOCOL.as_bytes().to_vec()]
}

/// What packets leave through.
struct Out(UdpSocket);

impl PacketSendHandler for Out {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        let sent = packets.iter().take_while(|(packet, info)| self.0.send_to(packet, info.dst).is_ok());
        Ok(sent.count())
    }
}

/// An endpoint on a socket.
struct End {
    endpoint: Endpoint,
    port: Port,
    buffer: Vec<u8>,
}

impl End {
    fn new(
        config: Config,
        port: Port,
        handler: impl TransportHandler + 'static,
        serves: bool,
    ) -> Result<Self> {
        use std::os::fd::AsFd as _;
        let out = UdpSocket::from(port.socket.as_fd().try_clone_to_owned()?);
        let endpoint = Endpoint::new(Box::new(config), serves, Box::new(handler), Rc::new(Out(out)));
        Ok(Self { endpoint, port, buffer: vec![0; 65_535] })
    }

    /// Processes what is there, and waits for more.
    fn turn(&mut self) -> Result<()> {
        self.endpoint.process_connections()?;
        if !self.port.wait(self.endpoint.timeout().or(Some(TIMER_GRANULARITY * 100)))? {
            self.endpoint.on_timeout(Instant::now());
        }
        while let Some((datagram, src)) = self.port.receive(&mut self.buffer)? {
            let info = PacketInfo { src, dst: self.port.address, time: Instant::now() };
            let _ = self.endpoint.recv(datagram, &info);
        }
        Ok(())
    }
}

/// Of the server: answers by connection and stream.
struct Answers {
    answers: HashMap<(u64, u64), Answer>,
    buffer: Vec<u8>,
}

impl Answers {
    /// Writes as much of an answer as the connection takes.
    fn answer(&mut self, connection: &mut Connection, stream: u64) {
        let at = (connection.index().unwrap_or_default(), stream);
        let Some(answer) = self.answers.get_mut(&at) else { return };
        while let Some((piece, last)) = answer.next() {
            match connection.stream_write(stream, Bytes::from_static(piece), last) {
                Ok(written) => answer.sent(written as u64),
                Err(_) => break,
            }
        }
        let left = answer.next().is_some();
        let _ = connection.stream_want_write(stream, left);
    }
}

impl TransportHandler for Answers {
    fn on_conn_created(&mut self, _: &mut Connection) {}
    fn on_conn_established(&mut self, _: &mut Connection) {}
    fn on_conn_closed(&mut self, _: &mut Connection) {}
    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let at = (connection.index().unwrap_or_default(), stream);
        while let Ok((read, _)) = connection.stream_read(stream, &mut self.buffer) {
            self.answers.entry(at).or_default().receive_request(&self.buffer[..read]);
        }
        self.answer(connection, stream);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.answer(connection, stream);
    }

    fn on_stream_closed(&mut self, connection: &mut Connection, stream: u64) {
        self.answers.remove(&(connection.index().unwrap_or_default(), stream));
    }

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

/// Of the client: how far the transfer of the newest connection is.
#[derive(Default)]
struct Progress {
    /// The connection.
    index: u64,
    asked: u64,
    ended: u64,
    read: u64,
    failed: Option<String>,
}

struct Requests {
    progress: Rc<RefCell<Progress>>,
    flags: Flags,
    buffer: Vec<u8>,
}

impl Requests {
    /// Asks for what is wanted by now, and closes when all is there.
    fn send_requests(&self, connection: &mut Connection) {
        let mut progress = self.progress.borrow_mut();
        while progress.asked < self.flags.wanted(progress.ended) {
            let request = Bytes::copy_from_slice(&self.flags.bytes.to_be_bytes());
            let asked = connection
                .stream_bidi_new(0, false)
                .and_then(|stream| connection.stream_write(stream, request, true));
            if let Err(error) = asked {
                progress.failed = Some(error.to_string());
                return;
            }
            progress.asked += 1;
        }
        if progress.ended == self.flags.objects {
            let _ = connection.close(true, 0, b"done");
        }
    }

    /// Connections of transfers before this one still end.
    fn is_newest(&self, connection: &Connection) -> bool {
        connection.index() == Some(self.progress.borrow().index)
    }
}

impl TransportHandler for Requests {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        self.progress.borrow_mut().index = connection.index().unwrap_or_default();
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.send_requests(connection);
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        if self.is_newest(connection) {
            let why = format!("the connection has ended: {:?}", connection.peer_error());
            self.progress.borrow_mut().failed = Some(why);
        }
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        loop {
            match connection.stream_read(stream, &mut self.buffer) {
                Ok((read, fin)) => {
                    let mut progress = self.progress.borrow_mut();
                    progress.read += read as u64;
                    progress.ended += u64::from(fin);
                    if fin {
                        break;
                    }
                }
                Err(Error::Done) => return,
                Err(error) => {
                    self.progress.borrow_mut().failed = Some(error.to_string());
                    return;
                }
            }
        }
        self.send_requests(connection);
    }

    fn on_stream_writable(&mut self, _: &mut Connection, _: u64) {}
    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

struct Tquic {
    end: End,
    server: SocketAddr,
    progress: Rc<RefCell<Progress>>,
}

impl Stack for Tquic {
    const VERSION: &'static str = env!("TQUIC_VERSION");

    fn serve(address: SocketAddr, flags: &Flags) -> Result<()> {
        let mut config = config(flags)?;
        let files = Certificate::generate()?;
        let [certificate, key] = files.names()?;
        config.set_tls_config(TlsConfig::new_server_config(certificate, key, protocols(), false)?);
        let answers = Answers { answers: HashMap::new(), buffer: vec![0; 65_535] };
        let mut end = End::new(config, Port::bind(address)?, answers, true)?;
        loop {
            end.turn()?;
        }
    }

    fn client(server: SocketAddr, flags: &Flags) -> Result<Self> {
        let mut config = config(flags)?;
        let mut tls = TlsConfig::new_client_config(protocols(), false)?;
        tls.set_verify(false);
        config.set_tls_config(tls);
        let progress = Rc::new(RefCell::new(Progress::default()));
        let requests = Requests { progress: progress.clone(), flags: flags.clone(), buffer: vec![0; 65_535] };
        Ok(Self { end: End::new(config, Port::towards(server)?, requests, false)?, server, progress })
    }

    fn transfer(&mut self, flags: &Flags) -> Result<u64> {
        let Self { end, server, progress } = self;
        *progress.borrow_mut() = Progress::default();
        end.endpoint
            .connect(end.port.address, *server, Some(NAME), None, None, None)
            .context("tquic cannot connect")?;
        while progress.borrow().ended < flags.objects {
            end.turn()?;
            if let Some(why) = progress.borrow_mut().failed.take() {
                bail!("{why}");
            }
        }
        // The end leaves.
        end.endpoint.process_connections()?;
        Ok(progress.borrow().read)
    }
}
