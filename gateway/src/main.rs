//! The gateway process: everything is in the library, so that tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    weida_gateway::cli::main()
}
