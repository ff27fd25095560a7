//! The page about results has a row for each metric, generated from the program's own table.

use tacit_runs::metric;

use crate::markdown::check_table;
use crate::root;

#[test]
fn the_page_of_results_has_every_metric() {
    let rows = metric::ALL.iter().map(|metric| format!("| `{}` | {} |\n", metric.name, metric.summary));
    let table = format!("\n| name | |\n|---|---|\n{}\n", rows.collect::<String>());
    let begin = "<!-- written by a test from crates/simulator/runs/src/metric/table.rs -->\n";
    check_table(&root().join("docs/use/results.md"), begin, &table);
}
