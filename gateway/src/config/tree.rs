//! The document as a tree whose every key and value knows where it stands.
//!
//! Files and environment overrides end in one tree, so that a later check can point at a value wherever it came from.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a key or value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Bytes of a file, by its number in [`super::report::Sources`].
    File {
        /// Which file.
        file: usize,
        /// Which bytes.
        span: Range<usize>,
    },
    /// An environment variable.
    Env(String),
    /// Nowhere: the file as a whole.
    Whole,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Str(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// TOML dates and numbers beyond `i64`; no key wants one.
    Odd(&'static str),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys in file order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// One key of a table.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key itself stands.
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn entry_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// A string value, or none when it is absent or of another type.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }
}

impl Value {
    /// What a person calls this type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Str(_) => "a string",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Odd(name) => name,
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

/// Converts what the parser gives; nothing is lost but the order of keys, which is restored from their places.
pub(crate) fn from_toml(table: &Spanned<DeTable<'_>>, file: usize) -> Table {
    convert_table(table.get_ref(), file)
}

fn convert_table(table: &DeTable<'_>, file: usize) -> Table {
    let mut entries: Vec<(usize, Entry)> = table
        .iter()
        .map(|(key, value)| {
            let entry = Entry {
                key: key.get_ref().to_string(),
                origin: Origin::File {
                    file,
                    span: key.span(),
                },
                node: convert(value, file),
            };
            (key.span().start, entry)
        })
        .collect();
    entries.sort_by_key(|(start, _)| *start);
    Table {
        entries: entries.into_iter().map(|(_, entry)| entry).collect(),
    }
}

fn convert(value: &Spanned<DeValue<'_>>, file: usize) -> Node {
    let origin = Origin::File {
        file,
        span: value.span(),
    };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Str(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Odd("a number beyond 64 bits"), Value::Int),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Odd("an odd number"), Value::Float),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(_) => Value::Odd("a date"),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| convert(item, file)).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, file)),
    };
    Node { value, origin }
}
