//! MQTT 3.1.1 and 5.0 for the weida gateway: server, sessions and routes.

pub mod codec;
