//! The three kinds of keys, and how a table of them is read and described.

use std::marker::PhantomData;

use super::kind::{Kind, NONE};
use crate::InputError;
use crate::input::Section;

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
                let literal = value != NONE;
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

pub(super) fn value_in<T>(keys: Keys<T>, name: &str, target: &T) -> Option<String> {
    keys.iter().find_map(|key| key.value(name, target))
}

pub(super) fn rows_of<T>(table: &'static str, keys: Keys<T>, usual: &T) -> Vec<Row> {
    keys.iter().map(|key| key.row(table, usual)).collect()
}
