//! Describes every key of a scenario once: its name, its type with unit and limits, its default and its meaning.
//!
//! The reader takes types, limits and messages from here; `tacit explain` and `docs/use/scenario.md` take their texts.
//! There are three kinds of keys. A [`Field`] sets one field of the simulator's configuration and knows where the value
//! is stored, so no other code needs to handle it. A [`Key`] is evaluated together with others in `read`. A [`TextKey`]
//! is a table, or a key whose type depends on others.

pub(crate) mod clients;
pub(crate) mod edca;
pub(crate) mod fwp;
pub(crate) mod hack;
pub(crate) mod kind;
pub(crate) mod links;
pub(crate) mod multi_link;
#[cfg(test)]
mod page;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod tack;
pub(crate) mod tcp;
pub(crate) mod traffic;
pub(crate) mod wifi;

use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::input::Section;
use crate::{InputError, Scenario};
use kind::Kind;

/// The default of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usual {
    /// The value of its field in the default of its table.
    Field,
    /// This TOML value.
    Is(&'static str),
    /// This description, which is not TOML.
    Described(&'static str),
    /// No value.
    Nothing,
}

/// What every key says: its name, its default and its meaning. One more call makes it a key of one of the three kinds:
/// `named("ecn").means("…").is("true").key(Flag)`.
pub(crate) struct About<T> {
    name: &'static str,
    usual: Usual,
    meaning: &'static str,
    table: PhantomData<fn(&mut T)>,
}

/// A key that other code reads, see [`About`].
pub(crate) const fn named(name: &'static str) -> About<()> {
    About::named(name)
}

impl<T> About<T> {
    /// A key whose default is that of its field.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self { name, usual: Usual::Field, meaning: "", table: PhantomData }
    }

    /// Its meaning, in Markdown.
    pub(crate) const fn means(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// The default is this TOML value.
    pub(crate) const fn is(self, toml: &'static str) -> Self {
        Self { usual: Usual::Is(toml), ..self }
    }

    /// This description of the default is not TOML.
    pub(crate) const fn described(self, words: &'static str) -> Self {
        Self { usual: Usual::Described(words), ..self }
    }

    /// There is no default.
    pub(crate) const fn optional(self) -> Self {
        Self { usual: Usual::Nothing, ..self }
    }

    /// A key that sets the field to which `accessor` refers.
    pub(crate) const fn field<K: Kind>(self, kind: K, accessor: fn(&mut T) -> &mut K::Value) -> Field<T, K> {
        Field { name: self.name, kind, usual: self.usual, meaning: self.meaning, accessor }
    }
}

impl About<()> {
    /// A key that is evaluated together with others.
    pub(crate) const fn key<K: Kind>(self, kind: K) -> Key<K> {
        Key { name: self.name, kind, usual: self.usual, meaning: self.meaning }
    }

    /// A key with these allowed values, in Markdown.
    pub(crate) const fn text(self, allowed: &'static str) -> TextKey {
        TextKey { name: self.name, usual: self.usual, allowed, meaning: self.meaning }
    }
}

/// A key that is read individually.
pub(crate) struct Key<K> {
    /// Its name in scenario files.
    pub name: &'static str,
    /// Its type and limits.
    pub kind: K,
    /// Its default.
    pub usual: Usual,
    /// Its meaning, in Markdown.
    pub meaning: &'static str,
}

/// A key that sets one field of `T`.
pub(crate) struct Field<T, K: Kind> {
    pub name: &'static str,
    pub kind: K,
    pub usual: Usual,
    pub meaning: &'static str,
    /// Access to the field that holds its value.
    pub accessor: fn(&mut T) -> &mut K::Value,
}

/// A key that needs its own code to be read.
pub(crate) struct TextKey {
    pub name: &'static str,
    pub usual: Usual,
    /// The allowed values, in Markdown.
    pub allowed: &'static str,
    pub meaning: &'static str,
}

/// A key of a table whose values are stored in a `T`.
pub(crate) trait Entry<T> {
    /// Stores the value from the section in its field. Does nothing for keys that other code reads.
    fn fill(&self, _section: &Section<'_>, _target: &mut T) -> Result<(), InputError> {
        Ok(())
    }

    /// The value in `target` as TOML; `None` for keys that are not a field.
    fn value(&self, _name: &str, _target: &T) -> Option<String> {
        None
    }

    /// The description of the key. `usual` contains the defaults of the table.
    fn row(&self, table: &'static str, usual: &T) -> Row;
}

/// A key as shown in explanations and on the documentation page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The table: `wifi`, `client`; empty at the top of a scenario.
    pub table: &'static str,
    /// The name of the key in its table.
    pub name: &'static str,
    /// The default, as TOML if it is literal.
    pub default: String,
    /// True if the default is valid TOML for a scenario.
    pub literal: bool,
    /// The allowed values, in Markdown.
    pub allowed: String,
    /// Its meaning, in Markdown.
    pub meaning: &'static str,
}

impl Row {
    fn new(
        table: &'static str,
        name: &'static str,
        (default, literal): (String, bool),
        allowed: String,
        meaning: &'static str,
    ) -> Self {
        Self { table, name, default, literal, allowed, meaning }
    }
}

impl Usual {
    /// The text of the default, and whether it is TOML.
    fn shown(self, field: impl FnOnce() -> String) -> (String, bool) {
        match self {
            Self::Field => {
                let value = field();
                let literal = value != kind::NONE;
                (value, literal)
            }
            Self::Is(toml) => (toml.to_owned(), true),
            Self::Described(words) => (words.to_owned(), false),
            Self::Nothing => (String::new(), false),
        }
    }
}

impl<K: Kind> Key<K> {
    /// Its value in `section`, if present.
    ///
    /// # Errors
    /// If the value is not allowed.
    pub(crate) fn given(&self, section: &Section<'_>) -> Result<Option<K::Value>, InputError> {
        section.optional(self.name, |value| self.kind.read(value))
    }

    /// Its value in `section`, or `usual`.
    ///
    /// # Errors
    /// If the value is not allowed.
    pub(crate) fn or(&self, section: &Section<'_>, usual: K::Value) -> Result<K::Value, InputError> {
        Ok(self.given(section)?.unwrap_or(usual))
    }

    /// Its value in `section`, which must have one.
    ///
    /// # Errors
    /// If the value is missing or not allowed.
    pub(crate) fn required(&self, section: &Section<'_>) -> Result<K::Value, InputError> {
        self.given(section)?.ok_or_else(|| section.missing(self.name))
    }
}

impl<T, K: Kind> Entry<T> for Key<K> {
    fn row(&self, table: &'static str, _: &T) -> Row {
        let usual = self.usual.shown(|| unreachable!("{} of {table} is no field", self.name));
        Row::new(table, self.name, usual, self.kind.allowed(), self.meaning)
    }
}

impl<T: Clone, K: Kind> Entry<T> for Field<T, K> {
    fn fill(&self, section: &Section<'_>, target: &mut T) -> Result<(), InputError> {
        if let Some(value) = section.optional(self.name, |value| self.kind.read(value))? {
            *(self.accessor)(target) = value;
        }
        Ok(())
    }

    fn value(&self, name: &str, target: &T) -> Option<String> {
        (name == self.name).then(|| self.kind.write((self.accessor)(&mut target.clone())))
    }

    fn row(&self, table: &'static str, usual: &T) -> Row {
        let usual = self.usual.shown(|| self.kind.write((self.accessor)(&mut usual.clone())));
        Row::new(table, self.name, usual, self.kind.allowed(), self.meaning)
    }
}

impl<T> Entry<T> for TextKey {
    fn row(&self, table: &'static str, _: &T) -> Row {
        let usual = self.usual.shown(|| unreachable!("{} of {table} is no field", self.name));
        Row::new(table, self.name, usual, self.allowed.to_owned(), self.meaning)
    }
}

/// The keys of a table.
pub(crate) type Keys<T> = &'static [&'static dyn Entry<T>];

