//! Identities: static X25519 key pairs, whose public half the other end pins.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use snow::Builder;
use zeroize::Zeroizing;

use crate::suite::Suite;

/// Bytes of a key (RFC 7748 section 5).
const KEY_LEN: usize = 32;

/// The public key of an [`Identity`], by which peers recognise it.
///
/// Its text form is 52 lower-case letters and digits (base 32 without padding, RFC 4648 section 6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

impl PublicKey {
    /// The key as bytes (RFC 7748 section 5).
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl From<[u8; KEY_LEN]> for PublicKey {
    fn from(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD.encode(&self.0).to_ascii_lowercase())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// The error for a text that is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a public key: a key is 52 characters from a to z and 2 to 7")]
pub struct ParsePublicKeyError;

impl FromStr for PublicKey {
    type Err = ParsePublicKeyError;

    fn from_str(text: &str) -> Result<Self, ParsePublicKeyError> {
        let bytes = BASE32_NOPAD
            .decode(text.trim().to_ascii_uppercase().as_bytes())
            .map_err(|_| ParsePublicKeyError)?;
        Self::from_slice(&bytes).ok_or(ParsePublicKeyError)
    }
}

/// The key pair of an endpoint: static X25519 keys (RFC 7748). The private key is overwritten on drop.
#[derive(Clone)]
pub struct Identity {
    private: Zeroizing<[u8; KEY_LEN]>,
    public: PublicKey,
}

/// Why an identity could not be loaded or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Other users may read the file, whose mode this is.
    #[error("the private key may be read by others (mode {0:03o}); `chmod 600` it, or make a new one")]
    ReadableByOthers(u32),
    /// The file holds something else.
    #[error("the file holds no private key")]
    NotAKey,
}

impl Identity {
    /// Generates a key pair from the system's random numbers.
    ///
    /// # Panics
    /// If the system has none.
    pub fn generate() -> Self {
        let pair = Builder::new(Suite::Aes256Gcm.params())
            .generate_keypair()
            .expect("the suite names X25519, and the system has random numbers");
        let private = Zeroizing::new(pair.private);
        Self::from_halves(&private, &pair.public).expect("X25519 keys have 32 bytes")
    }

    fn from_halves(private: &[u8], public: &[u8]) -> Option<Self> {
        let private = Zeroizing::new(private.try_into().ok()?);
        Some(Self { private, public: PublicKey::from_slice(public)? })
    }

    /// Loads a key pair from a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If the file cannot be read, is readable by others, or has no key.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let text = Zeroizing::new(read_private(path)?);
        let bytes = text.strip_prefix(PREFIX).map(str::trim_end);
        let bytes = bytes.and_then(|text| BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok());
        let bytes = Zeroizing::new(bytes.ok_or(IdentityError::NotAKey)?);
        let (private, public) = bytes.split_at_checked(KEY_LEN).ok_or(IdentityError::NotAKey)?;
        Self::from_halves(private, public).ok_or(IdentityError::NotAKey)
    }

    /// Saves the key pair to a new file that only its owner may read.
    ///
    /// # Errors
    /// If the file exists, or cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), IdentityError> {
        let bytes = Zeroizing::new([self.private.as_slice(), self.public.as_bytes()].concat());
        let text = Zeroizing::new(BASE32_NOPAD.encode(&bytes).to_ascii_lowercase());
        let mut file = create_private(path)?;
        writeln!(file, "{PREFIX}{}", text.as_str())?;
        Ok(file.sync_all()?)
    }

    /// The public key, by which peers recognise this end.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn private(&self) -> &[u8; KEY_LEN] {
        &self.private
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public)
    }
}

/// Prefix in the file of an identity.
const PREFIX: &str = "tacit-private-key-1 ";

/// Most bytes of such a file; longer files are something else.
const MOST: u64 = 4096;

fn read_private(path: &Path) -> Result<String, IdentityError> {
    use std::io::Read;
    let file = std::fs::File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mode = file.metadata()?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::ReadableByOthers(mode));
        }
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

fn create_private(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_and_read_again_and_others_may_not_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("identity");
        let identity = Identity::generate();
        identity.save(&path).unwrap();
        let again = Identity::load(&path).unwrap();
        assert_eq!((again.public_key(), again.private()), (identity.public_key(), identity.private()));
        assert!(matches!(identity.save(&path), Err(IdentityError::Io(_))), "a key is not written over");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Identity::load(&path), Err(IdentityError::ReadableByOthers(0o640))));
    }

    #[test]
    fn a_public_key_has_one_text() {
        let key = Identity::generate().public_key();
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!(key.to_string().to_uppercase().parse(), Ok(key));
        assert_eq!(key.to_string().len(), 52);
        for wrong in ["", "abc", &"a".repeat(53), &"1".repeat(52)] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(ParsePublicKeyError), "{wrong}");
        }
    }
}
