//! A TOML document that records the location of each value.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::InputError;

/// The location where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    source: Arc<str>,
    line: Option<u32>,
}

impl Origin {
    /// A whole file, or an argument.
    pub fn whole(source: &str) -> Self {
        Self { source: source.into(), line: None }
    }
}

impl Origin {
    /// The origin of a value that `--set` assigns to the key at `path`.
    pub fn assigned(path: &str) -> Self {
        Self::whole(&format!("--set {path}"))
    }

    /// The error `what` about the key at `path`. A command-line argument already contains the key.
    pub fn complaint(&self, path: &str, what: &str) -> InputError {
        let is_named = *self == Self::assigned(path);
        InputError::new(self, if is_named { what.to_owned() } else { format!("{path}: {what}") })
    }

    /// Directory of the file that contains the value; `None` if it is not from a file.
    pub fn directory(&self) -> Option<&Path> {
        self.line.and_then(|_| Path::new(&*self.source).parent())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// A value with its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The location.
    pub origin: Origin,
    /// Its value.
    pub value: Value,
}

/// A TOML value. Dates are kept as text, because no schema here uses them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A Boolean.
    Flag(bool),
    /// An array.
    List(Vec<Node>),
    /// A table, inline or not.
    Table(Tree),
}

impl Value {
    /// Its type, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Value {
    /// Formats the value as inline TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Debug escapes quotes, backslashes and newlines in the same way as a TOML basic string.
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, item.value)?;
                }
                f.write_char(']')
            }
            Self::Table(tree) => {
                f.write_char('{')?;
                for (i, (key, node)) in tree.entries.iter().enumerate() {
                    write!(f, "{} {} = {}", if i == 0 { "" } else { "," }, Key(key), node.value)?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// A key in TOML syntax.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !self.0.is_empty() && self.0.chars().all(bare) {
            f.write_str(self.0)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

/// A table: keys and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The entries in alphabetical order.
    pub entries: BTreeMap<String, Node>,
}

impl Tree {
    /// Parses `text`. `source` is its name in messages.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn parse(source: &str, text: &str) -> Result<Self, InputError> {
        let source: Arc<str> = source.into();
        let lines = LineIndex::new(text);
        match DeTable::parse(text) {
            Ok(table) => convert_table(table.get_ref(), &source, &lines),
            Err(error) => {
                let line = error.span().map(|span| lines.line_of(span.start));
                let what = error.message().lines().collect::<Vec<_>>().join(", ");
                let origin = Origin { source, line };
                Err(InputError::new(origin, format!("not TOML: {what}"))
                    .allowed("key = value lines and [section] headers as on https://toml.io"))
            }
        }
    }

    /// Merges `over` into this tree: tables are merged, and any other value replaces the existing one.
    pub fn merge(&mut self, over: Self) {
        for (key, node) in over.entries {
            match (self.entries.get_mut(&key), node) {
                (Some(Node { value: Value::Table(below), .. }), Node { value: Value::Table(above), .. }) => {
                    below.merge(above);
                }
                (_, node) => {
                    self.entries.insert(key, node);
                }
            }
        }
    }

    /// Applies a `key.path=value` argument of the command line. The value is parsed as TOML if possible (numbers, true,
    /// lists), and is a string otherwise, so units need no quotes.
    ///
    /// # Errors
    /// If `=` is missing, a key is empty, or the path passes through something that is not a table.
    pub fn set(&mut self, assignment: &str) -> Result<(), InputError> {
        let whole = format!("--set {assignment}");
        let usage = "key.path=value, for example wifi.rate=65Mbps";
        let (path, value) = assignment
            .split_once('=')
            .ok_or_else(|| InputError::new(&whole, "there is no = in it").allowed(usage))?;
        let path: Vec<&str> = path.trim().split('.').map(str::trim).collect();
        if path.iter().any(|key| key.is_empty()) {
            return Err(InputError::new(&whole, "a key is empty").allowed(usage));
        }
        let source = Origin::assigned(&path.join(".")).source;
        self.insert(&path, parse_argument(value.trim(), &source)?, &source)
    }

    fn insert(&mut self, path: &[&str], node: Node, source: &Arc<str>) -> Result<(), InputError> {
        let Some((key, rest)) = path.split_first() else { return Ok(()) };
        if let Some((list, number)) = numbered(key, source)? {
            let item = self.item(list, number, source)?;
            return match (&mut item.value, rest) {
                (Value::Table(tree), [_, ..]) => tree.insert(rest, node, source),
                (value, []) => {
                    *value = node.value;
                    Ok(())
                }
                (other, _) => Err(InputError::new(source, format!("{key} is {}, not a table", other.kind()))),
            };
        }
        if rest.is_empty() {
            self.entries.insert((*key).to_owned(), node);
            return Ok(());
        }
        let below = self.entries.entry((*key).to_owned()).or_insert_with(|| Node {
            origin: Origin { source: source.clone(), line: None },
            value: Value::Table(Self::default()),
        });
        match &mut below.value {
            Value::Table(tree) => tree.insert(rest, node, source),
            other => Err(InputError::new(source, format!("{key} is {}, not a table", other.kind())).allowed(
                "paths through tables; of a list one item, such as client[3].distance, or the whole",
            )),
        }
    }

    /// Item `number`, counted from 1, of the list at `key`. The list of clients is extended to this number if
    /// necessary, and a table with a count is expanded.
    fn item(&mut self, key: &str, number: usize, source: &Arc<str>) -> Result<&mut Node, InputError> {
        let origin = Origin { source: source.clone(), line: None };
        let empty = || Node { origin: origin.clone(), value: Value::Table(Self::default()) };
        let is_clients = key == CLIENTS;
        let list = match self.entries.get_mut(key) {
            Some(Node { value: Value::List(items), .. }) => std::mem::take(items),
            None if is_clients => Vec::new(),
            Some(other) => {
                return Err(InputError::new(source, format!("{key} is {}, not a list", other.value.kind())));
            }
            None => return Err(InputError::new(source, format!("there is no {key}"))),
        };
        let mut items = if is_clients { one_by_one(list) } else { list };
        let there = items.len();
        if is_clients && (there..MAX_CLIENTS as usize).contains(&(number - 1)) {
            items.resize_with(number, empty);
            self.count_clients(number);
        }
        let node = self.entries.entry(key.to_owned()).or_insert_with(empty);
        node.value = Value::List(items);
        let Value::List(items) = &mut node.value else { unreachable!("a list was just put there") };
        items.get_mut(number - 1).ok_or_else(|| {
            let most = if is_clients { MAX_CLIENTS as usize } else { there };
            InputError::new(source, format!("there is no {key} {number}")).allowed(format!("1 to {most}"))
        })
    }

    /// Ensures that client `number` exists by increasing a smaller client count.
    fn count_clients(&mut self, number: usize) {
        let Some(Value::Table(clients)) = self.entries.get_mut("clients").map(|node| &mut node.value) else {
            return;
        };
        let is_smaller = |node: &Node| matches!(node.value, Value::Integer(count) if usize::try_from(count).is_ok_and(|count| count < number));
        if clients.entries.get("count").is_some_and(is_smaller) {
            clients.entries.remove("count");
        }
    }

    /// The content as TOML text with keys in alphabetical order. Equal trees result in equal text.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write_toml("", &mut text);
        text
    }

    fn write_toml(&self, path: &str, out: &mut String) {
        let is_section = |value: &Value| match value {
            Value::Table(_) => true,
            Value::List(items) => {
                !items.is_empty() && items.iter().all(|item| matches!(item.value, Value::Table(_)))
            }
            _ => false,
        };
        for (key, node) in self.entries.iter().filter(|(_, node)| !is_section(&node.value)) {
            let _ = writeln!(out, "{} = {}", Key(key), node.value);
        }
        for (key, node) in &self.entries {
            let path = if path.is_empty() { Key(key).to_string() } else { format!("{path}.{}", Key(key)) };
            match &node.value {
                Value::Table(tree) => {
                    let _ = writeln!(out, "\n[{path}]");
                    tree.write_toml(&path, out);
                }
                Value::List(items) if is_section(&node.value) => {
                    for item in items {
                        if let Value::Table(tree) = &item.value {
                            let _ = writeln!(out, "\n[[{path}]]");
                            tree.write_toml(&path, out);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// The list whose tables may each describe several clients.
const CLIENTS: &str = "client";

/// Maximum number of clients in a scenario. The list is not expanded beyond this.
pub const MAX_CLIENTS: u32 = 1_000;

/// Splits `client[3]` into the name of a list and a number counted from 1; `None` for a key without brackets.
fn numbered<'a>(key: &'a str, source: &Arc<str>) -> Result<Option<(&'a str, usize)>, InputError> {
    let Some((list, rest)) = key.split_once('[') else { return Ok(None) };
    let number = rest.strip_suffix(']').and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    let wrong = || {
        InputError::new(source, format!("{key} names no item")).allowed("numbers from 1, such as client[3]")
    };
    number.map(|number| Some((list, number))).ok_or_else(wrong)
}

/// Expands `tables` to one table per client. Errors in a count are left to the reader.
fn one_by_one(tables: Vec<Node>) -> Vec<Node> {
    let several = |table: Node| {
        let Value::Table(keys) = &table.value else { return vec![table] };
        let count = match keys.entries.get("count").map(|node| &node.value) {
            Some(Value::Integer(count)) => usize::try_from(*count).ok(),
            _ => None,
        };
        let Some(count) = count.filter(|count| (1..=MAX_CLIENTS as usize).contains(count)) else {
            return vec![table];
        };
        let mut single = table;
        if let Value::Table(keys) = &mut single.value {
            keys.entries.remove("count");
        }
        vec![single; count]
    };
    tables.into_iter().flat_map(several).collect()
}

/// Converts byte offsets to line numbers.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(starts).collect() }
    }

    fn line_of(&self, offset: usize) -> u32 {
        let line = self.starts.partition_point(|start| *start <= offset);
        u32::try_from(line).unwrap_or(u32::MAX)
    }
}

fn convert_table(table: &DeTable<'_>, source: &Arc<str>, lines: &LineIndex) -> Result<Tree, InputError> {
    let mut tree = Tree::default();
    for (key, value) in table {
        let line = lines.line_of(key.span().start);
        let node = convert(value.get_ref(), source, line, lines)?;
        tree.entries.insert(key.get_ref().to_string(), node);
    }
    Ok(tree)
}

fn convert(value: &DeValue<'_>, source: &Arc<str>, line: u32, lines: &LineIndex) -> Result<Node, InputError> {
    let origin = Origin { source: source.clone(), line: Some(line) };
    let too_large = |text: &str| {
        InputError::new(&origin, format!("{text} is too large a number")).allowed("numbers that fit 64 bits")
    };
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| too_large(number.as_str()))?,
        ),
        DeValue::Float(number) => {
            Value::Float(number.as_str().parse().map_err(|_| too_large(number.as_str()))?)
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(datetime) => Value::Text(datetime.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| convert(item.get_ref(), source, lines.line_of(item.span().start), lines))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, source, lines)?),
    };
    Ok(Node { origin, value })
}

