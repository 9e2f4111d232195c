//! Overrides from the environment: typed by the table of keys, never by text substitution. `[gateway.md 2.1]`
//!
//! `WEIDA_GATEWAY__LIMITS__MAX_SESSIONS=20000` sets `limits.max_sessions`; a named table is named:
//! `WEIDA_GATEWAY__LISTEN__MQTT_TLS__BIND=0.0.0.0:8883` sets `bind` of the listener `mqtt-tls`.

use super::keys::{Key, Kind, ROOT};
use super::report::{Report, nearest};
use super::tree::{Entry, Node, Origin, Table, Value};

const PREFIX: &str = "WEIDA_GATEWAY__";

/// Applies every override of the environment, in the order of the variable names.
pub(crate) fn apply(document: &mut Table, environment: &[(String, String)], report: &mut Report) {
    let mut overrides: Vec<&(String, String)> = environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    overrides.sort();
    for (name, value) in overrides {
        let words: Vec<&str> = name[PREFIX.len()..].split("__").collect();
        let origin = Origin::Env(name.clone());
        if let Err(reason) = set(document, ROOT, &words, value, &origin) {
            let path = words.join(".").to_lowercase();
            report.error("E014", &origin, &path, reason.message, reason.help);
        }
    }
}

struct Reason {
    message: String,
    help: Option<String>,
}

impl Reason {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }
}

/// The spelling of a name in a variable.
fn spelled(name: &str) -> String {
    name.to_ascii_uppercase().replace(['-', '.'], "_")
}

fn set(
    table: &mut Table,
    keys: &'static [Key],
    words: &[&str],
    value: &str,
    origin: &Origin,
) -> Result<(), Reason> {
    let Some((word, rest)) = words.split_first() else {
        return Err(Reason::new("this override names a table, not a key"));
    };
    let Some(key) = keys.iter().find(|key| spelled(key.name) == *word) else {
        let names: Vec<String> = keys.iter().map(|key| spelled(key.name)).collect();
        let near = nearest(word, names.iter().map(String::as_str));
        return Err(Reason {
            message: format!("no key is called {word}"),
            help: near.map(|near| format!("did you mean {near}?")),
        });
    };
    match key.kind {
        Kind::Table(inner) => {
            let entry = entry(table, key, Value::Table(Table::default()), origin);
            let Value::Table(inside) = &mut entry.node.value else {
                return Err(Reason::new(format!(
                    "`{}` is no table in the file",
                    key.name
                )));
            };
            set(inside, inner, rest, value, origin)
        }
        Kind::Tables(inner) => {
            let Some((name, rest)) = rest.split_first() else {
                return Err(Reason::new(format!(
                    "`{}` needs the name of one of them",
                    key.name
                )));
            };
            set(named(table, key, name)?, inner, rest, value, origin)
        }
        _ if !rest.is_empty() => Err(Reason::new(format!("`{}` is no table", key.name))),
        kind => {
            let node = Node {
                value: typed(kind, value),
                origin: origin.clone(),
            };
            let entry = entry(table, key, Value::Bool(false), origin);
            entry.node = node;
            Ok(())
        }
    }
}

/// The entry of a key, made when the file has none.
fn entry<'a>(table: &'a mut Table, key: &Key, value: Value, origin: &Origin) -> &'a mut Entry {
    let at = table
        .entries
        .iter()
        .position(|it| it.key == key.name)
        .unwrap_or_else(|| {
            let node = Node {
                value,
                origin: origin.clone(),
            };
            table.entries.push(Entry {
                key: key.name.to_owned(),
                origin: origin.clone(),
                node,
            });
            table.entries.len() - 1
        });
    &mut table.entries[at]
}

/// The one table whose name is spelled like that.
fn named<'a>(table: &'a mut Table, key: &Key, word: &str) -> Result<&'a mut Table, Reason> {
    let items = match table.entry_mut(key.name).map(|entry| &mut entry.node.value) {
        Some(Value::Array(items)) => items.as_mut_slice(),
        _ => &mut [],
    };
    let matching = |item: &Node| match &item.value {
        Value::Table(table) => table.text("name").is_some_and(|name| spelled(name) == word),
        _ => false,
    };
    let known: Vec<String> = items
        .iter()
        .filter_map(|item| match &item.value {
            Value::Table(table) => table.text("name").map(spelled),
            _ => None,
        })
        .collect();
    match items.iter().filter(|item| matching(item)).count() {
        0 => Err(Reason {
            message: format!("no `{}` is called {word}", key.name),
            help: (!known.is_empty()).then(|| format!("there are: {}", known.join(", "))),
        }),
        1 => items
            .iter_mut()
            .find(|item| matching(item))
            .and_then(|item| match &mut item.value {
                Value::Table(table) => Some(table),
                _ => None,
            })
            .ok_or_else(|| Reason::new("not a table")),
        count => Err(Reason::new(format!(
            "{count} tables of `{}` are spelled {word} in a variable: rename one",
            key.name
        ))),
    }
}

/// The text as the type of its key; what doesn't fit stays text, and the walk says so.
fn typed(kind: Kind, text: &str) -> Value {
    let as_text = || Value::Str(text.to_owned());
    match kind {
        Kind::Bool => text.parse().map_or_else(|_| as_text(), Value::Bool),
        Kind::Int(..) => text.parse().map_or_else(|_| as_text(), Value::Int),
        Kind::Float(..) => text.parse().map_or_else(|_| as_text(), Value::Float),
        Kind::StrList | Kind::Choices(_) => Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Node {
                    value: Value::Str(item.to_owned()),
                    origin: Origin::Whole,
                })
                .collect(),
        ),
        // A bare number where a unit is wanted is an error here as in the file.
        _ => as_text(),
    }
}
