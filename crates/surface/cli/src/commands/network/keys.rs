//! `tacit keys`.

use std::process::ExitCode;

use serde::Serialize;
use tacit_apps::trust::{Peer, Store, text};
use tacit_input::InputError;
use tacit_tack::{Identity, ParsePublicKeyError, PublicKey};

use super::identity::store;
use super::pair;
use crate::args::KeysCommand;
use crate::output::{FAILED, Failure, note, print, print_json, printable};

/// This user's key for `--json`.
#[derive(Serialize)]
struct OwnKey {
    #[serde(serialize_with = "text")]
    key: PublicKey,
    file: String,
}

pub fn run(command: KeysCommand) -> Result<ExitCode, Failure> {
    let store = store()?;
    match command {
        KeysCommand::Make { json } => print_key(&store, &store.make_identity()?, json)?,
        KeysCommand::Show { json } => print_key(&store, &store.read_identity()?, json)?,
        KeysCommand::Trust { name, key, client, json } => {
            let key = key
                .parse()
                .map_err(|error: ParsePublicKeyError| InputError::new("KEY", error.to_string()))?;
            let peer = Peer { name, key, is_client: client };
            store.trust(peer.clone())?;
            if json {
                print_json(&peer)?;
            }
        }
        KeysCommand::Forget { name, json } => {
            let forgotten = store.forget(&name)?;
            if json {
                print_json(&serde_json::json!({ "name": name, "forgotten": forgotten }))?;
            }
            if !forgotten {
                note(&format!("tacit: no peer {}; see tacit keys list", printable(&name)));
                return Ok(ExitCode::from(FAILED));
            }
        }
        KeysCommand::Pair { host: Some(host), code: Some(code), name, json, .. } => {
            return pair::answer(&store, &host, &code, name, json);
        }
        KeysCommand::Pair { listen, timeout, json, .. } => return pair::show(&store, listen, timeout, json),
        KeysCommand::List { json: true } => print_json(&store.peers()?)?,
        KeysCommand::List { json: false } => {
            for peer in store.peers()? {
                let client = if peer.is_client { "  client" } else { "" };
                print(&format!("{}  {}{client}\n", peer.key, printable(&peer.name)))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_key(store: &Store, identity: &Identity, json: bool) -> Result<(), Failure> {
    let key = identity.public_key();
    match json {
        true => print_json(&OwnKey { key, file: store.identity().display().to_string() }),
        false => print(&format!("{key}\n")),
    }
}
