//! This user's keys, for commands that need them.

use tacit_apps::trust::{Store, TrustError};
use tacit_tack::Identity;

use crate::output::{Failure, note};

/// Where this user's keys are.
pub fn store() -> Result<Store, Failure> {
    Store::of_user()
        .ok_or_else(|| Failure::Machine("no directory for keys: set $HOME or $XDG_CONFIG_HOME".into()))
}

/// Looks at this user's key, where there is one, and at the file of peers; changes nothing.
pub fn check(store: &Store) -> Result<(), Failure> {
    match store.read_identity() {
        Ok(_) | Err(TrustError::NoIdentity(_)) => {}
        Err(error) => return Err(error.into()),
    }
    store.peers()?;
    Ok(())
}

/// This user's key, made where there is none.
pub fn identity(store: &Store) -> Result<Identity, Failure> {
    match store.read_identity() {
        Err(TrustError::NoIdentity(path)) => {
            let identity = store.make_identity()?;
            note(&format!("tacit: made a key: {}", path.display()));
            Ok(identity)
        }
        read => Ok(read?),
    }
}
