//! What the dialling commands share: terms, the client's own key, the end of the process.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use weida::{ClientTls, Identity, Runtime, RuntimeConfig, Trust};

use crate::args::DialArgs;
use crate::exit::Failure;

/// How long finished transfers may take to reach the peer's transport before the process exits.
const DRAIN: Duration = Duration::from_secs(5);

/// A runtime on the ambient reactor.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Runtime::new(RuntimeConfig::default())
        .map_err(|error| Failure::usage(format!("cannot start: {error}")))
}

/// Dials, for at most as long as the options say.
pub(crate) async fn dial(
    args: &DialArgs,
    url: &str,
    connect: impl Future<Output = Result<(), weida::Error>>,
) -> Result<(), Failure> {
    match tokio::time::timeout(Duration::from_secs(args.connect_timeout), connect).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::dial(url, &error)),
        Err(_) => Err(Failure::silent(url, args.connect_timeout)),
    }
}

/// Lets finished transfers arrive, then closes.
pub(crate) async fn finish(runtime: Runtime) {
    let drained = runtime.drain(DRAIN).await;
    if drained.outstanding > 0 {
        tracing::warn!(
            outstanding = drained.outstanding,
            "transfers had not reached the peer's transport"
        );
    }
}

/// On whose terms a command dials.
pub(crate) fn terms(dial: &DialArgs) -> Result<ClientTls, Failure> {
    let trust = match &dial.ca {
        // Opened here: a missing file is a local mistake, not a failed connection.
        Some(path) => {
            let pem = std::fs::read(path).map_err(|error| Failure::file("read", path, error))?;
            // Else a fingerprint in the address would hide that the file anchors nothing.
            let mut anchors = CertificateDer::pem_slice_iter(&pem);
            if !matches!(anchors.next(), Some(Ok(_))) {
                let path = path.display();
                return Err(Failure::usage(format!("{path} holds no certificate")));
            }
            Trust::anchor(pem)
        }
        None => Trust::by_address(),
    };
    let tls = ClientTls::new(trust);
    Ok(match &dial.identity {
        Some(path) => tls.with_identity(load_or_create(path)?),
        None => tls,
    })
}

/// Loads a key and its certificate, or creates them in a file that only the owner can read.
pub(crate) fn load_or_create(path: &Path) -> Result<Identity, Failure> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(file) => create(path, file),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let identity = Identity::from_pem_file(path);
            identity.fingerprint().map_err(|error| {
                Failure::usage(format!("{} is no usable identity: {error}", path.display()))
            })?;
            Ok(identity)
        }
        Err(error) => Err(Failure::file("create", path, error)),
    }
}

fn create(path: &Path, mut file: File) -> Result<Identity, Failure> {
    let made = Identity::generate_for(["localhost", "127.0.0.1", "::1"])
        .and_then(|identity| identity.to_pem().map(|pem| (identity, pem)));
    let (identity, pem) =
        made.map_err(|error| Failure::usage(format!("cannot create an identity: {error}")))?;
    file.write_all(pem.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| Failure::file("write", path, error))?;
    Ok(identity)
}
