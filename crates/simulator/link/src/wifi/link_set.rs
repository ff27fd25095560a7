//! Links of multi-link devices, and sets of them.

pub(crate) use tacit_between::hack::MOST_LINKS;

/// A link of a multi-link device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u8);

impl LinkId {
    /// The first link, which is the only one without multi-link operation.
    pub const FIRST: Self = Self(0);

    /// Index into tables of links.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSet(u8);

impl LinkSet {
    /// Every link.
    pub const ALL: Self = Self(u8::MAX);
    /// No link.
    pub const NONE: Self = Self(0);

    /// With `link` as well.
    #[must_use]
    pub const fn with(self, link: LinkId) -> Self {
        Self(self.0 | 1 << link.0)
    }

    /// Without `link`.
    #[must_use]
    pub const fn without(self, link: LinkId) -> Self {
        Self(self.0 & !(1 << link.0))
    }

    /// True if it has no link.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if it has `link`.
    pub const fn contains(self, link: LinkId) -> bool {
        self.0 & 1 << link.0 != 0
    }

    /// The links of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
