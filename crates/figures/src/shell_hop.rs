//! A live hop, as `tacit shell` is told of it.

use tacit_scenario::quoted;
use tacit_scenario::scheme::AS_WRITTEN;

/// The hop of a live run, and the settings of the kernels of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellHop {
    /// A scenario that comes with the program.
    pub scenario: String,
    /// Assignments to it.
    pub assignments: Vec<String>,
    /// Name of the scheme.
    pub scheme: &'static str,
    /// How many ACKs the kernel's receivers send, as `tacit shell --acks` takes it; its own where there is none.
    pub acks: Option<String>,
    /// Congestion control of both kernels; theirs where there is none.
    pub congestion: Option<String>,
    /// Simulated stations beside.
    pub background: u32,
    /// Seed of all draws of the hop; the first where there is none.
    pub seed: Option<u64>,
}

impl ShellHop {
    /// The hop of `scenario` with `assignments`, and nothing else said.
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

    /// Arguments of `tacit shell` before its words for the two sides.
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
