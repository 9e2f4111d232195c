//! What the test command needs beside the tests: the check that every claimed requirement was tested.
//!
//! The tests themselves live in `tests/<behaviour>/`, the real peers in `weida-testkit`.

pub mod coverage;
