//! The `tacit` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tacit_cli::run()
}
