//! `/metrics`: every number the process keeps, as OpenMetrics text (`gateway.md` 6).
//!
//! Nothing is registered beforehand and nothing is counted twice: each scrape reads the atomics of the routes, listeners
//! and adapters that the configuration made. All of their series therefore exist from the start, with 0.

mod page;
mod process;
mod routes;

use std::time::UNIX_EPOCH;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use weida_bridge::metrics as names;

pub use page::{Page, Value};

use crate::state::State;

/// Help text of a series that an adapter names itself.
const ADAPTER_HELP: &str = "Counted by the adapter; its page in docs/protocols says what.";

/// Text of one scrape.
///
/// # Errors
/// None in practice: the text is written into memory.
pub fn render(state: &State) -> Result<String, std::fmt::Error> {
    let mut page = Page::default();
    lifecycle(&mut page, state);
    for route in state.routes() {
        routes::route(&mut page, route);
    }
    for refusals in state.refusals() {
        routes::refusals(&mut page, refusals);
    }
    routes::connections(&mut page, state);
    for sample in state.adapter_samples() {
        let labels: Vec<_> = sample
            .labels
            .iter()
            .map(|(key, value)| (*key, &**value))
            .collect();
        let general = names::ALL.iter().find(|metric| metric.name == sample.name);
        let help = general.map_or(ADAPTER_HELP, |metric| metric.help);
        page.add(&sample.name, help, &labels, sample.value);
    }
    let mut ours = Registry::default();
    ours.register_collector(Box::new(page));
    let mut standard = Registry::default();
    standard.register_collector(Box::new(process::page()));
    let mut out = String::with_capacity(64 << 10);
    text::encode_registry(&mut out, &ours)?;
    text::encode_registry(&mut out, &standard)?;
    text::encode_eof(&mut out)?;
    Ok(out)
}

fn lifecycle(page: &mut Page, state: &State) {
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("commit", option_env!("WEIDA_COMMIT").unwrap_or("unknown")),
        ("target", std::env::consts::ARCH),
    ];
    let start = state
        .start_time()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let flag = |on: bool| Value::Gauge(f64::from(u8::from(on)));
    for (metric, labels, value) in [
        (names::BUILD_INFO, &build[..], Value::Gauge(1.0)),
        (names::START_TIME, &[], Value::Gauge(start.as_secs_f64())),
        (names::READY, &[], flag(state.is_ready())),
        (names::DRAINING, &[], flag(state.is_draining())),
        (names::CONFIG_GENERATION, &[], Value::Gauge(1.0)),
    ] {
        page.put(metric, labels, value);
    }
}
