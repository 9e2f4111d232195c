//! The reference page, written from the table of keys, so that page and loader can't disagree.

use std::fmt::Write as _;

use super::keys::{Key, Kind, ROOT, State};
use super::units::{show_duration, show_size};

/// Markdown tables of every key this version knows, one section per table of the file.
#[must_use]
pub fn reference() -> String {
    let mut out = String::new();
    for key in ROOT {
        section(key, key.name, &mut out);
    }
    out
}

/// Paths of every key that belongs to a later version, with a value of the right type and whether this version accepts
/// it, because it does so anyway.
#[must_use]
pub fn later_keys() -> Vec<(String, String)> {
    let mut out = Vec::new();
    for key in ROOT {
        later(key, key.name, &mut out);
    }
    out
}

fn later(key: &Key, path: &str, out: &mut Vec<(String, String)>) {
    let sample = match key.state {
        State::Later(["true", ..]) => "false".to_owned(),
        _ => sample(key.kind),
    };
    match (key.state, key.kind) {
        (State::Later(_), _) => out.push((path.to_owned(), sample)),
        (State::Gone(_), _) => {}
        (State::Now, Kind::Table(keys) | Kind::Tables(keys)) => {
            for inner in keys {
                later(inner, &format!("{path}.{}", inner.name), out);
            }
        }
        (State::Now, Kind::Choice(words)) => {
            for word in words.iter().filter(|it| it.later) {
                out.push((path.to_owned(), format!("\"{}\"", word.word)));
            }
        }
        (State::Now, Kind::Choices(words)) => {
            for word in words.iter().filter(|it| it.later) {
                out.push((path.to_owned(), format!("[\"{}\"]", word.word)));
            }
        }
        (State::Now, _) => {}
    }
}

/// A value that asks for something this version doesn't do.
fn sample(kind: Kind) -> String {
    match kind {
        Kind::Str | Kind::Any => "\"something\"".to_owned(),
        Kind::StrList | Kind::Choices(_) => "[\"something\"]".to_owned(),
        Kind::Bool => "true".to_owned(),
        Kind::Int(_, max) => max.min(2).to_string(),
        Kind::Float(_, max) => format!("{max:?}"),
        Kind::Duration(..) => "\"1h\"".to_owned(),
        Kind::Size(..) => "\"1MiB\"".to_owned(),
        Kind::Choice(words) => format!("\"{}\"", words.last().map_or("x", |it| it.word)),
        Kind::Table(keys) => {
            let inner: Vec<String> = keys
                .iter()
                .take(1)
                .map(|key| format!("{} = {}", key.name, sample(key.kind)))
                .collect();
            format!("{{ {} }}", inner.join(", "))
        }
        Kind::Tables(_) => "[{ name = \"something\" }]".to_owned(),
    }
}

fn section(key: &Key, path: &str, out: &mut String) {
    let (keys, title) = match key.kind {
        _ if !matches!(key.state, State::Now) => return,
        Kind::Table(keys) => (keys, format!("[{path}]")),
        Kind::Tables(keys) => (keys, format!("[[{path}]]")),
        _ => return,
    };
    // Writing to a string cannot fail.
    let _: std::fmt::Result = writeln!(out, "\n### `{title}`\n\n{}\n", key.doc);
    out.push_str("| Key | Value | Default | Meaning |\n| --- | --- | --- | --- |\n");
    let mut later = Vec::new();
    for inner in keys {
        match inner.state {
            State::Now => {
                let only = match inner.only {
                    [] => String::new(),
                    [protocol, ..] => format!(" ({protocol})"),
                };
                let (kind, default, doc) = (value(inner.kind), inner.default, inner.doc);
                let _: std::fmt::Result = writeln!(
                    out,
                    "| `{}`{only} | {kind} | {default} | {doc} |",
                    inner.name
                );
                if let Kind::Choice(words) | Kind::Choices(words) = inner.kind {
                    for word in words.iter().filter(|it| it.later) {
                        later.push(format!("`{} = \"{}\"`", inner.name, word.word));
                    }
                }
            }
            State::Later([]) => later.push(format!("`{}`", inner.name)),
            State::Later([same, ..]) => {
                later.push(format!("`{}` (other than `{same}`)", inner.name))
            }
            State::Gone(_) => {}
        }
    }
    if !later.is_empty() {
        let _: std::fmt::Result = writeln!(
            out,
            "\nNot available in this version: {}.",
            later.join(", ")
        );
    }
    for inner in keys {
        section(inner, &format!("{path}.{}", inner.name), out);
    }
}

fn value(kind: Kind) -> String {
    match kind {
        Kind::Str | Kind::Any => "string".to_owned(),
        Kind::StrList => "strings".to_owned(),
        Kind::Bool => "boolean".to_owned(),
        Kind::Int(min, max) => format!("{min} to {max}"),
        Kind::Float(min, max) => format!("{min} to {max}"),
        Kind::Duration(min, max) => {
            let show = |ms| show_duration(std::time::Duration::from_millis(ms));
            format!("time, {} to {}", show(min), show(max))
        }
        Kind::Size(min, max) => format!("size, {} to {}", show_size(min), show_size(max)),
        Kind::Choice(words) | Kind::Choices(words) => {
            let words: Vec<String> = words
                .iter()
                .filter(|it| !it.later)
                .map(|it| format!("`\"{}\"`", it.word))
                .collect();
            words.join(", ")
        }
        Kind::Table(_) => "table".to_owned(),
        Kind::Tables(_) => "tables".to_owned(),
    }
}
