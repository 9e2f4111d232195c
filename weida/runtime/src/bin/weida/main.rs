//! The weida command.

fn main() {}
