//! Pairs two machines: they verify each other's keys by a short code that a person reads on one machine and types on
//! the other (SPAKE2, RFC 9382, as implemented by the `spake2` crate).
//!
//! Each end knows the other's key from the connection, but not whether it is the right one, because an attacker may be
//! in between. The keys are the identities of the exchange, so two ends that see different keys, or have different
//! codes, derive different secrets. The messages do not allow offline guessing: each connection is one guess, and the
//! number of guesses is limited.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use tacit_tack::PublicKey;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::copy::CopyError;
use crate::copy::wire::{read_piece, write_piece};

/// Version of the messages. Both ends must have the same.
const VERSION: u32 = 1;
/// Most wrong codes per pairing. Ours: with 10^9 codes, this number of guesses succeeds with a probability of 1 in 200
/// million.
pub const GUESSES_MAX: u32 = 5;
/// Digits of a code.
const CODE_DIGITS: usize = 9;
/// Time limit for one exchange, which does not wait for a person. Ours.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);
/// Most bytes of a client's name, the same as for names of peers.
const NAME_BYTES_MAX: usize = 255;

/// Why pairing failed.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The codes differ, or an attacker is in between.
    #[error("wrong code, or an attacker answers")]
    WrongCode,
    /// The code was used, or there were too many wrong codes.
    #[error("this code has expired: it was used, or {GUESSES_MAX} others were wrong")]
    Guessed,
    /// The text is not a code.
    #[error("{0:?} is not a code of {CODE_DIGITS} digits")]
    NoCode(String),
    /// The other end has another version.
    #[error("the other end has version {0} of the pairing protocol, this one {VERSION}")]
    Version(u32),
    /// The stream broke, or a message is malformed.
    #[error(transparent)]
    Stream(#[from] CopyError),
    /// The other end did not answer in time.
    #[error("no answer from the other end")]
    TimedOut,
}

impl From<std::io::Error> for PairError {
    fn from(error: std::io::Error) -> Self {
        Self::Stream(error.into())
    }
}

/// A code for one pairing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    /// Generates a random code.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, std::io::Error> {
        const CODES: u64 = 1_000_000_000;
        let mut bytes = [0; 8];
        loop {
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            let number = u64::from_ne_bytes(bytes);
            // Rejection sampling makes all codes equally likely.
            if number < u64::MAX / CODES * CODES {
                return Ok(Self(format!("{:0CODE_DIGITS$}", number % CODES)));
            }
        }
    }

    fn password(&self) -> Password {
        Password::new(&self.0)
    }
}

impl std::str::FromStr for Code {
    type Err = PairError;

    fn from_str(text: &str) -> Result<Self, PairError> {
        let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
        match digits.len() == CODE_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            true => Ok(Self(digits)),
            false => Err(PairError::NoCode(text.chars().take(40).collect())),
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", &self.0[..3], &self.0[3..6], &self.0[6..])
    }
}

/// Messages; each one is a piece of the copy protocol.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
enum Message {
    /// First message, from the client, with its share of the key exchange.
    Start { version: u32, share: Vec<u8>, name: String },
    /// The server's share.
    Share { version: u32, share: Vec<u8> },
    /// Confirms the secret: first from the client, then from the server.
    Confirm { mac: [u8; 32] },
    /// The server ends the pairing.
    Refused { is_code: bool },
}

/// The keys of the two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// Key of the end that shows the code.
    pub server: PublicKey,
    /// Key of the end where the code is typed.
    pub client: PublicKey,
}

impl Keys {
    fn identities(self) -> (Identity, Identity) {
        let identity =
            |role: &str, key: PublicKey| Identity::new(&[role.as_bytes(), key.as_bytes()].concat());
        (identity("tacit pair, client ", self.client), identity("tacit pair, server ", self.server))
    }
}

/// Proves that an end knows `secret`, and covers all messages of both ends.
fn mac(secret: &[u8], role: &str, transcript: &[u8]) -> [u8; 32] {
    let key = blake3::derive_key(&format!("tacit 2026-11 pairing, {role} confirms"), secret);
    *blake3::keyed_hash(&key, transcript).as_bytes()
}

