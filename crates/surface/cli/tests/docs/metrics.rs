//! The page about results has each metric, generated from the program's own table.

use tacit_runs::metric;

use crate::markdown::check_table;
use crate::root;

/// One entry per description: metrics that differ by the number of a link share it.
#[test]
fn the_page_of_results_has_every_metric() {
    let mut rows: Vec<(Vec<String>, &str)> = Vec::new();
    for metric in metric::ALL.iter() {
        let name = format!("`{}`", metric.name);
        match rows.last_mut().filter(|(_, summary)| *summary == metric.summary) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], metric.summary)),
        }
    }
    let rows = rows.iter().map(|(names, summary)| format!("* {}: {summary}\n", names.join(", ")));
    let list = format!("\n{}\n", rows.collect::<String>());
    let begin = "<!-- written by a test from crates/simulator/runs/src/metric/table.rs -->\n";
    check_table(&root().join("docs/use/results.md"), begin, &list);
}
