//! One table of the document, asked by key.

use std::sync::Arc;
use std::time::Duration;

use super::super::report::Report;
use super::super::schema::{as_float, join, label, missing};
use super::super::tree::{Node, Origin, Table, Value};
use super::super::units::{parse_duration, parse_size};

/// A table, where it stands and what it is called in findings.
#[derive(Clone)]
pub(crate) struct View<'a> {
    table: &'a Table,
    pub(crate) at: &'a Origin,
    pub(crate) path: String,
}

/// A text and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: &'a Origin,
}

static NOWHERE: Origin = Origin::Whole;

impl<'a> View<'a> {
    pub(crate) fn new(table: &'a Table, at: &'a Origin, path: String) -> Self {
        Self { table, at, path }
    }

    fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Where the key stands, or the table when it is absent.
    pub(crate) fn key_at(&self, key: &str) -> &'a Origin {
        self.table.entry(key).map_or(self.at, |entry| &entry.origin)
    }

    /// Where the value stands, or the table when it is absent.
    pub(crate) fn at(&self, key: &str) -> &'a Origin {
        self.node(key).map_or(self.at, |node| &node.origin)
    }

    pub(crate) fn key_path(&self, key: &str) -> String {
        join(&self.path, key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<Text<'a>> {
        match self.node(key)? {
            Node {
                value: Value::Str(text),
                origin,
            } => Some(Text { text, at: origin }),
            _ => None,
        }
    }

    /// The text, or a finding that it is missing.
    pub(crate) fn need(&self, key: &str, what: &str, report: &mut Report) -> Option<Text<'a>> {
        if !self.has(key) {
            missing(self.at, &self.path, key, what, report);
        }
        self.text(key)
    }

    pub(crate) fn bool(&self, key: &str) -> Option<bool> {
        match self.node(key)?.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// A whole number that fits `T`; the walk reported what doesn't.
    pub(crate) fn int<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        match self.node(key)?.value {
            Value::Int(number) => T::try_from(number).ok(),
            _ => None,
        }
    }

    pub(crate) fn float(&self, key: &str) -> Option<f64> {
        Some(as_float(&self.node(key)?.value)).filter(|it| it.is_finite())
    }

    pub(crate) fn duration(&self, key: &str) -> Option<Duration> {
        parse_duration(self.text(key)?.text).ok()
    }

    pub(crate) fn bytes(&self, key: &str) -> Option<usize> {
        usize::try_from(parse_size(self.text(key)?.text).ok()?).ok()
    }

    /// The strings of an array.
    pub(crate) fn list(&self, key: &str) -> Vec<Text<'a>> {
        let Some(Node {
            value: Value::Array(items),
            ..
        }) = self.node(key)
        else {
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| match &item.value {
                Value::Str(text) => Some(Text {
                    text,
                    at: &item.origin,
                }),
                _ => None,
            })
            .collect()
    }

    /// Absent, or an array of nothing; a value of another type is neither.
    pub(crate) fn is_empty_list(&self, key: &str) -> bool {
        match self.node(key).map(|node| &node.value) {
            None => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(_) => false,
        }
    }

    pub(crate) fn table(&self, key: &str) -> Option<Self> {
        let entry = self.table.entry(key)?;
        let Value::Table(table) = &entry.node.value else {
            return None;
        };
        Some(View {
            table,
            at: &entry.origin,
            path: self.key_path(key),
        })
    }

    /// A table, or an empty one at the same place.
    pub(crate) fn table_or_empty(&self, key: &str) -> Self {
        static EMPTY: Table = Table {
            entries: Vec::new(),
        };
        self.table(key).unwrap_or_else(|| View {
            table: &EMPTY,
            at: self.at,
            path: self.key_path(key),
        })
    }

    /// The tables of an array of tables.
    pub(crate) fn tables(&self, key: &str) -> Vec<Self> {
        let Some(Node {
            value: Value::Array(items),
            ..
        }) = self.node(key)
        else {
            return Vec::new();
        };
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| match &item.value {
                Value::Table(table) => Some(View {
                    table,
                    at: &item.origin,
                    path: join(&self.key_path(key), &label(table, index)),
                }),
                _ => None,
            })
            .collect()
    }

    /// Texts of a table of texts, in file order.
    pub(crate) fn pairs(&self, key: &str) -> Vec<(&'a str, Text<'a>)> {
        let Some(Node {
            value: Value::Table(table),
            ..
        }) = self.node(key)
        else {
            return Vec::new();
        };
        table
            .entries
            .iter()
            .filter_map(|entry| match &entry.node.value {
                Value::Str(text) => Some((
                    entry.key.as_str(),
                    Text {
                        text,
                        at: &entry.node.origin,
                    },
                )),
                _ => None,
            })
            .collect()
    }

    /// The `name` of a listener or route: present, plain, unique among `taken`.
    pub(crate) fn name(
        &self,
        what: &str,
        taken: &mut Vec<Arc<str>>,
        report: &mut Report,
    ) -> Option<Arc<str>> {
        let name = self.need("name", &format!("every {what} has a unique name"), report)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.text.is_empty() || name.text.len() > 64 || !name.text.chars().all(plain) {
            let message = format!("{:?} is no name", name.text);
            let help = "1 to 64 letters, digits, `-`, `_`, `.`".to_owned();
            report.error("E011", name.at, &self.key_path("name"), message, help);
            return None;
        }
        if taken.iter().any(|it| **it == *name.text) {
            let message = format!("{what} `{}` is defined twice", name.text);
            let help = "names are never overridden: rename one of them".to_owned();
            report.error("E010", name.at, &self.key_path("name"), message, help);
            return None;
        }
        let name: Arc<str> = name.text.into();
        taken.push(Arc::clone(&name));
        Some(name)
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Text {
            text: "",
            at: &NOWHERE,
        }
    }
}
