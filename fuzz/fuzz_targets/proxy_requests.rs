//! Requests of programs and clients to `tacit proxy`: SOCKS5, and targets on streams.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use tacit_apps::proxy::{asked, socks};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime =
            runtime.get_or_insert_with(|| Builder::new_current_thread().build().expect("a runtime"));
        let Some((first, mut rest)) = bytes.split_first() else { return };
        let target = runtime.block_on(async {
            match first % 2 {
                0 => socks::request(&mut tokio::io::join(rest, tokio::io::sink())).await,
                _ => asked(&mut rest).await,
            }
        });
        if let Ok(target) = target {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
    });
});
