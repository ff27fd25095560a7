//! A table being read: hands out typed values and remembers which keys it was asked for.

use std::cell::RefCell;
use std::rc::Rc;

use crate::{InputError, Mismatch, Node, Origin, Tree, Value, few, nearest};

/// A key that a reader asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Through the tables from the top; tables of an array by their number, from 1: `client[2].rate`.
    pub path: String,
    /// The node there, if there is one.
    pub found: Option<Node>,
}

/// Every key asked for, in order; a key asked for twice is there twice.
pub type Log = Rc<RefCell<Vec<Asked>>>;

/// A table under a path, perhaps absent, with the keys asked for so far.
pub struct Section<'a> {
    path: String,
    /// The path in the log, where tables of an array have numbers.
    label: String,
    origin: Origin,
    tree: Option<&'a Tree>,
    asked: RefCell<Vec<&'static str>>,
    log: Option<Log>,
}

impl<'a> Section<'a> {
    /// The top of a document that `source` names.
    pub fn root(source: &str, tree: &'a Tree) -> Self {
        Self {
            path: String::new(),
            label: String::new(),
            origin: Origin::whole(source),
            tree: Some(tree),
            asked: RefCell::default(),
            log: None,
        }
    }

    /// The whole document, with `log` for the keys that it and the sections below it are asked for.
    pub fn logged(source: &str, tree: &'a Tree, log: Log) -> Self {
        Self { log: Some(log), ..Self::root(source, tree) }
    }

    /// True when the table stands in the document.
    pub fn is_present(&self) -> bool {
        self.tree.is_some()
    }

    /// True when `key` stands in the document.
    pub fn has(&self, key: &str) -> bool {
        self.tree.is_some_and(|tree| tree.entries.contains_key(key))
    }

    /// The node under `key`, unparsed.
    pub fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.asked.borrow_mut().push(key);
        let found = self.tree.and_then(|tree| tree.entries.get(key));
        if let Some(log) = &self.log {
            log.borrow_mut().push(Asked { path: below(&self.label, key), found: found.cloned() });
        }
        found
    }

    /// The value under `key` as `parse` reads it.
    ///
    /// # Errors
    /// Where `parse` does not take the value.
    pub fn optional<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, Mismatch>,
    ) -> Result<Option<T>, InputError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        parse(&node.value).map(Some).map_err(|mismatch| {
            node.origin.complaint(&self.full(key), &mismatch.what).allowed(mismatch.allowed)
        })
    }

    /// The value under `key`, or `default` without one.
    ///
    /// # Errors
    /// Where `parse` does not take the value.
    pub fn or<T>(
        &self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(&Value) -> Result<T, Mismatch>,
    ) -> Result<T, InputError> {
        Ok(self.optional(key, parse)?.unwrap_or(default))
    }

    /// The value under `key`.
    ///
    /// # Errors
    /// Without one, or where `parse` does not take it.
    pub fn required<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, Mismatch>,
    ) -> Result<T, InputError> {
        self.optional(key, parse)?.ok_or_else(|| self.missing(key))
    }

    /// The error that `key` is not there.
    pub fn missing(&self, key: &str) -> InputError {
        InputError::new(&self.origin, format!("{} is missing", self.full(key)))
    }

    /// The table under `key`, perhaps absent.
    ///
    /// # Errors
    /// Where something else stands there.
    pub fn section(&self, key: &'static str) -> Result<Self, InputError> {
        let path = self.full(key);
        let absent = |origin| Self {
            path: path.clone(),
            label: below(&self.label, key),
            origin,
            tree: None,
            asked: RefCell::default(),
            log: self.log.clone(),
        };
        match self.node(key) {
            None => Ok(absent(self.origin.clone())),
            Some(Node { origin, value: Value::Table(tree) }) => {
                Ok(Self { tree: Some(tree), ..absent(origin.clone()) })
            }
            Some(Node { origin, value }) => {
                Err(InputError::new(origin, format!("{path} is {}", value.kind()))
                    .allowed(format!("a table: [{path}]")))
            }
        }
    }

    /// The tables of the array under `key`; none where it is absent.
    ///
    /// # Errors
    /// Where something else stands there.
    pub fn sections(&self, key: &'static str) -> Result<Vec<Self>, InputError> {
        let path = self.full(key);
        let wrong = |origin: &Origin, value: &Value| {
            InputError::new(origin, format!("{path} is {}", value.kind()))
                .allowed(format!("any number of tables: [[{path}]]"))
        };
        let Some(node) = self.node(key) else { return Ok(Vec::new()) };
        let Value::List(items) = &node.value else { return Err(wrong(&node.origin, &node.value)) };
        let one = |(item, number): (&'a Node, usize)| match &item.value {
            Value::Table(tree) => Ok(Self {
                path: path.clone(),
                label: format!("{}[{number}]", below(&self.label, key)),
                origin: item.origin.clone(),
                tree: Some(tree),
                asked: RefCell::default(),
                log: self.log.clone(),
            }),
            other => Err(wrong(&item.origin, other)),
        };
        items.iter().zip(1..).map(one).collect()
    }

    /// An error about `key` of this section.
    pub fn error(&self, key: &str, what: impl AsRef<str>) -> InputError {
        let origin =
            self.tree.and_then(|tree| tree.entries.get(key)).map_or(&self.origin, |node| &node.origin);
        origin.complaint(&self.full(key), what.as_ref())
    }

    /// Ends the reading: nothing may be left that was not asked for.
    ///
    /// # Errors
    /// On the first key that was not asked for.
    pub fn finish(self) -> Result<(), InputError> {
        let Some(tree) = self.tree else { return Ok(()) };
        let mut asked = self.asked.into_inner();
        asked.sort_unstable();
        asked.dedup();
        let Some((key, node)) = tree.entries.iter().find(|(key, _)| !asked.contains(&key.as_str())) else {
            return Ok(());
        };
        let kind = if matches!(node.value, Value::Table(_)) { "section" } else { "key" };
        let place = if self.path.is_empty() { String::new() } else { format!(" in [{}]", self.path) };
        // An argument of the command line names it already.
        let is_named = node.origin == Origin::assigned(&below(&self.path, key));
        let named = if is_named { String::new() } else { format!(" {key:?}{place}") };
        let suggestion = nearest(key, asked.iter().copied())
            .map_or(String::new(), |name| format!(", did you mean {name:?}?"));
        Err(InputError::new(&node.origin, format!("unknown {kind}{named}{suggestion}"))
            .allowed(few(key, &asked)))
    }

    fn full(&self, key: &str) -> String {
        below(&self.path, key)
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
