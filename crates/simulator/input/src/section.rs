//! A table being read: provides typed values and records which keys were requested.

use std::cell::RefCell;
use std::rc::Rc;

use crate::{InputError, Mismatch, Node, Origin, Tree, Value, did_you_mean, few};

/// A key that a reader requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The path from the top level. Tables in an array have a number, counted from 1: `client[2].rate`.
    pub path: String,
    /// The node at this path, if it exists.
    pub found: Option<Node>,
}

/// Every requested key in order, including repetitions.
pub type Log = Rc<RefCell<Vec<Asked>>>;

/// A table at a path, which may be absent, with the keys requested so far.
pub struct Section<'a> {
    path: String,
    /// The path in the log, in which tables of an array have numbers.
    label: String,
    origin: Origin,
    tree: Option<&'a Tree>,
    asked: RefCell<Vec<&'static str>>,
    log: Option<Log>,
    /// The page that describes the document's keys.
    page: &'static str,
}

impl<'a> Section<'a> {
    /// The top level of a document. `source` is its name in messages.
    pub fn root(source: &str, tree: &'a Tree) -> Self {
        Self {
            path: String::new(),
            label: String::new(),
            origin: Origin::whole(source),
            tree: Some(tree),
            asked: RefCell::default(),
            log: None,
            page: "docs/use/scenario.md",
        }
    }

    /// The same section of a document whose keys another page than that of scenarios describes.
    #[must_use]
    pub fn described_in(self, page: &'static str) -> Self {
        Self { page, ..self }
    }

    /// The top level of a document. `log` records the keys requested from it and from its subsections.
    pub fn logged(source: &str, tree: &'a Tree, log: Log) -> Self {
        Self { log: Some(log), ..Self::root(source, tree) }
    }

    /// True if the table exists in the document.
    pub fn is_present(&self) -> bool {
        self.tree.is_some()
    }

    /// True if `key` exists in the document.
    pub fn has(&self, key: &str) -> bool {
        self.tree.is_some_and(|tree| tree.entries.contains_key(key))
    }

    /// The node at `key`, unparsed.
    pub fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.asked.borrow_mut().push(key);
        let found = self.tree.and_then(|tree| tree.entries.get(key));
        if let Some(log) = &self.log {
            log.borrow_mut().push(Asked { path: below(&self.label, key), found: found.cloned() });
        }
        found
    }

    /// The value at `key`, parsed with `parse`, if present.
    ///
    /// # Errors
    /// If `parse` does not accept the value.
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

    /// The value at `key`, or `default` if it is absent.
    ///
    /// # Errors
    /// If `parse` does not accept the value.
    pub fn or<T>(
        &self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(&Value) -> Result<T, Mismatch>,
    ) -> Result<T, InputError> {
        Ok(self.optional(key, parse)?.unwrap_or(default))
    }

    /// The value at `key`.
    ///
    /// # Errors
    /// If it is absent, or `parse` does not accept it.
    pub fn required<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, Mismatch>,
    ) -> Result<T, InputError> {
        self.optional(key, parse)?.ok_or_else(|| self.missing(key))
    }

    /// The error that `key` is missing.
    pub fn missing(&self, key: &str) -> InputError {
        InputError::new(&self.origin, format!("{} is missing", self.full(key)))
    }

    /// The table at `key`, which may be absent.
    ///
    /// # Errors
    /// If the value at `key` is not a table.
    pub fn section(&self, key: &'static str) -> Result<Self, InputError> {
        let path = self.full(key);
        let absent = |origin| Self {
            path: path.clone(),
            label: below(&self.label, key),
            origin,
            tree: None,
            asked: RefCell::default(),
            log: self.log.clone(),
            page: self.page,
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

    /// The tables of the array at `key`; empty if it is absent.
    ///
    /// # Errors
    /// If the value at `key` is not an array of tables.
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
                page: self.page,
            }),
            other => Err(wrong(&item.origin, other)),
        };
        items.iter().zip(1..).map(one).collect()
    }

    /// This section with the entries of `tree`. Some of them stand in another table.
    pub fn with_entries<'b>(&self, tree: &'b Tree) -> Section<'b> {
        Section {
            path: self.path.clone(),
            label: self.label.clone(),
            origin: self.origin.clone(),
            tree: Some(tree),
            asked: RefCell::default(),
            log: self.log.clone(),
            page: self.page,
        }
    }

    /// This section, whose requests are not recorded in the log.
    #[must_use]
    pub fn unlogged(self) -> Self {
        Self { log: None, ..self }
    }

    /// Its entries, if it exists in the document.
    pub fn entries(&self) -> Option<&'a Tree> {
        self.tree
    }

    /// An error about `key` of this section.
    pub fn error(&self, key: &str, what: impl AsRef<str>) -> InputError {
        let origin =
            self.tree.and_then(|tree| tree.entries.get(key)).map_or(&self.origin, |node| &node.origin);
        origin.complaint(&self.full(key), what.as_ref())
    }

    /// Finishes reading, and checks that every key was requested.
    ///
    /// # Errors
    /// On the first key that was not requested.
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
        // A command-line argument already contains the key.
        let is_named = node.origin == Origin::assigned(&below(&self.path, key));
        let named = if is_named { String::new() } else { format!(" {key:?}{place}") };
        let suggestion = did_you_mean(key, asked.iter().copied());
        Err(InputError::new(&node.origin, format!("unknown {kind}{named}{suggestion}")).allowed(few(
            key,
            &asked,
            &format!("{} has all", self.page),
        )))
    }

    fn full(&self, key: &str) -> String {
        below(&self.path, key)
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
