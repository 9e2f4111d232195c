//! Floor 1, from outside: golden vectors, the bad-input table, laws, and what other codecs say.

mod bad_input;
mod differential;
mod generators;
mod kit;
mod props;
mod topics;
mod vectors;
