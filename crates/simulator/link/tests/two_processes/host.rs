//! A host: TCP over IP packets as bytes, and a file that it sends or receives.

use tacit_between::hack::{AckPacket, FlowTimestamps, Rides};
use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_packet::endpoint::Ends;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::{Bytes, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Endpoint as _, FlowKey, Packet, Transport, wire};
use tacit_tcp::{Config, Connection, State};

/// An IP packet as bytes only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket(pub Vec<u8>);

impl IpPacket {
    fn headers(&self) -> Packet {
        wire::decode_foreign(&self.0).expect("hosts here send sound packets").0
    }
}

impl AckPacket for IpPacket {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend(&self.0);
    }

    fn rides(&self) -> Rides {
        if self.headers().is_pure_ack() { Rides::Compressed } else { Rides::Never }
    }

    fn flow_key(&self) -> FlowKey {
        self.headers().flow_key()
    }

    fn reverse_key(&self) -> FlowKey {
        self.headers().reverse_key()
    }

    fn segment(&self) -> Option<Segment> {
        self.headers().segment()
    }

    fn timestamps(&self) -> Option<FlowTimestamps> {
        self.headers().timestamps()
    }
}

/// The host at the access point, and the client.
pub const HOSTS: [HostId; 2] = [HostId(1), HostId(2)];
const FLOW: FlowId = FlowId(3);
/// A high initial sequence number, so that sequence numbers wrap early in every transfer.
const ISS: SeqNumber = SeqNumber(u32::MAX - 100_000);

/// A host that sends or receives a file.
pub struct Host {
    here: HostId,
    tcp: Connection,
    /// The file to send, or the part received so far.
    pub file: Vec<u8>,
    sends: bool,
    /// The peer's first sequence number.
    first: Option<SeqNumber>,
}

impl Host {
    /// The client opens the connection. The host with a `file` sends it.
    pub fn new(here: HostId, file: Option<Vec<u8>>) -> Self {
        let remote = if here == HOSTS[0] { HOSTS[1] } else { HOSTS[0] };
        let ends = Ends { flow: FLOW, local: here, remote };
        // The window soon exceeds one or two A-MPDUs and stays above, so that more data waits.
        let congestion = Algorithm::Cubic(cubic::Config { slow_start: SlowStart::Standard }).into();
        let config = Config { congestion, receive_buffer: Bytes(1 << 20), ..Config::default() };
        let mut tcp = if here == HOSTS[1] {
            Connection::connect(config, ends, ISS, Instant::ZERO)
        } else {
            Connection::listen(config, ends, ISS)
        };
        let sends = file.is_some();
        let file = file.unwrap_or_default();
        if sends {
            tcp.write(file.len() as u64);
            tcp.close();
        }
        Self { here, tcp, file, sends, first: None }
    }

    /// Handles an arrived packet.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        let (packet, content) = wire::decode_foreign(bytes).expect("arriving packets are sound");
        assert_eq!(packet.destination, self.here, "it is for the other host");
        let Transport::Tcp(segment) = packet.transport else { panic!("there is only TCP") };
        if segment.flags.contains(Flags::SYN) {
            self.first = Some(segment.seq + 1);
        }
        self.keep(&segment, content);
        self.tcp.handle_packet(now, packet);
        while self.tcp.poll_event().is_some() {}
        if self.tcp.state() == State::CloseWait {
            self.tcp.close();
        }
    }

    /// Stores bytes at the position of their sequence number; TCP knows up to where there is no gap.
    fn keep(&mut self, segment: &Segment, content: &[u8]) {
        let Some(first) = self.first.filter(|_| !content.is_empty()) else { return };
        let place = (segment.seq - first) as usize;
        self.file.resize(self.file.len().max(place + content.len()), 0);
        self.file[place..place + content.len()].copy_from_slice(content);
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<IpPacket> {
        let packet = self.tcp.poll_transmit(now)?;
        let Transport::Tcp(segment) = &packet.transport else { panic!("there is only TCP") };
        let content = match segment.payload_len as usize {
            0 => &[],
            len => {
                let place = (segment.seq - (ISS + 1)) as usize;
                &self.file[place..place + len]
            }
        };
        let mut bytes = Vec::new();
        wire::encode_foreign(&packet, content, &mut bytes).expect("segments have a form");
        Some(IpPacket(bytes))
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.tcp.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.tcp.handle_timeout(now);
    }

    /// Both sides have closed, and the other side knows it.
    pub fn is_done(&self) -> bool {
        self.tcp.state() == State::Closed
    }

    /// The part of the file received in order; empty if the file was sent.
    pub fn received(&self) -> &[u8] {
        if self.sends { &[] } else { &self.file[..self.tcp.delivered_bytes() as usize] }
    }

    pub fn timeouts(&self) -> u64 {
        self.tcp.counters().timeouts
    }
}
