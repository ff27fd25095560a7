//! The papers' figures: one small TOML file each, with the papers' claims about it.
//!
//! ```toml
//! title = "…"
//! paper = "HACK, figure 10"            # where it comes from
//!
//! [theory]                             # a figure of closed forms, see `theory::figure`; or
//! figure = "hack/fig1a"
//!
//! [sweep]                              # simulations, one curve per scheme; or both, on the x of the sweep
//! scenario = "wlan-11n-150"            # a bundled scenario
//! set = ["wifi.ap-queue=126 packets"]  # changed so
//! schemes = ["stock", "udp"]
//! x = { key = "clients", values = [1, 2, 4, 10] }     # or any scenario key with `unit = "Mbps"`
//! x-label = "clients"
//! column = "goodput_mbps"              # any metric; `_mbps` is a `_bps` metric in millions
//! y-label = "goodput (Mb/s)"
//! seeds = 5
//! best-of = { key = "wifi.rate", unit = "Mbps", values = [15, 150], curves = ["stock"] }  # an envelope:
//!                                      # the best of these at each x; optionally each on its own too
//! quick = { seeds = 1, set = ["run.duration=6 s"], x = [1], best-of = [150] }  # what --quick changes
//!
//! [timeline]                           # or: the frames around an event of one run
//! scenario = "wlan-11n-150"            # and `set` as for a sweep
//! scheme = "hack-more-data"
//! seed = 1                             # 1 unless said otherwise, as are clients
//! at = { frame = "block-ack", lost = "whole", after = "100 ms" }      # the first of these
//! before = 2                           # PPDUs shown before it
//! frames = 8                           # PPDUs shown in all
//!
//! [live]                               # or: real programs through `tacit shell`, stock and HACK, beside the
//!                                      # same simulated; y is HACK's gain over stock in per cent
//! scenario = "wlan-11n-150"            # and `set`, `x` and `x-label` as for a sweep
//! hack = "hack-more-data"              # the scheme against stock
//! acks = ["packet", "2", "kernel"]     # curves "live, acks 2" and "simulated, acks 2" for each; columns
//!                                      # gain_percent, ack_ratio, stock_mbps, hack_mbps
//! congestion = "cubic"                 # of the sending kernel
//! seconds = 8                          # of each run, of which the first and the last do not count
//! quick = { x = [150], seconds = 5 }
//!
//! [plot]                               # both optional
//! log-x = true
//! log-y = true
//!
//! [[claim]]
//! text = "TCP at 54 Mb/s"
//! paper = 23.9                         # the paper's value
//! unit = "Mb/s"
//! measure = { value = "TCP", x = 54 }  # see below
//! tolerance = "2 %"                    # of the paper's value, or a number in the claim's unit
//! bound = "at-least"                   # optional: one-sided; or "at-most"
//! deviation = "…"                      # optional: why it is missed; reported, but no failure
//! ```
//!
//! What a claim measures is one of
//!
//! - `{ value = A }`: the curve `A`;
//! - `{ gain = A, over = B }`: by how many per cent `A` exceeds `B`;
//! - `{ ratio = A, over = B }`: `A / B`;
//! - `{ difference = A, over = B }`: `A - B`;
//!
//! at one `x`, or averaged over the points from `x-from` to `x-to` (either may be left out), of the
//! plotted column or another `column`. Gains and ratios are taken point by point, then averaged;
//! `take = "least"` or `"most"` takes the smallest or largest instead of the mean.
//!
//! A claim about a time line measures either
//!
//! - `{ count = FRAME, … }`: how many of the PPDUs shown are such; or
//! - `{ metric = M }`: a metric of the run.
//!
//! `frame` and `count` name `data`, `tcp-ack`, `ack`, `block-ack`, `block-ack-request` or `beacon`;
//! beside them may stand, of the PPDU, `from` (`ap` or `client`), `lost` (`none`, `part` or `whole`),
//! `sync`, `more-data`, `retry` (some MPDU is one), `appended` (compressed TCP ACKs ride on it),
//! `again` (and begin with those that its sender appended before), and `after` (it starts no earlier).

