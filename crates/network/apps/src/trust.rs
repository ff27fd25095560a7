//! Trusted peers, in files of one user: the private key, and the public keys of peers.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tacit_tack::{Identity, IdentityError, PublicKey};

/// Longest key file that is read, in bytes: some ten thousand peers.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Permissions of the directory.
const OWNER_ONLY: u32 = 0o700;
/// The name of the secret key's file.
const IDENTITY: &str = "identity";
/// The name of the file of peers.
const KNOWN_PEERS: &str = "known-peers";

/// Why a key file cannot be used, or a peer is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is already a private key.
    #[error("{}: there is a key already; peers that know it would refuse another", .0.display())]
    Exists(PathBuf),
    /// There is no private key yet.
    #[error("{}: no key yet; run tacit keys make", .0.display())]
    NoIdentity(PathBuf),
    /// The private key cannot be used.
    #[error("{}: {source}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: IdentityError,
    },
    /// A line of the file of peers is malformed.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The name cannot be stored in the file.
    #[error("{0:?} is not a name for a peer: no blanks, no #, at most 255 bytes")]
    Name(String),
    /// The peer's key differs from the known one.
    #[error(
        "{name} has another key: known {known}, shown {shown}; if the change is legitimate, run tacit keys forget {name}"
    )]
    Changed {
        /// The peer.
        name: String,
        /// The known key.
        known: PublicKey,
        /// The key it has now.
        shown: PublicKey,
    },
    /// The peer is unknown, and the user declined it or could not be asked.
    #[error("{name} is unknown, with key {shown}; if that is right, run tacit keys trust {name} {shown}")]
    Unknown {
        /// The peer.
        name: String,
        /// Its key.
        shown: PublicKey,
    },
}

/// A peer and its key.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Peer {
    /// The user's name for it, or an address.
    pub name: String,
    /// Its public key.
    #[serde(serialize_with = "text")]
    pub key: PublicKey,
    /// True if the peer may connect to this machine.
    pub is_client: bool,
}

