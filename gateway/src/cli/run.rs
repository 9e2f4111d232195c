//! `run`: checks the configuration, then runs it in the foreground until a signal drains it. `[gateway.md 3, 7]`

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{Common, FAILED, INVALID, terminal};
use crate::config::{Config, Input, load};
use crate::supervisor::{self, ExitReport, Started};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Accept bounds that exceed the memory of this machine.
    #[arg(long)]
    allow_overcommit: bool,
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> u8 {
    let mut input = Input::from_process(common.file());
    input.allow_overcommit = arguments.allow_overcommit;
    let (config, report) = match load(&input) {
        Ok(loaded) => loaded,
        Err(report) => {
            terminal::report(&report);
            return INVALID;
        }
    };
    if let Err(code) = common.start_logging(&config.telemetry) {
        return code;
    }
    for warning in report.findings() {
        tracing::warn!(code = warning.code, path = %warning.path, line = warning.line, "{}", warning.message);
    }
    let runtime = match runtime(&config) {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let stop = CancellationToken::new();
    let report = runtime.block_on(supervisor::start(config, stop, |_: Started| {}));
    finish(&report)
}

/// The executor of the process.
pub(super) fn runtime(config: &Config) -> Result<tokio::runtime::Runtime, u8> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.gateway.worker_threads > 0 {
        builder.worker_threads(config.gateway.worker_threads);
    }
    builder.enable_all().build().map_err(|error| {
        terminal::fail_with(format!("can't start the runtime: {error}"));
        FAILED
    })
}

/// The exit code of a run; why it did not start is said here, for whoever reads no logs.
pub(super) fn finish(report: &ExitReport) -> u8 {
    if let Some(reason) = &report.reason {
        terminal::fail_with(reason);
    }
    report.exit.code()
}