mod file;
mod library;
mod live;
mod measure;
mod page;
mod run;
mod timeline;

use std::path::PathBuf;

use serde::Serialize;

pub use file::Figure;
pub use measure::{Curve, Measure};
pub use run::{Options, run};

use crate::error::{InputError, LabError};
use crate::input::nearest;
use crate::table::number;

/// What became of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Paper and figure.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where it comes from.
    pub paper: String,
    /// The claims, in the order of the file.
    pub claims: Vec<ClaimOutcome>,
    /// Its picture.
    pub svg: Option<PathBuf>,
    /// Why it was not made: this machine cannot. It claims nothing then.
    pub skipped: Option<String>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimOutcome {
    /// What is claimed.
    pub text: String,
    /// The paper's value.
    pub paper: f64,
    /// What was measured; null where there is nothing to measure.
    pub measured: Option<f64>,
    /// By how much they may differ, in the same unit.
    pub tolerance: f64,
    /// Unit of the three.
    pub unit: String,
    /// The claim holds.
    pub pass: bool,
    /// Why it does not, where that is known and accepted.
    pub deviation: Option<String>,
}

impl ClaimOutcome {
    /// Missed, and nobody has said why.
    pub const fn fails(&self) -> bool {
        !self.pass && self.deviation.is_none()
    }

    const fn verdict(&self) -> &'static str {
        match (self.pass, self.deviation.is_some()) {
            (true, _) => "pass",
            (false, true) => "deviation",
            (false, false) => "FAIL",
        }
    }
}

impl Outcome {
    /// Some claim is missed without a reason.
    pub fn fails(&self) -> bool {
        self.claims.iter().any(ClaimOutcome::fails)
    }

    /// As text: a line per claim.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {} ({})\n", self.id, self.title, self.paper);
        if let Some(reason) = &self.skipped {
            text.push_str(&format!("  SKIPPED    {reason}\n"));
        }
        let widest = self.claims.iter().map(|claim| claim.text.chars().count()).max().unwrap_or(0);
        for claim in &self.claims {
            let measured = claim.measured.map_or_else(|| "nothing".to_owned(), value);
            text.push_str(&format!(
                "  {:<9}  {:<widest$}  paper {} ± {}, measured {measured} {}\n",
                claim.verdict(),
                claim.text,
                value(claim.paper),
                value(claim.tolerance),
                claim.unit,
            ));
            if let (false, Some(reason)) = (claim.pass, &claim.deviation) {
                text.push_str(&format!("  {:<9}  {reason}\n", ""));
            }
        }
        text
    }
}

/// Four significant digits, at most four after the point.
fn value(number_to_show: f64) -> String {
    let magnitude = number_to_show.abs().max(1e-4).log10().floor();
    let decimals = (3.0 - magnitude).clamp(0.0, 4.0) as usize;
    let text = number(number_to_show, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Every figure there is.
///
/// # Errors
/// Where a file says something that is not allowed.
pub fn all() -> Result<Vec<Figure>, LabError> {
    library::ALL.iter().map(|bundled| Ok(Figure::parse(bundled.id, bundled.path, bundled.text)?)).collect()
}

/// The figure called `id`.
///
/// # Errors
/// Where there is none, or its file says something that is not allowed.
pub fn find(id: &str) -> Result<Figure, LabError> {
    let ids = || library::ALL.iter().map(|bundled| bundled.id);
    let Some(bundled) = library::ALL.iter().find(|bundled| bundled.id == id) else {
        let hint = nearest(id, ids()).map_or(String::new(), |near| format!(", did you mean {near:?}?"));
        return Err(InputError::new("figure", format!("no figure {id:?}{hint}"))
            .allowed(ids().collect::<Vec<_>>().join(", "))
            .into());
    };
    Ok(Figure::parse(bundled.id, bundled.path, bundled.text)?)
}
