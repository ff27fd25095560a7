//! A scheme that only some clients use: the first `clients.adopters`. The others keep the baseline.

use crate::error::InputError;
use crate::scheme::{Role, Scheme};
use crate::{Scenario, Wifi};

/// Which clients use a scheme, and with which settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Adoption {
    /// Number of clients that use it, the first ones.
    pub adopters: u32,
    /// The scheme and the scenario under it; `None` where all clients have the same settings.
    adopted: Option<Adopted>,
}

#[derive(Clone, Debug, PartialEq)]
struct Adopted {
    scheme: &'static str,
    scenario: Box<Scenario>,
}

impl Adoption {
    /// The first `adopters` clients, before a scheme is applied.
    pub(crate) fn by(adopters: u32) -> Self {
        Self { adopters, adopted: None }
    }
}

impl Scenario {
    /// The scenario of the client with this index.
    pub(crate) fn of_client(&self, index: u32) -> &Self {
        self.adopted()
            .filter(|_| self.adoption.as_ref().is_some_and(|known| index < known.adopters))
            .unwrap_or(self)
    }

    /// The scenario under the scheme that only some clients use.
    pub(crate) fn adopted(&self) -> Option<&Self> {
        self.adoption.as_ref()?.adopted.as_ref().map(|adopted| &*adopted.scenario)
    }

    pub(crate) fn adopted_mut(&mut self) -> Option<&mut Self> {
        self.adoption.as_mut()?.adopted.as_mut().map(|adopted| &mut *adopted.scenario)
    }

    /// The baseline, with `under` for the clients that adopt `scheme`. The baseline and the bound are for all clients, and
    /// only the baseline has groups.
    pub(crate) fn adopted_by_some(&self, scheme: &'static str, role: Role, mut under: Self) -> Self {
        let Some(adopters) = self.adoption.as_ref().map(|adoption| adoption.adopters) else { return under };
        if role == Role::Baseline {
            return under;
        }
        under.adoption = None;
        if role == Role::Bound {
            return under;
        }
        let mut all = Scheme::with_role(Role::Baseline).applied_to(self);
        all.adoption =
            Some(Adoption { adopters, adopted: Some(Adopted { scheme, scenario: Box::new(under) }) });
        all
    }

    /// Refuses more adopters than clients, and a scheme that changes what all clients share.
    pub(crate) fn check_adoption(&self, clients: u32) -> Result<(), InputError> {
        const KEY: &str = "clients.adopters";
        let Some(Adoption { adopters, adopted }) = &self.adoption else { return Ok(()) };
        if *adopters > clients {
            let what = format!("{adopters} of {clients} clients");
            return Err(InputError::new(KEY, what).allowed(format!("0 to {clients}")));
        }
        let Some(Adopted { scheme, scenario }) = adopted else { return Ok(()) };
        let is_shared = |wifi: &Option<Wifi>| *wifi != self.wifi;
        if is_shared(&scenario.wifi) || scenario.hops != self.hops {
            let what = format!("{scheme} changes the access point or a link, which all clients share");
            return Err(InputError::new(KEY, what).allowed("schemes of the ends, such as tack, neqo or bbr"));
        }
        Ok(())
    }
}
