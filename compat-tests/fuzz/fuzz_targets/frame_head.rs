//! Preamble and header of every kind, whole and in chunks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::frame_head(data));
