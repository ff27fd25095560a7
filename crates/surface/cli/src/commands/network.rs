//! Commands that communicate with other machines, and code that several of them share.

mod addresses;
mod client;
mod clients;
mod config;
mod copy_summary;
mod cp;
mod fetch;
mod http_proxy;
mod identity;
mod invitation;
mod keys;
mod ls;
mod pair;
mod proxy;
mod remote;
mod seen;
mod serve;
mod signals;
mod streams;

use std::process::ExitCode;

use crate::args::{FileArgs, NetworkCommand, ProxyArgs, ServeArgs};
use crate::output::Failure;

pub fn dispatch(command: NetworkCommand) -> Result<ExitCode, Failure> {
    match command {
        NetworkCommand::Fetch(args) => fetch::run(args),
        NetworkCommand::HttpProxy(args) => http_proxy::run(args),
        NetworkCommand::Serve(ServeArgs { file: FileArgs { config: Some(path), .. }, .. })
        | NetworkCommand::Proxy(ProxyArgs { file: FileArgs { config: Some(path), .. }, .. }) => {
            super::dispatch(config::merged(&path)?)
        }
        NetworkCommand::Serve(args) => serve::run(&args),
        NetworkCommand::Cp(args) => cp::run(&args),
        NetworkCommand::Ls(args) => ls::run(&args),
        NetworkCommand::Proxy(args) => proxy::run(&args),
        NetworkCommand::Keys(args) => keys::run(args.command),
    }
}
