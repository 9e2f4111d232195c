//! Any bytes as MQTT 5.0, to a server and to a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_mqtt::codec::fuzzing::mqtt_decode_v5(data));
