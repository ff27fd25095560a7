//! Signals that terminate a command.

use crate::output::Failure;

/// Waits for SIGINT or SIGTERM.
pub async fn stop() -> Result<(), Failure> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        _ = terminate.recv() => Ok(()),
    }
}
