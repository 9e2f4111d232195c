//! Where the binaries of this workspace are.

use std::path::PathBuf;

/// The path of a binary of this workspace, built into the same target directory and profile as the running test.
///
/// # Errors
/// [`MissingBin`], whose text names the command that builds it.
pub fn bin(name: &str) -> Result<PathBuf, MissingBin> {
    let missing = |looked: Vec<PathBuf>| MissingBin {
        name: name.to_owned(),
        looked,
    };
    let Ok(test) = std::env::current_exe() else {
        return Err(missing(Vec::new()));
    };
    // target/PROFILE/deps/TEST-HASH, or target/PROFILE/examples/NAME; the binaries stand in target/PROFILE.
    let looked: Vec<PathBuf> = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
        .collect();
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(missing(looked)),
    }
}

/// A binary that was not built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingBin {
    name: String,
    looked: Vec<PathBuf>,
}

impl std::error::Error for MissingBin {}

impl std::fmt::Display for MissingBin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let release = self
            .looked
            .iter()
            .any(|path| path.iter().any(|part| part == "release"));
        let profile = if release { " --release" } else { "" };
        write!(
            f,
            "the binary {0} was not built; run `cargo build{profile} --bin {0}` first",
            self.name
        )?;
        for (at, path) in self.looked.iter().enumerate() {
            let before = if at == 0 { " (looked for " } else { ", " };
            write!(f, "{before}{}", path.display())?;
        }
        f.write_str(if self.looked.is_empty() { "" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_names_the_command_that_builds_it() {
        let missing = bin("no-such-thing").unwrap_err().to_string();
        assert!(
            missing.contains("--bin no-such-thing` first (looked for "),
            "{missing}"
        );
    }

    #[test]
    fn a_binary_beside_the_test_is_found() {
        let test = std::env::current_exe().unwrap();
        let name = test.file_name().unwrap().to_str().unwrap();
        assert_eq!(bin(name).unwrap(), test);
    }
}
