//! From files and environment to a checked [`Config`]. `[gateway.md 2.1]`
//!
//! `run`, `check` and every test go through [`load`]; there is no second way to a [`Config`].

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::report::Report;
use super::schema;
use super::tree::{self, Entry, Origin, Table, Value};
use super::{build, environment};
use crate::config::Config;

/// Where configuration comes from.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The file; `conf.d/*.toml` beside it is merged into it.
    pub file: PathBuf,
    /// Variables of the environment, of which `WEIDA_GATEWAY__...` override keys.
    pub environment: Vec<(String, String)>,
    /// Accept a worst-case memory above what the machine has.
    pub allow_overcommit: bool,
}

impl Input {
    /// The file with the overrides of this process's environment.
    #[must_use]
    pub fn from_process(file: PathBuf) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            file,
            environment,
            allow_overcommit: false,
        }
    }
}

/// Reads and checks everything; opens no socket.
///
/// # Errors
///
/// The report with every finding when one of them is an error.
pub fn load(input: &Input) -> Result<(Config, Report), Report> {
    let mut report = Report::default();
    let (document, folder) = read(input, &mut report);
    schema::walk(&document, &mut report);
    // A document that did not parse would only repeat itself as missing keys.
    let parsed = !report
        .findings()
        .iter()
        .any(|it| matches!(it.code, "E001" | "E002"));
    let config = parsed
        .then(|| build::build(&document, &folder, input, &mut report))
        .flatten();
    report.sort();
    match config {
        Some(config) if !report.has_errors() => Ok((config, report)),
        _ => Err(report),
    }
}

/// The file, `conf.d` and the environment as one document, and the folder that relative paths start from.
fn read(input: &Input, report: &mut Report) -> (Table, PathBuf) {
    let mut document = read_file(&input.file, report).unwrap_or_default();
    let folder = parent(&input.file);
    for file in conf_d(&folder, report) {
        if let Some(table) = read_file(&file, report) {
            merge(&mut document, table, "", report);
        }
    }
    environment::apply(&mut document, &input.environment, report);
    (document, folder)
}

/// The password files that `[[credential]]` names, which need not exist yet; nothing else is checked.
///
/// # Errors
///
/// The report when a file can't be read or parsed.
pub fn credential_files(input: &Input) -> Result<Vec<PathBuf>, Report> {
    let mut report = Report::default();
    let (document, folder) = read(input, &mut report);
    if report.has_errors() {
        report.sort();
        return Err(report);
    }
    Ok(build::credential_files(&document, &folder))
}

/// The folder that relative paths of the file start from.
fn parent(file: &Path) -> PathBuf {
    file.parent().map(Path::to_owned).unwrap_or_default()
}

fn read_file(path: &Path, report: &mut Report) -> Option<Table> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.add_source(path.to_owned(), String::new());
            let message = format!("can't read {}: {error}", path.display());
            report.error("E001", &Origin::Whole, "", message, None);
            return None;
        }
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let file = report.add_source(path.to_owned(), text);
            let at = Origin::File { file, span: at..at };
            report.error("E002", &at, "", "not UTF-8 from here on", None);
            return None;
        }
    };
    let file = report.add_source(path.to_owned(), text.clone());
    let (table, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        report.error(
            "E002",
            &Origin::File { file, span },
            "",
            error.message(),
            None,
        );
    }
    errors.is_empty().then(|| tree::from_toml(&table, file))
}

/// `*.toml` of the folder `conf.d`, in byte order of their names.
fn conf_d(folder: &Path, report: &mut Report) -> Vec<PathBuf> {
    let folder = folder.join("conf.d");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            let message = format!("can't read {}: {error}", folder.display());
            report.error("E001", &Origin::Whole, "", message, None);
            return Vec::new();
        }
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .collect();
    files.sort();
    files
}

/// Adds `from` to `into`: arrays of tables are joined, tables united, and a value written twice is an error.
fn merge(into: &mut Table, from: Table, path: &str, report: &mut Report) {
    for entry in from.entries {
        let here = schema::join(path, &entry.key);
        let Some(present) = into.entry_mut(&entry.key) else {
            into.entries.push(entry);
            continue;
        };
        let Entry { key, origin, node } = entry;
        match (&mut present.node.value, node.value) {
            (Value::Table(a), Value::Table(b)) => merge(a, b, &here, report),
            (Value::Array(a), Value::Array(b)) if path.is_empty() => a.extend(b),
            _ => {
                let message = format!("`{key}` is already set by another file");
                report.error("E010", &origin, &here, message, None);
            }
        }
    }
}
