//! `check`: parse and validate everything without network. `[gateway.md 3]`

use clap::{Args, ValueEnum};

use super::{Common, INVALID, OK, terminal};
use crate::config::{Input, load, summary};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Shape of the findings.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Accept bounds that exceed the memory of this machine.
    #[arg(long)]
    allow_overcommit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, on stderr.
    Text,
    /// An array of findings on stdout.
    Json,
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> u8 {
    let mut input = Input::from_process(common.file());
    input.allow_overcommit = arguments.allow_overcommit;
    let (config, report) = match load(&input) {
        Ok((config, report)) => (Some(config), report),
        Err(report) => (None, report),
    };
    let report = if arguments.strict {
        report.strict()
    } else {
        report
    };
    let code = if report.has_errors() { INVALID } else { OK };
    match arguments.format {
        Format::Json => {
            terminal::out(report.to_json());
        }
        Format::Text => {
            terminal::report(&report);
            if let (OK, Some(config)) = (code, &config) {
                terminal::out(format!(
                    "{}: good; {}",
                    input.file.display(),
                    summary(config)
                ));
            }
        }
    }
    code
}
