//! All stacks after one another on this machine, several times in turn: a table of medians, or each round by itself.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tacit_runs::aggregate::median;

use crate::Stack;
use crate::hop::{self, Hop, line};
use crate::stack::name_of;
use crate::wire::Wire;

/// How long a server may take until it listens, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// How long both ends of connections that rest stay once all are there.
const REST_S: &str = "4";

/// Scope and manner of a comparison.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Bytes of each transfer
    #[arg(long, default_value_t = 1_000_000_000)]
    pub bytes: u64,
    /// Requests of each round
    #[arg(long, default_value_t = 5_000)]
    pub requests: u32,
    /// Connections that rest; 0 for none
    #[arg(long, default_value_t = 10_000)]
    pub connections: u32,
    /// Through `tacit shell SCENARIO`, by the tacit beside this program, not over loopback; a transfer ends after --seconds then
    #[arg(long, value_name = "SCENARIO")]
    pub through: Option<String>,
    /// Over a wire between two namespaces that cuts packets that leave in one piece, not over loopback; takes root
    #[arg(long, conflicts_with = "through")]
    pub veth: bool,
    /// Change the scenario
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "through")]
    pub assignments: Vec<String>,
    /// Length of a transfer through a hop
    #[arg(long, default_value_t = 8)]
    pub seconds: u32,
    /// Stacks to compare
    #[arg(long, value_delimiter = ',')]
    pub stacks: Vec<Stack>,
}

/// Processor time of the ends of a transfer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cpu {
    pub sender: f64,
    pub receiver: f64,
}

impl Cpu {
    pub fn both(self) -> f64 {
        self.sender + self.receiver
    }
}

/// Results of a stack in one round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    pub mbps: f64,
    pub cpu_s_per_gb: Option<Cpu>,
    pub acks_per_100: Option<f64>,
    pub request_p50_us: Option<f64>,
    pub request_p99_us: Option<f64>,
    /// Why a hop's numbers say nothing about the stack, where they do not.
    pub not_valid: Vec<String>,
}

/// All rounds of a stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub stack: String,
    pub rounds: Vec<Round>,
    /// Of a server with connections that rest.
    pub resident_mb: Option<f64>,
}

/// Reports of both ends of a job.
struct Ends {
    client: Value,
    /// Processor seconds of the server, which sends, and of the client.
    cpu_s: Option<[f64; 2]>,
    /// Packets with data, and those back, where a hop or the stack counts them.
    packets: Option<[f64; 2]>,
    server: Option<Value>,
    not_valid: Vec<String>,
}

/// Prints the table.
pub fn run(arguments: &Arguments) -> Result<()> {
    println!(
        "| | Mb/s | CPU s per GB, both ends | ACKs per 100 packets | 1 kB request p50, us | p99, us | MB, {} connections |",
        arguments.connections
    );
    println!("|---|---|---|---|---|---|---|");
    for row in measure(arguments)? {
        for reason in row.rounds.iter().flat_map(|round| &round.not_valid) {
            // Told beside the table, whose medians still have it.
            eprintln!("{}: not valid: {reason}", row.stack);
        }
        let column = |value: fn(&Round) -> Option<f64>, decimals| {
            text(median(row.rounds.iter().filter_map(value).collect()), decimals)
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.stack,
            column(|round| Some(round.mbps), 0),
            column(|round| round.cpu_s_per_gb.map(Cpu::both), 2),
            column(|round| round.acks_per_100, 2),
            column(|round| round.request_p50_us, 0),
            column(|round| round.request_p99_us, 0),
            text(row.resident_mb, 0)
        );
    }
    Ok(())
}

/// All stacks in turn, as many rounds as asked for; a round with a hop that is not valid is repeated at the end.
pub fn measure(arguments: &Arguments) -> Result<Vec<Row>> {
    let all = Stack::value_variants();
    let stacks = if arguments.stacks.is_empty() { all } else { &arguments.stacks };
    let wire = arguments.veth.then(Wire::new).transpose()?;
    let wire = wire.as_ref();
    let round = || stacks.iter().map(|stack| arguments.round(*stack, wire)).collect::<Result<Vec<_>>>();
    let mut rounds = (0..arguments.rounds).map(|_| round()).collect::<Result<Vec<_>>>()?;
    for before in &mut rounds {
        if before.iter().any(|round| !round.not_valid.is_empty()) {
            *before = round()?;
        }
    }
    let row = |(index, stack): (usize, &Stack)| {
        let rounds = rounds.iter().map(|round| round[index].clone()).collect();
        // TCP's connections are the kernel's, whose memory is not the process's.
        let rests = arguments.connections > 0 && arguments.is_over_loopback() && *stack != Stack::Tcp;
        let resident_mb = if rests { arguments.rest(*stack)? } else { None };
        Ok(Row { stack: name_of(stack), rounds, resident_mb })
    };
    stacks.iter().enumerate().map(row).collect()
}

