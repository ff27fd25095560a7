//! Progress of a copy.

use indicatif::{ProgressBar, ProgressDrawTarget};

use super::bar;
use crate::output::note;

/// A progress bar in bytes.
pub struct ByteBar(ProgressBar);

impl ByteBar {
    /// Updates the bar.
    pub fn draw(&self, bytes: u64, whole: Option<u64>) {
        if self.0.length() != whole
            && let Some(whole) = whole
        {
            self.0.set_length(whole);
        }
        self.0.set_position(bytes);
    }

    /// Shows `text` behind the numbers.
    pub fn set_message(&self, text: &str) {
        if self.0.message() != text {
            self.0.set_message(text.to_owned());
        }
    }

    /// Prints a line above the bar.
    pub fn note(&self, text: &str) {
        self.0.suspend(|| note(text));
    }
}

/// Runs `work` with a bar, which is visible on a terminal if `wanted`.
pub fn show_bytes<T>(wanted: bool, work: impl FnOnce(&ByteBar) -> T) -> T {
    let target = if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ByteBar(bar(None, target, "{bar:32} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left{msg}"));
    let result = work(&bar);
    bar.0.finish_and_clear();
    result
}
