//! `tacit serve`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tacit_apps::SERVE_PORT;
use tacit_apps::copy::idle::{ByteCounter, IDLE};
use tacit_apps::copy::session::{Request, Served};
use tacit_apps::copy::wire::Direction;
use tacit_apps::copy::{COPIES_MAX, CopyError, CopyReport, Rights, Summary};
use tacit_apps::metrics::{CopyCounts, Page};
use tacit_apps::node::{Home, Node};
use tacit_apps::pair::Code;
use tacit_apps::trust::Store;
use tacit_input::InputError;
use tacit_tack::{Connection, PublicKey, RecvStream, SendStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use super::addresses::reachable;
use super::clients::{clients, name_of};
use super::copy_summary::{parts_line, summary_line};
use super::invitation::{self, Invitation};
use super::signals::stop;
use super::streams::{LAST_TIMEOUT, READ_BYTES, WRITE_BYTES};
use super::{identity, seen};
use crate::args::ServeArgs;
use crate::output::{Failure, note, print, printable};

/// State shared by all connections.
struct Server {
    served: Served,
    store: Store,
    local_key: PublicKey,
    /// The invitation for another machine.
    invitation: Option<Arc<Invitation>>,
    /// Rights of unknown clients; `None` if they have the same rights as others.
    strangers: Option<Rights>,
    copies: Semaphore,
    counts: Arc<CopyCounts>,
    /// Becomes true when connections must be closed.
    closed: watch::Sender<bool>,
    json: bool,
    quiet: bool,
}

/// The result of a copy for `--json`.
#[derive(Serialize)]
struct CopyLogLine<'a> {
    client: &'a str,
    direction: Option<Direction>,
    path: &'a str,
    #[serde(flatten)]
    summary: Option<Summary>,
    error: Option<String>,
}

pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let path = args.path.as_ref().ok_or_else(|| InputError::new("PATH", "nothing to serve"))?;
    let store = identity::store()?;
    let served = Served::new(path, args.write)?;
    seen::check(&args.metrics)?;
    let config = seen::config_within(&args.seen, &args.memory)?;
    if args.file.check {
        identity::check(&store)?;
        return Ok(ExitCode::SUCCESS);
    }
    seen::begin(&args.seen);
    tacit_apps::open_many_files();
    let identity = identity::identity(&store)?;
    let local_key = identity.public_key();
    let code = args.invite.then(Code::generate).transpose()?;
    let invitation = code.clone().map(|code| Arc::new(Invitation::new(code)));
    let (anyone, invited) = (args.anyone, invitation.clone());
    let clients =
        clients(&store, local_key, move || anyone || invited.as_ref().is_some_and(|it| it.is_open()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let metrics = runtime.block_on(seen::listen(&args.metrics))?;
    // Only this machine, so that nothing is exposed to others by accident.
    let usual = if args.invite { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let listen = args.listen.unwrap_or_else(|| (usual, SERVE_PORT).into());
    let node = Node::server(Home::OwnThread, listen, identity, config, clients)?;
    let counts = Arc::new(CopyCounts::default());
    let address = node.endpoint().local_addr();
    if !args.quiet {
        print_address(args, path, address, local_key);
    }
    if let Some(code) = &code {
        print_invitation(args, address, code);
    }
    let server = Arc::new(Server {
        served,
        store,
        local_key,
        invitation,
        strangers: (args.anyone && args.write).then_some(Rights::Drop),
        copies: Semaphore::new(COPIES_MAX),
        counts: counts.clone(),
        closed: watch::Sender::new(false),
        json: args.json,
        quiet: args.quiet,
    });
    if !args.quiet && args.write {
        report_parts(&runtime, server.clone());
    }
    runtime.block_on(async {
        let endpoint = node.endpoint().clone();
        seen::serve(metrics, move || {
            let mut page = Page::default();
            page.endpoint(&endpoint.metrics());
            counts.write(&mut page);
            page.into_text()
        });
        let accept = async {
            while let Some(connection) = node.endpoint().accept().await {
                tokio::spawn(server.clone().connection(connection));
            }
        };
        tokio::select! {
            () = accept => return Err(Failure::Machine("the socket failed".into())),
            stopped = stop() => stopped?,
        }
        let running = server.counts.running.count();
        if running > 0 && !args.quiet {
            note(&format!("tacit: waiting up to {} s for running copies: {running}", args.grace));
        }
        tokio::select! {
            () = server.counts.running.idle() => (),
            () = tokio::time::sleep(Duration::from_secs(args.grace.into())) => (),
            stopped = stop() => stopped?,
        }
        // Notifies clients of the shutdown.
        server.closed.send_replace(true);
        tokio::task::yield_now().await;
        Ok(())
    })?;
    // Copies that are still running end with their connections and with this process.
    runtime.shutdown_background();
    drop(node);
    Ok(ExitCode::SUCCESS)
}

/// Says where the server is.
fn print_address(args: &ServeArgs, path: &Path, address: SocketAddr, local_key: PublicKey) {
    let all: Vec<_> = reachable(address).iter().map(|address| format!("tack://{address}/")).collect();
    note(&format!(
        "tacit: serving {} for {} at {}, key {local_key}",
        path.display(),
        way(args),
        all.join(" ")
    ));
}

/// Says what to type on another machine.
fn print_invitation(args: &ServeArgs, address: SocketAddr, code: &Code) {
    let addresses = reachable(address);
    let which = if addresses.len() == 1 { "" } else { " one of" };
    note(&format!("tacit: to admit another machine, run there{which}:"));
    for address in addresses {
        note(&format!("  {}", invitation::command(address, code, args.write)));
    }
}

/// Counts the parts of interrupted copies, which takes a while in a large tree.
fn report_parts(runtime: &Runtime, server: Arc<Server>) {
    runtime.spawn_blocking(move || {
        let parts = server.served.parts();
        if parts.0 > 0 {
            note(&parts_line(parts));
        }
    });
}

/// A description of what the server allows.
fn way(args: &ServeArgs) -> &'static str {
    match (args.write, args.anyone) {
        (true, true) => "uploads by anyone, and reading by known clients",
        (true, false) => "reading and writing",
        (false, _) => "reading",
    }
}

impl Server {
    /// Serves the streams of a connection until it ends.
    async fn connection(self: Arc<Self>, connection: Connection) {
        let peer = connection.peer();
        let name = name_of(&self.store, self.local_key, peer);
        let is_known = peer == self.local_key || self.store.client(peer).is_ok_and(|client| client.is_some());
        if let Some(invitation) = self.invitation.as_ref().filter(|_| !is_known) {
            return invitation.admit(&self.store, self.local_key, &connection).await;
        }
        let rights = self.strangers.filter(|_| !is_known);
        let mut closed = self.closed.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = connection.accept_bi() => accepted,
                _ = closed.wait_for(|closed| *closed) => return connection.close(0, ""),
            };
            let Ok((writer, reader)) = accepted else { return };
            let (server, name) = (self.clone(), name.clone());
            tokio::spawn(async move {
                let Ok(_permit) = server.copies.acquire().await else { return };
                let mut reader = BufReader::with_capacity(READ_BYTES, reader);
                let mut request = Request::read(&mut reader).await;
                if let Ok(request) = &mut request {
                    (request.owner, request.rights) = (Some(peer.to_string()), rights);
                }
                let running = server.counts.running.begin();
                let (on_thread, handle) = (server.clone(), tokio::runtime::Handle::current());
                // Files are read and written during the copy, so it runs on a thread for blocking operations.
                let copy = move || handle.block_on(on_thread.copy(&name, request, reader, writer));
                // If it panicked, the message has already been printed.
                let _ = tokio::task::spawn_blocking(copy).await;
                drop(running);
            });
        }
    }

    /// Carries out a client's request and reports the result.
    async fn copy(
        &self,
        client: &str,
        request: Result<Request, CopyError>,
        mut reader: BufReader<RecvStream>,
        writer: SendStream,
    ) {
        let mut writer = BufWriter::with_capacity(WRITE_BYTES, writer);
        let counter = ByteCounter::default();
        let (asked, result) = match request {
            Ok(request) => {
                let work = request.work.as_ref();
                let asked = work.map(|work| (work.direction(), work.paths()));
                let (mut reader, mut writer) = (counter.counted(&mut reader), counter.counted(&mut writer));
                let copy = self.served.answer(request, &mut reader, &mut writer);
                (asked, counter.watch(IDLE, copy).await)
            }
            Err(error) => (None, Err(error)),
        };
        if matches!(result, Ok(_) | Err(CopyError::Refused(_))) && writer.shutdown().await.is_ok() {
            // Streams that are dropped before their end are reset. A client that has gone has received its data.
            let mut none = [0];
            let ends = async { tokio::join!(writer.get_mut().finished(), reader.read(&mut none)) };
            let _ = tokio::time::timeout(LAST_TIMEOUT, ends).await;
        }
        // A listing and an unreadable request have no direction, and a listing is not a copy.
        let direction = asked.as_ref().and_then(|(direction, _)| *direction);
        let is_list = asked.as_ref().is_some_and(|(direction, _)| direction.is_none());
        if !is_list {
            self.counts.on_end(direction, &result);
        }
        log(client, direction, &result);
        if !self.quiet {
            self.print_result(
                client,
                direction,
                &asked.map(|(_, path)| path).unwrap_or_default(),
                is_list,
                result,
            );
        }
    }

    /// Prints the result of a copy or listing.
    fn print_result(
        &self,
        client: &str,
        direction: Option<Direction>,
        path: &str,
        is_list: bool,
        result: Result<CopyReport, CopyError>,
    ) {
        if self.json {
            let (summary, error) = match &result {
                Ok(outcome) => (Some(outcome.summary), None),
                Err(error) => (None, Some(error.to_string())),
            };
            if let Ok(line) = serde_json::to_string(&CopyLogLine { client, direction, path, summary, error })
            {
                // The reader of standard output may have exited; the server keeps running.
                let _ = print(&format!("{line}\n"));
            }
            return;
        }
        let way = match direction {
            Some(Direction::Push) => "to",
            Some(Direction::Pull) => "from",
            None => "of",
        };
        let came = match result {
            Ok(_) if is_list => "listed".to_owned(),
            Ok(outcome) => summary_line(&outcome.summary),
            Err(error) => error.to_string(),
        };
        note(&printable(&format!("tacit: {client}: {way} /{path}: {came}")));
    }
}

/// Logs the result of a copy or listing.
fn log(client: &str, direction: Option<Direction>, result: &Result<CopyReport, CopyError>) {
    match result {
        Ok(outcome) => {
            let summary = &outcome.summary;
            let (bytes, failed) = (summary.received_bytes, summary.failed);
            tracing::info!(target: "tacit::copy", ?client, ?direction, bytes, failed, "a copy is done");
        }
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(target: "tacit::copy", ?client, ?direction, ?error, "a copy ended");
        }
    }
}
