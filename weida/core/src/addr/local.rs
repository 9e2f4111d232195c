//! Addresses of the transports that stay on one machine.

use std::{fmt, str::FromStr};

use super::{SCHEME_INPROC, SCHEME_PIPE, SCHEME_UNIX, has_control, invalid, split_local};
use crate::{error::Error, identity::hex_digit};

/// Longest in-process bus name, in bytes.
pub const MAX_BUS_BYTES: usize = 256;
/// Longest pipe name, in bytes, without the namespace.
pub const MAX_PIPE_NAME_BYTES: usize = 256;
/// Longest socket path after decoding, in bytes: `sun_path` without its terminating NUL.
pub const MAX_SOCKET_PATH_BYTES: usize = if cfg!(target_os = "macos") { 103 } else { 107 };
/// The namespace every pipe lives in; an address never names another machine.
pub const PIPE_NAMESPACE: &str = r"\\.\pipe\";

/// `weida+inproc://bus/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InprocAddr {
    /// Bus name, unique in the process, 1 to [`MAX_BUS_BYTES`] bytes.
    pub bus: String,
    /// Opaque endpoint path, starting with `/`.
    pub path: String,
}

/// `weida+unix://percent-encoded-socket/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnixAddr {
    /// Socket path, decoded, 1 to [`MAX_SOCKET_PATH_BYTES`] bytes; may be relative.
    pub socket: String,
    /// Opaque endpoint path, starting with `/`.
    pub path: String,
}

/// `weida+pipe://name/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PipeAddr {
    /// Pipe name without [`PIPE_NAMESPACE`], 1 to [`MAX_PIPE_NAME_BYTES`] bytes.
    pub name: String,
    /// Opaque endpoint path, starting with `/`.
    pub path: String,
}

// === impl InprocAddr ===

impl InprocAddr {
    /// Parses `weida+inproc://bus/path`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`], or [`Error::InvalidEndpointPath`] when only the path is wrong.
    pub fn parse(input: &str) -> Result<Self, Error> {
        let (bus, path) = split_local(input, SCHEME_INPROC)?;
        if bus.is_empty() || bus.len() > MAX_BUS_BYTES || has_control(bus) {
            return Err(invalid("bad bus name", input));
        }
        Ok(Self {
            bus: bus.to_owned(),
            path: path.to_owned(),
        })
    }
}

impl FromStr for InprocAddr {
    type Err = Error;

    fn from_str(input: &str) -> Result<Self, Error> {
        Self::parse(input)
    }
}

impl fmt::Display for InprocAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME_INPROC}://{}{}", self.bus, self.path)
    }
}

// === impl UnixAddr ===

impl UnixAddr {
    /// Parses `weida+unix://percent-encoded-socket/path`; the cap holds after decoding.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`], or [`Error::InvalidEndpointPath`] when only the path is wrong.
    pub fn parse(input: &str) -> Result<Self, Error> {
        let (encoded, path) = split_local(input, SCHEME_UNIX)?;
        let socket = percent_decode(encoded)
            .filter(|socket| !socket.is_empty() && !socket.contains('\0'))
            .ok_or_else(|| invalid("bad socket path", input))?;
        if socket.len() > MAX_SOCKET_PATH_BYTES {
            return Err(invalid("socket path is too long", input));
        }
        Ok(Self {
            socket,
            path: path.to_owned(),
        })
    }
}

impl FromStr for UnixAddr {
    type Err = Error;

    fn from_str(input: &str) -> Result<Self, Error> {
        Self::parse(input)
    }
}

impl fmt::Display for UnixAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME_UNIX}://")?;
        for byte in self.socket.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        f.write_str(&self.path)
    }
}

// === impl PipeAddr ===

impl PipeAddr {
    /// Parses `weida+pipe://name/path`. The name is not percent-decoded.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`], or [`Error::InvalidEndpointPath`] when only the path is wrong.
    pub fn parse(input: &str) -> Result<Self, Error> {
        let (name, path) = split_local(input, SCHEME_PIPE)?;
        let fits = (1..=MAX_PIPE_NAME_BYTES).contains(&name.len());
        if !fits || has_control(name) || name.contains('\\') {
            return Err(invalid("bad pipe name", input));
        }
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The operating system's name of the pipe.
    pub fn os_path(&self) -> String {
        format!("{PIPE_NAMESPACE}{}", self.name)
    }
}

impl FromStr for PipeAddr {
    type Err = Error;

    fn from_str(input: &str) -> Result<Self, Error> {
        Self::parse(input)
    }
}

impl fmt::Display for PipeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME_PIPE}://{}{}", self.name, self.path)
    }
}

/// `None` for a broken escape or bytes that are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?,
            literal => literal,
        });
    }
    String::from_utf8(decoded).ok()
}
