//! `weida://[fingerprint@]host[:port]/path`.

use std::{fmt, net::Ipv6Addr, str::FromStr};

use super::{SCHEME, has_control, invalid, split};
use crate::{error::Error, identity::Fingerprint};

/// Port of every node of the set that a portless address names.
pub const DEFAULT_PORT: u16 = 7443;

/// Where to dial over QUIC, and optionally the only key to accept there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndpointAddr {
    /// DNS name or IP literal as written, IPv6 without its brackets.
    pub host: String,
    /// Port as written. `None` says that the host names a set of equivalent nodes.
    pub port: Option<u16>,
    /// Opaque endpoint path, starting with `/`.
    pub path: String,
    /// The only key accepted for this address, whatever else is trusted.
    pub peer: Option<Fingerprint>,
}

impl EndpointAddr {
    /// Parses `weida://[fingerprint@]host[:port]/path`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`], or [`Error::InvalidEndpointPath`] when only the path is wrong.
    pub fn parse(input: &str) -> Result<Self, Error> {
        let (authority, path) = split(input, SCHEME)?;
        let (peer, authority) = match authority.rsplit_once('@') {
            None => (None, authority),
            Some((key, rest)) => {
                let key = key
                    .parse()
                    .map_err(|_| invalid("`@` without a fingerprint", input))?;
                (Some(key), rest)
            }
        };
        let (host, port) = split_host(authority).ok_or_else(|| invalid("bad host", input))?;
        let port = match port {
            None => None,
            Some(text) => Some(parse_port(text).ok_or_else(|| invalid("bad port", input))?),
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            peer,
        })
    }
}

impl FromStr for EndpointAddr {
    type Err = Error;

    fn from_str(input: &str) -> Result<Self, Error> {
        Self::parse(input)
    }
}

impl fmt::Display for EndpointAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}://")?;
        if let Some(peer) = &self.peer {
            write!(f, "{peer}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

/// Host and port text. A bare IPv6 literal is refused rather than cut at its last colon.
fn split_host(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (literal, after) = rest.split_once(']')?;
        literal.parse::<Ipv6Addr>().ok()?;
        return match after {
            "" => Some((literal, None)),
            _ => Some((literal, Some(after.strip_prefix(':')?))),
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let plain = !host.is_empty() && !has_control(host) && !host.contains(['[', ']']);
    plain.then_some((host, port))
}

/// Decimal 1..=65535 without sign or leading zero.
fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !text.starts_with('0'))
        .then(|| text.parse().ok())
        .flatten()
}
