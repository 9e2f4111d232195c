//! Any bytes as MQTT 3.1.1, to a server and to a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_mqtt::codec::fuzzing::mqtt_decode_v4(data));