fn parse_argument(text: &str, source: &Arc<str>) -> Result<Node, InputError> {
    let lines = LineIndex { starts: vec![0] };
    let mut node = match DeValue::parse(text) {
        Ok(value) => convert(value.get_ref(), source, 1, &lines)?,
        Err(_) => Node {
            origin: Origin { source: source.clone(), line: None },
            value: Value::Text(text.to_owned()),
        },
    };
    node.origin.line = None;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn canonical_text_parses_to_the_same_tree() {
        let text = "a = 1\nb = \"x \\\"y\\\"\"\n[s]\nlist = [1, 2.5, true]\n[s.t]\nk = { u = 1 }\n[[c]]\nd = 1\n[[c]]\nd = 2\n";
        let canonical = Tree::parse("first", text).unwrap().to_toml();
        assert_eq!(Tree::parse("second", &canonical).unwrap().to_toml(), canonical);
    }

    #[test]
    fn merging_keeps_what_is_not_mentioned() {
        let mut base = Tree::parse("base", "[s]\na = 1\nb = 2\n").unwrap();
        base.merge(Tree::parse("over", "[s]\nb = 3\n[t]\nc = 4\n").unwrap());
        assert_eq!(base.to_toml(), "\n[s]\na = 1\nb = 3\n\n[t]\nc = 4\n");
    }

    #[test]
    fn assignments_need_no_quotes() {
        let mut tree = Tree::default();
        for assignment in ["s.rate=65Mbps", "s.count = 3", "s.flag=true", "s.text=\"3\"", "s.loss=1 %"] {
            tree.set(assignment).unwrap();
        }
        assert_eq!(
            tree.to_toml(),
            "\n[s]\ncount = 3\nflag = true\nloss = \"1 %\"\nrate = \"65Mbps\"\ntext = \"3\"\n"
        );
    }

    #[test]
    fn one_client_is_set_by_its_number() {
        let set = |text: &str, assignments: &[&str]| {
            let mut tree = Tree::parse("test", text).unwrap();
            assignments.iter().try_for_each(|assignment| tree.set(assignment)).map(|()| tree.to_toml())
        };
        // A table with a count is expanded, and the list is extended as necessary.
        let text = "[clients]\ncount = 2\n[[client]]\ncount = 2\nsnr = \"9 dB\"\n";
        assert_eq!(
            set(text, &["client[4].distance=5 m", "client[2].snr=3 dB"]).unwrap(),
            "\n[[client]]\nsnr = \"9 dB\"\n\n[[client]]\nsnr = \"3 dB\"\n\n[[client]]\n\n\
             [[client]]\ndistance = \"5 m\"\n\n[clients]\n"
        );
        assert_eq!(set("", &["client[1].hack=false"]).unwrap(), "\n[[client]]\nhack = false\n");
        assert_eq!(
            set("[[hop]]\nkind = \"wired\"\n", &["hop[1].delay=3 ms"]).unwrap(),
            "\n[[hop]]\ndelay = \"3 ms\"\nkind = \"wired\"\n"
        );
        for (assignment, error) in [
            ("client[0].snr=1 dB", "client[0] names no item; allowed: numbers from 1"),
            ("client[x].snr=1 dB", "client[x] names no item"),
            ("client[1001].snr=1 dB", "there is no client 1001; allowed: 1 to 1000"),
            ("hop[2].delay=1 ms", "there is no hop"),
        ] {
            let error_text = set("", &[assignment]).unwrap_err().to_string();
            assert!(error_text.contains(error), "{error_text}");
        }
    }

    #[test]
    fn a_path_through_a_value_is_refused() {
        let mut tree = Tree::parse("f", "a = 1\n").unwrap();
        assert_eq!(
            tree.set("a.b=2").unwrap_err().to_string(),
            "--set a.b: a is a whole number, not a table; allowed: paths through tables; of a list one item, such as client[3].distance, or the whole"
        );
        assert!(tree.set("nothing").is_err());
        assert!(tree.set("a..b=1").is_err());
    }
}