fn transcript(name: &str, client_share: &[u8], server_share: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in [name.as_bytes(), client_share, server_share] {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &Message) -> Result<(), PairError> {
    let bytes = serde_json::to_vec(message).map_err(std::io::Error::from)?;
    write_piece(stream, &bytes).await?;
    Ok(stream.flush().await?)
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Message, PairError> {
    let bytes = read_piece(stream).await?;
    let message = serde_json::from_slice(&bytes);
    Ok(message.map_err(|error| CopyError::Protocol(format!("no message: {error}")))?)
}

fn unexpected() -> PairError {
    CopyError::Protocol("a message has no business here".into()).into()
}

/// The end that shows the code.
#[derive(Debug)]
pub struct Pairing {
    code: Code,
    /// Wrong codes so far.
    guesses: AtomicU32,
}

impl Pairing {
    /// A pairing by `code`.
    pub fn new(code: Code) -> Self {
        Self { code, guesses: AtomicU32::new(0) }
    }

    /// Serves one client, and returns its name once it has proved that it knows the code. `trust` runs before the
    /// client gets the confirmation.
    ///
    /// # Errors
    /// If the client does not know the code, or the stream breaks.
    pub async fn take<R: AsyncRead + Unpin, W: AsyncWrite + Unpin, E: From<PairError>>(
        &self,
        keys: Keys,
        reader: &mut R,
        writer: &mut W,
        trust: impl FnOnce(&str) -> Result<(), E>,
    ) -> Result<String, E> {
        let shown = tokio::time::timeout(EXCHANGE_TIMEOUT, self.exchange(keys, reader, writer)).await;
        let (name, mac) = shown.map_err(|_| PairError::TimedOut)??;
        trust(&name)?;
        write(writer, &Message::Confirm { mac }).await?;
        Ok(name)
    }

    async fn exchange<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        keys: Keys,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<(String, [u8; 32]), PairError> {
        let Message::Start { version, share: theirs, name } = read(reader).await? else {
            return Err(unexpected());
        };
        let (client, server) = keys.identities();
        let (state, ours) = Spake2::<Ed25519Group>::start_b(&self.code.password(), &client, &server);
        write(writer, &Message::Share { version: VERSION, share: ours.clone() }).await?;
        if version != VERSION {
            return Err(PairError::Version(version));
        }
        // Counted before the comparison, so that concurrent guesses gain nothing.
        if self.guesses.fetch_add(1, Relaxed) >= GUESSES_MAX {
            write(writer, &Message::Refused { is_code: false }).await?;
            return Err(PairError::Guessed);
        }
        let Message::Confirm { mac: shown } = read(reader).await? else { return Err(unexpected()) };
        let secret = state.finish(&theirs).unwrap_or_default();
        let transcript = transcript(&name, &theirs, &ours);
        // Constant-time comparison.
        let is_right = !secret.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && blake3::Hash::from(mac(&secret, "client", &transcript)) == blake3::Hash::from(shown);
        if !is_right {
            write(writer, &Message::Refused { is_code: true }).await?;
            return Err(PairError::WrongCode);
        }
        // A code is good for one pairing.
        self.guesses.store(GUESSES_MAX, Relaxed);
        Ok((name, mac(&secret, "server", &transcript)))
    }

    /// True if the code was used, or no more guesses are accepted.
    pub fn is_spent(&self) -> bool {
        self.guesses.load(Relaxed) >= GUESSES_MAX
    }
}

/// Proves to a server that this end, with the name `name`, knows `code`. On success the server's key is authentic.
///
/// # Errors
/// If the server does not know the code, or the stream breaks.
pub async fn pair<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    code: &Code,
    name: &str,
    keys: Keys,
    reader: &mut R,
    writer: &mut W,
) -> Result<(), PairError> {
    let exchange = async {
        let (client, server) = keys.identities();
        let (state, ours) = Spake2::<Ed25519Group>::start_a(&code.password(), &client, &server);
        let start = Message::Start { version: VERSION, share: ours.clone(), name: name.to_owned() };
        write(writer, &start).await?;
        let Message::Share { version, share: theirs } = read(reader).await? else { return Err(unexpected()) };
        if version != VERSION {
            return Err(PairError::Version(version));
        }
        let secret = state.finish(&theirs).map_err(|_| PairError::WrongCode)?;
        let transcript = transcript(name, &ours, &theirs);
        write(writer, &Message::Confirm { mac: mac(&secret, "client", &transcript) }).await?;
        match read(reader).await? {
            Message::Confirm { mac: shown } => {
                let expected = blake3::Hash::from(mac(&secret, "server", &transcript));
                if expected == blake3::Hash::from(shown) { Ok(()) } else { Err(PairError::WrongCode) }
            }
            Message::Refused { is_code: true } => Err(PairError::WrongCode),
            Message::Refused { is_code: false } => Err(PairError::Guessed),
            _ => Err(unexpected()),
        }
    };
    tokio::time::timeout(EXCHANGE_TIMEOUT, exchange).await.map_err(|_| PairError::TimedOut)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{duplex, split};

    fn key(byte: u8) -> PublicKey {
        [byte; 32].into()
    }

    fn code(text: &str) -> Code {
        text.parse().unwrap()
    }

    /// Results of server and client, and the name that the server trusts. Each end may see different keys.
    fn paired(
        pairing: &Pairing,
        typed: &str,
        there: Keys,
        here: Keys,
    ) -> (Result<String, PairError>, Result<(), PairError>, Option<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mine, theirs) = duplex(4096);
            let (mut reader, mut writer) = split(mine);
            let (mut their_reader, mut their_writer) = split(theirs);
            let mut trusted = None;
            let trust = |name: &str| -> Result<(), PairError> {
                trusted = Some(name.to_owned());
                Ok(())
            };
            let typed = code(typed);
            let (server, client) = tokio::join!(
                pairing.take(there, &mut their_reader, &mut their_writer, trust),
                pair(&typed, "laptop", here, &mut reader, &mut writer)
            );
            (server, client, trusted)
        })
    }

    const CODE: &str = "123-456-789";

    #[test]
    fn ends_with_one_code_and_one_view_of_the_keys_are_paired() {
        let keys = Keys { server: key(1), client: key(2) };
        let (server, client, trusted) = paired(&Pairing::new(code(CODE)), "123 456 789", keys, keys);
        assert_eq!(server.unwrap(), "laptop");
        client.unwrap();
        assert_eq!(trusted.as_deref(), Some("laptop"));
    }

    #[test]
    fn a_code_is_good_for_one_pairing() {
        let keys = Keys { server: key(1), client: key(2) };
        let pairing = Pairing::new(code(CODE));
        paired(&pairing, CODE, keys, keys).0.unwrap();
        assert!(pairing.is_spent());
        let third = Keys { client: key(3), ..keys };
        let (server, _, trusted) = paired(&pairing, CODE, third, third);
        assert!(matches!(server, Err(PairError::Guessed)), "{server:?}");
        assert_eq!(trusted, None);
    }

    #[test]
    fn another_code_or_somebody_between_is_found_by_both() {
        let keys = Keys { server: key(1), client: key(2) };
        for (typed, there, here) in [
            ("123-456-788", keys, keys),
            // An attacker with its own key is in between and relays the messages.
            (CODE, Keys { client: key(3), ..keys }, keys),
            (CODE, keys, Keys { server: key(3), ..keys }),
            (CODE, Keys { client: key(3), ..keys }, Keys { server: key(3), ..keys }),
        ] {
            let (server, client, trusted) = paired(&Pairing::new(code(CODE)), typed, there, here);
            assert!(matches!(server, Err(PairError::WrongCode)), "{server:?}");
            assert!(matches!(client, Err(PairError::WrongCode)), "{client:?}");
            assert_eq!(trusted, None);
        }
    }

    #[test]
    fn few_guesses_are_taken() {
        let keys = Keys { server: key(1), client: key(2) };
        let pairing = Pairing::new(code(CODE));
        for _ in 0..GUESSES_MAX {
            assert!(!pairing.is_spent());
            assert!(paired(&pairing, "000-000-000", keys, keys).1.is_err());
        }
        assert!(pairing.is_spent());
        let (server, client, trusted) = paired(&pairing, CODE, keys, keys);
        assert!(matches!((server, client), (Err(PairError::Guessed), Err(PairError::Guessed))));
        assert_eq!(trusted, None, "the right one comes too late");
    }

    #[test]
    fn a_code_that_is_no_share_is_refused() {
        let keys = Keys { server: key(1), client: key(2) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for share in [vec![], vec![0; 33], vec![0x41; 33], vec![0xff; 33], vec![7; 10_000]] {
            let taken = runtime.block_on(async {
                let (mut mine, theirs) = duplex(1 << 20);
                let (mut reader, mut writer) = split(theirs);
                let start = Message::Start { version: VERSION, share, name: "laptop".into() };
                write(&mut mine, &start).await.unwrap();
                write(&mut mine, &Message::Confirm { mac: [0; 32] }).await.unwrap();
                let trust = |_: &str| -> Result<(), PairError> { panic!("no key is trusted") };
                Pairing::new(code(CODE)).take(keys, &mut reader, &mut writer, trust).await
            });
            assert!(matches!(taken, Err(PairError::WrongCode)), "{taken:?}");
        }
    }

    #[test]
    fn codes_are_digits_however_they_are_parted() {
        assert_eq!(code("123456789"), code(" 123-456-789"));
        assert_eq!(code("123456789").to_string(), CODE);
        for wrong in ["", "12345678", "1234567890", "12345678x", "١٢٣٤٥٦٧٨٩"] {
            assert!(wrong.parse::<Code>().is_err(), "{wrong}");
        }
        let (one, other) = (Code::generate().unwrap(), Code::generate().unwrap());
        assert_eq!(code(&one.to_string()), one);
        assert_ne!(one, other, "one in a thousand million times it is");
    }
}
