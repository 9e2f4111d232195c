//! What can fail outside a single connection, as facts with numbers.

use std::net::SocketAddr;

/// A certificate, key or CRL that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or is no PEM of the kind wanted.
    #[error("{} is no readable PEM of {what}", path.display())]
    Pem {
        /// The file.
        path: std::path::PathBuf,
        /// What was wanted of it.
        what: &'static str,
        /// What the reader said.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// A file without what it should hold.
    #[error("{} holds no {what}", path.display())]
    Empty {
        /// The file.
        path: std::path::PathBuf,
        /// What was wanted of it.
        what: &'static str,
    },
    /// The pieces do not fit together.
    #[error("certificate, key or versions are not usable")]
    Rustls(#[from] rustls::Error),
    /// The client anchors or CRLs are not usable.
    #[error("client anchors or revocation lists are not usable")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// A listener that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("listener {listener:?} cannot bind {addr}")]
pub struct BindError {
    /// Which listener.
    pub listener: Box<str>,
    /// Which address.
    pub addr: SocketAddr,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// Why a running adapter ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A listener could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system takes no more connections on this address.
    #[error("listener {listener:?} stopped accepting")]
    Accept {
        /// Which listener.
        listener: Box<str>,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}
