//! Log output: text for people, JSON lines for collectors, always on stderr. `[gateway.md 6.1]`

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use crate::config::valid::LogFormat;

/// Why a text is no log filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A word alone that is no level.
    #[error("{0:?} is none of error, warn, info, debug, trace, off")]
    Level(String),
    /// Not of the form `target=level`.
    #[error(transparent)]
    Form(#[from] ParseError),
}

/// Reads a level (`info`) or a filter per target (`info,weida_mqtt=debug`).
///
/// # Errors
///
/// When it is neither. A word alone is a level: a misspelled one must not become the name of a target.
pub fn parse_filter(text: &str) -> Result<EnvFilter, FilterError> {
    for word in text.split(',').map(str::trim) {
        if !word.contains(['=', '[']) && word.parse::<LevelFilter>().is_err() {
            return Err(FilterError::Level(word.to_owned()));
        }
    }
    Ok(EnvFilter::builder().parse(text)?)
}

/// Starts logging for the whole process; only `main` calls it.
///
/// # Errors
///
/// When logging was started before.
pub fn start(filter: EnvFilter, format: LogFormat) -> Result<(), TryInitError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
        LogFormat::Text => builder
            .with_ansi(colours())
            .with_target(false)
            .finish()
            .try_init(),
    }
}

/// Colours only on a terminal and never with `NO_COLOR`.
#[must_use]
pub fn colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    std::io::stderr().is_terminal() && !refused
}