/// Reads those of `keys` that are fields of `target`. The caller reads the others.
///
/// # Errors
/// On the first value that is not allowed.
pub(crate) fn fill<T>(keys: Keys<T>, section: &Section<'_>, target: &mut T) -> Result<(), InputError> {
    keys.iter().try_for_each(|key| key.fill(section, target))
}

fn value_in<T>(keys: Keys<T>, name: &str, target: &T) -> Option<String> {
    keys.iter().find_map(|key| key.value(name, target))
}

fn rows_of<T>(table: &'static str, keys: Keys<T>, usual: &T) -> Vec<Row> {
    keys.iter().map(|key| key.row(table, usual)).collect()
}

/// Name of the table that describes queues given as tables.
const QUEUE_TABLE: &str = "queue";
/// Name of the table of what several links have in common.
const MULTI_LINK_TABLE: &str = "wifi.multi-link";

/// Every key, grouped by table in the order of the documentation page.
pub(crate) fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        [
            rows_of("", run::TOP, &()),
            rows_of("run", run::RUN, &run::usual()),
            rows_of("wifi", wifi::WIFI, &wifi::usual()),
            rows_of(MULTI_LINK_TABLE, multi_link::MULTI_LINK, &crate::MultiLinkPlan::default()),
            rows_of(QUEUE_TABLE, queue::QUEUE, &()),
            rows_of("hack", hack::HACK, &hack::usual()),
            rows_of("fwp", fwp::FWP, &fwp::usual()),
            rows_of("wired", links::WIRED, &links::usual_wire()),
            rows_of("wired", links::COMMON, &links::usual_wire()),
            rows_of("cellular", links::CELLULAR, &links::usual_cellular()),
            rows_of("cellular", links::COMMON, &links::usual_cellular()),
            rows_of("hop", links::HOP, &()),
            rows_of("clients", run::CLIENTS, &()),
            rows_of("client", clients::CLIENT, &crate::ClientOverride::default()),
            rows_of("client", clients::WIRELESS, &crate::ClientOverride::default()),
            rows_of("traffic", traffic::TRAFFIC, &traffic::usual()),
            rows_of("flow", traffic::FLOW, &()),
            rows_of("tcp", tcp::TCP, &tacit_tcp::Config::default()),
            rows_of("tack", tack::TACK, &tack::usual()),
            rows_of("compare", run::COMPARE, &()),
        ]
        .concat()
    })
}

