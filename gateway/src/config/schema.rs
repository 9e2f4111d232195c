//! Walks the document along the table of known keys: unknown keys, keys of later versions, types, units, bounds, words.
//!
//! After a clean walk every value has the type its key says, so that the builder asks for values and never for types.

use super::keys::{DEAD_LETTER_TO, Key, Kind, PROTOCOLS, ROOT, State, Word, find};
use super::report::{Report, nearest};
use super::tree::{Entry, Node, Origin, Table, Value};
use super::units::{UnitError, parse_duration, parse_size, show_duration, show_size};

const LATER: &str = "not available in this version";

/// Reports everything the table of keys can tell about the document.
pub(crate) fn walk(document: &Table, report: &mut Report) {
    walk_table(document, ROOT, "", None, report);
}

fn walk_table(
    table: &Table,
    keys: &'static [Key],
    path: &str,
    protocol: Option<&str>,
    report: &mut Report,
) {
    for entry in &table.entries {
        let here = join(path, &entry.key);
        // One finding says that a protocol is not there; its keys would only repeat it.
        if protocol.is_some_and(is_later_protocol) && !matches!(&*entry.key, "name" | "protocol") {
            continue;
        }
        let Some(key) = find(keys, &entry.key) else {
            unknown(entry, keys, &here, report);
            continue;
        };
        if let State::Gone(place) = key.state {
            let message = format!("`{}` is not a key any more: {place}", key.name);
            report.error("E003", &entry.origin, &here, message, None);
            continue;
        }
        let foreign = ["broker", "socket"]
            .iter()
            .any(|it| table.get(it).is_some());
        if foreign
            && matches!(key.state, State::Later(_))
            && !matches!(key.name, "broker" | "socket")
        {
            continue;
        }
        if let State::Later(same) = key.state {
            later(entry, key, same, &here, report);
            continue;
        }
        if let Some(protocol) = protocol
            && !key.only.is_empty()
            && !key.only.contains(&protocol)
        {
            let message = format!(
                "`{}` belongs to protocol `{}`, not `{protocol}`",
                key.name, key.only[0]
            );
            report.error("E003", &entry.origin, &here, message, None);
            continue;
        }
        check_kind(&entry.node, key, &here, report);
    }
}

/// Whether a `[[listen]]` of that protocol belongs to a later version.
fn is_later_protocol(word: &str) -> bool {
    PROTOCOLS.iter().any(|it| it.later && it.word == word)
}

/// A key of a later version: fine when it asks for what happens anyway, refused by name otherwise.
fn later(entry: &Entry, key: &'static Key, same: &[&str], path: &str, report: &mut Report) {
    if same_value(&entry.node.value, same) {
        return;
    }
    if let (Kind::Table(inner), Value::Table(table)) = (key.kind, &entry.node.value)
        && !inner.is_empty()
        && key.name != "store"
        && !table.entries.is_empty()
    {
        // A table whose values may be the ones of this version is judged value by value.
        return walk_table(table, inner, path, None, report);
    }
    let help = match same {
        [] => format!("remove `{}`", key.name),
        [value, ..] => format!(
            "this version does what `{} = {}` says",
            key.name,
            literal(key, value)
        ),
    };
    report.error(
        "E004",
        &entry.origin,
        path,
        format!("`{}` is {LATER}", key.name),
        help,
    );
}

fn literal(key: &Key, value: &str) -> String {
    match key.kind {
        Kind::Bool | Kind::Int(..) | Kind::Float(..) => value.to_owned(),
        _ if matches!(value, "true" | "false") => value.to_owned(),
        _ => format!("\"{value}\""),
    }
}

