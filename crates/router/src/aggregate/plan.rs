//! Who does what of a pipeline.

use pando_base::Result;
use pando_metadata_cache::{Route, Target};
use pando_query::stage::{Asked, MergeHost, Pipeline, PipelineSource, Split};

/// Where a pipeline over a sharded collection runs.
pub(crate) enum Plan {
    /// One shard has all that it looks at.
    Whole(Target),
    Parts {
        split: Box<Split>,
        targets: Vec<Target>,
    },
}

/// `all`: every shard, for stages that are about shards rather than documents. `spread`: something that is read besides lies on
/// several shards. A shard reads beside its own collection what lies there as a whole, and nothing else: this router does the rest.
pub(crate) fn plan(pipeline: &Pipeline, route: &Route, all: &[Target], spread: bool) -> Result<Plan> {
    let split = pipeline.split(&|_| false)?;
    let mut targets = match split.asked {
        Asked::Nobody => Vec::new(),
        Asked::EachShard => all.to_vec(),
        Asked::Owners => match pipeline.source() {
            PipelineSource::Collection => route.concerned(leading_condition(pipeline).as_deref()),
            _ => route.owners(),
        },
    };
    // A part that looks beside the collection is done where it can be seen.
    let at_home = |target: &Target| match split.host {
        MergeHost::Anywhere | MergeHost::WithDisk => true,
        MergeHost::AnyShard | MergeHost::Primary => !spread && target.shard == route.db.primary,
    };
    if let (1, Asked::Owners) = (targets.len(), split.asked)
        && at_home(&targets[0])
    {
        return Ok(Plan::Whole(targets.remove(0)));
    }
    Ok(Plan::Parts { split: Box::new(split), targets })
}

/// What all documents must match that the pipeline looks at.
fn leading_condition(pipeline: &Pipeline) -> Option<std::sync::Arc<pando_query::matcher::Matcher>> {
    pipeline
        .clone()
        .take_find()
        .matcher
        .or_else(|| Some(std::sync::Arc::new(pando_query::matcher::Matcher::all())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::{doc, route, table};
    use pando_query::QueryCtx;

    fn shape(stages: &str) -> String {
        let route = route(Some(table(&[("a", None), ("b", Some(0))])));
        let holder = doc(&format!(r#"{{"p": {stages}}}"#));
        let list = holder.get("p").and_then(|v| v.as_array()).unwrap();
        let pipeline = Pipeline::parse(list, &QueryCtx::default()).unwrap();
        match plan(&pipeline, &route, &[], false).unwrap() {
            Plan::Whole(target) => format!("whole on {}", target.shard),
            Plan::Parts { targets, split } => format!("{} shards, {:?}", targets.len(), split.host),
        }
    }

    #[test]
    fn one_shard_does_all_where_it_has_all() {
        assert_eq!(shape(r#"[{"$match": {"k": 5}}, {"$group": {"_id": "$x"}}]"#), "whole on b");
        assert_eq!(shape(r#"[{"$group": {"_id": "$x"}}]"#), "2 shards, WithDisk");
        let join = r#"{"$lookup": {"from": "o", "localField": "x", "foreignField": "x", "as": "o"}}"#;
        assert_eq!(shape(&format!(r#"[{{"$match": {{"k": -5}}}}, {join}]"#)), "whole on a");
        assert_eq!(shape(&format!(r#"[{{"$match": {{"k": 5}}}}, {join}]"#)), "1 shards, Primary");
    }
}
