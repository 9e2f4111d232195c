//! Endpoint paths: opaque, exact names of endpoints. [weida AD-1]

use std::{borrow::Borrow, fmt, ops::Deref};

use crate::{addr::validate_endpoint_path, error::Error, text::Text};

/// A checked endpoint path: `/` first, 1 to 512 bytes, no byte below 0x20; cloning shares the text.
///
/// Everything else is allowed and means nothing: `*`, `..`, `%20` are plain bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointPath(Text);

impl EndpointPath {
    /// Checks the rules of a local path and takes the text over.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidEndpointPath`].
    pub fn new(text: impl Into<Text>) -> Result<Self, Error> {
        let text = text.into();
        validate_endpoint_path(&text)?;
        Ok(Self(text))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The shared text inside.
    pub fn into_text(self) -> Text {
        self.0
    }
}

impl std::str::FromStr for EndpointPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        validate_endpoint_path(text)?;
        Ok(Self(text.into()))
    }
}

impl Deref for EndpointPath {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for EndpointPath {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for EndpointPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for EndpointPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointPath({:?})", self.as_str())
    }
}
