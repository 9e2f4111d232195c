//! A filter and a topic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_protocol::fuzzing::topic_filter(data));
