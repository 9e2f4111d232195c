//! Our runtime against the published one, in both roles: one suite, three instances.
//!
//! The suite is one file that names its two sides `server` and `client`. Ours against ours shows that a case is sound before
//! the other two show that the two implementations agree.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
#![expect(
    clippy::duplicate_mod,
    reason = "one suite, once per pair of implementations"
)]

#[path = "."]
mod ours_alone {
    use ::weida as client;
    use ::weida as server;
    #[path = "suite.rs"]
    mod suite;
}

#[path = "."]
mod published_serves {
    use ::weida as client;
    use ::weida_published as server;
    #[path = "suite.rs"]
    mod suite;
}

#[path = "."]
mod published_dials {
    use ::weida as server;
    use ::weida_published as client;
    #[path = "suite.rs"]
    mod suite;
}
