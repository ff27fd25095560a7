//! A live hop, as specified to `tacit shell`.

use tacit_scenario::quoted;
use tacit_scenario::scheme::AS_WRITTEN;

/// The hop of a live run, and the settings of the kernels on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellHop {
    /// Name of a bundled scenario.
    pub scenario: String,
    /// Assignments to the scenario.
    pub assignments: Vec<String>,
    /// Name of the scheme.
    pub scheme: &'static str,
    /// ACK mode of the kernel's receivers, as in `tacit shell --acks`; `None` for the kernel's own.
    pub acks: Option<String>,
    /// Congestion control of both kernels; `None` for their default.
    pub congestion: Option<String>,
    /// Number of additional simulated stations.
    pub background: u32,
    /// Seed of all random draws in the hop; `None` for the first seed.
    pub seed: Option<u64>,
}

impl ShellHop {
    /// The hop of `scenario` with `assignments`, and defaults for everything else.
    pub fn new(scenario: &str, assignments: Vec<String>) -> Self {
        Self {
            scenario: scenario.to_owned(),
            assignments,
            scheme: AS_WRITTEN.name,
            acks: None,
            congestion: None,
            background: 0,
            seed: None,
        }
    }

    /// Arguments of `tacit shell` before the commands of the two sides.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![self.scenario.clone()];
        words.extend(self.assignments.iter().flat_map(|assignment| ["--set".to_owned(), assignment.clone()]));
        let scheme = (self.scheme != AS_WRITTEN.name).then(|| self.scheme.to_owned());
        let background = (self.background > 0).then(|| self.background.to_string());
        let options = [
            ("--scheme", scheme),
            ("--acks", self.acks.clone()),
            ("--congestion", self.congestion.clone()),
            ("--background", background),
            ("--seed", self.seed.map(|seed| seed.to_string())),
        ];
        for (name, value) in options {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        words
    }

    /// The command that runs `client` and `server` on the two sides.
    pub fn command(&self, client: &str, server: &str) -> String {
        let words: Vec<String> = self.words().iter().map(|word| quoted(word)).collect();
        format!("tacit shell {} -- {client} --server -- {server}", words.join(" "))
    }
}
