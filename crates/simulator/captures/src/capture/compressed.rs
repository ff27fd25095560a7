//! Captures compressed with gzip, zstd or xz, as Wireshark reads them, decompressed as a stream in bounded memory.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Maximum window of a compressed file: what `zstd` itself decompresses unasked (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`), and
/// twice the dictionary of `xz -9`.
const LARGEST_WINDOW: u64 = 128 << 20;
/// Memory of an xz decoder with the largest window: its other buffers need less than 1 MiB.
const LARGEST_XZ_KIB: u32 = (LARGEST_WINDOW >> 10) as u32 + 1_024;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// The file, with its first bytes put back.
type Whole<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// A file as its reader needs it: decompressed, if its first bytes say that it is compressed.
pub(crate) enum Decompressed<R: Read> {
    Plain(Whole<R>),
    Gzip(Box<Gzip<Whole<R>>>),
    Zstd(Box<Zstd<Whole<R>>>),
    Xz(Box<XzReader<Whole<R>>>),
}

impl<R: Read> Decompressed<R> {
    /// Reads the first bytes, no more than a capture's own header has, which tell the format.
    pub fn new(mut reader: R) -> io::Result<Self> {
        let mut magic = Vec::with_capacity(XZ_MAGIC.len());
        reader.by_ref().take(XZ_MAGIC.len() as u64).read_to_end(&mut magic)?;
        let is = |expected: &[u8]| magic.starts_with(expected);
        let kind = (is(&GZIP_MAGIC), is(&ZSTD_MAGIC), is(&XZ_MAGIC));
        let whole = BufReader::with_capacity(64 * 1024, Cursor::new(magic).chain(reader));
        Ok(match kind {
            (true, ..) => Self::Gzip(Box::new(Gzip { member: Some(GzDecoder::new(whole)) })),
            (_, true, _) => Self::Zstd(Box::new(Zstd::new(whole))),
            (.., true) => Self::Xz(Box::new(XzReader::new_mem_limit(whole, true, LARGEST_XZ_KIB))),
            _ => Self::Plain(whole),
        })
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Gzip(members) => members.read(buffer).map_err(|error| explained("gzip", error)),
            Self::Zstd(frames) => frames.read(buffer).map_err(|error| explained("zstd", error)),
            Self::Xz(streams) => streams.read(buffer).map_err(|error| explained("xz", error)),
        }
    }
}

/// The members of a gzip file (RFC 1952 section 2.2). Other bytes after a member are ignored, as gzip does.
pub(crate) struct Gzip<R> {
    /// `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            match member.read(buffer)? {
                0 if !buffer.is_empty() => {
                    let mut input = self.member.take().expect("it was there").into_inner();
                    if input.fill_buf()?.starts_with(&GZIP_MAGIC[..1]) {
                        self.member = Some(GzDecoder::new(input));
                    }
                }
                read => return Ok(read),
            }
        }
        Ok(0)
    }
}

/// The frames of a zstd file (RFC 8878 section 3.1).
pub(crate) struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self { input, decoder, in_frame: false }
    }

    /// Reads the header of the next frame, or skips a skippable frame.
    fn next_frame(&mut self) -> io::Result<()> {
        let length = match self.decoder.init(&mut self.input) {
            Ok(()) => {
                self.in_frame = true;
                return Ok(());
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => u64::from(length),
            Err(error) => return Err(io::Error::other(error)),
        };
        let skipped = io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
        if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.next_frame()?;
            } else if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            } else if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(io::Error::other)?;
            } else {
                let stated = self.decoder.get_checksum_from_data();
                if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::other("a checksum does not match"));
                }
                self.in_frame = false;
            }
        }
    }
}

/// What a decoder's error means for the user. Errors of the operating system remain unchanged.
fn explained(format: &str, error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        let zstd = error.downcast_ref::<FrameDecoderError>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            let text = format!("its {format} data end too early");
            return io::Error::new(io::ErrorKind::InvalidData, text);
        }
        if io.is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
            || matches!(zstd, Some(FrameDecoderError::WindowSizeTooBig { .. }))
        {
            let limit = LARGEST_WINDOW >> 20;
            return io::Error::other(format!(
                "its {format} window is larger than {limit} MiB; decompress it first"
            ));
        }
        if let Some(FrameDecoderError::DictNotProvided { dict_id }) = zstd {
            return io::Error::other(format!(
                "it needs the {format} dictionary {dict_id}; decompress it first"
            ));
        }
        // An `io::Error` names as its source that of the error within.
        cause = match io.and_then(io::Error::get_ref) {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    io::Error::new(io::ErrorKind::InvalidData, format!("its {format} data are corrupt"))
}

#[cfg(test)]
mod tests;
