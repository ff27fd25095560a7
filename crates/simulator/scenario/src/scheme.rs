//! Schemes: the named ways to acknowledge that a comparison contrasts.
//!
//! A scheme is an entry in [`ALL`]. No other code refers to a scheme by name.

pub(crate) mod table;

use crate::Scenario;
use crate::brought;
use crate::error::InputError;
use crate::input::{did_you_mean, few};

pub use table::{ALL, AS_WRITTEN, Listing, Role, Scheme, Side, by_default};

/// The name that selects all schemes.
const EVERY_SCHEME: &str = "all";

impl Scheme {
    /// Applies this scheme to `scenario`: to all its clients, or to those that [adopt](crate::Adoption) schemes.
    pub fn applied_to(&self, scenario: &Scenario) -> Scenario {
        let mut changed = scenario.clone();
        (self.apply)(&mut changed);
        brought::apply(self.name, &mut changed);
        scenario.adopted_by_some(self.name, self.role, changed)
    }

    /// The scheme called `name`, of the table or [brought](brought::BroughtScheme).
    pub fn known(name: &str) -> Option<&'static Self> {
        let in_table = ALL.get(Self::position(name));
        in_table.or_else(|| brought::all().into_iter().find(|scheme| scheme.name == name))
    }
}

/// The schemes with these names, without duplicates. No names select those of [`by_default`], and `all` selects every
/// one. `place` is used in messages.
///
/// # Errors
/// If a name is not in the table.
pub fn select(place: &str, names: &[String]) -> Result<Vec<&'static Scheme>, InputError> {
    if names.is_empty() {
        return Ok(by_default().collect());
    }
    let mut chosen: Vec<&'static Scheme> = Vec::new();
    for name in names.iter().filter(|name| *name != EVERY_SCHEME) {
        let scheme = find(place, name)?;
        if !chosen.iter().any(|known| known.name == scheme.name) {
            chosen.push(scheme);
        }
    }
    if names.iter().any(|name| name == EVERY_SCHEME) {
        return Ok(ALL.iter().collect());
    }
    Ok(chosen)
}

/// The scheme with this name, which may be [`AS_WRITTEN`]. `place` is used in messages.
///
/// # Errors
/// If there is no such scheme.
pub fn named(place: &str, name: &str) -> Result<&'static Scheme, InputError> {
    if name == AS_WRITTEN.name { Ok(&AS_WRITTEN) } else { find(place, name) }
}

/// The scheme with this name. `place` is used in messages.
///
/// # Errors
/// If there is no such scheme.
pub fn find(place: &str, name: &str) -> Result<&'static Scheme, InputError> {
    let names = || ALL.iter().map(|scheme| scheme.name);
    Scheme::known(name).ok_or_else(|| {
        let hint = did_you_mean(name, names());
        InputError::new(place, format!("unknown scheme {name:?}{hint}")).allowed(few(
            name,
            &names().collect::<Vec<_>>(),
            "`tacit scenarios` lists all",
        ))
    })
}

#[cfg(test)]
mod tests;
