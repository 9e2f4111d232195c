//! One configured route as every adapter sees it: direction, pattern, what it promises and what it loses.
//!
//! The foreign half of a route (filter, queue, subject) stands in the adapter's own configuration, keyed by [`RouteId`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::names::Template;
use crate::outcome::Level;

/// Name of a configured route; cloning is a reference count.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(Arc<str>);

impl RouteId {
    /// Takes the name as the configuration spells it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name as configured; safe as a metric label, because it comes from the configuration.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RouteId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for RouteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RouteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RouteId({})", self.0)
    }
}

/// What every adapter needs to know of one configured route.
#[derive(Debug, Clone)]
pub struct Route {
    /// Its name in configuration, metrics and logs.
    pub id: RouteId,
    /// Which side brings the messages.
    pub direction: Direction,
    /// The weida side of the route.
    pub pattern: Pattern,
    /// Whether a message may be lost or may come twice.
    pub delivery: DeliveryClass,
    /// The level at which the source is settled.
    pub ack_on: AckOn,
    /// Ingress: builds the weida topic; egress: builds the foreign name.
    pub topic: Template,
    /// True: the claims of the foreign side (login, foreign id) travel as metadata, marked unproved.
    pub labels: bool,
    /// What happens to a message that its source marked as retained.
    pub retain: RetainPolicy,
    /// Largest payload of this route, in bytes; one byte more is `too_large`.
    pub max_message_bytes: usize,
    /// Bound of a request and its reply; never `None` on a request or reply route.
    pub timeout: Option<Duration>,
    /// What is lost by configuration, for display.
    pub loss: Vec<NamedLoss>,
}

/// Which way a route runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Foreign to weida.
    Ingress,
    /// Weida to foreign.
    Egress,
}

impl Direction {
    /// The word of logs and metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// The weida side of a route. The first three are destinations, the last three sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// To the subscribers of a path bound here.
    Publish,
    /// To one puller at a dialled address.
    Push,
    /// To a replier at a dialled address; its reply goes back to the source.
    Request,
    /// From a publisher at a dialled address.
    Subscribe,
    /// From pushers that dial a path bound here.
    Pull,
    /// From requesters that dial a path bound here; the foreign answer is their reply.
    Reply,
}

impl Pattern {
    /// The side on which weida stands in this pattern.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Publish | Self::Push | Self::Request => Direction::Ingress,
            Self::Subscribe | Self::Pull | Self::Reply => Direction::Egress,
        }
    }
}

/// What a route promises when something breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryClass {
    /// A message may be lost, never repeated by us.
    AtMostOnce,
    /// A message that was settled was delivered; it may come twice.
    AtLeastOnce,
}

/// The level at which the source of a message is settled [gateway 8].
///
/// The five levels are ordered as [`Level`] is; `Reply` stands beside them and implies `Receipt` only, so this type
/// has no order of its own. [`Outcome::satisfies`](crate::Outcome::satisfies) is the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckOn {
    /// Bytes were handed to the transport, or a fan-out to its queues.
    Sent,
    /// The next transport or server answered for the bytes.
    Receipt,
    /// The next hop took responsibility in memory.
    Accepted,
    /// The next hop, or our own store, survives power loss with it.
    Stored,
    /// The consumer settled it.
    Processed,
    /// The answer of a request route arrived.
    Reply,
}

impl AckOn {
    /// The level that has to be reached; `None` for `Reply`, which no level alone gives.
    #[must_use]
    pub const fn level(self) -> Option<Level> {
        match self {
            Self::Sent => Some(Level::Sent),
            Self::Receipt => Some(Level::Receipt),
            Self::Accepted => Some(Level::Accepted),
            Self::Stored => Some(Level::Stored),
            Self::Processed => Some(Level::Processed),
            Self::Reply => None,
        }
    }
}

/// What a route does with a message that its source marked as retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RetainPolicy {
    /// The mark crosses.
    #[default]
    AsPublished,
    /// The message crosses without its mark.
    Strip,
    /// The message does not cross and counts as filtered.
    NeverForward,
}

/// One thing that a route loses because of how it is configured; shown to operators, never acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLoss {
    /// Short name, as the protocol's page lists it.
    pub name: &'static str,
    /// What exactly is lost here and why, one phrase.
    pub detail: String,
}

impl NamedLoss {
    /// Names a loss.
    #[must_use]
    pub fn new(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for NamedLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.detail)
    }
}

/// A configuration word that stands for nothing here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{got:?} is not one of {expected}")]
pub struct UnknownWord {
    /// What was written.
    pub got: String,
    /// The words there are, comma separated.
    pub expected: &'static str,
}

/// Gives a closed enum its configuration spelling, both ways.
macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+; $expected:literal) => {
        impl $type {
            /// Every value, in the order of the declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord { got: word.to_owned(), expected: $expected }),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $word,)+
                })
            }
        }
    };
}

words!(Pattern: Publish = "publish", Push = "push", Request = "request", Subscribe = "subscribe", Pull = "pull", Reply = "reply";
    "publish, push, request, subscribe, pull, reply");
words!(DeliveryClass: AtMostOnce = "at-most-once", AtLeastOnce = "at-least-once"; "at-most-once, at-least-once");
words!(AckOn: Sent = "sent", Receipt = "receipt", Accepted = "accepted", Stored = "stored", Processed = "processed", Reply = "reply";
    "sent, receipt, accepted, stored, processed, reply");
words!(RetainPolicy: AsPublished = "as-published", Strip = "strip", NeverForward = "never-forward";
    "as-published, strip, never-forward");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_words_map_both_ways() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), *pattern);
        }
        for ack in AckOn::ALL {
            assert_eq!(ack.to_string().parse::<AckOn>().unwrap(), *ack);
        }
        for class in DeliveryClass::ALL {
            assert_eq!(class.to_string().parse::<DeliveryClass>().unwrap(), *class);
        }
        for retain in RetainPolicy::ALL {
            assert_eq!(retain.to_string().parse::<RetainPolicy>().unwrap(), *retain);
        }
    }

    #[test]
    fn reconciled_r4_old_words_are_refused_with_the_list() {
        assert!("at-least-once".parse::<DeliveryClass>().is_ok());
        let refused = "best_effort".parse::<DeliveryClass>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "\"best_effort\" is not one of at-most-once, at-least-once"
        );
    }

    #[test]
    fn patterns_know_their_direction() {
        let ingress: Vec<_> = Pattern::ALL
            .iter()
            .filter(|pattern| pattern.direction() == Direction::Ingress)
            .collect();
        assert_eq!(
            ingress,
            [&Pattern::Publish, &Pattern::Push, &Pattern::Request]
        );
    }
}
