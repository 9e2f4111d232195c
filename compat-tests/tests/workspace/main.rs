//! Laws of the workspace: who may import whom, one version of what must be one, which files must exist.

mod files;
mod graph;
