//! All stacks after one another on this machine, several times in turn: a table of medians.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum as _};
use serde_json::Value;

use crate::Stack;

/// How long a server may take until it listens, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// How long both ends of connections that rest stay once all are there.
const REST_S: &str = "4";
/// Where the server is in a hop.
const FAR: &str = "198.18.0.1:4433";

/// What to compare, and how.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Octets of each transfer
    #[arg(long, default_value_t = 1_000_000_000)]
    octets: u64,
    /// Requests of each round
    #[arg(long, default_value_t = 5_000)]
    requests: u32,
    /// Connections that rest; 0 for none
    #[arg(long, default_value_t = 10_000)]
    connections: u32,
    /// Through `tacit shell SCENARIO`, by the tacit beside this program, not over loopback; a transfer ends after --seconds then
    #[arg(long, value_name = "SCENARIO")]
    through: Option<String>,
    /// Change the scenario
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "through")]
    assignments: Vec<String>,
    /// Length of a transfer through a hop
    #[arg(long, default_value_t = 8)]
    seconds: u32,
    /// Stacks to compare
    #[arg(long, value_delimiter = ',')]
    stacks: Vec<Stack>,
}

/// What a stack needs.
#[derive(Default)]
struct Row {
    mbps: Vec<f64>,
    cpu_s_per_gb: Vec<f64>,
    acks_per_100: Vec<f64>,
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    /// Of a server with connections that rest.
    resident_mb: Vec<f64>,
}

/// What both ends of a job said.
struct Ends {
    client: Value,
    /// Processor seconds of both.
    cpu_s: Option<f64>,
    /// Packets with data, and those back, where a hop or the stack counts them.
    packets: Option<[f64; 2]>,
    server: Option<Value>,
}

/// Prints the table.
pub fn run(arguments: &Arguments) -> Result<()> {
    let all = Stack::value_variants();
    let stacks = if arguments.stacks.is_empty() { all } else { &arguments.stacks };
    let mut rows: Vec<Row> = stacks.iter().map(|_| Row::default()).collect();
    for _ in 0..arguments.rounds {
        for (stack, row) in stacks.iter().zip(&mut rows) {
            row.transfer(arguments, *stack)?;
            row.ask(arguments, *stack)?;
        }
    }
    if arguments.connections > 0 && arguments.through.is_none() {
        // TCP's connections are the kernel's, whose memory is not the process's.
        for (stack, row) in stacks.iter().zip(&mut rows).filter(|(stack, _)| **stack != Stack::Tcp) {
            row.rest(arguments, *stack)?;
        }
    }
    println!(
        "| | Mb/s | CPU s per GB, both ends | ACKs per 100 packets | 1 kB request p50, us | p99, us | MB, {} connections |",
        arguments.connections
    );
    println!("|---|---|---|---|---|---|---|");
    for (stack, row) in stacks.iter().zip(rows) {
        let Row { mbps, cpu_s_per_gb, acks_per_100, p50_us, p99_us, resident_mb } = row;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            name(*stack),
            median(mbps, 0),
            median(cpu_s_per_gb, 2),
            median(acks_per_100, 2),
            median(p50_us, 0),
            median(p99_us, 0),
            median(resident_mb, 0)
        );
    }
    Ok(())
}

impl Row {
    fn transfer(&mut self, arguments: &Arguments, stack: Stack) -> Result<()> {
        let (seconds, octets) = (arguments.seconds.to_string(), arguments.octets.to_string());
        let ends = match &arguments.through {
            Some(_) => arguments.through_hop(stack, ["send", "receive"], &["--seconds", &seconds])?,
            None => locally(stack, ["send", "receive"], &["--octets", &octets])?,
        };
        let number = |key: &str| ends.client[key].as_f64().context("a line without numbers");
        let (octets, duration_s) = (number("octets")?, number("duration_s")?);
        self.mbps.push(octets * 8e-6 / duration_s);
        self.cpu_s_per_gb.extend(ends.cpu_s.map(|cpu_s| cpu_s / (octets / 1e9)));
        self.acks_per_100.extend(ends.packets.map(|[data, acks]| acks / data * 100.0));
        Ok(())
    }

    fn ask(&mut self, arguments: &Arguments, stack: Stack) -> Result<()> {
        let requests = arguments.requests.to_string();
        let words = ["--requests", requests.as_str()];
        let ends = match &arguments.through {
            Some(_) => arguments.through_hop(stack, ["answer", "ask"], &words)?,
            None => locally(stack, ["answer", "ask"], &words)?,
        };
        let took = &ends.client["request_us"];
        self.p50_us.extend(took["p50"].as_f64());
        self.p99_us.extend(took["p99"].as_f64());
        Ok(())
    }

