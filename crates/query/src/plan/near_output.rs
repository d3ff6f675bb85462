//! What `$geoNear` asks the plan for.

/// What `$geoNear` adds to documents.
#[derive(PartialEq, Clone, Debug)]
pub struct NearOutput {
    pub distance_field: String,
    pub multiplier: f64,
    /// Where the nearest place goes.
    pub place_field: Option<String>,
}
