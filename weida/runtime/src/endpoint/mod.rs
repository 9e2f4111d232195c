//! Typed endpoints: a selection policy, a queue and a name over the stream
//! core. No pattern adds a delivery guarantee. `[weida 1.2]`

use std::fmt;

mod publish;
mod pull;
mod push;
mod rep;
mod req;
mod subscribe;

/// A typed messaging endpoint.
pub struct Endpoint<P: Pattern> {
    pub(crate) state: P::State,
}

impl<P: Pattern> fmt::Debug for Endpoint<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(P::NAME).finish_non_exhaustive()
    }
}

/// A messaging pattern; sealed.
pub trait Pattern: sealed::Sealed {
    /// What an endpoint of this pattern holds.
    type State;
    #[doc(hidden)]
    const NAME: &'static str;
}

mod sealed {
    #[expect(unnameable_types, reason = "what seals `Pattern`")]
    pub trait Sealed {}
}

macro_rules! patterns {
    ($($(#[$doc:meta])* $pattern:ident / $(#[$alias_doc:meta])* $alias:ident: $state:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $pattern {}
        impl sealed::Sealed for $pattern {}
        impl Pattern for $pattern {
            type State = $state;
            const NAME: &'static str = stringify!($alias);
        }
        $(#[$alias_doc])*
        pub type $alias = Endpoint<$pattern>;
    )*};
}

patterns! {
    /// The requesting side of Req/Rep.
    Req / /// The requesting half of Req/Rep.
    Requester: req::ReqState;
    /// The replying side of Req/Rep.
    Rep / /// The replying half of Req/Rep.
    Replier: rep::RepState;
    /// The sending side of Push/Pull.
    Push / /// The sending half of Push/Pull.
    Pusher: push::PushState;
    /// The receiving side of Push/Pull.
    Pull / /// The receiving half of Push/Pull.
    Puller: pull::PullState;
    /// The publishing side of Pub/Sub.
    Pub / /// The publishing half of Pub/Sub.
    Publisher: publish::PubState;
    /// The subscribing side of Pub/Sub.
    Sub / /// The subscribing half of Pub/Sub.
    Subscriber: subscribe::SubState;
}
