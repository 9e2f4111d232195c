//! Checked `[[credential]]` and `[[grant]]` tables: who may do what, denied by default. `[gateway.md 11] [mqtt 9.2]`

use std::path::PathBuf;
use std::sync::Arc;

use weida_core::Fingerprint;

/// A password file that `weida-gateway passwd` edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// One `NAME:$argon2id$...` line per user; readable by its owner only.
    pub file: PathBuf,
}

/// One `[[grant]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Whom it is about; any of them.
    pub who: Vec<Who>,
    /// On which listener; none = on every one.
    pub listen: Option<Arc<str>>,
    /// What may be published (MQTT filters), or pushed and requested (weida paths).
    pub publish: Vec<Allow>,
    /// What may not be published although `publish` allows it. MQTT only.
    pub deny_publish: Vec<Allow>,
    /// What may be subscribed to: MQTT filters, weida paths.
    pub subscribe: Vec<Allow>,
    /// What may not be subscribed to although `subscribe` allows it. MQTT only.
    pub deny_subscribe: Vec<Allow>,
    /// Topics of wills; none = as `publish`.
    pub will: Option<Vec<Allow>>,
    /// Client ids allowed, `*` at the end and `{user}` expand; none = any.
    pub client_id: Option<Vec<Box<str>>>,
    /// What one MQTT session may publish; none = no limit.
    pub rate: Option<Rate>,
}

/// `grant.rate`: what one session may publish, each with a burst of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Messages; none = no limit.
    pub messages_per_second: Option<u32>,
    /// Bytes; none = no limit.
    pub bytes_per_second: Option<u64>,
}

impl Grant {
    /// Whether it holds on the listener of that name.
    #[must_use]
    pub fn holds_on(&self, listener: &str) -> bool {
        self.listen.as_deref().is_none_or(|name| name == listener)
    }

    /// Whether a weida peer may push or request at `path`.
    #[must_use]
    pub fn weida_may_publish(&self, path: &str) -> bool {
        self.publish.iter().any(|allow| allow.is_path(path))
    }

    /// Whether a weida peer may subscribe at `path`.
    #[must_use]
    pub fn weida_may_subscribe(&self, path: &str) -> bool {
        self.subscribe.iter().any(|allow| allow.is_path(path))
    }
}

/// A pattern in the syntax of the listener: an MQTT filter (with `{user}`, `{client_id}`, `{tenant}`), a weida path or
/// `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow(Box<str>);

impl Allow {
    /// A pattern that the check accepted.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// As written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it allows that weida path.
    #[must_use]
    pub fn is_path(&self, path: &str) -> bool {
        &*self.0 == "*" || &*self.0 == path
    }
}

/// Whom a grant is about. `[gateway.md 2.2]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// `user:NAME`, `user:PREFIX*`, `user:*`: accepted by password.
    User(Glob),
    /// `cert:<sha256 of SPKI>`: accepted by that key.
    Cert(Glob),
    /// `cert-subject:CN=NAME` or `cert-subject:NAME` for the first SAN.
    CertSubject(Glob),
    /// `peer:sha256:...`: a weida peer that proved this key.
    Peer(Fingerprint),
    /// `peer:*`: a weida peer that proved any key.
    AnyPeer,
    /// `anonymous`: nobody proved anything.
    Anonymous,
}

impl Who {
    /// Whether it names the weida peer that proved `key`, or, with none, the anonymous one.
    #[must_use]
    pub fn is_peer(&self, key: Option<Fingerprint>) -> bool {
        match (self, key) {
            (Self::Peer(wanted), Some(key)) => *wanted == key,
            (Self::AnyPeer, Some(_)) | (Self::Anonymous, None) => true,
            _ => false,
        }
    }

    /// Whether it names the principal that an adapter accepted: `user:NAME`, `cert:<sha256>`, `anonymous`; `subjects`
    /// are the names in its certificate.
    #[must_use]
    pub fn is_principal(&self, principal: &str, subjects: &[&str]) -> bool {
        match self {
            Self::User(glob) => principal
                .strip_prefix("user:")
                .is_some_and(|it| glob.matches(it)),
            Self::Cert(glob) => principal
                .strip_prefix("cert:")
                .is_some_and(|it| glob.matches(it)),
            Self::CertSubject(glob) => {
                principal.starts_with("cert:") && subjects.iter().any(|it| glob.matches(it))
            }
            Self::Anonymous => principal == "anonymous",
            Self::Peer(_) | Self::AnyPeer => false,
        }
    }
}

/// A name, or with a trailing `*` every name that begins with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    prefix: bool,
}

impl Glob {
    /// Reads `NAME` or `PREFIX*`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.strip_suffix('*').map_or_else(
            || Self {
                text: text.into(),
                prefix: false,
            },
            |head| Self {
                text: head.into(),
                prefix: true,
            },
        )
    }

    /// Whether it names `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if self.prefix {
            name.starts_with(&*self.text)
        } else {
            *self.text == *name
        }
    }

    /// The text without the `*`, and whether there was one.
    #[must_use]
    pub fn parts(&self) -> (&str, bool) {
        (&self.text, self.prefix)
    }
}
