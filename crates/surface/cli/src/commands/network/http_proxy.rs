//! `tacit http-proxy`.

use std::process::ExitCode;

use tacit_net::connection::Settings;
use tacit_net::proxy::{Options, Proxy};

use crate::args::HttpProxyArgs;
use crate::output::{Failure, note, print};

pub fn run(args: HttpProxyArgs) -> Result<ExitCode, Failure> {
    tacit_apps::open_many_files();
    let mut settings = Settings::default();
    settings.repair.parallel_max = args.parallel as usize;
    let options = Options {
        listen: args.listen,
        open: args.open,
        hosts: args.allow_hosts,
        ports: args.allow_ports,
        connections_max: args.connections as usize,
        settings,
        ..Options::default()
    };
    let json = args.json;
    tacit_net::block_on(async {
        let proxy = Proxy::listen(options).await?;
        note(&format!("tacit: http_proxy=http://{}", proxy.address()));
        note("tacit: https passes unrepaired: a placeholder in TLS would end the connection");
        proxy
            .serve_until_signal(move |served| {
                if json && let Ok(line) = serde_json::to_string(served) {
                    // The reader of standard output may have exited; the proxy keeps running.
                    let _ = print(&format!("{line}\n"));
                }
            })
            .await
    })?;
    Ok(ExitCode::SUCCESS)
}
