//! Our runtime, the published one, and the raw QUIC stack as the limit of both: same cases, one process, alternating runs.
//!
//! ```text
//! cargo bench -p weida-compat-tests --bench runtime -- [--case NAME] [--pairs N] [--seconds S] [--json FILE] [--smoke]
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]
#![expect(
    clippy::duplicate_mod,
    reason = "one set of cases, once per implementation"
)]

use std::time::Duration;

use weida_testkit::load::{Comparison, Run, alternate};

mod limit;

#[path = "."]
mod ours {
    use ::weida as imp;
    #[path = "cases.rs"]
    pub(crate) mod cases;
}

#[path = "."]
mod published {
    use ::weida_published as imp;
    #[path = "cases.rs"]
    pub(crate) mod cases;
}

/// What to run and for how long.
#[derive(Debug, Clone)]
struct Options {
    case: Option<String>,
    pairs: usize,
    window: Duration,
    json: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            case: None,
            pairs: 5,
            window: Duration::from_secs(4),
            json: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} takes a value"))
            };
            match argument.as_str() {
                "--case" => options.case = Some(value()?),
                "--pairs" => {
                    options.pairs = value()?
                        .parse()
                        .map_err(|error| format!("--pairs: {error}"))?
                }
                "--seconds" => {
                    let seconds: f64 = value()?
                        .parse()
                        .map_err(|error| format!("--seconds: {error}"))?;
                    options.window = Duration::from_secs_f64(seconds);
                }
                "--json" => options.json = Some(value()?),
                // Shows that every case still runs; figures of such a run mean nothing.
                "--smoke" => {
                    options.pairs = 1;
                    options.window = Duration::from_millis(100);
                }
                // What cargo itself passes.
                "--bench" | "--test" => {}
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(options)
    }
}

fn main() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let reactor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    reactor.block_on(run(&options))
}

async fn run(options: &Options) -> Result<(), String> {
    let mut report = Vec::new();
    let window = options.window;
    macro_rules! case {
        ($name:literal, $limit:expr, $run:ident ( $($argument:expr),* )) => {
            if options.case.as_deref().is_none_or(|wanted| $name.contains(wanted)) {
                let comparison = alternate(
                    $name,
                    options.pairs,
                    || ours::cases::$run(window $(, $argument)*),
                    || published::cases::$run(window $(, $argument)*),
                )
                .await;
                let limit: Option<Run> = match $limit {
                    Some(limit) => Some(limit.await),
                    None => None,
                };
                print(&comparison, limit.as_ref());
                report.push(json(&comparison, limit.as_ref()));
                if comparison.errors() > 0 {
                    return Err(format!("{}: operations failed", $name));
                }
            }
        };
    }
    case!(
        "request-reply 64 B, one in flight",
        Some(limit::request_reply(window, 64, 1)),
        request_reply(64, 1)
    );
    case!(
        "request-reply 64 B, 16 in flight",
        Some(limit::request_reply(window, 64, 16)),
        request_reply(64, 16)
    );
    case!("push 64 B", Some(limit::push(window, 64)), push(64));
    case!("push 1 KiB", Some(limit::push(window, 1024)), push(1024));
    case!(
        "one-way stream, 256 KiB writes",
        Some(limit::stream(window)),
        stream()
    );
    case!(
        "pub/sub 1 KiB to 8",
        None::<std::future::Ready<Run>>,
        fan_out(1024, 8)
    );
    if report.is_empty() {
        return Err("no case has that name".to_owned());
    }
    if let Some(path) = &options.json {
        let text = serde_json::Value::Array(report).to_string();
        std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn print(comparison: &Comparison, limit: Option<&Run>) {
    println!("{comparison}");
    if let Some(limit) = limit {
        let best = comparison
            .runs
            .iter()
            .map(|(ours, _)| ours.per_second())
            .fold(0.0, f64::max);
        println!(
            "    raw QUIC {:.0}/s: ours reaches {:.0} % of it",
            limit.per_second(),
            100.0 * best / limit.per_second()
        );
    }
}

fn json(comparison: &Comparison, limit: Option<&Run>) -> serde_json::Value {
    let mut value = comparison.to_json();
    value["limit"] = limit.map_or(serde_json::Value::Null, Run::to_json);
    value
}
