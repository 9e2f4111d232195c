//! Log output: text for people, JSON lines for collectors, always on stderr.