fn same_value(value: &Value, same: &[&str]) -> bool {
    let text = match value {
        Value::Str(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) if *number == 0.0 => "0".to_owned(),
        Value::Float(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Odd(_) | Value::Array(_) | Value::Table(_) => return false,
    };
    same.iter().any(|it| *it == text)
}

fn unknown(entry: &Entry, keys: &'static [Key], path: &str, report: &mut Report) {
    let help = nearest(&entry.key, keys.iter().map(|key| key.name))
        .map(|key| format!("did you mean `{key}`?"))
        .or_else(|| Some(format!("known here: {}", list(keys))));
    report.error(
        "E003",
        &entry.origin,
        path,
        format!("unknown key `{}`", entry.key),
        help,
    );
}

fn list(keys: &'static [Key]) -> String {
    let names: Vec<&str> = keys
        .iter()
        .filter(|key| matches!(key.state, State::Now))
        .map(|key| key.name)
        .collect();
    names.join(", ")
}

fn check_kind(node: &Node, key: &'static Key, path: &str, report: &mut Report) {
    let wrong = |wanted: &str, report: &mut Report| {
        let message = format!(
            "`{}` wants {wanted}, this is {}",
            key.name,
            node.value.type_name()
        );
        report.error("E005", &node.origin, path, message, None);
    };
    match (key.kind, &node.value) {
        (Kind::Any, _) => check_any(node, key, path, report),
        (Kind::Str, Value::Str(_)) | (Kind::Bool, Value::Bool(_)) => {}
        (Kind::Int(min, max), Value::Int(number)) => {
            if !(min..=max).contains(number) {
                let message = format!("`{}` is {number}, outside {min}..{max}", key.name);
                report.error("E007", &node.origin, path, message, None);
            }
        }
        (Kind::Float(min, max), Value::Float(_) | Value::Int(_)) => {
            let number = as_float(&node.value);
            if !(min..=max).contains(&number) {
                let message = format!("`{}` is {number}, outside {min}..{max}", key.name);
                report.error("E007", &node.origin, path, message, None);
            }
        }
        (Kind::Duration(min, max), Value::Str(text)) => match parse_duration(text) {
            Ok(time) => {
                if !(u128::from(min)..=u128::from(max)).contains(&time.as_millis()) {
                    let (min, max) = (millis(min), millis(max));
                    let message = format!("`{}` is {text:?}, outside {min}..{max}", key.name);
                    report.error("E007", &node.origin, path, message, None);
                }
            }
            Err(error) => unit(node, key, path, text, &error, "8s", "250ms", report),
        },
        (Kind::Size(min, max), Value::Str(text)) => match parse_size(text) {
            Ok(bytes) => {
                if !(min..=max).contains(&bytes) {
                    let (min, max) = (show_size(min), show_size(max));
                    let message = format!("`{}` is {text:?}, outside {min}..{max}", key.name);
                    report.error("E007", &node.origin, path, message, None);
                }
            }
            Err(error) => unit(node, key, path, text, &error, "64KiB", "8MiB", report),
        },
        (Kind::Duration(..), Value::Int(number)) => {
            unit(
                node,
                key,
                path,
                &number.to_string(),
                &UnitError::Missing,
                "8s",
                "250ms",
                report,
            );
        }
        (Kind::Size(..), Value::Int(number)) => {
            unit(
                node,
                key,
                path,
                &number.to_string(),
                &UnitError::Missing,
                "64KiB",
                "8MiB",
                report,
            );
        }
        (Kind::Choice(words), Value::Str(text)) => word(text, words, node, key, path, report),
        (Kind::StrList, Value::Array(items)) => {
            for item in items {
                if !matches!(item.value, Value::Str(_)) {
                    let message = format!(
                        "`{}` wants strings, this is {}",
                        key.name,
                        item.value.type_name()
                    );
                    report.error("E005", &item.origin, path, message, None);
                }
            }
        }
        (Kind::Choices(words), Value::Array(items)) => {
            for item in items {
                if let Value::Str(text) = &item.value {
                    word(text, words, item, key, path, report);
                } else {
                    let message = format!(
                        "`{}` wants strings, this is {}",
                        key.name,
                        item.value.type_name()
                    );
                    report.error("E005", &item.origin, path, message, None);
                }
            }
        }
        (Kind::Table(keys), Value::Table(table)) => walk_table(table, keys, path, None, report),
        (Kind::Tables(keys), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                if let Value::Table(table) = &item.value {
                    let here = join(path, &label(table, index));
                    let protocol = if path == "listen" {
                        table.text("protocol")
                    } else {
                        None
                    };
                    walk_table(table, keys, &here, protocol, report);
                } else {
                    let message = format!(
                        "`{}` wants tables, this is {}",
                        key.name,
                        item.value.type_name()
                    );
                    report.error("E005", &item.origin, path, message, None);
                }
            }
        }
        (Kind::Str | Kind::Duration(..) | Kind::Size(..) | Kind::Choice(_), _) => {
            wrong("a string", report)
        }
        (Kind::Bool, _) => wrong("true or false", report),
        (Kind::Int(..), _) => wrong("a whole number", report),
        (Kind::Float(..), _) => wrong("a number", report),
        (Kind::StrList | Kind::Choices(_), _) => wrong("an array of strings", report),
        (Kind::Table(_), _) => wrong("a table", report),
        (Kind::Tables(_), _) => wrong("an array of tables (`[[...]]`)", report),
    }
}

