//! Servers: a correct one, and faulty ones.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// A request as the server received it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Header names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Number of requests before it, over all connections.
    pub number: u64,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// First and last requested byte of a file of `complete` bytes, if a single range is requested.
    pub fn range(&self, complete: usize) -> Option<(usize, usize)> {
        match self.ranges(complete)?[..] {
            [range] => Some(range),
            _ => None,
        }
    }

    /// First and last bytes of all requested ranges.
    pub fn ranges(&self, complete: usize) -> Option<Vec<(usize, usize)>> {
        let ranges = self.header("range")?.strip_prefix("bytes=")?.split(',').map(|range| {
            let (first, last) = range.split_once('-')?;
            let first: usize = first.parse().ok()?;
            let last = last.parse().map_or(complete - 1, |last: usize| last.min(complete - 1));
            (first < complete).then_some((first, last))
        });
        ranges.collect()
    }
}

/// What a server sends, and what happens to the connection.
pub enum Reply {
    Bytes(Vec<u8>),
    Last(Vec<u8>),
    /// Bytes, then nothing more.
    Stall(Vec<u8>),
    /// Bytes, then the second bytes over and over.
    Endless(Vec<u8>, Vec<u8>),
}

pub struct Server {
    pub address: SocketAddr,
    pub requests: Arc<AtomicU64>,
}

impl Server {
    pub fn new(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        open_many_files();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, requests) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&counted));
                thread::spawn(move || serve(stream, &*answer, &requests));
            }
        });
        Self { address, requests }
    }

    /// Serves `content` as RFC 9110 specifies.
    pub fn serving(content: Vec<u8>) -> Self {
        let content = Arc::new(content);
        Self::new(move |seen| good(seen, &content, "\"v1\""))
    }
}

/// Tests side by side hold more sockets than the 1,024 that a user's processes have at first.
fn open_many_files() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Seen) -> Reply, requests: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let Some(mut seen) = head(&mut reader) else { return };
        let length = seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        seen.body = vec![0; length];
        if std::io::Read::read_exact(&mut reader, &mut seen.body).is_err() {
            return;
        }
        seen.number = requests.fetch_add(1, Ordering::Relaxed);
        match answer(&seen) {
            Reply::Bytes(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Reply::Last(bytes) => {
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
            Reply::Stall(bytes) => {
                let _ = stream.write_all(&bytes);
                thread::sleep(Duration::from_secs(600));
            }
            Reply::Endless(bytes, more) => {
                let _ = stream.write_all(&bytes);
                while stream.write_all(&more).is_ok() {}
                return;
            }
        }
    }
}

fn head(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers = lines[1..].iter().filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Some(Seen { method, path, headers, body: Vec::new(), number: 0 })
}

/// A correct reply by RFC 9110.
pub fn good(seen: &Seen, content: &[u8], tag: &str) -> Reply {
    if content.is_empty() && seen.header("range").is_some() {
        let head =
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n";
        return Reply::Bytes(head.into());
    }
    let holds = seen.header("if-range").is_none_or(|condition| condition == tag);
    let several = seen.ranges(content.len()).filter(|ranges| holds && ranges.len() > 1);
    if let Some(ranges) = several {
        return parts(content, tag, &format!("b{:07}", seen.number), &ranges, "");
    }
    let common = format!("ETag: {tag}\r\nAccept-Ranges: bytes\r\nContent-Type: application/byte-stream\r\n");
    let complete = content.len();
    let (head, body) = match seen.range(complete).filter(|_| holds && !content.is_empty()) {
        Some((first, last)) => (
            format!(
                "HTTP/1.1 206 Partial Content\r\n{common}Content-Range: bytes {first}-{last}/{complete}\r\nContent-Length: {}\r\n\r\n",
                last - first + 1
            ),
            &content[first..=last],
        ),
        None => (format!("HTTP/1.1 200 OK\r\n{common}Content-Length: {complete}\r\n\r\n"), content),
    };
    let body = if seen.method == "HEAD" { &[] } else { body };
    Reply::Bytes([head.as_bytes(), body].concat())
}

/// A multipart answer, with additional header lines.
pub fn parts(content: &[u8], tag: &str, boundary: &str, ranges: &[(usize, usize)], more: &str) -> Reply {
    let mut body = Vec::new();
    for (first, last) in ranges {
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: application/byte-stream\r\nContent-Range: bytes {first}-{last}/{}\r\n\r\n",
            content.len()
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&content[*first..=*last]);
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nETag: {tag}\r\nContent-Type: multipart/byteranges; boundary={boundary}\r\n{more}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    Reply::Bytes([head.as_bytes(), &body].concat())
}

/// `len` pseudo-random bytes that do not contain markers.
pub fn content(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    bytes.flatten().take(len).collect()
}
