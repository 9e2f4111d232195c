//! Test kit: processes that die on drop, faulty relays, transcripts, one load generator.
