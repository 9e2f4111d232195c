//! Files that the configuration names: secrets, keys, certificates.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::super::report::{Report, Severity};
use super::super::tree::Origin;
use super::super::valid::Secret;
use super::view::View;
use super::{Folder, validity};

/// Largest secret or PEM file that is read whole.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Below this a certificate's end is worth a warning.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// Reads a small file, or reports why not.
pub(super) fn read(path: &Path, at: &Origin, key: &str, report: &mut Report) -> Option<Vec<u8>> {
    let fail = |message: String, report: &mut Report| {
        report.error("E013", at, key, message, None);
        None
    };
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            return fail(format!("{} is a folder", path.display()), report);
        }
        Ok(meta) if meta.len() > MAX_FILE_BYTES => {
            return fail(format!("{} has more than 1 MiB", path.display()), report);
        }
        Ok(_) | Err(_) => {}
    }
    match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) => fail(format!("can't read {}: {error}", path.display()), report),
    }
}

/// Refuses a file that everybody on the machine may read.
pub(super) fn private(path: &Path, at: &Origin, key: &str, report: &mut Report) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let Ok(meta) = std::fs::metadata(path) else {
            return;
        };
        if meta.permissions().mode() & 0o007 != 0 {
            let message = format!("everybody on this machine can read {}", path.display());
            let help = format!("chmod o-rwx {}", path.display());
            report.error("E012", at, key, message, help);
        }
    }
}

/// A secret in one of its three forms: `x_file`, `x_env`, or inline when that is allowed. `[gateway.md 2.1]`
pub(super) fn secret(
    view: &View<'_>,
    name: &str,
    folder: &Folder<'_>,
    inline: bool,
    report: &mut Report,
) -> Option<Secret> {
    let (file_key, env_key) = (format!("{name}_file"), format!("{name}_env"));
    let given: Vec<&str> = [name, &file_key, &env_key]
        .into_iter()
        .filter(|key| view.has(key))
        .collect();
    if let [first, .., last] = given[..] {
        let message = format!("`{name}` is given twice: `{first}` and `{last}`");
        let help = "exactly one form of a secret".to_owned();
        report.about_secret(
            "E012",
            Severity::Error,
            view.key_at(last),
            &view.key_path(last),
            message,
            help,
        );
        return None;
    }
    if let Some(text) = view.text(name) {
        let path = view.key_path(name);
        if !inline {
            let message = format!("`{name}` is a secret and stands in the file");
            let help = format!("use `{file_key}`, or say `gateway.allow_inline_secrets = true`");
            // The key is pointed at, never the value: the report may end in a log.
            report.about_secret(
                "E012",
                Severity::Error,
                view.key_at(name),
                &path,
                message,
                help,
            );
            return None;
        }
        let message = format!("`{name}` stands in the file: whoever reads the file knows it");
        report.about_secret(
            "W001",
            Severity::Warning,
            view.key_at(name),
            &path,
            message,
            None,
        );
        return Some(Secret::new(text.text.to_owned()));
    }
    if let Some(text) = view.text(&env_key) {
        return match std::env::var(text.text) {
            Ok(value) if !value.is_empty() => Some(Secret::new(value)),
            Ok(_) | Err(_) => {
                let message = format!("the environment variable {} is not set", text.text);
                report.error("E013", text.at, &view.key_path(&env_key), message, None);
                None
            }
        };
    }
    let text = view.text(&file_key)?;
    let (path, key) = (folder.path(text.text), view.key_path(&file_key));
    let bytes = read(&path, text.at, &key, report)?;
    private(&path, text.at, &key, report);
    let Ok(mut value) = String::from_utf8(bytes) else {
        report.error(
            "E013",
            text.at,
            &key,
            format!("{} is not UTF-8", path.display()),
            None,
        );
        return None;
    };
    if value.ends_with('\n') {
        value.pop();
    }
    if value.is_empty() {
        report.error(
            "E013",
            text.at,
            &key,
            format!("{} is empty", path.display()),
            None,
        );
        return None;
    }
    Some(Secret::new(value))
}

/// Certificates of a PEM file: at least one, none of them over.
pub(super) fn certificates(
    path: &Path,
    at: &Origin,
    key: &str,
    report: &mut Report,
) -> Option<Vec<CertificateDer<'static>>> {
    let bytes = read(path, at, key, report)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.unwrap_or_default();
    let Some(leaf) = chain.first() else {
        let message = format!("{} holds no PEM certificate", path.display());
        report.error("E025", at, key, message, None);
        return None;
    };
    match validity::not_after(leaf) {
        None => {
            let message = format!("the first certificate of {} is malformed", path.display());
            report.error("E025", at, key, message, None);
            return None;
        }
        Some(end) => match end.duration_since(SystemTime::now()) {
            Err(_) => {
                let message = format!(
                    "the certificate in {} is over since {}",
                    path.display(),
                    day(end)
                );
                report.error("E027", at, key, message, "renew it".to_owned());
            }
            Ok(left) if left < SOON => {
                let days = left.as_secs() / 86_400;
                let message = format!(
                    "the certificate in {} ends on {} ({days} days)",
                    path.display(),
                    day(end)
                );
                report.warn("W011", at, key, message, "renew it".to_owned());
            }
            Ok(_) => {}
        },
    }
    Some(chain)
}

fn day(time: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.split('T').next().unwrap_or_default().to_owned()
}

/// A chain and its key: readable, of each other.
pub(super) fn pair(
    chain: &Path,
    key: &Path,
    chain_at: (&View<'_>, &str),
    key_at: (&View<'_>, &str),
    report: &mut Report,
) {
    let place = |(view, name): (&View<'_>, &str)| (view.at(name).clone(), view.key_path(name));
    let ((chain_origin, chain_key), (key_origin, key_key)) = (place(chain_at), place(key_at));
    let certificates = certificates(chain, &chain_origin, &chain_key, report);
    let Some(bytes) = read(key, &key_origin, &key_key, report) else {
        return;
    };
    let Ok(private) = PrivateKeyDer::from_pem_slice(&bytes) else {
        let message = format!("{} holds no PEM private key", key.display());
        report.error("E025", &key_origin, &key_key, message, None);
        return;
    };
    let Some(certificates) = certificates else {
        return;
    };
    let provider = rustls::crypto::ring::default_provider();
    match CertifiedKey::from_der(certificates, private, &provider) {
        Ok(_) => {}
        Err(rustls::Error::InconsistentKeys(_)) => {
            let message = format!("{} is not the key of {}", key.display(), chain.display());
            report.error("E026", &key_origin, &key_key, message, None);
        }
        Err(error) => {
            let message = format!("{} can't be used: {error}", key.display());
            report.error("E025", &key_origin, &key_key, message, None);
        }
    }
}

/// The hard limit of open files, which the process raises itself to at start.
pub(super) fn open_file_limit() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
