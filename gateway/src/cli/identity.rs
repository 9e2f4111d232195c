//! `identity init` and `identity show`. `[gateway.md 3]`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, OK, terminal};
use crate::config::valid;
use crate::identity;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a new key; an existing one is never overwritten.
    Init(Place),
    /// Print the fingerprint: the line for a peer's trust list.
    Show(Show),
}

#[derive(Debug, Args)]
struct Place {
    /// The key file, instead of the one the configuration names.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Show {
    #[command(flatten)]
    place: Place,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(common: &Common, arguments: &Arguments) -> u8 {
    match &arguments.command {
        Command::Init(place) => init(common, place),
        Command::Show(show) => self::show(common, show),
    }
}

fn files(common: &Common, place: &Place) -> Result<valid::Identity, u8> {
    match &place.key_file {
        Some(file) => Ok(valid::Identity {
            key_file: file.clone(),
            cert_file: None,
            trust: Vec::new(),
        }),
        None => common.load().map(|(config, _)| config.identity),
    }
}

fn init(common: &Common, place: &Place) -> u8 {
    let files = match files(common, place) {
        Ok(files) => files,
        Err(code) => return code,
    };
    match identity::create(&files.key_file) {
        Ok(fingerprint) => {
            terminal::note(format!("wrote {}", files.key_file.display()));
            terminal::out(fingerprint)
        }
        Err(error) => terminal::fail(&error),
    }
}

fn show(common: &Common, show: &Show) -> u8 {
    let files = match files(common, &show.place) {
        Ok(files) => files,
        Err(code) => return code,
    };
    let shown = identity::load(&files).and_then(|identity| {
        let key = |source| identity::IdentityError::Key {
            path: files.key_file.clone(),
            source,
        };
        Ok((
            identity.fingerprint().map_err(key)?,
            identity.certificate_pem().map_err(key)?,
        ))
    });
    match shown {
        Ok((fingerprint, certificate)) if show.json => terminal::out(serde_json::json!({
            "schema": 1,
            "fingerprint": fingerprint.to_string(),
            "key_file": files.key_file,
            "certificate": certificate,
        })),
        Ok((fingerprint, _)) => {
            terminal::out(fingerprint);
            OK
        }
        Err(error) => terminal::fail(&error),
    }
}
