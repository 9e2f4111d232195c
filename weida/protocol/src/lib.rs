//! The weida wire codec: frames, strict CBOR headers, negotiation; no I/O.
