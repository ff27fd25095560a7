//! Arbitrary messages of an attacker to either end of `tacit keys pair`, and of one in between. Without the code, an
//! attacker is not trusted and cannot introduce another name.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use tacit_apps::pair::{Code, Keys, PairError, Pairing, pair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, sink, split};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

const NAME: &str = "laptop";

fn code() -> Code {
    "123-456-789".parse().expect("nine digits")
}

fn keys() -> Keys {
    Keys { server: [1; 32].into(), client: [2; 32].into() }
}

/// Connects both ends, and modifies each byte between them by the next of `changes`. Returns the peer that the server
/// trusts, and whether the client succeeded.
async fn from_between(changes: &[u8]) -> (Option<String>, bool) {
    let (client, client_end) = duplex(1 << 12);
    let (server, server_end) = duplex(1 << 12);
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (split(client_end), split(server_end));
    let (up, down) = changes.split_at(changes.len() / 2);
    let relay = async |from: &mut (dyn tokio::io::AsyncRead + Unpin),
                       to: &mut (dyn tokio::io::AsyncWrite + Unpin),
                       changes: &[u8]| {
        let mut changes = changes.iter();
        let mut buffer = [0; 512];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            for byte in &mut buffer[..count] {
                *byte ^= changes.next().copied().unwrap_or(0);
            }
            if to.write_all(&buffer[..count]).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    };
    let mut trusted = None;
    let serving = async {
        let (mut reader, mut writer) = split(server);
        let trust = |name: &str| {
            trusted = Some(name.to_owned());
            Ok::<_, PairError>(())
        };
        let _ = Pairing::new(code()).take(keys(), &mut reader, &mut writer, trust).await;
        let _ = writer.shutdown().await;
    };
    let asking = async {
        let (mut reader, mut writer) = split(client);
        let paired = pair(&code(), NAME, keys(), &mut reader, &mut writer).await.is_ok();
        let _ = writer.shutdown().await;
        paired
    };
    let ends = async { tokio::join!(serving, asking).1 };
    let paired = tokio::select! {
        biased;
        paired = ends => paired,
        _ = async { tokio::join!(relay(&mut from_client, &mut to_server, up), relay(&mut from_server, &mut to_client, down)) } => false,
    };
    (trusted, paired)
}

fuzz_target!(|bytes: &[u8]| {
    RUNTIME.with_borrow_mut(|runtime| {
        // The clock is paused, so waiting for something that does not arrive takes no time.
        let runtime = runtime.get_or_insert_with(|| {
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
        });
        let Some((first, rest)) = bytes.split_first() else { return };
        match first % 3 {
            0 => {
                let trust =
                    |name: &str| -> Result<(), PairError> { panic!("{name:?} is trusted without the code") };
                let took = async { Pairing::new(code()).take(keys(), &mut &*rest, &mut sink(), trust).await };
                assert!(runtime.block_on(took).is_err(), "no peer was there");
            }
            1 => {
                let paired = async { pair(&code(), NAME, keys(), &mut &*rest, &mut sink()).await };
                assert!(runtime.block_on(paired).is_err(), "no peer was there");
            }
            _ => {
                let (trusted, paired) = runtime.block_on(from_between(rest));
                assert!(trusted.as_deref().is_none_or(|name| name == NAME), "{trusted:?}");
                assert!(!paired || trusted.is_some(), "the client trusts a server that does not trust it");
                let is_honest = rest.iter().all(|change| *change == 0);
                assert!(!is_honest || paired, "two that know the code are paired");
            }
        }
    });
});
