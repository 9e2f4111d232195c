//! Laws of the workspace: who may import whom, one version of what must be one, which files must exist.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod files;
mod graph;
