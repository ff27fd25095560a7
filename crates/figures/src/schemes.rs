//! Schemes that figure files name.

use tacit_scenario::InputError;
use tacit_scenario::input::{Section, text, texts};
use tacit_scenario::scheme::{self, Scheme};

/// Schemes by name; the scenario as it is written is one too.
pub(super) fn read_schemes(section: &Section<'_>) -> Result<Vec<&'static Scheme>, InputError> {
    let mut names = section.or("schemes", Vec::new(), texts)?;
    let before = names.len();
    names.retain(|name| name != scheme::AS_WRITTEN.name);
    let as_written = names.len() < before;
    if as_written && names.is_empty() {
        return Ok(vec![&scheme::AS_WRITTEN]);
    }
    let mut schemes = selected(section, "schemes", &names)?;
    if as_written {
        schemes.push(&scheme::AS_WRITTEN);
    }
    Ok(schemes)
}

/// The scheme that `scheme` names; the scenario as it is written unless it is given.
pub(super) fn read_scheme(section: &Section<'_>) -> Result<&'static Scheme, InputError> {
    let name = section.or("scheme", scheme::AS_WRITTEN.name.to_owned(), text)?;
    scheme_named(section, "scheme", &name)
}

/// The scheme called `name`, the scenario as it is written included; `key` of `section` names it.
pub(super) fn scheme_named(
    section: &Section<'_>,
    key: &str,
    name: &str,
) -> Result<&'static Scheme, InputError> {
    scheme::named("", name).map_err(|error| at(section, key, error))
}

/// The schemes called `names`, those that are compared by default for none; `key` of `section` names them.
pub(super) fn selected(
    section: &Section<'_>,
    key: &str,
    names: &[String],
) -> Result<Vec<&'static Scheme>, InputError> {
    scheme::select("", names).map_err(|error| at(section, key, error))
}

/// The scheme of the table called `name`; `key` of `section` names it.
pub(super) fn scheme_of_table(
    section: &Section<'_>,
    key: &str,
    name: &str,
) -> Result<&'static Scheme, InputError> {
    // One name selects one scheme.
    selected(section, key, &[name.to_owned()]).map(|found| found[0])
}

/// An error about a name, at the key that names it.
fn at(section: &Section<'_>, key: &str, error: InputError) -> InputError {
    section.error(key, error.what).allowed(error.allowed.unwrap_or_default())
}
