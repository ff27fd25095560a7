//! Loads scenarios: bundled ones, files and TOML text, with their bases and `--set` merged in.

use std::path::Path;

use tacit_packet::units::Duration;

use super::{MAX_CLIENTS, Scenario, bounded, library, quoted, read, traces};
use crate::error::{InputError, ScenarioError};
use crate::input::{Node, Tree, Value, did_you_mean, duration, few};
use crate::keys::run;
use crate::read::hops::{WIRED, forget_other_delay};

/// Maximum length of a chain of bases.
const MAX_BASES: usize = 16;
/// The name that messages use for a scenario given as TOML text.
const TEXT: &str = "text";
/// Maximum size of a scenario file in bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;

impl Scenario {
    /// Loads a bundled scenario by name, or any scenario by path, and applies `--set` assignments. A string with a line
    /// break is the TOML text itself.
    ///
    /// # Errors
    /// If there is no such scenario, it cannot be read, or it contains something that is not allowed.
    pub fn load(name_or_path: &str, assignments: &[String]) -> Result<Self, ScenarioError> {
        let mut loaded = load_assigned(name_or_path, assignments)?;
        traces::pin(&mut loaded.tree)?;
        let scenario = read::scenario(loaded.name, &loaded.source, &loaded.tree)?;
        Ok(Self { invocation: invocation(name_or_path, assignments), ..scenario })
    }

    /// Parses a scenario from TOML text. Bases must be bundled scenarios.
    ///
    /// # Errors
    /// Same as [`Scenario::load`].
    pub fn parse(source: &str, text: &str, assignments: &[String]) -> Result<Self, ScenarioError> {
        let mut tree = with_base(source, None, Tree::parse(source, text)?, 0)?;
        assign(&mut tree, assignments)?;
        traces::pin(&mut tree)?;
        let scenario = read::scenario(stem(source), source, &tree)?;
        Ok(Self { invocation: invocation(source, assignments), ..scenario })
    }

    /// Parses the scenario of a stored result, which is untrusted and must be self-contained. The only other files it
    /// opens are traces, and it uses a trace only if its hash matches the recorded one.
    ///
    /// # Errors
    /// Same as [`Scenario::load`]. Also if it has a base, or names a trace without a hash.
    pub fn parse_stored(source: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut tree = Tree::parse(source, text)?;
        if let Some(Node { origin, .. }) = tree.entries.get("base") {
            let what = "the scenario of a result has a base";
            return Err(InputError::new(origin, what).allowed("one that says all itself").into());
        }
        traces::require_hashes(&mut tree)?;
        let scenario = read::scenario(stem(source), source, &tree)?;
        Ok(Self { invocation: invocation(source, &[]), ..scenario })
    }

    /// The command that simulates one run of it.
    pub fn run_command(&self, scheme: Option<&str>, clients: u32, seed: u64) -> String {
        let scheme = scheme.map_or(String::new(), |name| format!(" --scheme {name}"));
        format!("tacit run {}{scheme} --clients {clients} --seed {seed}", self.invocation)
    }

    /// Loads a scenario like [`Scenario::load`], but shortens it to 3 seeds and 5 s, unless `assignments` set these
    /// values. The duration is extended if necessary to measure 3 s, beginning one second after the latest start.
    /// `clients` are the client counts that will run; if empty, those of the scenario.
    ///
    /// # Errors
    /// Same as [`Scenario::load`].
    pub fn load_quick(
        name_or_path: &str,
        assignments: &[String],
        clients: &[u32],
    ) -> Result<Self, ScenarioError> {
        let others: Vec<String> = assignments
            .iter()
            .filter(|assignment| !assignment.trim_start().starts_with("run."))
            .cloned()
            .collect();
        let mut quick = Self::load(name_or_path, &others)?.quick_assignments(assignments, clients);
        quick.extend(assignments.iter().cloned());
        Self::load(name_or_path, &quick)
    }

