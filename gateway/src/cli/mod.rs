//! Command line: argument types and the commands that need no running gateway.

use std::process::ExitCode;

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
