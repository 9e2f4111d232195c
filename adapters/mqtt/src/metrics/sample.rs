//! One value of one series, as the gateway exports it.

use std::borrow::Cow;

/// A series value with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name without the common prefix.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// Label keys and values, in the order of the specification.
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    /// The value.
    pub value: u64,
}

/// What a value means when it is read twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}
