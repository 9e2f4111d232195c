//! Negotiation: a pure function of the two HELLOs, run by each side alone. [wire 5.2]

use weida_core::{Error, GuaranteeError, GuaranteeSet, codes};

use crate::{error::EncodeError, header::Hello};

/// Capability 1: the side reads DATAGRAM frames and FLOW streams.
pub const CAPABILITY_DATAGRAM: u64 = 1;
/// Capability 2: the side reads and sends one REPORT stream; QUIC only.
pub const CAPABILITY_PATH_REPORT: u64 = 2;

/// What holds on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Highest version both speak.
    pub version: u64,
    /// Largest header the peer accepts, in bytes; bounds what is sent, not what is received.
    pub send_max_header_bytes: u64,
    /// The weaker of the two offers.
    pub guarantees: GuaranteeSet,
    /// Whether flows and datagrams may be sent.
    pub datagrams: bool,
    /// Whether each side sends one REPORT stream.
    pub path_report: bool,
}

/// Why two sides cannot talk. The connection is closed with NEGOTIATION_FAILED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NegotiateError {
    /// No version in common.
    #[error("no common version")]
    NoCommonVersion,
    /// The peer requires a capability this side does not list.
    #[error("the peer requires capability {capability}")]
    UnsupportedRequiredCapability {
        /// Its code.
        capability: u64,
    },
    /// A dimension without a weaker of two differs.
    #[error("guarantees cannot be compared")]
    Incomparable(#[source] GuaranteeError),
    /// What both can honour does not reach what one requires.
    #[error("{} not reached by what both offer", if *.peers_requirement { "the peer's requirement is" } else { "our requirement is" })]
    GuaranteeNotOffered {
        /// Whether it is the peer's requirement.
        peers_requirement: bool,
    },
}

/// Evaluates both HELLOs. Both sides come to the same verdict.
///
/// # Errors
///
/// [`NegotiateError`], the first step that fails.
pub fn negotiate(ours: &Hello, theirs: &Hello) -> Result<Agreed, NegotiateError> {
    let common = ours
        .versions
        .iter()
        .filter(|version| theirs.versions.contains(version));
    let version = *common.max().ok_or(NegotiateError::NoCommonVersion)?;
    for &capability in &theirs.required_capabilities {
        if !ours.capabilities.contains(&capability) {
            return Err(NegotiateError::UnsupportedRequiredCapability { capability });
        }
    }
    let guarantees = ours
        .offered
        .intersect(&theirs.offered)
        .map_err(NegotiateError::Incomparable)?;
    for (required, peers_requirement) in [(&theirs.required, true), (&ours.required, false)] {
        if !guarantees.reaches(required) {
            return Err(NegotiateError::GuaranteeNotOffered { peers_requirement });
        }
    }
    let both = |code| ours.capabilities.contains(&code) && theirs.capabilities.contains(&code);
    Ok(Agreed {
        version,
        send_max_header_bytes: theirs.max_header_bytes,
        guarantees,
        datagrams: both(CAPABILITY_DATAGRAM),
        path_report: both(CAPABILITY_PATH_REPORT),
    })
}

impl Agreed {
    /// Refuses a header the peer would close the connection over.
    ///
    /// # Errors
    ///
    /// [`EncodeError::HeaderTooLarge`].
    pub const fn check_header_len(&self, header_bytes: usize) -> Result<(), EncodeError> {
        if header_bytes as u64 > self.send_max_header_bytes {
            return Err(EncodeError::HeaderTooLarge {
                header_bytes,
                max_bytes: self.send_max_header_bytes,
            });
        }
        Ok(())
    }
}

impl NegotiateError {
    /// The application code the connection is closed with.
    pub const fn close_code(&self) -> u64 {
        codes::NEGOTIATION_FAILED
    }
}

impl From<NegotiateError> for Error {
    fn from(error: NegotiateError) -> Self {
        Self::Negotiation(match error {
            NegotiateError::Incomparable(rule) => format!("{error}: {rule}"),
            _ => error.to_string(),
        })
    }
}
