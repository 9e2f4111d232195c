//! Identity, addresses, topics, filters, limits and codes of weida; no I/O.
