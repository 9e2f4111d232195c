//! Two HELLOs, judged from both ends.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::negotiation(data));