    fn rest(&mut self, arguments: &Arguments, stack: Stack) -> Result<()> {
        let connections = arguments.connections.to_string();
        let ends = locally(stack, ["hold", "rest"], &["--connections", &connections, "--seconds", REST_S])?;
        let server = ends.server.context("the server said nothing")?;
        self.resident_mb.extend(server["resident_mb"][0].as_f64());
        Ok(())
    }
}

impl Arguments {
    /// A job through a hop: the client says what it measured, the hop what the programs cost.
    fn through_hop(&self, stack: Stack, [server, client]: [&str; 2], words: &[&str]) -> Result<Ends> {
        let own = std::env::current_exe()?;
        let mut shell = Command::new(own.with_file_name("tacit"));
        shell.args(["shell", "--json"]).args(&self.through);
        shell.args(self.assignments.iter().flat_map(|assignment| ["--set", assignment]));
        shell.arg("--").arg(&own).args([&name(stack), client, FAR]).args(words);
        shell.args(["--server", "--"]).arg(&own).args([&name(stack), server, "0.0.0.0:4433"]);
        let output = shell.stdin(Stdio::null()).output().context("tacit shell")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).with_context(|| said.to_string())?;
        if report["valid"] != true {
            // Told beside the table, whose medians still have it.
            eprintln!("{} {client}: not valid: {}", name(stack), report["reasons"]);
        }
        let ran = |side: &str| report["waits"][side]["ran_s"].as_f64();
        let end = |way: &str, key: &str| report["transfer"][way]["end"][key].as_f64();
        let packets = end("down", "packets_received").zip(end("up", "packets_sent"));
        Ok(Ends {
            client: line(&said)?,
            cpu_s: ran("command").zip(ran("server")).map(|(near, far)| near + far),
            packets: packets.map(|(data, acks)| [data, acks]),
            server: None,
        })
    }
}

/// A job over loopback.
fn locally(stack: Stack, [server, client]: [&str; 2], words: &[&str]) -> Result<Ends> {
    let own = std::env::current_exe()?;
    let address = free_address()?;
    let start = |job: &str| {
        let mut command = Command::new(&own);
        command.args([&name(stack), job, &address]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("this program")
    };
    let server = Ended(start(server)?);
    wait_for(&address, server.0.id())?;
    let client = Ended(start(client)?).said()?;
    let server = server.said()?;
    let (client, server) = (line(&client)?, line(&server)?);
    let cpu_s = client["cpu_s"].as_f64().zip(server["cpu_s"].as_f64());
    let packets = client["packets"]["received"].as_f64().zip(client["packets"]["sent"].as_f64());
    Ok(Ends {
        cpu_s: cpu_s.map(|(near, far)| near + far),
        packets: packets.map(|(data, acks)| [data, acks]),
        client,
        server: Some(server),
    })
}

/// A process, which does not outlive this.
struct Ended(Child);

impl Ended {
    fn said(mut self) -> Result<String> {
        let mut said = String::new();
        if let Some(output) = &mut self.0.stdout {
            std::io::Read::read_to_string(output, &mut said)?;
        }
        let status = self.0.wait()?;
        if !status.success() {
            bail!("ended with {status}: {said}");
        }
        Ok(said)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody has now.
fn free_address() -> Result<String> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// Waits until a process has a socket at `address`.
#[expect(clippy::disallowed_methods, reason = "an edge that waits for another process")]
fn wait_for(address: &str, process: u32) -> Result<()> {
    let port = address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).context("a port")?;
    let local = format!(":{port:04X} ");
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let bound = |table: &str| {
            let path = PathBuf::from(format!("/proc/{process}/net/{table}"));
            std::fs::read_to_string(path).unwrap_or_default().contains(&local)
        };
        if bound("udp") || bound("tcp") {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    bail!("nothing listens at {address}")
}

/// The last line of JSON that an end wrote.
fn line(said: &str) -> Result<Value> {
    let lines = said.lines().rev().filter(|line| line.starts_with('{'));
    let parsed = lines.filter_map(|line| serde_json::from_str(line).ok()).next();
    parsed.with_context(|| format!("no line of JSON in: {said}"))
}

fn name(stack: Stack) -> String {
    stack.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// As text; nothing where nothing is known.
fn median(mut values: Vec<f64>, decimals: usize) -> String {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).map_or_else(String::new, |median| format!("{median:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_json_counts() {
        let said = "{\"octets\":1}\nwords\n{\"octets\":2}\n{broken\n";
        assert_eq!(line(said).unwrap()["octets"], 2);
        assert!(line("words").is_err());
    }

    #[test]
    fn the_middle_of_an_odd_number_is_one_of_them() {
        assert_eq!(median(vec![9.0, 1.0, 2.0], 1), "2.0");
        assert_eq!(median(Vec::new(), 1), "");
    }
}
