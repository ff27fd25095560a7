//! This user's keys, for commands that need them.

use tacit_apps::trust::{Store, TrustError};
use tacit_tack::Identity;

use crate::output::{Failure, note};

/// The store of this user's keys.
pub fn store() -> Result<Store, Failure> {
    Store::for_user()
        .ok_or_else(|| Failure::Machine("no directory for keys: set $HOME or $XDG_CONFIG_HOME".into()))
}

/// Checks this user's key, if there is one, and the file of peers. Changes nothing.
pub fn check(store: &Store) -> Result<(), Failure> {
    match store.read_identity() {
        Ok(_) | Err(TrustError::NoIdentity(_)) => {}
        Err(error) => return Err(error.into()),
    }
    store.peers()?;
    Ok(())
}

/// This user's key, which is created if it does not exist.
pub fn identity(store: &Store) -> Result<Identity, Failure> {
    match store.read_identity() {
        Err(TrustError::NoIdentity(path)) => {
            let identity = match store.make_identity() {
                // Another command has made it at the same time.
                Err(TrustError::Exists(_)) => return Ok(store.read_identity()?),
                created => created?,
            };
            note(&format!("tacit: made a key: {}", path.display()));
            Ok(identity)
        }
        read => Ok(read?),
    }
}
