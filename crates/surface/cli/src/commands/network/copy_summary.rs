//! The summary of a copy as text.

use indicatif::HumanBytes;
use tacit_apps::copy::Summary;

/// The number and bytes of partial files as one line.
pub fn parts_line((number, bytes): (u64, u64)) -> String {
    format!("tacit: parts of interrupted copies: {number}, {}", HumanBytes(bytes))
}

/// The summary as one line.
pub fn summary_line(summary: &Summary) -> String {
    let mut text = format!("{} copied, {} unchanged", summary.copied, summary.unchanged);
    let counts = [(summary.deleted, "deleted"), (summary.skipped, "skipped"), (summary.failed, "failed")];
    for (number, what) in counts {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    text.push_str(&format!("; {}", HumanBytes(summary.received_bytes)));
    if summary.resumed_bytes > 0 {
        text.push_str(&format!(", {} were there", HumanBytes(summary.resumed_bytes)));
    }
    text
}
