//! What a pipeline depends on, beside the stages themselves.

use super::involved::involved;
use super::needs::Needs;
use super::pipeline::Pipeline;
use super::sinks::{Into, Sink};
use crate::facts::MetaField;
use std::collections::BTreeSet;

/// What has to be there for a pipeline, and where it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependencies {
    /// Dotted paths of the input that it looks at; `None` when it looks at whole documents.
    pub fields: Option<Vec<String>>,
    /// Variables without `$$` that the command has to give, and those of the system (`NOW`).
    pub variables: BTreeSet<String>,
    /// What it asks `$meta` for.
    pub metas: Vec<MetaField>,
    /// Other collections and views of the same database that it reads.
    pub collections: BTreeSet<String>,
    /// The collection that it writes, if it does.
    pub writes: Option<Into>,
}

impl Pipeline {
    pub fn dependencies(&self) -> Dependencies {
        let mut needs = Needs::default();
        self.add_needs(&mut needs);
        let spelled = self.spelled();
        let mut collections = BTreeSet::new();
        involved(&spelled, &mut collections);
        Dependencies {
            fields: needs.fields(),
            variables: self.variables.clone(),
            metas: self.metas.clone(),
            collections: collections.into_iter().map(str::to_owned).collect(),
            writes: self.sink.as_ref().map(|(sink, _)| match sink {
                Sink::Out(into) => into.clone(),
                Sink::Merge(merge) => merge.into.clone(),
            }),
        }
    }
}
