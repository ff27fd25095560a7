//! `tacit bench`: CPU time and memory per simulated second. Each row is measured in a separate process.

use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};
use tacit_runs::aggregate::median;
use tacit_runs::bench::{ROWS, prepare, processor_time};
use tacit_scenario::table::{TextTable, number, number_or_dash};

use crate::args::BenchArgs;
use crate::output::{Failure, print, print_json};

#[derive(Serialize)]
struct Bench {
    rows: Vec<Row>,
}

/// One row of the result.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    name: String,
    /// CPU time of the process, user and system, in milliseconds per simulated second.
    cpu_ms_per_sim_s: f64,
    /// Maximum resident set in 10^6 bytes; null if the system does not report it.
    peak_rss_mb: Option<f64>,
}

pub fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.row {
        print_json(&measure(name)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = ROWS.iter().map(|row| median_of(row.name, args.repeats)).collect::<Result<_, _>>()?;
    let bench = Bench { rows };
    if args.json {
        print_json(&bench)?;
    } else {
        let mut table = TextTable::new(&[["", "row"], ["CPU", "ms per simulated s"], ["peak memory", "MB"]]);
        for row in &bench.rows {
            let memory = number_or_dash(row.peak_rss_mb, 1);
            table.push(vec![row.name.clone(), number(row.cpu_ms_per_sim_s, 2), memory]);
        }
        print(&table.render())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures the row in this process.
fn measure(name: &str) -> Result<Row, Failure> {
    let (prepared, seconds) = prepare(name)?;
    let before = processor_time();
    prepared.simulate()?;
    let spent = processor_time() - before;
    Ok(Row {
        name: name.to_owned(),
        cpu_ms_per_sim_s: spent.as_secs_f64() * 1e3 / seconds,
        peak_rss_mb: peak_memory_mb(),
    })
}

/// Measures the row in `repeats` processes, one after another, so that none is affected by the memory use of another.
fn median_of(name: &str, repeats: u32) -> Result<Row, Failure> {
    let measured = (0..repeats).map(|_| in_child(name)).collect::<Result<Vec<_>, _>>()?;
    let cpu = measured.iter().map(|row| row.cpu_ms_per_sim_s).collect();
    let memory: Option<Vec<f64>> = measured.iter().map(|row| row.peak_rss_mb).collect();
    Ok(Row {
        name: name.to_owned(),
        cpu_ms_per_sim_s: median(cpu).unwrap_or(f64::NAN),
        peak_rss_mb: memory.and_then(median),
    })
}

fn in_child(name: &str) -> Result<Row, Failure> {
    let failed = |why: String| Failure::Machine(format!("bench {name}: {why}"));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(program)
        .args(["bench", "--row", name])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// `VmHWM` of this process, if /proc reports it (proc_pid_status(5); in units of 1024 bytes).
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
