//! Reads pcap and pcapng files as a stream of packets, in constant memory.
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. A reader of our own, because a fault must be reported
//! with its byte offset without discarding the packets before it.

use std::io::{self, Read};

/// Default number of bytes kept per packet; the rest is skipped. All headers fit in this.
const KEEP: usize = 16 * 1024;
/// Maximum length of a captured packet: the largest snap length of libpcap.
const LONGEST_PACKET: u32 = 262_144;
/// Maximum number of interfaces in a pcapng section.
const MOST_INTERFACES: usize = 4_096;
/// Maximum number of bytes of an interface description that are searched for options.
const LONGEST_DESCRIPTION: usize = 64 * 1024;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// Why reading stopped before the end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The underlying reader failed.
    Io(io::Error),
    /// The file ends within a structure.
    Truncated,
    /// The file violates its format.
    Corrupt(String),
    /// The file is not a capture.
    NotACapture(String),
    /// The file is empty.
    Empty,
}

impl Fault {
    /// A description of the fault at the start of a packet.
    pub fn describe(&self) -> String {
        match self {
            Self::Truncated => "the file ends inside it".to_owned(),
            Self::Io(error) => format!("reading failed: {error}"),
            Self::Corrupt(problem) | Self::NotACapture(problem) => problem.clone(),
            Self::Empty => "nothing follows".to_owned(),
        }
    }
}

/// One captured packet. Its bytes are in the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Link type of its interface.
    pub link_type: u16,
    /// Interface number within the file.
    pub interface: u32,
    /// Nanoseconds since 1970; `None` for a pcapng simple packet.
    pub at_nanos: Option<i128>,
    /// Its length on the link in bytes.
    pub original_len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// Resolution of timestamps.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ticks_per_second: u64,
    offset_seconds: i64,
}

impl Clock {
    const MICROSECONDS: Self = Self { ticks_per_second: 1_000_000, offset_seconds: 0 };

    fn nanos(self, ticks: u64) -> i128 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second);
        nanos as i128 + i128::from(self.offset_seconds) * 1_000_000_000
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u16,
    snap_len: u32,
    clock: Clock,
}

enum Format {
    Pcap { order: Order, nanoseconds: bool, link_type: u16 },
    PcapNg { order: Order, interfaces: Vec<Interface> },
}

/// A capture file being read.
pub(crate) struct Container<R> {
    reader: Counted<R>,
    format: Format,
    /// Number of packets read. In a pcap file with microseconds, also the first packet with a fraction of a million or
    /// more, which means that the file contains nanoseconds.
    packets: u64,
    late_fractions: Option<u64>,
    /// Number of interfaces in earlier sections, so that numbers are unique across sections.
    earlier_interfaces: u32,
}

