//! EDCA parameters of the access point and clients that a scenario sets.

use tacit_link::wifi::phy::Phy;
use tacit_link::wifi::{AccessCategory, EdcaOverride, PerCategory};

/// A value per access category; `None` uses the standard's.
pub type Numbers = PerCategory<Option<u32>>;

/// A setting for the access point and for the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByRole<T> {
    /// For the access point.
    pub ap: T,
    /// For the clients.
    pub clients: T,
}

/// The three EDCA parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdcaPlan<T> {
    /// AIFSN.
    pub aifsn: T,
    /// CWmin.
    pub cw_min: T,
    /// CWmax.
    pub cw_max: T,
}

impl EdcaPlan<Numbers> {
    /// Converts to the simulator's representation.
    pub fn overrides(&self) -> PerCategory<EdcaOverride> {
        PerCategory(AccessCategory::ALL.map(|category| EdcaOverride {
            aifs_slots: self.aifsn.get(category),
            cw_min: self.cw_min.get(category),
            cw_max: self.cw_max.get(category),
        }))
    }

    /// These values, completed by `others` where they are unset.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        let or = |ours: Numbers, others: Numbers| {
            PerCategory(AccessCategory::ALL.map(|category| ours.get(category).or(others.get(category))))
        };
        Self {
            aifsn: or(self.aifsn, others.aifsn),
            cw_min: or(self.cw_min, others.cw_min),
            cw_max: or(self.cw_max, others.cw_max),
        }
    }

    /// The first category whose CWmin would exceed its CWmax on `phy`, with both windows.
    pub fn crossed(&self, phy: &Phy) -> Option<(AccessCategory, u32, u32)> {
        AccessCategory::ALL.into_iter().find_map(|category| {
            let edca = self.overrides().get(category).over(category.parameters(phy));
            (edca.cw_min > edca.cw_max).then_some((category, edca.cw_min, edca.cw_max))
        })
    }
}

impl EdcaPlan<ByRole<Numbers>> {
    /// The access point's parameters.
    pub fn ap(&self) -> EdcaPlan<Numbers> {
        EdcaPlan { aifsn: self.aifsn.ap, cw_min: self.cw_min.ap, cw_max: self.cw_max.ap }
    }

    /// The clients' parameters.
    pub fn clients(&self) -> EdcaPlan<Numbers> {
        EdcaPlan { aifsn: self.aifsn.clients, cw_min: self.cw_min.clients, cw_max: self.cw_max.clients }
    }
}
