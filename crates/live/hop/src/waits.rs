//! How long commands wait for a CPU, which is the delay that a busy machine adds to round trips through a hop.
//!
//! The kernel counts for each thread how long it was runnable without running, and how often it was scheduled
//! (`schedstat`). Threads are sampled at intervals; the waiting time of a thread between its last sample and its end is
//! lost.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

/// Maximum number of threads per side that are sampled. A program with more threads is not waiting for a hop.
const MAX_THREADS: usize = 1_000;

/// Waiting times of the commands of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Those on the command's side; null if unknown.
    pub command: Option<Wait>,
    /// Those on the server's side; null if unknown or without a server.
    pub server: Option<Wait>,
}

/// Waiting and running times of the threads of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Number of times that a thread was scheduled.
    pub turns: u64,
    /// Mean time that it had been runnable before, in microseconds.
    pub mean_us: f64,
    /// Total running time in seconds.
    pub ran_s: f64,
}

/// Samples the threads of a side.
#[derive(Debug, Default)]
pub struct Watcher {
    /// By thread: nanoseconds running, nanoseconds runnable, and number of times scheduled.
    threads: BTreeMap<u32, [u64; 3]>,
}

impl Watcher {
    /// Samples all descendants of `first`, the side's first process.
    pub fn look(&mut self, first: u32) {
        let mut processes = children(first);
        while let Some(process) = processes.pop() {
            if self.threads.len() >= MAX_THREADS {
                return;
            }
            for thread in threads(process) {
                let path = format!("/proc/{process}/task/{thread}/schedstat");
                if let Some(counted) = fs::read_to_string(path).ok().as_deref().and_then(parse) {
                    self.threads.insert(thread, counted);
                }
            }
            processes.extend(children(process));
        }
    }

    /// The waiting times so far; `None` if unknown.
    pub fn wait(&self) -> Option<Wait> {
        let sum = |place: usize| self.threads.values().map(|counted| counted[place]).sum::<u64>();
        let [ran_ns, waited_ns, turns] = [0, 1, 2].map(sum);
        let mean_us = waited_ns as f64 / turns as f64 / 1e3;
        (turns > 0).then(|| Wait { turns, mean_us, ran_s: ran_ns as f64 / 1e9 })
    }
}

/// Nanoseconds running, nanoseconds runnable, and number of times scheduled.
fn parse(schedstat: &str) -> Option<[u64; 3]> {
    let mut numbers = schedstat.split_ascii_whitespace().map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}

fn threads(process: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children(process: u32) -> Vec<u32> {
    let of_thread = |thread| fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
    let all = threads(process).into_iter().filter_map(|thread| of_thread(thread).ok());
    all.flat_map(|list| list.split_ascii_whitespace().filter_map(|one| one.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    #[test]
    fn schedstat_is_ran_waited_and_turns() {
        assert_eq!(parse("1253424 3217432 4\n"), Some([1_253_424, 3_217_432, 4]));
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 x 3"), None);
    }

    #[test]
    fn the_mean_is_over_all_turns_of_all_threads() {
        let watcher = Watcher { threads: [(7, [5_000, 9_000, 1]), (8, [3_000, 1_000, 9])].into() };
        assert_eq!(watcher.wait(), Some(Wait { turns: 10, mean_us: 1.0, ran_s: 8e-6 }));
        assert_eq!(Watcher::default().wait(), None);
    }

    /// Kills the child at the end of the test, successful or not.
    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn children_of_children_are_looked_at() {
        if !fs::exists("/proc/thread-self/children").unwrap() {
            return;
        }
        let _child = Ended(Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap());
        let mut watcher = Watcher::default();
        // The shell needs a moment to start the other process.
        for _ in 0..500 {
            watcher.look(std::process::id());
            if watcher.threads.len() >= 2 {
                break;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        assert!(watcher.threads.len() >= 2 && watcher.wait().is_some(), "{watcher:?}");
    }
}
