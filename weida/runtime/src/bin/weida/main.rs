//! The `weida` command: send, request, subscribe and serve from a shell. Payload goes to stdout, everything else to stderr.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its terminal"
)]

mod args;
mod body;
mod client;
mod exit;
mod framing;
mod request;
mod send;
mod serve;
mod sub;
mod text;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Args, Command};
use crate::exit::Failure;

fn main() -> ExitCode {
    let args = Args::parse();
    logging(args.verbose);
    let result = match &args.command {
        Command::Completions { shell } => {
            clap_complete::generate(
                *shell,
                &mut Args::command(),
                "weida",
                &mut std::io::stdout(),
            );
            Ok(())
        }
        command => run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("weida: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: &Command) -> Result<(), Failure> {
    let reactor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the reactor", error))?;
    let result = reactor.block_on(async {
        match command {
            Command::Send(args) => send::run(args).await,
            Command::Request(args) => request::run(args).await,
            Command::Sub(args) => sub::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Completions { .. } => Ok(()),
        }
    });
    // A read of stdin that is still blocked must not keep the process.
    reactor.shutdown_background();
    result
}

/// Diagnostics on stderr: warnings, or what `-v` and `RUST_LOG` ask for.
fn logging(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "weida=debug,warn",
        _ => "weida=trace,debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
}