/// Keys whose type depends on what is written.
fn check_any(node: &Node, key: &'static Key, path: &str, report: &mut Report) {
    match (key.name, &node.value) {
        ("to", Value::Str(text)) => word(text, DEAD_LETTER_TO, node, key, path, report),
        ("to", Value::Table(_)) => {
            let help = "this version knows `to = \"discard\"`".to_owned();
            report.error(
                "E004",
                &node.origin,
                path,
                format!("a table in `to` is {LATER}"),
                help,
            );
        }
        ("meta", Value::Table(table)) => {
            for entry in &table.entries {
                if !matches!(entry.node.value, Value::Str(_)) {
                    let message = format!(
                        "an entry of `meta` is a string, this is {}",
                        entry.node.value.type_name()
                    );
                    report.error(
                        "E005",
                        &entry.node.origin,
                        &join(path, &entry.key),
                        message,
                        None,
                    );
                }
            }
        }
        ("meta", other) => {
            let message = format!("`meta` wants a table, this is {}", other.type_name());
            report.error("E005", &node.origin, path, message, None);
        }
        (name, other) => {
            let message = format!("`{name}` wants a string, this is {}", other.type_name());
            report.error("E005", &node.origin, path, message, None);
        }
    }
}

fn word(
    text: &str,
    words: &'static [Word],
    node: &Node,
    key: &Key,
    path: &str,
    report: &mut Report,
) {
    let known = words.iter().find(|it| it.word == text);
    let usable: Vec<&str> = words
        .iter()
        .filter(|it| !it.later)
        .map(|it| it.word)
        .collect();
    let choices = || format!("one of: {}", usable.join(", "));
    match known {
        Some(it) if it.later => {
            let message = format!("`{} = \"{text}\"` is {LATER}", key.name);
            report.error("E004", &node.origin, path, message, choices());
        }
        Some(_) => {}
        None => {
            let help = if text == "exactly-once" {
                // [mqtt R3]: QoS 2 is a promise of one hop.
                "no bridge can promise exactly-once from end to end: at-least-once, at-most-once"
                    .to_owned()
            } else {
                nearest(text, usable.iter().copied())
                    .map_or_else(choices, |near| format!("did you mean \"{near}\"?"))
            };
            let message = format!("`{}` can't be {text:?}", key.name);
            report.error("E008", &node.origin, path, message, help);
        }
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one place words every unit error alike"
)]
fn unit(
    node: &Node,
    key: &Key,
    path: &str,
    text: &str,
    error: &UnitError,
    first: &str,
    second: &str,
    report: &mut Report,
) {
    let message = format!("`{}` is {text:?}: {error}", key.name);
    let help = format!("write a unit: \"{first}\", \"{second}\"");
    report.error("E006", &node.origin, path, message, help);
}

fn millis(ms: u64) -> String {
    show_duration(std::time::Duration::from_millis(ms))
}

pub(crate) fn as_float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
        Value::Int(number) => *number as f64,
        _ => f64::NAN,
    }
}

/// `a.b`, or `b` at the top.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// What an element of an array of tables is called: its name, or its number.
pub(crate) fn label(table: &Table, index: usize) -> String {
    table
        .text("name")
        .map_or_else(|| index.to_string(), str::to_owned)
}

/// Where a missing key is reported: at the table that lacks it.
pub(crate) fn missing(table_at: &Origin, path: &str, key: &str, what: &str, report: &mut Report) {
    let message = format!("`{key}` is missing");
    report.error("E009", table_at, &join(path, key), message, what.to_owned());
}
