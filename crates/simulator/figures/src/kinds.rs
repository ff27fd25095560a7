//! The kinds of figures. Each has its own sections in a figure file.

use std::sync::Arc;

use super::figure::Kind;
use super::series::Series;
use super::theory_and_sweep::TheoryAndSweep;
use super::timeline::Timeline;
use super::transfers::Transfers;
use tacit_scenario::InputError;
use tacit_scenario::input::Section;

type ReadKind = fn(&Section<'_>) -> Result<Arc<dyn Kind>, InputError>;

macro_rules! kind {
    ($($key:literal)and+ => $read:path) => {
        (&[$($key),+], |root| Ok(Arc::new($read($(root.section($key)?),+)?)))
    };
}

/// The sections that determine the kind. A figure has the sections of one row.
const KINDS: [(&[&str], ReadKind); 4] = [
    kind!("theory" and "sweep" => TheoryAndSweep::read),
    kind!("timeline" => Timeline::read),
    kind!("series" => Series::read),
    kind!("transfers" => Transfers::read),
];

/// Reads the sections of the kind that is present.
pub(super) fn read(root: &Section<'_>) -> Result<Arc<dyn Kind>, InputError> {
    let mut present = Vec::new();
    for (keys, read) in KINDS {
        let sections = keys.iter().map(|key| root.section(key)).collect::<Result<Vec<_>, _>>()?;
        if sections.iter().any(Section::is_present) {
            present.push(read);
        }
    }
    let [read] = present[..] else {
        let needed = "[theory] or [sweep] or both are needed, or [timeline], [series] or [transfers] alone";
        return Err(root.error("theory", needed));
    };
    read(root)
}
