//! Traces of cellular links: one that comes with the program, and files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tacit_link::cellular::{OPPORTUNITY, Trace, TraceError};
use tacit_link::random::Stream;

/// Largest trace file in octets: two hours at 100 Mb/s.
const MAX_FILE: u64 = 1 << 29;

/// A trace that is computed, not recorded.
///
/// The rate is drawn anew every 100 ms: it moves by up to `step_kbps` either way and stays between
/// `least_kbps` and `most_kbps`, as mobile links wander with fading and load; one 100 ms in sixty, on
/// average, is an outage. Octets add up millisecond by millisecond, and each 1500 of them are an opportunity.
struct Synthetic {
    name: &'static str,
    seconds: u32,
    least_kbps: u32,
    most_kbps: u32,
    step_kbps: u32,
}

const SYNTHETIC: [Synthetic; 2] = [
    Synthetic {
        name: "lte-synthetic.down",
        seconds: 60,
        least_kbps: 1_000,
        most_kbps: 30_000,
        step_kbps: 3_000,
    },
    Synthetic { name: "lte-synthetic.up", seconds: 60, least_kbps: 200, most_kbps: 6_000, step_kbps: 600 },
];

impl Synthetic {
    fn trace(&self) -> Trace {
        let mut stream = Stream::new(1, self.name);
        let mut millis = Vec::new();
        let mut kbps = (self.least_kbps + self.most_kbps) / 2;
        // A kilobit per second is an eighth of an octet per millisecond.
        let (mut outage, mut eighths, opportunity) = (false, 0, OPPORTUNITY.0 as u32 * 8);
        for at in 1..=self.seconds * 1_000 {
            if at % 100 == 1 {
                kbps = (kbps + stream.up_to(2 * self.step_kbps)).saturating_sub(self.step_kbps);
                kbps = kbps.clamp(self.least_kbps, self.most_kbps);
                outage = stream.up_to(59) == 0;
            }
            eighths += if outage { 0 } else { kbps };
            while eighths >= opportunity {
                eighths -= opportunity;
                millis.push(at);
            }
        }
        // The trace is as long as it says.
        millis.push(self.seconds * 1_000);
        Trace::new(millis).expect("milliseconds were counted upwards")
    }
}

/// The trace called `name` that comes with the program.
pub(super) fn find(name: &str) -> Option<Trace> {
    SYNTHETIC.iter().find(|synthetic| synthetic.name == name).map(Synthetic::trace)
}

/// The names of those.
pub(super) fn names() -> String {
    SYNTHETIC.map(|synthetic| format!("{:?}", synthetic.name)).join(", ")
}

/// Why a file is no trace.
#[derive(Debug)]
pub(super) enum LoadError {
    /// It cannot be read.
    File(String),
    /// It says something else.
    Trace(TraceError),
}

/// The trace in a file.
pub(super) fn load(path: &Path) -> Result<Arc<Trace>, LoadError> {
    let file_error = |error: std::io::Error| LoadError::File(error.to_string());
    let mut octets = Vec::new();
    // Not all that can be read says how long it is.
    let file = File::open(path).map_err(file_error)?;
    file.take(MAX_FILE + 1).read_to_end(&mut octets).map_err(file_error)?;
    if octets.len() as u64 > MAX_FILE {
        return Err(LoadError::File(format!("longer than {MAX_FILE} octets")));
    }
    let text = String::from_utf8_lossy(&octets);
    Trace::parse(&text).map(Arc::new).map_err(LoadError::Trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synthetic_traces_are_what_they_were() {
        let told = SYNTHETIC.map(|synthetic| {
            let trace = synthetic.trace();
            (synthetic.name, trace.period_millis(), trace.opportunities(), trace.mean_rate().as_bps() / 1_000)
        });
        // Known answers: other values change every result made with them.
        let known =
            [("lte-synthetic.down", 60_000, 102_334, 20_466), ("lte-synthetic.up", 60_000, 7_783, 1_556)];
        assert_eq!(told, known);
    }
}
