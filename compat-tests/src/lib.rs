//! Real peers, scenarios, comparison benchmarks.
