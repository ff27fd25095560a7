//! A live hop of `tacit shell`, by the tacit that lies beside this program.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Where servers listen, at the hop's other side.
pub const SERVER: &str = "198.18.0.1:4433";
/// What they bind to.
pub const ANY: &str = "0.0.0.0:4433";

/// A hop.
#[derive(Clone, Debug, Default)]
pub struct Hop {
    pub scenario: String,
    /// `KEY=VALUE`.
    pub assignments: Vec<String>,
    /// Simulated stations beside the real one.
    pub background: u32,
    /// Congestion control of TCP.
    pub congestion: Option<String>,
}

/// What came of a run.
pub struct Ran {
    /// What the client printed, and both programs' complaints.
    pub output: String,
    pub report: Value,
}

impl Hop {
    /// Runs a client and a server at its ends, until the client ends.
    pub fn run(&self, client: &[String], server: &[String]) -> Result<Ran> {
        let mut shell = Command::new(std::env::current_exe()?.with_file_name("tacit"));
        shell.args(["shell", "--json", &self.scenario, "--background", &self.background.to_string()]);
        shell.args(self.assignments.iter().flat_map(|assignment| ["--set", assignment]));
        shell.args(self.congestion.iter().flat_map(|name| ["--congestion", name]));
        shell.arg("--").args(client).args(["--server", "--"]).args(server);
        let output = shell.stdin(Stdio::null()).output().context("tacit shell")?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout).with_context(|| text.clone())?;
        Ok(Ran { output: text, report })
    }
}

impl Ran {
    /// Why its numbers say nothing about the stack, where they do not.
    pub fn not_valid(&self) -> Option<String> {
        (self.report["valid"] != true).then(|| reasons(&self.report))
    }

    /// Processor seconds of the server and of the client.
    pub fn cpu_s(&self) -> Option<[f64; 2]> {
        let ran = |side: &str| self.report["waits"][side]["ran_s"].as_f64();
        ran("server").zip(ran("command")).map(|(server, client)| [server, client])
    }

    /// Packets that came down, and packets sent up.
    pub fn packets(&self) -> Option<[f64; 2]> {
        let end = |way: &str, key: &str| self.report["transfer"][way]["end"][key].as_f64();
        let packets = end("down", "packets_received").zip(end("up", "packets_sent"));
        packets.map(|(data, acks)| [data, acks])
    }

    /// The client's part of the airtime that stations used: in a download, that of its ACKs.
    pub fn client_airtime(&self) -> Option<f64> {
        let stations = self.report["station_airtime"][0].as_array()?;
        let used: f64 = stations.iter().filter_map(Value::as_f64).sum();
        Some(stations.get(1)?.as_f64()? / used).filter(|share| share.is_finite())
    }

    pub fn line(&self) -> Result<Value> {
        line(&self.output)
    }
}

/// The last line of JSON that an end wrote.
pub fn line(output: &str) -> Result<Value> {
    let lines = output.lines().rev().filter(|line| line.starts_with('{'));
    let parsed = lines.filter_map(|line| serde_json::from_str(line).ok()).next();
    parsed.with_context(|| format!("no line of JSON in: {output}"))
}

/// Why a report of `tacit shell` is not valid, in its own words.
pub fn reasons(report: &Value) -> String {
    let reasons = report["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str);
    reasons.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_json_counts() {
        let output = "{\"bytes\":1}\nwords\n{\"bytes\":2}\n{broken\n";
        assert_eq!(line(output).unwrap()["bytes"], 2);
        assert!(line("words").is_err());
    }

    #[test]
    fn a_hop_says_why_it_is_not_valid() {
        let report = serde_json::json!({ "valid": false, "reasons": ["it stood still", "it was late"] });
        assert_eq!(reasons(&report), "it stood still; it was late");
        let ran = Ran { output: String::new(), report };
        assert_eq!(ran.not_valid().as_deref(), Some("it stood still; it was late"));
    }

    #[test]
    fn airtime_of_the_client_is_part_of_what_stations_used() {
        let ran = |report| Ran { output: String::new(), report };
        // 40 % of the time was idle.
        let used = ran(serde_json::json!({ "station_airtime": [[0.45, 0.15]] }));
        assert_eq!(used.client_airtime(), Some(0.25));
        // A wire has no stations, and a hop that was idle no airtime.
        assert_eq!(ran(serde_json::json!({ "station_airtime": [] })).client_airtime(), None);
        assert_eq!(ran(serde_json::json!({ "station_airtime": [[0.0, 0.0]] })).client_airtime(), None);
    }
}
