//! The arguments of `listIndexes`.

use crate::declare::kinds::{Bool, Cursor, SafeBool};
use crate::declare::{arguments, kind};

arguments! {
    /// What `listIndexes` asks for.
    pub struct ListIndexesArgs of "listIndexes" as "listIndexes", refusing {
        "cursor" cursor: optional Cursor,
        "includeBuildUUIDs" build_uuids: optional Unstable,
        "includeIndexBuildInfo" build_info: optional Unstable,
        "isTimeseriesNamespace" by_buckets: optional Bool,
    }
}

kind! {
    /// For clients that do not ask for the Stable API alone.
    pub Unstable like SafeBool { UNSTABLE: true }
}
