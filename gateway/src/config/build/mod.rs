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
    let listen = listen::listeners(&root, &folder, &limits, report);
    let credentials = access::credentials(&root, &folder, report);
    let grants = access::grants(&root, &listen, report);
    let routes = route::routes(&root, &listen, &limits, report);
    access::cross(&root, &listen, &credentials, &routes, report);
    graph::cycles(&root, &listen, &routes, report);
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