/// The value of the field that `path` names, such as `wifi.rate`; `None` for keys that are not a field of one of the
/// tables below.
pub(crate) fn value(path: &str, scenario: &Scenario) -> Option<String> {
    let (table, name) = path.split_once('.')?;
    match table {
        "run" => value_in(run::RUN, name, &scenario.run),
        "wifi" => value_in(wifi::WIFI, name, scenario.wifi.as_ref()?),
        "hack" => value_in(hack::HACK, name, &scenario.hack),
        "fwp" => value_in(fwp::FWP, name, &scenario.fwp),
        "traffic" => value_in(traffic::TRAFFIC, name, &scenario.traffic),
        "tcp" => value_in(tcp::TCP, name, &scenario.tcp),
        "tack" => value_in(tack::TACK, name, &scenario.tack),
        _ => None,
    }
}

/// Tables that a scenario may have several of.
const LISTS: [&str; 3] = ["client", "flow", "hop"];

/// Whether a scenario may have a table of this name.
pub(crate) fn is_table(name: &str) -> bool {
    !matches!(name, "" | QUEUE_TABLE) && rows().iter().any(|row| row.table == name)
}

/// The header of the table `name` in TOML.
pub(crate) fn header(name: &str) -> String {
    if LISTS.contains(&name) { format!("[[{name}]]") } else { format!("[{name}]") }
}

/// The row that describes `path`, such as `wifi.rate` or `client[2].rate`. Keys of `[[flow]]` and `[[hop]]` without a
/// description of their own are described in the tables they override. `down` and `up` of a link have the keys of the
/// link. Any other table in place of a value has its own table of keys, or is described by the value.
pub(crate) fn find(path: &str) -> Option<&'static Row> {
    let parts: Vec<&str> = path.split('.').collect();
    let (table, key) = match parts[..] {
        [key] => ("", key),
        [_, queue, key] if queue == "queue" || queue.ends_with("-queue") => (QUEUE_TABLE, key),
        ["wifi", multi_link::TABLE, key, ..] => (MULTI_LINK_TABLE, key),
        ["wifi", link, key, ..] if link.starts_with("link[") => ("wifi", key),
        [table, "down" | "up", key, ..] | [table, key, ..] => (table.split('[').next().unwrap_or(table), key),
        [] => return None,
    };
    let others: &[&str] = match table {
        "flow" => &["traffic"],
        "hop" => &["wired", "cellular"],
        _ => &[],
    };
    let in_table = |table: &str| rows().iter().find(|row| row.table == table && row.name == key);
    std::iter::once(table).chain(others.iter().copied()).find_map(in_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_described_twice_and_each_says_what_it_means() {
        let mut keys: Vec<(&str, &str)> = rows().iter().map(|row| (row.table, row.name)).collect();
        keys.sort_unstable();
        let twice: Vec<_> = keys.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert_eq!(twice, [] as [&[(&str, &str)]; 0]);
        for row in rows() {
            assert!(!row.meaning.is_empty() && !row.allowed.is_empty(), "{}.{}", row.table, row.name);
        }
    }
}
