//! What every adapter shares: envelopes, the fabric seam, names, outcomes, stores.
