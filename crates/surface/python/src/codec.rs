//! The ROHC-TCP codec, packet by packet.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tacit_captures::rohc::Channel;
use tacit_rohc as rohc;

use crate::error::{Failure, TacitError};

/// Length of the largest IP packet, plus the bytes that compression may add.
const LARGEST: usize = 65_535 + 512;

/// Compresses IP packets into ROHC packets (RFC 6846, profile 0x0006).
#[pyclass(module = "tacit._native", frozen)]
pub struct Compressor(Mutex<(rohc::Compressor, Vec<u8>)>);

/// Decompresses ROHC packets into IP packets.
#[pyclass(module = "tacit._native", frozen)]
pub struct Decompressor(Mutex<(rohc::Decompressor, Vec<u8>)>);

#[pymethods]
impl Compressor {
    /// `repeat` is the number of packets that carry each change, 1 to 8. `cid` is the CID space: small or large.
    #[new]
    #[pyo3(signature = (*, repeat=2, cid="small"))]
    fn new(py: Python<'_>, repeat: u8, cid: &str) -> PyResult<Self> {
        let Channel { cids, repeat } =
            Channel::parse(cid, repeat).map_err(|error| Failure::from(error).raised(py))?;
        let config = rohc::CompressorConfig { repeat, cids, ..rohc::CompressorConfig::default() };
        Ok(Self(Mutex::new((rohc::Compressor::new(config), vec![0; LARGEST]))))
    }

    /// The ROHC packet of an IP packet. Raises TacitError if the profile cannot represent the packet; it must then be
    /// sent uncompressed.
    fn compress<'py>(&self, py: Python<'py>, packet: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (compressor, out) = &mut *state;
        let compressed =
            compressor.compress(packet, out).map_err(|error| TacitError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &out[..compressed.len]))
    }

    /// Processes the decompressor's feedback.
    fn feedback(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.feedback(bytes);
    }
}

#[pymethods]
impl Decompressor {
    /// `cid` is the CID space, as in the compressor.
    #[new]
    #[pyo3(signature = (*, cid="small"))]
    fn new(py: Python<'_>, cid: &str) -> PyResult<Self> {
        // The decompressor does not depend on the number of repetitions.
        let Channel { cids, .. } = Channel::parse(cid, 1).map_err(|error| Failure::from(error).raised(py))?;
        let config = rohc::DecompressorConfig { cids, ..rohc::DecompressorConfig::default() };
        Ok(Self(Mutex::new((rohc::Decompressor::new(config), vec![0; LARGEST]))))
    }

    /// The IP packet of a ROHC packet, and feedback for the compressor, if any. Raises TacitError if the packet cannot
    /// be decompressed.
    fn decompress<'py>(
        &self,
        py: Python<'py>,
        packet: &[u8],
    ) -> PyResult<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (decompressor, out) = &mut *state;
        let done =
            decompressor.decompress(packet, out).map_err(|error| TacitError::new_err(error.to_string()))?;
        let feedback = done.feedback.map(|feedback| PyBytes::new(py, feedback.as_bytes()));
        Ok((PyBytes::new(py, &out[..done.len]), feedback))
    }
}
