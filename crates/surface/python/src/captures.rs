//! Captures: the cost of their ACKs, and the compression of their headers.

use std::path::PathBuf;
use std::time::Instant;

use pyo3::prelude::*;
use serde_json::Value;
use tacit_captures::audit::{Report, audit_file};
use tacit_captures::rohc::{Channel, Codec, compare, compress, decompress, stats};
use tacit_runs::store::objects;
use tacit_scenario::input::parse_rtt;
use tacit_theory::hop;

use crate::answer::{Answer, PlainAnswer};
use crate::error::{Failure, Outcome};

fn detached(py: Python<'_>, work: impl FnOnce() -> Outcome<PlainAnswer> + Send) -> PyResult<Answer> {
    py.detach(work).map_err(|failure| failure.raised(py))?.answered(py)
}

/// Computes the cost of the acknowledgments in a capture, and their cost with each scheme.
#[pyfunction]
pub fn audit(
    py: Python<'_>,
    capture: PathBuf,
    phy: Option<&str>,
    rate: Option<&str>,
    rtt: &str,
) -> PyResult<Answer> {
    detached(py, || {
        let hop = hop::parse_optional(phy, rate)?;
        let rtt = parse_rtt(rtt)?;
        let audit = audit_file(&capture)?;
        let prediction = audit.predict(&hop.map_or_else(|| audit.hops(), |hop| vec![hop]), rtt);
        let report = Report { audit, prediction };
        let value = serde_json::to_value(&report).map_err(|error| Failure::Other(error.to_string()))?;
        let list = |value: &Value| value.as_array().map(|rows| objects(rows)).unwrap_or_default();
        let (flows, schemes) = (list(&value["flows"]), list(&value["prediction"]["schemes"]));
        let sent_as = list(&value["sent_as"]);
        let answer = PlainAnswer::new(&value, report.to_text(None))?;
        Ok(answer.with("flows", flows).with("schemes", schemes).with("sent_as", sent_as))
    })
}

/// Runs a capture through a codec and back, checks every byte, and measures.
#[pyfunction]
pub fn rohc_stats(py: Python<'_>, capture: PathBuf, codec: &str) -> PyResult<Answer> {
    detached(py, || {
        let codec = Codec::parse(codec)?;
        let start = now();
        let stats = stats(&capture, codec, &|| now().duration_since(start))?;
        PlainAnswer::new(&stats, stats.to_text())
    })
}

/// Compresses the TCP packets of a capture into a file.
#[pyfunction]
pub fn rohc_compress(
    py: Python<'_>,
    capture: PathBuf,
    out: PathBuf,
    repeat: u8,
    cid: &str,
) -> PyResult<Answer> {
    detached(py, || {
        let converted = compress(&capture, &out, Channel::parse(cid, repeat)?)?;
        PlainAnswer::new(&converted, converted.to_text())
    })
}

/// Decompresses a file of `rohc_compress` into a capture.
#[pyfunction]
pub fn rohc_decompress(py: Python<'_>, rohc: PathBuf, out: PathBuf, cid: &str) -> PyResult<Answer> {
    detached(py, || {
        // The decompressor does not depend on the number of repetitions.
        let converted = decompress(&rohc, &out, Channel::parse(cid, 1)?)?;
        PlainAnswer::new(&converted, converted.to_text())
    })
}

/// Compares our packets with another implementation's for the same capture.
#[pyfunction]
pub fn rohc_compare(
    py: Python<'_>,
    capture: PathBuf,
    other: PathBuf,
    repeat: u8,
    cid: &str,
) -> PyResult<Answer> {
    detached(py, || {
        let comparison = compare(&capture, &other, Channel::parse(cid, repeat)?)?;
        PlainAnswer::new(&comparison, comparison.to_text())
    })
}

/// The cost of a packet is measured only here, in the outermost layer of the program.
#[expect(clippy::disallowed_methods, reason = "the time a codec takes is its result")]
fn now() -> Instant {
    Instant::now()
}