impl<R: Read> Container<R> {
    /// Reads the file header.
    pub fn new(reader: R) -> Result<Self, Fault> {
        let mut reader = Counted { inner: reader, offset: 0, keep: KEEP };
        let mut magic = [0; 4];
        match reader.fill(&mut magic)? {
            0 => return Err(Fault::Empty),
            4 => {}
            _ => return Err(Fault::NotACapture("it is shorter than any file header".into())),
        }
        let (order, nanoseconds) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, false),
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, false),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, true),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, true),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                let format = Format::PcapNg { order: Order::Little, interfaces: Vec::new() };
                let mut container =
                    Self { reader, format, packets: 0, late_fractions: None, earlier_interfaces: 0 };
                container.section_header()?;
                return Ok(container);
            }
            _ => return Err(Fault::NotACapture(describe_magic(magic))),
        };
        // Version, zone, accuracy, snap length, link type.
        let header = reader.array::<20>()?;
        let network = order.u32([header[16], header[17], header[18], header[19]]);
        // The upper 16 bits contain the FCS length.
        let link_type = (network & 0xffff) as u16;
        let format = Format::Pcap { order, nanoseconds, link_type };
        Ok(Self { reader, format, packets: 0, late_fractions: None, earlier_interfaces: 0 })
    }

    /// Sets the number of bytes kept per packet from here on. The default is 16 KiB, which holds all headers.
    pub fn keep(&mut self, bytes: usize) {
        self.reader.keep = bytes;
    }

    /// Number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.reader.offset
    }

    /// The first packet, counted from 1, whose microseconds exceed 999,999. From there on they are interpreted as
    /// nanoseconds.
    pub fn late_fractions(&self) -> Option<u64> {
        self.late_fractions
    }

    /// "pcap" or "pcapng".
    pub fn format_name(&self) -> &'static str {
        match self.format {
            Format::Pcap { .. } => "pcap",
            Format::PcapNg { .. } => "pcapng",
        }
    }

    /// Reads the next packet, and stores the bytes to keep in `bytes`; `None` at the end.
    pub fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Record>, Fault> {
        match &self.format {
            Format::Pcap { order, nanoseconds, link_type } => {
                let (order, nanoseconds, link_type) = (*order, *nanoseconds, *link_type);
                self.next_pcap(order, nanoseconds, link_type, bytes)
            }
            Format::PcapNg { .. } => loop {
                match self.next_block(bytes)? {
                    Block::Packet(record) => return Ok(Some(record)),
                    Block::Other => {}
                    Block::End => return Ok(None),
                }
            },
        }
    }

    fn next_pcap(
        &mut self,
        order: Order,
        nanoseconds: bool,
        link_type: u16,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Record>, Fault> {
        let mut header = [0; 16];
        match self.reader.fill(&mut header)? {
            0 => return Ok(None),
            16 => {}
            _ => return Err(Fault::Truncated),
        }
        let field = |i: usize| order.u32([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        let (seconds, fraction, captured, original_len) = (field(0), field(4), field(8), field(12));
        self.reader.packet(captured, bytes)?;
        self.packets += 1;
        if !nanoseconds && fraction >= 1_000_000 && self.late_fractions.is_none() {
            self.late_fractions = Some(self.packets);
        }
        let scale = if nanoseconds || self.late_fractions.is_some() { 1 } else { 1_000 };
        let at_nanos = i128::from(seconds) * 1_000_000_000 + i128::from(fraction) * scale;
        Ok(Some(Record {
            link_type,
            interface: 0,
            at_nanos: Some(at_nanos),
            original_len: original_len.max(captured),
        }))
    }

    fn next_block(&mut self, bytes: &mut Vec<u8>) -> Result<Block, Fault> {
        let Format::PcapNg { order, .. } = &self.format else { return Ok(Block::End) };
        let order = *order;
        let mut kind = [0; 4];
        match self.reader.fill(&mut kind)? {
            0 => return Ok(Block::End),
            4 => {}
            _ => return Err(Fault::Truncated),
        }
        let kind = order.u32(kind);
        if kind == SECTION_HEADER {
            self.section_header()?;
            return Ok(Block::Other);
        }
        let total = order.u32(self.reader.array()?);
        if total < 12 || total % 4 != 0 {
            return Err(Fault::Corrupt(format!(
                "a block says it is {total} bytes long, which has to be a multiple of 4 and at least 12"
            )));
        }
        let body = total - 12;
        let end = self.reader.offset + u64::from(body);
        let block = match kind {
            INTERFACE_DESCRIPTION => self.interface_description(order, body)?,
            ENHANCED_PACKET => Block::Packet(self.enhanced_packet(order, body, bytes)?),
            OBSOLETE_PACKET => Block::Packet(self.obsolete_packet(order, body, bytes)?),
            SIMPLE_PACKET => Block::Packet(self.simple_packet(order, body, bytes)?),
            _ => Block::Other,
        };
        let read_beyond = || Fault::Corrupt("a block is too short for its contents".into());
        let rest = end.checked_sub(self.reader.offset).ok_or_else(read_beyond)?;
        self.reader.skip(rest)?;
        let trailer = order.u32(self.reader.array()?);
        if trailer != total {
            return Err(Fault::Corrupt(format!(
                "a block starts by saying it is {total} bytes long and ends by saying {trailer}"
            )));
        }
        Ok(block)
    }

    /// Processes a section header after its type: sets the byte order and clears the interfaces.
    fn section_header(&mut self) -> Result<(), Fault> {
        let length = self.reader.array()?;
        let magic: [u8; 4] = self.reader.array()?;
        let new_order = if u32::from_le_bytes(magic) == BYTE_ORDER_MAGIC {
            Order::Little
        } else if u32::from_be_bytes(magic) == BYTE_ORDER_MAGIC {
            Order::Big
        } else {
            return Err(Fault::Corrupt("a section header has no byte-order magic".into()));
        };
        let total = new_order.u32(length);
        if total < 28 || total % 4 != 0 {
            return Err(Fault::Corrupt(format!("a section header says it is {total} bytes long")));
        }
        self.reader.skip(u64::from(total - 12))?;
        let Format::PcapNg { order, interfaces } = &mut self.format else { return Ok(()) };
        *order = new_order;
        self.earlier_interfaces = self.earlier_interfaces.saturating_add(interfaces.len() as u32);
        interfaces.clear();
        Ok(())
    }

    fn interface_description(&mut self, order: Order, body: u32) -> Result<Block, Fault> {
        let fixed = self.reader.field::<8>(body, 8)?;
        let mut options = vec![0; (body as usize - 8).min(LONGEST_DESCRIPTION)];
        self.reader.exact(&mut options)?;
        let Format::PcapNg { interfaces, .. } = &mut self.format else { return Ok(Block::End) };
        if interfaces.len() >= MOST_INTERFACES {
            return Err(Fault::Corrupt(format!("a section has more than {MOST_INTERFACES} interfaces")));
        }
        interfaces.push(Interface {
            link_type: order.u16([fixed[0], fixed[1]]),
            snap_len: order.u32([fixed[4], fixed[5], fixed[6], fixed[7]]),
            clock: clock(order, &options)?,
        });
        Ok(Block::Other)
    }

    fn enhanced_packet(&mut self, order: Order, body: u32, bytes: &mut Vec<u8>) -> Result<Record, Fault> {
        let fixed = self.reader.field::<20>(body, 20)?;
        let field = |i: usize| order.u32([fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]]);
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        self.block_packet(field(0), Some(ticks), (field(12), field(16)), body - 20, bytes)
    }

    fn obsolete_packet(&mut self, order: Order, body: u32, bytes: &mut Vec<u8>) -> Result<Record, Fault> {
        let fixed = self.reader.field::<20>(body, 20)?;
        let field = |i: usize| order.u32([fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]]);
        let interface = u32::from(order.u16([fixed[0], fixed[1]]));
        let ticks = u64::from(field(4)) << 32 | u64::from(field(8));
        self.block_packet(interface, Some(ticks), (field(12), field(16)), body - 20, bytes)
    }

    fn simple_packet(&mut self, order: Order, body: u32, bytes: &mut Vec<u8>) -> Result<Record, Fault> {
        let original = order.u32(self.reader.field::<4>(body, 4)?);
        let snap_len = match &self.format {
            Format::PcapNg { interfaces, .. } => interfaces.first().map_or(0, |interface| interface.snap_len),
            Format::Pcap { .. } => 0,
        };
        // A snap length of zero means no limit.
        let snap_len = if snap_len == 0 { u32::MAX } else { snap_len };
        let captured = original.min(snap_len).min(body - 4);
        self.block_packet(0, None, (captured, original), body - 4, bytes)
    }

    /// Reads packet data within a block in which `room` bytes are left. `lengths` are the captured and the original
    /// length.
    fn block_packet(
        &mut self,
        interface: u32,
        ticks: Option<u64>,
        lengths: (u32, u32),
        room: u32,
        bytes: &mut Vec<u8>,
    ) -> Result<Record, Fault> {
        let Format::PcapNg { interfaces, .. } = &self.format else {
            return Err(Fault::Corrupt("a pcapng block in a pcap file".into()));
        };
        let Some(described) = interfaces.get(interface as usize).copied() else {
            return Err(Fault::Corrupt(format!(
                "a packet names interface {interface}, but its section describes {}",
                interfaces.len()
            )));
        };
        let (captured, original) = lengths;
        if captured > room {
            return Err(Fault::Corrupt(format!("a packet of {captured} bytes is in a block with {room}")));
        }
        self.reader.packet(captured, bytes)?;
        Ok(Record {
            link_type: described.link_type,
            interface: self.earlier_interfaces.saturating_add(interface),
            at_nanos: ticks.map(|ticks| described.clock.nanos(ticks)),
            original_len: original.max(captured),
        })
    }
}

