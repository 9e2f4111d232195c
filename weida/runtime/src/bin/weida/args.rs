//! Arguments of the `weida` command, as typed; what they mean is decided by the command that takes them.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};

/// Messaging over QUIC from a shell.
#[derive(Debug, Parser)]
#[command(
    name = "weida",
    version,
    after_help = "Exit codes: 0 done, 1 anything else (an unknown outcome included), 2 usage, 3 rejected, 4 unknown endpoint, \
5 no reply, 6 untrusted key (the presented one is printed), 7 connection lost or never established."
)]
pub(crate) struct Args {
    /// More diagnostics on stderr; twice for all of them.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send one payload and wait until the peer's transport holds it.
    Send(SendArgs),
    /// Send one request and stream the reply to stdout.
    Request(RequestArgs),
    /// Subscribe and print what arrives: payloads on stdout, topics on stderr.
    Sub(SubArgs),
    /// Serve a path: echo requests, print pushed payloads, or publish lines of stdin.
    Serve(ServeArgs),
    /// Print a completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// How a client dials.
#[derive(Debug, clap::Args)]
pub(crate) struct DialArgs {
    /// Trust servers whose chain reaches a certificate of this PEM file and names the dialled host. Without it the
    /// address must carry the server's fingerprint.
    #[arg(long, value_name = "PEM")]
    pub(crate) ca: Option<PathBuf>,
    /// Present the certificate and key of this PEM file; created (mode 0600) when it does not exist.
    #[arg(long, value_name = "PEM")]
    pub(crate) identity: Option<PathBuf>,
    /// Give up dialling after this many seconds.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) connect_timeout: u64,
    /// One JSON object per result, on stdout for `sub`, on stderr for the others.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) dial: DialArgs,
    /// Topic that travels with the payload.
    #[arg(long)]
    pub(crate) topic: Option<String>,
    /// Content type that travels with the payload.
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Address of the puller.
    pub(crate) url: String,
    /// File to send; stdin without it.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) dial: DialArgs,
    /// Topic that travels with the request.
    #[arg(long)]
    pub(crate) topic: Option<String>,
    /// Content type that travels with the request.
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Address of the replier.
    pub(crate) url: String,
    /// File to send; stdin without it.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SubArgs {
    #[command(flatten)]
    pub(crate) dial: DialArgs,
    /// Filter: `.`-separated segments, `*` for one of them, a last `#` for the rest. Everything without it.
    #[arg(long, default_value = "")]
    pub(crate) filter: String,
    /// Stop after this many messages.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// What separates payloads on stdout.
    #[arg(long, value_enum, default_value_t = Framing::Line)]
    pub(crate) framing: Framing,
    /// Largest payload that `--framing length` and `--json` hold in memory; a larger one is skipped and reported.
    #[arg(long, value_name = "N", default_value_t = 64 * 1024 * 1024)]
    pub(crate) max_bytes: usize,
    /// Address of the publisher.
    pub(crate) url: String,
}

/// What separates payloads on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Framing {
    /// A line feed after each.
    Line,
    /// Nothing.
    Raw,
    /// A NUL byte after each.
    Nul,
    /// The length before each, four bytes, big endian.
    Length,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("role").required(true).args(["echo", "sink", "publish"]))]
pub(crate) struct ServeArgs {
    /// Answer each request with its own body.
    #[arg(long)]
    pub(crate) echo: bool,
    /// Print pushed payloads, a line feed after each.
    #[arg(long)]
    pub(crate) sink: bool,
    /// Publish lines of stdin: `topic body`, or a body alone on the empty topic.
    #[arg(long = "pub")]
    pub(crate) publish: bool,
    /// Load the key from this PEM file, or create it (mode 0600), so that the address is the same next time.
    #[arg(long, value_name = "PEM")]
    pub(crate) identity: Option<PathBuf>,
    /// Write the certificate to this file.
    #[arg(long, value_name = "PEM")]
    pub(crate) cert_out: Option<PathBuf>,
    /// Print the address as a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// `weida://IP:PORT/path`; port 0 lets the system choose.
    pub(crate) url: String,
}
