//! Pipeline stages and accumulators.