    fn quick_assignments(&self, assignments: &[String], clients: &[u32]) -> Vec<String> {
        let most = clients.iter().copied().max().unwrap_or_else(|| self.most_clients());
        let starts =
            self.overrides.iter().map(|client| client.start).chain(self.flows.iter().map(|flow| flow.start));
        let staggered = self.stagger.saturating_mul(u64::from(most.clamp(1, MAX_CLIENTS) - 1));
        let latest = starts.flatten().max().unwrap_or(Duration::ZERO).max(staggered) + self.run.start_spread;
        // A flow that has just started is slow, and other flows use the remaining capacity.
        let measure_from = self.run.measure_from.min(latest + Duration::from_secs(1));
        let duration =
            (measure_from + Duration::from_secs(3)).max(Duration::from_secs(5)).min(self.run.duration);
        let measure_from = if measure_from < duration { measure_from } else { duration / 2 };
        let quick = [
            ("run.duration", format!("{}ns", duration.as_nanos())),
            ("run.measure-from", format!("{}ns", measure_from.as_nanos())),
            ("run.seeds", self.run.seeds.min(3).to_string()),
        ];
        let is_given = |key: &str| {
            assignments
                .iter()
                .any(|assignment| assignment.split_once('=').is_some_and(|(known, _)| known.trim() == key))
        };
        quick
            .into_iter()
            .filter(|(key, _)| !is_given(key))
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    fn most_clients(&self) -> u32 {
        self.compare.clients.iter().copied().max().unwrap_or(1).max(self.clients)
    }
}

/// Name or path, and assignments, quoted for a shell.
fn invocation(name_or_path: &str, assignments: &[String]) -> String {
    let mut words = quoted(name_or_path);
    for assignment in assignments {
        words.push_str(&format!(" --set {}", quoted(assignment)));
    }
    words
}

pub(crate) struct Loaded {
    pub name: String,
    pub source: String,
    pub tree: Tree,
}

/// Loads the tree of a scenario and applies assignments.
pub(crate) fn load_assigned(name_or_path: &str, assignments: &[String]) -> Result<Loaded, ScenarioError> {
    let mut loaded = load_tree(name_or_path, 0)?;
    assign(&mut loaded.tree, assignments)?;
    Ok(loaded)
}

fn assign(tree: &mut Tree, assignments: &[String]) -> Result<(), InputError> {
    let mut assigned = Tree::default();
    // Errors in others are reported below.
    let decides = |assignment: &&String| {
        ["run.", "client", WIRED].iter().any(|begin| assignment.trim_start().starts_with(begin))
    };
    for assignment in assignments.iter().filter(decides) {
        assigned.set(assignment)?;
    }
    forget_smaller_count(tree, &assigned);
    forget_compared_counts(tree, &assigned);
    forget_late_measuring(tree, &assigned);
    forget_other_delay(tree, &assigned);
    assignments.iter().try_for_each(|assignment| tree.set(assignment))
}

fn load_tree(name_or_path: &str, depth: usize) -> Result<Loaded, ScenarioError> {
    if let Some(bundled) = library::find(name_or_path) {
        let tree = with_base(bundled.path, None, Tree::parse(bundled.path, bundled.text)?, depth)?;
        return Ok(Loaded { name: bundled.name.to_owned(), source: bundled.path.to_owned(), tree });
    }
    if is_text(name_or_path) {
        let tree = with_base(TEXT, None, Tree::parse(TEXT, name_or_path)?, depth)?;
        return Ok(Loaded { name: TEXT.to_owned(), source: TEXT.to_owned(), tree });
    }
    let path = Path::new(name_or_path);
    if !path.exists() {
        return Err(no_such_scenario("scenario", name_or_path).into());
    }
    let text = read_limited(path)?;
    let tree = with_base(name_or_path, path.parent(), Tree::parse(name_or_path, &text)?, depth)?;
    Ok(Loaded { name: stem(name_or_path), source: name_or_path.to_owned(), tree })
}

/// Merges the tree into its `base`, which is a bundled name or a path relative to the file.
pub(crate) fn with_base(
    source: &str,
    directory: Option<&Path>,
    mut tree: Tree,
    depth: usize,
) -> Result<Tree, ScenarioError> {
    let Some(Node { origin, value }) = tree.entries.remove("base") else { return Ok(tree) };
    let Value::Text(base) = value else {
        return Err(InputError::new(origin, format!("base is {}", value.kind()))
            .allowed("the name or path of a scenario, in quotes")
            .into());
    };
    if depth >= MAX_BASES {
        return Err(InputError::new(origin, format!("base {base:?}: more than {MAX_BASES} bases deep"))
            .allowed("bases that do not go in circles")
            .into());
    }
    let beside = directory.map(|directory| directory.join(&base)).filter(|path| path.is_file());
    let found = beside.as_deref().and_then(Path::to_str).unwrap_or(&base);
    if library::find(found).is_none() && !Path::new(found).is_file() {
        return Err(no_such_scenario(&origin.to_string(), &base).into());
    }
    debug_assert_ne!(source, "", "a source has a name");
    let mut merged = load_tree(found, depth + 1)?.tree;
    forget_smaller_count(&mut merged, &tree);
    forget_compared_counts(&mut merged, &tree);
    forget_late_measuring(&mut merged, &tree);
    forget_other_delay(&mut merged, &tree);
    merged.merge(tree);
    Ok(merged)
}

/// If the `[[client]]` tables of a file are more clients than the base has, they are all the clients.
fn forget_smaller_count(base: &mut Tree, tree: &Tree) {
    let Some(Value::List(clients)) = tree.entries.get("client").map(|node| &node.value) else { return };
    let Some(Value::Table(counts)) = base.entries.get_mut("clients").map(|node| &mut node.value) else {
        return;
    };
    let count = |table: &Node| match &table.value {
        Value::Table(client) => match client.entries.get("count").map(|node| &node.value) {
            Some(Value::Integer(count)) => *count,
            _ => 1,
        },
        _ => 1,
    };
    let listed = clients.iter().map(count).fold(0_i64, i64::saturating_add);
    let is_smaller = |node: &Node| matches!(node.value, Value::Integer(count) if count < listed);
    if counts.entries.get("count").is_some_and(is_smaller) {
        counts.entries.remove("count");
    }
}

/// A file with `[[client]]` tables or `clients.count` is compared with this number of clients instead of the counts of
/// the base.
fn forget_compared_counts(base: &mut Tree, tree: &Tree) {
    let counts =
        |node: &Node| matches!(&node.value, Value::Table(clients) if clients.entries.contains_key("count"));
    if (tree.entries.contains_key("client") || tree.entries.get("clients").is_some_and(counts))
        && let Some(Value::Table(compared)) = base.entries.get_mut("compare").map(|node| &mut node.value)
    {
        compared.entries.remove("clients");
    }
}

/// If a run ends before the base starts to measure and does not set that time, it measures from a quarter of its
/// duration on.
fn forget_late_measuring(base: &mut Tree, tree: &Tree) {
    const NAMES: [&str; 2] = ["duration", run::MEASURE_FROM];
    let time = |run: &Tree, name| run.entries.get(name).and_then(|node| duration(&node.value).ok());
    let Some(Value::Table(given)) = tree.entries.get("run").map(|node| &node.value) else { return };
    let Some(Value::Table(run)) = base.entries.get_mut("run").map(|node| &mut node.value) else { return };
    let [length, measure_from] = NAMES;
    let is_late =
        time(given, length).is_some_and(|end| time(run, measure_from).is_some_and(|from| from >= end));
    if is_late && !given.entries.contains_key(measure_from) {
        run.entries.remove(measure_from);
    }
}

/// True for TOML text in place of a name or path, which contain no line breaks.
fn is_text(name_or_path: &str) -> bool {
    name_or_path.contains('\n')
}

fn no_such_scenario(place: &str, name: &str) -> InputError {
    let hint = did_you_mean(name, library::names());
    let names = few(name, &library::names().collect::<Vec<_>>(), "`tacit scenarios` lists all");
    InputError::new(place, format!("no scenario or file {name:?}{hint}"))
        .allowed(format!("{names}, or the path of a TOML file"))
}

fn read_limited(path: &Path) -> Result<String, ScenarioError> {
    let bytes = bounded::read(path, MAX_FILE).map_err(ScenarioError::io(path))?.ok_or_else(|| {
        InputError::new(path.display(), format!("more than {MAX_FILE} bytes are no scenario"))
            .allowed(format!("files up to {MAX_FILE} bytes"))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        InputError::new(format!("{}:{}", path.display(), line + 1), "not TOML: not UTF-8")
            .allowed("text in UTF-8")
            .into()
    })
}

fn stem(source: &str) -> String {
    Path::new(source)
        .file_stem()
        .map_or_else(|| source.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
