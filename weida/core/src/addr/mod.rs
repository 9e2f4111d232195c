//! Endpoint addresses: where to dial, over what, and optionally whom to accept. [wire 4]
//!
//! The transport is part of the address; nothing falls back from one to another. The endpoint path
//! is opaque: no hierarchy, no wildcards, no query, compared byte for byte.

mod local;
mod quic;

use std::{fmt, str::FromStr};

pub use local::{
    InprocAddr, MAX_BUS_BYTES, MAX_PIPE_NAME_BYTES, MAX_SOCKET_PATH_BYTES, PIPE_NAMESPACE,
    PipeAddr, UnixAddr,
};
pub use quic::{DEFAULT_PORT, EndpointAddr};

use crate::error::Error;

/// Longest endpoint path, in bytes; also the cap of DATA key 0.
pub const MAX_PATH_BYTES: usize = 512;
/// Scheme of the QUIC transport.
pub const SCHEME: &str = "weida";
/// Scheme of the in-process transport.
pub const SCHEME_INPROC: &str = "weida+inproc";
/// Scheme of the Windows named-pipe transport.
pub const SCHEME_PIPE: &str = "weida+pipe";
/// Scheme of the `AF_UNIX` transport.
pub const SCHEME_UNIX: &str = "weida+unix";

/// An address of any transport; its text form round-trips.
///
/// ```
/// use weida_core::Address;
///
/// let text = "weida+unix://%2Frun%2Fw.sock/jobs";
/// let address: Address = text.parse()?;
/// assert_eq!(address.path(), "/jobs");
/// assert_eq!(address.to_string(), text);
/// assert!(Address::parse("http://example.org/jobs").is_err());
/// # Ok::<(), weida_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `weida://[fingerprint@]host[:port]/path`.
    Quic(EndpointAddr),
    /// `weida+inproc://bus/path`: inside one process, no identity.
    Inproc(InprocAddr),
    /// `weida+unix://percent-encoded-socket/path`: the kernel proves the peer.
    Unix(UnixAddr),
    /// `weida+pipe://name/path`: parsed everywhere, usable on no platform of this build.
    Pipe(PipeAddr),
}

impl Address {
    /// Parses an address of any transport, by its case-sensitive scheme.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`], or [`Error::InvalidEndpointPath`] when only the path is wrong.
    pub fn parse(input: &str) -> Result<Self, Error> {
        let (scheme, _) = input
            .split_once("://")
            .ok_or_else(|| invalid("no scheme", input))?;
        match scheme {
            SCHEME => EndpointAddr::parse(input).map(Self::Quic),
            SCHEME_INPROC => InprocAddr::parse(input).map(Self::Inproc),
            SCHEME_UNIX => UnixAddr::parse(input).map(Self::Unix),
            SCHEME_PIPE => PipeAddr::parse(input).map(Self::Pipe),
            _ => Err(invalid("unknown scheme", input)),
        }
    }

    /// The endpoint path, whatever the transport.
    pub fn path(&self) -> &str {
        match self {
            Self::Quic(addr) => &addr.path,
            Self::Inproc(addr) => &addr.path,
            Self::Unix(addr) => &addr.path,
            Self::Pipe(addr) => &addr.path,
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(input: &str) -> Result<Self, Error> {
        Self::parse(input)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quic(addr) => addr.fmt(f),
            Self::Inproc(addr) => addr.fmt(f),
            Self::Unix(addr) => addr.fmt(f),
            Self::Pipe(addr) => addr.fmt(f),
        }
    }
}

/// Checks an endpoint path: `/` first, 1 to [`MAX_PATH_BYTES`] bytes, no byte below 0x20.
/// [weida AD-1]
///
/// # Errors
///
/// [`Error::InvalidEndpointPath`].
pub fn validate_endpoint_path(path: &str) -> Result<(), Error> {
    let fits = path.len() <= MAX_PATH_BYTES;
    if fits && path.starts_with('/') && !has_control(path) {
        Ok(())
    } else {
        Err(Error::InvalidEndpointPath)
    }
}

/// Cuts `scheme://authority/path` into authority and checked path.
fn split<'a>(input: &'a str, scheme: &str) -> Result<(&'a str, &'a str), Error> {
    let rest = input
        .strip_prefix(scheme)
        .and_then(|rest| rest.strip_prefix("://"))
        .ok_or_else(|| invalid("wrong scheme", input))?;
    let slash = rest.find('/').ok_or_else(|| invalid("no path", input))?;
    let (authority, path) = rest.split_at(slash);
    validate_endpoint_path(path)?;
    Ok((authority, path))
}

/// As [`split`], for schemes that have no key to pin. [weida AD-6]
fn split_local<'a>(input: &'a str, scheme: &str) -> Result<(&'a str, &'a str), Error> {
    let (authority, path) = split(input, scheme)?;
    if authority.contains('@') {
        return Err(invalid("a local address names no key", input));
    }
    Ok((authority, path))
}

fn has_control(text: &str) -> bool {
    text.bytes().any(|byte| byte < 0x20)
}

fn invalid(why: &str, input: &str) -> Error {
    // Escaped and cut: the text may come from anywhere and ends up in a log line.
    let shown: String = input.chars().take(200).collect();
    Error::InvalidAddress(format!("{why}: {shown:?}"))
}

#[cfg(test)]
mod tests;
