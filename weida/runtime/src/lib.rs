//! Messaging over QUIC in which a peer is the key it proved and nothing else.
