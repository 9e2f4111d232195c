//! One header of the kind the first byte chooses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::header(data));
