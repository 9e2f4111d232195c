//! MQTT packets that decode are written and read the same again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weida_mqtt::codec::fuzzing::mqtt_roundtrip(data));