/// Serializes a key in its text form.
///
/// # Errors
/// If the serializer fails.
pub fn text<S: serde::Serializer>(key: &PublicKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

/// The directory with the key files.
#[derive(Clone, Debug)]
pub struct Store(PathBuf);

impl Store {
    /// The store in `directory`.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The store in `$XDG_CONFIG_HOME/tacit`, or else in `~/.config/tacit`; `None` without a home directory.
    pub fn for_user() -> Option<Self> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
        Some(Self(config.join("tacit")))
    }

    /// Path of the private key's file.
    pub fn identity(&self) -> PathBuf {
        self.0.join(IDENTITY)
    }

    /// Path of the file of peers.
    pub fn known_peers(&self) -> PathBuf {
        self.0.join(KNOWN_PEERS)
    }

    /// Generates a private key that only its owner can read. An existing key is never replaced.
    ///
    /// # Errors
    /// If there is already a key, or the file cannot be written.
    pub fn make_identity(&self) -> Result<Identity, TrustError> {
        let path = self.identity();
        let failed = |source: IdentityError| match source {
            IdentityError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                TrustError::Exists(path.clone())
            }
            source => TrustError::Identity { path: path.clone(), source },
        };
        let identity = Identity::generate();
        // The complete file is linked to its name, which fails if the name exists.
        self.place(&path, |temporary| {
            identity.save(temporary).and_then(|()| Ok(fs::hard_link(temporary, &path)?))
        })
        .map_err(failed)?;
        Ok(identity)
    }

    /// Reads the private key.
    ///
    /// # Errors
    /// If there is none, or other users can read it.
    pub fn read_identity(&self) -> Result<Identity, TrustError> {
        let path = self.identity();
        Identity::load(&path).map_err(|source| match source {
            IdentityError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                TrustError::NoIdentity(path)
            }
            source => TrustError::Identity { path, source },
        })
    }

    /// All peers, in the order of the file.
    ///
    /// # Errors
    /// If the file cannot be read, or has a malformed line.
    pub fn peers(&self) -> Result<Vec<Peer>, TrustError> {
        let path = self.known_peers();
        let text = match File::open(&path).and_then(text_of) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(TrustError::Io { path, source }),
        };
        let mut peers: Vec<Peer> = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let wrong = |what| TrustError::Line { path: path.clone(), line: line + 1, what };
            let words: Vec<_> = text.split_whitespace().collect();
            let (name, key, is_client) = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [name, key] => (name, key, false),
                [name, key, "client"] => (name, key, true),
                _ => return Err(wrong("a line is NAME KEY, or NAME KEY client")),
            };
            if peers.iter().any(|peer| peer.name == name) {
                return Err(wrong("a name that stands above already"));
            }
            let Ok(key) = key.parse() else { return Err(wrong("no public key")) };
            peers.push(Peer { name: name.into(), key, is_client });
        }
        Ok(peers)
    }

    /// Adds `peer` to the file.
    ///
    /// # Errors
    /// If it is known with another key, its name is invalid, or the file cannot be written.
    pub fn trust(&self, peer: Peer) -> Result<(), TrustError> {
        let is_no_word = |c: char| c.is_whitespace() || c.is_control() || c == '#';
        if peer.name.is_empty() || peer.name.len() > 255 || peer.name.contains(is_no_word) {
            return Err(TrustError::Name(peer.name));
        }
        let _alone = self.lock()?;
        let mut peers = self.peers()?;
        match peers.iter_mut().find(|known| known.name == peer.name) {
            Some(known) if known.key != peer.key => {
                return Err(TrustError::Changed { name: peer.name, known: known.key, shown: peer.key });
            }
            Some(known) => *known = peer,
            None => peers.push(peer),
        }
        self.write_peers(&peers)
    }

    /// Removes the peer `name`; returns false if it was not known.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn forget(&self, name: &str) -> Result<bool, TrustError> {
        let _alone = self.lock()?;
        let mut peers = self.peers()?;
        let before = peers.len();
        peers.retain(|peer| peer.name != name);
        if peers.len() == before {
            return Ok(false);
        }
        self.write_peers(&peers)?;
        Ok(true)
    }

    /// The known key of the server `name`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn key_of(&self, name: &str) -> Result<Option<PublicKey>, TrustError> {
        Ok(self.peers()?.into_iter().find(|peer| peer.name == name).map(|peer| peer.key))
    }

    /// Checks the key that the server `name` presents. For an unknown server, `ask` decides (and must decline without a
    /// terminal); a key that it accepts is stored.
    ///
    /// # Errors
    /// If the key differs from the known one, or is not accepted.
    pub fn judge(&self, name: &str, shown: PublicKey, ask: impl FnOnce() -> bool) -> Result<(), TrustError> {
        match self.peers()?.into_iter().find(|peer| peer.name == name) {
            Some(peer) if peer.key == shown => Ok(()),
            Some(peer) => Err(TrustError::Changed { name: name.into(), known: peer.key, shown }),
            None if ask() => self.trust(Peer { name: name.into(), key: shown, is_client: false }),
            None => Err(TrustError::Unknown { name: name.into(), shown }),
        }
    }

    /// The name of the client with the key `shown`, if it may connect.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn client(&self, shown: PublicKey) -> Result<Option<String>, TrustError> {
        let mut peers = self.peers()?.into_iter();
        Ok(peers.find(|peer| peer.is_client && peer.key == shown).map(|peer| peer.name))
    }

    /// Prevents other processes from changing the file of peers until the result is dropped.
    fn lock(&self) -> Result<File, TrustError> {
        let lock = || {
            self.make_directory()?;
            let directory = File::open(&self.0)?;
            rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive)?;
            Ok(directory)
        };
        lock().map_err(|source| TrustError::Io { path: self.0.clone(), source })
    }

    /// Creates the directory if it does not exist, with access for the owner only, regardless of the umask.
    fn make_directory(&self) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let permissions = fs::metadata(&self.0)?.permissions();
        if permissions.mode() & 0o777 != OWNER_ONLY {
            fs::set_permissions(&self.0, Permissions::from_mode(OWNER_ONLY))?;
        }
        Ok(())
    }

    fn write_peers(&self, peers: &[Peer]) -> Result<(), TrustError> {
        let path = self.known_peers();
        let lines = peers.iter().map(|peer| {
            let client = if peer.is_client { " client" } else { "" };
            format!("{} {}{client}\n", peer.name, peer.key)
        });
        let text = format!(
            "# NAME KEY, and client where it may connect to this machine\n{}",
            lines.collect::<String>()
        );
        self.place(&path, |temporary| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(temporary, &path)
        })
        .map_err(|source| TrustError::Io { path: path.clone(), source })
    }

    /// Calls `write` with a temporary name, so that the file is complete before it gets the name `path`.
    fn place<E: From<io::Error>>(
        &self,
        path: &Path,
        write: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        self.make_directory()?;
        let temporary = path.with_extension(format!("{}.new", std::process::id()));
        let result = write(&temporary);
        // Fails if the file was renamed, which needs no handling.
        let _ = fs::remove_file(&temporary);
        result
    }
}

