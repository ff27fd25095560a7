//! Observability of the programs that use TACK: logs, qlogs, and metrics for Prometheus.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tacit_apps::metrics;
use tacit_input::InputError;
use tacit_tack::{Config, Qlog};
use tokio::net::TcpListener;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{LogArgs, LogFormat, MemoryArgs, MetricsArgs};
use crate::output::{Failure, note};

/// Maximum length of IP packets that path MTU discovery tries, in bytes (our choice). Ethernet's jumbo frames have
/// 9,000 bytes. Loopback allows more, but longer packets bring no gain.
const MTU_MAX: u16 = 16 << 10;

/// Enables logging if requested.
pub fn begin(args: &LogArgs) {
    let Some(filter) = &args.log else { return };
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let registry = tracing_subscriber::registry().with(filter.clone());
    // Fails only if a logger already exists.
    let _ = match args.log_format {
        LogFormat::Text => registry.with(layer).try_init(),
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
    };
}

/// Configuration of endpoints.
pub fn config(args: &LogArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    config.max_mtu(MTU_MAX);
    config.qlog(args.qlog.as_deref().map(qlog).transpose()?);
    Ok(config)
}

/// Configuration of endpoints whose buffers are shared by several peers.
pub fn config_within(args: &LogArgs, memory: &MemoryArgs) -> Result<Config, Failure> {
    let mut config = config(args)?;
    config.max_memory(u64::from(memory.memory) << 20);
    Ok(config)
}

fn qlog(directory: &Path) -> Result<Qlog, InputError> {
    let wrong = |error: std::io::Error| {
        InputError::new("--qlog", format!("{}: {error}", directory.display())).allowed("a directory")
    };
    Qlog::to_directory(directory).map_err(wrong)
}

/// Refuses an address on which metrics must not be served.
pub fn check(args: &MetricsArgs) -> Result<(), InputError> {
    match args.metrics {
        Some(address) if !address.ip().is_loopback() && !args.metrics_open => {
            let what = format!("{address} is readable by other machines: this needs --metrics-open");
            Err(InputError::new("--metrics", what))
        }
        _ => Ok(()),
    }
}

/// Opens the listener for Prometheus if requested.
pub async fn listen(args: &MetricsArgs) -> Result<Option<TcpListener>, Failure> {
    check(args)?;
    let Some(address) = args.metrics else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    let wrong =
        |error: std::io::Error| InputError::new("--metrics", format!("cannot listen on {address}: {error}"));
    Ok(Some(listener.map_err(wrong)?))
}

/// Serves `page` to Prometheus in a separate task.
pub fn serve(listener: Option<TcpListener>, page: impl Fn() -> String + Send + Sync + 'static) {
    let Some(listener) = listener else { return };
    let address = listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
    note(&format!("tacit: metrics at http://{address}/metrics"));
    tokio::spawn(metrics::serve(listener, Arc::new(page)));
}
