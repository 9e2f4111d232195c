//! Command line: argument types, and one file per command. `[gateway.md 3]`

mod check;
mod demo;
mod http;
mod identity;
mod passwd;
mod quickstart;
mod run;
mod status;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use crate::config::valid::{LogFormat, Telemetry};
use crate::config::{Config, Input, Report, load};
use crate::logging;

/// Done, or ready.
pub const OK: u8 = 0;
/// Fatal at run time, or the command could not do its work.
pub const FAILED: u8 = 1;
/// Wrong arguments.
pub const USAGE: u8 = 2;
/// The configuration is refused.
pub const INVALID: u8 = 3;
/// The gateway can't be reached.
pub const UNREACHABLE: u8 = 7;
/// The gateway runs and isn't ready.
pub const NOT_READY: u8 = 8;

/// Joins MQTT to weida: one process beside existing brokers.
#[derive(Debug, Parser)]
#[command(
    name = "weida-gateway",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Arguments {
    /// Configuration file.
    #[arg(
        long,
        short,
        global = true,
        value_name = "FILE",
        env = "WEIDA_GATEWAY_CONFIG"
    )]
    config: Option<PathBuf>,
    /// Log filter, above the one of the file: error, warn, info, debug, trace, or per target.
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,
    /// Shape of log lines, above the one of the file.
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<LogShape>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway until a signal drains it.
    Run(run::Arguments),
    /// Try it out: write a configuration for this machine, make a key, run, and say what to try.
    Quickstart(quickstart::Arguments),
    /// Check the configuration and say everything that is wrong with it.
    Check(check::Arguments),
    /// Make or show the key that weida peers know this gateway by.
    Identity(identity::Arguments),
    /// Edit the password file of MQTT users.
    Passwd(passwd::Arguments),
    /// Ask a running gateway how it is.
    Status(status::Arguments),
    /// Print completions for a shell.
    Completions(Completions),
}

#[derive(Debug, Args)]
struct Completions {
    /// Which shell.
    shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogShape {
    Text,
    Json,
}

impl From<LogShape> for LogFormat {
    fn from(shape: LogShape) -> Self {
        match shape {
            LogShape::Text => Self::Text,
            LogShape::Json => Self::Json,
        }
    }
}

/// What commands share of the arguments.
#[derive(Debug, Clone)]
struct Common {
    config: Option<PathBuf>,
    log: Option<String>,
    log_format: Option<LogFormat>,
}

/// Runs the command that the arguments of this process name.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let common = Common {
        config: arguments.config,
        log: arguments.log,
        log_format: arguments.log_format.map(LogFormat::from),
    };
    let code = match arguments.command {
        Command::Run(run) => run::run(&common, &run),
        Command::Quickstart(quickstart) => quickstart::run(&common, &quickstart),
        Command::Check(check) => check::run(&common, &check),
        Command::Identity(identity) => identity::run(&common, &identity),
        Command::Passwd(passwd) => passwd::run(&common, &passwd),
        Command::Status(status) => status::run(&common, &status),
        Command::Completions(Completions { shell }) => completions(shell),
    };
    ExitCode::from(code)
}

fn completions(shell: clap_complete::Shell) -> u8 {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "weida-gateway", &mut script);
    terminal::out_bytes(&script)
}

/// Where the configuration stands when nobody says so.
const DEFAULT_FILE: &str = "/etc/weida-gateway/gateway.toml";

impl Common {
    /// `--config`, else `WEIDA_GATEWAY_CONFIG`, else the place of the packages.
    fn file(&self) -> PathBuf {
        self.config
            .clone()
            .unwrap_or_else(|| PathBuf::from(DEFAULT_FILE))
    }

    /// Starts logging as the arguments say, else as the configuration says.
    fn start_logging(&self, telemetry: &Telemetry) -> Result<(), u8> {
        let level = self.log.as_deref().unwrap_or(&telemetry.level);
        let filter = logging::parse_filter(level).map_err(|error| {
            terminal::fail_with(format!("--log: {error}"));
            USAGE
        })?;
        let format = self.log_format.unwrap_or(telemetry.format);
        logging::start(filter, format).map_err(|error| {
            terminal::fail(&error);
            FAILED
        })
    }

    /// The checked configuration with what is worth a warning, or the exit code after saying why not.
    fn load(&self) -> Result<(Config, Report), u8> {
        load(&Input::from_process(self.file())).map_err(|report| {
            terminal::report(&report);
            INVALID
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
