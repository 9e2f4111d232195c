//! What became of one message, and when its source may be settled [reconciled 3, 4].

use bytes::Bytes;
use weida_core::PeerIdentity;

use crate::envelope::Meta;
use crate::route::AckOn;

/// What became of one message.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The peer's transport holds every byte.
    Receipt,
    /// The next hop took responsibility in memory, and said so itself.
    Accepted,
    /// It is on stable storage: the next hop said so, or our own store synced it.
    Stored,
    /// The consumer settled it.
    Processed,
    /// The answer of a request.
    Reply(Box<Reply>),
    /// Handed to the queues of a fan-out; a push that awaits no receipt is one copy.
    Fanned {
        /// Copies handed on.
        copies: usize,
        /// Copies that a full queue or a policy dropped, each counted by cause where it happened.
        dropped: usize,
    },
    /// A definite no from the destination or from policy.
    Refused(Refusal),
    /// Lost here, and counted.
    Dropped(DropCause),
    /// Kept aside for an operator, and counted.
    DeadLettered(DropCause),
    /// The route's condition did not hold.
    Filtered,
    /// Its own lifetime ended before it was delivered.
    Expired,
    /// Nobody can know whether it arrived.
    Indeterminate,
}

impl Outcome {
    /// The level reached, if any.
    ///
    /// A reply implies `Receipt` and reaches what its sender stated in `achieved`. A fan-out reaches `Sent` when at
    /// least one copy was handed on; one that reached nobody reached nothing.
    #[must_use]
    pub fn reached(&self) -> Option<Level> {
        match self {
            Self::Receipt => Some(Level::Receipt),
            Self::Accepted => Some(Level::Accepted),
            Self::Stored => Some(Level::Stored),
            Self::Processed => Some(Level::Processed),
            Self::Reply(reply) => Some(
                reply
                    .achieved
                    .map_or(Level::Receipt, |level| level.max(Level::Receipt)),
            ),
            Self::Fanned { copies: 0, .. } => None,
            Self::Fanned { .. } => Some(Level::Sent),
            Self::Refused(_)
            | Self::Dropped(_)
            | Self::DeadLettered(_)
            | Self::Filtered
            | Self::Expired
            | Self::Indeterminate => None,
        }
    }

    /// True when the source may be told "done" for a route that settles at `ack` [reconciled R5].
    ///
    /// A reached level satisfies every lower one; `AckOn::Reply` is satisfied by a reply alone. False does not mean
    /// "not acknowledged": what a source is told then is the table of [reconciled 3], which each adapter spells.
    #[must_use]
    pub fn satisfies(&self, ack: AckOn) -> bool {
        match ack.level() {
            Some(wanted) => self.reached().is_some_and(|reached| reached >= wanted),
            None => matches!(self, Self::Reply(_)),
        }
    }

    /// True when a fan-out found nobody to hand a copy to, and no copy was dropped on the way.
    #[must_use]
    pub const fn reached_nobody(&self) -> bool {
        matches!(
            self,
            Self::Fanned {
                copies: 0,
                dropped: 0
            } | Self::Dropped(DropCause::NoSubscriber)
        )
    }
}

/// The answer of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// Opaque bytes of the answer.
    pub payload: Bytes,
    /// Media type, as the replier stated it.
    pub content_type: Option<Box<str>>,
    /// Headers of the answer.
    pub meta: Meta,
    /// The level the replier says it reached with the request.
    pub achieved: Option<Level>,
    /// The proved peer that answered; `None` when the answer came from the foreign side.
    pub peer: Option<PeerIdentity>,
}

/// How far a message got; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Handed to the transport or to the queues of a fan-out.
    Sent,
    /// The next transport or server answered for the bytes.
    Receipt,
    /// The next hop took responsibility in memory.
    Accepted,
    /// The next hop survives power loss with it.
    Stored,
    /// The consumer settled it.
    Processed,
}

impl Level {
    /// The word of configuration, logs and metadata.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Receipt => "receipt",
            Self::Accepted => "accepted",
            Self::Stored => "stored",
            Self::Processed => "processed",
        }
    }
}

/// Why a message was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The destination's application or policy said no.
    Rejected,
    /// Nothing serves the destination's path or name.
    UnknownEndpoint,
    /// The destination cannot do what the message asks.
    Unsupported,
    /// A bound of the destination, with the phrase it gave.
    LimitExceeded(Option<String>),
    /// Our own grants say no; never used for somebody else's refusal.
    NotAuthorized,
    /// A bound here is full and the route says reject.
    QueueFull,
    /// Larger than the route or its destination takes.
    TooLarge,
    /// The name cannot be carried.
    BadName,
    /// Faster than a grant or route allows.
    RateLimited,
}

impl Refusal {
    /// The cause under which a refused message is counted [reconciled 3].
    #[must_use]
    pub const fn cause(&self) -> DropCause {
        match self {
            Self::Rejected | Self::LimitExceeded(_) => DropCause::RefusedByDestination,
            Self::UnknownEndpoint | Self::Unsupported => DropCause::Unroutable,
            Self::NotAuthorized => DropCause::NotAuthorized,
            Self::QueueFull => DropCause::QueueFull,
            Self::TooLarge => DropCause::TooLarge,
            Self::BadName => DropCause::BadName,
            Self::RateLimited => DropCause::RateLimited,
        }
    }
}

/// Declares the closed list once: variants, labels and their order cannot drift apart.
macro_rules! drop_causes {
    ($($(#[$doc:meta])* $variant:ident = $label:literal),+ $(,)?) => {
        /// Why a message was dropped or dead-lettered: the closed list of [gateway 6].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DropCause {
            $($(#[$doc])* $variant),+
        }

        impl DropCause {
            /// Every cause, in label order of the list; `ALL[cause.index()] == cause`.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value of the metric label `cause`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $label),+
                }
            }
        }
    };
}

drop_causes! {
    /// A bounded queue was full and its policy drops.
    QueueFull = "queue_full",
    /// Faster than a rate allows.
    RateLimited = "rate_limited",
    /// Larger than the route, or the destination, takes.
    TooLarge = "too_large",
    /// A name that cannot be carried: empty, not text, or with wildcards.
    BadName = "bad_name",
    /// A name longer than the destination takes.
    NameTooLong = "name_too_long",
    /// Content that cannot be carried or decoded.
    BadPayload = "bad_payload",
    /// The destination has nowhere to put it.
    Unroutable = "unroutable",
    /// The destination said no for good.
    RefusedByDestination = "refused_by_destination",
    /// A grant, ours or theirs, says no.
    NotAuthorized = "not_authorized",
    /// The route's own timeout ended it. A message whose own lifetime ended is no drop.
    Expired = "expired",
    /// The last attempt the route allows did not settle it.
    AttemptsExhausted = "attempts_exhausted",
    /// It has been here before, or went through too many gateways.
    Loop = "loop",
    /// A fan-out found nobody.
    NoSubscriber = "no_subscriber",
    /// Its session was away and the message was not one to keep.
    Qos0Disconnected = "qos0_disconnected",
    /// More metadata than crosses a route.
    MetaTooLarge = "meta_too_large",
    /// The store is full.
    StoreFull = "store_full",
    /// The process ended before it could be settled.
    Shutdown = "shutdown",
    /// A fault of ours.
    Internal = "internal",
}

impl DropCause {
    /// Position in [`DropCause::ALL`], for tables of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for DropCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
