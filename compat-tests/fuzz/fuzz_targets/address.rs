//! Addresses of every scheme.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::address(data));
