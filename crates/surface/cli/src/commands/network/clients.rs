//! The clients of a server: which may connect, and their names.

use std::sync::{Mutex, PoisonError};

use tacit_apps::trust::Store;
use tacit_tack::PublicKey;

use crate::output::note;

/// Maximum number of refused keys that are remembered (our choice). Further ones are neither remembered nor reported.
const REFUSED_KEYS_MAX: usize = 64;

/// Returns a function that decides which clients may connect. It reads the file of peers for each client that has
/// proved possession of its key. The file is short, and this way newly trusted clients are accepted without a restart.
pub fn clients(
    store: &Store,
    local_key: PublicKey,
    admits_all: impl Fn() -> bool + Send + Sync + 'static,
) -> impl Fn(&PublicKey) -> bool + Send + Sync + 'static {
    let store = store.clone();
    let refused = Mutex::new(Vec::new());
    move |key| {
        if admits_all() || *key == local_key {
            return true;
        }
        let why = match store.client(*key) {
            Ok(Some(_)) => return true,
            Ok(None) => format!("admit it with: tacit keys trust NAME {key} --client"),
            Err(error) => error.to_string(),
        };
        let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < REFUSED_KEYS_MAX && !refused.contains(key) {
            refused.push(*key);
            note(&format!("tacit: refused a client: {why}"));
        }
        false
    }
}

/// The name of a client.
pub fn name_of(store: &Store, local_key: PublicKey, peer: PublicKey) -> String {
    match peer == local_key {
        true => "this user".to_owned(),
        false => store.client(peer).ok().flatten().unwrap_or_else(|| peer.to_string()),
    }
}
