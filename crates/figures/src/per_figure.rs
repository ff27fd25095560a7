//! What was made for figures before they are drawn.

use std::collections::BTreeMap;

use super::file::Figure;
use super::kind::Kind;
use tacit_runs::RunsError;

/// What a machine made for each figure that wants it, by the figure's id, or why it did not.
#[derive(Clone, Debug)]
pub(super) struct PerFigure<T>(BTreeMap<String, Result<T, String>>);

impl<T> Default for PerFigure<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PerFigure<T> {
    /// Measures what each of `figures` that is of kind `K` says; nothing where `skip_reason` says why.
    ///
    /// # Errors
    /// Those of `measure`.
    pub fn of<K: Kind>(
        figures: &[Figure],
        skip_reason: Option<&str>,
        mut measure: impl FnMut(&K) -> Result<T, RunsError>,
    ) -> Result<Self, RunsError> {
        let mut all = Self::default();
        for figure in figures {
            let Some(kind) = figure.kind_as::<K>() else { continue };
            let result = match skip_reason {
                Some(skip_reason) => Err(skip_reason.to_owned()),
                None => Ok(measure(kind)?),
            };
            all.0.insert(figure.id.clone(), result);
        }
        Ok(all)
    }

    /// What was made for figure `id`.
    pub fn get(&self, id: &str) -> Option<&T> {
        self.0.get(id)?.as_ref().ok()
    }

    /// Why there is nothing for figure `id`.
    pub fn skip_reason(&self, id: &str) -> Option<String> {
        match self.0.get(id) {
            Some(Ok(_)) => None,
            Some(Err(skip_reason)) => Some(skip_reason.clone()),
            None => Some("no live runs were made".to_owned()),
        }
    }
}
