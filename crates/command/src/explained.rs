//! What every explanation says of the process that gives it, and of the bounds by which it would have run the command.

use crate::params::{Param, Params};
use pando_bson::{Bson, DocBuilder};

/// Who explains.
pub struct Process<'a> {
    pub host: &'a str,
    pub port: u16,
    pub version: &'a str,
    pub git_version: &'a str,
    pub params: &'a Params,
}

impl Process<'_> {
    /// `serverInfo` and `serverParameters`.
    pub fn append(&self, b: &mut DocBuilder) {
        b.doc("serverInfo", |d| {
            d.str("host", self.host);
            d.i32("port", i32::from(self.port));
            d.str("version", self.version);
            d.str("gitVersion", self.git_version);
        });
        b.doc("serverParameters", |d| self.append_parameters(d));
    }
    fn append_parameters(&self, d: &mut DocBuilder) {
        let mut put = |name: &str, n: i64| {
            let n = i32::try_from(n).map_or(Bson::Int64(n), Bson::Int32);
            d.bson(name, &n);
        };
        // What feeds the pipelines of a `$facet` is no parameter here.
        put("internalQueryFacetBufferSizeBytes", 100 << 20);
        for param in [
            Param::internalQueryFacetMaxOutputDocSizeBytes,
            Param::internalLookupStageIntermediateDocumentMaxSizeBytes,
            Param::internalDocumentSourceGroupMaxMemoryBytes,
            Param::internalQueryMaxBlockingSortMemoryUsageBytes,
        ] {
            put(param.name(), self.params.int(param));
        }
        put("internalQueryProhibitBlockingMergeOnMongoS", 0);
        for param in
            [Param::internalQueryMaxAddToSetBytes, Param::internalDocumentSourceSetWindowFieldsMaxMemoryBytes]
        {
            put(param.name(), self.params.int(param));
        }
    }
}
