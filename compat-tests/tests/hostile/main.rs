//! Malformed and hostile input against a live runtime, from a raw quinn peer
//! in both roles. `[wire 17, 25.3, 30]`, `[weida 6, 16, 20, 21]`
//!
//! `wire_17_NN_…` is the row NN, counted from the top, of the table in wire
//! section 17:
//!
//! | Row | Input |
//! | --- | --- |
//! | 01 | first byte is not 57 |
//! | 02 | kind 9 to 255 |
//! | 03 | header longer than the cap |
//! | 04 | FIN before a complete preamble |
//! | 05 | FIN inside the header |
//! | 06 | head not complete in time |
//! | 07 | header that does not decode |
//! | 08 | DATA without endpoint |
//! | 09 | ERROR on a one-way stream |
//! | 10 | anything but DATA opening an exchange |
//! | 11 | second HELLO |
//! | 12 | HELLO that cannot be agreed with |
//! | 13 | HELLO that contradicts itself |
//! | 14 | no HELLO in time |
//! | 15 | filter outside the grammar |
//! | 16 | one filter too many |
//! | 17 | FLOW or REPORT without the capability |
//! | 18 | FLOW with a byte too many, live flow id repeated |
//! | 19 | REPORT that is wrong |
//! | 20 | CURSOR for an unknown id |
//! | 22 | CREDIT where no queue is |
//! | 23 | UNSUBSCRIBE of what is not held |
//! | 24 | bytes after a header-only frame |
//! | 25 | misrouted streams |
//! | 26 | broken reply half |
//! | 27 | ERROR with an unknown code |
//! | 28 | reset before FIN |
//! | 29 | DATAGRAM for no flow |
//! | 30 | DATAGRAM though none was advertised |
//! | 31 | content length that lies, malformed trace |
//!
//! Row 21, records of a report that was ordered, has no test: this version of
//! the runtime orders none, so every id a peer can name is unknown (row 20).
//! Flows and path reports are not offered either: what rows 18, 19 and 29 send
//! is answered as it must be, but for want of the capability. The same bodies
//! show the valid neighbour wherever the capability is offered, as the
//! published runtime does.
//!
//! A case runs in four ways: our runtime as `server` and as `client`, and the
//! published one likewise, which shows that the expectation is the reference's
//! and not merely ours.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod bounds;
mod doorway;
mod frames;
mod headers;
mod heads;
mod hello;
mod identity;
mod raw;
mod relay;
mod replies;
mod silence;
mod subject;
mod vectors;
mod world;

/// One body, run against both runtimes in both roles.
macro_rules! everywhere {
    ($($name:ident)*) => {$(
        mod $name {
            #[tokio::test]
            async fn server() {
                super::$name(crate::OUR_SERVER).await;
            }

            #[tokio::test]
            async fn client() {
                super::$name(crate::OUR_CLIENT).await;
            }

            #[tokio::test]
            async fn published_server() {
                super::$name(crate::PUBLISHED_SERVER).await;
            }

            #[tokio::test]
            async fn published_client() {
                super::$name(crate::PUBLISHED_CLIENT).await;
            }
        }
    )*};
}

/// One body, run against our runtime in both roles.
macro_rules! ours {
    ($($name:ident)*) => {$(
        mod $name {
            #[tokio::test]
            async fn server() {
                super::$name(crate::OUR_SERVER).await;
            }

            #[tokio::test]
            async fn client() {
                super::$name(crate::OUR_CLIENT).await;
            }
        }
    )*};
}

/// One body for one role, run against both runtimes.
macro_rules! both {
    ($($name:ident)*) => {$(
        mod $name {
            #[tokio::test]
            async fn ours() {
                super::$name(crate::subject::Subject::Ours).await;
            }

            #[tokio::test]
            async fn published() {
                super::$name(crate::subject::Subject::Published).await;
            }
        }
    )*};
}

use {both, everywhere, ours};

use subject::Subject::{Ours, Published};
use world::Case;
use world::Role::{Client, Server};

const OUR_SERVER: Case = Case {
    subject: Ours,
    role: Server,
};
const OUR_CLIENT: Case = Case {
    subject: Ours,
    role: Client,
};
const PUBLISHED_SERVER: Case = Case {
    subject: Published,
    role: Server,
};
const PUBLISHED_CLIENT: Case = Case {
    subject: Published,
    role: Client,
};
