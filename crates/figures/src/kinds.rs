//! The kinds of figures there are: each has sections of its own in a figure's file.

use std::sync::Arc;

use super::downloads::Downloads;
use super::figure::{Figure, Kind};
use super::live::Live;
use super::live_run::{LiveRuns, MakeLive, PerFigure};
use super::series::Series;
use super::theory_and_sweep::TheoryAndSweep;
use super::timeline::Timeline;
use super::transfers::Transfers;
use tacit_runs::RunsError;
use tacit_scenario::InputError;
use tacit_scenario::input::Section;

type ReadKind = fn(&Section<'_>) -> Result<Arc<dyn Kind>, InputError>;

macro_rules! kind {
    ($($key:literal)and+ => $read:path) => {
        (&[$($key),+], |root| Ok(Arc::new($read($(root.section($key)?),+)?)))
    };
}

/// The sections that make a figure one of a kind: it has those of one row.
const KINDS: [(&[&str], ReadKind); 6] = [
    kind!("theory" and "sweep" => TheoryAndSweep::read),
    kind!("timeline" => Timeline::read),
    kind!("series" => Series::read),
    kind!("live" => Live::read),
    kind!("downloads" => Downloads::read),
    kind!("transfers" => Transfers::read),
];

/// Reads the sections of the one kind that is there.
pub(super) fn read(root: &Section<'_>) -> Result<Arc<dyn Kind>, InputError> {
    let mut present = Vec::new();
    for (keys, read) in KINDS {
        let sections = keys.iter().map(|key| root.section(key)).collect::<Result<Vec<_>, _>>()?;
        if sections.iter().any(Section::is_present) {
            present.push(read);
        }
    }
    let [read] = present[..] else {
        let needed = "[theory] or [sweep] or both are needed, or [timeline], [series], [live], [downloads] or \
                      [transfers] alone";
        return Err(root.error("theory", needed));
    };
    read(root)
}

impl LiveRuns {
    /// Makes the live runs of `figures`, of those that have any.
    ///
    /// # Errors
    /// Where a run cannot be made.
    pub fn make(figures: &[Figure], quick: bool, make: &mut dyn MakeLive) -> Result<Self, RunsError> {
        Ok(Self {
            pairs: PerFigure::made::<Live>(figures, quick, make)?,
            downloads: PerFigure::made::<Downloads>(figures, quick, make)?,
            transfers: PerFigure::made::<Transfers>(figures, quick, make)?,
        })
    }
}
