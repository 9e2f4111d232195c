//! Records of a REPORT stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::report_records(data));
