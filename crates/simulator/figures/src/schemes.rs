//! Schemes named in figure files.

use tacit_scenario::InputError;
use tacit_scenario::input::{Section, text, texts};
use tacit_scenario::scheme::{self, Scheme};

/// Reads a list of schemes by name, which may include the scenario as written.
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

/// Reads the scheme in the key `scheme`. The default is the scenario as written.
pub(super) fn read_scheme(section: &Section<'_>) -> Result<&'static Scheme, InputError> {
    let name = section.or("scheme", scheme::AS_WRITTEN.name.to_owned(), text)?;
    scheme_named(section, "scheme", &name)
}

/// The scheme with this name, which may be the scenario as written. Errors refer to `key` of `section`.
pub(super) fn scheme_named(
    section: &Section<'_>,
    key: &str,
    name: &str,
) -> Result<&'static Scheme, InputError> {
    scheme::named("", name).map_err(|error| at(section, key, error))
}

/// The schemes with these names, or the default schemes if `names` is empty. Errors refer to `key` of `section`.
pub(super) fn selected(
    section: &Section<'_>,
    key: &str,
    names: &[String],
) -> Result<Vec<&'static Scheme>, InputError> {
    scheme::select("", names).map_err(|error| at(section, key, error))
}

/// The scheme of the table with this name. Errors refer to `key` of `section`.
pub(super) fn scheme_of_table(
    section: &Section<'_>,
    key: &str,
    name: &str,
) -> Result<&'static Scheme, InputError> {
    // One name selects one scheme.
    selected(section, key, &[name.to_owned()]).map(|found| found[0])
}

/// Moves an error to the key that contains the name.
fn at(section: &Section<'_>, key: &str, error: InputError) -> InputError {
    section.error(key, error.what).allowed(error.allowed.unwrap_or_default())
}
