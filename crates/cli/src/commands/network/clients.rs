//! Clients of a server: which may connect, and the name of each.

use std::sync::{Mutex, PoisonError};

use tacit_apps::trust::Store;
use tacit_tack::PublicKey;

use crate::output::note;

/// Keys that were refused and told of: no more are remembered, and no more are told. Ours.
const REFUSED_KEYS_MAX: usize = 64;

/// Tells which clients may connect. The file of peers is read for each client that has proved its key: it is short, and a
/// client that is trusted since gets in.
pub fn clients(
    store: &Store,
    own: PublicKey,
    anyone: bool,
) -> impl Fn(&PublicKey) -> bool + Send + Sync + use<> {
    let store = store.clone();
    let refused = Mutex::new(Vec::new());
    move |key| {
        if anyone || *key == own {
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
pub fn name_of(store: &Store, own: PublicKey, peer: PublicKey) -> String {
    match peer == own {
        true => "this user".to_owned(),
        false => store.client(peer).ok().flatten().unwrap_or_else(|| peer.to_string()),
    }
}
