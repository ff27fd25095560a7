//! The program `tacit` of the wheel, which `python/backend` compiles together with the module.

use std::process::ExitCode;

fn main() -> ExitCode {
    tacit_cli::run()
}
