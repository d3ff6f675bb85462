//! Index bounds, candidate plans and the choice between them.

/// Remembered plan choices of one collection, by query shape.
#[derive(Debug, Default)]
pub struct PlanCache {
    _private: (),
}
