//! Grants as configuration states them: who, where, which filters, which ClientIDs. [mqtt 9.2]

use crate::codec::{FilterError, TopicFilter};

/// One `[[grant]]`: the first whose `who` and `listen` match decides alone. [mqtt 9.2]
#[derive(Debug, Clone, Default)]
pub struct Grant {
    /// Principals it speaks about.
    pub who: Vec<Who>,
    /// Listener it holds on, or `None` for every one.
    pub listen: Option<Box<str>>,
    /// Topics that may be published.
    pub publish: Vec<GrantFilter>,
    /// Topics that may not, whatever `publish` says.
    pub deny_publish: Vec<GrantFilter>,
    /// Filters that may be subscribed.
    pub subscribe: Vec<GrantFilter>,
    /// Filters that may not; one that only intersects is applied to every copy.
    pub deny_subscribe: Vec<GrantFilter>,
    /// Topics that may be retained; `None` = as `publish`.
    pub retain: Option<Vec<GrantFilter>>,
    /// Topics a will may have; `None` = as `publish`.
    pub will: Option<Vec<GrantFilter>>,
    /// ClientIDs that may be used; `None` = any.
    pub client_id: Option<Vec<Glob>>,
    /// Publish rate of one session.
    pub rate: Option<PublishRate>,
}

/// A publish rate of one session; excess stops reading its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishRate {
    /// Messages per second, burst as many. 0 = not limited.
    pub messages_per_second: u32,
    /// Payload bytes per second, burst as many. 0 = not limited.
    pub bytes_per_second: u64,
}

/// Which principals a grant speaks about: exact, or a prefix when it ends in `*`.
///
/// The classes are `user:`, `cert:`, `cert-subject:`, `uid:` and the word `anonymous`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who(Box<str>);

impl Who {
    /// Takes the text of the configuration.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `principal` is meant. The class before the colon never matches by wildcard.
    pub fn matches(&self, principal: &str) -> bool {
        match self.0.strip_suffix('*') {
            None => *self.0 == *principal,
            Some(prefix) => prefix.contains(':') && principal.starts_with(prefix),
        }
    }
}

/// A filter of a grant that may hold `{user}`, `{client_id}`, `{tenant}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantFilter {
    pattern: Box<str>,
    expands: bool,
}

impl GrantFilter {
    /// Checks the filter with its variables standing for ordinary text.
    ///
    /// # Errors
    ///
    /// [`FilterError`] when the text cannot become a filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let sample = VARIABLES
            .iter()
            .fold(text.to_owned(), |t, v| t.replace(v, "x"));
        TopicFilter::parse(&sample)?;
        Ok(Self {
            pattern: text.into(),
            expands: VARIABLES.iter().any(|v| text.contains(v)),
        })
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// The filter for one connection, or `None` when a value it needs is absent or carries
    /// `/`, `+`, `#` or NUL: such a value never matches an expanding pattern.
    pub(crate) fn expand(&self, values: &Values<'_>) -> Option<TopicFilter> {
        if !self.expands {
            return TopicFilter::parse(&self.pattern).ok();
        }
        let text = expand(&self.pattern, values, |v| {
            !v.contains(['/', '+', '#', '\0'])
        })?;
        TopicFilter::parse(&text).ok()
    }
}

/// A ClientID pattern: `*` stands for any run of characters. [mqtt 9.4]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Box<str>);

impl Glob {
    /// Takes the text of the configuration, `{user}` and `{tenant}` included.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `client_id` fits. A value with a `*` of its own never expands.
    pub(crate) fn matches(&self, client_id: &str, values: &Values<'_>) -> bool {
        let safe = |value: &str| !value.contains(['/', '+', '#', '\0', '*']);
        expand(&self.0, values, safe).is_some_and(|pattern| glob(&pattern, client_id))
    }
}

/// What the variables of a pattern stand for on one connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Values<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) client_id: Option<&'a str>,
    pub(crate) tenant: Option<&'a str>,
}

const VARIABLES: [&str; 3] = ["{user}", "{client_id}", "{tenant}"];

fn expand(pattern: &str, values: &Values<'_>, safe: impl Fn(&str) -> bool) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let tail = &rest[open..];
        let found = VARIABLES.iter().find(|v| tail.starts_with(**v));
        let Some(variable) = found else {
            out.push('{');
            rest = &tail[1..];
            continue;
        };
        let value = match *variable {
            "{user}" => values.user,
            "{client_id}" => values.client_id,
            _ => values.tenant,
        }?;
        if value.is_empty() || !safe(value) {
            return None;
        }
        out.push_str(value);
        rest = &tail[variable.len()..];
    }
    out.push_str(rest);
    Some(out)
}

/// Iterative glob with one backtrack point: linear in practice, never recursive.
fn glob(pattern: &str, text: &str) -> bool {
    let (p, t) = (pattern.as_bytes(), text.as_bytes());
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < t.len() {
        match p.get(i) {
            Some(b'*') => {
                star = Some((i, j));
                i += 1;
            }
            Some(byte) if *byte == t[j] => {
                i += 1;
                j += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    i = at + 1;
                    j = from + 1;
                }
                None => return false,
            },
        }
    }
    p[i..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Values<'_> {
        Values {
            user: Some(name),
            ..Values::default()
        }
    }

    #[test]
    fn who_never_matches_across_classes() {
        assert!(Who::new("user:press-*").matches("user:press-7"));
        assert!(Who::new("anonymous").matches("anonymous"));
        assert!(!Who::new("*").matches("user:press-7"));
        assert!(!Who::new("user:press").matches("user:press-7"));
        assert!(!Who::new("cert:*").matches("cert-subject:x"));
    }

    /// A login that carries wildcard bytes never matches an expanding pattern.
    #[test]
    fn expansion_cannot_inject_a_wildcard() {
        let filter = GrantFilter::parse("sensors/{user}/#").unwrap();
        let expanded = filter.expand(&user("press-7")).unwrap();
        assert_eq!(expanded.as_str(), "sensors/press-7/#");
        for hostile in ["+", "#", "a/b", "", "a\0"] {
            assert!(filter.expand(&user(hostile)).is_none(), "{hostile:?}");
        }
        assert!(filter.expand(&Values::default()).is_none());
    }

    #[test]
    fn client_id_globs() {
        assert!(Glob::new("{user}-*").matches("press-7-a", &user("press-7")));
        assert!(Glob::new("{user}").matches("press-7", &user("press-7")));
        assert!(!Glob::new("{user}").matches("press-8", &user("press-7")));
        assert!(!Glob::new("{user}-*").matches("anything-x", &user("*")));
        assert!(Glob::new("a*b*c").matches("a1b2b3c", &Values::default()));
        assert!(!Glob::new("a*b*c").matches("a1b2b3", &Values::default()));
    }
}
