//! What must never become a peer identity, as a compile-fail suite. The cases are `tests/ui/from_*.rs`, one per foreign-id
//! newtype and claim; a crate of its own, so that compiling them needs no more of the workspace than they name.
