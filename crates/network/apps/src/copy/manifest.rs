//! Checks which paths of a sender's list a receiver accepts.

use super::pattern::{is_pattern, matches};
use super::tree::{PARTIAL_SUFFIX, Relative};
use super::wire::{Entry, Kind, Timestamp};

/// A path in the sender's list.
pub(super) struct Item {
    pub path: Relative,
    pub kind: Kind,
    pub mtime: Timestamp,
    pub mode: u32,
    pub state: State,
}

/// State of a path at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It existed before.
    Found,
    /// This copy created it.
    Made,
    /// It failed.
    Failed,
}

/// Which names may be at the top of a list: a server that is asked for one path must not send another.
#[derive(Clone, Debug)]
pub(super) enum TopNames {
    /// Any name.
    Any,
    /// Only this name, which is the destination itself.
    One(String),
    /// Names that equal or match one of these.
    Of(Vec<String>),
}

impl TopNames {
    /// The names that answer a request for `paths`.
    pub fn asked(paths: &[String], name: Option<&str>) -> Self {
        if let Some(name) = name {
            return Self::One(name.to_owned());
        }
        let names: Vec<_> = paths.iter().map(|path| path.rsplit('/').next().unwrap_or_default()).collect();
        match names.iter().any(|name| name.is_empty()) {
            true => Self::Any,
            false => Self::Of(names.into_iter().map(str::to_owned).collect()),
        }
    }

    fn allows(&self, path: &Relative) -> bool {
        let top = path.as_str().split('/').next().unwrap_or_default();
        match self {
            Self::Any => true,
            Self::One(name) => top == name,
            Self::Of(names) => names.iter().any(|name| name == top || is_pattern(name) && matches(name, top)),
        }
    }
}

/// Why a path of the list is not accepted.
pub(super) enum NotAdmitted {
    /// No honest sender lists such a path.
    Refused(String),
    /// Paths of this type are not copied.
    Skipped(String),
}

/// Checks an entry of the sender's list.
pub(super) fn admit(entry: &Entry, tops: &TopNames) -> Result<Relative, NotAdmitted> {
    let path = Relative::parse(&entry.path).map_err(NotAdmitted::Refused)?;
    if path.is_empty() {
        return Err(NotAdmitted::Refused("it has no name".into()));
    }
    if path.split().1.ends_with(PARTIAL_SUFFIX) {
        return Err(NotAdmitted::Refused(format!(
            "names that end in {PARTIAL_SUFFIX} are for copies that are not whole"
        )));
    }
    if !tops.allows(&path) {
        return Err(NotAdmitted::Refused("it was not asked for".into()));
    }
    match &entry.kind {
        Kind::Symlink { target } if !path.keeps_inside(target, matches!(tops, TopNames::One(_))) => {
            Err(NotAdmitted::Skipped("a symbolic link that may lead out of the destination".into()))
        }
        _ => Ok(path),
    }
}
