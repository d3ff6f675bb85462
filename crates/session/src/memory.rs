//! How much stages may hold in memory, as the parameters say.

use pando_command::{Param, Params};
use pando_query::ctx::Memory;

pub fn memory(params: &Params) -> Memory {
    let bytes = |param| usize::try_from(params.int(param)).unwrap_or(0);
    Memory {
        sort: bytes(Param::internalQueryMaxBlockingSortMemoryUsageBytes),
        group: bytes(Param::internalDocumentSourceGroupMaxMemoryBytes),
        window: bytes(Param::internalDocumentSourceSetWindowFieldsMaxMemoryBytes),
        join: bytes(Param::internalLookupStageIntermediateDocumentMaxSizeBytes),
        join_cache: bytes(Param::internalDocumentSourceLookupCacheSizeBytes),
        facet: bytes(Param::internalQueryFacetMaxOutputDocSizeBytes),
        densify: bytes(Param::internalDocumentSourceDensifyMaxMemoryBytes),
        densified_docs: bytes(Param::internalQueryMaxAllowedDensifyDocs),
        push: bytes(Param::internalQueryMaxPushBytes),
        add_to_set: bytes(Param::internalQueryMaxAddToSetBytes),
        top_n: bytes(Param::internalQueryTopNAccumulatorBytes),
        range: bytes(Param::internalQueryMaxRangeBytes),
    }
}