impl Arguments {
    fn is_over_loopback(&self) -> bool {
        self.through.is_none() && !self.veth
    }

    /// A transfer, and requests.
    fn round(&self, stack: Stack, wire: Option<&Wire>) -> Result<Round> {
        let (seconds, bytes) = (self.seconds.to_string(), self.bytes.to_string());
        let ends = match &self.through {
            Some(_) => self.through_hop(stack, ["send", "receive"], &["--seconds", &seconds])?,
            None => locally(stack, ["send", "receive"], &["--bytes", &bytes], wire)?,
        };
        let number = |key: &str| ends.client[key].as_f64().context("a line without numbers");
        let (bytes, duration_s) = (number("bytes")?, number("duration_s")?);
        let per_gb = |cpu_s: f64| cpu_s / (bytes / 1e9);
        let mut round = Round {
            mbps: bytes * 8e-6 / duration_s,
            cpu_s_per_gb: ends
                .cpu_s
                .map(|[server, client]| Cpu { sender: per_gb(server), receiver: per_gb(client) }),
            acks_per_100: ends.packets.map(|[data, acks]| acks / data * 100.0),
            not_valid: ends.not_valid,
            ..Round::default()
        };
        let requests = self.requests.to_string();
        let words = ["--requests", requests.as_str()];
        let ends = match &self.through {
            Some(_) => self.through_hop(stack, ["answer", "ask"], &words)?,
            None => locally(stack, ["answer", "ask"], &words, wire)?,
        };
        let took = &ends.client["request_us"];
        (round.request_p50_us, round.request_p99_us) = (took["p50"].as_f64(), took["p99"].as_f64());
        round.not_valid.extend(ends.not_valid);
        Ok(round)
    }

    /// Memory of a server with connections that rest, in MB.
    fn rest(&self, stack: Stack) -> Result<Option<f64>> {
        let connections = self.connections.to_string();
        let words = ["--connections", &connections, "--seconds", REST_S];
        let ends = locally(stack, ["hold", "rest"], &words, None)?;
        let server = ends.server.context("the server said nothing")?;
        Ok(server["resident_mb"][0].as_f64())
    }

    /// A job through a hop: the client reports its measurements, the hop the cost of the programs.
    fn through_hop(&self, stack: Stack, [server, client]: [&str; 2], words: &[&str]) -> Result<Ends> {
        let program = std::env::current_exe()?.display().to_string();
        let end = |job: &str, address: &str| {
            let all = [program.as_str(), &name_of(&stack), job, address].map(str::to_owned);
            all.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>()
        };
        let hop = Hop {
            scenario: self.through.clone().unwrap_or_default(),
            assignments: self.assignments.clone(),
            ..Hop::default()
        };
        let ran = hop.run(&end(client, hop::SERVER), &end(server, hop::ANY))?;
        Ok(Ends {
            client: ran.line()?,
            cpu_s: ran.cpu_s(),
            packets: ran.packets(),
            server: None,
            not_valid: ran.not_valid().into_iter().collect(),
        })
    }
}

/// A job over loopback, or over a wire.
fn locally(stack: Stack, [server, client]: [&str; 2], words: &[&str], wire: Option<&Wire>) -> Result<Ends> {
    let program = std::env::current_exe()?;
    let address = wire.map_or_else(free_address, |_| Ok(Wire::address()))?;
    let start = |job: &str, serves: bool| {
        let mut command = match wire {
            Some(wire) => wire.enter(serves),
            None => Command::new("env"),
        };
        command.arg(&program).args([&name_of(&stack), job, &address]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("this program")
    };
    let server = Ended(start(server, true)?);
    wait_for(&address, server.0.id())?;
    let client = Ended(start(client, false)?).stdout()?;
    let server = server.stdout()?;
    let (client, server) = (line(&client)?, line(&server)?);
    let cpu_s = server["cpu_s"].as_f64().zip(client["cpu_s"].as_f64());
    let packets = client["packets"]["received"].as_f64().zip(client["packets"]["sent"].as_f64());
    Ok(Ends {
        cpu_s: cpu_s.map(|(server, client)| [server, client]),
        packets: packets.map(|(data, acks)| [data, acks]),
        client,
        server: Some(server),
        not_valid: Vec::new(),
    })
}

/// A process, which does not outlive this.
struct Ended(Child);

impl Ended {
    fn stdout(mut self) -> Result<String> {
        let mut stdout = String::new();
        if let Some(output) = &mut self.0.stdout {
            std::io::Read::read_to_string(output, &mut stdout)?;
        }
        let status = self.0.wait()?;
        if !status.success() {
            bail!("ended with {status}: {stdout}");
        }
        Ok(stdout)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free port.
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

/// Nothing where nothing is known.
fn text(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
}