enum Block {
    Packet(Record),
    Other,
    End,
}

/// The clock described by an interface's options.
fn clock(order: Order, mut options: &[u8]) -> Result<Clock, Fault> {
    let mut clock = Clock::MICROSECONDS;
    while let [c0, c1, l0, l1, rest @ ..] = options {
        let (code, len) = (order.u16([*c0, *c1]), usize::from(order.u16([*l0, *l1])));
        let Some(value) = rest.get(..len) else { break };
        match (code, value) {
            (OPTION_END, _) => break,
            (OPTION_TSRESOL, [resolution, ..]) => {
                let exponent = u32::from(resolution & 0x7f);
                let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                clock.ticks_per_second = base
                    .checked_pow(exponent)
                    .ok_or_else(|| Fault::Corrupt(format!("a clock of {base}^-{exponent} s is too fine")))?;
            }
            (OPTION_TSOFFSET, value) => {
                if let Ok(value) = value.try_into() {
                    clock.offset_seconds = order.u64(value) as i64;
                }
            }
            _ => {}
        }
        options = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(clock)
}

fn describe_magic(magic: [u8; 4]) -> String {
    let [a, b, c, d] = magic;
    match magic {
        [b'B', b'Z', b'h', _] => "it is compressed with bzip2; decompress it first".into(),
        [0x04, 0x22, 0x4d, 0x18] => "it is compressed with lz4; decompress it first".into(),
        _ => format!("it starts with {a:02x} {b:02x} {c:02x} {d:02x}"),
    }
}

/// A reader that tracks its offset.
struct Counted<R> {
    inner: R,
    offset: u64,
    keep: usize,
}

impl<R: Read> Counted<R> {
    /// Fills `buffer` as far as the file allows. Returns the number of bytes read.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Io(error)),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), Fault> {
        if self.fill(buffer)? == buffer.len() { Ok(()) } else { Err(Fault::Truncated) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        self.exact(&mut array)?;
        Ok(array)
    }

    /// The first `N` bytes of a block body with `body` bytes.
    fn field<const N: usize>(&mut self, body: u32, need: u32) -> Result<[u8; N], Fault> {
        if body < need {
            return Err(Fault::Corrupt(format!("a block with {body} bytes of body needs at least {need}")));
        }
        self.array()
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Fault> {
        let mut scratch = [0; 4096];
        let mut left = bytes;
        while left > 0 {
            let step = left.min(scratch.len() as u64) as usize;
            self.exact(&mut scratch[..step])?;
            left -= step as u64;
        }
        Ok(())
    }

    /// Reads a packet of `captured` bytes and keeps the first part.
    fn packet(&mut self, captured: u32, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        if captured > LONGEST_PACKET {
            return Err(Fault::Corrupt(format!(
                "a packet says that {captured} bytes of it were captured; at most {LONGEST_PACKET} can be"
            )));
        }
        bytes.resize((captured as usize).min(self.keep), 0);
        self.exact(bytes)?;
        self.skip(u64::from(captured) - bytes.len() as u64)
    }
}
