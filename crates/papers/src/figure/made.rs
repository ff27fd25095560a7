//! What was made for figures before they are drawn.

use std::collections::BTreeMap;

/// What a machine made for each figure that wants it, by the figure's id, or why it did not.
#[derive(Clone, Debug)]
pub(super) struct Made<T>(BTreeMap<String, Result<T, String>>);

impl<T> Default for Made<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Made<T> {
    pub fn insert(&mut self, id: &str, made: Result<T, String>) {
        self.0.insert(id.to_owned(), made);
    }

    /// What was made for figure `id`.
    pub fn get(&self, id: &str) -> Option<&T> {
        self.0.get(id)?.as_ref().ok()
    }

    /// Why there is nothing for figure `id`.
    pub fn obstacle(&self, id: &str) -> Option<String> {
        match self.0.get(id) {
            Some(Ok(_)) => None,
            Some(Err(obstacle)) => Some(obstacle.clone()),
            None => Some("no live runs were made".to_owned()),
        }
    }
}
