//! From the walked document to checked values: defaults, references, cross checks.
//!
//! Types, units and words were reported by [`super::schema`]; here a value of the wrong type reads as absent, so that one
//! slip is reported once. Every builder goes on after an error: all findings come at once.

mod access;
mod files;
mod graph;
mod listen;
mod memory;
mod process;
mod route;
mod shared;
mod validity;
mod view;

use std::path::Path;

use super::load::Input;
use super::report::Report;
use super::tree::{Origin, Table};
use super::valid::Config;
use view::View;

/// Builds the configuration, or none when something essential is absent.
///
/// The caller decides by the report: a returned value is only good when the report has no error.
pub(crate) fn build(
    document: &Table,
    folder: &Path,
    input: &Input,
    report: &mut Report,
) -> Option<Config> {
    let root = View::new(document, &Origin::Whole, String::new());
    let folder = Folder(folder);
    let inline = root
        .table("gateway")
        .and_then(|it| it.bool("allow_inline_secrets"))
        .unwrap_or(false);
    let limits = process::limits(&root, report);
    let gateway = process::gateway(&root, &folder, report);
    let identity = process::identity(&root, &folder, gateway.as_ref(), report);
    let admin = process::admin(&root, &folder, inline, report);
    let telemetry = process::telemetry(&root, report);
    route::references(&root, report);
    let listen = listen::listeners(&root, &folder, &limits, report);
    let credentials = access::credentials(&root, &folder, report);
    let grants = access::grants(&root, &listen, report);
    let routes = route::routes(&root, &listen, &limits, report);
    access::cross(&root, &listen, &credentials, &routes, report);
    graph::cycles(&root, &listen, &routes, report);
    shared::filters(&routes, report);
    let limits = process::fit_open_files(&root, limits, &listen, report);
    memory::check(&root, &listen, &routes, input.allow_overcommit, report);
    Some(Config {
        gateway: gateway?,
        identity: identity?,
        listen: listen.into_iter().map(|it| it.listen).collect(),
        routes: routes.into_iter().map(|it| it.config).collect(),
        credentials: credentials.into_iter().map(|it| it.0).collect(),
        grants,
        limits,
        admin: admin?,
        telemetry,
    })
}

/// The password files that the document names.
pub(crate) fn credential_files(document: &Table, folder: &Path) -> Vec<std::path::PathBuf> {
    let root = View::new(document, &Origin::Whole, String::new());
    let tables = root.tables("credential");
    tables
        .iter()
        .filter_map(|it| it.text("file"))
        .map(|it| Folder(folder).path(it.text))
        .collect()
}

/// One line about a good configuration: what it has, and the most memory its clients may make it hold.
#[must_use]
pub fn summary(config: &Config) -> String {
    let plural =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let sessions: u64 = config
        .mqtt_listeners()
        .map(|(_, mqtt)| memory::worst_case(mqtt))
        .sum();
    let buffers: u64 = config
        .routes
        .iter()
        .map(|route| route.buffer.bytes as u64)
        .sum();
    format!(
        "{}, {}, {}; at worst {} for sessions and {} for routes",
        plural(config.listen.len(), "listener"),
        plural(config.routes.len(), "route"),
        plural(config.grants.len(), "grant"),
        memory::about(sessions),
        memory::about(buffers),
    )
}

/// The folder that relative paths start from.
pub(crate) struct Folder<'a>(&'a Path);

impl Folder<'_> {
    /// The path as written, from the folder of the file when it is relative; `${CREDENTIALS_DIRECTORY}` at its start is
    /// the only expansion that exists.
    pub(crate) fn path(&self, text: &str) -> std::path::PathBuf {
        if let Some(rest) = text.strip_prefix("${CREDENTIALS_DIRECTORY}/")
            && let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY")
        {
            return Path::new(&folder).join(rest);
        }
        self.0.join(text)
    }
}
