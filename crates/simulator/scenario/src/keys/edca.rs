//! The EDCA parameters: one number, a number per access category, or either of these for the access point and for
//! clients separately.

use tacit_link::wifi::{AccessCategory, PerCategory};

use super::kind::{Kind, NONE, or};
use crate::edca::{ByRole, Numbers};
use crate::input::{Mismatch, Tree, Value, did_you_mean};

/// Kind of a number, which determines its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// CWmin or CWmax: 2^n - 1, which the standard writes as the exponent n of four bits (802.11-2020 clause
    /// 9.4.2.28).
    Window,
    /// AIFSN: four bits, with a minimum of 1 for the access point and 2 for other stations (802.11-2020 clause
    /// 9.4.2.28).
    Aifsn,
}

/// Largest value of four bits.
const MOST_AIFSN: u32 = 15;
const MOST_WINDOW: u32 = (1 << 15) - 1;
/// AIFS is SIFS plus this number of slots. A client with a smaller value could transmit during the access point's PIFS.
const LEAST_AIFSN: ByRole<u32> = ByRole { ap: 1, clients: 2 };

impl Of {
    fn number(self, least_aifsn: u32, value: &Value) -> Result<u32, Mismatch> {
        let allowed = match self {
            Self::Window => format!("a power of two less one, from 0 to {MOST_WINDOW}"),
            Self::Aifsn => format!("a whole number from {least_aifsn} to {MOST_AIFSN}"),
        };
        let Value::Integer(number) = value else {
            return Err(Mismatch::new(format!("{value} is {}", value.kind()), allowed));
        };
        let is_allowed = |number: u32| match self {
            Self::Window => number <= MOST_WINDOW && (number + 1).is_power_of_two(),
            Self::Aifsn => (least_aifsn..=MOST_AIFSN).contains(&number),
        };
        let what = match self {
            Self::Window => format!("{number} is no contention window"),
            Self::Aifsn => format!("{number} is out of range"),
        };
        u32::try_from(*number)
            .ok()
            .filter(|number| is_allowed(*number))
            .ok_or_else(|| Mismatch::new(what, allowed))
    }

    /// One number for all categories, or a table with some categories.
    fn numbers(self, least_aifsn: u32, value: &Value) -> Result<Numbers, Mismatch> {
        let Value::Table(tree) = value else {
            return Ok(PerCategory::same(Some(self.number(least_aifsn, value)?)));
        };
        known(tree, AccessCategory::ALL.map(AccessCategory::name))?;
        let one = |category: AccessCategory| {
            let node = tree.entries.get(category.name());
            node.map(|node| self.number(least_aifsn, &node.value)).transpose()
        };
        let [background, best_effort, video, voice] = AccessCategory::ALL;
        Ok(PerCategory([one(background)?, one(best_effort)?, one(video)?, one(voice)?]))
    }

    fn allowed_in_tables(self) -> &'static str {
        match self {
            Self::Window => "`0`, `1`, `3`, `7`, … `32767`",
            Self::Aifsn => "`2` to `15`, from `1` for the access point",
        }
    }
}

/// Refuses a table with keys other than `names`.
fn known<const N: usize>(tree: &Tree, names: [&'static str; N]) -> Result<(), Mismatch> {
    let Some(key) = tree.entries.keys().find(|key| !names.contains(&key.as_str())) else { return Ok(()) };
    let hint = did_you_mean(key, names);
    Err(Mismatch::new(format!("unknown key {key:?}{hint}"), names.join(", ")))
}

fn written(numbers: &Numbers) -> String {
    if let Some(one) = numbers.0[0].filter(|one| *numbers == PerCategory::same(Some(*one))) {
        return one.to_string();
    }
    let parts: Vec<String> = AccessCategory::ALL
        .into_iter()
        .filter_map(|category| Some(format!("{} = {}", category.name(), numbers.get(category)?)))
        .collect();
    if parts.is_empty() { NONE.to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
}

/// For one client.
pub(crate) struct OfClient(pub Of);

impl Kind for OfClient {
    type Value = Numbers;

    fn read(&self, value: &Value) -> Result<Numbers, Mismatch> {
        self.0.numbers(LEAST_AIFSN.clients, value)
    }

    fn write(&self, value: &Numbers) -> String {
        written(value)
    }

    fn allowed(&self) -> String {
        "as in `[wifi]`, without `ap` and `clients`".to_owned()
    }
}

/// For the access point and the clients.
pub(crate) struct OfRoles(pub Of);

impl Kind for OfRoles {
    type Value = ByRole<Numbers>;

    fn read(&self, value: &Value) -> Result<ByRole<Numbers>, Mismatch> {
        let roles = ["ap", "clients"];
        match value {
            Value::Table(tree) if roles.iter().any(|role| tree.entries.contains_key(*role)) => {
                known(tree, roles)?;
                let one = |role: &str, least| {
                    let node = tree.entries.get(role);
                    node.map_or(Ok(Numbers::default()), |node| self.0.numbers(least, &node.value))
                };
                Ok(ByRole { ap: one("ap", LEAST_AIFSN.ap)?, clients: one("clients", LEAST_AIFSN.clients)? })
            }
            both => {
                let numbers = self.0.numbers(LEAST_AIFSN.clients, both);
                let numbers = numbers.map_err(|mismatch| match both {
                    Value::Table(_) => mismatch,
                    _ => or(mismatch, "a table such as { ap = 7, clients = { vo = 3 } }"),
                })?;
                Ok(ByRole { ap: numbers, clients: numbers })
            }
        }
    }

    fn write(&self, value: &ByRole<Numbers>) -> String {
        if value.ap == value.clients {
            return written(&value.ap);
        }
        let parts: Vec<String> = [("ap", value.ap), ("clients", value.clients)]
            .into_iter()
            .filter(|(_, numbers)| *numbers != Numbers::default())
            .map(|(role, numbers)| format!("{role} = {}", written(&numbers)))
            .collect();
        format!("{{ {} }}", parts.join(", "))
    }

    fn allowed(&self) -> String {
        format!(
            "{}; `{{ ap = …, clients = … }}`; or either with `{{ bk = …, be = …, vi = …, vo = … }}`",
            self.0.allowed_in_tables()
        )
    }
}
