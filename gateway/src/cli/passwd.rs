//! `passwd`: edits the password file; a password comes from a terminal or stdin, never from the arguments.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use zeroize::Zeroizing;

use super::{Common, FAILED, INVALID, OK, terminal};
use crate::config::passwd::{File, MAX_PASSWORD_BYTES};
use crate::config::{Input, credential_files};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The password file, instead of the one `[[credential]]` names.
    #[arg(long, global = true, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a user or change a password; reads it from the terminal, or one line from stdin.
    Set {
        /// Name of the user.
        user: String,
    },
    /// Remove a user.
    Delete {
        /// Name of the user.
        user: String,
    },
    /// Print the names of all users.
    List,
    /// Whether a password is right: exit code 0 or 1.
    Verify {
        /// Name of the user.
        user: String,
    },
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> u8 {
    let path = match &arguments.file {
        Some(file) => file.clone(),
        None => match only_file(common) {
            Ok(file) => file,
            Err(code) => return code,
        },
    };
    match &arguments.command {
        Command::List => match read(&path) {
            Ok(file) => {
                let names: String = file.names().map(|name| format!("{name}\n")).collect();
                terminal::out_bytes(names.as_bytes())
            }
            Err(code) => code,
        },
        Command::Delete { user } => edit(&path, |file| {
            if file.delete(user) {
                Ok(())
            } else {
                Err(terminal::fail_with(format!("there is no user {user:?}")))
            }
        }),
        // The password comes first: nobody waits for another one's typing.
        Command::Set { user } => match read_password(true) {
            Ok(password) => edit(&path, |file| {
                let set = file.set(user, &password);
                set.map_err(|error| terminal::fail(&error))
            }),
            Err(code) => code,
        },
        Command::Verify { user } => {
            let verified =
                read(&path).and_then(|file| Ok(file.verify(user, &read_password(false)?)));
            match verified {
                Ok(true) => OK,
                Ok(false) => terminal::fail_with("user or password is wrong"),
                Err(code) => code,
            }
        }
    }
}

/// The users in the file; none when it is not there yet.
fn read(path: &Path) -> Result<File, u8> {
    let fail = |error: &dyn std::fmt::Display| {
        Err(terminal::fail_with(format!("{}: {error}", path.display())))
    };
    match std::fs::read(path) {
        Ok(bytes) => File::parse(&bytes).or_else(|error| fail(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(File::default()),
        Err(error) => fail(&error),
    }
}

/// Reads, changes and saves the file while nobody else does.
fn edit(path: &Path, change: impl FnOnce(&mut File) -> Result<(), u8>) -> u8 {
    let _lock = match File::lock(path) {
        Ok(lock) => lock,
        Err(error) => return terminal::fail_with(format!("{}: {error}", path.display())),
    };
    let changed = read(path).and_then(|mut file| {
        change(&mut file)?;
        file.save(path).map_err(|error| terminal::fail(&error))
    });
    changed.err().unwrap_or(OK)
}

/// The one password file of the configuration. It need not exist yet, so the configuration is not checked here.
fn only_file(common: &Common) -> Result<PathBuf, u8> {
    let files = credential_files(&Input::from_process(common.file())).map_err(|report| {
        terminal::report(&report);
        INVALID
    })?;
    match &files[..] {
        [file] => Ok(file.clone()),
        [] => Err(terminal::fail_with(
            "the configuration has no [[credential]]; give --file",
        )),
        _ => Err(terminal::fail_with(
            "the configuration has several [[credential]]; give --file",
        )),
    }
}

/// A password from the terminal, twice when it is new, or the first line of stdin.
fn read_password(new: bool) -> Result<Zeroizing<String>, u8> {
    let io =
        |error: std::io::Error| terminal::fail_with(format!("can't read the password: {error}"));
    if std::io::stdin().is_terminal() {
        let first = Zeroizing::new(rpassword::prompt_password("Password: ").map_err(io)?);
        if new {
            let second = Zeroizing::new(rpassword::prompt_password("Once more: ").map_err(io)?);
            if first != second {
                terminal::fail_with("the two passwords differ");
                return Err(FAILED);
            }
        }
        return Ok(first);
    }
    let mut line = Zeroizing::new(String::new());
    // One byte more than allowed, so that a longer one is refused and not cut.
    let bound = MAX_PASSWORD_BYTES as u64 + 2;
    std::io::stdin()
        .lock()
        .take(bound)
        .read_line(&mut line)
        .map_err(io)?;
    if line.ends_with('\n') {
        line.pop();
        if line.ends_with('\r') {
            line.pop();
        }
    }
    Ok(line)
}
