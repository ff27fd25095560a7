//! Progress on a terminal.

#[cfg(feature = "network")]
mod bytes;
#[cfg(feature = "simulator")]
mod runs;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

#[cfg(feature = "network")]
pub use bytes::{ByteBar, show_bytes};
#[cfg(feature = "simulator")]
pub use runs::{cache, counted_live, quietly, simulated, watched};

fn bar(len: Option<u64>, target: ProgressDrawTarget, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    ProgressBar::with_draw_target(len, target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
