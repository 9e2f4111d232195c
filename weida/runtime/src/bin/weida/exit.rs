//! What went wrong, as a person reads it and as a script does (exit codes).

use std::fmt;
use std::path::Path;

use weida::Error;

use crate::text::Escaped;

/// Usage error, also clap's code.
pub(crate) const USAGE: u8 = 2;

/// Why the command stops, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            message: message.into(),
        }
    }

    /// A local file, stdin or stdout failed.
    pub(crate) fn io(action: &str, error: std::io::Error) -> Self {
        Self {
            code: 1,
            message: format!("cannot {action}: {error}"),
        }
    }

    /// A local file failed.
    pub(crate) fn file(action: &str, path: &Path, error: std::io::Error) -> Self {
        Self {
            code: 1,
            message: format!("cannot {action} {}: {error}", path.display()),
        }
    }

    /// The first dial failed: whatever the reason, no connection was established.
    pub(crate) fn dial(url: &str, error: &Error) -> Self {
        let code = match code_of(error) {
            1 => 7,
            code => code,
        };
        Self {
            code,
            message: format!("{}: {}", Escaped(url), Told(error)),
        }
    }

    /// Nobody answered the dial.
    pub(crate) fn silent(url: &str, seconds: u64) -> Self {
        Self {
            code: 7,
            message: format!(
                "{}: no answer within {seconds} s; is it serving there, and is UDP let through?",
                Escaped(url)
            ),
        }
    }

    /// An operation on a connection failed.
    pub(crate) fn weida(url: &str, error: &Error) -> Self {
        Self {
            code: code_of(error),
            message: format!("{}: {}", Escaped(url), Told(error)),
        }
    }

    /// The connection will not come back.
    pub(crate) fn gave_up(url: &str, why: &str) -> Self {
        Self {
            code: 7,
            message: format!("{}: gave up: {}", Escaped(url), Escaped(why)),
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Exit codes 3 to 7 name an outcome; 1 is everything else, `Indeterminate` on purpose among it: a script that cannot know
/// must not be told that it can.
fn code_of(error: &Error) -> u8 {
    match error {
        Error::InvalidAddress(..) | Error::InvalidFingerprint(..) | Error::InvalidEndpointPath => {
            USAGE
        }
        Error::Rejected => 3,
        Error::UnknownEndpoint => 4,
        Error::NoReply => 5,
        Error::Untrusted(..) => 6,
        Error::ConnectionLost(..) | Error::NotConnected => 7,
        _ => 1,
    }
}

/// An error and, where a person can do something about it, what.
struct Told<'a>(&'a Error);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        write!(f, "{}", Escaped(&text))?;
        match self.0 {
            Error::Untrusted(presented) => write!(
                f,
                "\nthe server presented {presented}; if that is the one you mean, put it before an '@' in the address"
            ),
            Error::Indeterminate => write!(
                f,
                "\nthe connection was lost before the peer answered: it may or may not have happened"
            ),
            Error::UnknownEndpoint => write!(f, "\nno endpoint serves this path there"),
            Error::Unsupported => write!(
                f,
                "\nthe path is served by another pattern (send meets a puller, request a replier, sub a publisher)"
            ),
            _ => Ok(()),
        }
    }
}
