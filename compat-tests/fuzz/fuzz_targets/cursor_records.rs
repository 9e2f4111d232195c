//! Records of a CURSOR stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::cursor_records(data));