fn text_of(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("too long for a file of keys"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("tacit"));
        (directory, store)
    }

    fn key(byte: u8) -> PublicKey {
        [byte; 32].into()
    }

    fn peer(name: &str, key: PublicKey) -> Peer {
        Peer { name: name.into(), key, is_client: false }
    }

    #[test]
    fn a_private_key_is_made_once_and_refused_where_others_may_read_it() {
        let (_directory, store) = store();
        assert!(matches!(store.read_identity(), Err(TrustError::NoIdentity(_))));
        let created = store.make_identity().unwrap();
        assert!(matches!(store.make_identity(), Err(TrustError::Exists(_))));
        assert_eq!(store.read_identity().unwrap().public_key(), created.public_key());
        assert_eq!(fs::read_dir(store.identity().parent().unwrap()).unwrap().count(), 1, "nothing is left");
        for mode in [0o640, 0o604] {
            fs::set_permissions(store.identity(), Permissions::from_mode(mode)).unwrap();
            assert!(matches!(store.read_identity(), Err(TrustError::Identity { .. })));
        }
    }

    #[test]
    fn the_directory_is_its_owners_whatever_it_was() {
        let (_directory, store) = store();
        let directory = store.identity().parent().unwrap().to_owned();
        for mode in [0o777, 0o755, 0o500] {
            fs::create_dir_all(&directory).unwrap();
            fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
            store.trust(peer("box", key(1))).unwrap();
            assert_eq!(
                fs::metadata(&directory).unwrap().permissions().mode() & 0o777,
                OWNER_ONLY,
                "{mode:o}"
            );
        }
    }

    #[test]
    fn an_unknown_key_is_asked_about_and_a_changed_one_never_is() {
        let (_directory, store) = store();
        assert!(matches!(store.judge("box", key(1), || false), Err(TrustError::Unknown { .. })));
        assert_eq!(store.peers().unwrap(), []);
        store.judge("box", key(1), || true).unwrap();
        store.judge("box", key(1), || panic!("it is known")).unwrap();
        let changed = store.judge("box", key(2), || panic!("it has changed")).unwrap_err().to_string();
        assert!(changed.contains(&key(1).to_string()) && changed.contains(&key(2).to_string()), "{changed}");
        assert!(store.trust(peer("box", key(2))).is_err());
        assert!(store.forget("box").unwrap() && !store.forget("box").unwrap());
        store.trust(peer("box", key(2))).unwrap();
    }

    #[test]
    fn servers_that_are_known_may_not_connect() {
        let (_directory, store) = store();
        store.trust(peer("box", key(1))).unwrap();
        assert_eq!(store.client(key(1)).unwrap(), None);
        store.trust(Peer { is_client: true, ..peer("box", key(1)) }).unwrap();
        assert_eq!(store.client(key(1)).unwrap().as_deref(), Some("box"));
    }

    #[test]
    fn lines_that_are_none_are_named() {
        let (_directory, store) = store();
        for name in ["", "a b", "a\nb k client", "#a"] {
            assert!(matches!(store.trust(peer(name, key(1))), Err(TrustError::Name(_))));
        }
        let (one, two) = (key(1), key(2));
        for bad in ["a".to_owned(), format!("b {two} klient"), format!("a {two}"), "b key".to_owned()] {
            fs::create_dir_all(store.known_peers().parent().unwrap()).unwrap();
            fs::write(store.known_peers(), format!("# peers\na {one}\n{bad}\n")).unwrap();
            assert!(matches!(store.peers(), Err(TrustError::Line { line: 3, .. })), "{bad}");
        }
    }
}
